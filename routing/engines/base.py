"""Interface of a routing engine, and the options that all engines share.

The command line and OpenSM's process load this module, so it imports nothing that is slow to load.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from routing.engines.option import Option, plain
from routing.errors import OptionError

if TYPE_CHECKING:
    from routing.fabric import Fabric
    from routing.tables import Routing


class Promise(enum.Enum):
    """Deadlock property that an engine claims for its tables before the proof."""

    DEADLOCK_FREE = "deadlock-free"
    """Traffic from or to CAs and routers forms no credit loop.  If the proof fails, the engine has a bug."""
    NONE = "none"
    """No claim: the tables may have credit loops, and the proof then reports them."""


class Objective(enum.Enum):
    """Traffic pattern for which an engine balances the load."""

    ALLTOALL = "alltoall"
    BISECTION = "bisection"


MAX_DATA_VLS = 15
"""Number of data VLs of InfiniBand.  The number is not imported from :data:`routing.tables.DATA_VLS`, because that
import is slow.
"""
AUTO_VLS = 8
"""Number of VLs that the value "auto" of ``vls`` means if it is unknown how many VLs the ports support."""

_NO_ROOTS = "has no roots", "leave them out, or use updn"
_NO_NODES = "treats all end ports alike", "leave the file out, or use ftree"
LONGER_PATHS = "takes longer paths without this option", "leave it out"
"""Problem and remedy in the error of an engine that cannot keep to shortest paths (option ``minimal``)."""


def _texts(values: Iterable[object]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise OptionError(f"{values!r} is one name", option="roots", remedy=f"write a list of names: [{values!r}]")
    given = list(values)
    if given != (texts := [str(value) for value in given]):
        raise OptionError(f"{given} is not a list of names", option="roots", remedy=f"write {texts}")
    return tuple(texts)


def _are_weights(values: object) -> bool:
    """Return whether ``values`` fits the option ``link_weights``: a list of triples of switch GUID, out-port and
    positive factor.  Only the factors are checked.
    """
    try:
        return all(factor > 0 for _, _, factor in values)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return False


@dataclass(frozen=True)
class EngineOptions:
    """Options of a run.  An engine rejects an option that it does not support; no option is ignored silently.

    Each field declares everything about one option.  The command line, the plugin's configuration, sweeps and the
    provenance derive from these declarations, see :data:`OPTIONS`.

    Raises
    ------
    OptionError
        A value has a wrong type or is out of its range.  This class does not check ``roots``, ``root_guid_file``, and
        the sum of ``vls`` and ``first_vl``; the engine checks these values when it runs.
    """

    # fmt: off
    vls: int | str = field(default="auto", metadata={"option": Option(
        (int, str), "Maximum number of data VLs; min: as few as can be found; auto: as many as every port supports.",
        "number of data VLs", range=(1, MAX_DATA_VLS), words=("min", "auto"), metavar="K|min|auto",
    )})
    objective: Objective = field(default=Objective.ALLTOALL, metadata={"option": Option(
        (str,), "Traffic pattern to balance for.", "objective",
        words=tuple(each.value for each in Objective), make=Objective,
        refusal=("balances for all-to-all traffic only", "leave the objective out, or use minhop"),
    )})
    passes: int | None = field(default=None, metadata={"option": Option(
        (int,), "Refinement passes over all destinations (default: as many as the effort allows).",
        "number of refinement passes", range=(0, 1000), metavar="N",
    )})
    effort: float = field(default=1.0, metadata={"option": Option(
        (int, float), "Optimisation effort; 1 takes about a second for a thousand switches.", "effort",
        range=(0, 1000), metavar="X",
    )})
    seed: int = field(default=1, metadata={"option": Option(
        (int,), "Random seed.", "seed", range=(0, 2**31 - 1), sources=("command", "plugin"),
    )})
    threads: int = field(default=2, metadata={"option": Option(
        (int,), "Number of threads; it does not change the tables.", "number of threads", range=(1, 256),
        sources=("command",), recorded=False, changes_tables=False,
    )})
    roots: tuple[str, ...] = field(default=(), metadata={"option": Option(
        (list,), "A root switch of Up*/Down*; may be given several times.", make=_texts, flag="--root",
        metavar="NAME|GUID", sources=("command", "plugin"), recorded=False, refusal=_NO_ROOTS,
    )})
    root_guid_file: Path | None = field(default=None, metadata={"option": Option(
        (str,), "Root switches in the format of OpenSM's root_guid_file.", make=Path, metavar="FILE",
        sources=("command", "plugin"), recorded=False, refusal=_NO_ROOTS,
    )})
    cn_guid_file: Path | None = field(default=None, metadata={"option": Option(
        (str,), "Compute nodes in the format of OpenSM's cn_guid_file; their switches are the leaves.", make=Path,
        metavar="FILE", sources=("command", "plugin"), recorded=False, refusal=_NO_NODES,
    )})
    io_guid_file: Path | None = field(default=None, metadata={"option": Option(
        (str,), "I/O nodes in the format of OpenSM's io_guid_file; all other nodes are compute nodes.", make=Path,
        metavar="FILE", sources=("command", "plugin"), recorded=False, refusal=_NO_NODES,
    )})
    torus_config: Path | None = field(default=None, metadata={"option": Option(
        (str,), "torus-2qos: directions and datelines in the format of OpenSM's torus-2QoS.conf.", make=Path,
        metavar="FILE", sources=("command", "plugin"), recorded=False,
        refusal=("reads no torus-2QoS.conf", "leave the file out, or use torus-2qos"),
    )})
    parts: Path | None = field(default=None, metadata={"option": Option(
        (str,), "chain: file with the parts of the fabric and the engine of each.", make=Path, metavar="FILE",
        sources=("command", "plugin"), recorded=False,
        refusal=("routes the fabric as a whole", "leave the parts out, or use chain"),
    )})
    partition: str | None = field(default=None, metadata={"option": Option(
        (str,), "How destinations are split into layers (default: the engine decides).", "partition",
        words=("metis", "none"), refusal=("has no regions", "leave the partition out, or use updn"), harmless="none",
    )})
    port_vls: int = field(default=AUTO_VLS, metadata={"option": Option(
        (int,), "Number of data VLs that every port supports, for --vls auto.", "number of data VLs of a port",
        range=(1, MAX_DATA_VLS), sources=("command", "sweep"), recorded=False,
    )})
    first_vl: int = field(default=0, metadata={"option": Option(
        (int,), "First VL and SL of the tables; lower ones are left to other traffic.", "first VL",
        range=(0, MAX_DATA_VLS - 1),
    )})
    reversible: bool = field(default=False, metadata={"option": Option(
        (bool,), "Also make replies on the request's SL free of credit loops.",
        refusal=("cannot make replies safe", "use updn or nue"),
    )})
    minimal: bool = field(default=True, metadata={"option": Option(
        (bool,), "sssp: shortest paths only, or the published rule, which also uses longer paths.",
        flag="--minimal/--published", recorded=False, refusal=("takes shortest paths only", "use sssp"),
    )})
    link_weights: tuple[tuple[int, int, float], ...] = field(default=(), metadata={"option": Option(
        (), "(switch GUID, out-port, factor): the channel counts as slower by the factor; other channels are ignored.",
        sources=(), recorded=False,
    )})
    # fmt: on

    def __post_init__(self) -> None:
        for name, option in OPTIONS.items():
            value = getattr(self, name)
            option.check(value)
            # Engines compare values with members of enumerations, so a name such as "bisection" must become a member.
            object.__setattr__(self, name, option.convert(value))
        if not _are_weights(self.link_weights):
            remedy = "use triples of switch GUID, port and a positive factor"
            raise OptionError(f"{self.link_weights!r} are not weights of links", remedy=remedy)

    @classmethod
    def of(cls, values: Mapping[str, Any], **more: Any) -> EngineOptions:
        """Convert ``values`` from TOML, JSON or the command line to options.

        The keyword arguments ``more`` are further options.  Their values need no conversion.

        Raises
        ------
        OptionError
            A value is unknown or out of its range.
        """
        return cls(**{name: OPTIONS[name].convert(value) for name, value in values.items()}, **more)

    def as_dict(self) -> dict[str, Any]:
        """Return the values of all options by name.  Members of enumerations are converted as for JSON."""
        return {name: plain(getattr(self, name)) for name in OPTIONS}


OPTIONS: Mapping[str, Option] = MappingProxyType(
    {
        part.name: replace(part.metadata["option"], name=part.name, default=part.default)
        for part in fields(EngineOptions)
    }
)
"""All engine options by name."""


@dataclass(frozen=True)
class Offers:
    """Declaration of what an engine offers beyond the interface of :class:`Engine`.

    Attributes
    ----------
    options
        Names of the options that this engine supports, without the options that every engine supports
        (:attr:`Option.refusal`).
    refusals
        Problem and remedy for the error about an unsupported option, by the name of the option.  They replace the text
        of :attr:`Option.refusal` where that text does not suit the engine.
    up_down
        Whether the paths follow Up*/Down*.  If so, a repair may use every dependency that leads up and then down.
    needs_vls
        Whether the engine's tables usually need more than one VL.
    opensm_options
        Options of opensm.conf that this engine reads, without the options that every engine reads.
    recomputes
        Whether the engine computes tables, so that they are worth keeping and repairing.  An engine that reads tables
        from a file does not compute them.
    chooses
        Whether the engine always returns the tables of another engine, which it has chosen among several engines.
    """

    options: Collection[str] = ()
    refusals: Mapping[str, tuple[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    up_down: bool = False
    needs_vls: bool = False
    opensm_options: Collection[str] = ()
    recomputes: bool = True
    chooses: bool = False


class Engine(Protocol):
    """A routing engine: computes the routing of a fabric, and has a name and a promise.

    An engine may also have an attribute ``offers`` of type :class:`Offers`.
    """

    name: str
    summary: str
    promise: Promise

    def route(self, fabric: Fabric, options: EngineOptions) -> Routing:
        """Compute the tables.

        Every switch gets an entry for every LID of its connected component; entries for other LIDs stay 255.

        Raises
        ------
        OptionError
            The engine does not support an option.
        RoutingError
            The fabric does not allow the requested routing.
        """
        ...


def offers_of(engine: Engine | None) -> Offers:
    """Return the :class:`Offers` of an engine.  An unknown engine, and an engine without a declaration, has the
    defaults.
    """
    found = getattr(engine, "offers", None)
    return found if isinstance(found, Offers) else Offers()


def refuse_unsupported(engine: Engine, options: EngineOptions) -> None:
    """Check that an engine supports all options that differ from their defaults.

    Raises
    ------
    OptionError
        The engine does not support an option.
    """
    offers = offers_of(engine)
    for name, option in OPTIONS.items():
        if option.refusal is None or name in offers.options:
            continue
        if getattr(options, name) not in (option.default, option.harmless):
            problem, remedy = offers.refusals.get(name, option.refusal)
            raise OptionError(f"{engine.name} {problem}", option=name, remedy=remedy)
