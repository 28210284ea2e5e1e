"""Tree topologies: extended generalised fat trees (XGFT), and the k-ary n-tree as a special case."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import Cable, Plan, build_fabric, check_size


def xgft(children: Sequence[int], parents: Sequence[int], options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make an extended generalised fat tree XGFT(h; m1..mh; w1..wh) (Oehring et al., IPPS 1995).

    CAs are level 0, switches are levels 1 to h; a node is a CA or a switch.  A node at level i has m_i children, and a
    node at level i - 1 has w_i parents.  Level i has w_1 * ... * w_i * m_(i+1) * ... * m_h switches, named
    ``sw<level>.<number>``.  With w1 over 1, each CA has w1 ports, and the switches form w1 separate networks, one for
    each port.  For example, the three-level tree of 40-port switches is ``xgft([20, 20, 40], [1, 20, 20])``.

    Parameters
    ----------
    children
        Numbers of children m1 to mh; m1 is the number of CAs on a leaf switch.
    parents
        Numbers of parents w1 to wh; w1 is the number of ports of a CA, each on another leaf switch.
    options
        Options: ``cas`` replaces m1; redundancy (between switches), link width and speed, LMC.

    Raises
    ------
    OptionError
        The lists have different lengths or numbers under 1, a switch has over 254 ports, or the fabric needs more LIDs
        than a subnet has.
    """
    if not children or len(children) != len(parents) or min(*children[1:], *parents, 1) < 1 or children[0] < 0:
        raise OptionError(
            f"children {_list(children)} and parents {_list(parents)} make no tree",
            remedy="give two lists of the same length, one number of at least 1 per level, such as 20x20x40 1x20x20",
        )
    name = f"xgft-{_list(children)}-{_list(parents)}"
    return _xgft(name, (options.cas_or(children[0]), *children[1:]), parents, options)


def kary_ntree(k: int, n: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a k-ary n-tree (Petrini and Vanneschi, IPPS 1997): n levels of k^(n-1) switches.

    Each switch has k children and k parents (switches at the top have no parents).  There are (n - 1) k^n links between
    switches.  The tree is XGFT(n; k..k; 1,k..k).

    Parameters
    ----------
    k, n
        Number of children of each switch, and number of levels, at least 1.
    options
        Options: CAs per leaf switch (default k), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        k or n is under 1, or the fabric needs more LIDs than a subnet has.
    """
    if min(k, n) < 1 or n > 15:
        raise OptionError(f"a {k}-ary {n}-tree", remedy="take k of at least 1 and n from 1 to 15")
    return _xgft(f"{k}-ary-{n}-tree", (options.cas_or(k), *(k,) * (n - 1)), (1, *(k,) * (n - 1)), options)


def _list(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers)) or "(none)"


def _xgft(name: str, children: Sequence[int], parents: Sequence[int], options: TopologyOptions) -> Fabric:
    height = len(children)
    size = [math.prod(parents[:level]) * math.prod(children[level:]) for level in range(height + 1)]
    check_size(sum(size[1:]), size[0], options, ca_ports=parents[0])
    first = [sum(size[1:level]) for level in range(height + 2)]
    labels = [(level, number) for level in range(1, height + 1) for number in range(size[level])]
    slots = [0 if level == 1 else children[level - 1] for level, _ in labels]
    slots = [down + (parents[level] if level < height else 0) for down, (level, _) in zip(slots, labels, strict=True)]
    cas = [children[0] if level == 1 else 0 for level, _ in labels]

    def cables() -> Iterator[Cable]:
        for level in range(1, height):
            below = children[level - 1] if level > 1 else 0
            for lower, up, upper, down in _pairs(level, children, parents):
                yield first[level] + lower, below + up, first[level + 1] + upper, down

    shared: list[list[int]] = []
    if parents[0] > 1:
        shared = [[] for _ in range(size[0])]
        for ca, _, leaf, _ in _pairs(0, children, parents):
            shared[ca].append(leaf)
    return build_fabric(Plan(name, labels, cables(), slots, cas, shared), options)


def _pairs(level: int, children: Sequence[int], parents: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the links between ``level`` and the level above it.

    Each link has four numbers.  The first two are the lower node, and the position of the upper node among its parents.
    The last two are the upper node, and the position of the lower node among its children.

    Nodes of a level that have the same nodes below them form a group.  All groups of a level have the same size.  The
    nodes of a level are numbered group by group.
    """
    copies, above = math.prod(parents[:level]), math.prod(children[level + 1 :])
    for subtree in range(above):
        for child in range(children[level]):
            for copy in range(copies):
                lower = (subtree * children[level] + child) * copies + copy
                for parent in range(parents[level]):
                    yield lower, parent, (subtree * parents[level] + parent) * copies + copy, child
