"""Check the number of channels among which messages of several types may choose, against the published cases."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routing.deadlock.message_classes import channel_budget, channels_needed
from routing.errors import NotEnoughVLs, OptionError

ALPHA = (2, 2, 2, 2, 2, 2, 1)
"""Escape channels of each message type of the Alpha 21364: six types with two channels for a torus, and one type with
one.
"""

chains = st.lists(st.integers(1, 4), min_size=1, max_size=7)


def test_the_alpha_has_nineteen_channels_and_a_message_may_use_two():
    """Six of seven types have two escape channels and one adaptive channel.  The seventh type has the last of 19
    channels.
    """
    strict = channel_budget(19, ALPHA, "strict")
    assert strict.own == (1, 1, 1, 1, 1, 1, 0)
    assert strict.usable == (2, 2, 2, 2, 2, 2, 1)
    assert strict.needed == 13
    assert channels_needed(ALPHA[:6], "strict", usable=2) + 1 == 19
    wide = channel_budget(19, ALPHA, "wide")
    assert (wide.shared, set(wide.usable)) == (6, {7})


def test_two_networks_of_two_channels_are_enough_for_requests_and_replies_and_no_more():
    """This is the ring of four with four channels on each link."""
    assert channels_needed((2, 2), "strict") == channels_needed((2, 2), "wide") == 4
    for avoidance in ("strict", "wide"):
        assert channel_budget(4, (2, 2), avoidance).usable == (1, 1)
        with pytest.raises(NotEnoughVLs, match="6 VLs are needed, 4 may be used"):
            channel_budget(4, (2, 2, 2), avoidance)


@given(st.integers(1, 7), st.integers(1, 4), st.integers(0, 30))
def test_the_formulas_of_the_source(types, escape, spare):
    channels = types * escape + spare
    strict, wide = (channel_budget(channels, [escape] * types, how) for how in ("strict", "wide"))
    assert strict.mean == 1 + (Fraction(channels, types) - escape)
    assert wide.mean == 1 + (channels - types * escape)
    assert max(strict.usable) - min(strict.usable) <= 1
    assert all(a <= b for a, b in zip(strict.usable, wide.usable, strict=True))


@given(chains, st.integers(0, 20), st.sampled_from(["strict", "wide"]))
def test_every_channel_is_given_out_once(escape, spare, avoidance):
    freedom = channel_budget(sum(escape) + spare, escape, avoidance)
    assert freedom.needed + sum(freedom.own) + freedom.shared == freedom.channels


@given(chains, st.integers(1, 5), st.sampled_from(["strict", "wide"]))
def test_needed_is_the_fewest(escape, usable, avoidance):
    fewest = channels_needed(escape, avoidance, usable)
    assert min(channel_budget(fewest, escape, avoidance).usable) == usable
    if fewest > sum(escape):
        assert min(channel_budget(fewest - 1, escape, avoidance).usable) < usable


@pytest.mark.parametrize("escape", [(), (2, 0), (1, -1)])
def test_a_chain_without_types_or_escape_is_refused(escape):
    for ask in (lambda: channel_budget(9, escape, "wide"), lambda: channels_needed(escape, "strict")):
        with pytest.raises(OptionError, match="not escape channels of a chain"):
            ask()
    with pytest.raises(OptionError, match="choose from 0"):
        channels_needed((1,), "wide", usable=0)
