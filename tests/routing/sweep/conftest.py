import pytest

from routing.sweep.executors import Processes
from routing.sweep.spec import Block, expand
from routing.sweep.work import OFFLINE, Batch, pack
from routing.topologies import generate


def read(text):
    name, _, rest = text.partition(":")
    return generate(name, rest.split(","))


@pytest.fixture
def plan():
    """Make the tasks of a block; the fabrics are generators."""

    def make(fabrics=("torus:3x3",), engines=("updn",), **more):
        return expand([Block(tuple(fabrics), tuple(engines), **more)], read)

    return make


@pytest.fixture
def packer():
    """Make what packs tasks into batches for a runner."""

    def make(plan, runner=OFFLINE, timeout=None, **settings):
        told = tuple((key, str(value)) for key, value in settings.items())
        return lambda tasks: Batch(
            pack(plan.fabrics[tasks[0].digest]), tuple(tasks), runner, told, (timeout,) * len(tasks)
        )

    return make


@pytest.fixture
def enough(request):
    """Seconds in which a task ends that does not hang; as many times more as the tests are given by --timeout."""
    usual = float(request.config.getini("timeout"))
    return 5.0 * max(1.0, float(request.config.getoption("timeout") or 0.0) / usual)


@pytest.fixture(scope="module")
def crew():
    """Two worker processes."""
    workers = Processes(2)
    yield workers
    workers.close()
