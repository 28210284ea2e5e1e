"""Links as discovery tools state them: once from each end, each end with width and speed.

Readers collect what each port says, then :meth:`PortStatements.connect` holds the two ends together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from routing.errors import FabricError
from routing.fabric_builder import FabricBuilder, Place
from routing.rates import SPEED_OF

_ALIKE = {SPEED_OF["QDR"], SPEED_OF["FDR10"]}  # FDR10 is told by a vendor's attribute, so that one end may say QDR


@dataclass
class PortStatements:
    """What the ports of one file say about their cables.

    Attributes
    ----------
    path
        The file, for complaints.
    stated
        By (GUID, port): remote GUID, remote port, width, speed, line.
    """

    path: str | Path
    stated: dict[tuple[int, int], tuple[int, int, int, float, int]] = field(default_factory=dict)

    def add(self, near: tuple[int, int], far: tuple[int, int], rate: tuple[int, float], line: int) -> None:
        """Port ``near`` (node GUID, port number) says that it is cabled to ``far``.

        Raises
        ------
        FabricError
            The port has spoken before and said something else.
        """
        said = self.stated.setdefault(near, (*far, *rate, line))
        if said[4] != line and said[:4] != (*far, *rate):
            raise self._error(
                f"port {near[1]} of {near[0]:#x} is used twice, first in line {said[4]}", line, "a port takes one cable"
            )

    def connect(self, builder: FabricBuilder) -> None:
        """Cable all ports.

        Raises
        ------
        FabricError
            A node that is not in the file, ends that contradict each other, an end that says nothing.
        """
        for near, (far_guid, far_port, width, speed, line) in self.stated.items():
            far = (far_guid, far_port)
            back = self.stated.get(far)
            if back is None:
                what = "which is not in the file" if builder.find_guid(far_guid) is None else "which does not say so"
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
            if back[2] != width or (back[3] != speed and {back[3], speed} != _ALIKE):
                raise self._error(
                    f"the link runs at {width}x {speed} Gb/s here and at {back[2]}x {back[3]} Gb/s in line {back[4]}",
                    line,
                    "both ends of a cable must agree",
                )
            self._cable(builder, near, far, (width, max(speed, back[3])), line)

    def _cable(
        self,
        builder: FabricBuilder,
        near: tuple[int, int],
        far: tuple[int, int],
        rate: tuple[int, float],
        line: int,
    ) -> None:
        a, b = builder.find_guid(near[0]), builder.find_guid(far[0])
        if a is None or b is None:
            guid = near[0] if a is None else far[0]
            raise self._error(f"there is no node {guid:#x} in the file", line, "is the file whole?")
        builder.connect(a, near[1], b, far[1], width=rate[0], speed=rate[1], place=Place(self.path, line))

    def _error(self, problem: str, line: int, remedy: str) -> FabricError:
        return FabricError(problem, path=self.path, line=line, remedy=remedy)
