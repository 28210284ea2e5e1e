"""Check the plugin's configuration together with opensm.conf, before OpenSM reads these files."""

from __future__ import annotations

import codecs
import dataclasses
import difflib
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from osm_plugin.bundle_engine import plugin_engines
from osm_plugin.conf_values import TEXTS, UNSET, WORDS, effect_of_wrong_value
from osm_plugin.config import (
    ENGINE_OPTIONS,
    WRITTEN_FILES,
    PluginConfig,
    config_path,
    overwritten_files,
    read_toml,
    valid_settings,
)
from osm_plugin.installed import opensm_program
from osm_plugin.opensm_conf import FOREIGN, OpensmConf, settings_in, take_over
from osm_plugin.partition_file import check_partitions
from osm_plugin.qos_policy_file import check_qos_policy
from routing.engines import ENGINES
from routing.engines.base import MAX_DATA_VLS, EngineOptions, offers_of, refuse_unsupported
from routing.errors import IbnueError, InputError, OptionError, errors_of
from routing.formats.bundle import read_bundle
from routing.formats.guid_files import read_guid_list
from routing.formats.text import c_number, read_text
from routing.formats.toml_text import Toml
from routing.policy import read_policy
from routing.port_classes import port_classes_of

PLUGIN = "ibnue"
PREFIX = f"{PLUGIN}-"
"""Beginning of the names of the plugin's engines in ``routing_engine``."""
OPENSM_CONF = Path("/etc/opensm/opensm.conf")
"""The file that OpenSM reads if no other file is named."""
CREATE_CONF = f"'opensm -c {OPENSM_CONF}' writes one with OpenSM's defaults"
"""Text on how to create the file :data:`OPENSM_CONF`, which Debian does not install."""
BYTE_ORDER_MARK = "\ufeff"
USUAL_POLICY = "/etc/opensm/qos-policy.conf"
"""Name of OpenSM's default ``qos_policy_file``.  OpenSM does not report an error if this file is missing."""
USUAL_PARTITIONS = "/etc/opensm/partitions.conf"
"""Name of OpenSM's default ``partition_config_file``, which need not exist."""
BUILTIN = ("minhop", "updn", "dnup", "file", "ftree", "lash", "dor", "torus-2QoS", "nue", "dfsssp", "sssp")
_Result = TypeVar("_Result")
_QOS_LISTS = (
    (r"qos_(\w+_)?sl2vl", r"((\d|1[0-5])(,|$)){16}", "16 VLs from 0 to 15"),
    (r"qos_(\w+_)?vlarb_(high|low)", r"((\d|1[0-4]):([01]?\d?\d|2[0-4]\d|25[0-5])(,|$)){1,64}",
     "VL:WEIGHT,..., VLs 0 to 14, weights 0 to 255"),
)  # fmt: skip
"""Options of opensm.conf whose values are lists of VLs.  For each kind of option: a pattern of the option's name, a
pattern of a valid value, and a description of a valid value.
"""
_UNREADABLE = PluginConfig(bundle="", shadow="")
"""Stands for a configuration that cannot be read.  Its keys ``bundle`` and ``shadow`` may have any values.  So the
check does not report errors that depend on the values of these keys.
"""
_VLS_OF_CODE: Mapping[int | None, int] = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8}
"""Number of data VLs that the plugin uses, by the value of ``max_op_vls``.

This value is a code, not a number of VLs.  A code that is not a key of the mapping stands for 15 data VLs.  With code
0, OpenSM does not change the operational VLs of the ports, so only one VL is safe.
"""
_QOS_MAX_VLS = ("qos_ca_max_vls", "qos_sw0_max_vls", "qos_swe_max_vls", "qos_rtr_max_vls")
"""Options that replace ``qos_max_vls``, each for one kind of port."""
_READERS: dict[str, Callable[[Path], Any]] = {
    "root_guid_file": read_guid_list,
    "guid_file": read_guid_list,
    "policies": read_policy,
    "bundle": read_bundle,
}


