"""Check that the simulator refuses values that are too large for it, and takes very long times correctly."""

from dataclasses import replace

import numpy as np
import pytest
from in_one_test import cases_in_one_test
from sim_cases import PACKET, fig4_simulation

from routing.errors import InputError
from routing.simulate.options import LONGEST, Breaker, Pauses, Remedies, Remedy, Switching, lifetime_ticks
from routing.simulate.state import StopReason

LOOP, DEADLOCK = Remedy(breaker=Breaker.LOOP, detect=100), Remedy(breaker=Breaker.DEADLOCK, detect=100)
HUGE = 10**30


@cases_in_one_test("name", ["hoq", "repeat", "release", "detect"])
@cases_in_one_test("value", [-1, LONGEST + 1, (1 << 63) - 1, HUGE, 1.5, "7"])
def test_times_of_a_port_are_ticks_that_can_be_counted(name, value):
    with pytest.raises(InputError, match=f"{name} of a remedy is "):
        fig4_simulation(True, 4, remedies=Remedies(replace(LOOP, **{name: value})))


@pytest.mark.parametrize(
    ("remedies", "expected"),
    [
        (Remedies(replace(LOOP, repeat=0)), "repeat of a remedy is 0"),
        (Remedies(replace(LOOP, detect=0)), "a breaker needs the time after which it suspects a port"),
        (Remedies(leaf=Remedy(stall_count=1 << 40)), "stall_count of a remedy is 1099511627776"),
        (
            Remedies(replace(DEADLOCK, extra=2047)),
            "Deadlock Breaker adds is 2047 .use a whole number from 2048",
        ),
        (Remedies(replace(DEADLOCK, extra=1 << 40)), "room that Deadlock Breaker adds is 1099511627776"),
        (Remedies(LOOP, lifetime=(1 << 63) - 1), "lifetime of remedies is 9223372036854775807"),
        (Remedies(LOOP, sample=0), "sample of remedies is 0"),
        (Remedies(LOOP, control_delay=HUGE), "control_delay of remedies is 1000000000"),
        (Remedies(LOOP, rounds=1 << 40), "rounds of remedies is 1099511627776"),
        (Remedies(LOOP, release_packets=1 << 15), "release_packets of remedies is 32768"),
    ],
)
def test_remedies_that_cannot_be(remedies, expected):
    with pytest.raises(InputError, match=expected):
        fig4_simulation(True, 4, remedies=remedies)


@pytest.mark.parametrize(
    ("switching", "expected"),
    [
        (Switching(seed=1 << 63), "seed is 9223372036854775808"),
        (Switching(fcp_period=-1), "fcp_period is -1"),
        (Switching(pauses=Pauses(HUGE, 1)), "xoff of pauses is 1000000000"),
        (Switching(pauses=Pauses(9.5, 1)), "xoff of pauses is 9.5"),
    ],
)
def test_switching_that_cannot_be(switching, expected):
    with pytest.raises(InputError, match=expected):
        fig4_simulation(True, 4, switching=switching)


def test_the_longest_lifetimes_drop_nothing():
    """In an earlier version, a sum overflowed, and every packet was dropped at once."""
    remedies = Remedies(Remedy(hoq=LONGEST, stall_count=1), lifetime=LONGEST)
    simulation = fig4_simulation(True, 4, remedies=remedies)
    assert simulation.run(200 * PACKET, stop_at_standstill=True).reason is StopReason.STANDSTILL
    assert simulation.wait_graph().deadlocks
    assert simulation.totals()["dropped"] == 0


@pytest.mark.parametrize("remedy", [LOOP, DEADLOCK])
@pytest.mark.parametrize("detect", [True, False])
def test_the_longest_breakers_do_nothing(remedy, detect):
    """Detection or messages take longer than the run, so the ring locks as it does without a breaker."""
    remedies = Remedies(replace(remedy, detect=LONGEST)) if detect else Remedies(remedy, control_delay=LONGEST)
    simulation = fig4_simulation(True, 4, remedies=remedies)
    simulation.run(2000 * PACKET)
    assert simulation.totals()["dropped"] == 0
    assert simulation.wait_graph().deadlocks


def test_invalid_arguments_of_a_run_are_refused():
    simulation = fig4_simulation(True, 4, remedies=Remedies(Remedy(hoq=100)))
    simulation.run(300 * PACKET)
    for log in (-1, -HUGE):
        with pytest.raises(InputError, match="the log has no row"):
            simulation.log(log)
    assert len(simulation.log()) > 0
    assert simulation.log(HUGE).shape == (0, 6)
    for events in (-1, HUGE):
        with pytest.raises(InputError, match="more events"):
            simulation.run(simulation.now + 1, events=events)
    for at in (-1, HUGE):
        with pytest.raises(InputError, match="there is no tick"):
            simulation.stop_flow(0, at)
    for level in (16, 255):
        with pytest.raises(InputError, match=f"SL {level} is over 15"):
            simulation.set_sl(np.full_like(simulation.network.arrays.sl, level))
    simulation.set_sl(np.full_like(simulation.network.arrays.sl, 15))
    simulation.run(600 * PACKET)
    for tick in (0.0, -1e-9, float("nan")):
        with pytest.raises(InputError, match="takes no time"):
            lifetime_ticks(3, tick)
