import pytest
from waiting import AMPLE

from routing.sweep.executors import Processes
from routing.sweep.spec import Block, expand
from routing.sweep.work import OFFLINE, Batch, pack
from routing.topologies import generate


def read(text):
    name, _, rest = text.partition(":")
    return generate(name, rest.split(","))


@pytest.fixture
def plan():
    """Return a function that makes the tasks of a block, whose fabrics come from generators."""

    def make(fabrics=("torus:3x3",), engines=("updn",), **more):
        return expand([Block(tuple(fabrics), tuple(engines), **more)], read)

    return make


@pytest.fixture
def packer():
    """Return a function that packs tasks into a batch for a runner.  If a task is fatal, only this task has the time
    limit.
    """

    def make(plan, runner=OFFLINE, timeout=None, **settings):
        reported = tuple((key, str(value)) for key, value in settings.items())

        def limit(task):
            return timeout if timeout is None or settings.get("fatal") in (None, task.fault) else AMPLE

        return lambda tasks: Batch(
            pack(plan.fabrics[tasks[0].digest]), tuple(tasks), runner, reported, tuple(map(limit, tasks))
        )

    return make


@pytest.fixture(scope="module")
def crew():
    """Yield two worker processes."""
    workers = Processes(2)
    yield workers
    workers.close()
