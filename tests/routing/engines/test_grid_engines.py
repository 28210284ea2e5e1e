"""Check dor and torus-2qos: dimension order, datelines, and detours around faults."""

import collections
import random

import networkx as nx
import numpy as np
import pytest
from attached_switches import attached
from in_one_test import cases_in_one_test
from slow_proof import prove_slowly

from routing.engines import ENGINES, dor, torus_2qos
from routing.engines.base import EngineOptions
from routing.engines.grid_balance import missing_links
from routing.engines.grid_tables import GridRoutes, place
from routing.errors import InputWarning, NotEnoughVLs
from routing.faults.choose import between_switches
from routing.faults.model import apply_faults
from routing.faults.text import parse_fault
from routing.grids.coordinates import NotAGrid, find_coordinates
from routing.publish import verify
from routing.quality import all_to_all_share, channel_loads
from routing.topologies import generate

LOOP_FREE = [("mesh", "5x4"), ("hyperx", "5x3"), ("hypercube", "4"), ("torus", "4x4x2")]


def routed(engine, fabric, **options):
    routing = ENGINES[engine].route(fabric, EngineOptions(threads=1, **options))
    return routing, verify(fabric, routing, ENGINES[engine], threads=1).proof


@pytest.mark.parametrize("engine", ["dor", "torus-2qos"])
@pytest.mark.parametrize(("name", "size"), LOOP_FREE)
def test_paths_use_one_dimension_after_the_other_on_one_vl(engine, name, size):
    fabric = generate(name, [size], cas=2, lmc=1)
    routing, proof = routed(engine, fabric, vls=1)
    assert (proof.strength, proof.scope, routing.vls) == ("reversible", "all", 1)
    position = find_coordinates(fabric).grids[0].position
    orders = set()
    for lid in fabric.endport_lid.tolist():
        root = int(fabric.lids.switch[lid])
        for start in range(fabric.switches):
            at, axes = start, []
            while at != root:
                channel = fabric.channels.at_port[at, routing.lft[at, lid]]
                axes.append(int(np.flatnonzero(position[at] != position[fabric.channels.dst[channel]])[0]))
                at = int(fabric.channels.dst[channel])
            runs = [axis for number, axis in enumerate(axes) if number == 0 or axes[number - 1] != axis]
            assert len(set(runs)) == len(runs)
            orders |= {(a, b) for number, a in enumerate(runs) for b in runs[number + 1 :]}
    assert nx.is_directed_acyclic_graph(nx.DiGraph(orders))


def test_dor_on_a_torus_says_that_it_is_not_loop_free():
    fabric = generate("torus", ["5x5"], cas=1)
    routing, proof = routed("dor", fabric, vls=1)
    assert proof.complete and proof.credit_loop is not None
    assert routing.provenance.options["loop_free"] == "no: the rings need more VLs than 1"
    routing, proof = routed("dor", fabric, vls=4)
    assert proof.certified and routing.vls <= 4 and "loop_free" not in routing.provenance.options


def test_dor_reports_that_its_search_reached_the_work_limit(monkeypatch):
    monkeypatch.setattr(dor, "VISITS", 1)
    fabric = generate("torus", ["5x5"], cas=1)
    routing, proof = routed("dor", fabric, vls=4)
    assert not proof.certified
    reason = "no: the search for VLs reached its work limit; the rings may need more VLs than 4"
    assert routing.provenance.options["loop_free"] == reason


@pytest.mark.parametrize(
    ("size", "options", "share"),
    [
        ("4x4x4", {"cas": 4}, 0.498),
        ("6x5x5", {"cas": 4, "redundancy": 4}, 1.32),
        ("6x6", {"cas": 2}, 0.657),
        ("6x5x5", {"cas": 1}, 1.319),
        ("7x6", {"cas": 1}, 1.139),
        ("8x8", {"cas": 1}, 0.984),
    ],
)
def test_torus_2qos_balances_on_two_vls(size, options, share):
    fabric = generate("torus", [size], **options)
    routing, proof = routed("torus-2qos", fabric)
    assert proof.certified and routing.vls <= 2
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) >= share - 0.001


