import pytest

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.policy import apply_rules, loop_channels, port_facts, read_policy
from routing.topologies import generate


@pytest.fixture(scope="session")
def ring():
    """Return a ring of five with two CAs at each switch, and tables with a loop."""
    fabric = generate("ring", ["5"], cas=2)
    return fabric, ENGINES["minhop"].route(fabric, EngineOptions(vls=1))


@pytest.fixture
def write(tmp_path):
    """Return a function that writes rules into a file, and returns the path of the file."""

    def writer(text):
        (tmp_path / "rules.toml").write_text(text)
        return tmp_path / "rules.toml"

    return writer


@pytest.fixture
def applied(ring, write):
    """Return a function that applies rules to the ring, whose loops are known."""

    def layer(text, *, fabric=None, routing=None, **options):
        fabric = ring[0] if fabric is None else fabric
        routing = ring[1] if routing is None else routing
        return apply_rules(
            read_policy(write(text)), fabric, port_facts(fabric, loop_channels(fabric, routing)), **options
        )

    return layer
