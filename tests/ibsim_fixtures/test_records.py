"""Check the SLs in the file of the record plugin: they equal the answers of the SA and the switches, or are not
used.
"""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from campaigns import some_of
from lab_nets import net_text, ring
from shared_builds import plugin_build

from ibsim_fixtures import records
from ibsim_fixtures.installed_tables import installed_routing, service_levels, sl2vl
from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from ibsim_fixtures.processes import LabError
from ibsim_fixtures.pytest_plugin import require_programs
from ibsim_fixtures.records import INCLUDE, checked_records, parse_records, record_plugin, with_records


@pytest.fixture(scope="module")
def plugin(tmp_path_factory, request):
    require_programs(request.config)
    folder = tmp_path_factory.mktemp("both") / "plugin"
    shutil.copytree(plugin_build(tmp_path_factory), folder)
    return with_records(Plugin("ibnue", folder=folder), folder)


@pytest.mark.lab
@pytest.mark.parametrize("engine", some_of(["ibnue-nue", "lash"], ["lash"]))
def test_the_file_holds_what_the_sa_and_the_switches_answer(engine, plugin, tmp_path, monkeypatch):
    path = tmp_path / "free.net"
    path.write_text(net_text(7, ring(7), 2, ports=8))
    config = {"qos": True, "qos_sl2vl": "0,1,2,3,0,1,2,3,4,5,6,7,4,5,6,7", "sweep_on_trap": False}
    with Lab(path, routing_engine=f"{engine},no_fallback", plugin=plugin, config=config) as lab:
        for pulled in (False, True):
            if pulled:
                lab.unlink("sw2", 3)
            fabric = lab.fabric()
            found = checked_records(lab)
            assert found is not None and found.sweeps > pulled
            row = {lid: position for position, lid in enumerate(found.lids.tolist())}
            sls = lab.sls()
            assert {pair: int(found.sl[row[pair[0]], row[pair[1]]]) for pair in sls} == sls
            rows = lab.switch_sl2vl()
            reported = {(int(r["guid"]), int(r["in"]), int(r["out"])): tuple(r["vl"].tolist()) for r in found.rows}
            assert reported == {key: rows[key] for key in reported}
            routing, as_dumped = installed_routing(lab, fabric)
            assert as_dumped
            assert np.array_equal(routing.sl, service_levels(lab, fabric))
            assert np.array_equal(routing.sl2vl, sl2vl(lab, fabric))


@pytest.mark.lab
@pytest.mark.parametrize("what", some_of(["sl", "rows"], ["rows"]))
def test_a_file_that_the_answers_contradict_is_not_used(what, plugin, tmp_path, monkeypatch):
    path = tmp_path / "ring.net"
    path.write_text(net_text(5, ring(5), 2))
    with Lab(path, routing_engine="ibnue-nue,no_fallback", plugin=plugin, config={"qos": True}) as lab:
        right = checked_records(lab)
        wrong = getattr(right, what).copy()
        wrong.view(np.uint8)[...] = 3
        if what == "rows":
            wrong = right.rows.copy()
            wrong["vl"] = (wrong["vl"] + 1) % 8
        monkeypatch.setattr(records, "parse_records", lambda data: replace(right, **{what: wrong}))
        assert lab.records() is None
        fabric = lab.fabric()
        routing, _ = installed_routing(lab, fabric)
        assert np.array_equal(routing.sl, service_levels(lab, fabric))


@pytest.mark.lab
def test_a_lab_without_the_plugin_asks(tmp_path):
    path = tmp_path / "ring.net"
    path.write_text(net_text(4, ring(4)))
    with Lab(path) as lab:
        assert lab.records() is None


@pytest.mark.parametrize("cut", [0, 5, 23, 24, -1])
def test_a_file_that_was_cut_is_refused(cut):
    whole = b"ibnue-r1" + np.array([1, 2, 1, 0], "<u4").tobytes() + bytes(2 * 2 + 4 + 32)
    assert parse_records(whole).sl.shape == (2, 2)
    with pytest.raises(LabError, match="damaged"):
        parse_records(whole[:cut])
    with pytest.raises(LabError, match="damaged"):
        parse_records(b"other-r1" + whole[8:])


def test_the_plugin_comes_beside_another_one(tmp_path):
    if not (INCLUDE / "infiniband/opensm/osm_event_plugin.h").is_file():
        pytest.skip("apt install libopensm-dev")
    both = with_records(Plugin("ibnue", "--config x", tmp_path, {"A": "b"}), tmp_path)
    assert (both.name, both.options, both.folder) == ("ibnue ibnue-records", "--config x", tmp_path)
    assert (tmp_path / "libibnue-records.so").exists()
    assert record_plugin(tmp_path).name == "ibnue-records"