@dataclass(frozen=True)
class Finding:
    """One line in the result of a check.

    Attributes
    ----------
    wrong
        True: the line reports an error, such as an option that OpenSM or the plugin would reject or ignore.  False: the
        line is a hint.
    text
        The line, which names the file and a remedy.
    """

    wrong: bool
    text: str


@dataclass(frozen=True)
class _Conf:
    """An opensm.conf.

    Attributes
    ----------
    path
        File of this opensm.conf.
    text
        Content of the file, with a byte order mark if the file has one.
    settings
        Value of each option, by the name of the option, as OpenSM reads it.  Options with the value "(null)" are left
        out, except options in :data:`~osm_plugin.conf_values.WORDS`.
    prefix
        Folder in which OpenSM is installed.
    """

    path: Path
    text: str
    settings: Mapping[str, str]
    prefix: Path

    @classmethod
    def read(cls, path: Path, prefix: Path) -> _Conf:
        text = read_text(path)
        if path.is_file() and path.read_bytes().startswith(codecs.BOM_UTF8):
            # read_text removes the byte order mark.  OpenSM reads it as a part of the first name, so it is added again.
            text = BYTE_ORDER_MARK + text
        settings = {key: value for key, value in settings_in(text).items() if value != UNSET or key in WORDS}
        return cls(path, text, settings, prefix)

    def at(self, name: str) -> str:
        """Return file and line of an option; only the file if the file does not set the option."""
        lines = [number for number, line in enumerate(self.text.split("\n"), 1) if name in settings_in(line)]
        return f"{self.path}:{lines[-1]}" if lines else str(self.path)


def named_configuration(opensm_conf: Path | None) -> Path | None:
    """Return the path of the plugin's configuration file that an opensm.conf names.

    ``opensm_conf`` is the path of the opensm.conf; None: OpenSM's usual file.  The result is None if the opensm.conf
    cannot be read, names no configuration, or has an error in ``event_plugin_options``.
    """
    with suppress(IbnueError):
        return config_path(
            _Conf.read(opensm_conf or OPENSM_CONF, Path("/usr")).settings.get("event_plugin_options", "")
        )
    return None


def check_configuration(path: Path | None, opensm_conf: Path | None, prefix: Path = Path("/usr")) -> list[Finding]:
    """Check a configuration file of the plugin and an opensm.conf together.

    If ``path`` is None, the configuration file that opensm.conf names is checked.  If opensm.conf names none, the
    default configuration is used.  If ``opensm_conf`` is None, only the configuration file is checked.
    ``prefix`` is the folder in which OpenSM is installed.

    Raises
    ------
    EnvironmentProblem
        One of the two files cannot be read.
    """
    findings: list[Finding] = []
    file: Toml | None = None
    config = PluginConfig()
    if path is not None:
        value = settings_in(read_text(path)).get("routing_engine", "=")
        # Only in a TOML file, an equals sign follows the name of an option.  So a file without this sign is an
        # opensm.conf.
        if not value.startswith("="):
            text = f"{path}: is an opensm.conf, not a configuration of the plugin (--opensm-conf {path})"
            return [Finding(True, text)]
    named = path or (opensm_conf and named_configuration(opensm_conf))
    if named is not None:
        try:
            file = read_toml(named)
        except InputError as problem:
            findings.append(Finding(True, str(problem)))
            config = _UNREADABLE
        else:
            config, errors = valid_settings(file, named)
            findings += [Finding(True, str(error)) for error in sorted(errors, key=lambda error: error.line or 0)]
            for check in (_named_files, _engine_values, _class_values, _written_files, _shadow):
                findings += check(config, file)
    if opensm_conf is not None:
        conf = _Conf.read(opensm_conf, prefix)
        if file is not None:
            # The worker only appends to its log, so OpenSM's log can be the same file.
            named_there = {key: value for key, value in conf.settings.items() if value[:1] == "/" and key != "log_file"}
            read = {f"{key} of opensm.conf": Path(value) for key, value in named_there.items()}
            errors = [*overwritten_files(config, {"opensm.conf": opensm_conf, **read}, file, among_themselves=False)]
            findings += [Finding(True, str(each)) for each in errors]
        findings += _opensm_conf(config, path, conf)
    return findings


