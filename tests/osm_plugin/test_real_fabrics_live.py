"""Check fabrics like those of present clusters under a running OpenSM, in which a cable is pulled and put back."""

import pytest
from campaigns import some_of

from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.proof import prove

pytestmark = pytest.mark.lab

CASES = [
    # Each case has the fixture, the engine, and the switch and port of the cable.
    ("rails-uneven", "ftree", "leaf0.1", 4),
    ("cluster-uneven", "updn", "spine1.0", 5),
    ("director-3", "nue", "sw0.0.0", 4),
]


def certified_tables(lab, engine):
    """Return the tables in the switches, after ibnue and ibdmchk have proven them complete and free of loops."""
    assert lab.opensm.resweep().engine == f"ibnue-{engine}"
    fabric = lab.fabric()
    proof = prove(fabric, lab.routing(fabric))
    assert proof.certified and proof.complete and proof.scope == "all"
    verdict = lab.ibdmchk(switches=True)
    assert not verdict.credit_loop and verdict.errors == () and verdict.paths > 0
    return lab.switch_lfts()


@pytest.mark.parametrize(("name", "engine", "switch", "port"), some_of(CASES, CASES[1:2]))
def test_a_cable_is_pulled_and_put_back(live, name, engine, switch, port):
    with live(FIXTURES[name].path, f"ibnue-{engine},no_fallback") as lab:
        before = certified_tables(lab, engine)
        lab.unlink(switch, port)
        without = certified_tables(lab, engine)
        guid = int(lab.fabric().switch_guid[lab.fabric().switch_name.index(switch)])
        assert port in before[guid].values() and port not in without[guid].values()
        lab.relink(switch, port)
        assert certified_tables(lab, engine) == before
        assert lab.opensm.errors == []
