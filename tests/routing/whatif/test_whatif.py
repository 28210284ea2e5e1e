"""Compare the effects of faults with networkx, and with tables that are computed from scratch."""

import dataclasses
import math
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor

import networkx
import numpy as np
import pytest
from campaigns import some_of
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import fabrics, random_fabric, ring_fabric

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import EnvironmentProblem, NotEnoughVLs, OptionError
from routing.faults import Fault, FaultKind, apply_faults, every_ca, every_link, every_switch, parse_fault
from routing.pools import AHEAD
from routing.quality import measure
from routing.reroute import Stability
from routing.topologies import generate
from routing.topologies.trees import xgft
from routing.whatif import (
    Baseline,
    Limits,
    Scenario,
    bridges_and_cut_switches,
    draw_faults,
    evaluate,
    explore,
    pool,
    severity,
    single_faults,
)
from routing.whatif.capacity import BISECTIONS, loss
from routing.whatif.connectivity import connectivity_loss

ONE_THREAD = EngineOptions(threads=1, effort=0.05)


def baseline(fabric, engine="updn", **more):
    return Baseline.of(fabric, ENGINES[engine], ONE_THREAD, **more)


def cabling(fabric):
    """Return the fabric as a graph of GUIDs.  Each end port is a separate vertex, because CAs do not forward
    packets.
    """
    graph = networkx.MultiGraph()
    graph.add_nodes_from(("switch", guid) for guid in fabric.switch_guid.tolist())
    port_guid = {
        (terminal, port): guid
        for terminal, port, guid in zip(
            fabric.endport_terminal.tolist(), fabric.endport_port.tolist(), fabric.endport_guid.tolist(), strict=True
        )
    }
    graph.add_nodes_from(("end", guid) for guid in port_guid.values())

    def vertex(device, port):
        if device < fabric.switches:
            return ("switch", int(fabric.switch_guid[device]))
        return ("end", port_guid[device - fabric.switches, port])

    for (a, b), (p, q) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        graph.add_edge(vertex(a, p), vertex(b, q))
    return graph


def pieces(fabric):
    """Return the vertices of each connected part that has a switch."""
    return [part for part in networkx.connected_components(cabling(fabric)) if any(k == "switch" for k, _ in part)]


def apart(before, after):
    """Return (connected, number of parts, names of CAs that are cut off, pairs), found by a slow search."""
    new = pieces(after)
    survive = set(after.terminal_guid.tolist())
    connected, keeps, had = True, set(), set()
    owner = dict(zip(before.endport_guid.tolist(), before.endport_terminal.tolist(), strict=True))
    for part in pieces(before):
        left = [part & piece for piece in new]
        connected &= sum(any(kind == "switch" for kind, _ in piece) for piece in left) <= 1
        # The main part has the most end ports; of several, it is the first in the order of their numbers.
        numbers = [
            after.component[after.switch_guid.tolist().index(min(g for k, g in p if k == "switch"))] for p in new
        ]
        count = {number: sum(k == "end" for k, _ in piece) for number, piece in zip(numbers, left, strict=True)}
        rest = max(sorted(count), key=lambda number, c=count: c[number], default=None)
        had |= {owner[guid] for kind, guid in part if kind == "end"}
        if rest is not None and count[rest]:
            keeps |= {owner[guid] for kind, guid in left[numbers.index(rest)] if kind == "end"}
    cut = [
        name
        for row, name in enumerate(before.terminal_name)
        if row in had and row not in keeps and int(before.terminal_guid[row]) in survive
    ]
    ends = [sum(kind == "end" for kind, _ in part) for part in new]
    return connected and not cut, len(new), tuple(cut), sum(n * (n - 1) for n in ends)


@examples(60)
@given(fabrics(connected=False), st.integers(0, 100), st.integers(1, 4))
def test_lost_connections_equal_those_of_a_slow_search(fabric, seed, together):
    kinds = ("link", "ca-link", "switch", "ca", "swap")
    most = len(every_link(fabric, cas=True)) + fabric.switches + fabric.terminals
    scenarios = single_faults([*every_link(fabric, cas=True)[:10], *every_switch(fabric)[:5], *every_ca(fabric)[:5]])
    for scenario in [*scenarios, *draw_faults(fabric, 3, seed=seed, together=min(together, most), kinds=kinds)]:
        after = apply_faults(fabric, scenario.faults)
        found = connectivity_loss(fabric, after)
        assert (found.connected, found.parts, found.cut_off, found.pairs) == apart(fabric, after), scenario.name


