"""Compute how many virtual channels (VLs in InfiniBand) a link needs if messages of one type wait for messages of
another type.

A node that answers requests accepts no further requests while its replies cannot leave.  So if replies wait behind
requests in the same buffers, messages deadlock although the routes are free of credit loops.  Therefore every type of a
chain (request before reply, and so on) gets separate escape channels.  A type needs as many escape channels as the
routes need to be free of credit loops.  Messages are routed fully adaptively on the remaining channels of a link,
the adaptive channels.  There are two possible uses of the adaptive channels:

- ``strict``: each type has its share of the adaptive channels.  The types use separate virtual networks.
- ``wide``: all types share the adaptive channels.  A message that is blocked there still has the escape channels of its
  type.

At each hop the routing function offers a message one of its type's escape channels, and all other channels that the
type may use.

Source: T. M. Pinkston, "Deadlock characterization and resolution in interconnection networks", section on
message-induced deadlock avoidance: 1 + (C/L - E_r) and 1 + (C - E_m), with C channels, a chain of L types, E_r channels
to escape routing-induced deadlock and E_m = L x E_r.  In that source, every type has the same E_r, and C/L may be a
fraction.  Here E_r may differ between types, and numbers of channels are integers.
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
class ChannelBudget:
    """Virtual channels of a link, divided among the message types of a chain (request, reply, and so on).

    Attributes
    ----------
    avoidance
        ``strict``: the types do not share channels; ``wide``: the types share all but their escape channels.
    channels
        Virtual channels of the link (C).
    escape
        Escape channels of each type (E_r), in the order of the chain.
    own
        Further channels that only one type may use, by type; all 0 if ``wide``.
    shared
        Channels that every type may use; 0 if ``strict``.
    """

    avoidance: Avoidance
    channels: int
    escape: tuple[int, ...]
    own: tuple[int, ...]
    shared: int

    @property
    def needed(self) -> int:
        """Return the total number of escape channels of all types (E_m).

        If the link has at least this number of channels, messages that wait for messages of another type cannot
        deadlock.
        """
        return sum(self.escape)

    @property
    def usable(self) -> tuple[int, ...]:
        """Return for each message type the number of channels that a message may choose from at any hop."""
        return tuple(1 + own + self.shared for own in self.own)

    @property
    def mean(self) -> Fraction:
        """Return the mean, over the message types, of the number of channels that a message may choose from.

        If all types have the same number of escape channels, the mean equals a formula of the paper that the module's
        docstring cites: 1 + (C/L - E_r) if ``strict``, 1 + (C - E_m) if ``wide``.  C is the number of channels, L the
        number of types, E_r the number of escape channels of each type, and E_m = L x E_r.
        """
        return Fraction(sum(self.usable), len(self.usable))


def channel_budget(channels: int, escape: Sequence[int], avoidance: Avoidance) -> ChannelBudget:
    """Divide the virtual channels of a link among message types, such that every type has channels to choose from at
    each hop.

    The types form a chain: messages of each type cause messages of the next type.  With the avoidance ``strict``, the
    channels beyond the escape channels are distributed round-robin, beginning with the first type.

    Parameters
    ----------
    channels
        Number of virtual channels of a link.
    escape
        Number of escape channels of each type, in the order of the chain: as many as the routes of the type need to be
        free of credit loops.
    avoidance
        ``strict`` (the types share no channels) or ``wide`` (the types share all but escape channels).

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
        return ChannelBudget(avoidance, channels, chain, (0,) * len(chain), spare)
    return ChannelBudget(avoidance, channels, chain, tuple(each + (n < more) for n in range(len(chain))), 0)


def channels_needed(escape: Sequence[int], avoidance: Avoidance, usable: int = 1) -> int:
    """Return how many virtual channels a link needs so that messages of every type may choose from ``usable`` channels
    at each hop.

    ``escape`` is the number of escape channels of each type.  With the avoidance ``strict``, the types share no
    channels.  With ``wide``, the types share all but escape channels.

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
            f"{', '.join(map(str, escape)) or 'no type'}: these are not escape channels of a chain of message types",
            remedy="give at least one type, and one escape channel or more for each",
        )
    return tuple(escape)
