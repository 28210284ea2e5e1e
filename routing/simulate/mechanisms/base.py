"""Define the interface of mechanisms: optional parts of a simulation.

Each mechanism has one C file with its hooks (``csrc/simulate/internal/mechanism.h`` describes the hooks).  Each
mechanism also has a Python class, which declares the settings and names the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from routing._kernels.simulation_arrays import MECHANISM_NAME, OptionArrays
from routing.errors import OptionError
from routing.simulate.bounds import is_int_in
from routing.simulate.network import Network
from routing.simulate.scenario_key import Key
from routing.simulate.traffic import Traffic

if TYPE_CHECKING:
    from routing.simulate.run import Simulation


class Mechanism(ABC):
    """Settings of one mechanism of a simulation.

    Attributes
    ----------
    name
        Name of the mechanism in the kernel, at most 15 letters.
    alone
        Whether no other mechanism may be attached to the simulation.
    keeps_tables
        Whether the mechanism uses the tables of the start, so that the tables of the simulation must not change.
    output_queues
        Whether the mechanism needs switches with output queues, so that adaptive switches exclude it.
    """

    name: ClassVar[str]
    alone: ClassVar[bool] = False
    keeps_tables: ClassVar[bool] = False
    output_queues: ClassVar[bool] = False

    def check_integers(self, *bounds: tuple[str, int, int]) -> None:
        """Raise OptionError if a setting is out of range.  Each bound is (name of the setting, least, largest)."""
        for key, least, most in bounds:
            if not is_int_in(getattr(self, key), least, most):
                raise OptionError(
                    f"{key} is {getattr(self, key)!r}", remedy=f"use a whole number from {least} to {most}"
                )

    @abstractmethod
    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int] | npt.NDArray[np.int64]:
        """Check the settings, and return them in the order in which the C file of the mechanism reads them.

        Raises
        ------
        OptionError
            A setting is out of range.
        """


def in_ticks(table: Mapping[str, Any], packet: int, **usual: float) -> dict[str, Any]:
    """Return the settings of a case's table, with times in ticks instead of packet times.

    ``packet`` is the packet time in ticks.  ``usual`` has the default value, in packet times, of each setting that is a
    time.
    """
    return {**table, **{key: max(1, round(float(table.get(key, time)) * packet)) for key, time in usual.items()}}


class CaseMechanism(Mechanism):
    """Mechanism that a case of a scenario file attaches, with a table for its settings.

    Attributes
    ----------
    table
        Name of the table in the case, such as ``congestion`` for ``[case.congestion]``.
    keys
        Schema of the keys of the table.
    """

    table: ClassVar[str]
    keys: ClassVar[Mapping[str, Key]]

    @classmethod
    @abstractmethod
    def from_table(cls, table: Mapping[str, Any], packet: int) -> CaseMechanism:
        """Return the mechanism with the settings in a table of the scenario file.

        ``packet`` is the length of a packet time in ticks.
        """

    def extended_traffic(self, network: Network, traffic: Traffic) -> Traffic:
        """Return the traffic of a case, followed by the flows that the mechanism adds.  By default, it adds no flow."""
        return traffic

    @property
    def further_vls(self) -> int:
        """Return the number of VLs that the network of a case needs beside the VLs of its tables."""
        return 0

    @abstractmethod
    def figures(self, simulation: Simulation) -> dict[str, Any]:
        """Return the figures of a simulation that the mechanism adds to the figures of its case."""


def with_mechanisms(
    options: OptionArrays, mechanisms: Sequence[Mechanism], network: Network, traffic: Traffic
) -> OptionArrays:
    """Return the options of a simulation with mechanisms to attach.

    Raises
    ------
    OptionError
        A mechanism occurs twice, a mechanism that has to be alone is not alone, or a setting is out of range.
    """
    names = [mechanism.name for mechanism in mechanisms]
    alone = [mechanism.name for mechanism in mechanisms if mechanism.alone]
    if alone and len(names) > 1:
        raise OptionError(f"{alone[0]} is not possible beside other mechanisms", remedy="leave the others out")
    if len(set(names)) < len(names):
        raise OptionError(f"a mechanism occurs twice among {', '.join(names)}")
    numbers = [np.asarray(mechanism.numbers(network, traffic), np.int64) for mechanism in mechanisms]
    padded = b"".join(name.encode().ljust(MECHANISM_NAME, b"\0") for name in names)
    return OptionArrays(
        **{
            **vars(options),
            "mechanism_names": np.frombuffer(padded, np.uint8).reshape(-1, MECHANISM_NAME),
            "mechanism_counts": np.asarray([len(one) for one in numbers], np.int64),
            "mechanism_numbers": np.concatenate([np.zeros(0, np.int64), *numbers]),
        }
    )
