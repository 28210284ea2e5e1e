"""Intermediate groups (middles) of paths in a dragonfly, and the VL of each hop of such a path.

A path over a middle leads from the source's group to the middle, and from the middle to the destination's group.  Each
SL has a *pattern*: a set of groups that are middles.  The SL of a path has a pattern that contains neither the group of
the source nor the group of the destination.  So a switch can derive from in-port, out-port and SL whether a hop leads
to a middle, begins in a middle, or does neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from routing.fabric import Fabric

LINE = (0, 1, 3)
"""Points of the first line (line 0) of the projective plane with 7 points.  The points of line k are these points plus
k, modulo 7.  Two points lie on exactly one line.
"""

PATTERNS = 7
"""Number of patterns, which is the number of lines in the projective plane with 7 points.  The middles of a pattern are
the groups whose points are not on the line of the pattern.
"""

FIRST, TO_MIDDLE, FROM_MIDDLE, LAST = range(4)
VLS = (0, 0, 1, 2)
"""VL of each of four kinds of hop: the first hop, a hop to a middle, a hop out of or within a middle, all other hops.
"""

CLASSES = 3
"""Number of VLs that paths over middles need."""

MOST_HOPS = 2 * CLASSES
"""Largest number of hops of a regular path.  Hops on each VL have one of two ranks: one for links within groups, and
one for links between groups.  Each hop of a regular path has a higher rank than the hop before
(:meth:`Middles.are_regular`).
"""

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Middles:
    """The middles of each pattern, and the VL of each hop.

    Attributes
    ----------
    fabric
        The fabric.
    group
        int64[S], group of each switch.
    seed
        Seed of the random assignment of groups to the 7 points of a projective plane.  Each pattern has a line of 3
        points (:data:`LINE`).  The middles of a pattern are the groups whose points are not on its line.
    """

    fabric: Fabric
    group: Ints
    seed: int

    @cached_property
    def _on_line(self) -> Flags:
        """Return bool[7, groups], whether the point of each group is on each of the 7 lines of a projective plane.

        Each group has a random point, and each pattern has a line.
        """
        points = np.random.default_rng(self.seed).permutation(int(self.group.max(initial=-1)) + 1)
        return np.isin((points - np.arange(PATTERNS)[:, None]) % PATTERNS, LINE)

    @property
    def is_middle(self) -> Flags:
        """Whether each group is a middle (intermediate group) of each pattern, bool[7, groups]."""
        return np.asarray(~self._on_line)

    @cached_property
    def of_groups(self) -> Ints:
        """Pattern of each pair of groups, int64[groups, groups]: a pattern whose line contains the points of both
        groups (see :data:`LINE`).  The groups on the line of a pattern are not its middles, so neither of the two
        groups is one.
        """
        both = self._on_line.T[:, None] & self._on_line.T
        number = np.arange(len(both))
        turn = (number[:, None] + number) % both.sum(axis=2)
        lines = np.argsort(~both, axis=2, kind="stable")
        return np.asarray(np.take_along_axis(lines, turn[..., None], axis=2)[..., 0])

    @cached_property
    def of_switches(self) -> Ints:
        """Pattern of each pair of switches, int64[S, S]."""
        return np.asarray(self.of_groups[np.ix_(self.group, self.group)])

    def _vl(self, pattern: Ints, first: Flags, at: Ints, to: Ints) -> Ints:
        """Return the VL of hops from switch ``at`` to switch ``to``; ``first`` marks the first hop of a path."""
        out, into = (self.is_middle[pattern, self.group[switch]] for switch in (at, to))
        kind = np.where(first, FIRST, np.where(out, FROM_MIDDLE, np.where(into, TO_MIDDLE, LAST)))
        return np.asarray(np.array(VLS)[kind])

    def hop_class(self) -> npt.NDArray[np.uint8]:
        """Return the VL of each hop, uint8[7, S, P, P], by pattern, switch, in-port and out-port."""
        channels, switches = self.fabric.channels, self.fabric.switches
        ports = 1 + int(self.fabric.switch_ports.max(initial=0))
        first, to = np.ones((switches, ports), bool), np.tile(np.arange(switches)[:, None], (1, ports))
        first[channels.dst, channels.dst_port] = False
        to[channels.src, channels.port] = channels.dst
        pattern, at = np.arange(PATTERNS)[:, None, None, None], np.arange(switches)[:, None, None]
        return self._vl(pattern, first[:, :, None], at, to[:, None, :]).astype(np.uint8)

    def are_regular(self, following: Ints, roots: Ints) -> Flags:
        """Return bool[D, S], whether the path to each destination from each switch is regular: each hop has a higher
        rank than the hop before.

        The rank of a hop depends first on its VL, and then on the kind of its link.  Links within groups have a lower
        rank than links between groups, except on the last VL, where they have a higher rank.  So regular paths close no
        cycle together.

        Parameters
        ----------
        following
            int64[D, S], next switch by destination and switch, S for none.
        roots
            int64[D], switch of each destination.
        """
        switches, pattern = self.fabric.switches, self.of_switches[roots]
        trees, at = (np.asarray(index, np.int64) for index in np.indices(following.shape))
        regular, last = np.ones(following.shape, bool), np.full(following.shape, -1)
        for hop in range(MOST_HOPS + 1):
            to = following[trees, at]
            moving = (at != roots[:, None]) & (to < switches)
            to = np.where(moving, to, at)
            vl = self._vl(pattern, np.full(at.shape, hop == 0), at, to)
            between = self.group[at] != self.group[to]
            place = 2 * vl + np.where(vl == CLASSES - 1, ~between, between)
            regular &= ~moving | (place > last)
            last, at = np.where(moving, place, last), to
        return regular
