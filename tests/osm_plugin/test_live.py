import pytest
from plugin_lab import expected_lfts, logged, sweep_options

from routing.engines import ENGINES

pytestmark = pytest.mark.lab


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [("torus", ["4x4x4"], {"cas": 4}), ("kary-ntree", ["4", "3"], {})],
)
@pytest.mark.parametrize("lmc", [0, 2])
def test_switches_hold_what_the_engine_makes_of_the_fabric_as_the_tools_see_it(live, nets, name, args, options, lmc):
    with live(nets(name, *args, **options), "ibnue-updn,no_fallback", config={"lmc": lmc}) as lab:
        assert lab.sweep is not None and lab.sweep.engine == "ibnue-updn"
        fabric = lab.fabric()
        routing = ENGINES["updn"].route(fabric, sweep_options())
        assert lab.switch_lfts() == expected_lfts(fabric, routing)
        assert logged(lab, r"fabric ([0-9a-f]{12})\b")[-1] == fabric.digest[:12]
        assert lab.opensm.errors == []
