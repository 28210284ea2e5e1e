"""Describe the faults of mixed tables for reports: credit loops, forwarding loops, dropped packets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from routing.cdg.certificate import Scope
from routing.deadlock.mixed import Bytes, Mixture, leads_nowhere
from routing.deadlock.traffic_sources import Sender, senders_at, service_level
from routing.deadlock.witness import Traffic, Turn
from routing.fabric import Fabric
from routing.numerals import count_noun
from routing.tables import Provenance, Routing, SlToVl

Table = Literal["old", "new", "both"]
"""Name of the tables that hold an entry: the old tables, the new tables, or both."""
At = tuple[int, int]
"""A virtual channel: (channel, VL)."""


@dataclass(frozen=True)
class MixedTurn:
    """A channel of a credit loop over mixed tables, and traffic that uses this channel and the next channel of the
    loop.

    Attributes
    ----------
    turn
        The channel, and the traffic.
    entry
        Tables (old, new or both) with the LFT entry that sends the traffic into the channel: the entry of the switch
        where the channel begins.
    following
        Tables (old, new or both) with the LFT entry that sends the traffic from the channel into the loop's next
        channel: the entry of the switch where the channel ends.
    """

    turn: Turn
    entry: Table
    following: Table

    def as_object(self) -> dict[str, Any]:
        """Return a dictionary for JSON: the channel, its traffic, and the attributes ``entry`` and ``following``."""
        return {**self.turn.as_object(), "entry": self.entry, "following": self.following}

    def __str__(self) -> str:
        return f"{self.turn}, by the {_words(self.entry)} there and the {_words(self.following)} at {self.turn.peer}"


@dataclass(frozen=True)
class MixedLoop:
    """A credit loop that can form while some switches have old entries and other switches have new entries.

    Attributes
    ----------
    turns
        The channels; each channel depends on the next channel, the last channel on the first channel.
    replies
        Whether reply traffic is included.
    scope
        "endports" or "all", see :class:`~routing.deadlock.witness.CreditLoop`.
    looping
        Whether the loop can form only with packets that are in a transient forwarding loop.
    """

    turns: tuple[MixedTurn, ...]
    replies: bool
    scope: Scope
    looping: bool

    def __len__(self) -> int:
        return len(self.turns)

    def describe(self) -> list[str]:
        """Return lines to print: a summary, then one line per channel."""
        vls = sorted({turn.turn.vl for turn in self.turns})
        where = f"VL {vls[0]}" if len(vls) == 1 else f"VLs {', '.join(map(str, vls))}"
        whose = "requests and their replies" if self.replies else "requests"
        whose += " (switch-to-switch traffic included)" if self.scope == "all" else ""
        whose += ", some of them in a forwarding loop" if self.looping else ""
        head = f"credit loop of {count_noun(len(self.turns), 'channel')} on {where} while tables are mixed"
        return [f"{head}, closed by {whose}:", *(f"  {turn}" for turn in self.turns)]


@dataclass(frozen=True)
class ForwardingLoop:
    """A forwarding loop that packets for a LID can enter while some entries are old and other entries are new.

    Attributes
    ----------
    destination, lid
        Name of the LID's owner; the LID.
    switches
        Labels of the switches, in the order in which packets visit them.
    """

    destination: str
    lid: int
    switches: tuple[str, ...]

    def __str__(self) -> str:
        path = " -> ".join([*self.switches, self.switches[0]])
        return f"forwarding loop for {self.destination} (LID {self.lid}): {path}"


def _words(table: Table) -> str:
    return "same entry in both tables" if table == "both" else f"{table} entry"


def mixed_loop(mixture: Mixture, cycle: Sequence[At], *, replies: bool, scope: Scope, looping: bool) -> MixedLoop:
    """Describe a cycle of (channel, VL) as a credit loop, and find traffic for each of its dependencies.

    ``replies`` and ``scope`` state which traffic may be used.  The values of ``replies`` and ``scope`` must be those
    with which the check found the cycle.

    Raises
    ------
    LookupError
        For some dependency of the cycle there is no traffic, so the cycle does not belong to these tables.
    """
    following = [*cycle[1:], cycle[0]]
    finder = _Finder(mixture, replies=replies, scope=scope)
    turns = tuple(finder.turn(here, then) for here, then in zip(cycle, following, strict=True))
    return MixedLoop(turns, replies, scope, looping)


def find_forwarding_loop(mixture: Mixture, lid: int) -> ForwardingLoop | None:
    """Return a forwarding loop that old and new entries for a LID can form together; None if there is none.

    Cost: O(S).
    """
    fabric, next_channels = mixture.fabric, _next_channels(mixture, lid)
    state = np.zeros(fabric.switches, np.int8)
    for start in range(fabric.switches):
        trail: list[tuple[int, Iterator[int]]] = []
        if not state[start]:
            state[start] = 1
            trail.append((start, iter(next_channels[start])))
        while trail:
            for following in trail[-1][1]:
                if state[following] == 1:
                    names = [fabric.labels[s] for s, _ in trail]
                    first = [s for s, _ in trail].index(following)
                    return ForwardingLoop(mixture.name_of(lid) or "no port", lid, tuple(names[first:]))
                if state[following] == 0:
                    state[following] = 1
                    trail.append((following, iter(next_channels[following])))
                    break
            else:
                state[trail.pop()[0]] = 2
    return None


def _next_channels(mixture: Mixture, lid: int) -> list[list[int]]:
    """Return for each switch the next switches towards a LID, by its old and its new entry, without repetition.

    An entry over a loop-back cable leads to the switch itself.
    """
    fabric = mixture.fabric
    rows = np.arange(fabric.switches)
    next_channels: list[list[int]] = [[] for _ in range(fabric.switches)]
    ends = fabric.link_device
    loops = np.flatnonzero((ends[:, 0] == ends[:, 1]) & (ends[:, 0] < fabric.switches))
    back = {(int(ends[k, 0]), int(p)) for k in loops for p in fabric.link_port[k]}
    for lft in (mixture.before, mixture.after):
        channel = fabric.channels.at_port[rows, lft[:, lid]].tolist()
        for switch, taken in enumerate(channel):
            if taken >= 0:
                next_channels[switch].append(int(fabric.channels.dst[taken]))
            elif (switch, int(lft[switch, lid])) in back:
                next_channels[switch].append(switch)
    return [sorted(set(some)) for some in next_channels]


class _Finder:
    """Search for traffic that has a given dependency: traffic that uses one virtual channel and then another virtual
    channel.
    """

    def __init__(self, mixture: Mixture, *, replies: bool, scope: Scope) -> None:
        self._mixture, self._replies, self._scope = mixture, replies, scope
        self._fabric, self._channels = mixture.fabric, mixture.fabric.channels
        made = Provenance("mixed")
        self._levels = [Routing(mixture.before, sls.table, mixture.sl2vl[0], 1, 1, made) for sls in mixture.sl]

    def turn(self, here: At, then: At) -> MixedTurn:
        channels, channel = self._channels, here[0]
        src, dst = int(channels.src[channel]), int(channels.dst[channel])
        traffic = self._traffic(here, then)
        lid = traffic.destination_lid
        named = Turn.of(self._fabric, channel, here[1], traffic)
        return MixedTurn(
            named, self._table(src, lid, channels.port[channel]), self._table(dst, lid, channels.port[then[0]])
        )

    def _table(self, switch: int, lid: int, port: np.uint8) -> Table:
        old, new = (lft[switch, lid] == port for lft in (self._mixture.before, self._mixture.after))
        return "both" if old and new else "old" if old else "new"

    def _traffic(self, here: At, then: At) -> Traffic:
        """Find traffic that uses the virtual channel ``here``, and next the virtual channel ``then``.

        Requests from CA to CA are tried first, then other requests, then replies.
        """
        for reply in (False, True) if self._replies else (False,):
            for endports in (2, 0 if self._scope == "all" else 1):
                for lid in self._lids(here[0], then[0], only_endports=endports == 2):
                    for traffic in self._candidates(lid, here, then, reply=reply, endports=endports):
                        return traffic
        raise LookupError(f"no traffic takes the turn {here} to {then}")

    def _lids(self, first: int, second: int, *, only_endports: bool) -> list[int]:
        """Return the LIDs whose packets may use both channels: an old or new entry leads to channel ``first``, and an
        old or new entry leads to channel ``second``.

        If ``only_endports``, LIDs of switches are left out.
        """
        mixture = self._mixture
        takes = ~mixture.of_switch if only_endports else np.ones(len(mixture.of_switch), bool)
        for channel in (first, second):
            rows, port = self._channels.src[channel], self._channels.port[channel]
            takes = takes & ((self._mixture.before[rows] == port) | (self._mixture.after[rows] == port))
        return [int(lid) for lid in np.flatnonzero(takes)]

    def _candidates(self, lid: int, here: At, then: At, *, reply: bool, endports: int) -> Iterator[Traffic]:
        fabric = self._fabric
        for switch in self._upstream(lid, int(self._channels.src[here[0]])):
            for sender in senders_at(fabric, switch):
                if int(sender.port > 0) + int(not self._mixture.of_switch[lid]) < endports:
                    continue
                for sl in self._sls_between(sender, lid, reply=reply):
                    if self._uses_vl(sl, here[1]) and self._takes(sender, sl, lid, here, then):
                        name, gone = self._mixture.name_of(lid), int(fabric.lids.switch[lid]) < 0
                        yield Traffic(sender.name, sender.lid, name, lid, sl, reply, gone)

    def _upstream(self, lid: int, switch: int) -> list[int]:
        """Return the switches whose packets for a LID may pass through a given switch, nearest first."""
        into: dict[int, list[int]] = {}
        for source, targets in enumerate(_next_channels(self._mixture, lid)):
            for target in targets:
                into.setdefault(target, []).append(source)
        found = [switch]
        for member in found:
            found += [source for source in into.get(member, ()) if source not in found]
        return found

    def _sls_between(self, sender: Sender, lid: int, *, reply: bool) -> list[int]:
        """Return the SLs that packets from a sender to a LID may have during the transition.

        The packets are replies if ``reply``, else requests.
        """
        if reply and not sender.lid:
            return []
        sls: set[int] = set()
        target, part = int(self._fabric.lids.switch[lid]), self._fabric.component
        if reply and target < 0:
            return sorted(self._mixture.lost.reply_sls(lid, sender.lid))
        near = target >= 0 and part[sender.switch] == part[target]
        for routing in self._levels if near else self._levels[:1]:
            asker = Sender(target, int(self._fabric.lids.port[lid]), lid, "")
            sl = service_level(routing, *((asker, sender.lid) if reply else (sender, lid)))
            if sl is not None:
                sls.add(sl)
        return sorted(sls)

    def _uses_vl(self, sl: int, vl: int) -> bool:
        """Return whether packets with the given SL may use the given VL.

        If SL2VL tables differ between ports, the result is True for every VL.  :meth:`_takes` then checks the VL of
        each hop.
        """
        return any(table.ndim > 1 or int(table[sl]) == vl for table in self._mixture.sl2vl)

    def _takes(self, sender: Sender, sl: int, lid: int, here: At, then: At) -> bool:
        """Return whether some mixture of old and new entries leads a packet over the virtual channel ``here``, and
        directly afterwards over the virtual channel ``then``.

        The packet has SL ``sl``, and goes from ``sender`` to ``lid``.
        """
        begin = list(self._steps(sender.switch, sender.port, sl, lid))
        seen, left = set(begin), list(begin)
        while left:
            at = left.pop()
            switch, in_port = int(self._channels.dst[at[0]]), int(self._channels.dst_port[at[0]])
            for step in self._steps(switch, in_port, sl, lid):
                if at == here and step == then:
                    return True
                if step not in seen:
                    seen.add(step)
                    left.append(step)
        return False

    def _steps(self, switch: int, in_port: int, sl: int, lid: int) -> Iterator[At]:
        """Yield the channels and VLs on which a switch may forward a packet by its old or new entry."""
        for lft in (self._mixture.before, self._mixture.after):
            port = int(lft[switch, lid])
            channel = int(self._channels.at_port[switch, port])
            for table in self._mixture.sl2vl if channel >= 0 else ():
                vl = int(SlToVl(table).vl(switch, in_port, port, sl))
                if vl < 15:
                    yield channel, vl


def black_holes(
    fabric: Fabric, lft: Bytes, switches: npt.NDArray[np.int64], lids: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return bool[N], whether each of N entries of ``lft`` (uint8[S, L]) is a black hole.

    A black hole drops packets for a LID in the connected component of the entry's switch.  ``switches`` and ``lids``
    (int64[N] each) hold the switch and the LID of each entry.  Cost: O(N).
    """
    target, part = fabric.lids.switch[lids], fabric.component
    near = (target >= 0) & (part[switches] == part[target])
    return np.asarray(near & leads_nowhere(fabric, lft, switches, lids))
