"""Construction of a fabric from the plan of a topology, with the same rules for GUIDs, names and ports in all
generators.

A plan identifies switches by their labels (coordinates).  For every link, the plan states the *slot*, the position of
the link, at both switches.  CAs take the first ports of a switch.  Then each slot takes ``redundancy`` ports, in the
order of slots.  So equal directions have equal port numbers on all switches.  Dimension-order engines rely on this.  A
slot that a switch at the border does not use is an empty port.

GUIDs equal the GUIDs that ibsim assigns by default.  CAs start at 0x100000, and a CA with n ports takes n + 1 GUIDs.
Switches start at 0x200000.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routing.errors import OptionError
from routing.fabric import MAX_UNICAST_LID, Fabric, NodeKind
from routing.fabric_builder import MAX_SWITCH_PORTS, FabricBuilder
from routing.numerals import count_noun
from routing.topologies.options import TopologyOptions

FIRST_CA_GUID = 0x100000
FIRST_SWITCH_GUID = 0x200000

Label = tuple[int, ...]
Cable = tuple[int, int, int, int]
"""Link between two switches: switch, slot (position of the link) at this switch, other switch, slot at the other
switch.
"""


@dataclass(frozen=True)
class Plan:
    """Description of a topology, from which :func:`build_fabric` makes the fabric.

    Attributes
    ----------
    name
        Name of the fabric, if the options do not name it.
    labels
        Coordinates of each switch, from which names follow: (0, 1, 2) is ``sw0.1.2``, its first CA ``ca0.1.2.0``.
    cables
        Links between switches; the list has each link once.
    slots
        Number of slots (positions for links to other switches) of each switch.
    cas
        Number of CA ports of each switch, which are the ports with a CA.
    shared
        For CAs with several ports: the switches to which the ports of each CA are connected.  Each port of a CA takes
        the next free CA port of its switch.  Empty: each CA has one port.
    """

    name: str
    labels: Sequence[Label]
    cables: Iterable[Cable]
    slots: Sequence[int]
    cas: Sequence[int]
    shared: Sequence[Sequence[int]] = ()


def check_size(switches: int, cas: int, options: TopologyOptions, *, ca_ports: int = 1) -> None:
    """Check that a fabric that will be built does not need more LIDs than a subnet has.

    Raises
    ------
    OptionError
        More LIDs are needed than exist.
    """
    lids = switches + (cas * ca_ports + switches * options.aggregation) * (1 << options.lmc)
    if lids > MAX_UNICAST_LID:
        raise OptionError(
            f"{count_noun(switches, 'switch')} and {count_noun(cas, 'CA')} with LMC {options.lmc}"
            f" want over {MAX_UNICAST_LID} unicast LIDs",
            remedy="take a smaller fabric, fewer CAs or a smaller LMC",
        )


def build_fabric(plan: Plan, options: TopologyOptions) -> Fabric:
    """Build the fabric that a plan describes.

    Raises
    ------
    OptionError
        A switch would need more than 254 ports, or the fabric more LIDs than exist.

    Notes
    -----
    Cost: O(devices + cables).
    """
    check_size(len(plan.labels), len(plan.shared) or sum(plan.cas), options)
    ports = [cas + slots * options.redundancy for cas, slots in zip(plan.cas, plan.slots, strict=True)]
    ports = [number + options.aggregation for number in ports]
    if max(ports) > MAX_SWITCH_PORTS:
        raise OptionError(
            f"a switch would need {max(ports)} ports, and {MAX_SWITCH_PORTS} is the most that InfiniBand has",
            remedy="take fewer CAs, less redundancy or smaller arguments",
        )
    builder = FabricBuilder(options.name or plan.name)
    handles = [
        builder.add_device(NodeKind.SWITCH, FIRST_SWITCH_GUID + row, _name("sw", label), max(1, ports[row]))
        for row, label in enumerate(plan.labels)
    ]
    guid = (_add_shared_cas if plan.shared else _add_own_cas)(builder, plan, handles, options)
    if options.aggregation:
        add_aggregation_nodes(builder, handles, ports, guid, options)
    for a, slot_a, b, slot_b in plan.cables:
        port_a, port_b = 1 + plan.cas[a] + slot_a * options.redundancy, 1 + plan.cas[b] + slot_b * options.redundancy
        for more in range(options.redundancy):
            builder.connect(
                handles[a], port_a + more, handles[b], port_b + more, width=options.width, speed=options.rate
            )
    return builder.build(lmc=options.lmc)


def _name(prefix: str, label: Label) -> str:
    return prefix + ".".join(map(str, label))


def add_aggregation_nodes(
    builder: FabricBuilder, switches: Sequence[int], ports: Sequence[int], guid: int, options: TopologyOptions
) -> None:
    """Add an aggregation node (SHARP) to each switch, at the switch port that ``ports`` gives.

    ``guid`` is the GUID of the first aggregation node.
    """
    name = "Mellanox Technologies Aggregation Node"
    for number, (switch, port) in enumerate(zip(switches, ports, strict=True)):
        node = builder.add_device(NodeKind.CA, guid + 2 * number, name, 1)
        builder.connect(node, 1, switch, port, width=options.width, speed=options.rate)


def _add_own_cas(builder: FabricBuilder, plan: Plan, handles: Sequence[int], options: TopologyOptions) -> int:
    """Connect a new CA with one port to each switch port that is reserved for CAs, and return the next free GUID."""
    guid = FIRST_CA_GUID
    for row, label in enumerate(plan.labels):
        for port in range(plan.cas[row]):
            ca = builder.add_device(NodeKind.CA, guid, _name("ca", (*label, port)), 1)
            builder.connect(ca, 1, handles[row], port + 1, width=options.width, speed=options.rate)
            guid += 2
    return guid


def _add_shared_cas(builder: FabricBuilder, plan: Plan, handles: Sequence[int], options: TopologyOptions) -> int:
    """Add CAs that have several ports on different switches, and return the next free GUID."""
    guid, used = FIRST_CA_GUID, [0] * len(plan.labels)
    for number, rows in enumerate(plan.shared):
        ca = builder.add_device(NodeKind.CA, guid, _name("ca", (number,)), len(rows))
        for port, row in enumerate(rows):
            used[row] += 1
            builder.connect(ca, port + 1, handles[row], used[row], width=options.width, speed=options.rate)
        guid += len(rows) + 1
    return guid
