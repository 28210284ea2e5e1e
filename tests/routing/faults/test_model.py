"""Check the fabric that remains after faults, against networkx and against a new construction of the fabric."""

import networkx
import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric, ring_fabric

from routing.errors import OptionError
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.faults import Fault, FaultKind, apply_faults, every_ca, every_link, every_switch, random_faults

KINDS = ("link", "ca-link", "switch", "ca", "degrade", "swap")


def guid_of(fabric, device):
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    return guids[device]


def cables(fabric):
    """Return width and speed of each cable, by the set of its ends (GUID, port).  The result does not depend on
    rows.
    """
    ends, ports = fabric.link_device.tolist(), fabric.link_port.tolist()
    return {
        frozenset({(guid_of(fabric, a), p), (guid_of(fabric, b), q)}): (int(w), float(s))
        for (a, b), (p, q), w, s in zip(ends, ports, fabric.link_width, fabric.link_speed, strict=True)
    }


def left_over(before, faults):
    """Return the cables and devices that remain after faults, by a slow and obvious method."""
    old = cables(before)
    plug = {end: number for number, cable in enumerate(old) for end in cable}  # number of the cable by (GUID, port)
    rate, gone, pulled = dict(enumerate(old.values())), set(), set()
    original = dict(plug)
    for fault in faults:
        if fault.kind is FaultKind.SWAP:
            a, b = fault.ports
            plug[a], plug[b] = plug[b], plug[a]
        elif fault.kind is FaultKind.DEGRADE:
            for end in fault.ports:
                width, speed = rate[original[end]]
                rate[original[end]] = (fault.width or width, fault.speed or speed)
        else:
            pulled |= {original[end] for end in fault.ports}
            gone |= set(fault.devices)
    pulled |= {number for (guid, _), number in plug.items() if guid in gone}
    ends = {}
    for end, number in plug.items():
        ends.setdefault(number, []).append(end)
    return {frozenset(two): rate[number] for number, two in ends.items() if number not in pulled}, gone


def rebuilt(fabric):
    """Build the fabric again with its present LIDs, and return it."""
    builder = FabricBuilder(fabric.name)
    handles = []
    kinds = [0] * fabric.switches + fabric.terminal_kind.tolist()
    names = [*fabric.switch_name, *fabric.terminal_name]
    ports = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]
    for device, (kind, name, count) in enumerate(zip(kinds, names, ports, strict=True)):
        handles.append(builder.add_device(NodeKind(kind), guid_of(fabric, device), name, count))
    for row, lid in enumerate(fabric.switch_lid.tolist()):
        builder.set_port(handles[row], 0, lid=lid)
    for row in range(fabric.endports):
        builder.set_port(
            handles[fabric.switches + int(fabric.endport_terminal[row])],
            int(fabric.endport_port[row]),
            guid=int(fabric.endport_guid[row]),
            lid=int(fabric.endport_lid[row]),
            lmc=int(fabric.endport_lmc[row]),
        )
    for row in range(fabric.links):
        (a, b), (p, q) = fabric.link_device[row].tolist(), fabric.link_port[row].tolist()
        width, speed = int(fabric.link_width[row]), float(fabric.link_speed[row])
        builder.connect(handles[a], p, handles[b], q, width=width, speed=speed)
    return builder.build(assign_lids=False)


def same(one, other):
    for field in Fabric.__dataclass_fields__:
        mine, theirs = getattr(one, field), getattr(other, field)
        equal = np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
        assert equal, field


@examples(60)
@given(fabrics(connected=False), st.sets(st.sampled_from(KINDS), min_size=1), st.integers(0, 1000), st.data())
def test_remaining_cables_and_devices_after_faults(fabric, kinds, seed, data):
    faults = []
    for kind in sorted(kinds):
        faults += random_faults(fabric, seed=seed, rate=data.draw(st.sampled_from([0.0, 0.2, 0.5])), kinds=(kind,))
    after = apply_faults(fabric, faults)
    wanted, gone = left_over(fabric, faults)
    assert cables(after) == wanted
    devices = {guid_of(fabric, device) for device in range(fabric.switches + fabric.terminals)}
    assert {guid_of(after, device) for device in range(after.switches + after.terminals)} == devices - gone
    same(after, rebuilt(after))
    old = dict(zip(fabric.endport_guid.tolist(), fabric.endport_lid.tolist(), strict=True))
    assert all(old[guid] == lid for guid, lid in zip(after.endport_guid.tolist(), after.endport_lid, strict=True))


