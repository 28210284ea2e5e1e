"""Route fabrics, and measure their all-to-all rate, for tests of rebalancing."""

from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.quality import all_to_all_share, channel_loads
from routing.reroute import Published

OPTIONS = EngineOptions(threads=1, effort=0.1)


def published(fabric, name, options=OPTIONS):
    """Route a fabric with the engine ``name``, and prove the tables."""
    routing = ENGINES[name].route(fabric, options)
    return Published(fabric, routing, prove(fabric, routing, threads=1))


def share(tables):
    """Return the all-to-all rate of published tables, as a fraction of the rate of the end ports."""
    return all_to_all_share(tables.fabric, channel_loads(tables.fabric, tables.routing, threads=1))