def _named_files(config: PluginConfig, file: Toml) -> Iterator[Finding]:
    for keys, path in config.files.items():
        known = [key for key in keys if key]
        try:
            _READERS[keys[-1]](path)
        except IbnueError as problem:
            for each in errors_of(problem):
                yield _wrong(file, f"{'.'.join(known)}: {each}", *known)


def _engine_values(config: PluginConfig, file: Toml) -> Iterator[Finding]:
    for name, table in config.engine.items():
        keys = ("engine", name) if name else ("engine",)
        title = f"[{'.'.join(keys)}]"
        if name and name not in ENGINES:
            own = name.removeprefix(PREFIX)
            remedy = f"write [engine.{own}]" if own in ENGINES else f"known are {', '.join(ENGINES)}"
            yield _wrong(file, f"{title}: unknown engine ({remedy})", *keys)
        for key, option in ENGINE_OPTIONS.items():
            try:
                if key in table:
                    option.check(option.convert(table[key]))
            except OptionError as problem:  # noqa: PERF203  (each option has its own error)
                yield _wrong(file, f"{title}: {problem}", *keys, key)
        if not table.get("budget", 0) >= 0:
            yield _wrong(file, f"{title}: budget is {table['budget']}, wanted seconds from 0", *keys, "budget")
        if "effort" in table and "budget" in table:
            yield _wrong(file, f"{title}: effort and budget both set the effort (leave one out)", *keys, "budget")
        if {"roots", "root_guid_file"} <= table.keys():
            text = f"{title}: roots and root_guid_file both apply, the switches of roots first"
            yield dataclasses.replace(_wrong(file, text, *keys, "roots"), wrong=False)


def _written_files(config: PluginConfig, file: Toml) -> Iterator[Finding]:
    for key in WRITTEN_FILES:
        name = getattr(config, key)
        if not isinstance(name, str):
            continue
        if Path(name).is_dir():
            yield _wrong(file, f"{key}: {name}: is a folder (name a file)", key)
        elif not Path(name).parent.is_dir():
            folder = Path(name).parent
            yield _wrong(file, f"{key}: {folder}: there is no such folder (create it, or name another folder)", key)
        elif not Path(name).is_file() and Path(name).exists() and (key != "log_file" or not name.startswith("/dev/")):
            yield _wrong(file, f"{key}: {name}: is not a regular file (name a file)", key)


def _class_values(config: PluginConfig, file: Toml) -> Iterator[Finding]:
    valid: list[tuple[str, str, Any]] = []
    for label, table in config.classes.items():
        for key, value in table.items():
            try:
                port_classes_of([(key, label, value)], read_guid_list)
                valid.append((key, label, value))
            except OptionError as problem:  # noqa: PERF203  (each setting has its own error)
                yield _wrong(file, f"[classes.{label}]: {problem}", "classes", label, key)
            except IbnueError:
                pass  # A file of GUIDs cannot be read.  _named_files() reports this error.
    try:
        port_classes_of(valid, read_guid_list)
    except OptionError as problem:
        yield _wrong(file, f"[classes]: {problem}", "classes")


def _shadow(config: PluginConfig, file: Toml) -> Iterator[Finding]:
    name = (config.shadow or "").removeprefix(PREFIX)
    if config.shadow is not None and name not in ENGINES:
        yield _wrong(file, f"shadow: unknown engine {name!r} (known are {', '.join(ENGINES)})", "shadow")


def _wrong(file: Toml, problem: str, *keys: str) -> Finding:
    """Return the error ``problem`` about a value of the configuration file, with the line of the value in the file.

    ``keys`` are the names of the TOML tables that contain the value, the outer table first, and then the key of
    the value.
    """
    return Finding(True, str(file.error(problem, *keys)))