def test_a_lost_switch_changes_no_side_of_a_ring():
    fabric = generate("torus", ["6x6"], cas=3)
    broken = apply_faults(fabric, [parse_fault("sw2.3", fabric)])
    routes = [GridRoutes.of(one, EngineOptions()) for one in (fabric, broken)]
    side = [dict(zip(one.destinations.lid.tolist(), one.side.tolist(), strict=True)) for one in routes]
    assert set(side[0].values()) == {0, 1} and side[1].items() <= side[0].items()


EVEN_RINGS = [("torus", "6x5"), ("torus", "8x3"), ("torus", "8x6"), ("torus", "6x6x3")]


@cases_in_one_test(("name", "size"), [*EVEN_RINGS, ("torus", "5x5"), ("mesh", "5x4")])
@cases_in_one_test("cas", [1, 2])
@cases_in_one_test("reversible", [False, True])
@cases_in_one_test("missing", [0, 1])
def test_replies_are_safe_unless_the_provenance_has_the_reason(name, size, cas, reversible, missing):
    whole = generate(name, [size], cas=cas)
    fabric = whole.without_links(between_switches(whole).tolist()[5 : 5 + missing])
    routing, proof = routed("torus-2qos", fabric, reversible=reversible)
    facts = routing.provenance.options
    assert proof.strength == ("forward" if "replies" in facts else "reversible")
    assert not reversible or "replies" not in facts
    expected = "replies" in facts and (name, size) in EVEN_RINGS
    assert ("opposite sides of a ring" in str(facts.get("replies"))) == expected


def test_no_vls_are_spent_for_replies_that_stay_unsafe(monkeypatch):
    mutual = []
    monkeypatch.setattr(torus_2qos, "place", lambda *each, **o: mutual.append(o["mutual"]) or place(*each, **o))
    for size, expected in (("6x5", False), ("5x5", True)):
        whole = generate("torus", [size], cas=2)
        mutual.clear()
        routing, proof = routed("torus-2qos", whole.without_links(between_switches(whole).tolist()[:1]))
        assert proof.certified and mutual and any(mutual) == expected
        assert ("replies" in routing.provenance.options) != expected


def test_replies_that_do_not_fit_into_the_vls_are_recorded():
    whole = generate("torus", ["5x4"], cas=2)
    found = set()
    for link in between_switches(whole).tolist()[::3]:
        routing, proof = routed("torus-2qos", whole.without_links([link]), vls=3)
        reason = routing.provenance.options.get("replies")
        assert proof.certified and (proof.strength == "reversible" or reason is not None)
        found.add((proof.strength, reason))
    text = "not ensured on the request's SL: some paths with a detour and their reply paths have different SLs"
    assert {("reversible", None), ("forward", text)} <= found


@pytest.mark.parametrize("reversible", [False, True])
def test_any_single_link_may_fail_on_two_vls(reversible):
    for size in ("5x6", "4x4x4"):
        fabric = generate("torus", [size], cas=1)
        for link in between_switches(fabric).tolist()[::12]:
            routing, proof = routed("torus-2qos", fabric.without_links([link]), vls=2, reversible=reversible)
            assert proof.certified and (proof.strength == "reversible" or not reversible)
            if size == "5x6":
                assert routing.provenance.options["detours"] == 0  # paths use the other side of the ring


@pytest.mark.parametrize("engine", ["torus-2qos", "dor"])
@pytest.mark.parametrize("options", [{}, {"reversible": True}], ids=["default", "reversible"])
def test_a_broken_ring_does_not_halve_the_rate(engine, options):
    fabric = generate("torus", ["5x4"], cas=2)

    def rate(fabric):
        routing, proof = routed(engine, fabric, **options)
        in_order = GridRoutes.of(fabric, EngineOptions()).paths.regular.all()
        assert proof.certified
        assert proof.strength == "reversible" or not options.get("reversible", engine == "torus-2qos" and in_order)
        return all_to_all_share(fabric, channel_loads(fabric, routing, threads=1))

    whole = rate(fabric)
    for link in between_switches(fabric).tolist()[::4]:
        assert rate(fabric.without_links([link])) >= 0.75 * whole


