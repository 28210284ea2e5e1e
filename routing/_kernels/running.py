"""What the wrappers of simulators have in common: network and traffic as arrays, and the handle of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from routing._kernels.native import check, ffi, lib, pointer
from routing.errors import KernelError

FLOW_NUMBERS = (
    "channel", "index", "process", "pattern", "list", "count", "self", "hot_list", "hot_count", "bytes", "mtu",
    "sl_row", "start", "stop", "messages", "slot", "window",
)  # fmt: skip
FLOW_REALS = ("mean", "factor", "burst", "gap", "hot", "spare")

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NetworkArrays:
    """The channels, sorted by source device and out-port (N), their lanes (N x V), and the tables.

    Attributes
    ----------
    devices, switches, vls
        Devices are numbered switches first; V.
    src, dst, reverse, wire
        int32[N]: devices, the channel of the other direction, ticks from end to end.
    src_port, dst_port
        uint8[N].
    cost
        int64[N]: ticks for a byte, times 2^20.
    buffer
        int32[N, V]: blocks of 64 bytes that the receiver has for the VL.
    switch_delay
        int32[devices]: ticks between the head's arrival and its being ready to go on.
    lft
        uint8[S, L].
    sl2vl
        uint8[16] or uint8[S, P, P, 16].
    ca_sl2vl
        uint8[16].
    sl
        uint8[R, L], service level by row (of the flow) and destination LID.
    distance
        uint8[S, S] hops, or uint8[0, 0] where no Loop Breaker needs them.
    lid_switch, lid_device
        int32[L]: the switch that delivers a LID, the device that owns it, -1 for nobody.
    """

    devices: int
    switches: int
    vls: int
    src: npt.NDArray[np.int32]
    dst: npt.NDArray[np.int32]
    src_port: npt.NDArray[np.uint8]
    dst_port: npt.NDArray[np.uint8]
    reverse: npt.NDArray[np.int32]
    cost: npt.NDArray[np.int64]
    wire: npt.NDArray[np.int32]
    buffer: npt.NDArray[np.int32]
    switch_delay: npt.NDArray[np.int32]
    lft: npt.NDArray[np.uint8]
    sl2vl: npt.NDArray[np.uint8]
    ca_sl2vl: npt.NDArray[np.uint8]
    sl: npt.NDArray[np.uint8]
    distance: npt.NDArray[np.uint8]
    lid_switch: npt.NDArray[np.int32]
    lid_device: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TrafficArrays:
    """Flows: ``numbers`` int64[F, 17] (``FLOW_NUMBERS``), ``reals`` float64[F, 6] (``FLOW_REALS``), ``lists`` int32 of
    destination LIDs, ``trace`` int64[M, 3] (tick, LID, bytes).
    """

    numbers: Ints
    reals: npt.NDArray[np.float64]
    lists: npt.NDArray[np.int32]
    trace: Ints


def fill(struct: Any, arrays: object) -> list[npt.NDArray[Any]]:
    """Copy the fields of a dataclass into a C struct of the same names; the arrays to keep alive."""
    kept = []
    for field in fields(arrays):  # type: ignore[arg-type]
        value = getattr(arrays, field.name)
        if isinstance(value, np.ndarray):
            value = np.ascontiguousarray(value)
            kept.append(value)
            value = pointer(value if value.size else None)
        setattr(struct, field.name, value)
    return kept


@dataclass(frozen=True)
class Fields:
    """What the numbers mean that a simulation tells: of all, of a channel, of a lane, of a flow."""

    totals: tuple[str, ...]
    channel: tuple[str, ...]
    lane: tuple[str, ...]
    flow: tuple[str, ...]


class Running:
    """A simulation under way; freed with the object.

    Attributes
    ----------
    prefix
        What the names of its functions begin with: ``<prefix>_new`` and so on.  ``<prefix>_options`` is the struct that
        says how it behaves; the structs of the network and of the traffic are the same for all.
    fields
        The names of what it tells.

    Raises
    ------
    KernelError
        Out of memory.
    """

    prefix: ClassVar[str]
    fields: ClassVar[Fields]

    def __init__(self, network: NetworkArrays, options: object, traffic: TrafficArrays, **sizes: int) -> None:
        net, what = ffi.new("ibn_sim_network *"), ffi.new("ibn_sim_traffic *")
        how = ffi.new(f"{self.prefix}_options *")
        kept = fill(net, network) + fill(how, options) + fill(what, traffic)
        net.channels, net.lids, net.sl_rows = len(network.src), network.lft.shape[1], len(network.sl)
        net.sl2vl_ports = network.sl2vl.shape[1] if network.sl2vl.ndim > 1 else 0
        what.flows, what.listed, what.traced = len(traffic.numbers), len(traffic.lists), len(traffic.trace)
        for name, size in sizes.items():
            setattr(how, name, size)
        raw = self._function("new")(net, how, what)
        del kept
        if raw == ffi.NULL:
            raise KernelError("kernel failed: out of memory")
        self._sim = ffi.gc(raw, self._function("free"))
        self._channels, self._vls, self._flows = len(network.src), network.vls, len(traffic.numbers)

    def _function(self, name: str) -> Any:
        return getattr(lib, f"{self.prefix}_{name}")

    def run(self, until: int, events: int, *, stop_at_standstill: bool) -> tuple[int, int, int]:
        """Why it stopped (0 time, 1 nothing left, 2 standstill, 3 events), when, events handled so far."""
        told = np.zeros(3, np.int64)
        place = pointer(told)
        check(self._function("run")(self._sim, until, events, int(stop_at_standstill), place))
        return int(told[0]), int(told[1]), int(told[2])

    def _rows(self, name: str, count: int, names: tuple[str, ...]) -> Ints:
        rows = np.zeros((count, len(names)), np.int64)
        self._function(name)(self._sim, pointer(rows))
        return rows

    def totals(self) -> dict[str, int]:
        """Sums over everything, by the names in ``fields.totals``."""
        return dict(zip(self.fields.totals, self._rows("totals", 1, self.fields.totals)[0].tolist(), strict=True))

    def channels(self) -> Ints:
        """int64[N, ...], by ``fields.channel``."""
        return self._rows("channels", self._channels, self.fields.channel)

    def lanes(self) -> Ints:
        """int64[N, V, ...], by ``fields.lane``."""
        rows = self._rows("lanes", self._channels * self._vls, self.fields.lane)
        return rows.reshape(self._channels, self._vls, -1)

    def flows(self) -> Ints:
        """int64[F, ...], by ``fields.flow``."""
        return self._rows("flows", self._flows, self.fields.flow)

    def _vertices(self) -> int:
        """How many can wait for one another: the lanes."""
        return self._channels * self._vls

    def waits(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.bool_]]:
        """int32[n] who waits, int32[n] for whom, bool[N V] who can move: lanes, by what is in their buffer."""
        moves = np.zeros(self._vertices(), np.uint8)
        can_move = pointer(moves)
        count = self._function("waits")(self._sim, 0, ffi.NULL, ffi.NULL, can_move)
        waiter, awaited = np.zeros(count, np.int32), np.zeros(count, np.int32)
        places = pointer(waiter), pointer(awaited)
        self._function("waits")(self._sim, count, *places, can_move)
        return waiter, awaited, moves.astype(bool)
