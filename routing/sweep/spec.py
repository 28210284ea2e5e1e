"""Define the specification of a sweep: blocks of fabrics, engines, modes, seeds and faults.

A specification comes from the options of the command or from a TOML file.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from routing.engines import DEFAULT
from routing.errors import InputError, OptionError, ParseError
from routing.fabric import Fabric
from routing.faults import Fault, every_link, every_switch, parse_fault
from routing.formats.toml_text import Toml, type_names
from routing.numerals import parse_decimal
from routing.sweep.cases import INTACT, RandomFaults, text_of
from routing.sweep.tasks import MODES, Shard, Target, Task, digest_of
from routing.topologies.ranges import expand_ranges

LONGEST = 1e6
"""Largest time limit in seconds that a sweep accepts for a case: more than a week."""
MOST = 1_000_000
"""Largest number of cases of a sweep.  This number of cases takes half a gigabyte of memory."""

ReadFabric = Callable[[str], Fabric]


@dataclass(frozen=True)
class Block:
    """Block of a sweep.  Every combination of its fabrics, engines, modes, seeds and fault cases is one task.

    Attributes
    ----------
    fabrics
        Fabric files or generators, as on the command line.  Generators may have ranges
        (:func:`routing.topologies.ranges.expand_ranges`).  In a TOML file, file patterns such as ``nets/*.net`` are
        also possible.
    engines
        Engines with their options, such as ``nue:vls=4`` (:meth:`routing.sweep.tasks.Target.parse`).
    modes, seeds
        Methods to recompute tables after a fault (:data:`routing.sweep.tasks.MODES`), and random seeds of the engines.
    intact
        Whether to include the fabric without faults as a case.
    links, switches
        Number of cases in which one link between switches fails, and number of cases in which one switch fails.  "all"
        means one case for each link or switch.  A number takes that many links or switches, at even distances in the
        list of all links or switches.
    faults
        Names of single faults.  Each fault is one case.
    random, kinds
        Random cases such as ``100:3`` (:meth:`routing.sweep.cases.RandomFaults.parse`), and the kinds of their faults.
    timeout
        Time limit of each case in seconds, including the time for the tables of the fault-free fabric; None: no limit.
    origin
        TOML file and index (from 0) of the block in the file, for error messages; None without a file.
    """

    fabrics: tuple[str, ...]
    engines: tuple[str, ...] = (DEFAULT,)
    modes: tuple[str, ...] = ("fresh",)
    seeds: tuple[int, ...] = (1,)
    intact: bool = True
    links: int | str = 0
    switches: int | str = 0
    faults: tuple[str, ...] = ()
    random: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("link",)
    timeout: float | None = None
    origin: tuple[Toml, int] | None = None

    @contextlib.contextmanager
    def naming_key(self, *key: str) -> Iterator[None]:
        """Add a line number to each input error that occurs in a ``with`` block of this context manager.

        The number is that of the line in the TOML file that sets ``key``.
        """
        try:
            yield
        except InputError as error:
            if self.origin is None or error.line is not None:
                raise
            file, number = self.origin
            problem = error.problem if error.path is None else f"{error.path}: {error.problem}"
            raise file.error(problem, "block", number, *key, remedy=error.remedy) from None

    def cases(self, fabric: Fabric) -> Iterator[str]:
        """Yield the text form of each fault case of the block on a fabric.

        Raises
        ------
        OptionError
            A fault does not exist on this fabric.
        """
        if self.intact:
            yield INTACT
        for key, single, wanted in (("links", every_link, self.links), ("switches", every_switch, self.switches)):
            with self.naming_key(key):
                chosen = some(single(fabric), wanted, f"single {key}, and {fabric.name}")
            yield from map(text_of, chosen)
        with self.naming_key("faults"):
            named = [parse_fault(text, fabric) for text in self.faults]
        yield from map(text_of, named)
        with self.naming_key("random"):
            for text in self.random:
                yield from RandomFaults.parse(text, self.kinds).texts(fabric)


def some(faults: Sequence[Fault], wanted: int | str, what: str) -> Sequence[Fault]:
    """Return all faults of a list, or ``wanted`` faults at even distances in the list.

    ``what`` names the kind of the faults and the fabric, for an error message.

    Raises
    ------
    OptionError
        ``wanted`` is neither "all" nor a number, or exceeds the number of faults.
    """
    if wanted == "all":
        return faults
    if isinstance(wanted, str) or wanted < 0:
        raise OptionError(f"{wanted!r} is not a choice of single faults", remedy="use all, or a number")
    if wanted > len(faults):
        raise OptionError(f"{wanted} {what} has {len(faults)}", remedy="use all, or a smaller number")
    return [faults[n * len(faults) // wanted] for n in range(wanted)]


@dataclass(frozen=True)
class Plan:
    """All tasks of a sweep, with their fabrics and time limits.

    Attributes
    ----------
    tasks
        Tasks, each of which occurs once.
    fabrics
        Fabrics of the tasks, by digest (:func:`~routing.sweep.tasks.digest_of`).
    timeouts
        Time limit in seconds of each task with a time limit, by id of the task.
    """

    tasks: tuple[Task, ...]
    fabrics: Mapping[str, Fabric]
    timeouts: Mapping[str, float]


def expand(blocks: Sequence[Block], read: ReadFabric, shard: Shard | None = None) -> Plan:
    """Expand blocks into single tasks.  With a shard, keep only the tasks that belong to this part of the sweep.

    ``read`` is a function that returns the fabric of a text: a file or a generator.

    Raises
    ------
    InputError
        A fabric cannot be read; an engine, option, mode or fault is invalid; there is no task; or there are more than
        :data:`MOST` tasks.
    """
    fabrics: dict[str, Fabric] = {}
    texts: dict[str, Fabric] = {}
    tasks: dict[str, Task] = {}
    timeouts: dict[str, float] = {}
    room = MOST
    for block in blocks:
        with block.naming_key("engines"):
            targets = [Target.parse(text) for text in block.engines]
        with block.naming_key("seeds"):
            for target, seed in itertools.product(targets, block.seeds):
                target.engine_options(seed=seed)
        for mode in block.modes:
            if mode not in MODES:
                with block.naming_key("modes"):
                    raise OptionError(f"{mode!r} is not a mode of a sweep", remedy=f"use {', '.join(MODES)}")
        with block.naming_key("fabrics"):
            names = [name for text in block.fabrics for name in expand_ranges(text)]
        for text in names:
            with block.naming_key("fabrics"):
                fabric = texts[text] = texts.get(text) or read(text)
            fabric = fabrics.setdefault(digest_of(fabric), fabric)
            each = len(targets) * len(block.modes) * len(block.seeds)
            cases = list(dict.fromkeys(itertools.islice(block.cases(fabric), room // each + 1)))
            room -= each * len(cases)
            if room < 0:
                with block.naming_key():
                    raise OptionError(
                        f"over {MOST:,} cases", remedy="ask for fewer seeds or faults, or make several sweeps"
                    )
            for task in _product(block, fabric, targets, cases):
                if task.id not in tasks and block.timeout is not None:
                    timeouts[task.id] = block.timeout
                tasks.setdefault(task.id, task)
    mine = tuple(task for task in tasks.values() if shard is None or shard.has(task))
    if not tasks:
        raise OptionError("there is nothing to do", remedy="name fabrics, engines and faults")
    return Plan(mine, fabrics, timeouts)


def _product(block: Block, fabric: Fabric, targets: Sequence[Target], cases: Sequence[str]) -> Iterator[Task]:
    digest = digest_of(fabric)
    for target in targets:
        for mode in block.modes:
            for seed in block.seeds:
                for case in cases:
                    yield Task(fabric.name, digest, target, case, seed, mode)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parse a list of seeds such as ``1,5-8``.

    Raises
    ------
    OptionError
        The text is not a list of seeds.
    """
    seeds: list[int] = []
    for word in text.split(","):
        begin, dash, end = word.strip().partition("-")
        first, last = parse_decimal(begin), parse_decimal(end if dash else begin)
        if first is None or last is None or last < first:
            raise OptionError(f"{text!r} is not a list of seeds", remedy="write it like 1,5-8")
        if last - first >= MOST - len(seeds):
            raise OptionError(f"{text!r} means over {MOST:,} seeds", remedy="ask for fewer")
        seeds.extend(range(first, last + 1))
    return tuple(dict.fromkeys(seeds))


def read_spec(path: str | Path) -> list[Block]:
    """Read a sweep from a TOML file with tables ``[[block]]``, whose keys are the attributes of :class:`Block`.

    Paths are relative to the folder of the file.  A single value may be written instead of a list with one value.

    Raises
    ------
    InputError
        The file is not TOML, or a key or a value is invalid.
    EnvironmentProblem
        The file cannot be read.
    """
    file = Toml.read(path)
    blocks = file.table.get("block", [])
    strange = [key for key in file.table if key != "block"]
    if strange or not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        at = [*strange, "block"][0]
        raise file.error("a spec has tables [[block]] and nothing else", at, remedy="see docs/sweeps.md")
    return [_Reader(file, number, block).block() for number, block in enumerate(blocks)]


@dataclass(frozen=True)
class _Reader:
    """Reader and checker of one ``[[block]]`` table of a TOML file."""

    file: Toml
    number: int
    table: Mapping[str, Any]

    def block(self) -> Block:
        names = [field.name for field in fields(Block) if field.name != "origin"]
        for key in self.table:
            if key not in names:
                raise self.error(f"there is no key {key!r}", key, f"keys: {', '.join(names)}")
        fabrics = tuple(name for text in self.listed("fabrics", (), str) for name in self.files(text))
        if not fabrics:
            raise self.error("a block names no fabric", "fabrics", 'fabrics = ["torus:4x4x4"]')
        if "kinds" in self.table and not self.table.get("random"):
            raise self.error("kinds is about random cases, and there are none", "kinds", 'random = "100:2"')
        return Block(
            fabrics=fabrics,
            engines=self.listed("engines", (DEFAULT,), str),
            modes=self.listed("modes", ("fresh",), str),
            seeds=self.listed("seeds", (1,), int),
            intact=self.flag("intact", True),
            links=self.choice("links"),
            switches=self.choice("switches"),
            faults=self.listed("faults", (), str),
            random=self.listed("random", (), str),
            kinds=self.listed("kinds", ("link",), str),
            timeout=self.seconds("timeout"),
            origin=(self.file, self.number),
        )

    def error(self, problem: str, key: str, remedy: str = "see docs/sweeps.md") -> ParseError:
        return self.file.error(problem, "block", self.number, key, remedy=remedy)

    def listed(self, key: str, default: tuple[Any, ...], kind: type) -> tuple[Any, ...]:
        value = self.table.get(key, default)
        values = tuple(value) if isinstance(value, list | tuple) else (value,)
        if not all(type(item) is kind for item in values):
            raise self.error(f"{key} has a value that is not {type_names([kind])}", key)
        if default and not values:
            raise self.error(f"{key} is empty", key, f"leave it out, or write {key} = {list(default)}")
        return values

    def flag(self, key: str, default: bool) -> bool:
        value = self.table.get(key, default)
        if not isinstance(value, bool):
            raise self.error(f"{key} is neither true nor false", key, f"{key} = {str(not default).lower()}")
        return value

    def choice(self, key: str) -> int | str:
        value = self.table.get(key, 0)
        if value == "all" or (type(value) is int and value >= 0):
            return int(value) if value != "all" else "all"
        raise self.error(f"{key} is neither all nor a number", key, f'{key} = "all"')

    def seconds(self, key: str) -> float | None:
        value = self.table.get(key)
        if value is None or (type(value) in (int, float) and 0 < value <= LONGEST):
            return None if value is None else float(value)
        raise self.error(f"{key} is not a number of seconds", key, f"{key} = 60")

    def files(self, text: str) -> list[str]:
        """Return the fabrics that a text names.

        A pattern stands for all files that match it.  A file name stands for the file with this name, relative to the
        TOML file.  Any other text, such as a generator, is returned unchanged.
        """
        folder = Path(self.file.path).parent
        if any(sign in text for sign in "*?["):
            found = sorted(str(file) for file in folder.glob(text))
            if not found:
                raise self.error(f"no file is like {text!r}", "fabrics", "patterns are relative to this file")
            return found
        beside = folder / text
        return [str(beside)] if beside.is_file() else [text]
