"""Check the engine chain: a tree and a torus behind gateways, each with a separate engine, proven as a whole."""

import networkx as nx
import numpy as np
import pytest
from slow_proof import prove_slowly
from strategies import tree_and_torus

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import NotEnoughVLs, OptionError, ParseError, RoutingError

PARTS = """[[part]]
engine = "torus-2qos"
switches = ["sw?", "sw1?", "0x20{:04x}"]

[[part]]
engine = "ftree"
switches = ["*"]
"""


@pytest.fixture
def parts(tmp_path):
    def write(text=None, fabric=None):
        path = tmp_path / "parts.toml"
        path.write_text(PARTS.replace("0x20{:04x}", f"{int(fabric.switch_guid[20]):#x}") if text is None else text)
        return path

    return write


@pytest.mark.parametrize("vls", ["auto", 4, "min"])
def test_parts_have_the_paths_of_their_engines_and_the_union_is_certified(parts, vls):
    fabric = tree_and_torus(lmc=1)
    routing = ENGINES["chain"].route(fabric, EngineOptions(parts=parts(fabric=fabric), vls=vls, seed=2))
    proof = prove(fabric, routing)
    assert proof.complete and (proof.strength, proof.scope) == ("reversible", "all")
    assert routing.vls_needed <= 4
    in_torus, lids = np.arange(27) < 21, fabric.lids
    for source in range(fabric.switches):
        for lid in np.flatnonzero(lids.endport >= 0).tolist():
            at, seen, hops = source, {bool(in_torus[source])}, 0
            while at != lids.switch[lid]:
                at = fabric.channels.dst[fabric.channels.at_port[at, routing.lft[at, lid]]]
                seen.add(bool(in_torus[at]))
                hops += 1
            if in_torus[source] == in_torus[lids.switch[lid]]:
                assert len(seen) == 1 and hops <= (4 if in_torus[source] else 3)


@pytest.mark.parametrize("lost", [[], [0], [50, 51], [52]])
def test_faults_are_certified_as_the_slow_checker_says(parts, lost):
    whole = tree_and_torus()
    fabric = whole.without_links(lost)
    routing = ENGINES["chain"].route(fabric, EngineOptions(parts=parts(fabric=fabric)))
    proof, slow = prove(fabric, routing), prove_slowly(fabric, routing)
    assert proof.complete and proof.strength == "reversible"
    assert slow.counts["undelivered"] == slow.dropped == 0
    assert nx.is_directed_acyclic_graph(slow.both["endports"])


def test_parts_that_keep_their_vl_give_one_table_for_all_switches(parts):
    text = PARTS.replace("torus-2qos", "nue").replace(', "0x20{:04x}"', ', "sw20"')
    fabric = tree_and_torus()
    routing = ENGINES["chain"].route(fabric, EngineOptions(parts=parts(text), vls=5))
    assert routing.sl2vl.ndim == 1 and routing.vls <= 5
    assert prove(fabric, routing).certified


TORUS = '[[part]]\nengine = "torus-2qos"\nswitches = ["*"]\n'


@pytest.mark.parametrize(
    ("text", "error", "problem"),
    [
        ("", ParseError, r"parts.toml: has no \[\[part\]\]"),
        ("x = 1\n" + TORUS, ParseError, "parts.toml:1: 'x' is not a key"),
        (TORUS.replace("switches", "nodes"), ParseError, "parts.toml:1: a part needs engine and switches"),
        (TORUS.replace('"*"', '"sw?", "sv*"'), ParseError, r"parts.toml:3: 'sv\*' fits no switch"),
        (TORUS.replace('"*"', '"sw?"'), ParseError, "parts.toml: switch 'sw10' belongs to no part"),
        (TORUS.replace("torus-2qos", "dor"), OptionError, "parts.toml:1: dor cannot route this part: a part needs"),
        (TORUS.replace("torus-2qos", "ftree"), RoutingError, "parts.toml:1: ftree cannot route this part"),
        (TORUS.replace("torus-2qos", "nueue"), OptionError, "parts.toml:1: nueue cannot route this part: there is no"),
        (TORUS.replace("torus-2qos", "chain"), OptionError, "parts.toml:1: chain cannot route this part: a part needs"),
        (TORUS.replace("torus-2qos", "mud"), OptionError, "parts.toml:1: mud cannot route this part"),
    ],
)
def test_errors_name_the_part(parts, text, error, problem):
    with pytest.raises(error, match=problem):
        ENGINES["chain"].route(tree_and_torus(), EngineOptions(parts=parts(text), reversible=True))


def test_a_missing_file_or_too_few_vls_are_errors(parts):
    fabric = tree_and_torus()
    with pytest.raises(OptionError, match="chain needs a file with the parts"):
        ENGINES["chain"].route(fabric, EngineOptions())
    with pytest.raises(NotEnoughVLs):
        ENGINES["chain"].route(fabric, EngineOptions(parts=parts(fabric=fabric), vls=1))
