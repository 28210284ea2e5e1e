"""Small random networks, flows and remedies for the tests of the simulator, each drawn from a random.Random."""

from dataclasses import replace

from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.simulate.network import Timing, build_network
from routing.simulate.options import Arbitration, Breaker, Inputs, Remedies, Remedy, Switching, VLArb
from routing.simulate.traffic import Flow, Pattern, Process
from routing.topologies import generate

TOPOLOGIES = ("ring:3", "ring:4", "ring:5", "mesh:2x2", "torus:3x3", "kary-ntree:2,2")
ENGINE_VLS = {"minhop": (1, 2, 3), "updn": (1, 2, 3), "dfsssp": (4,)}
TABLES = VLArb(((1, 3),), ((0, 2), (1, 4), (2, 1), (3, 9)), 1)


def any_flow(rng, fabric):
    lids = tuple(int(lid) for lid in fabric.endport_lid)
    source = rng.randrange(fabric.endports)
    others = [lid for lid in lids if lid != lids[source]]
    return Flow(
        source, lids, Pattern(rng.randrange(3)), Process(rng.randrange(5)),
        bytes=rng.randint(1, 600), messages=rng.choice([None, 3, 20]), window=rng.choice([None, None, 1, 2, 7]),
        interval=rng.uniform(1, 30), probability=rng.uniform(0.05, 1), burst=rng.uniform(1, 4), gap=rng.uniform(0, 50),
        hot=tuple(others[:2]), hot_share=0.5, start=rng.randrange(20), stop=rng.choice([1 << 62, 150]),
        trace=tuple(sorted((rng.randrange(200), rng.choice(others), rng.randint(1, 500)) for _ in range(5))),
    )  # fmt: skip


def any_network(rng, blocks):
    name, _, size = rng.choice(TOPOLOGIES).partition(":")
    fabric = generate(name, size.split(","), **({} if name == "kary-ntree" else {"cas": 1}))
    engine = rng.choice(list(ENGINE_VLS))
    routing = ENGINES[engine].route(fabric, EngineOptions(vls=rng.choice(ENGINE_VLS[engine]), threads=1, effort=0.05))
    buffer = blocks * rng.choice([1, 2, 5])
    timing = Timing(1.0, rng.choice([1, 2, 9]), rng.choice([0, 1, 3]), rng.choice([1.0, 2.5, 0.7]), buffer)
    return build_network(fabric, routing, timing)


def any_behaviour(rng, blocks):
    tables = rng.choice([None, None, replace(TABLES, limit=rng.choice([0, 1, 255]))])
    arbitrations = [kind for kind in Arbitration if tables is None or kind is not Arbitration.CROSSBAR]
    switching = Switching(
        rng.choice(arbitrations), Inputs(rng.randrange(2)), rng.choice([0, 0, 7, 30]), tables,
        rng.randrange(1000), speedup=rng.choice([0, 1, 1, 2]),
    )  # fmt: skip
    remedy = Remedy(
        hoq=rng.choice([0, 0, 20, 60]), stall_count=rng.choice([0, 1, 3]), breaker=Breaker(rng.choice([0, 0, 1, 2])),
        detect=rng.choice([10, 40]), repeat=rng.choice([3, 8]), release=rng.choice([5, 40]), extra=blocks * 64,
    )  # fmt: skip
    return switching, Remedies(
        remedy, lifetime=rng.choice([0, 0, 0, 100]), sample=rng.choice([1, 4]), control_delay=rng.choice([1, 5]),
        release_packets=rng.choice([1, 3]), move_others=rng.random() < 0.5, rounds=rng.choice([0, 2, 5]),
    )  # fmt: skip
