"""Apply those options of opensm.conf that OpenSM itself does not apply to tables of a plugin.  If an option cannot be
applied, log the reason.

The table :data:`OPTIONS` defines how each option is handled.  The plugin's own configuration overrides opensm.conf.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from osm_plugin.conf_values import UNSET
from osm_plugin.silent_files import not_answered
from routing.engines import ENGINES
from routing.engines.base import offers_of
from routing.errors import IbnueError
from routing.formats.guid_files import read_guid_list
from routing.formats.text import c_number, lines_of, read_text
from routing.numerals import count_noun

IGNORED_WEIGHT = 1e-3
"""Weight of a port in ``port_prof_ignore_file``, so small that paths through the port add almost nothing to the
load.
"""
MOST_WEIGHT = 255
SEEDS = 1 << 31

_NO_OPTIONS: Mapping[str, str] = MappingProxyType({})
_UNSET = ("", UNSET)


@dataclass(frozen=True)
class OpensmConf:
    """The options in opensm.conf that differ from OpenSM's defaults, as a mapping from name to text."""

    values: Mapping[str, str] = field(default_factory=lambda: _NO_OPTIONS)

    @classmethod
    def of(cls, text: str) -> OpensmConf:
        """Read the lines "key value" of a request, which have no comments.  If a key is repeated, its last line
        counts.
        """
        lines = (line.strip().partition(" ") for line in text.splitlines())
        return cls.of_settings({key: value.strip() for key, _, value in lines if key and not key.startswith("#")})

    @classmethod
    def of_settings(cls, found: Mapping[str, str]) -> OpensmConf:
        """Return those settings of ``found`` (values by name) that differ from OpenSM's defaults."""
        usual = {option.name: option.usual for option in OPTIONS}
        return cls(
            {key: value for key, value in found.items() if value not in _UNSET and not _same(value, usual.get(key, ""))}
        )

    def get(self, key: str) -> str | None:
        """Return the value of an option; None if it has OpenSM's default."""
        return self.values.get(key)


def settings_in(text: str) -> dict[str, str]:
    """Return the values of the settings in the text of opensm.conf, by name, as OpenSM reads the text.

    If several lines have the same name, the last of these lines counts.  ``#`` begins a comment everywhere in a line,
    and a value may be quoted.  Only spaces and tabs separate the name from the value, so another kind of white space is
    a part of the name.
    """
    found: dict[str, str] = {}
    for line in text.split("\n"):
        words = re.split(r"[ \t]+", line.partition("#")[0].strip(" \t\r"), maxsplit=1)
        if words != [""]:
            value = words[1] if len(words) > 1 else ""
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
            found[words[0]] = value[1:-1] if quoted else value
    return found


def _same(value: str, usual: str) -> bool:
    """Return whether a value equals the default ``usual``.  Case is ignored, and numbers are compared by value."""
    return value.upper() == usual.upper() or (bool(usual) and c_number(value) == c_number(usual) is not None)


@dataclass
class AcceptedOptions:
    """Options for a run of an engine, from the plugin's configuration and from opensm.conf.

    Attributes
    ----------
    options
        Engine options: options of the plugin's configuration, and additions from opensm.conf.
    optional_roots
        Whether ``root_guid_file`` comes from opensm.conf.  If so, GUIDs in this file that no switch has are ignored.
    multicast_roots
        GUIDs of preferred root switches for multicast.  The first switch that exists is used.
    lines
        Lines for the log, one for each option that is set but not applied.
    """

    options: dict[str, Any]
    optional_roots: bool = False
    multicast_roots: tuple[int, ...] = ()
    lines: list[str] = field(default_factory=list)


class NotAcceptedError(Exception):
    """Raised with the reason why an option cannot be applied."""


Take = Callable[[str, AcceptedOptions], None]


@dataclass(frozen=True)
class Option:
    """How the plugin handles one option of opensm.conf.

    If some engines declare the option (:class:`routing.engines.base.Offers`), the option applies only to these engines.

    Attributes
    ----------
    name
        Name in opensm.conf.
    about
        Effect of the option in the plugin, or why it has none, in a few words for the log and the documentation.
    take
        Function that applies a value of the option; None if the option is not applied.
    usual
        OpenSM's default value.
    served
        Whether an option without ``take`` still has its effect, because OpenSM itself applies it or all tables satisfy
        it.
    """

    name: str
    about: str
    take: Take | None = None
    usual: str = ""
    served: bool = False


@dataclass(frozen=True)
class Verdict:
    """How the plugin handles an option that opensm.conf sets.

    Attributes
    ----------
    name
        Name of the option in opensm.conf.
    value
        Value of the option in opensm.conf.
    honoured
        Whether the option has its effect, through the plugin or through OpenSM itself.
    text
        How the option is applied, or why it is not applied.
    failed
        Whether the value cannot be used, for example because the file that it names does not exist.
    """

    name: str
    value: str
    honoured: bool
    text: str
    failed: bool = False

    def __str__(self) -> str:
        how = "" if self.honoured else "not used: "
        return f"opensm.conf: {self.name} {self.value}: {how}{self.text}"


