"""A slow reference for transitions after a fault.  It follows every packet, and takes both entries at each hop.

It matches switches and ports by GUID, independently of :mod:`routing.reroute.installed`.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import pairwise

import networkx as nx
import numpy as np
from slow_proof import shortest_path_tables
from strategies import random_fabric

from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.deadlock.transition import prove_transition
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder
from routing.reroute import Published, Stability, reroute
from routing.reroute.installed import Installed, installed
from routing.tables import Provenance, Routing
from routing.topologies import generate


@dataclass(frozen=True)
class Owner:
    """Owner of a LID.

    ``guid`` is the GUID of the port, and ``at`` the row of the switch that delivers the LID (None: no switch does).
    """

    guid: int
    at: int | None
    is_switch: bool


def owners(fabric: Fabric) -> dict[int, Owner]:
    found = {}
    for row in range(fabric.switches):
        found[int(fabric.switch_lid[row])] = Owner(int(fabric.switch_guid[row]), row, is_switch=True)
    for e in range(fabric.endports):
        at = int(fabric.endport_switch[e])
        base = int(fabric.endport_lid[e])
        for lid in range(base, base + (1 << int(fabric.endport_lmc[e]))):
            found[lid] = Owner(int(fabric.endport_guid[e]), at if at >= 0 else None, is_switch=False)
    return {lid: owner for lid, owner in found.items() if lid and owner.at is not None}


@dataclass(frozen=True, eq=False)
class Side:
    """Tables with the fabric for which they were made: one side of a transition."""

    fabric: Fabric
    routing: Routing

    def __post_init__(self) -> None:
        rows = {guid: row for row, guid in enumerate(self.fabric.switch_guid.tolist())}
        lids_of: dict[int, list[int]] = {}
        for lid, owner in sorted(owners(self.fabric).items()):
            lids_of.setdefault(owner.guid, []).append(lid)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "owners", owners(self.fabric))
        object.__setattr__(self, "lids_of", lids_of)

    def entry(self, switch: int, lid: int) -> int:
        """Return the port to which the switch with GUID ``switch`` sends packets for a LID; 255 if there is
        no entry.
        """
        lft = self.routing.lft
        row = self.rows.get(switch)
        return 255 if row is None or lid >= lft.shape[1] else int(lft[row, lid])

    def sls(self, sender: int, switch: int, lid: int, source: int | None = None) -> set[int]:
        """Return the SLs on which a port sends to a LID.

        Parameters
        ----------
        sender, switch
            GUID of the sending port, and GUID of the switch to which the port is cabled in the new fabric.
        lid
            The destination.
        source
            Offset of the sender's LID; None: any LID of the sender.
        """
        sl = self.routing.sl
        if lid not in self.owners:
            return set()
        if sl.ndim == 1:
            return {int(sl[lid])}
        mine = self.lids_of.get(sender, [])
        if len(sl) == self.fabric.switches:
            row = self.owners[mine[0]].at if mine else self.rows.get(switch)
            return set() if row is None else {int(sl[row, lid])}
        return {int(sl[own, lid]) for own in (mine if source is None else mine[source : source + 1])}

    def vls(self, switch: int, in_port: int, out: int, sl: int) -> set[int]:
        table = self.routing.sl2vl
        if table.ndim == 1:
            return {int(table[sl])} - {15}
        row = self.rows.get(switch)
        width = table.shape[1]
        if row is None or max(in_port, out) >= width:
            return set()
        return {int(table[row, in_port, out, sl])} - {15}


class Oracle:
    """The traffic of a transition from old to new tables, on the new fabric."""

    def __init__(self, old: Side, new: Side, *, replies: bool) -> None:
        self.old, self.new, self.fabric = old, new, new.fabric
        self.guids = [int(guid) for guid in self.fabric.switch_guid]
        self.plugs = {}
        parts = nx.Graph()
        parts.add_nodes_from(range(self.fabric.switches))
        for (a, b), (p, q) in zip(self.fabric.link_device.tolist(), self.fabric.link_port.tolist(), strict=True):
            if max(a, b) < self.fabric.switches and a != b:
                self.plugs[a, p], self.plugs[b, q] = (b, q), (a, p)
                parts.add_edge(a, b)
        self.part = {s: k for k, members in enumerate(nx.connected_components(parts)) for s in members}
        self.lids = sorted(set(old.owners) | set(new.owners))
        self.starts = set(self._starts(replies=replies))

    def width(self) -> int:
        """Return the number of LFT columns up to the last LID that has an entry or an owner."""
        used = [len(self.fabric.lids) - 1]
        for guid in self.guids:
            used += [lid for lid in range(self.old.routing.lft.shape[1]) if self.old.entry(guid, lid) != 255]
        return 1 + max(used)

    def held(self, side: Side) -> np.ndarray:
        """Return uint8[S, L], the LFTs of one side of the transition in the rows of the new fabric."""
        return np.array([[side.entry(guid, lid) for lid in range(self.width())] for guid in self.guids], np.uint8)

    def senders(self):
        """Yield the GUID, the switch row and the in-port of each sender in the new fabric, and whether it is
        a switch.
        """
        for row, guid in enumerate(self.guids):
            yield guid, row, 0, True
        for e in range(self.fabric.endports):
            if self.fabric.endport_switch[e] >= 0:
                at, port = int(self.fabric.endport_switch[e]), int(self.fabric.endport_switch_port[e])
                yield int(self.fabric.endport_guid[e]), at, port, False

    def is_switch(self, lid: int) -> bool:
        return (self.new.owners.get(lid) or self.old.owners[lid]).is_switch

    def near(self, row: int, lid: int) -> bool:
        """Return whether a switch is in the connected component of the port that owns a LID in the new fabric."""
        owner = self.new.owners.get(lid)
        return owner is not None and self.part[owner.at] == self.part[row]

    def _starts(self, *, replies: bool):
        """Yield (switch row, in-port, SL, LID) for all packets that are sent, except packets between two switches."""
        for sender, row, port, is_switch in self.senders():
            for lid in self.lids:
                if is_switch and self.is_switch(lid):
                    continue
                for sl in self.old.sls(sender, self.guids[row], lid):
                    yield row, port, sl, lid
                for sl in self.new.sls(sender, self.guids[row], lid) if self.near(row, lid) else ():
                    yield row, port, sl, lid
                for own in self.new.lids_of.get(sender, ()) if replies else ():
                    for sl in self.reply_sls(row, lid, own):
                        yield row, port, sl, lid

    def reply_sls(self, row: int, lid: int, own: int) -> set[int]:
        """Return the SLs of the replies that a port sends to the owner or former owner of ``lid``.

        A reply has the SL of its request, which went to the LID ``own`` of the port.
        """
        side = self.new if lid in self.new.owners else self.old
        asker = side.owners[lid]
        number, at = side.lids_of[asker.guid].index(lid), int(side.fabric.switch_guid[asker.at])
        found = self.old.sls(asker.guid, at, own, number)
        return found | self.new.sls(asker.guid, at, own, number) if self.near(row, lid) else found

    def steps(self, lft: tuple[np.ndarray, np.ndarray], row: int, in_port: int, sl: int, lid: int):
        """Yield (switch row, out-port, VL) of all channels to which a switch may send a packet, by either of
        two LFTs.
        """
        for out in {int(tables[row, lid]) for tables in lft}:
            if (row, out) in self.plugs:
                for side in (self.old, self.new):
                    for vl in side.vls(self.guids[row], in_port, out, sl):
                        yield row, out, vl

    def graphs(self, states: list[np.ndarray], first_draining_round: int | None = None) -> list[nx.DiGraph]:
        """Return the dependency graphs of an update that takes the tables through some states.

        Packets leave the fabric before some rounds, and each graph covers the rounds between two such moments.  In
        these rounds a packet may still be on any channel that it could reach earlier.

        Parameters
        ----------
        states
            The LFTs before the first round and after each round.
        first_draining_round
            First round that waits until packets have left.  0: no round does; None: every round does.
        """
        rounds = list(pairwise(states))
        waited = [
            n if first_draining_round is None else max(0, n + 2 - first_draining_round) if first_draining_round else 0
            for n in range(len(rounds))
        ]
        graphs = [nx.DiGraph() for _ in range(1 + max(waited, default=0))]
        for row, port, sl, lid in self.starts:
            got: set[tuple[int, int, int]] = set()
            for n, pair in enumerate(rounds):
                got = set() if n and waited[n] != waited[n - 1] else got
                left = list({*got, *self.steps(pair, row, port, sl, lid)})
                got |= set(left)
                while left:
                    here = left.pop()
                    at, entry = self.plugs[here[:2]]
                    for step in self.steps(pair, at, entry, sl, lid):
                        graphs[waited[n]].add_edge(here, step)
                        if step not in got:
                            got.add(step)
                            left.append(step)
        return graphs

    def free(self, *states: np.ndarray, first_draining_round: int | None = None) -> bool:
        """Return whether no dependency graph of an update has a cycle.  For the arguments see :meth:`graphs`."""
        return all(nx.is_directed_acyclic_graph(graph) for graph in self.graphs(list(states), first_draining_round))


def rebuilt(fabric: Fabric, *, without: set[int] = frozenset(), moved: dict[int, int] | None = None) -> Fabric:
    """Return the fabric without some devices (GUIDs).  All LIDs stay.

    ``moved`` maps the GUID of a CA to the GUID of a switch: the CA is cabled to a free port of this switch instead.
    """
    builder, handle, free = FabricBuilder(fabric.name), {}, {}
    device_guid = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    ports = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]
    kinds = [NodeKind.SWITCH] * fabric.switches + [NodeKind(int(kind)) for kind in fabric.terminal_kind]
    used = {(int(d), int(p)) for pair, at in zip(fabric.link_device, fabric.link_port, strict=True)
            for d, p in zip(pair, at, strict=True)}  # fmt: skip
    for device, guid in enumerate(device_guid):
        if guid not in without:
            handle[device] = builder.add_device(kinds[device], guid, fabric.device_name(device), ports[device])
            free[guid] = [port for port in range(1, ports[device] + 1) if (device, port) not in used]
    for row, lid in enumerate(fabric.switch_lid.tolist()):
        if row in handle:
            builder.set_port(handle[row], 0, lid=lid)
    for e in range(fabric.endports):
        device = fabric.switches + int(fabric.endport_terminal[e])
        if device in handle:
            builder.set_port(
                handle[device],
                int(fabric.endport_port[e]),
                guid=int(fabric.endport_guid[e]),
                lid=int(fabric.endport_lid[e]),
                lmc=int(fabric.endport_lmc[e]),
            )
    rows = {guid: device for device, guid in enumerate(device_guid)}
    for (a, b), (p, q) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        if a not in handle or b not in handle:
            continue
        near, far = min((a, p), (b, q)), max((a, p), (b, q))
        target = (moved or {}).get(device_guid[far[0]])
        if target is not None and free[target]:
            near = rows[target], free[target].pop(0)
        builder.connect(handle[near[0]], near[1], handle[far[0]], far[1])
    return builder.build(assign_lids=False)


ENGINE_NAMES = ("updn", "nue", "dfsssp", "lash", "sssp")


def base_fabric(rng: random.Random) -> Fabric:
    """Return a small random fabric, in most cases with a cycle of links."""
    kind = rng.choice(["random", "random", "torus", "ring", "mesh"])
    if kind == "random":
        return random_fabric(
            rng.randrange(10_000),
            switches=rng.randint(3, 8),
            degree=3,
            cas=1,
            uneven_cas=rng.random() < 0.5,
            parallel=rng.randint(1, 2),
            dual_port_cas=rng.randint(0, 2),
            lmc=rng.choice([0, 0, 0, 1]),
            spare_ports=2,
            loop_cables=rng.choice([0, 0, 1]),
        )
    if kind == "mesh":
        return generate("mesh", [rng.choice(["3x3", "2x4"])], cas=1)
    return generate("torus", [rng.choice(["3x3", "4x3"] if kind == "torus" else ["5", "6", "4"])], cas=1)


def fault(rng: random.Random, fabric: Fabric) -> Fabric:
    """Return the fabric after random faults: lost CAs and switches, pulled cables, a split, or a CA at
    another switch.
    """
    dead: set[int] = set()
    cas, switches = fabric.terminal_guid.tolist(), fabric.switch_guid.tolist()
    for _ in range(rng.choice([0, 1, 1, 2])):
        dead.add(rng.choice(cas)) if cas else None
    if rng.random() < 0.25 and len(switches) > 3:
        dead.add(rng.choice(switches))
    moved = {}
    if rng.random() < 0.15 and cas:
        moved[rng.choice(cas)] = rng.choice([guid for guid in switches if guid not in dead])
    now = rebuilt(fabric, without=dead, moved=moved)
    links = sorted(set(now.channels.link.tolist()))
    pulled = set(rng.sample(links, min(len(links), rng.choice([0, 1, 1, 2]))))
    if rng.random() < 0.4 and now.switches > 2:
        side = set(rng.sample(range(now.switches), rng.randint(1, now.switches - 1)))
        pulled |= {k for k in links if len(side & set(now.link_device[k].tolist())) == 1}
    return now.without_links(pulled)


def random_tables(rng: random.Random, fabric: Fabric, shape: str, vls: int, *, by_port: bool) -> Routing:
    """Return random shortest paths, mostly along a tree, with random SLs and SL2VL tables."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    lft = shortest_path_tables(fabric, numbers, tree=rng.random() < 0.7)
    switches, lids = lft.shape
    sl = numbers.integers(0, 4, {"lid": (lids,), "switch": (switches, lids), "pair": (lids, lids)}[shape])
    ports = 1 + int(fabric.switch_ports.max())
    sl2vl = numbers.integers(0, vls, (switches, ports, ports, 16) if by_port else 16)
    return Routing(lft, sl.astype(np.uint8), sl2vl.astype(np.uint8), vls, vls, Provenance("random"))


