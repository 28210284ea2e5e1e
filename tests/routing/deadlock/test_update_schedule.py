from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from campaigns import some_of
from examples import examples
from ghosts import NEW_ORDER, OLD_ORDER, ring, up_down
from hypothesis import assume, given
from slow_mixed import transition_slowly, transitions
from slow_rounds import check_rounds, dependencies_slowly

from routing.cdg.acyclic import Cdg
from routing.deadlock import per_lid_rounds, schedule_search
from routing.deadlock.mixed_cdg import MixedDependencies
from routing.deadlock.proof import prove
from routing.deadlock.schedule_search import find_schedule
from routing.deadlock.transition import prove_transition
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.faults import Fault, FaultKind, apply_faults, every_link
from routing.reroute import Published, reroute
from routing.reroute.installed import installed
from routing.reroute.translate import translate
from routing.tables import Provenance, Routing
from routing.topologies import generate


def exchanged(engine, links, **options):
    """Return the tables in the switches after two cables of a torus have changed places, and the repaired tables."""
    fabric, options = generate("torus", ["4x4"], cas=1), EngineOptions(effort=0, **options)
    routing = ENGINES[engine].route(fabric, options)
    faults = [every_link(fabric)[link] for link in links]
    swap = Fault(FaultKind.SWAP, "swap", tuple(fault.ports[1] for fault in faults))
    now, before = apply_faults(fabric, [swap]), Published(fabric, routing, prove(fabric, routing))
    return installed(routing, fabric, reroute(ENGINES[engine], options, before, now).routing, now)


EXCHANGES = [(engine, links) for links in [(0, 9), (3, 20), (7, 31)] for engine in ["updn", "nue", "dfsssp"]]


# In every run, each engine and each pair of links has one case.
@pytest.mark.parametrize(("engine", "links"), some_of(EXCHANGES, EXCHANGES[::4]))
def test_rounds_after_the_removal_of_entries_over_exchanged_cables(engine, links):
    """The old entries alone close a loop over the exchanged cables, which the first round ends."""
    sides = exchanged(engine, links, vls=1 if engine == "updn" else 4)
    fabric, old, new, more = sides.fabric, sides.old, sides.new, {"lost": sides.lost, "rewired": sides.rewired}
    assert find_schedule(fabric, old, new, lost=sides.lost) is None
    schedule = find_schedule(fabric, old, new, **more)
    assert schedule.only_removes and schedule.first_draining_round == 2 and len(schedule) > 1
    first, *later = states = list(schedule.states(old.lft, new.lft))
    gone = first != old.lft
    assert (first[gone] == 255).all() and (new.lft[gone] != old.lft[gone]).all()
    assert np.array_equal(states[-1], new.lft)
    assert gone.sum() <= 4 * sides.rewired.sum()
    before, *after = dependencies_slowly(fabric, old, new, states, replies=False, first_draining_round=2)
    alone = dependencies_slowly(fabric, old, old, [old.lft], replies=False)[0]
    assert set(before.edges) <= set(alone.edges) and not nx.is_directed_acyclic_graph(alone)
    assert len(after) == len(later) and all(map(nx.is_directed_acyclic_graph, after))
    found = prove_transition(fabric, old, new, drain=False, **more)
    assert found.verdict == "after-removal" and not found.safe and found.plan.only_removes
    assert found.reason.startswith(
        "cables have changed places, so the old tables have a credit loop by themselves; each of"
    )
    assert prove_transition(fabric, old, new, drain=False, rounds=1, **more).verdict == "unsafe"


def known_of(fabric, old, new, *, replies):
    """Return the union of the CDGs of both tables, if both proofs are strong enough."""
    proofs = prove(fabric, old), prove(fabric, new)
    if all(p.cdg is not None and (p.strength == "reversible" or not replies) for p in proofs):
        return proofs[0].cdg | proofs[1].cdg
    return None


@pytest.mark.parametrize("replies", [False, True])
@pytest.mark.parametrize("told", [False, True])
@examples(40)
@given(transitions(max_switches=6, max_cas=1))
def test_no_packet_closes_a_loop_in_any_round(replies, told, case):
    fabric, old, new = case
    known = known_of(fabric, old, new, replies=replies) if told else None
    if known is not None:
        # A proof omits packets to LIDs that no switch delivers.  The slow reference includes them: they may loop before
        # any entry is written.
        assume(nx.is_directed_acyclic_graph(unmixed_slowly(fabric, old, new, replies=replies)))
    schedule = find_schedule(fabric, old, new, known=known, replies=replies)
    if schedule is not None:
        check_rounds(fabric, old, new, schedule, replies=replies)
    mixed = transition_slowly(fabric, old, new, replies=replies, scope="endports")
    free = nx.is_directed_acyclic_graph(mixed)
    fixed = old.sl2vl.ndim == 1 and np.array_equal(old.sl2vl, new.sl2vl)
    at_once = schedule is not None and len(schedule) == 1
    # Proofs may cover more traffic than the slow reference, such as traffic between switches, and so need more rounds.
    assert at_once == free or not fixed or (known is not None and free)


