"""Compare a plan with a real fabric, and check the result with sets of cables."""

import random
from dataclasses import replace

import numpy as np
import pytest
from in_one_test import cases_in_one_test

from routing.cabling import compare_cabling
from routing.errors import InputError
from routing.names import system_name
from routing.rates import rate_name
from routing.topologies import generate

PLAN = generate("kary-ntree", ["4", "3"], cas=2)


def miswired(fabric, rng, kinds):
    """Return the fabric with some cables pulled or swapped in pairs.  Each cable is changed at most once."""
    device, port = fabric.link_device.copy(), fabric.link_port.copy()
    links, gone = rng.sample(range(fabric.links), 2 * len(kinds)), []
    for number, kind in enumerate(kinds):
        a, b = links[2 * number : 2 * number + 2]
        if kind == "pulled":
            gone.append(a)
            continue
        for array in (device, port):
            array[[a, b], [1, 1]] = array[[b, a], [1, 1]]
    kept = np.setdiff1d(np.arange(fabric.links), gone)
    return replace(fabric, link_device=device[kept], link_port=port[kept], link_width=fabric.link_width[kept],
                   link_speed=fabric.link_speed[kept])  # fmt: skip


def cables_of(fabric):
    ends = [
        sorted((fabric.labels[device], port) for device, port in zip(devices, ports, strict=True))
        for devices, ports in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True)
    ]
    return {tuple(both) for both in ends}


def as_ends(text):
    return tuple(sorted((end.rpartition("/")[0], int(end.rpartition("/")[2])) for end in text.split(" - ")))


def test_the_plan_itself_has_no_difference():
    found = compare_cabling(PLAN, PLAN)
    assert found.same
    assert (found.matched, found.edits) == (PLAN.switches + PLAN.terminals, 0)


@cases_in_one_test("seed", range(40))
def test_all_cables_that_differ_are_named_and_no_others(seed):
    rng = random.Random(seed)
    kinds = [rng.choice(["pulled", "swapped"]) for _ in range(rng.randint(1, 3))]
    real = miswired(PLAN, rng, kinds)
    found = compare_cabling(PLAN, real)
    planned = {as_ends(text) for finding in found.cables for text in finding.planned}
    there = {as_ends(text) for finding in found.cables for text in finding.found}
    assert planned == cables_of(PLAN) - cables_of(real)
    assert there == cables_of(real) - cables_of(PLAN)
    assert not (found.missing_devices or found.extra_devices or found.renamed or found.replaced or found.exchanged)
    kinds = ["missing" if kind == "pulled" else "swapped" for kind in kinds]
    assert sorted(finding.kind for finding in found.cables) == sorted(kinds)
    assert found.edits == len(kinds)


def test_a_plug_in_another_port_is_moved():
    port = PLAN.link_port.copy()
    port[5, 0] = free = int(PLAN.switch_ports.max()) + 1
    real = replace(PLAN, link_port=port, switch_ports=np.full_like(PLAN.switch_ports, free))
    (finding,) = compare_cabling(PLAN, real).cables
    assert finding.kind == "moved"
    assert f"/{free}" in finding.found[0]


def with_names(fabric, changes):
    return replace(fabric, switch_name=tuple(changes.get(name, name) for name in fabric.switch_name))


def test_renamed_and_replaced_devices_are_told_apart():
    first, second = PLAN.switch_name[:2]
    renamed = compare_cabling(PLAN, with_names(PLAN, {first: "spare"}))
    assert renamed.renamed == ((first, "spare"),)
    assert renamed.same
    guid = PLAN.switch_guid.copy()
    guid[1] = 0xABCDEF
    replaced = compare_cabling(PLAN, replace(PLAN, switch_guid=guid))
    assert replaced.replaced == ((second, second),)
    assert replaced.same
    both = compare_cabling(PLAN, with_names(replace(PLAN, switch_guid=guid), {second: "new"}))
    assert both.replaced == ((second, "new"),)  # name and GUID are both unknown, so the cables identify the switch
    assert both.same


def test_switches_that_have_changed_places():
    tops = np.flatnonzero(PLAN.terminals_at[: PLAN.switches] == 0)
    a, b = int(tops[0]), int(tops[-1])
    device = PLAN.link_device.copy()
    device[PLAN.link_device == a], device[PLAN.link_device == b] = b, a
    found = compare_cabling(PLAN, replace(PLAN, link_device=device))
    assert found.exchanged == ((PLAN.labels[a], PLAN.labels[b]),)
    assert not found.cables
    assert not found.same