def take_over(
    conf: OpensmConf, engine: str, own: Mapping[str, Any], silent: Collection[Path] = ()
) -> tuple[AcceptedOptions, tuple[Verdict, ...]]:
    """Apply the options that opensm.conf sets, and report how each option is handled.

    Parameters
    ----------
    conf
        The options in opensm.conf.
    engine
        Name of the engine, without the prefix "ibnue-".
    own
        Options of the engine in the plugin's own configuration, which take precedence over opensm.conf.
    silent
        Files that are not read, because their file system does not answer.

    Returns
    -------
    taken
        Options for the run of the engine.
    verdicts
        One verdict for each option that opensm.conf sets, in the order of :data:`OPTIONS`.
    """
    taken = AcceptedOptions(dict(own))
    verdicts = tuple(
        _verdict(option, value, engine, taken, silent)
        for option in OPTIONS
        if (value := conf.get(option.name)) is not None
    )  # fmt: skip
    taken.lines.extend(str(verdict) for verdict in verdicts if not verdict.honoured)
    return taken, verdicts


def _verdict(option: Option, value: str, engine: str, taken: AcceptedOptions, silent: Collection[Path]) -> Verdict:
    if option.take is None:
        return Verdict(option.name, value, option.served, option.about)
    # All engines are imported only for an option that this engine does not declare.
    declared = option.name in offers_of(ENGINES.get(engine)).opensm_options
    names = [] if declared else [n for n, known in ENGINES.items() if option.name in offers_of(known).opensm_options]
    if names:
        return Verdict(option.name, value, False, f"it is for {' and '.join(names)}, not for {engine}")
    try:
        if Path(value) in silent:
            raise not_answered(Path(value))
        option.take(value, taken)
    # InputError is a subclass of both IbnueError and ValueError.  So the clause for IbnueError has to come before the
    # clause for ValueError.
    except (NotAcceptedError, IbnueError) as problem:
        return Verdict(option.name, value, False, str(problem), failed=isinstance(problem, IbnueError))
    except ValueError:
        return Verdict(option.name, value, False, "it is not a number", failed=True)
    return Verdict(option.name, value, True, option.about)


def foreign_options(path: str | None) -> dict[str, str]:
    """Read those options of opensm.conf that other builds of OpenSM know, but OpenSM 3.3.23 ignores (:data:`FOREIGN`).

    If the file cannot be read, return no options.  OpenSM itself continues without the file, too.
    """
    found = OpensmConf()
    if path is not None:
        with suppress(OSError):
            found = OpensmConf.of_settings(settings_in(Path(path).read_text(encoding="utf-8", errors="replace")))
    return {name: found.values[name] for name in FOREIGN if name in found.values}


def _own_first(taken: AcceptedOptions, *keys: str) -> None:
    """Raise NotAcceptedError if the plugin's own configuration sets one of ``keys``, because the plugin's configuration
    overrides opensm.conf.

    ``taken`` has the options of the plugin's own configuration.
    """
    for key in keys:
        if key in taken.options:
            raise NotAcceptedError(f"{key} of the plugin's configuration has priority")


def _roots(value: str, taken: AcceptedOptions) -> None:
    _own_first(taken, "roots", "root_guid_file")
    if not read_guid_list(value):
        raise NotAcceptedError("it names no switch")
    taken.options["root_guid_file"], taken.optional_roots = value, True


def _nodes(key: str) -> Take:
    """Return a function that applies the option ``key``, whose value is the name of a file with GUIDs of nodes."""

    def take(value: str, taken: AcceptedOptions) -> None:
        _own_first(taken, key)
        read_guid_list(value)
        taken.options[key] = value

    return take


def _weights(value: str, taken: AcceptedOptions) -> None:
    found = [
        (guid, numbers[0], float(numbers[1]))
        for guid, numbers in _port_lines(value, 2)
        if 0 < numbers[0] < MOST_WEIGHT and 0 < numbers[1] <= MOST_WEIGHT
    ]
    _add_weights(found, taken)


def _ignored_ports(value: str, taken: AcceptedOptions) -> None:
    _add_weights([(guid, numbers[0], IGNORED_WEIGHT) for guid, numbers in _port_lines(value, 1)], taken)


def _add_weights(found: list[tuple[int, int, float]], taken: AcceptedOptions) -> None:
    if not found:
        raise NotAcceptedError("no line of it names a switch GUID and a port")
    taken.options["link_weights"] = (*taken.options.get("link_weights", ()), *found)