def unmixed_slowly(fabric, old, new, *, replies):
    """Return the dependencies over old entries alone, and over new entries alone, with the SLs and VLs of both
    tables.
    """
    graph = nx.DiGraph()
    for lft in (old.lft, new.lft):
        one, other = replace(old, lft=lft), replace(new, lft=lft)
        graph = nx.compose(graph, dependencies_slowly(fabric, one, other, [lft], replies=replies)[0])
    return graph


@pytest.mark.parametrize("replies", [False, True])
@pytest.mark.parametrize("told", [False, True])
@examples(40)
@given(transitions(max_switches=6, max_cas=1))
def test_large_tables_have_rounds_if_old_and_new_ones_may_wait_together(replies, told, case):
    fabric, old, new = case
    known = known_of(fabric, old, new, replies=replies) if told else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule_search, "MOST_SEARCHED", 0)
        patch.setattr(per_lid_rounds, "DRAINED", 1)
        schedule = find_schedule(fabric, old, new, known=known, replies=replies)
    if schedule is not None:
        check_rounds(fabric, old, new, schedule, replies=replies)
    together = nx.is_directed_acyclic_graph(unmixed_slowly(fabric, old, new, replies=replies))
    fixed = old.sl2vl.ndim == 1 and np.array_equal(old.sl2vl, new.sl2vl)
    if fixed and known is None:
        assert schedule is not None or not together
    elif fixed and schedule is None:
        assert not nx.is_directed_acyclic_graph(known_graph(fabric, known)) or not together


def known_graph(fabric, known):
    """Return a CDG as a graph of pairs of channel and VL."""
    channels, slot = fabric.channels, fabric.channels.edges.first
    graph = nx.DiGraph()
    for c in range(len(channels)):
        behind = range(channels.first[channels.dst[c]], channels.first[channels.dst[c] + 1])
        for k, e in enumerate(behind):
            graph.add_edges_from(((c, vl), (e, vl)) for vl in range(16) if known.masks[slot[c] + k] >> vl & 1)
    return graph


def repaired(kind, size, engine, link):
    """Return published tables, the fabric without one link, and the repair."""
    fabric = generate(kind, size, **({"cas": 1} if kind == "torus" else {}))
    chosen = EngineOptions(effort=0.1, vls=8)
    routing = ENGINES[engine].route(fabric, chosen)
    baseline = Published(fabric, routing, prove(fabric, routing))
    less = fabric.without_links([int(np.unique(fabric.channels.link)[link])])
    return baseline, less, reroute(ENGINES[engine], chosen, baseline, less, baseline=baseline)


def pulled(*case):
    baseline, less, found = repaired(*case)
    return less, translate(baseline.routing, baseline.fabric, less), found.routing


@pytest.mark.parametrize(
    ("case", "rounds", "first_draining_round"),
    [
        (("torus", ["4x4"], "nue", 0), 1, 0),
        (("torus", ["4x4"], "updn", 9), 2, 0),
        (("kary-ntree", ["4", "2"], "nue", 0), 2, 0),
        (("torus", ["4x4"], "dfsssp", 0), 2, 2),
    ],
)
def test_a_repair_takes_few_rounds(case, rounds, first_draining_round):
    fabric, old, new = pulled(*case)
    schedule = find_schedule(fabric, old, new)
    check_rounds(fabric, old, new, schedule)
    assert (len(schedule), schedule.first_draining_round) == (rounds, first_draining_round)


def test_a_switch_that_packets_come_back_to_is_written_first():
    fabric, old, new = pulled("torus", ["4x4"], "updn", 9)
    schedule = find_schedule(fabric, old, new)
    last = schedule.round == 2
    assert 0 < last.sum() < len(last)
    assert (old.lft[schedule.switch[last], schedule.lid[last]] == 255).all()