def test_a_lost_link_splits_as_networkx_says():
    fabric = random_fabric(5, switches=12, degree=2, cas=1)
    graph = networkx.Graph(fabric.link_device[(fabric.link_device < fabric.switches).all(axis=1)].tolist())
    bridges = {frozenset(pair) for pair in networkx.bridges(graph)}
    parts = []
    for fault in every_link(fabric):
        after = apply_faults(fabric, [fault])
        rows = [int(np.flatnonzero(fabric.switch_guid == guid)[0]) for guid, _ in fault.ports]
        parts.append(int(after.component.max()) + 1)
        assert (parts[-1] == 2) == (frozenset(rows) in bridges)
    assert set(parts) == {1, 2}


def test_every_one_in_order():
    fabric = ring_fabric(4, cas=2)
    assert [str(fault) for fault in every_link(fabric)][:2] == ["sw0/3 - sw1/3", "sw0/4 - sw3/4"]
    assert len(every_link(fabric)) == 4
    assert len(every_link(fabric, cas=True)) == 12
    assert [str(fault) for fault in every_switch(fabric)] == list(fabric.switch_name)
    assert [str(fault) for fault in every_ca(fabric)] == list(fabric.terminal_name)
    for fault in [*every_link(fabric, cas=True), *every_switch(fabric), *every_ca(fabric)]:
        assert apply_faults(fabric, [fault]).links < fabric.links


def test_equal_names_are_distinguished_by_guid():
    builder = FabricBuilder()
    one, two = (builder.add_device(NodeKind.SWITCH, guid, "leaf", 4) for guid in (0x10, 0x20))
    builder.connect(one, 1, two, 2)
    fabric = builder.build()
    assert every_link(fabric)[0].name == "leaf (0x0000000000000010)/1 - leaf (0x0000000000000020)/2"


def test_the_published_experiment_draws_the_same_links_every_time():
    fabric = random_fabric(1, switches=30)
    links = every_link(fabric)
    drawn = random_faults(fabric, seed="(3, 3, 3)", rate=0.1)
    assert len(drawn) == round(0.1 * len(links))
    assert drawn == random_faults(fabric, seed="(3, 3, 3)", rate=0.1)
    assert drawn != random_faults(fabric, seed=7, count=len(drawn))


def test_groups_fall_as_a_whole():
    fabric = ring_fabric(6)
    cards = [Fault(FaultKind.GROUP, f"card {n}", devices=tuple(fabric.switch_guid[n : n + 2].tolist())) for n in (0, 2)]
    (card,) = random_faults(fabric, seed=3, count=1, kinds=("group",), groups=cards)
    assert apply_faults(fabric, [card]).switches == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "a rate or a count"),
        ({"rate": 0.1, "count": 3}, "a rate or a count"),
        ({"rate": 1.5}, "not a rate of faults"),
        ({"count": 7}, "7 random faults, and ring-6 has 6 of kind link"),
        ({"count": 1, "kinds": ("cable",)}, "'cable' is not a kind"),
    ],
)
def test_draws_that_cannot_be_had(options, said):
    with pytest.raises(OptionError, match=said):
        random_faults(ring_fabric(6), seed=1, **options)


def test_faults_of_a_kind_that_a_fabric_does_not_have():
    with pytest.raises(OptionError, match=r"3 random faults, and .* has none of kind link \(leave these faults out"):
        random_faults(random_fabric(1, switches=1, cas=3), seed=1, count=3)


def test_faults_of_another_fabric_are_refused():
    fabric, other = ring_fabric(4), ring_fabric(5)
    with pytest.raises(OptionError, match=r"fault 'sw0/3 - sw4/3' does not fit ring-4: no device 0x200004"):
        apply_faults(fabric, [Fault(FaultKind.LINK, "sw0/3 - sw4/3", ((0x200000, 3), (0x200004, 3)))])
    with pytest.raises(OptionError, match="its two ports are not cabled to each other"):
        apply_faults(fabric, [Fault(FaultKind.LINK, "x", ((0x200000, 2), (0x200002, 2)))])
    with pytest.raises(OptionError, match="has no cable"):
        apply_faults(apply_faults(other, every_link(other)[:1]), every_link(other)[:1])
    with pytest.raises(OptionError, match="of one cable"):
        apply_faults(fabric, [Fault(FaultKind.SWAP, "x", every_link(fabric)[0].ports)])
    with pytest.raises(OptionError, match="no device 0x7"):
        apply_faults(fabric, [Fault(FaultKind.SWITCH, "x", devices=(7,))])
