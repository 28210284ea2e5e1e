"""Check that the SLs that the plugin dumps for OpenSM's engines equal the answers of the SA."""

import itertools

import numpy as np
import pytest
from waiting import until

from benchmarks.path_dump import path_dump_plugin
from ibsim_fixtures import mad_client
from ibsim_fixtures.catalogue import FIXTURES
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM
from routing.errors import EnvironmentProblem
from routing.formats.fabric_files import read_fabric
from routing.formats.path_sl import read, sl_from
from routing.formats.table_files import PATH_RECORDS

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("engine", ["nue", "lash"])
def test_the_dump_says_what_the_sa_answers(engine, tmp_path):
    net = FIXTURES["torus-5x4-double"].path
    settings = {"qos": True, "qos_max_vls": 8, "nue_max_num_vls": 8}
    with (
        Ibsim(net) as ibsim,
        OpenSM(ibsim, routing_engine=f"{engine},no_fallback", config=settings, plugin=path_dump_plugin(tmp_path)) as sm,
    ):
        dump = sm.folder / PATH_RECORDS
        until(dump.exists)
        fabric = read_fabric(net, guid2lid=sm.folder / "guid2lid")
        sl = read(dump, fabric)
        pairs = list(itertools.permutations(fabric.endport_lid.tolist(), 2))
        answers, _ = mad_client.ask(ibsim, sm_lid=sm_lid(fabric, ibsim), paths=pairs)
        row = {lid: fabric.switches + number for number, lid in enumerate(fabric.endport_lid.tolist())}
        assert answers == [int(sl_from(fabric, sl, row[source])[target]) for source, target in pairs]
        assert len(np.unique(answers)) > 1


def sm_lid(fabric, ibsim):
    port = ibsim.device(ibsim.sm_host).guid
    return int(fabric.endport_lid[np.flatnonzero(fabric.terminal_guid[fabric.endport_terminal] == port)[0]])


def test_missing_headers_name_their_package(tmp_path, monkeypatch):
    monkeypatch.setattr("ibsim_fixtures.records.INCLUDE", tmp_path)
    with pytest.raises(EnvironmentProblem, match="libopensm-dev"):
        path_dump_plugin(tmp_path)
