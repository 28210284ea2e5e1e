"""Check fabrics like those of present clusters, with random faults: engines that promise certified tables deliver
them.
"""

import pytest
from campaigns import some_of

from ibsim_fixtures.catalogue import FIXTURES
from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Promise
from routing.errors import RoutingError
from routing.faults import apply_faults
from routing.formats.fabric_files import read_fabric
from routing.publish import verify
from routing.sweep.cases import RandomFaults, faults_of

TREES, OTHERS = ("rails-uneven", "cluster-uneven"), ("director-3", "cascade-3")
PROMISING = [
    name
    for name, engine in ENGINES.items()
    if engine.promise is Promise.DEADLOCK_FREE and name not in ("auto", "chain")
]
"""Engines that promise certified tables, except auto and chain, which take tables of other engines."""
ANY_FABRIC = {"updn", "nue", "dfsssp", "lash", "disjoint"}
SAMPLES = ("3:3", "3:6%")
"""Random cases: with three faults, and with faults of a share of all links and switches."""

CASES = [(engine, name) for engine in PROMISING for name in (*TREES, *OTHERS)]
SLOW = [("hyperx", "cascade-3"), ("torus-2qos", "cascade-3")]
"""Cases for the campaign only, in which an engine for grids searches for seconds before it refuses the fabric."""


def routed(engine, fabric):
    """Return the proof of an engine's tables; None if the engine does not route this kind of fabric."""
    try:
        routing = ENGINES[engine].route(fabric, EngineOptions(effort=0.02, threads=1))
    except RoutingError:
        return None
    return verify(fabric, routing, ENGINES[engine]).proof


# In every run, each engine takes one or two of the fixtures, and each fixture has a third of the engines.
@pytest.mark.parametrize(("engine", "name"), some_of(CASES, [case for case in CASES[::3] if case not in SLOW]))
def test_tables_are_certified_with_random_faults(engine, name):
    fabric = read_fabric(FIXTURES[name].path)
    if routed(engine, fabric) is None:
        assert engine not in ANY_FABRIC and not (engine == "ftree" and name in TREES)
        return
    texts = [text for sample in SAMPLES for text in RandomFaults.parse(sample, ("link", "switch")).texts(fabric)]
    assert len(texts) == 6
    for text in texts:
        proof = routed(engine, apply_faults(fabric, faults_of(text, fabric)))
        if proof is None:  # an engine for one kind of fabric may refuse the fabric after the faults
            assert engine not in ANY_FABRIC | {"ftree"}, text
            continue
        assert proof.certified and proof.complete, text


@pytest.mark.parametrize("case", ["3 link,switch 1/64", "3 link,switch 1/116", "6% link,switch 1/81"])
def test_fat_tree_routing_stands_lost_links_at_the_top(case):
    """Besides the links of the management leaf, few links of the top switch are left."""
    fabric = read_fabric(FIXTURES["cluster-uneven"].path)
    proof = routed("ftree", apply_faults(fabric, faults_of(f"random {case}", fabric)))
    assert proof is not None and proof.certified and proof.strength == "reversible"