@pytest.mark.parametrize(
    "faults", [["sw2.2"], ["sw2.2", "sw2.3"], ["sw0.0/2", "sw3.0/2"], ["sw1.1/2", "sw3.1/4", "sw4.4"]], ids=str
)
def test_detours_use_spare_vls(faults):
    fabric = generate("torus", ["6x5"], cas=1)
    broken = apply_faults(fabric, [parse_fault(fault, fabric) for fault in faults])
    routing, proof = routed("torus-2qos", broken)
    assert proof.certified and routing.provenance.options["detours"] > 0 and 2 < routing.vls <= 5
    slow = prove_slowly(broken, routing)
    assert nx.is_directed_acyclic_graph(slow.requests["all"])
    assert slow.counts["undelivered"] == slow.dropped == 0
    with pytest.raises(NotEnoughVLs):
        routed("torus-2qos", broken, vls=2)


def test_dor_takes_detours_where_a_row_is_broken():
    fabric = generate("mesh", ["5x5"], cas=1)
    for faults in (["sw2.2"], ["sw1.1/2", "sw3.3/4"]):
        broken = apply_faults(fabric, [parse_fault(fault, fabric) for fault in faults])
        routing, proof = routed("dor", broken)
        assert proof.certified and routing.provenance.options["detours"] > 0


def test_sls_stay_what_they_were_after_a_link_failed():
    fabric = generate("torus", ["6x5"], cas=2)
    before, _ = routed("torus-2qos", fabric, vls=2)
    after, _ = routed("torus-2qos", fabric.without_links([int(fabric.channels.link[0])]), vls=2)
    assert np.array_equal(before.sl, after.sl)
    ports = {(switch, port) for switch, _, port, _ in np.argwhere(before.sl2vl != after.sl2vl).tolist()}
    link = fabric.channels.link[0]
    assert ports <= set(zip(fabric.link_device[link].tolist(), fabric.link_port[link].tolist(), strict=True))
    assert np.mean(before.lft != after.lft) < 0.05


def test_the_first_vl_shifts_sls_and_vls():
    fabric = generate("torus", ["5x5"], cas=1)
    plain, _ = routed("torus-2qos", fabric)
    shifted, proof = routed("torus-2qos", fabric, first_vl=2)
    assert proof.certified and shifted.vls == plain.vls + 2
    assert np.array_equal(shifted.sl[:, fabric.endport_lid], plain.sl[:, fabric.endport_lid] + 2)


@pytest.mark.parametrize("engine", ["dor", "torus-2qos"])
def test_a_swapped_cable_is_a_warning_and_other_fabrics_an_error(engine):
    fabric = generate("torus", ["5x6"], cas=1)
    swapped = apply_faults(fabric, [parse_fault("swap sw0.0/2 sw3.3/4", fabric)])
    with pytest.warns(InputWarning, match="fits no coordinates: it may be miscabled") as named:
        routing, proof = routed(engine, swapped)
    assert proof.certified and len(named) == len(routing.provenance.options["miscabled"]) == 2
    with pytest.raises(NotAGrid):
        routed(engine, generate("dragonfly", ["4", "2", "2"]))


@pytest.mark.parametrize("engine", ["dor", "torus-2qos"])
@pytest.mark.parametrize(
    ("name", "size", "share", "least"),
    [("torus", "4x4x4", 0.05, 0.41), ("torus", "4x4x4", 0.1, 0.37), ("mesh", "8x8", 0.05, 0.092)],
)
def test_detours_are_balanced(engine, name, size, share, least):
    whole = generate(name, [size], cas=4)
    links = between_switches(whole).tolist()
    fabric = whole.without_links(sorted(random.Random(3).sample(links, round(share * len(links)))))
    routing, proof = routed(engine, fabric)
    # Strict dimension order carries half of this, because one side of a broken ring carries all traffic.
    assert proof.certified and routing.vls_needed <= 6
    assert all_to_all_share(fabric, channel_loads(fabric, routing)) >= least


