"""Every link of every fixture fabric, one after the other: never many changes, never a weaker proof, and home again."""

import numpy as np
import pytest

from ibsim_fixtures.catalogue import FIXTURES
from routing.deadlock.certificate import check_certificate
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.formats.fabric_files import read_fabric
from routing.reroute import Published, reroute

OPTIONS = EngineOptions(threads=1, effort=0.1)
MOST_CHANGES = 3


def strength_of(proof):
    """The more, the better; what a repair may not lower."""
    return {None: 0, "forward": 1, "reversible": 2}[proof.strength], proof.scope == "all"


@pytest.mark.parametrize("engine", ["nue", "dfsssp", "lash", "updn"])
def test_no_link_changes_more_than_three_entries_for_one(engine):
    """No repair ends in a fresh run, either."""
    links = 0
    for fixture in FIXTURES.values():
        fabric = read_fabric(fixture.path)
        routing = ENGINES[engine].route(fabric, OPTIONS)
        home = Published(fabric, routing, prove(fabric, routing, threads=1))
        for link in np.unique(fabric.channels.link).tolist():
            less = fabric.without_links([link])
            found = reroute(ENGINES[engine], OPTIONS, home, less, home=home)
            assert found.changed <= MOST_CHANGES * found.broken, (fixture.name, link, found.reason)
            assert found.how in ("repaired", "unchanged"), (fixture.name, link, found.reason)
            assert strength_of(found.proof) >= strength_of(home.proof), (fixture.name, link, found.reason)
            proof = prove(less, found.routing, threads=1)
            assert proof.complete
            assert strength_of(proof) >= strength_of(found.proof)
            check_certificate(less, found.routing, found.proof.certificate, threads=1)
            back = reroute(ENGINES[engine], OPTIONS, Published(less, found.routing, found.proof), fabric, home=home)
            assert np.array_equal(back.routing.lft, home.routing.lft)
            assert np.array_equal(back.routing.sl, home.routing.sl)
            links += 1
    assert links == sum(len(np.unique(read_fabric(f.path).channels.link)) for f in FIXTURES.values())
