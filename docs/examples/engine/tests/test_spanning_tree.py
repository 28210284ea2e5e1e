"""Check that the example engine keeps its promise on several kinds of fabrics, and that ibnue finds it by its name."""

import pytest

import ibnue


@pytest.mark.parametrize("fabric", ["torus:4x4", "kary-ntree:2,3", "dragonfly:4,2,2", "random-regular:12,3"])
def test_tables_are_proven(fabric):
    tables = ibnue.route(fabric, "spanning-tree")
    assert tables.proof.certified
    assert tables.proof.strength == "reversible"
    assert tables.routing.vls == 1


def test_an_option_that_the_engine_lacks_is_refused():
    with pytest.raises(ibnue.OptionError, match="has no roots"):
        ibnue.route("ring:4", "spanning-tree", roots=["sw0"])
