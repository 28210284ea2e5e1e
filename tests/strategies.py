"""Random fabrics for tests: functions that take a seed, and Hypothesis strategies that draw the arguments of these.

Each function depends on its arguments alone, so a failing seed can be copied into a test.  The strategy :func:`fabrics`
draws every option of :func:`random_fabric`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder

FIRST_GUID = {NodeKind.CA: 0x100000, NodeKind.SWITCH: 0x200000, NodeKind.ROUTER: 0x300000}
SPEEDS = (2.5, 5.0, 10.0)
"""Link speeds that every version of ibsim supports: SDR, DDR and QDR, in Gb/s of one physical lane."""
WIDTHS = (1, 4, 8, 12)


@dataclass
class Sketch:
    """A list of devices and cables, from which a fabric is built.

    Ports are numbered in the order of the cables.  A device gets as many ports as it needs.
    """

    name: str = "sketch"
    kinds: list[NodeKind] = field(default_factory=list)
    cables: list[tuple[int, int, int, float]] = field(default_factory=list)

    def add(self, kind: NodeKind) -> int:
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def cable(self, a: int, b: int, width: int = 4, speed: float = 2.5) -> None:
        self.cables.append((a, b, width, speed))

    def build(self, *, lmc: int = 0, spare: int = 0, guid_order: random.Random | None = None) -> Fabric:
        """Return the fabric.  With ``guid_order``, GUIDs are assigned in a random order instead of the order of the
        devices.
        """
        used, cabled = [0] * len(self.kinds), []
        for a, b, width, speed in self.cables:
            used[a] += 1
            port_a = used[a]
            used[b] += 1
            cabled.append((a, port_a, b, used[b], width, speed))
        builder, following, seen = FabricBuilder(self.name), dict(FIRST_GUID), dict.fromkeys(NodeKind, 0)
        order = list(range(len(self.kinds)))
        if guid_order is not None:
            guid_order.shuffle(order)
        handle: dict[int, int] = {}
        for device in order:
            kind = self.kinds[device]
            ports = max(1, used[device] + (spare if kind is NodeKind.SWITCH else 0))
            name = {NodeKind.SWITCH: "sw", NodeKind.CA: "ca", NodeKind.ROUTER: "rt"}[kind] + str(seen[kind])
            handle[device] = builder.add_device(kind, following[kind], name, ports)
            seen[kind] += 1
            following[kind] += 1 if kind is NodeKind.SWITCH else ports + 1
        for a, port_a, b, port_b, width, speed in cabled:
            builder.connect(handle[a], port_a, handle[b], port_b, width=width, speed=speed)
        return builder.build(lmc=lmc)


def tree_and_torus(lmc=0):
    """Return a fabric of a 7x3 torus (sw0 to sw20) and a tree of four leaves and two spines, joined by three cables."""
    sketch = Sketch("gateways")
    torus = [[sketch.add(NodeKind.SWITCH) for _ in range(3)] for _ in range(7)]
    for x in range(7):
        for y in range(3):
            sketch.cable(torus[x][y], torus[(x + 1) % 7][y])
            sketch.cable(torus[x][y], torus[x][(y + 1) % 3])
    leaves, spines = ([sketch.add(NodeKind.SWITCH) for _ in range(count)] for count in (4, 2))
    for leaf in leaves:
        for spine in spines:
            sketch.cable(leaf, spine)
    for a, b in ((torus[0][0], spines[0]), (torus[3][1], spines[1]), (torus[5][2], leaves[0])):
        sketch.cable(a, b)
    for row in [*sum(torus, []), *leaves, *leaves]:  # noqa: RUF017
        sketch.cable(sketch.add(NodeKind.CA), row)
    return sketch.build(lmc=lmc)


def random_fabric(
    seed: int,
    switches: int = 12,
    degree: int = 4,
    cas: int = 2,
    *,
    parts: int = 1,
    parallel: int = 1,
    uneven_cas: bool = False,
    mixed_speeds: bool = False,
    lmc: int = 0,
    dual_port_cas: int = 0,
    routers: int = 0,
    loop_cables: int = 0,
    back_to_back: int = 0,
    spare_ports: int = 0,
    shuffled_guids: bool = False,
) -> Fabric:
    """Return a random fabric whose switches are connected, or form ``parts`` connected components.

    Parameters
    ----------
    seed
        Random seed.  Equal seeds and options give equal fabrics.
    switches
        Number of switches.
    degree
        Mean number of neighbours of a switch.  A random tree comes first; random links follow until the mean is
        reached.
    cas
        Number of CAs on each switch.
    parts
        Number of connected components.
    parallel
        Largest number of cables between two linked switches.  The number is random, from 1 on.
    uneven_cas
        Whether a switch has 0 to ``2 * cas`` CAs instead of ``cas``.
    mixed_speeds
        Whether each cable has a random width and speed instead of 4x SDR.
    lmc
        LMC of all end ports.
    dual_port_cas, routers
        Number of additional CAs with two ports at random switches, and number of routers.
    loop_cables, back_to_back
        Number of cables from a switch to itself, and number of pairs of CAs that are cabled to each other.
    spare_ports
        Number of ports of each switch that stay empty.
    shuffled_guids
        Whether GUIDs are assigned in random order, so that rows differ from the order in which devices were added.
    """
    rng = random.Random(f"fabric {seed}")
    sketch = Sketch(f"random-{seed}")

    def link() -> tuple[int, float]:
        return (rng.choice(WIDTHS), rng.choice(SPEEDS)) if mixed_speeds else (4, 2.5)

    rows = [sketch.add(NodeKind.SWITCH) for _ in range(switches)]
    for row in rows:
        for _ in range(rng.randint(0, 2 * cas) if uneven_cas else cas):
            sketch.cable(sketch.add(NodeKind.CA), row, *link())
    for part in range(min(parts, switches)):
        for a, b in _connected_pairs(rng, rows[part::parts], degree):
            for _ in range(rng.randint(1, parallel)):
                sketch.cable(a, b, *link())
    for _ in range(dual_port_cas if rows else 0):
        ca = sketch.add(NodeKind.CA)
        for _ in range(2):
            sketch.cable(ca, rng.choice(rows), *link())
    for _ in range(routers if rows else 0):
        sketch.cable(sketch.add(NodeKind.ROUTER), rng.choice(rows), *link())
    for _ in range(loop_cables if rows else 0):
        row = rng.choice(rows)
        sketch.cable(row, row, *link())
    for _ in range(back_to_back):
        sketch.cable(sketch.add(NodeKind.CA), sketch.add(NodeKind.CA), *link())
    return sketch.build(lmc=lmc, spare=spare_ports, guid_order=rng if shuffled_guids else None)


def _connected_pairs(rng: random.Random, rows: list[int], degree: int) -> list[tuple[int, int]]:
    """Return random pairs of switches, about ``len(rows) * degree / 2``, that connect all switches in ``rows``."""
    pairs = {(rows[rng.randrange(i)], rows[i]) for i in range(1, len(rows))}
    others = [(a, b) for i, a in enumerate(rows) for b in rows[i + 1 :] if (a, b) not in pairs]
    rng.shuffle(others)
    missing = max(0, len(rows) * degree // 2 - len(pairs))
    return sorted(pairs) + others[:missing]


def pull_links(fabric: Fabric, seed: int, share: float = 0.3, *, keep_connected: bool = True) -> Fabric:
    """Return the fabric without a random ``share`` of its cables between switches.

    With ``keep_connected``, cables that keep a component connected stay, so that fewer cables may be removed.
    """
    rng = random.Random(f"pull {seed}")
    cables = np.unique(fabric.channels.link).tolist()
    wanted = int(len(cables) * share)
    rng.shuffle(cables)
    if not keep_connected:
        return fabric.without_links(cables[:wanted])
    ends = fabric.link_device.tolist()
    keep, group = set(), list(range(fabric.switches))

    def root(row: int) -> int:
        while group[row] != row:
            group[row] = group[group[row]]
            row = group[row]
        return row

    for cable in cables:
        a, b = (root(end) for end in ends[cable])
        if a != b:
            group[a] = b
            keep.add(cable)
    return fabric.without_links([cable for cable in cables if cable not in keep][:wanted])


def ring_fabric(switches: int, cas: int = 1, *, lmc: int = 0) -> Fabric:
    """Return a ring of switches, the smallest fabric in which shortest paths form a credit loop.

    A ring of two switches has two cables.
    """
    sketch = Sketch(f"ring-{switches}")
    rows = [sketch.add(NodeKind.SWITCH) for _ in range(switches)]
    for row in rows:
        for _ in range(cas):
            sketch.cable(sketch.add(NodeKind.CA), row)
    for row in rows if switches > 1 else []:
        sketch.cable(row, (row + 1) % switches)
    return sketch.build(lmc=lmc)


def pair_of_switches(links: Sequence[tuple[int, float]], cas: int) -> Fabric:
    """Return two switches with ``cas`` CAs each, and links of the given widths and speeds between the two."""
    sketch = Sketch("pair")
    a, b = sketch.add(NodeKind.SWITCH), sketch.add(NodeKind.SWITCH)
    for width, speed in links:
        sketch.cable(a, b, width, speed)
    for switch in (a, b):
        for _ in range(cas):
            sketch.cable(sketch.add(NodeKind.CA), switch)
    return sketch.build()


@st.composite
def fabrics(
    draw: st.DrawFn,
    *,
    min_switches: int = 1,
    max_switches: int = 14,
    max_degree: int = 5,
    max_cas: int = 3,
    connected: bool = True,
    max_lmc: int = 2,
    faults: bool = True,
    oddities: bool = True,
) -> Fabric:
    """Hypothesis strategy: a random fabric of :func:`random_fabric`, with up to 30 % of the cables between switches
    removed.

    Parameters
    ----------
    min_switches, max_switches, max_degree, max_cas, max_lmc
        Bounds of the options of :func:`random_fabric`.
    connected
        Whether all switches are connected.  Otherwise there are 1 to 3 components, which removed cables may split
        further.
    faults
        Whether cables are removed.
    oddities
        Whether there may be loop-back cables, CAs cabled to each other, dual-port CAs, routers, GUIDs out of order and
        empty ports.
    """
    odd = st.integers(0, 2) if oddities else st.just(0)
    fabric = random_fabric(
        draw(st.integers(0, 10_000), label="seed"),
        switches=draw(st.integers(min_switches, max_switches), label="switches"),
        degree=draw(st.integers(1, max_degree), label="degree"),
        cas=draw(st.integers(0, max_cas), label="cas"),
        parts=1 if connected else draw(st.integers(1, 3), label="parts"),
        parallel=draw(st.integers(1, 3), label="parallel"),
        uneven_cas=draw(st.booleans(), label="uneven CAs"),
        mixed_speeds=draw(st.booleans(), label="mixed speeds"),
        lmc=draw(st.integers(0, max_lmc), label="LMC"),
        dual_port_cas=draw(odd, label="dual-port CAs"),
        routers=draw(odd, label="routers"),
        loop_cables=draw(odd, label="loop cables"),
        back_to_back=draw(odd, label="back to back"),
        spare_ports=draw(odd, label="spare ports"),
        shuffled_guids=draw(st.booleans(), label="shuffled GUIDs") if oddities else False,
    )
    if not faults:
        return fabric
    share = draw(st.sampled_from([0.0, 0.1, 0.3]), label="pulled")
    return pull_links(fabric, draw(st.integers(0, 1000), label="fault seed"), share, keep_connected=connected)


def split_fabrics(**options: int | bool) -> st.SearchStrategy[Fabric]:
    """Hypothesis strategy: a fabric of two or more connected components."""
    return fabrics(connected=False, **{"min_switches": 2, **options}).filter(
        lambda fabric: len(np.unique(fabric.component)) > 1
    )