def _opensm_conf(config: PluginConfig, path: Path | None, conf: _Conf) -> Iterator[Finding]:
    settings, engines = conf.settings, conf.at("routing_engine")
    if (times := _plugin_names(settings.get("event_plugin_name", "")).count(PLUGIN)) != 1:
        text = f"names {PLUGIN} {times} times" if times else f"does not name {PLUGIN}"
        yield Finding(True, f"{conf.at('event_plugin_name')}: event_plugin_name {text} (event_plugin_name {PLUGIN})")
    yield from _ignored_by_opensm(conf)
    yield from _options_line(settings.get("event_plugin_options", ""), path, conf.at("event_plugin_options"))
    names = settings.get("routing_engine", "").replace(",", " ").split()
    yield from _engine_names(names, config, engines)
    if "updn" in names and "root_guid_file" not in settings:
        text = "OpenSM's updn fails if it finds no root switches, and OpenSM then uses the next engine"
        last = "" if "no_fallback" in names else ", or minhop"
        yield Finding(False, f"{engines}: {text}{last} (set root_guid_file)")
    checked = [] if config is _UNREADABLE else names
    yield from _unsupported_options(checked, config, engines)
    yield from _qos(settings, checked, config, engines)
    if settings.get("use_ucast_cache") == "TRUE":
        yield Finding(
            False, f"{conf.at('use_ucast_cache')}: use_ucast_cache TRUE: OpenSM does not call the engine when a leaf "
            "switch or CA is lost or comes back, so the tables are then not proven (set use_ucast_cache FALSE)"
        )  # fmt: skip
    for name in dict.fromkeys(name.removeprefix(PREFIX) for name in checked if name.startswith(PREFIX)):
        own = config.options_of(name)
        _, verdicts = take_over(OpensmConf.of_settings(conf.settings), name, own)
        for verdict in verdicts:
            if not verdict.honoured:
                text = str(verdict).removeprefix("opensm.conf: ")
                yield Finding(verdict.failed, f"{conf.at(verdict.name)}: {PLUGIN}-{name}: {text}")


def _plugin_names(value: str) -> list[str]:
    """Split the value of ``event_plugin_name`` into names, as OpenSM does.

    A comma or white space ends the first name.  Only white space ends the other names.
    """
    first, *others = re.split(r"[, \t\n]", value.lstrip(", \t\n"), maxsplit=1)
    return [first, *re.split(r"[ \t\n]+", "".join(others))]