def test_the_loss_compares_the_rates_of_pairs_if_a_leaf_is_cut_off():
    """One leaf of six loses all links, and another leaf half of its links.  20 end ports are still connected."""
    fabric = xgft([4, 6], [1, 4])
    leaves = np.flatnonzero(fabric.senders_at)
    links = [np.unique(fabric.channels.link[fabric.channels.src == leaf]) for leaf in leaves[:2]]
    before, kept, half = (
        baseline(fabric.without_links(gone)).capacity for gone in ([], [*links[0]], [*links[0], *links[1][:2]])
    )
    # Of 24 end ports, 4 send to 20 others over 4 links.  Of 20 end ports, 4 send to 16 others over 4 or 2 links.
    connected = (20 * 19 + 4 * 3) / (24 * 23)
    assert loss(before, kept) == pytest.approx(1 - connected)
    assert loss(before, half) == pytest.approx(1 - connected * (2 / 16) / (4 / 20))


@examples(60)
@given(fabrics(connected=False))
def test_bridges_and_articulation_points(fabric):
    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(fabric.switches))
    for row, (a, b) in enumerate(fabric.link_device.tolist()):
        if a != b and max(a, b) < fabric.switches:
            graph.add_edge(a, b, key=row)
    parts = networkx.number_connected_components(graph)
    bridges, cuts = [], []
    for a, b, row in list(graph.edges(keys=True)):
        graph.remove_edge(a, b, key=row)
        bridges += [row] if networkx.number_connected_components(graph) > parts else []
        graph.add_edge(a, b, key=row)
    for switch in range(fabric.switches):
        rest = graph.subgraph([row for row in graph if row != switch])
        cuts += [switch] if networkx.number_connected_components(rest) > parts else []
    assert bridges_and_cut_switches(fabric) == (sorted(bridges), cuts)


@pytest.mark.parametrize("engine", ["updn", "nue", "dfsssp", "lash", "minhop", "sssp"])
def test_an_effect_is_what_a_run_from_nothing_says(engine):
    fabric = generate("torus", ["3x3"], cas=2)
    base = baseline(fabric, engine, stability=Stability.FRESH)
    healthy = measure(fabric, base.published.routing, shifts=0, bisections=BISECTIONS)
    for scenario in single_faults([every_link(fabric)[3], every_switch(fabric)[4], every_ca(fabric)[1]]):
        after = apply_faults(fabric, scenario.faults)
        routing = ENGINES[engine].route(after, ONE_THREAD)
        proof, quality = prove(after, routing), measure(after, routing, shifts=0, bisections=BISECTIONS)
        effect = evaluate(base, scenario)
        assert (effect.certified, effect.strength) == (proof.certified, proof.strength)
        assert (effect.vls, effect.vls_needed) == (routing.vls, routing.vls_needed)
        assert effect.a2a == quality.all_to_all
        flow, before = (q.all_to_all / (q.endports - 1) for q in (quality, healthy))
        kept = min(flow / before, 1.0) * (quality.pairs - quality.pairs_lost) / healthy.pairs
        assert effect.loss == pytest.approx(1.0 - kept)
        flows, flows_before = (q.bisection_mean * q.endports for q in (quality, healthy))
        assert effect.bisection == quality.bisection_mean
        assert effect.bisection_loss == pytest.approx(max(0.0, 1.0 - flows / flows_before))
        assert (effect.fresh_loss, effect.fresh_bisection_loss) == (None, None)


def test_a_fresh_run_is_measured_beside_the_repair():
    fabric = generate("random-regular", ["16", "4"], cas=2)
    repaired = baseline(fabric, "nue", stability=Stability.FULL, beside_fresh=True)
    fresh = baseline(fabric, "nue", stability=Stability.FRESH)
    scenarios = single_faults([*every_link(fabric)[:4], *every_switch(fabric)[:2]])
    both = [(evaluate(repaired, scenario), evaluate(fresh, scenario)) for scenario in scenarios]
    for beside, alone_ in both:
        assert (beside.fresh_loss, beside.fresh_bisection_loss) == (alone_.loss, alone_.bisection_loss)
        assert beside.how == "repaired"
    assert any(beside.loss > alone_.loss for beside, alone_ in both)
    assert any(beside.bisection_loss > alone_.bisection_loss for beside, alone_ in both)


def test_changed_and_broken_entries():
    fabric = ring_fabric(5, cas=2)
    base = baseline(fabric, stability=Stability.FRESH)
    fault = every_link(fabric)[0]
    after = apply_faults(fabric, [fault])
    effect = evaluate(base, Scenario((fault,)))
    old, new = base.published.routing.lft, ENGINES["updn"].route(after, ONE_THREAD).lft
    rows = [fabric.switch_guid.tolist().index(guid) for guid, _ in fault.ports]
    assert effect.changed == (old != new).sum()
    assert effect.broken == sum((old[row] == port).sum() for row, (_, port) in zip(rows, fault.ports, strict=True))