@pytest.mark.parametrize("lmc", [0, 1])
def test_the_ghost_case_takes_a_wait(lmc):
    fabric = ring(lmc)
    old, new = up_down(fabric, OLD_ORDER), up_down(fabric, NEW_ORDER)
    schedule = find_schedule(fabric, old, new)
    assert schedule.first_draining_round == len(schedule) == 2
    check_rounds(fabric, old, new, schedule)


def test_loops_of_old_or_new_tables_cannot_be_staged_away():
    fabric = generate("ring", ["5"], cas=1)
    minhop, updn = (ENGINES[name].route(fabric, EngineOptions(vls=1)) for name in ("minhop", "updn"))
    assert prove(fabric, minhop).certificate is None
    assert find_schedule(fabric, minhop, updn) is None
    assert find_schedule(fabric, updn, minhop) is None


def test_a_loop_of_the_new_tables_ends_the_search_at_once(monkeypatch):
    fabric = generate("ring", ["5"], cas=1)
    minhop, updn = (ENGINES[name].route(fabric, EngineOptions(vls=1)) for name in ("minhop", "updn"))
    monkeypatch.setattr(MixedDependencies, "admit", None)  # A call would raise a TypeError.
    assert find_schedule(fabric, updn, minhop) is None


def test_nothing_that_changes_is_one_round():
    fabric, old, _ = pulled("torus", ["4x4"], "updn", 9)
    schedule = find_schedule(fabric, old, old)
    assert len(schedule) == 1 and len(schedule.lid) == 0 and not schedule.first_draining_round


def test_vls_that_change_on_the_path_are_not_scheduled():
    fabric = generate("ring", ["5"], cas=1)
    routing = ENGINES["updn"].route(fabric, EngineOptions(vls=1, effort=0.05))
    ports = 1 + int(fabric.switch_ports.max())
    vls = np.zeros((fabric.switches, ports, ports, 16), np.uint8)
    vls[0, 0] = 1
    by_port = Routing(routing.lft, routing.sl, vls, 2, 1, Provenance("by port"))
    assert find_schedule(fabric, by_port, by_port) is None


def test_threads_do_not_matter():
    case = pulled("kary-ntree", ["4", "2"], "updn", 3)
    one, three = (find_schedule(*case, threads=n) for n in (1, 3))
    assert np.array_equal(one.round, three.round) and np.array_equal(one.switch, three.switch)


def changed_entries(schedule):
    return sorted(zip(schedule.lid.tolist(), schedule.switch.tolist(), strict=True))


@pytest.mark.parametrize("case", [("torus", ["4x4"], "nue", 0), ("kary-ntree", ["4", "2"], "nue", 0)])
def test_columns_with_one_change_need_not_be_followed(case):
    """With known dependencies, LIDs with one changed entry are in the first round.  All other rounds are unchanged."""
    baseline, fabric, found = repaired(*case)
    old, new = translate(baseline.routing, baseline.fabric, fabric), found.routing
    known = baseline.proof.cdg.onto(fabric) | found.proof.cdg
    changes = (old.lft != new.lft).sum(axis=0)
    assert (changes == 1).any()
    schedule = find_schedule(fabric, old, new, known=known)
    assert schedule is not None and not schedule.first_draining_round
    check_rounds(fabric, old, new, schedule)
    assert (schedule.round[changes[schedule.lid] == 1] == 1).all()
    assert changed_entries(schedule) == changed_entries(find_schedule(fabric, old, new))


def reported_for(*case):
    """Return a repair, with the known dependencies of both tables."""
    baseline, fabric, found = repaired(*case)
    known = baseline.proof.cdg.onto(fabric) | found.proof.cdg
    return fabric, translate(baseline.routing, baseline.fabric, fabric), found.routing, known


@pytest.fixture
def large(monkeypatch):
    """Treat all tables as large tables."""
    monkeypatch.setattr(schedule_search, "MOST_SEARCHED", 0)


def test_lids_whose_mixtures_close_loops_are_drained(large):
    """The old entries are removed in a round with other entries, and the new entries are written when packets have
    left.
    """
    fabric, old, new, known = reported_for("torus", ["5x5"], "nue", 12)
    schedule = find_schedule(fabric, old, new, known=known)
    check_rounds(fabric, old, new, schedule)
    out = schedule.removed_in_round > 0
    assert out.any() and schedule.drained == out.sum()
    assert (schedule.removed_in_round[out] < schedule.first_draining_round).all() and (
        schedule.round[out] >= schedule.first_draining_round
    ).all()
    assert (old.lft[schedule.switch[out], schedule.lid[out]] != 255).all()
    assert (schedule.round == 1).sum() > len(schedule.round) / 2