def _ignored_by_opensm(conf: _Conf) -> Iterator[Finding]:
    """Report what OpenSM would ignore or misread: a byte order mark in opensm.conf, unknown names, wrong values, and
    missing or wrong files of partitions and of the QoS policy.
    """
    text, settings = conf.text, conf.settings
    unknown = _unknown_options(settings, conf.prefix)
    if text.startswith(BYTE_ORDER_MARK):
        set_there = bool(text.partition("\n")[0].removeprefix(BYTE_ORDER_MARK).partition("#")[0].strip())
        what = "begins with a byte order mark, so OpenSM does not know the name in the first line and ignores that line"
        yield Finding(set_there, f"{conf.path}:1: {what} (save the file without the mark)")
    for name, value in settings.items():
        if not re.fullmatch(r"[a-z0-9_]*", name.removeprefix(BYTE_ORDER_MARK), re.ASCII):
            remedy = "write 'name value', in lower case"
            yield Finding(True, f"{conf.at(name)}: OpenSM does not know the name {name!r} ({remedy})")
        elif name in unknown:
            remedy = f"write {unknown[name]}, or remove the line" if unknown[name] else "remove the line"
            yield Finding(True, f"{conf.at(name)}: OpenSM does not know the option {name} and ignores it ({remedy})")
        elif TEXTS.fullmatch(name):
            continue
        elif value != "TRUE" and (value.upper() in ("TRUE", "YES") or (name == "qos" and value.upper() != "FALSE")):
            remedy = "write TRUE or FALSE"
            yield Finding(True, f"{conf.at(name)}: {name} is {value}, which OpenSM takes as FALSE ({remedy})")
        is_read = not name.startswith("qos_") or settings.get("qos") == "TRUE"
        if is_read and (wrong := effect_of_wrong_value(name, value)):
            yield Finding(True, f"{conf.at(name)}: {wrong}")
    policy = settings.get("qos_policy_file", USUAL_POLICY)
    codes = settings.get("max_op_vls", "5")
    if (code := c_number(codes)) not in range(1, 6):
        text = "so OpenSM does not set the VLs of ports, and ibnue uses one VL" if code == 0 else "which limits nothing"
        yield Finding(True, f"{conf.at('max_op_vls')}: max_op_vls is {codes}, {text} (use 1 to 5)")
    # With an empty value, OpenSM reads no file of partitions.
    partitions = Path(settings.get("partition_config_file", USUAL_PARTITIONS) or "/dev/null")
    pkeys: set[int] | None = set()
    if partitions.is_file() or partitions.is_dir():
        where = conf.at("partition_config_file")
        pkeys = yield from _file_errors("partition_config_file", check_partitions, partitions, where)
    if settings.get("qos") == "TRUE":
        yield from _qos_lists(conf)
        yield from _qos_policy(Path(policy), pkeys, conf.at("qos_policy_file"))
    if not partitions.exists() and not partitions.as_posix().endswith(USUAL_PARTITIONS):
        remedy = "create it, or leave partition_config_file out"
        text = f"there is no file {partitions}, so OpenSM has only the default partition ({remedy})"
        yield Finding(True, f"{conf.at('partition_config_file')}: partition_config_file: {text}")


def _unknown_options(names: Iterable[str], prefix: Path) -> dict[str, str | None]:
    """Return the names among ``names`` that are not options of the installed OpenSM.

    Each returned name comes with the most similar option of OpenSM; None: no option is similar.

    A name counts as an option if it is a string in the file of the OpenSM program.  The result is empty if OpenSM is
    not installed, or if this file is only a wrapper script that starts the program.
    """
    program = opensm_program(prefix)
    code = Path(program).read_bytes() if program else b""
    if b"\0routing_engine\0" not in code:
        return {}
    strings = {text.decode() for text in re.findall(rb"\0([a-z0-9_]{2,})(?=\0)", code)}
    return {
        name: next(iter(difflib.get_close_matches(name, strings, 1, cutoff=0.8)), None)
        for name in names
        # A linker may store a name as the end of a longer string, so no zero byte is required before the name.
        if name.encode() + b"\0" not in code and name not in FOREIGN and not name.startswith(BYTE_ORDER_MARK)
    }


def _file_errors(
    option: str, check: Callable[[Path], _Result], path: Path, where: str
) -> Generator[Finding, None, _Result | None]:
    """Report the errors that ``check`` finds in the file ``path``, which an option of opensm.conf names at ``where``.
    Return the result of ``check``; None if there is an error.
    """
    try:
        return check(path)
    except IbnueError as problem:
        for each in errors_of(problem):
            yield Finding(True, f"{where}: {option}: {each}; OpenSM ignores or misreads a file with an error")
        return None


def _qos_policy(policy: Path, pkeys: set[int] | None, where: str) -> Iterator[Finding]:
    """Report that the QoS policy file ``policy`` is missing, or report the errors in this file.

    ``pkeys`` are the PKeys of the partitions; None: unknown.  ``where`` is the file and line of the option that names
    the policy file.
    """
    if not policy.exists():
        if not policy.as_posix().endswith(USUAL_POLICY):
            remedy = "create it, or leave qos_policy_file out"
            text = f"there is no file {policy}, so no QoS policy applies ({remedy})"
            yield Finding(True, f"{where}: qos_policy_file: {text}")
    # A device is not checked.  Some administrators name /dev/null in order to have no policy.
    elif policy.is_file() or policy.is_dir():
        yield from _file_errors("qos_policy_file", lambda path: check_qos_policy(path, pkeys), policy, where)


