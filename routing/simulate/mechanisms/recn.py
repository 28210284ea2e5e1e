"""Simulate RECN-like set-aside queues: switches keep packets of a congestion tree apart from all other packets.

Source: regional explicit congestion notification (RECN).  The publication of
:mod:`routing.simulate.mechanisms.request_grant` mentions RECN for comparison.  The rules follow general descriptions of
RECN, and were not compared with the papers on RECN.  Differences from these descriptions:

- A set-aside queue is a VL with a separate buffer.  A queue of RECN is a part of the port's buffer.
- The VL has credits instead of the signals Xon and Xoff.
- A notification takes a fixed time and no bandwidth.
- Packets that come later may overtake packets that were queued before the VL was assigned.

InfiniBand does not have RECN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from routing.errors import OptionError
from routing.simulate.bounds import LONGEST
from routing.simulate.mechanisms.base import CaseMechanism, in_ticks
from routing.simulate.network import Network
from routing.simulate.scenario_key import INTEGER, TIME, Key
from routing.simulate.traffic import Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation

MOST_PACKETS = 1 << 20
MOST_VLS = 14


@dataclass(frozen=True)
class Recn(CaseMechanism):
    """Settings of RECN-like set-aside queues, which are the same for all ports.

    Attributes
    ----------
    set_aside
        Number of set-aside VLs of each port: the last VLs of the network, which no SL uses.
    threshold
        A channel is congested if at least this number of packets is queued for one of its VLs, although the sender has
        credits for a packet.  (Without these credits, the cause is a channel further downstream.)
    spread
        If at least this number of packets is queued for a set-aside VL, the switch notifies the devices from which
        these packets come.
    notice
        Ticks that a notification takes.
    release
        Ticks between two checks of a set-aside VL that is assigned to a congestion tree.  A check releases the VL if
        it is empty.
    """

    name: ClassVar[str] = "recn"
    output_queues: ClassVar[bool] = True
    table: ClassVar[str] = "recn"
    keys: ClassVar[Mapping[str, Key]] = {
        "set_aside": Key(INTEGER, least=1, most=MOST_VLS), "threshold": Key(INTEGER, least=1, most=MOST_PACKETS),
        "spread": Key(INTEGER, least=1, most=MOST_PACKETS), "notice": TIME, "release": TIME,
    }  # fmt: skip

    set_aside: int = 2
    threshold: int = 8
    spread: int = 4
    notice: int = 32
    release: int = 320

    @classmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> Recn:
        """Return RECN with the settings of a table, whose times are in packet times."""
        return cls(**in_ticks(table, packet, notice=1, release=10))

    @property
    def further_vls(self) -> int:
        """Return the number of VLs that the network needs beside the VLs of its tables."""
        return self.set_aside

    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Return the settings in the order that the kernel expects.

        Raises
        ------
        OptionError
            A setting is out of range, or a packet could use a set-aside VL because of its SL.
        """
        self.check_integers(
            ("set_aside", 1, MOST_VLS), ("threshold", 1, MOST_PACKETS), ("spread", 1, MOST_PACKETS),
            ("notice", 1, LONGEST), ("release", 1, LONGEST),
        )  # fmt: skip
        arrays, base = network.arrays, network.vls - self.set_aside
        sls = np.unique(arrays.sl)
        vls = np.concatenate([arrays.ca_sl2vl[sls[sls < 16]], arrays.sl2vl[..., sls[sls < 16]].reshape(-1)])
        if base < 1 or vls[vls < 15].max(initial=0) >= base:
            raise OptionError(
                f"{self.set_aside} of {network.vls} VLs cannot be set aside",
                remedy="use more VLs, or tables that map each SL to one VL at all ports",
            )
        return [self.set_aside, self.threshold, self.spread, self.notice, self.release]

    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return the counters of the kernel.

        - ``assigned``: how often a set-aside VL was assigned to a congestion tree.
        - ``refused``: number of notifications for which no set-aside VL was free.
        - ``in_use``, ``most_in_use``: number of assigned VLs at the end of the run, and largest number at any time.
        - ``set_aside_packets``: how often a packet was queued for a set-aside VL instead of its usual VL.
        """
        names = ("assigned", "refused", "in_use", "most_in_use", "set_aside_packets")
        return dict(zip(names, simulation.results_of(self).tolist(), strict=True))