def test_missing_and_extra_devices_take_their_cables_with_them():
    fewer = generate("kary-ntree", ["4", "3"], cas=1)
    by_name = replace(PLAN, terminal_guid=PLAN.terminal_guid + 1_000_000)
    names = set(fewer.terminal_name) & set(by_name.terminal_name)
    found = compare_cabling(by_name, fewer)
    assert len(found.missing_devices) == found.lost_cables == PLAN.terminals - len(names)
    assert found.matched == PLAN.switches + len(names)
    back = compare_cabling(fewer, by_name)
    assert len(back.extra_devices) == back.new_cables == PLAN.terminals - len(names)


def test_fabrics_without_a_common_device_are_refused():
    other = replace(PLAN, switch_name=tuple(f"x{n}" for n in range(PLAN.switches)),
                    switch_guid=PLAN.switch_guid + 9_000_000, terminal_guid=PLAN.terminal_guid + 9_000_000,
                    terminal_name=tuple(f"y{n}" for n in range(PLAN.terminals)))  # fmt: skip
    with pytest.raises(InputError, match="no device of the plan is in the real fabric"):
        compare_cabling(PLAN, other)


def test_names_of_systems_match_descriptions_of_switches():
    names = {name: f"MF0;{name.upper()}:MQM8700/U1" for name in PLAN.switch_name}
    real = with_names(replace(PLAN, switch_guid=PLAN.switch_guid + np.uint64(1 << 32)), names)
    found = compare_cabling(PLAN, real)
    assert found.same and found.matched == PLAN.switches + PLAN.terminals


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("MF0;leaf1:MQM8700/U1", "leaf1"), ("MF0;core:CS8500/L06/U2", "core/L6/U2"), ("MF0;a;b:c/U1", "MF0;a;b:c/U1"),
        ("leaf1", "leaf1"), ("MF0;leaf1", "MF0;leaf1"), ("", ""),
    ],
)  # fmt: skip
def test_system_names(description, name):
    assert system_name(description) == name


def test_aggregation_nodes_are_no_part_of_the_cabling():
    plain, inside = (generate("kary-ntree", ["2", "2"], aggregation=number) for number in (0, 1))
    found = compare_cabling(plain, inside)
    assert found.same and found.matched == plain.switches + plain.terminals


def with_rates(fabric, links, width, speed=None):
    """Return the fabric with another width, and perhaps another speed, of some cables."""
    widths, speeds = fabric.link_width.copy(), fabric.link_speed.copy()
    widths[links] = width
    if speed is not None:
        speeds[links] = speed
    return replace(fabric, link_width=widths, link_speed=speeds)


def test_cables_with_another_rate_are_named_with_both_rates():
    real = with_rates(with_rates(PLAN, [3, 40], 1), [7], 12)
    found = compare_cabling(PLAN, real)
    slow, fast = rate_name(1, PLAN.link_speed[0]), rate_name(12, PLAN.link_speed[0])
    planned = rate_name(PLAN.link_width[0], PLAN.link_speed[0])
    assert not found.same and not found.cables and found.edits == 0
    named = {as_ends(each.cable): (each.planned, each.found, each.is_slower) for each in found.rates}
    ends = [next(iter(cables_of(replace(PLAN, link_device=PLAN.link_device[[link]], link_port=PLAN.link_port[[link]]))))
            for link in (3, 40, 7)]  # fmt: skip
    assert named == dict(zip(ends, [(planned, slow, True), (planned, slow, True), (planned, fast, False)], strict=True))


def test_a_cable_in_another_place_has_no_rate_finding():
    real = with_rates(miswired(PLAN, random.Random(1), ["swapped"]), slice(0, 5), 1)
    found = compare_cabling(PLAN, real)
    wrong = {as_ends(text) for finding in found.cables for text in (*finding.planned, *finding.found)}
    assert not wrong & {as_ends(each.cable) for each in found.rates}


@pytest.mark.parametrize(("share", "is_compared"), [(0.49, True), (0.51, False), (1, False)])
def test_rates_are_compared_if_half_of_the_cables_have_the_planned_rate(share, is_compared):
    found = compare_cabling(PLAN, with_rates(PLAN, slice(0, round(share * PLAN.links)), 1))
    assert (found.rates is not None, found.same) == (is_compared, not is_compared)


def test_equal_speeds_of_different_formats_are_equal():
    plan = with_rates(PLAN, slice(None), 4, 14.0625)
    assert compare_cabling(plan, with_rates(plan, slice(None), 4, 14.0)).rates == ()
