import pytest

from ibsim_fixtures.lab import Lab

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("engine", ["minhop", "dfsssp", "lash", "sssp", "dor"])
def test_tables_of_dump_and_switches_agree(ring4, engine):
    with Lab(ring4, routing_engine=f"{engine},no_fallback", config={"qos": True}) as lab:
        assert lab.sweep.engine == engine
        assert lab.sweep.errors == ()
        assert lab.sweep.routing_seconds < lab.sweep.seconds
        tables = lab.switch_lfts()
        assert sorted(tables) == [0x200000 + s for s in range(4)]
        assert all(sorted(table) == list(range(1, 9)) for table in tables.values())
        assert lab.dumped_lfts() == tables
        assert lab.ibsim.warnings == []


def test_unlink_reroutes_and_relink_brings_back(ring4):
    with Lab(ring4) as lab:
        before = lab.switch_lfts()
        sweep = lab.unlink_live("sw0", 2)
        assert sweep.engine == "minhop"
        cut = lab.switch_lfts()
        assert cut == lab.dumped_lfts()
        assert 2 not in cut[0x200000].values()
        lab.relink_live("sw0", 2)
        after = lab.switch_lfts()
        assert after == lab.dumped_lfts()
        assert sorted(after[0x200000]) == sorted(before[0x200000])
        assert 2 in after[0x200000].values()
