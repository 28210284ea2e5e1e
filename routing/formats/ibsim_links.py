"""Derive the links of a fabric from the port statements of an ibsim net file, by the rules of ibsim.

Both ends must state the same link, except if one end has an alias.  Then only the other end states the link, by this
alias.  A link has the best width and the best speed that both ports support.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from routing.errors import FabricError
from routing.fabric_builder import FabricBuilder, Location
from routing.rates import SPEED_OF

WIDTH_OF_BIT = {8: 12, 4: 8, 2: 4, 16: 2, 1: 1}
"""Link width in physical lanes for each bit of the option ``w=``, best width first."""

SPEEDS = {4: "QDR", 2: "DDR", 1: "SDR"}
"""Speed name for each bit of the option ``s=``, best speed first."""

EXT_SPEEDS = {16: "XDR", 8: "NDR", 4: "HDR", 2: "EDR", 1: "FDR"}
"""Speed name for each bit of the option ``e=``, best speed first.

ibsim 0.10 knows the bits up to HDR, and ibsim 0.12 up to NDR.  The bit of XDR is an addition of ibnue.
"""


@dataclass(frozen=True)
class Enabled:
    """Widths and speeds that a port supports: the bits of ``w=``, ``s=`` and ``e=``, and whether FDR10 is one of the
    speeds.
    """

    width: int = 2
    speed: int = 1
    ext: int = 0
    fdr10: bool = False


DEFAULT_ENABLED = Enabled()

_WIDTH_BITS = {12: 1 | 2 | 8, 8: 4, 4: 1 | 2, 2: 16, 1: 1}
_EXT_BITS = {"FDR": 1, "EDR": 3, "HDR": 7, "NDR": 15, "XDR": 31}
_SPEED_BITS = {"SDR": 1, "DDR": 3}


def enabled_by_name(enabled: Enabled, width: int, speed: str) -> Enabled:
    """Return the widths and speeds that a port supports if its comment states a rate such as ``4xEDR``.

    ``enabled`` has the widths and speeds that the port supports without the comment.  As in ibsim, an unknown width or
    speed is ignored.
    """
    enabled = replace(enabled, width=_WIDTH_BITS.get(width, enabled.width))
    if speed not in SPEED_OF:
        return enabled
    ext, slow = _EXT_BITS.get(speed, enabled.ext), _SPEED_BITS.get(speed, 7)
    fdr10 = enabled.fdr10 or speed == "FDR10" or speed in _EXT_BITS
    return Enabled(enabled.width, slow, ext, fdr10)


@dataclass(frozen=True)
class Statement:
    """One port line of a net file: a port, and the remote port at the other end of its cable."""

    device: int
    port: int
    far_id: str
    far_port: int
    by_alias: bool
    enabled: Enabled
    location: Location


@dataclass
class Links:
    """Collects the port lines of net files, then adds the cables to the builder of the fabric."""

    builder: FabricBuilder
    _stated: dict[tuple[int, int], Statement] = field(default_factory=dict)
    _offered: dict[tuple[int, int], Enabled] = field(default_factory=dict)

    def state(self, statement: Statement) -> None:
        """Record a port line that names the node at the other end of the cable."""
        self._stated[statement.device, statement.port] = statement

    def offer(self, device: int, port: int, enabled: Enabled) -> None:
        """Record the widths and speeds that a port with an alias supports.

        A line ``@[port] "alias"`` gives the port a name, the alias, but states no cable.  The cable is in the line of
        the port at the other end, which names this alias.
        """
        self._offered[device, port] = enabled

    def at_once(
        self, near: tuple[int, int], far: tuple[int, int], default: tuple[Enabled, Enabled], location: Location
    ) -> None:
        """Connect two ports (device, port) immediately, as the console command ``do Link`` does.

        ``default`` has two elements: the widths and speeds of ``near`` and of ``far``.  An element is used only if no
        earlier port line states the widths and speeds of the port.
        """
        self._cable(near, far, (self._enabled(near, default[0]), self._enabled(far, default[1])), location)

    def _enabled(self, end: tuple[int, int], default: Enabled) -> Enabled:
        stated = self._stated.get(end)
        return self._offered.get(end, default) if stated is None else stated.enabled

    def connect(self, handle_of: Mapping[str, int]) -> None:
        """Add the cables of all recorded port lines to the builder.

        ``handle_of`` has the number of each node in the builder, by node id.

        Raises
        ------
        FabricError
            A remote node does not exist, the two ends contradict each other, or they have no common width or speed.
        """
        for (device, port), near in self._stated.items():
            if near.far_id not in handle_of:
                raise _error(
                    f"there is no node {near.far_id!r} to cable to",
                    near.location,
                    "is the name right, and the file whole?",
                )
            far_device = handle_of[near.far_id]
            if near.by_alias:
                far_enabled = self._offered[far_device, near.far_port]
            else:
                far_enabled = self._other_end(near, far_device, handle_of)
                if (far_device, near.far_port) < (device, port):
                    continue
            self._cable((device, port), (far_device, near.far_port), (near.enabled, far_enabled), near.location)

    def _other_end(self, near: Statement, far_device: int, handle_of: Mapping[str, int]) -> Enabled:
        far = self._stated.get((far_device, near.far_port))
        if far is None:
            raise _error(
                f"port {near.port} is cabled to {near.far_id!r} port {near.far_port}, which does not state this link",
                near.location,
                "ibsim needs a link stated at both ends; is the file whole?",
            )
        if (handle_of.get(far.far_id), far.far_port) != (near.device, near.port):
            raise _error(
                f"port {near.port} is cabled to {near.far_id!r} port {near.far_port}, "
                f"but that port is cabled to {far.far_id!r} port {far.far_port} in line {far.location.line}",
                near.location,
                "both ends of a cable must agree",
            )
        return far.enabled

    def _cable(
        self, near: tuple[int, int], far: tuple[int, int], enabled: tuple[Enabled, Enabled], location: Location
    ) -> None:
        width, speed = _active(*enabled, location)
        self.builder.connect(*near, *far, width=width, speed=speed, location=location)


def _active(near: Enabled, far: Enabled, location: Location) -> tuple[int, float]:
    """Return the best width and the best speed that two ports both support.

    Returns
    -------
    width : int
        Link width in physical lanes.
    speed : float
        Signalling rate of one physical lane in Gb/s.
    """
    if near is DEFAULT_ENABLED and far is DEFAULT_ENABLED:
        return 4, 2.5
    common = near.width & far.width
    width = next((lanes for bit, lanes in WIDTH_OF_BIT.items() if common & bit), 0)
    slow = next((name for bit, name in SPEEDS.items() if near.speed & far.speed & bit), "")
    if not width or not slow:
        what = "width" if not width else "speed"
        raise _error(f"the two ends have no {what} in common", location, "enable the same at both ends")
    fast = next((name for bit, name in EXT_SPEEDS.items() if near.ext & far.ext & bit), "")
    fdr10 = "FDR10" if slow == "QDR" and near.fdr10 and far.fdr10 else ""
    return width, SPEED_OF[fast or fdr10 or slow]


def _error(problem: str, location: Location, remedy: str) -> FabricError:
    return FabricError(problem, path=location.path, line=location.line, remedy=remedy)
