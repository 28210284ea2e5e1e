"""Links that go and come back."""

import pytest
from strategies import ring_fabric

from routing.errors import OptionError
from routing.faults import Event, Flapping, every_link, flapping

LINKS = tuple(every_link(ring_fabric(5)))


def test_states_follow_the_events():
    a, b, *_ = LINKS
    events = (Event(1.0, 1, True), Event(2.0, 0, True), Event(2.5, 1, False), Event(9.0, 0, False))
    assert list(Flapping((a, b), events).states()) == [(1.0, (b,)), (2.0, (a, b)), (2.5, (a,)), (9.0, ())]


def test_one_moment_is_one_state():
    a, b, *_ = LINKS
    both = Flapping((a, b), (Event(1.0, 0, True), Event(1.0, 1, True)))
    assert list(both.states()) == [(1.0, (a, b))]


def test_random_flapping_is_restored_at_the_end():
    flaps = flapping(LINKS, seed=4, seconds=60.0, up=5.0, down=2.0)
    assert flaps == flapping(LINKS, seed=4, seconds=60.0, up=5.0, down=2.0)
    states = list(flaps.states())
    assert len(states) > 20
    assert states[-1][1] == ()
    assert max(len(lasting) for _, lasting in states) > 1
    assert all(0 < seconds <= 60.0 for seconds, _ in states)
    assert [seconds for seconds, _ in states] == sorted(seconds for seconds, _ in states)


def test_what_cannot_be():
    with pytest.raises(OptionError, match="is up already"):
        Flapping(LINKS, (Event(1.0, 0, False),))
    with pytest.raises(OptionError, match="is down already"):
        Flapping(LINKS, (Event(1.0, 0, True), Event(2.0, 0, True)))
    with pytest.raises(OptionError, match="an event at 1 s after one at 2 s"):
        Flapping(LINKS, (Event(2.0, 0, True), Event(1.0, 1, True)))
    with pytest.raises(OptionError, match="over 0"):
        flapping(LINKS, seed=1, seconds=0.0)