def _qos_lists(conf: _Conf) -> Iterator[Finding]:
    """Report options of opensm.conf whose value is a malformed list of VLs, or of VLs with weights.

    OpenSM reads such a list only in part.  Also report if the packets of SL 0 or of ``sm_sl`` would be discarded.
    """
    for name, value in conf.settings.items():
        for end, form, what in _QOS_LISTS:
            if re.fullmatch(end, name) and not re.fullmatch(form, re.sub(r"\s", "", value), re.ASCII):
                yield Finding(True, f"{conf.at(name)}: OpenSM reads {name} {value} only in part (write {what})")
        numbers = [c_number(number.strip()) for number in value.split(",")]
        for sl in {0, c_number(conf.settings.get("sm_sl", "0"))} if name.endswith("sl2vl") else ():
            if sl is not None and numbers[sl : sl + 1] == [15]:
                text = f"{name} maps SL {sl} to VL 15, so its packets are discarded if the tables use one VL"
                yield Finding(True, f"{conf.at(name)}: {text} (use VLs 0 to 14)")


def _options_line(options: str, path: Path | None, where: str) -> Iterator[Finding]:
    try:
        named = config_path(options)
    except InputError as problem:
        yield Finding(True, f"{where}: {problem}")
        return
    if named is None and options:
        text = f"event_plugin_options {options}: names no configuration, so the defaults apply (write --config FILE)"
        yield Finding("conf" in options, f"{where}: {text}")
    if named is not None and not named.is_absolute():
        text = f"event_plugin_options: {named} depends on the folder in which OpenSM starts (write the whole path)"
        yield Finding(False, f"{where}: {text}")
    if path is not None and named is None:
        yield Finding(True, f"{where}: {path} is not named (event_plugin_options --config {path.absolute()})")
    elif path is not None and named is not None and named.resolve() != path.resolve():
        yield Finding(True, f"{where}: event_plugin_options names {named}, not {path}")


def _engine_names(names: list[str], config: PluginConfig, where: str) -> Iterator[Finding]:
    ours = {f"{PREFIX}{name}" for name in plugin_engines()}
    if not ours & set(names) and config.shadow is None:
        yield Finding(True, f"{where}: routing_engine names no engine of the plugin (routing_engine {PLUGIN}-updn)")
    for name in names:
        if name not in ours and name not in BUILTIN and name != "no_fallback":
            yield Finding(True, f"{where}: unknown engine {name!r} (known are {', '.join(sorted(ours))})")
    if f"{PLUGIN}-bundle" in names and config.bundle is None:
        yield Finding(True, f'{where}: {PLUGIN}-bundle needs a bundle (set bundle = "FILE" in the configuration)')
    yield from _opensms_own(names, sorted(ours & set(names), key=names.index), where)
    if "no_fallback" not in names and ours & set(names):
        yield Finding(
            False, f"{where}: without no_fallback OpenSM uses its own minhop when all engines fail; its tables "
            "may have credit loops"
        )  # fmt: skip


def _opensms_own(names: list[str], ours: list[str], where: str) -> Iterator[Finding]:
    """Report OpenSM's own engines in opensm.conf, because ibnue does not prove the tables of these engines.

    ``names`` is the list of engines in opensm.conf, and ``ours`` are the engines of the plugin in this list.  If the
    list has no engine of the plugin, nothing is reported.
    """
    for name in (name for name in names if name in BUILTIN and ours):
        later = [each for each in ours if names.index(each) > names.index(name)]
        if later and name == "minhop":
            text = f"minhop routes every fabric, so OpenSM never tries {', '.join(later)}"
            yield Finding(True, f"{where}: {text} (name minhop last, or leave it out)")
        elif later:
            yield Finding(False, f"{where}: OpenSM tries {name} before {later[0]}; ibnue does not prove its tables")
        else:
            text = f"OpenSM uses {name} if the engines before it fail; ibnue does not prove its tables"
            yield Finding(False, f"{where}: {text}")


