"""Message types that depend on one another: how many channels they need, and how many a message may choose from.

A node that answers requests takes no further ones while its replies cannot leave.  So where replies wait behind
requests in the same buffers, messages lock although the routes are free of credit loops.  Avoidance gives every type of
a chain (request before reply, and so on) escape channels of its own, as many as the routes take to be free of credit
loops; it differs in who gets the other channels of a link, on which adaptive routes go as they like:

- ``strict``: each type its share of them.  The types are networks that have nothing in common.
- ``wide``: all types together.  A message that is stuck there still has the escape channels of its type.

Where a message stands, the routing function offers it one of its type's escape channels, and all others that it may
take.

Source: T. M. Pinkston, "Deadlock characterization and resolution in interconnection networks", section on
message-induced deadlock avoidance: 1 + (C/L - E_r) and 1 + (C - E_m), with C channels, a chain of L types, E_r channels
to escape routing-induced deadlock and E_m = L x E_r.  There, every type has the same E_r, and C/L may be a fraction;
here each type has an E_r of its own, and channels are whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from routing.errors import NotEnoughVLs, OptionError

Avoidance = Literal["strict", "wide"]
AVOIDANCES: tuple[Avoidance, ...] = ("strict", "wide")


@dataclass(frozen=True)
class Freedom:
    """What messages may choose from on a link.

    Attributes
    ----------
    avoidance
        ``strict`` or ``wide``.
    channels
        Virtual channels of the link (C).
    escape
        Escape channels of each type (E_r), in the order of the chain.
    own
        Further channels that only this type may take, by type; all 0 if ``wide``.
    shared
        Channels that every type may take; 0 if ``strict``.
    """

    avoidance: Avoidance
    channels: int
    escape: tuple[int, ...]
    own: tuple[int, ...]
    shared: int

    @property
    def needed(self) -> int:
        """Escape channels of all types together: the fewest channels with which no message locks (E_m)."""
        return sum(self.escape)

    @property
    def usable(self) -> tuple[int, ...]:
        """How many channels a message of each type may choose from, wherever it is."""
        return tuple(1 + own + self.shared for own in self.own)

    @property
    def mean(self) -> Fraction:
        """Of :attr:`usable`: the source's formula, if all types have the same number of escape channels."""
        return Fraction(sum(self.usable), len(self.usable))


def message_freedom(channels: int, escape: Sequence[int], avoidance: Avoidance) -> Freedom:
    """How many channels messages of each type may choose from.

    If ``strict``, channels beyond the escape channels are dealt out in turn, the first types of the chain first.

    Parameters
    ----------
    channels
        Virtual channels of a link.
    escape
        Escape channels of each type: as many as it takes to be free of credit loops.
    avoidance
        ``strict`` or ``wide``.

    Raises
    ------
    NotEnoughVLs
        There are fewer channels than escape channels.
    OptionError
        No types, or a type without an escape channel.
    """
    chain = _chain(escape)
    spare = channels - sum(chain)
    if spare < 0:
        raise NotEnoughVLs(sum(chain), channels)
    each, more = divmod(spare, len(chain))
    if avoidance == "wide":
        return Freedom(avoidance, channels, chain, (0,) * len(chain), spare)
    return Freedom(avoidance, channels, chain, tuple(each + (n < more) for n in range(len(chain))), 0)


def channels_needed(escape: Sequence[int], avoidance: Avoidance, usable: int = 1) -> int:
    """The fewest virtual channels with which a message of every type may choose from ``usable``.

    Raises
    ------
    OptionError
        No types, a type without an escape channel, or less than one channel to choose from.
    """
    chain = _chain(escape)
    if usable < 1:
        raise OptionError(f"a message cannot choose from {usable} channels", remedy="use 1 or more")
    return sum(chain) + (usable - 1) * (len(chain) if avoidance == "strict" else 1)


def _chain(escape: Sequence[int]) -> tuple[int, ...]:
    if not escape or min(escape) < 1:
        raise OptionError(
            f"{', '.join(map(str, escape)) or 'no type'}: these are no escape channels of a chain of message types",
            remedy="give at least one type, and one escape channel or more for each",
        )
    return tuple(escape)
