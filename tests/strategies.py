"""Random fabrics for tests: plain helpers that take a seed, and hypothesis strategies on top of them.

Everything here is a pure function of its arguments, so a failing seed can be pasted into a test.  The options of
:func:`random_fabric` are the same as those of the strategy :func:`fabrics`, which draws them all.
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
"""What every ibsim knows: SDR, DDR, QDR (Gb/s of one lane)."""
WIDTHS = (1, 4, 8, 12)


@dataclass
class Sketch:
    """Devices and cables on paper; ports are given out in the order of the cables, and counted at the end."""

    name: str = "sketch"
    kinds: list[NodeKind] = field(default_factory=list)
    cables: list[tuple[int, int, int, float]] = field(default_factory=list)

    def add(self, kind: NodeKind) -> int:
        self.kinds.append(kind)
        return len(self.kinds) - 1

    def cable(self, a: int, b: int, width: int = 4, speed: float = 2.5) -> None:
        self.cables.append((a, b, width, speed))

    def build(self, *, lmc: int = 0, spare: int = 0, guid_order: random.Random | None = None) -> Fabric:
        """The fabric; with ``guid_order`` GUIDs are handed out in a random order instead of that of the devices."""
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
    """A 7x3 torus (sw0 to sw20), and a tree of four leaves and two spines; three cables between them."""
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
    """A random fabric whose switches are connected (in each of its ``parts``).

    Parameters
    ----------
    seed
        Same seed and options, same fabric.
    switches, degree, cas
        Number of switches; about how many other switches each is cabled to (a random tree first, then random links
        until ``switches * degree / 2`` pairs are cabled or none is left); CAs on each switch.
    parts
        Into how many unconnected parts the switches are split (1: connected).
    parallel
        Each cabled pair of switches gets 1 to ``parallel`` cables.
    uneven_cas
        0 to ``2 * cas`` CAs on each switch instead of ``cas``.
    mixed_speeds
        Every cable has a random width and speed instead of 4x SDR.
    lmc
        LMC of all end ports.
    dual_port_cas, routers
        So many more CAs with two ports, each at a random switch (now and then the same one, or one of another part);
        so many routers.
    loop_cables, back_to_back
        So many cables from a switch to itself; so many pairs of CAs cabled to each other.
    spare_ports
        Ports of each switch that stay empty.
    shuffled_guids
        Hand GUIDs out in random order, so that rows are not in the order in which the fabric was built.
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
    """Random pairs that hold ``rows`` together, about ``len(rows) * degree / 2`` of them."""
    pairs = {(rows[rng.randrange(i)], rows[i]) for i in range(1, len(rows))}
    others = [(a, b) for i, a in enumerate(rows) for b in rows[i + 1 :] if (a, b) not in pairs]
    rng.shuffle(others)
    missing = max(0, len(rows) * degree // 2 - len(pairs))
    return sorted(pairs) + others[:missing]


def pull_links(fabric: Fabric, seed: int, share: float = 0.3, *, keep_connected: bool = True) -> Fabric:
    """The fabric with ``share`` of its cables between switches pulled at random.

    With ``keep_connected`` a cable whose loss would split a part stays; so fewer may go.
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
    """A ring (of two switches: two cables): the smallest fabric on which shortest paths close a credit loop."""
    sketch = Sketch(f"ring-{switches}")
    rows = [sketch.add(NodeKind.SWITCH) for _ in range(switches)]
    for row in rows:
        for _ in range(cas):
            sketch.cable(sketch.add(NodeKind.CA), row)
    for row in rows if switches > 1 else []:
        sketch.cable(row, (row + 1) % switches)
    return sketch.build(lmc=lmc)


def pair_of_switches(links: Sequence[tuple[int, float]], cas: int) -> Fabric:
    """Two switches with so many CAs each, and links of these widths and speeds between them."""
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
    """Strategy: all that :func:`random_fabric` can do, with up to 30 % of the cables between switches pulled.

    Parameters
    ----------
    connected
        All switches are connected.  Otherwise 1 to 3 parts, and pulled cables may split them further.
    faults
        Pull cables at all.
    oddities
        Also loop-back cables, CAs cabled back to back, dual-port CAs, routers, GUIDs out of order, empty ports.
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
    """Strategy: fabrics of two or more unconnected parts."""
    return fabrics(connected=False, **{"min_switches": 2, **options}).filter(
        lambda fabric: len(np.unique(fabric.component)) > 1
    )