def _unsupported_options(names: list[str], config: PluginConfig, where: str) -> Iterator[Finding]:
    """Report engines that would reject an option of the configuration.  For example, not all engines support the
    options in ``[engine]``.
    """
    for name in (name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)):
        options = {key: value for key, value in config.options_of(name).items() if key in ENGINE_OPTIONS}
        try:
            known = EngineOptions.of(options)
        except OptionError:
            continue  # A value is out of range.  The check of the engine options reports this error.
        try:
            if name in ENGINES:
                refuse_unsupported(ENGINES[name], known)
        except OptionError as problem:
            general = "; for options of a single engine, write [engine.NAME] instead of [engine]"
            text = f"{PREFIX}{name} would route nothing: {problem}{general if config.engine.get('') else ''}"
            yield Finding(True, f"{where}: {text}")


def _qos(settings: Mapping[str, str], names: list[str], config: PluginConfig, where: str) -> Iterator[Finding]:
    limit, only, remedy = _data_vls(settings)
    for name in (name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)):
        own = config.options_of(name)
        options = take_over(OpensmConf.of_settings(settings), name, own)[0].options
        vls, first = options.get("vls", "auto"), options.get("first_vl", 0)
        if isinstance(first, int) and limit <= first < MAX_DATA_VLS:
            key = "first_vl" if "first_vl" in own else "lash_start_vl"
            text = f"{PREFIX}{name} is configured with {key} = {first}, but {only} ({remedy}, or remove {key})"
            yield Finding(True, f"{where}: {text}")
        elif isinstance(first, int) and isinstance(vls, int) and limit < first + vls <= MAX_DATA_VLS:
            these = f"with {vls} VLs{f' from VL {first} on' if first else ''}"
            text = f"{PREFIX}{name} is configured {these}, but {only} ({remedy}, or vls = {limit - first})"
            yield Finding(True, f"{where}: {text}")
        elif limit == 1 and offers_of(ENGINES.get(name)).needs_vls:
            text = f"{PREFIX}{name} usually needs more than one VL, but {only} ({remedy})"
            yield Finding(False, f"{where}: {text}")


def _data_vls(settings: Mapping[str, str]) -> tuple[int, str, str]:
    """Return the limit of opensm.conf on the number of data VLs, with its reason and a remedy.

    ``settings`` has the values of the options in opensm.conf, by name.

    Returns
    -------
    limit
        Number of data VLs that opensm.conf allows.
    reason
        Text that states the reason of this limit.
    remedy
        Text that states which option allows more data VLs.
    """
    if settings.get("qos") != "TRUE":
        return 1, "without QoS OpenSM sets up only one", "qos TRUE"
    code = c_number(settings.get("max_op_vls", ""))
    limits = [(_VLS_OF_CODE.get(code, MAX_DATA_VLS), "max_op_vls")]
    for own in _QOS_MAX_VLS:
        key = own if _max_vls(settings, own) else "qos_max_vls"
        limits.append((_max_vls(settings, key) or MAX_DATA_VLS, key))
    limit, key = min(limits)
    return limit, f"with {key} {settings.get(key)} OpenSM sets up only {limit}", f"raise {key}"


def _max_vls(settings: Mapping[str, str], key: str) -> int | None:
    """Return the value of an option whose name, ``key``, ends with "max_vls".

    ``settings`` has the values of the options in opensm.conf, by name.  Return None if the option is missing.  Also
    return None if its value is not from 1 to 15, because OpenSM ignores such a value.
    """
    number = c_number(settings.get(key, ""))
    return number if number is not None and 1 <= number <= MAX_DATA_VLS else None