@pytest.mark.parametrize("stability", some_of(list(Stability), [Stability.BALANCED]))
def test_every_single_fault_of_a_torus_is_certified(stability):
    fabric = generate("torus", ["3x3x3"], cas=1)
    base = baseline(fabric, "nue", stability=stability)
    effects = list(explore(base, single_faults([*every_link(fabric), *every_switch(fabric)])))
    assert all(effect.certified for effect in effects)
    links, switches = effects[:81], effects[81:]
    assert all(effect.connected and not effect.cut_off and effect.broken for effect in links)
    assert all(len(effect.cut_off) == 1 and not effect.connected for effect in switches)


@pytest.mark.parametrize("engine", ["updn", "nue", "dfsssp", "lash"])
@pytest.mark.parametrize("kinds", [("degrade",), ("swap",), ("link", "ca-link", "switch", "ca", "degrade", "swap")])
def test_every_kind_of_fault_is_repaired_and_certified(engine, kinds):
    fabric = generate("mesh", ["3x3"], cas=1, lmc=1)
    scenarios = draw_faults(fabric, 5, seed=2, together=2, kinds=kinds)
    effects = list(explore(baseline(fabric, engine), scenarios))
    assert all(effect.certified and effect.how != "failed" for effect in effects)
    if kinds == ("degrade",):
        assert {(effect.how, effect.changed, effect.connected) for effect in effects} == {("unchanged", 0, True)}
        assert any(effect.loss > 0.5 for effect in effects)


def test_a_split_is_reported_and_routed():
    fabric = generate("mesh", ["4"], cas=1)
    effect = evaluate(baseline(fabric), Scenario((parse_fault("sw1/3 - sw2/2", fabric),)))
    assert (effect.connected, effect.certified, effect.parts) == (False, True, 2)
    assert effect.cut_off == ("ca2.0", "ca3.0")
    assert effect.loss == pytest.approx(1 - 4 / 12)


def test_a_lost_ca_is_not_cut_off_but_its_traffic_is_lost():
    fabric = ring_fabric(3, cas=1)
    effect = evaluate(baseline(fabric), Scenario((every_ca(fabric)[0],)))
    assert (effect.connected, effect.cut_off) == (True, ())
    assert effect.loss >= 1 - 2 / 6


def test_where_no_channel_carries_anything():
    fabric = random_fabric(1, switches=1, cas=3)
    base = baseline(fabric)
    assert base.a2a == math.inf
    ca, switch = (evaluate(base, Scenario((every(fabric)[0],))) for every in (every_ca, every_switch))
    assert (ca.a2a, ca.connected) == (None, True)
    assert ca.loss == pytest.approx(1 - 2 / 6)
    assert ca.bisection_loss == pytest.approx(1 - 2 / 3)
    assert (switch.bisection, switch.bisection_loss) == (None, 1.0)
    assert (switch.loss, switch.certified, len(switch.cut_off)) == (1.0, True, 3)


def test_nothing_breaks():
    fabric = ring_fabric(4)
    effect = evaluate(baseline(fabric), Scenario(()))
    assert (effect.fault, effect.kind, effect.loss, effect.changed, effect.connected) == ("nothing", "", 0.0, 0, True)


def test_processes_change_nothing():
    fabric = generate("torus", ["3x3"], cas=1)
    base = baseline(fabric, "nue")
    scenarios = [
        *single_faults(every_link(fabric)),
        *draw_faults(fabric, 10, seed=4, together=2, kinds=("link", "switch")),
    ]
    assert list(explore(base, scenarios, jobs=3)) == list(explore(base, scenarios))


def test_samples_are_reproducible_and_grow():
    fabric = generate("torus", ["3x3"])
    first = draw_faults(fabric, 5, seed=1, together=3)
    assert draw_faults(fabric, 8, seed=1, together=3)[:5] == first
    assert draw_faults(fabric, 5, seed=2, together=3) != first
    assert [len(scenario.faults) for scenario in draw_faults(fabric, 3, seed=1, rate=0.5)] == [9, 9, 9]
    with pytest.raises(OptionError, match="-1 scenarios"):
        draw_faults(fabric, -1, seed=1, together=1)


class Refuses:
    """The engine updn, which fails if a link is missing."""

    name, summary, promise = "refuses", "", ENGINES["updn"].promise

    def route(self, fabric, options):
        if fabric.links < 8:
            raise NotEnoughVLs(9, 8)
        return ENGINES["updn"].route(fabric, options)


