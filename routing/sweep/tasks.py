"""Define the tasks of a sweep.

A task is one engine on one fabric with one fault case.  The tables of a task are the same on every machine and in every
run, except with a real OpenSM (mode "lab").
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from routing.engines import ENGINES
from routing.engines.base import OPTIONS, EngineOptions
from routing.errors import OptionError
from routing.fabric import Fabric
from routing.numerals import parse_decimal
from routing.port_classes import PortClasses

Value = int | float | str | bool
Options = tuple[tuple[str, Value], ...]

MODES = ("fresh", "balanced", "full", "lab")
"""Methods to compute the tables for the faulty fabric.

- "fresh": from scratch.
- "balanced", "full": by a re-route from the tables of the fault-free fabric, with this stability.
- "lab": by a real OpenSM.
"""


SETTABLE = tuple(option.name for option in OPTIONS.values() if "sweep" in option.sources)
"""Engine options that a sweep can set.  The random seed is not among these options, because it is an attribute of the
task.
"""


@dataclass(frozen=True)
class Target:
    """Routing engine together with its options.

    Attributes
    ----------
    engine
        Name of the engine.
    options
        Options that were given and differ from the default, sorted by name.
    """

    engine: str
    options: Options = ()

    @classmethod
    def parse(cls, text: str) -> Target:
        """Parse an engine with options, such as ``nue`` or ``nue:vls=4,reversible,effort=0.1``.

        Raises
        ------
        OptionError
            The engine or option does not exist, or the value is invalid.
        """
        name, _, rest = text.strip().partition(":")
        _ = ENGINES[name]
        options: dict[str, Value] = {}
        for word in rest.split(",") if rest else ():
            key, _, value = word.partition("=")
            key = key.strip().replace("-", "_")
            if key not in SETTABLE:
                raise OptionError(f"a sweep sets no option {key!r}", remedy=f"options: {', '.join(SETTABLE)}")
            if key in options:
                raise OptionError(f"{key} is given twice", remedy=f"as in {name}:vls=4,effort=0.1")
            try:
                options[key] = OPTIONS[key].parse(value.strip())
            except ValueError:
                remedy = f"use {OPTIONS[key].wanted}, as in {name}:vls=4,effort=0.1"
                raise OptionError(f"{value!r} is not a value of {key}", remedy=remedy) from None
        target = cls(name, tuple(sorted(options.items())))
        target.engine_options(seed=1)
        return target

    def engine_options(self, *, seed: int) -> EngineOptions:
        """Return the complete options for the engine.

        The engine uses one thread, because a sweep runs a process on each core.
        """
        return EngineOptions.of(dict(self.options), seed=seed, threads=1)

    def __str__(self) -> str:
        words = ",".join(key if value is True else f"{key}={value}" for key, value in self.options)
        return f"{self.engine}:{words}" if words else self.engine


@dataclass(frozen=True)
class Task:
    """One task of a sweep: one engine on one fabric with one fault case.

    Attributes
    ----------
    fabric
        Name of the fabric, for printing only.
    digest
        Hash of the fabric, which is independent of its name (:func:`digest_of`).
    target
        The engine with its options.
    fault
        Text form of the fault case (:mod:`routing.sweep.cases`).
    seed
        Random seed of the engine.
    mode
        Method to compute the tables for the faulty fabric, such as from scratch: one of :data:`MODES`.
    """

    fabric: str
    digest: str
    target: Target
    fault: str
    seed: int
    mode: str

    @cached_property
    def id(self) -> str:
        """Id of the task: a hash (20 hex digits) of all attributes that determine its result.

        The id is equal on every machine and in every version of ibnue.
        """
        parts = [self.digest, self.target.engine, self.target.options, self.fault, self.seed, self.mode]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:20]

    @property
    def group_key(self) -> tuple[str, Target, int, str]:
        """Key of the task's group.  The tasks of a group start from the same tables of the fault-free fabric."""
        return self.digest, self.target, self.seed, self.mode

    def __str__(self) -> str:
        seed = "" if self.seed == 1 else f" seed {self.seed}"
        mode = "" if self.mode == "fresh" else f" ({self.mode})"
        return f"{self.fabric} {self.target}{seed}{mode}: {self.fault}"


@dataclass(frozen=True)
class Shard:
    """Part of a sweep that runs separately, for example on another machine.

    ``of`` is the number of parts of the sweep, and ``number`` (from 1) is the number of this part.

    The id of a task alone determines the part to which the task belongs.
    """

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Parse a text such as ``2/8``, the second of eight parts.

        Raises
        ------
        OptionError
            The text is not a shard.
        """
        number, of = map(parse_decimal, text.partition("/")[::2])
        if number is not None and of is not None and 1 <= number <= of:
            return cls(number, of)
        raise OptionError(f"{text!r} is not a shard", remedy="the second of eight is 2/8")

    def has(self, task: Task) -> bool:
        """Return whether a task belongs to this part of the sweep."""
        return int(task.id, 16) % self.of == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def digest_of(fabric: Fabric) -> str:
    """Return the hash of a fabric, which is independent of its name (:attr:`routing.fabric.Fabric.digest`).

    If the user has set classes of end ports, or weights of classes, these settings are part of the hash.
    """
    default = replace(fabric, port_classes=fabric.port_classes.with_rules_of(PortClasses()))
    if np.array_equal(fabric.endport_class, default.endport_class) and np.array_equal(
        fabric.endport_weight, default.endport_weight
    ):
        return fabric.digest
    state = hashlib.sha256(fabric.digest.encode())
    for part in (fabric.endport_class, fabric.endport_weight):
        state.update(np.ascontiguousarray(part).tobytes())
    return state.hexdigest()
