import pytest
from lab_nets import net_text, ring

from ibsim_fixtures.pytest_plugin import require_programs


@pytest.fixture(autouse=True)
def _programs(request):
    if request.node.get_closest_marker("lab"):
        require_programs(request.config)


@pytest.fixture
def net(tmp_path):
    """Return a function net(switches, links), which writes a net file and returns its path."""

    def write(switches, links, cas=1, name="fabric.net", **more):
        path = tmp_path / name
        path.write_text(net_text(switches, links, cas, **more))
        return path

    return write


@pytest.fixture
def ring4(net):
    return net(4, ring(4))
