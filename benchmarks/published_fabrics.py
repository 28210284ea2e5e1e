"""Generate the seven fabrics of the Nue paper's throughput experiment (Domke, Hoefler, Matsuoka: HPDC 2016).

The numbers of switches, links and terminals come from the paper.  Two fabrics are reconstructions:

- The random fabric: the random seed of the paper is unknown.
- Tsubame2.5: only the numbers of its parts are public (243 switches, 1407 terminals, 3384 links between switches).
  There are six director switches of 324 ports, each with 18 leaf chips and 9 spine chips, and edge switches of 36
  ports.  1944 links are inside the directors.  This module assigns the remaining 1440 links to 81 edge switches: 18
  uplinks for each of 78 switches, and 12 uplinks for each of the remaining three switches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from routing.fabric import Fabric
from routing.topologies import TopologyOptions, cascade, dragonfly, kary_ntree, kautz, random_regular, torus
from routing.topologies.plan import Cable, Label, Plan, build_fabric

QDR = "QDR"
DIRECTORS, LEAVES, SPINES, CHIP = 6, 18, 9, 36
GROUP, GLOBAL_LINKS = 12, 5
EDGES, FULL_EDGES, TERMINALS = 81, 78, 1407


def _tsubame() -> Fabric:
    chips = LEAVES + SPINES
    labels: list[Label] = [(0, director, chip) for director in range(DIRECTORS) for chip in range(chips)]
    first_edge = len(labels)
    labels += [(1, edge) for edge in range(EDGES)]
    taken = [0] * len(labels)

    def cable(a: int, b: int) -> Cable:
        slots = (taken[a], taken[b])
        taken[a] += 1
        taken[b] += 1
        return a, slots[0], b, slots[1]

    cables = [cable(a, b) for a, b in [*_inside(chips), *_uplinks(chips, first_edge)]]
    cas = [0] * first_edge + [TERMINALS // EDGES + (edge < TERMINALS % EDGES) for edge in range(EDGES)]
    return build_fabric(Plan("tsubame2.5", labels, cables, slots=taken, cas=cas), TopologyOptions(speed=QDR))


def _inside(chips: int) -> Iterator[tuple[int, int]]:
    """Yield the links inside the director switches.

    Each leaf chip has two links to each spine chip of the same director.

    ``chips`` is the number of chips in a director.
    """
    for director in range(DIRECTORS):
        for leaf in range(LEAVES):
            for spine in range(SPINES):
                yield from 2 * [(director * chips + leaf, director * chips + LEAVES + spine)]


def _uplinks(chips: int, first_edge: int) -> Iterator[tuple[int, int]]:
    """Yield the links from edge switches to director switches.

    Consecutive links of an edge switch lead to different directors.  Consecutive links into a director lead to
    different leaf chips.  ``chips`` is the number of chips in a director, and ``first_edge`` the number of the first
    edge switch.
    """
    dealt = [0] * DIRECTORS
    for edge in range(EDGES):
        for uplink in range(CHIP // 2 if edge < FULL_EDGES else CHIP // 3):
            director = uplink % DIRECTORS
            yield first_edge + edge, director * chips + dealt[director] % LEAVES
            dealt[director] += 1


def _dragonfly() -> Fabric:
    """Make the dragonfly of the Nue paper, which has five links between any two groups.

    ibnue's generator of dragonflies makes more links between groups, so the surplus links are removed.
    """
    fabric = dragonfly(GROUP, 6, 6, 15, TopologyOptions(speed=QDR))
    seen: Counter[tuple[int, int]] = Counter()
    spare = []
    for link, (a, b) in enumerate(fabric.link_device.tolist()):
        pair = (min(a, b) // GROUP, max(a, b) // GROUP)
        if max(a, b) < fabric.switches and pair[0] != pair[1]:
            seen[pair] += 1
            if seen[pair] > GLOBAL_LINKS:
                spare.append(link)
    return fabric.without_links(spare)


PUBLISHED: Mapping[str, Callable[[], Fabric]] = MappingProxyType(
    {
        "random": lambda: random_regular(125, 16, TopologyOptions(cas=8, speed=QDR, seed=1)),
        "torus-6x5x5": lambda: torus((6, 5, 5), TopologyOptions(cas=7, redundancy=4, speed=QDR)),
        "10-ary-3-tree": lambda: kary_ntree(10, 3, TopologyOptions(cas=11, speed=QDR)),
        "kautz": lambda: kautz(5, 3, TopologyOptions(cas=7, redundancy=2, speed=QDR)),
        "dragonfly": _dragonfly,
        "cascade": lambda: cascade(2, options=TopologyOptions(speed=QDR)),
        "tsubame2.5": _tsubame,
    }
)
"""Functions that generate the fabrics, by name of the fabric."""