def _port_lines(path: str, numbers: int) -> Iterator[tuple[int, list[int]]]:
    """Yield the GUID of each line of a file, and the numbers after the GUID.  ``numbers`` states how many numbers are
    read.  Like OpenSM, skip lines with fewer numbers.
    """
    for _, line in lines_of(read_text(path)):
        words = [c_number(word) for word in line.partition("#")[0].split()[: 1 + numbers]]
        known = [word for word in words if word is not None]
        if len(known) == 1 + numbers:
            yield known[0], known[1:]


def _seed(value: str, taken: AcceptedOptions) -> None:
    _own_first(taken, "seed")
    taken.options["seed"] = int(value, 0) % SEEDS


def _first_vl(value: str, taken: AcceptedOptions) -> None:
    _own_first(taken, "first_vl")
    taken.options["first_vl"] = int(value, 0)


def _most_vls(value: str, taken: AcceptedOptions) -> None:
    _own_first(taken, "vls")
    if most := int(value, 0):
        taken.options["most_vls"] = most


def _multicast_root(value: str, taken: AcceptedOptions) -> None:
    guid = c_number(value)
    if not guid:
        raise NotAcceptedError("it is not the GUID of a switch")
    taken.multicast_roots = (*taken.multicast_roots, guid)


_ALL_TOGETHER = "the loads of all destinations are balanced together, in no particular order"

FOREIGN = ("mc_primary_root_guid", "mc_secondary_root_guid", "remote_guid_sorting")
"""Options that other builds of OpenSM know, and that OpenSM 3.3.23 ignores."""

OPTIONS: tuple[Option, ...] = (
    Option("root_guid_file", "roots of the order or of the tree; GUIDs that no switch has are ignored", _roots),
    Option("connect_roots", "every switch can already reach every other one, also the roots", served=True,
           usual="FALSE"),
    Option("hop_weights_file", "for balance, the link at the port counts as this many times slower", _weights),
    Option("port_prof_ignore_file", "for balance, the link at the port counts almost nothing", _ignored_ports),
    Option("guid_routing_order_file", _ALL_TOGETHER),
    Option("guid_routing_order_no_scatter", _ALL_TOGETHER, usual="FALSE"),
    Option("port_search_ordering_file", "no engine prefers ports by their order"),
    Option("scatter_ports", "seed of all random choices", _seed, usual="0"),
    Option("port_shifting", _ALL_TOGETHER, usual="FALSE"),
    Option("port_profile_switch_nodes", "paths to switches carry little traffic, and are not balanced", usual="FALSE"),
    Option("cn_guid_file", "compute nodes; their switches are the leaves of the tree", _nodes("cn_guid_file")),
    Option("io_guid_file", "I/O nodes; all other nodes are compute nodes", _nodes("io_guid_file")),
    Option("max_reverse_hops", "pairs without a path up and then down always get a longer path", usual="0"),
    Option("quasi_ftree_indexing", "ftree supports every tree", usual="FALSE"),
    Option("remote_guid_sorting", "no engine prefers ports by their order", usual="FALSE"),
    Option("ids_guid_file", "the order of Up*/Down* does not depend on identifiers of switches"),
    Option("avoid_throttled_links", "throttled links are not used, unless the fabric would then be split", served=True,
           usual="FALSE"),
    Option("mc_primary_root_guid", "root switch of multicast trees", _multicast_root),
    Option("mc_secondary_root_guid", "root switch of multicast trees if the primary root is missing", _multicast_root),
    Option("do_mesh_analysis", "lash finds grids and tori by itself", served=True, usual="FALSE"),
    Option("lash_start_vl", "first VL of lash", _first_vl, usual="0"),
    Option("nue_max_num_vls", "maximum number of VLs of nue", _most_vls, usual="1"),
    Option("nue_include_switches", "routes to switches are always proven", served=True, usual="FALSE"),
    Option("use_optimized_slvl", "SL-to-VL tables are written port by port", usual="FALSE"),
    Option("lid_matrix_dump_file", "it is for OpenSM's engine named file"),
    Option("lfts_file", "it is for OpenSM's engine named file. Use ibnue-bundle to load tables"),
    Option("sm_assigned_guid", "applied by OpenSM itself", served=True, usual="0"),
    Option("sm_sl", "the SL towards the subnet manager if that SL is safe, otherwise the safe SL of its class",
           served=True, usual="0"),
)  # fmt: skip


def describe_left_out(count: int, kept: bool) -> str:
    """Return a line for the log about ``count`` throttled links.  ``kept`` states whether tables use these links."""
    links = count_noun(count, "throttled link")
    if kept:
        return f"opensm.conf: avoid_throttled_links: not used: without {links} the fabric would be split"
    return f"opensm.conf: avoid_throttled_links: {links} left unused"
