"""What a sweep is made of: blocks of fabrics x engines x modes x seeds x faults, from options or from a TOML file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from routing.errors import InputError, OptionError
from routing.fabric import Fabric
from routing.faults import Fault, every_link, every_switch
from routing.formats.text import read_text
from routing.formats.toml_text import parse_toml
from routing.sweep.cases import INTACT, RandomFaults, faults_of, text_of
from routing.sweep.tasks import MODES, Shard, Target, Task

LONGEST = 1e6
"""Seconds that a case may be given at most: more than a week."""

ReadFabric = Callable[[str], Fabric]


@dataclass(frozen=True)
class Block:
    """A product of everything in it.

    Attributes
    ----------
    fabrics
        As the command takes them: files or generators; in a file also patterns of files, such as ``nets/*.net``.
    engines
        As :meth:`routing.sweep.tasks.Target.parse` reads them.
    modes, seeds
        How tables come about, and the seeds of the engines.
    intact
        Whether there is a case without a fault.
    links, switches
        Single links between switches, single switches: "all", or how many of them, spread over the fabric.
    faults
        Single faults by name.
    random, kinds
        Random cases as :meth:`routing.sweep.cases.RandomFaults.parse` reads them, and what breaks in them.
    timeout
        Seconds that each case may take, the tables of the intact fabric included; None: without end.
    """

    fabrics: tuple[str, ...]
    engines: tuple[str, ...] = ("updn",)
    modes: tuple[str, ...] = ("fresh",)
    seeds: tuple[int, ...] = (1,)
    intact: bool = True
    links: int | str = 0
    switches: int | str = 0
    faults: tuple[str, ...] = ()
    random: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ("link",)
    timeout: float | None = None

    def cases(self, fabric: Fabric) -> Iterator[str]:
        """What is broken, case by case.

        Raises
        ------
        OptionError
            A fault that means nothing on this fabric.
        """
        if self.intact:
            yield INTACT
        yield from map(text_of, some(every_link(fabric), self.links))
        yield from map(text_of, some(every_switch(fabric), self.switches))
        for text in self.faults:
            yield from map(text_of, faults_of(text, fabric))
        for text in self.random:
            yield from RandomFaults.parse(text, self.kinds).texts(fabric)


def some(faults: Sequence[Fault], wanted: int | str) -> Sequence[Fault]:
    """All of them, or that many at even distances.

    Raises
    ------
    OptionError
        Neither "all" nor a number.
    """
    if wanted == "all":
        return faults
    if isinstance(wanted, str) or wanted < 0:
        raise OptionError(f"{wanted!r} is no choice of single faults", remedy="use all, or a number")
    return faults if wanted >= len(faults) else [faults[n * len(faults) // wanted] for n in range(wanted)]


@dataclass(frozen=True)
class Plan:
    """What a sweep has to do.

    Attributes
    ----------
    tasks
        Each once.
    fabrics
        Those that they are about, by digest.
    timeouts
        Seconds that a task may take, by its id, where it has such a limit.
    """

    tasks: tuple[Task, ...]
    fabrics: Mapping[str, Fabric]
    timeouts: Mapping[str, float]


def expand(blocks: Sequence[Block], read: ReadFabric, shard: Shard | None = None) -> Plan:
    """All tasks of all blocks that belong to a shard.

    Raises
    ------
    InputError
        A fabric that cannot be read, an engine, option or fault that means nothing, or no task at all.
    """
    fabrics: dict[str, Fabric] = {}
    texts: dict[str, Fabric] = {}
    tasks: dict[str, Task] = {}
    timeouts: dict[str, float] = {}
    for block in blocks:
        targets = [Target.parse(text) for text in block.engines]
        for mode in block.modes:
            if mode not in MODES:
                raise OptionError(f"{mode!r} is no mode of a sweep", remedy=f"use {', '.join(MODES)}")
        for text in block.fabrics:
            fabric = texts[text] = texts.get(text) or read(text)
            fabric = fabrics.setdefault(fabric.digest, fabric)
            cases = list(dict.fromkeys(block.cases(fabric)))
            for task in _product(block, fabric, targets, cases):
                if task.id not in tasks and block.timeout is not None:
                    timeouts[task.id] = block.timeout
                tasks.setdefault(task.id, task)
    mine = tuple(task for task in tasks.values() if shard is None or shard.has(task))
    if not tasks:
        raise OptionError("there is nothing to do", remedy="name fabrics, engines and faults")
    return Plan(mine, fabrics, timeouts)


def _product(block: Block, fabric: Fabric, targets: Sequence[Target], cases: Sequence[str]) -> Iterator[Task]:
    for target in targets:
        for mode in block.modes:
            for seed in block.seeds:
                target.engine_options(seed=seed)
                for case in cases:
                    yield Task(fabric.name, fabric.digest, target, case, seed, mode)


def parse_seeds(text: str) -> tuple[int, ...]:
    """Read ``1,5-8``.

    Raises
    ------
    OptionError
        It is no list of seeds.
    """
    seeds: list[int] = []
    for word in text.split(","):
        first, dash, last = word.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or int(last or first) < int(first):
            raise OptionError(f"{text!r} is no list of seeds", remedy="write it like 1,5-8")
        seeds.extend(range(int(first), int(last or first) + 1))
    return tuple(dict.fromkeys(seeds))


def read_spec(path: str | Path) -> list[Block]:
    """The blocks of a TOML file: tables ``[[block]]`` whose keys are the attributes of :class:`Block`.

    Paths are relative to the folder of the file; a single word stands for a list of one.

    Raises
    ------
    InputError
        It is no TOML, or a key or a value is none.
    EnvironmentProblem
        It cannot be read.
    """
    told = parse_toml(read_text(path), path)
    blocks = told.pop("block", [])
    if told or not isinstance(blocks, list) or not blocks or not all(isinstance(block, dict) for block in blocks):
        raise InputError("a spec has tables [[block]] and nothing else", path=path, remedy="see docs/sweeps.md")
    return [_block(block, Path(path)) for block in blocks]


def _block(told: Mapping[str, Any], path: Path) -> Block:
    def listed(key: str, default: tuple[Any, ...], kind: type) -> tuple[Any, ...]:
        value = told.get(key, default)
        values = tuple(value) if isinstance(value, list | tuple) else (value,)
        if not all(type(item) is kind for item in values):
            raise InputError(f"{key} has a value that is no {kind.__name__}", path=path, remedy="see docs/sweeps.md")
        return values

    def flag(key: str, default: bool) -> bool:
        (value,) = listed(key, (default,), bool) or (default,)
        return bool(value)

    def choice(key: str) -> int | str:
        value = told.get(key, 0)
        if value == "all" or (type(value) is int and value >= 0):
            return int(value) if value != "all" else "all"
        raise InputError(f"{key} is neither all nor a number", path=path, remedy=f'{key} = "all"')

    def seconds(key: str) -> float | None:
        value = told.get(key)
        if value is None or (type(value) in (int, float) and 0 < value <= LONGEST):
            return None if value is None else float(value)
        raise InputError(f"{key} is no number of seconds", path=path, remedy=f"{key} = 60")

    names = [field.name for field in fields(Block)]
    for key in told:
        if key not in names:
            raise InputError(f"there is no key {key!r}", path=path, remedy=f"keys: {', '.join(names)}")
    fabrics = tuple(name for text in listed("fabrics", (), str) for name in _files(text, path))
    if not fabrics:
        raise InputError("a block names no fabric", path=path, remedy='fabrics = ["torus:4x4x4"]')
    return Block(
        fabrics=fabrics,
        engines=listed("engines", ("updn",), str),
        modes=listed("modes", ("fresh",), str),
        seeds=listed("seeds", (1,), int),
        intact=flag("intact", True),
        links=choice("links"),
        switches=choice("switches"),
        faults=listed("faults", (), str),
        random=listed("random", (), str),
        kinds=listed("kinds", ("link",), str),
        timeout=seconds("timeout"),
    )


def _files(text: str, path: Path) -> list[str]:
    """A fabric of a spec: files relative to it where there are some, otherwise as it stands."""
    if any(sign in text for sign in "*?["):
        found = sorted(str(file) for file in path.parent.glob(text))
        if not found:
            raise InputError(f"no file is like {text!r}", path=path, remedy="patterns are relative to this file")
        return found
    beside = path.parent / text
    return [str(beside)] if beside.is_file() else [text]
