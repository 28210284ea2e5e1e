import os
import subprocess
import sys
from pathlib import Path

import pytest
from campaigns import without_slow
from routing_cases import ANY_FABRIC
from strategies import random_fabric

from routing.engines import ENGINES
from routing.engines.base import EngineOptions, Objective, offers_of
from routing.topologies import generate

FABRICS = (
    random_fabric(7, switches=24, degree=4, cas=3, mixed_speeds=True, parallel=2, lmc=1, parts=2),
    generate("torus", ["4x3x3"], cas=2),
)
CASES = [{"vls": "auto"}, {"vls": 3}, {"objective": Objective.BISECTION}]
SUPPORTED = [
    (engine, options)
    for options in CASES
    for engine in ANY_FABRIC
    if options.keys() - {"vls"} <= set(offers_of(ENGINES[engine]).options)
]
# The engine auto runs engines that are cases of their own.
SLOW = [("auto", {"vls": 3})]
ROOT = Path(__file__).parents[3]
PROGRAM = """
import hashlib
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.topologies import generate
dragonfly, tree = generate("dragonfly", ["4", "2", "2", "9"]), generate("kary-ntree", ["3", "3"])
torus = generate("torus", ["5x5"]).without_links([0, 60])
hyperx = generate("hyperx", ["4x3"], cas=2, lmc=1).without_links([0, 10])
fabrics = {"ftree": tree, "dor": torus, "torus-2qos": torus, "hyperx": hyperx}
for name, engine in sorted(ENGINES.items()):
    if name == "chain":
        continue
    fabric = fabrics.get(name, dragonfly)
    for vls in ("auto", 7):
        routing = engine.route(fabric, EngineOptions(vls=vls, effort=0.1))
        print(name, hashlib.sha256(routing.lft.tobytes() + routing.sl.tobytes()).hexdigest())
"""


@pytest.mark.parametrize(("engine", "options"), without_slow(SUPPORTED, SLOW), ids=str)
def test_same_tables_at_any_number_of_threads(engine, options, same_tables):
    for fabric in FABRICS:
        one, other = [
            ENGINES[engine].route(fabric, EngineOptions(**options, effort=0.1, passes=2, threads=threads))
            for threads in (1, 3)
        ]
        assert same_tables(one, other)


def test_same_tables_whatever_python_hashes_by():
    output = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        output.add(run.stdout)
    assert len(output) == 1
    assert len(output.pop().splitlines()) == 2 * (len(ENGINES) - 1)  # chain needs a file of parts


@pytest.mark.parametrize("engine", ANY_FABRIC)
def test_another_seed_gives_other_tables(engine, same_tables):
    first, second = (ENGINES[engine].route(FABRICS[0], EngineOptions(effort=0.1, seed=seed)) for seed in (1, 2))
    assert not same_tables(first, second)