def test_an_engine_that_fails_is_reported():
    fabric = ring_fabric(4)
    base = Baseline.of(fabric, Refuses(), ONE_THREAD, stability=Stability.FRESH)
    (effect,) = explore(base, single_faults(every_link(fabric)[:1]))
    assert (effect.how, effect.reason, effect.certified) == ("failed", "9 VLs are needed, 8 may be used", False)
    assert (effect.vls, effect.a2a, effect.loss, effect.changed) == (None, None, None, None)
    assert (effect.bisection, effect.bisection_loss) == (None, None)
    assert Limits(max_loss=1.0, certified=True, connected=True).exceeded(effect) == ["max-loss", "certified"]
    kept = dataclasses.replace(base, stability=Stability.FULL, beside_fresh=True)
    (effect,) = explore(kept, single_faults(every_link(fabric)[:1]))
    assert (effect.how, effect.fresh_loss, effect.fresh_bisection_loss) == ("repaired", None, None)


class Dies:
    """An engine that ends its own process if a link is missing."""

    name, summary, promise = "dies", "", ENGINES["updn"].promise

    def route(self, fabric, options):
        if fabric.links < 8:
            os._exit(3)
        return ENGINES["updn"].route(fabric, options)


def test_a_worker_that_dies_is_no_traceback():
    fabric = ring_fabric(4)
    base = Baseline.of(fabric, Dies(), ONE_THREAD, stability=Stability.FRESH)
    with pytest.raises(EnvironmentProblem, match="a worker process died"):
        list(explore(base, single_faults(every_link(fabric)), jobs=2))


def test_an_interrupt_does_not_break_the_pool(interruptible, monkeypatch):
    # An interrupt inside a method of a future would leave a lock that a thread of the pool needs.
    handed = []

    class Interrupted(ProcessPoolExecutor):
        def submit(self, *work):
            os.kill(os.getpid(), signal.SIGINT)
            handed.append(super().submit(*work))
            return handed[-1]

    monkeypatch.setattr(pool, "ProcessPoolExecutor", Interrupted)
    fabric = ring_fabric(20)
    with pytest.raises(KeyboardInterrupt):
        list(explore(baseline(fabric), single_faults(every_link(fabric)), jobs=2))
    assert len(handed) == AHEAD * 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not multiprocessing.active_children()


def test_signals_work_between_effects(interruptible):
    fabric = ring_fabric(4)
    effects = explore(baseline(fabric), single_faults(every_link(fabric)), jobs=2)
    next(effects)
    children = multiprocessing.active_children()
    assert children
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    effects.close()
    assert not any(child.is_alive() for child in children)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_fault_of_another_fabric_is_refused(jobs):
    base = baseline(ring_fabric(4))
    stranger = Fault(FaultKind.SWITCH, "sw9", devices=(9,))
    with pytest.raises(OptionError, match="'sw9' does not fit"):
        list(explore(base, single_faults([*every_link(ring_fabric(4)), stranger]), jobs=jobs))


def test_order_of_severity():
    """Effects are sorted by a missing proof first, then by cut-off devices, a split, the loss, and changed entries."""
    fabric = generate("mesh", ["3"], cas=1)
    base = baseline(fabric)
    link, ca = evaluate(base, Scenario((every_link(fabric)[0],))), evaluate(base, Scenario((every_ca(fabric)[0],)))
    failed = dataclasses.replace(ca, certified=False)
    assert sorted([ca, failed, link], key=severity) == [ca, link, failed]
    lossy = dataclasses.replace(ca, loss=ca.loss + 0.01, changed=0)
    split = dataclasses.replace(ca, connected=False, loss=0.0)
    cut = dataclasses.replace(split, cut_off=("ca0.0",))
    assert sorted([failed, cut, split, lossy, ca], key=severity) == [ca, lossy, split, cut, failed]


def test_limits():
    fabric = generate("mesh", ["3"], cas=1)
    effect = evaluate(baseline(fabric), Scenario((every_link(fabric)[0],)))
    assert effect.loss == pytest.approx(2 / 3)
    assert Limits().exceeded(effect) == []
    assert Limits(max_loss=0.7, certified=True).exceeded(effect) == []
    assert Limits(max_loss=0.6, connected=True).exceeded(effect) == ["max-loss", "connected"]
    assert np.isfinite(effect.loss)


def test_cut_off_are_named_so_that_one_knows_which():
    """If several devices have the same name, the GUID is added."""
    whole = dataclasses.replace(generate("ring", ["4"]), terminal_name=("node", "node", "other", ""))
    reported = [connectivity_loss(whole, apply_faults(whole, [fault])).cut_off for fault in every_switch(whole)]
    guids = [f"0x{guid:016x}" for guid in whole.terminal_guid.tolist()]
    assert reported == [(f"node ({guids[0]})",), (f"node ({guids[1]})",), ("other",), (guids[3],)]
