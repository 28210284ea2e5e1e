"""Classes of end ports: compute, storage, I/O, management and aggregation, and their weights in traffic.

Engines balance the traffic between end ports.  An aggregation node (SHARP) inside a switch sends to its own reduction
trees only, so its weight is 0.  Every other class has the weight 1.  The user may state other weights for any class.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.class_settings import PortClass, Weight
from routing.errors import OptionError


@dataclass(frozen=True)
class Detection:
    """Rule by which the class of an end port is recognised without settings of the user.

    Attributes
    ----------
    port_class
        The class that the rule gives to the end ports of a device.  The rule applies to a device if the description
        fits or the device ID fits.
    description
        The node description of a device fits if it contains this text.
    device_ids
        The device ID of a device fits if it is one of these numbers.
    """

    port_class: PortClass
    description: str
    device_ids: frozenset[int]


DETECTIONS = (Detection(PortClass.AGGREGATION, "Aggregation Node", frozenset({0xCF09})),)
"""All rules of detection.  The list has only rules that cannot fit a host by chance, neither by the host's name nor by
its device ID.
"""

DEFAULT_WEIGHTS = tuple(Weight(0, 0) if each is PortClass.AGGREGATION else Weight() for each in PortClass)


@dataclass(frozen=True)
class PortClasses:
    """Rules that give each end port its class, and the weights of the classes.

    These rules are tried in order: the port GUID of the end port, the node GUID of its device, the patterns, the
    recognised devices, :data:`DETECTIONS`.  The first rule that applies determines the class.  If no rule applies, the
    end port is a compute port.

    Attributes
    ----------
    guids
        Class by node GUID or port GUID.
    patterns
        Class by shell pattern (``*``, ``?``, ``[...]``) over the name of the device.
    weights
        Weight of each class, in the order of :class:`PortClass`.
    recognised
        Class by node GUID for devices that a reader recognised, for example by their device ID.
    """

    guids: tuple[tuple[int, PortClass], ...] = ()
    patterns: tuple[tuple[str, PortClass], ...] = ()
    weights: tuple[Weight, ...] = DEFAULT_WEIGHTS
    recognised: tuple[tuple[int, PortClass], ...] = ()

    def __post_init__(self) -> None:
        known: dict[int, PortClass] = {}
        pairs = [(guid, known.setdefault(guid, own), own) for guid, own in self.guids]
        twice = {guid: f"{first.label} and as {own.label}" for guid, first, own in pairs if first is not own}
        if twice:
            texts = [f"GUID {guid:#x} is listed as {labels}" for guid, labels in twice.items()]
            more = f"; and {len(texts) - 10} more" if len(texts) > 10 else ""
            raise OptionError("; ".join(texts[:10]) + more, remedy="list each GUID in one class")

    def with_rules_of(self, rules: PortClasses) -> PortClasses:
        """Return a copy of ``rules``, but with the recognised devices of this object.

        The copy has the GUIDs, patterns and weights of ``rules``.
        """
        return replace(rules, recognised=self.recognised)

    def of_devices(self, names: Sequence[str], guids: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
        """Return uint8[T], the class of each of T CAs and routers by its name and node GUID."""
        found = np.full(len(names), PortClass.COMPUTE, np.uint8)
        for rule in reversed(DETECTIONS):
            found[np.array([rule.description in name for name in names], np.bool_)] = rule.port_class
        _set(found, guids, self.recognised)
        for pattern, own in reversed(self.patterns):
            fits = re.compile(fnmatch.translate(pattern)).match
            found[np.array([fits(name) is not None for name in names], np.bool_)] = own
        _set(found, guids, self.guids)
        return found

    def of_endports(
        self, by_device: npt.NDArray[np.uint8], terminal: npt.NDArray[np.int32], guids: npt.NDArray[np.uint64]
    ) -> npt.NDArray[np.uint8]:
        """Return uint8[E], the class of each end port: the class of its port GUID, or else the class of its device.

        Parameters
        ----------
        by_device
            uint8[T], the class of each CA or router, from :meth:`of_devices`.
        terminal, guids
            int32[E], the device of each end port; uint64[E], the port GUIDs.
        """
        found = by_device[terminal]
        _set(found, guids, self.guids)
        return found

    def unused(
        self, names: Sequence[str], guids: npt.NDArray[np.uint64], port_guids: npt.NDArray[np.uint64]
    ) -> list[str]:
        """Return the patterns and GUIDs that fit no device and no end port, so that the user can correct them."""
        known = {*guids.tolist(), *port_guids.tolist()}
        patterns = [pattern for pattern, _ in self.patterns if not fnmatch.filter(names, pattern)]
        return [repr(pattern) for pattern in patterns] + [f"{guid:#x}" for guid, _ in self.guids if guid not in known]

    def counts(self, classes: npt.NDArray[np.uint8]) -> dict[str, int]:
        """Return the number of end ports of each class, by the name of the class.

        ``classes`` is uint8[E], the class of each end port.  Classes without end ports are left out.
        """
        numbers = np.bincount(classes, minlength=len(PortClass)).tolist()
        return {each.label: numbers[each] for each in PortClass if numbers[each]}

    def factors(self, classes: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
        """Return int64[E, 2], the weights of end ports as source and as destination.  ``classes`` (uint8[E]) has the
        classes of the end ports.
        """
        table = np.array([(each.source, each.destination) for each in self.weights], np.int64)
        return table[classes]


def _set(found: npt.NDArray[np.uint8], guids: npt.NDArray[np.uint64], classes: Iterable[tuple[int, PortClass]]) -> None:
    known = dict(classes)
    if known:
        rows = np.flatnonzero(np.isin(guids, np.fromiter(known, np.uint64, len(known))))
        found[rows] = [known[guid] for guid in guids[rows].tolist()]


def detected(name: str, device_id: int = 0) -> PortClass:
    """Return the class that :data:`DETECTIONS` give to a device, or the class "compute" if no rule fits."""
    for rule in DETECTIONS:
        if rule.description in name or device_id in rule.device_ids:
            return rule.port_class
    return PortClass.COMPUTE


def port_classes_of(
    settings: Iterable[tuple[str, str, Any]], read_guids: Callable[[Path], Iterable[int]]
) -> PortClasses:
    """Return the rules for classes of end ports that a list of settings describes.

    Parameters
    ----------
    settings
        Three items for each setting: a key of :data:`routing.class_settings.SETTINGS`, the name of a class, and a
        value.  Depending on the key, the value is one or more patterns, the path of a GUID list, or a weight.
    read_guids
        Reader of a GUID list.

    Raises
    ------
    OptionError, ParseError
        A class or a value does not exist, a GUID has two classes, or a file cannot be read.
    """
    guids: list[tuple[int, PortClass]] = []
    patterns: list[tuple[str, PortClass]] = []
    weights = list(DEFAULT_WEIGHTS)
    for key, label, value in settings:
        own = PortClass.of(label)
        if key == "names":
            patterns += [(str(pattern), own) for pattern in ([value] if isinstance(value, str) else value)]
        elif key == "guid_file":
            guids += [(guid, own) for guid in read_guids(Path(value))]
        else:
            weights[own] = Weight.parse(value)
    return PortClasses(tuple(guids), tuple(patterns), tuple(weights))
