"""Check and connect links that a file states once from each end, with width and speed.

Readers of ``ibnetdiscover`` and ``opensm-subnet.lst`` collect the statements of ports.  :meth:`PortStatements.connect`
then compares the two ends of each link.
"""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from routing.errors import FabricError, InputWarning
from routing.fabric_builder import FabricBuilder, Location
from routing.numerals import count_noun
from routing.rates import SPEED_OF, speed_name

_ALIKE = {SPEED_OF["QDR"], SPEED_OF["FDR10"]}  # FDR10 is a vendor's attribute, so one end may state QDR instead.


@dataclass
class PortStatements:
    """What a file states about the cable at each port.

    Attributes
    ----------
    path
        File name for error messages.
    stated
        For each port (node GUID, port number): GUID and port at the other end of the cable, width and speed of the
        link, and line number of the statement.  Width and speed are 0 if the file has "?".
    """

    path: str | Path
    stated: dict[tuple[int, int], tuple[int, int, int, float, int]] = field(default_factory=dict)

    def add(self, near: tuple[int, int], far: tuple[int, int], rate: tuple[int, float], line: int) -> None:
        """Record that port ``near`` (node GUID, port number) is cabled to ``far``, by a link with a width and speed
        (``rate``).

        Raises
        ------
        FabricError
            An earlier statement about the port contradicts the new statement.
        """
        stated = (*far, *rate, line)
        answer = self.stated.setdefault(near, stated)
        if answer is not stated and answer[4] != line and answer[:4] != stated[:4]:
            raise self._error(
                f"port {near[1]} of {near[0]:#x} is used twice, first in line {answer[4]}",
                line,
                "a port takes one cable",
            )

    def connect(self, builder: FabricBuilder) -> None:
        """Compare both ends of every link, and add the cables to the builder.

        Raises
        ------
        FabricError
            A remote node is not in the file, two ends contradict each other, or only one end has a statement.

        Warns
        -----
        InputWarning
            There are links for which neither end states a rate.  The warning states their number.  These links get the
            most frequent rate.
        """
        usual: tuple[int, float] | None = None
        guessed = 0
        for near, (far_guid, far_port, width, speed, line) in self.stated.items():
            far = (far_guid, far_port)
            back = self.stated.get(far)
            if back is None:
                what = (
                    "which is not in the file"
                    if builder.find_guid(far_guid) is None
                    else "which does not state this cable"
                )
                raise self._error(
                    f"port {near[1]} of {near[0]:#x} is cabled to port {far_port} of {far_guid:#x}, {what}",
                    line,
                    "is the file whole?",
                )
            if back[:2] != near:
                raise self._error(
                    f"port {near[1]} of {near[0]:#x} is cabled to port {far_port} of {far_guid:#x}, but that is cabled "
                    f"to port {back[1]} of {back[0]:#x} by line {back[4]}",
                    line,
                    "both ends of a cable must agree",
                )
            if far < near:
                continue
            if (back[2] != width and back[2] and width) or (
                back[3] != speed and back[3] and speed and {back[3], speed} != _ALIKE
            ):
                raise self._error(
                    f"the link runs at {width}x {speed} Gb/s here and at {back[2]}x {back[3]} Gb/s in line {back[4]}",
                    line,
                    "both ends of a cable must agree",
                )
            known = width or back[2], max(speed, back[3])
            if not all(known):
                guessed += 1
                usual = usual or self._usual_rate()
                known = known[0] or usual[0], known[1] or usual[1]
            self._cable(builder, near, far, known, line)
        if usual is not None:
            rated = any(width and speed for _, _, width, speed, _ in self.stated.values())
            links = count_noun(guessed, "link has", "links have")
            why = "the most frequent one" if rated else "because no port states a rate"
            rate = f"{usual[0]}x{speed_name(usual[1])}, {why}"
            warnings.warn(f"{self.path}: {links} an unknown rate (?); ibnue assumes {rate}", InputWarning, stacklevel=2)

    def _usual_rate(self) -> tuple[int, float]:
        """Return the width and speed that most ports state, or 4xSDR if no port states them.  Of two equally frequent
        rates the faster rate is returned.
        """
        counts = Counter((width, speed) for _, _, width, speed, _ in self.stated.values() if width and speed)
        return max(counts, key=lambda rate: (counts[rate], rate[0] * rate[1])) if counts else (4, SPEED_OF["SDR"])

    def _cable(
        self, builder: FabricBuilder, near: tuple[int, int], far: tuple[int, int], rate: tuple[int, float], line: int
    ) -> None:
        a, b = builder.find_guid(near[0]), builder.find_guid(far[0])
        if a is None or b is None:
            guid = near[0] if a is None else far[0]
            raise self._error(f"there is no node {guid:#x} in the file", line, "is the file whole?")
        builder.connect(a, near[1], b, far[1], width=rate[0], speed=rate[1], location=Location(self.path, line))

    def _error(self, problem: str, line: int, remedy: str) -> FabricError:
        return FabricError(problem, path=self.path, line=line, remedy=remedy)
