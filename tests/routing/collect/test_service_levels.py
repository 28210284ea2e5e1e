"""Check the handling of the SA's answers, with a stand-in for the SA.

The stand-in answers with whole tables, as the kernel assembles them.  ibsim does not do this.
"""

import numpy as np
import pytest

from routing.collect.mads import PathRecord
from routing.collect.service_levels import Sa, path_sls, wanted_paths
from routing.collect.umad import GET_TABLE
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.topologies import generate


class Tables:
    """Stand-in for the SA, which answers each query for a table with path records from a function of the source."""

    def __init__(self, records):
        self.records, self.asked = records, []

    def get(self, query, read):
        return self.get_all([query], read)[0]

    def get_all(self, queries, read, *, ahead=1):
        found = []
        for query in queries:
            assert query.method == GET_TABLE
            source = int.from_bytes(query.body[32 + 42 : 32 + 44], "big")
            self.asked.append(source)
            found.append((self.records(source),))
        return found


@pytest.fixture(scope="module")
def routed():
    fabric = generate("torus", ["3x3"])
    return fabric, ENGINES["updn"].route(fabric, EngineOptions(effort=0.05)).lft


def test_one_query_for_each_source_gives_the_sl_of_each_path(routed):
    fabric, lft = routed
    lids = list(range(1, len(fabric.lids)))

    def records(source):
        return [PathRecord(source, lid, (source + 3 * lid) % 16) for lid in lids if lid != source]

    umad, counted = Tables(records), []
    sl, how = path_sls(umad, Sa(1, 0), fabric, lft, counted.append)
    rows = np.concatenate([fabric.switch_lid, fabric.endport_lid]).astype(int)
    for row, source in enumerate(rows.tolist()):
        assert [sl[row, lid] for lid in lids] == [255 if lid == source else (source + 3 * lid) % 16 for lid in lids]
    assert how == "one query for each source"
    assert sorted(set(umad.asked)) == sorted(rows.tolist())
    assert sum(counted) == wanted_paths(fabric, lft).sum() == len(rows) * (len(rows) - 1)


def test_a_path_with_two_sls_or_without_an_answer_stays_unknown(routed):
    fabric, lft = routed
    first = int(fabric.switch_lid[0])

    def records(source):
        if source == first:
            return [
                PathRecord(source, 5, 1),
                PathRecord(source, 5, 2),
                PathRecord(source, 5, 1),
                PathRecord(source, 6, 3),
            ]
        return []

    sl, _ = path_sls(Tables(records), Sa(1, 0), fabric, lft, lambda _: None)
    assert (sl[0, 5], sl[0, 6], sl[0, 7]) == (255, 3, 255)
    assert (sl[1:] == 255).all()


def test_no_path_without_an_entry_is_asked_for(routed):
    fabric, lft = routed
    less = lft.copy()
    less[0] = 255
    wanted = wanted_paths(fabric, less)
    assert not wanted[0].any()
    assert wanted[1].any()