@dataclass(frozen=True, eq=False)
class Case:
    """A transition after a fault, with the seed and a description of its kind."""

    seed: int
    kind: str
    old: Side
    new: Side


def case_of(seed: int) -> Case:
    """Return the transition that belongs to a seed.  The result is the same on every machine."""
    rng = random.Random(seed)
    fabric = base_fabric(rng)
    now = fault(rng, fabric)
    if rng.random() < 0.5:
        shape, vls, by_port = rng.choice(["lid", "switch", "pair"]), rng.choice([1, 1, 2, 3]), rng.random() < 0.15
        old = random_tables(rng, fabric, shape, vls, by_port=by_port)
        new = random_tables(rng, now, shape, vls, by_port=by_port)
        if rng.random() < 0.7 and not by_port:
            new = replace(new, sl2vl=old.sl2vl)
        return Case(seed, f"random, SLs by {shape}", Side(fabric, old), Side(now, new))
    name = rng.choice(ENGINE_NAMES)
    options = EngineOptions(seed=seed, effort=rng.choice([0, 0.1]), vls=1 if name in {"updn", "sssp"} else 8)
    engine = ENGINES[name]
    old = engine.route(fabric, options)
    stability = rng.choice(list(Stability))
    if rng.random() < 0.15:
        other = rng.choice(ENGINE_NAMES)
        new = ENGINES[other].route(now, replace(options, vls=1 if other in {"updn", "sssp"} else 8))
        return Case(seed, f"{name}, then {other}", Side(fabric, old), Side(now, new))
    before = Published(fabric, old, prove(fabric, old))
    new = reroute(engine, options, before, now, stability=stability).routing
    return Case(seed, f"{name}, {stability.value}", Side(fabric, old), Side(now, new))


