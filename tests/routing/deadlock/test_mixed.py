import networkx as nx
import numpy as np
import pytest
from examples import examples
from hypothesis import assume, given
from slow_mixed import MixedWalker, transition_slowly, transitions

from routing.deadlock.mixed import MixedGraphs, Mixture
from routing.tables import Routing


def named(fabric, graph):
    """Return the edges as pairs of (switch, port, VL)."""
    channels = fabric.channels

    def name(at):
        return int(channels.src[at[0]]), int(channels.port[at[0]]), at[1]

    return {(name(a), name(b)) for a, b in graph.to_networkx().edges}


@pytest.mark.parametrize("replies", [False, True])
@pytest.mark.parametrize("scope", ["all", "endports"])
@examples(60)
@given(transitions(max_switches=6))
def test_dependencies_are_those_of_every_packet_walked(replies, scope, case):
    fabric, old, new = case
    graphs = MixedGraphs(Mixture.of(fabric, old, new))
    found = graphs.graph(replies=replies, switch_pairs=scope == "all")
    assert named(fabric, found) == set(transition_slowly(fabric, old, new, replies=replies, scope=scope).edges)


@examples(60)
@given(transitions(max_switches=6))
def test_loops_are_those_of_the_mixed_entries(case):
    fabric, old, new = case
    mixture = Mixture.of(fabric, old, new)
    walker = MixedWalker(fabric, old, new)
    looping = set(MixedGraphs(mixture).looping().tolist())
    followed = set(mixture.changed.tolist())
    assert looping & followed == {lid for lid in followed if walker.forwarding_loops(lid)}


@examples(20)
@given(transitions(max_switches=6))
def test_threads_do_not_matter(case):
    fabric, old, new = case
    mixture = Mixture.of(fabric, old, new)
    for replies in (False, True):
        one, three = (MixedGraphs(mixture, threads=n).graph(replies=replies, switch_pairs=False) for n in (1, 3))
        assert np.array_equal(one.to, three.to)
        assert np.array_equal(one.first, three.first)


@pytest.mark.parametrize("replies", [False, True])
@examples(60)
@given(transitions(max_switches=5, wrong=False, max_cas=1))
def test_columns_are_admitted_as_long_as_there_is_no_cycle(replies, case):
    fabric, old, new = case
    mixture = Mixture.of(fabric, old, new)
    graphs = MixedGraphs(mixture.between(old.lft, old.lft))

    def free(after):
        tables = Routing(after, new.sl, new.sl2vl, 1, 1, new.provenance)
        return nx.is_directed_acyclic_graph(transition_slowly(fabric, old, tables, replies=replies, scope="endports"))

    assume(graphs.fixed)
    lids = mixture.changed
    if not free(old.lft):
        with pytest.raises(ValueError, match="cycle"):
            graphs.admit(old.lft, new.lft, lids, replies=replies)
        return
    taken = graphs.admit(old.lft, new.lft, lids, replies=replies) if len(lids) else np.zeros(0, bool)
    after = old.lft.copy()
    for lid, is_taken in zip(lids.tolist(), taken.tolist(), strict=True):
        more = after.copy()
        more[:, lid] = new.lft[:, lid]
        assert is_taken == free(more)
        after = more if is_taken else after
