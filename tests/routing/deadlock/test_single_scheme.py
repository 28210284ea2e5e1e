"""Check the Single Scheme: the LIDs that have to wait, against following every packet over every mixture of entries."""

from dataclasses import replace

import networkx as nx
import numpy as np
from examples import examples
from hypothesis import given
from slow_mixed import transition_slowly, transitions

from routing.deadlock.single_scheme import lids_to_drain
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.topologies import generate


def safe_slowly(fabric, old, new, waiting):
    """Return whether no mixture of routes to the LIDs that do not wait closes a loop with the new routes of all
    LIDs.
    """
    later = replace(old, lft=np.where(waiting, new.lft, old.lft))
    return nx.is_directed_acyclic_graph(transition_slowly(fabric, later, new, replies=False, scope="ca"))


@examples(40)
@given(transitions())
def test_lids_that_continue_are_safe_and_none_more_can(case):
    fabric, old, new = case
    waiting = lids_to_drain(fabric, old, new, threads=1)
    if waiting.all():
        return
    assert safe_slowly(fabric, old, new, waiting)
    assert not waiting[(old.lft == new.lft).all(axis=0)].any()
    for lid in np.flatnonzero(waiting):
        fewer = waiting.copy()
        fewer[lid] = False
        assert not safe_slowly(fabric, old, new, fewer)


def routed(name, fabric):
    return ENGINES[name].route(fabric, EngineOptions(vls=1, threads=1))


def test_some_lids_of_a_ring_continue():
    fabric = generate("ring", ["6"], cas=1)
    old, new = routed("updn", fabric), routed("nue", fabric)
    waiting = lids_to_drain(fabric, old, new)
    assert 0 < waiting.sum() < (old.lft != new.lft).any(axis=0).sum()


def test_nothing_waits_for_tables_that_stay():
    fabric = generate("ring", ["6"], cas=1)
    old = routed("updn", fabric)
    assert not lids_to_drain(fabric, old, old).any()


def test_everything_waits_if_the_new_tables_have_a_loop():
    fabric = generate("ring", ["6"], cas=1)
    assert lids_to_drain(fabric, routed("updn", fabric), routed("minhop", fabric)).all()


def test_everything_waits_if_sl2vl_tables_change():
    fabric = generate("ring", ["6"], cas=1)
    old = routed("updn", fabric)
    new = replace(old, sl2vl=np.ones_like(old.sl2vl))
    assert lids_to_drain(fabric, old, new).all()