def check(case: Case, *, replies: bool = False) -> str:
    """Compare the verdict, the plan and the update schedule of a transition with the reference, and return them as
    text.
    """
    oracle = Oracle(case.old, case.new, replies=replies)
    sides = installed(case.old.routing, case.old.fabric, case.new.routing, case.new.fabric)
    before, after = oracle.held(case.old), oracle.held(case.new)
    assert np.array_equal(sides.old.lft, before), "the old tables are not what the switches hold"
    assert np.array_equal(sides.new.lft, after)
    require = "reversible" if replies else "forward"
    found = prove_transition(sides.fabric, sides.old, sides.new, lost=sides.lost, require=require, rounds=30, threads=1)
    free = oracle.free(before, after)
    assert (found.verdict == "any-order") == free, f"{found.verdict}, mixtures are {'' if free else 'not '}free"
    assert found.entries == np.count_nonzero(before != after)
    if found.plan is not None:
        states = [before, *found.plan.states(before, after)]
        assert np.array_equal(states[-1], after), "the plan does not end at the new tables"
        assert oracle.free(*states, first_draining_round=found.plan.first_draining_round), "a round has a credit loop"
    rounds = [_check_rounds(case, oracle, sides, known=known, replies=replies, free=free) for known in (False, True)]
    return " ".join([found.verdict, *rounds])


def _check_rounds(case: Case, oracle: Oracle, sides: Installed, *, known: bool, replies: bool, free: bool) -> str:
    cdg = None
    if known:
        proofs = [prove(side.fabric, side.routing, threads=1) for side in (case.old, case.new)]
        if any(proof.cdg is None or (replies and proof.strength != "reversible") for proof in proofs):
            return "-"
        if sides.rewired is not None:
            return "-"
        cdg = proofs[0].cdg.onto(case.new.fabric) | proofs[1].cdg
    schedule = find_schedule(sides.fabric, sides.old, sides.new, known=cdg, lost=sides.lost, replies=replies, threads=1)
    if schedule is None:
        return "none"
    before, after = sides.old.lft, sides.new.lft
    states = [before, *schedule.states(before, after)]
    assert np.array_equal(states[-1], after), "the rounds do not end at the new tables"
    assert oracle.free(*states, first_draining_round=schedule.first_draining_round), (
        "a round of a sweep has a credit loop"
    )
    assert len(schedule) > 1 or free
    gone = np.flatnonzero(sides.fabric.lids.switch < 0)
    assert (schedule.round[np.isin(schedule.lid, gone)] == 1).all()
    return str(len(schedule))
