import pytest
from campaigns import some_of
from plugin_lab import ample_timeouts, expected_lfts, logged, sweep_options
from waiting import until

from ibsim_fixtures.lab import Lab
from ibsim_fixtures.opensm import Plugin
from routing.engines import ENGINES

pytestmark = pytest.mark.lab


FABRICS = (("torus", ["4x4x4"], {"cas": 4}), ("kary-ntree", ["4", "3"], {}))
CASES = [(*fabric, lmc) for fabric in FABRICS for lmc in (0, 2)]


@pytest.mark.parametrize(("name", "args", "options", "lmc"), some_of(CASES, [CASES[1], CASES[2]]))
def test_switches_hold_what_the_engine_makes_of_the_fabric_as_the_tools_see_it(live, nets, name, args, options, lmc):
    with live(nets(name, *args, **options), "ibnue-updn,no_fallback", config={"lmc": lmc}) as lab:
        assert lab.sweep is not None and lab.sweep.engine == "ibnue-updn"
        fabric = lab.fabric()
        routing = ENGINES["updn"].route(fabric, sweep_options())
        assert lab.switch_lfts() == expected_lfts(fabric, routing)
        assert logged(lab, r"fabric ([0-9a-f]{12})\b")[-1] == fabric.digest[:12]
        assert lab.opensm.errors == []


def test_names_of_files_may_have_any_characters_in_any_locale(plugin_folder, nets, tmp_path, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    folder = tmp_path / "Größe"
    folder.mkdir()
    (folder / "ibnue.toml").write_text(ample_timeouts(f"state_file = '{folder}/Zustand ß'"))
    plugin = Plugin("ibnue", options=f"--config {folder}/ibnue.toml", folder=plugin_folder)
    with Lab(nets("ring", "4", cas=1), routing_engine="ibnue-updn,no_fallback", plugin=plugin) as lab:
        assert lab.sweep.engine == "ibnue-updn" and lab.opensm.errors == []
        until((folder / "Zustand ß").exists)
