import pytest

from routing.errors import OptionError
from routing.sweep.tasks import Shard, Target


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("nue", {}),
        ("nue:vls=4,effort=0.5", {"vls": 4, "effort": 0.5}),
        ("nue:vls=min", {"vls": "min"}),
        ("nue:reversible,first-vl=2", {"reversible": True, "first_vl": 2}),
        ("sssp:minimal=false", {"minimal": False}),
        ("updn:objective=bisection,passes=3", {"objective": "bisection", "passes": 3}),
    ],
)
def test_targets(text, options):
    target = Target.parse(text)
    assert dict(target.options) == options
    assert Target.parse(str(target)) == target
    reported = target.engine_options(seed=3)
    assert reported.seed == 3
    assert reported.threads == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dfssp", "did you mean dfsssp"),
        ("nue:vls=many", r"'many' is not a value of vls \(use 1 to 15, min or auto, as in nue:vls=4,effort=0.1\)"),
        ("nue:vls=99", "'99' is not a value of vls .use 1 to 15, min or auto"),
        ("nue:effort=x", "'x' is not a value of effort .use 0 to 1000, as in"),
        ("updn:partition=x", "'x' is not a valid partition .use metis or none"),
        ("nue:threads=4", "no option 'threads'"),
        ("nue:effort=-1", "effort"),
        ("nue:reversible=perhaps", "'perhaps' is not a value of reversible .use true or false"),
        ("nue:", None),
    ],
)
def test_targets_that_are_none(text, expected):
    if expected is None:
        assert Target.parse(text) == Target("nue")
        return
    with pytest.raises(OptionError, match=expected):
        Target.parse(text)


def test_ids_tell_all_that_matters_apart(plan):
    made = plan(("ring:4", "ring:5"), ("updn", "nue", "nue:vls=2"), links=2, seeds=(1, 2), modes=("fresh", "full"))
    assert len({task.id for task in made.tasks}) == len(made.tasks) == 2 * 3 * 3 * 2 * 2


def test_ids_do_not_depend_on_the_version_or_machine(plan):
    """An ID in a ledger must mean the same task on any day, on any machine and in any version."""
    first, last = plan(("ring:3",), ("nue:vls=2",), switches=1).tasks
    assert (first.id, last.id) == ("1bfa0c20c9eeb90303ea", "acf939b400a17b8e6f48")


def test_shards_are_a_partition(plan):
    tasks = plan(("torus:3x3", "ring:5"), ("updn", "nue"), links="all").tasks
    shards = [{task.id for task in tasks if Shard(n, 4).has(task)} for n in (1, 2, 3, 4)]
    assert sum(map(len, shards)) == len(tasks) == len(set.union(*shards))
    assert all(shards)


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "a/b", "-1/4", "1/0"])
def test_shards_that_are_none(text):
    with pytest.raises(OptionError, match="not a shard"):
        Shard.parse(text)
