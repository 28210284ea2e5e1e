"""Topology files of Slurm (``topology.conf`` and ``topology.yaml``) from a fabric.

Slurm requires a tree of switches.  A pod is a set of switches of a fat tree that stay connected without the levels
above them.  In Slurm's tree, the leaves are the lowest switches.  Each pod becomes one switch above its leaves or its
smaller pods.  Each connected part of the fabric has a separate root.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import igraph
import numpy as np
import numpy.typing as npt

from routing._kernels.closed_form import leaf_level
from routing.class_settings import PortClass
from routing.errors import FabricError, InputWarning
from routing.fabric import Fabric, NodeKind
from routing.names import labels_of
from routing.numerals import count_noun
from routing.trees.levels import tree_levels

_UNFIT = re.compile(r"[^A-Za-z0-9_.-]")
_UNNAMED = re.compile(r"MT\d+ .*Mellanox Technologies|localhost(?![\w-])")  # names of CAs until their host sets a name
_NUMBERED = re.compile(r"(.*?)(\d+)", re.DOTALL)


@dataclass(frozen=True)
class Switch:
    """Switch in Slurm's tree: a leaf with nodes, or a pod with switches below it.

    Attributes
    ----------
    name
        Name of the switch, with only such characters as Slurm accepts.
    nodes
        Names of the nodes of a leaf.
    switches
        Names of the switches of a pod.
    """

    name: str
    nodes: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plane:
    """One topology of Slurm: one or more trees of switches, in which no node occurs twice.

    A fabric is one plane, unless some node has ports in several connected parts of the fabric.  Then each connected
    part is a plane.

    Attributes
    ----------
    switches
        The switches of all trees.  Each switch comes after the switches below it.
    """

    switches: tuple[Switch, ...]


def slurm_planes(fabric: Fabric) -> list[Plane]:
    """Return the planes of a fabric.  Each plane becomes one topology of Slurm.

    There is one plane, unless a node has ports in several connected parts of the fabric.  Then each part is a plane.  A
    node's name is the first word of the name of its CA.  Only end ports of the class compute count.

    Raises
    ------
    FabricError
        No compute node is cabled to a switch.
    """
    leaf_of = _leaf_of_nodes(fabric)
    if not leaf_of:
        raise FabricError(
            "no compute node with a name is cabled to a switch",
            remedy="--class says which ports are of compute nodes, and --node-name-map gives them names",
        )
    parts: dict[int, dict[int, list[str]]] = {}
    for (name, part), switch in sorted(leaf_of.items(), key=lambda item: (item[0][1], item[1], _order(item[0][0]))):
        parts.setdefault(part, {}).setdefault(switch, []).append(name)
    several = len({name for name, _ in leaf_of}) < len(leaf_of)
    labels = _switch_names(fabric)
    level = tree_levels(fabric, fabric.senders_at.astype(np.float64))
    if level is not None:  # Leaves and the switches below leaves get level 0, so that pods begin at level 1.
        level = np.maximum(level - leaf_level(level, fabric.senders_at), 0)
    trees = [
        _tree(fabric, leaves, level, labels, prefix=f"part{number}-" if len(parts) > 1 else "")
        for number, leaves in enumerate(parts.values(), 1)
    ]
    return [Plane(tree) for tree in trees] if several else [Plane(tuple(switch for tree in trees for switch in tree))]


def _leaf_of_nodes(fabric: Fabric) -> dict[tuple[str, int], int]:
    """Return the row of the leaf of each compute node, by the name of the node and the connected part of the fabric.

    A node with ports at several switches of one part is at the switch with the lowest GUID, with a warning.  So nodes
    with ports at the same switches, as in a fabric of rails, are at the same switch.  CAs that still have the name of
    their firmware are left out, with a warning.
    """
    found: dict[tuple[str, int], set[int]] = {}
    unnamed: list[str] = []
    for row in np.lexsort((fabric.endport_port, fabric.endport_terminal)).tolist():
        switch, terminal = int(fabric.endport_switch[row]), int(fabric.endport_terminal[row])
        is_compute = fabric.endport_class[row] == PortClass.COMPUTE
        if switch < 0 or fabric.terminal_kind[terminal] != NodeKind.CA or not is_compute:
            continue
        if _UNNAMED.match(fabric.terminal_name[terminal]):
            unnamed.append(fabric.terminal_name[terminal])
            continue
        words = fabric.terminal_name[terminal].split()
        name = _UNFIT.sub("_", words[0] if words else fabric.labels[fabric.switches + terminal])
        found.setdefault((name, int(fabric.component[switch])), set()).add(switch)
    if unnamed:
        problem = f"{count_noun(len(unnamed), 'port')} of CAs without a node's name, such as {unnamed[0]!r}: left out"
        warnings.warn(f"{problem} (--node-name-map gives them names)", InputWarning, stacklevel=3)
    others = {name: sorted(switches)[:2] for (name, _), switches in found.items() if len(switches) > 1}
    if others:
        name, (leaf, switch) = next(iter(others.items()))
        more = f" (and {len(others) - 1} more)" if len(others) > 1 else ""
        where = f"{fabric.labels[leaf]} and {fabric.labels[switch]}{more}: the switch with the lowest GUID is used"
        warnings.warn(f"node {name} is at {where}", InputWarning, stacklevel=3)
    return {key: min(switches) for key, switches in found.items()}


def _order(name: str) -> list[tuple[str, int]]:
    """Return a key that sorts names by their numbers, such as ``node2`` before ``node10``."""
    return [(text, int(digits)) for text, digits in _NUMBERED.findall(name)]


def _switch_names(fabric: Fabric) -> tuple[str, ...]:
    """Return a name for each switch that is unique and that Slurm accepts."""
    plain = [_UNFIT.sub("_", name) for name in fabric.switch_name]
    return tuple(_UNFIT.sub("_", name) for name in labels_of(plain, fabric.switch_guid.tolist()))


def _tree(
    fabric: Fabric,
    leaves: dict[int, list[str]],
    level: npt.NDArray[np.int32] | None,
    labels: Sequence[str],
    *,
    prefix: str,
) -> tuple[Switch, ...]:
    """Return the tree of one connected part of the fabric: its leaves, its pods, and its root.

    ``leaves`` has the names of the nodes at each leaf (row), and ``labels`` the name of each switch.  Names of pods
    begin with ``prefix``, and differ from the names of all switches.
    """
    switches = [Switch(labels[row], nodes=tuple(names)) for row, names in leaves.items()]
    # `top` has a name for each leaf: at first the name of the leaf itself, later the name of the highest pod above the
    # leaf that has been made so far.
    top = {row: labels[row] for row in leaves}
    for height, pods in enumerate(_pods(fabric, level), 1):
        groups: dict[int, list[int]] = {}
        for row in leaves:
            groups.setdefault(int(pods[row]), []).append(row)
        place = 0
        for rows in groups.values():
            below = tuple(dict.fromkeys(top[row] for row in rows))
            if len(below) == 1:
                continue
            place += 1
            name = prefix + (f"pods{height}-{place}" if len(groups) > 1 else "root")
            while name in labels:
                name += "-"
            switches.append(Switch(name, switches=below))
            top.update(dict.fromkeys(rows, name))
    return tuple(switches)


def _pods(fabric: Fabric, level: npt.NDArray[np.int32] | None) -> Iterator[npt.NDArray[np.int64]]:
    """Yield one array int64[S] for each level of the tree, lowest level first: the number of each switch's pod.

    A pod of a level is a connected part of the fabric without the levels above.
    """
    src, dst = fabric.channels.src, fabric.channels.dst
    if level is None:
        level = np.zeros(fabric.switches, np.int32)
    for cut in range(1, int(level.max())):
        low = (level[src] <= cut) & (level[dst] <= cut)
        graph = igraph.Graph(n=fabric.switches, edges=np.column_stack([src[low], dst[low]]))
        yield np.asarray(graph.connected_components().membership, np.int64)
    yield fabric.component.astype(np.int64)


def hostlist(names: Sequence[str]) -> str:
    """Return names in Slurm's list notation, such as ``node[01-18,20],login1``.

    Names with equal text before the number at the end share one bracket.  A bracket with leading zeros has only numbers
    with equally many digits.
    """
    parts = [re.fullmatch(r"(.*?)(\d{1,18})", name, re.DOTALL) for name in names]
    padded = {(part[1], len(part[2])) for part in parts if part is not None and part[2][0] == "0" and part[2] != "0"}
    groups: dict[tuple[str, int], list[int]] = {}
    for part in filter(None, parts):
        width = len(part[2]) if (part[1], len(part[2])) in padded else 0
        groups.setdefault((part[1], width), []).append(int(part[2]))
    plain = [name for name, part in zip(names, parts, strict=True) if part is None]
    written = []
    for (prefix, width), numbers in groups.items():
        runs = list(_runs(sorted(set(numbers))))
        texts = [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in runs]
        single = len(texts) == 1 and runs[0][0] == runs[0][1]
        written.append(f"{prefix}{texts[0]}" if single else f"{prefix}[{','.join(texts)}]")
    return ",".join([*written, *plain])


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last number of each run of consecutive numbers."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last


def conf_text(plane: Plane) -> str:
    """Return a plane as the text of ``topology.conf``."""
    lines = (
        f"SwitchName={switch.name} "
        + (f"Nodes={hostlist(switch.nodes)}" if switch.nodes else f"Switches={hostlist(switch.switches)}")
        for switch in plane.switches
    )
    return "".join(f"{line}\n" for line in lines)


def yaml_text(planes: Sequence[Plane]) -> str:
    """Return all planes as the text of ``topology.yaml`` (Slurm 25.05), with the first plane as the default."""
    lines = ["---"]
    for number, plane in enumerate(planes, 1):
        lines += [f"- topology: {'fabric' if len(planes) == 1 else f'plane{number}'}"]
        lines += [f"  cluster_default: {'true' if number == 1 else 'false'}", "  tree:", "    switches:"]
        for switch in plane.switches:
            key, names = ("nodes", switch.nodes) if switch.nodes else ("children", switch.switches)
            lines += [f'      - switch: "{switch.name}"', f'        {key}: "{hostlist(names)}"']
    return "\n".join(lines) + "\n"
