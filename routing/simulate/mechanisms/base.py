"""Define the interface of mechanisms: optional parts of a simulation with fixed tables.

The hooks of a mechanism are in one C file (``csrc/simulate/internal/mechanism.h`` describes them).  Its Python class
declares the settings, and names the results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from routing._kernels.simulate import MECHANISM_NAME, OptionArrays
from routing.errors import OptionError
from routing.simulate.network import Network
from routing.simulate.traffic import Traffic


class Mechanism(ABC):
    """Settings of one mechanism of a simulation.

    Attributes
    ----------
    name
        Name of the mechanism in the kernel, at most 15 letters.
    """

    name: ClassVar[str]

    @abstractmethod
    def numbers(self, network: Network, traffic: Traffic) -> Sequence[int]:
        """Check the settings, and return them in the order in which the C file of the mechanism reads them.

        Raises
        ------
        OptionError
            A setting is out of range.
        """


def with_mechanisms(
    options: OptionArrays, mechanisms: Sequence[Mechanism], network: Network, traffic: Traffic
) -> OptionArrays:
    """Return the options of a simulation with mechanisms to attach.

    Raises
    ------
    OptionError
        A mechanism occurs twice, or one of its settings is out of range.
    """
    names = [mechanism.name for mechanism in mechanisms]
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
