"""Check that the log states changes of tables correctly, whichever program wrote the switches before."""

from collections import Counter

import pytest
from campaigns import some_of
from histories import ANY_ORDER, ROUTED, History
from waiting import until

pytestmark = pytest.mark.lab


@pytest.fixture
def history(plugin_folder, nets, tmp_path):
    """Return a function that starts a history on a torus."""

    def start(folder=".", **options):
        position = tmp_path / folder
        position.mkdir(exist_ok=True)
        return History(nets("torus", "4x4", cas=1), plugin_folder, position, **options)

    return start


def reports_truth(run):
    assert run.complaints == []
    assert run.counts["counts compared"]


@pytest.mark.parametrize("kill", some_of([False, True], [True]))
def test_a_standby_with_a_state_of_its_own_takes_over(history, kill):
    with history() as run:
        run.start(roots="sw0.0")
        run.hand_over(roots="sw2.2", kill=kill)
        assert run.counts["a mixture has a loop"] and not run.counts[f"said: {ANY_ORDER}"]
        run.hand_over(roots="sw0.0", fault=True)
        reports_truth(run)


@pytest.mark.parametrize("fallback", some_of(["root updn", "ibnue-updn"], ["ibnue-updn"]))
def test_opensms_own_engines_come_in_between(history, fallback):
    with history() as run:
        run.start()
        run.restart(broken=True, routing_engine=fallback)
        assert "ibnue-updn routed nothing" in run.log
        assert ("updn tables configured" if "root" in fallback else "minhop tables configured") in run.log
        run.sweep("back again", run.configure)
        reports_truth(run)


def test_a_restart(history):
    with history() as run:
        run.start()
        until(run.state_path.exists)
        run.restart(fault=True)
        assert "state read from" in run.log
        run.restart(kill=True)
        reports_truth(run)


def test_a_stale_state(history, tmp_path):
    with history() as run:
        run.start(roots="sw0.0")
        run.keep_state(tmp_path / "old.npz")
        run.restart(roots="sw2.2")
        run.end()
        (tmp_path / "old.npz").replace(run.state_path)
        run.start(roots="sw0.0")
        assert "tables unchanged" in run.log and run.counts["a mixture has a loop"]
        reports_truth(run)


def test_opensm_is_killed_before_the_state_is_saved(history):
    with history() as run:
        run.start(roots="sw0.0")
        until(run.state_path.exists)
        run.restart(roots="sw2.2", state=False)
        run.restart(roots="sw0.0", kill=True)
        assert "tables unchanged" in run.log
        reports_truth(run)


def test_two_engines_in_turn(history):
    with history() as run:
        both = "ibnue-updn,ibnue-nue,no_fallback"
        run.start(routing_engine=both)
        run.sweep("a fault", run.pull)
        run.restart(routing_engine=both, broken=True, fault=True)
        run.sweep("back again", run.configure)
        reports_truth(run)


def test_sls_count_as_well(history):
    with history(engine="dfsssp", vls=8) as run:
        run.start()
        run.sweep("a fault", run.pull)
        run.restart(kill=True, fault=True)
        run.hand_over()
        run.restart(broken=True, routing_engine="ibnue-dfsssp")
        run.sweep("back again", run.configure)
        reports_truth(run)


@pytest.mark.parametrize("engine", some_of(["nue", "dfsssp"], ["nue"]))
def test_switches_return_with_their_tables(history, engine):
    with history(engine=engine, vls=8) as run:
        run.start()
        run.sweep("lost", lambda: run.lose("sw1.1"))
        run.sweep("another", lambda: run.lose("sw3.0"))
        for _ in range(2):
            run.sweep("back", run.put_back)
        assert run.counts["counts compared"] == 5 and "SLs in use are unknown" not in run.log
        reports_truth(run)


LFT_ATTRIBUTE = 25


def test_a_switch_that_does_not_answer_makes_the_base_unknown(history):
    with history() as run:
        run.start(roots="sw0.0")
        run.end()
        run.ibsim.error("sw1.1", 100, attribute=LFT_ATTRIBUTE)
        run.start_unheard(roots="sw2.2", state=False)
        unknown = "base unknown: 32 entries of 1 switch (sw1.1); written "
        assert until(lambda: unknown in run.log)
        assert until(lambda: f"{unknown}at once" in run.log)  # this occurs in the second sweep at the latest
        assert ANY_ORDER not in run.log and "any-order" not in run.log
        run.ibsim.error("sw1.1", 0)
        until(lambda: "SUBNET UP" in run.log)
        run.sweep("a fault", run.pull)
        reports_truth(run)


def test_no_tables_are_read_at_a_cold_start(history):
    with history() as run:
        run.ibsim.error("sw1.1", 100, attribute=LFT_ATTRIBUTE)
        run.start_unheard(roots="sw0.0")
        first = until(lambda: ROUTED.search(run.log))[0]
        assert "512 entries change in the switches; multicast" in first
        # The links are active after the first sweep, so the next sweep reads the entries of the switch that was not
        # written.
        assert until(lambda: "base unknown: 32 entries of 1 switch (sw1.1)" in run.log)


STEPS = 5


def wander(run, steps):
    """Take random steps: faults, hand-overs, fallbacks, restarts, kills, and old state files."""
    roots, old = ("sw0.0", "sw2.2", "sw1.3", None), run.folder / "old.npz"
    draw = run.random
    run.start(roots=draw.choice(roots))
    for _ in range(steps):
        kind = draw.choice(
            ["pull", "put back", "hand over", "fall back", "restart", "stale", "no state", "other roots"]
        )
        some = {"roots": draw.choice(roots), "fault": draw.random() < 0.5, "kill": draw.random() < 0.5}
        if kind == "pull":
            run.sweep(kind, run.pull)
        elif kind == "put back":
            run.sweep(kind, run.put_back)
        elif kind == "other roots":
            run.configure(roots=some["roots"])
            run.sweep(kind)
        elif kind == "hand over":
            run.hand_over(**some)
        elif kind == "fall back":
            run.restart(broken=True, routing_engine=draw.choice(["root updn", f"ibnue-{run.engine}"]), **some)
            run.configure(roots=some["roots"])
            run.sweep("back again")
        elif kind == "stale" and old.exists():
            run.end(kill=some["kill"])
            old.replace(run.state_path)
            run.start(roots=some["roots"])
        else:
            if kind == "stale":
                run.keep_state(old)
            run.restart(state=kind != "no state", **some)


def wander_often(history, histories, first=0):
    """Run some histories, and return the sum of their counts."""
    counts = Counter()
    for seed in range(first, first + histories):
        engine, vls = (("updn", 1), ("dfsssp", 8), ("nue", 1))[seed % 3]
        with history(engine=engine, vls=vls, seed=seed, folder=f"h{seed}") as run:
            wander(run, STEPS)
            assert run.complaints == [], f"history {seed}"
            counts += run.counts
    counts["histories"] = histories
    return counts


@pytest.mark.slow
def test_a_few_histories(history):
    # This history has the engine nue.  In every run, the tests above have histories of updn, dfsssp and nue.
    counts = wander_often(history, 1, first=2)
    assert counts["counts compared"] > STEPS


@pytest.mark.slow
def test_many_histories(history, capsys):
    counts = wander_often(history, 200, first=100)
    with capsys.disabled():
        print("", *(f"{count:6} {what}" for what, count in sorted(counts.items())), sep="\n")  # noqa: T201