def test_more_than_is_broken_or_one_in_so_many_entries_is_not_drained(large, monkeypatch):
    fabric, old, new, known = reported_for("torus", ["4x4"], "updn", 5)
    monkeypatch.setattr(per_lid_rounds, "MOST_FOLLOWED", 0)  # all LIDs with a mixture are drained
    monkeypatch.setattr(per_lid_rounds, "DRAINED", 2 * old.lft.size)
    schedule = find_schedule(fabric, old, new, known=known, few=0)
    assert 0 < schedule.drained <= (old.lft[schedule.switch, schedule.lid] == 255).sum()
    # The same entries change, but the fault has broken none of them.
    some_port = fabric.channels.port[fabric.channels.first[:-1]]
    whole = replace(old, lft=np.where((old.lft == 255) & (fabric.lids.switch >= 0), some_port[:, None], old.lft))
    assert find_schedule(fabric, whole, new, known=known, few=0) is None
    more = find_schedule(fabric, whole, new, known=known).drained
    assert find_schedule(fabric, whole, new, known=known, few=more - 1) is None
    monkeypatch.setattr(per_lid_rounds, "DRAINED", 1)
    assert find_schedule(fabric, whole, new, known=known, few=0).drained == more > schedule.drained


def test_lids_beyond_the_work_limit_are_drained(large, monkeypatch):
    fabric, old, new, known = reported_for("kary-ntree", ["4", "2"], "updn", 3)
    mixed = (np.count_nonzero(old.lft != new.lft, axis=0) > 1).sum()
    assert mixed > 1 and find_schedule(fabric, old, new, known=known).drained == 0
    monkeypatch.setattr(per_lid_rounds, "MOST_FOLLOWED", fabric.switches)
    monkeypatch.setattr(per_lid_rounds, "DRAINED", 1)
    schedule = find_schedule(fabric, old, new, known=known)
    check_rounds(fabric, old, new, schedule)
    assert len(np.unique(schedule.lid[schedule.removed_in_round > 0])) == mixed - 1


def test_columns_with_one_change_count_for_nothing_however_many_there_are(large, monkeypatch):
    fabric, old, new, known = reported_for("torus", ["4x4"], "nue", 8)
    monkeypatch.setattr(per_lid_rounds, "MOST_FOLLOWED", 0)
    assert (np.count_nonzero(old.lft != new.lft, axis=0) < 2).all()
    assert len(find_schedule(fabric, old, new, known=known)) == 1


def test_large_tables_whose_old_and_new_entries_cannot_wait_together_are_traced_up_to_a_size(large, monkeypatch):
    """According to ``known``, all dependencies are in use.  The trace shows that most of them are unused."""
    fabric, old, new = pulled("torus", ["4x4"], "dfsssp", 0)
    known = Cdg(fabric, np.full(fabric.channels.edges.count, 0xFFFF, np.uint16))
    check_rounds(fabric, old, new, find_schedule(fabric, old, new, known=known))
    monkeypatch.setattr(schedule_search, "MOST_TRACED", old.lft.size - 1)
    assert find_schedule(fabric, old, new, known=known) is None


def test_threads_do_not_matter_for_large_tables(large):
    fabric, old, new, known = reported_for("torus", ["5x5"], "nue", 12)
    one, three = (find_schedule(fabric, old, new, known=known, threads=n) for n in (1, 3))
    assert np.array_equal(one.round, three.round) and np.array_equal(one.removed_in_round, three.removed_in_round)


def test_old_entries_that_contradict_the_new_tables_are_removed_first(monkeypatch):
    """Up*/Down* tables with another root have the opposite dependencies, so no order of writes alone is safe."""
    fabric = generate("torus", ["3x3"])
    roots = [f"{guid:#x}" for guid in fabric.switch_guid[[0, 8]].tolist()]
    old, new = (ENGINES["updn"].route(fabric, EngineOptions(roots=(root,), vls=1)) for root in roots)
    assert find_schedule(fabric, old, new, few=0) is None
    schedule = find_schedule(fabric, old, new)
    assert len(schedule) == schedule.first_draining_round == 2
    assert 0 < schedule.drained < len(schedule.lid)
    check_rounds(fabric, old, new, schedule)
    monkeypatch.setattr(schedule_search, "MOST_SEARCHED", 0)
    large = find_schedule(fabric, old, new)
    assert np.array_equal(large.removed_in_round, schedule.removed_in_round)