@pytest.mark.parametrize("engine", ["dor", "torus-2qos"])
@pytest.mark.parametrize(
    ("name", "size", "ends"),
    [
        ("torus", "5x5x5", [[0], [7], [125], [9, 63], [126, 12], [20], [30, 130]]),
        ("torus", "5x5", [[3], [0]]),
        ("torus", "5x5", [[3, 17], [0, 12], [24]]),
        ("torus", "5x5", [[switch] for switch in range(25)]),
        ("mesh", "5x5", [[0], [9]]),
    ],
)
def test_attached_switches_need_no_further_vl(engine, name, size, ends):
    """Paths of I/O switches continue as paths of a neighbour, also if a link is missing."""
    fabric = attached(generate(name, [size], cas=1), ends)
    with pytest.warns(
        InputWarning, match="links? leads? to attached switches, which have no coordinates, such"
    ) as named:
        routing, proof = routed(engine, fabric, reversible=name == "mesh")
    links = sum(len(near) for near in ends)
    assert len(named) == 1 and len(routing.provenance.options["attached"]) == links
    assert "miscabled" not in routing.provenance.options
    assert proof.certified and routing.provenance.options["detours"] == 0
    assert engine == "dor" or routing.vls_needed == (1 if name == "mesh" else 2)
    less = fabric.without_links(between_switches(fabric)[3:4].tolist())
    with pytest.warns(InputWarning, match="to attached switches"):
        assert routed(engine, less)[1].certified


@pytest.mark.parametrize("seed", range(6))
def test_moved_paths_end_at_their_destinations_and_lower_the_highest_load(seed):
    whole = generate("torus", ["5x4", "3x3x3"][seed % 2 : seed % 2 + 1], cas=2)
    links = between_switches(whole).tolist()
    fabric = whole.without_links(sorted(random.Random(seed).sample(links, 4)))
    routes = GridRoutes.of(fabric, EngineOptions())
    balanced = next(routes.balanced())
    assert highest_load(balanced) < highest_load(routes)
    changed = balanced.paths.hop != routes.paths.hop
    assert changed.any() and not (changed & balanced.paths.regular).any()


def highest_load(routes):
    """Return the highest load of a bundle, summed over all paths; each path ends at its destination."""
    fabric, bundles = routes.fabric, routes.bundles
    load = collections.Counter()
    for side, root, share in zip(
        routes.side, routes.destinations.root.tolist(), routes.destinations.share, strict=True
    ):
        for source in range(fabric.switches):
            at, hops = source, 0
            while at != root:
                bundle = int(bundles.first[at]) + int(routes.paths.hop[side, root, at])
                load[bundle] += share * fabric.source_weight_at[source]
                at, hops = int(bundles.dst[bundle]), hops + 1
                assert hops < fabric.switches
    return max(load.values())


@pytest.mark.parametrize(("name", "size"), [("torus", "5x4x3"), ("mesh", "4x3"), ("hyperx", "4x3"), ("hypercube", "4")])
def test_paths_move_only_if_links_are_missing(name, size):
    whole = generate(name, [size], cas=1)
    assert list(GridRoutes.of(whole, EngineOptions()).balanced()) == []
    moved = []
    for link in between_switches(whole).tolist()[::7]:
        routes = GridRoutes.of(whole.without_links([link]), EngineOptions())
        assert missing_links(routes.fabric, routes.coordinates, routes.bundles) == 1
        moved.append(any(routes.balanced()))
    assert sum(moved) >= len(moved) - 1  # Around some links, dimension order is balanced already.
