"""Check the file of ``qos_policy_file`` before OpenSM reads it.

If the file has an error, OpenSM drops the whole QoS policy.  The check finds errors in sections, in names and in SLs.
The check accepts some files that OpenSM refuses.  Examples are errors in lists of ports, in ranges and in arbitration
tables, repeated keys, port groups that are not defined, and PKeys of ``ipoib`` without a partition.  The check refuses
a few layouts that OpenSM accepts, for example a list in qos-ulps that continues on the next line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from routing.errors import ParseError
from routing.formats.text import c_number, read_text

_PARENTS: Mapping[str, str] = {
    "qos-ulps": "", "port-groups": "", "port-group": "port-groups", "qos-setup": "",
    "vlarb-tables": "qos-setup", "vlarb-scope": "vlarb-tables",
    "sl2vl-tables": "qos-setup", "sl2vl-scope": "sl2vl-tables",
    "qos-levels": "", "qos-level": "qos-levels", "qos-match-rules": "", "qos-match-rule": "qos-match-rules",
}  # fmt: skip
"""For each section, the section around this section; "" if there is no section around it."""
_NAMES: Mapping[str, tuple[str, ...]] = {
    "port-group": ("name", "use", "port-guid", "port-name", "partition", "node-type"),
    "vlarb-scope": ("group", "across", "vlarb-high", "vlarb-low", "vl-high-limit"),
    "sl2vl-scope": ("group", "to", "from", "across", "across-to", "across-from", "sl2vl-table"),
    "qos-level": ("name", "use", "sl", "mtu-limit", "rate-limit", "packet-life", "path-bits", "pkey"),
    "qos-match-rule": ("use", "qos-class", "source", "destination", "service-id", "pkey", "qos-level-name"),
}
"""For each section with lines "name: value", the names that such a line may have."""
_RULE = re.compile(
    r"""(?: (?P<default>default) | sdp | rds | iser | ipoib
    | (?:sdp|rds|iser) \s*,\s* (?-i:port-num) \s [^:]+
    | ipoib \s*,\s* (?-i:pkey) \s [^:]+
    | srp \s*,\s* (?-i:target-port-guid) \s [^:]+
    | any \s*,\s* (?-i:service-id|pkey|(?:source-|target-|source-target-)port-guid) \s [^:]+
    ) \s*:\s* (?P<sl>\S*)""",
    re.VERBOSE | re.IGNORECASE,
)
"""Pattern of a line of the section qos-ulps.  OpenSM ignores the case of the first word only."""
_DEFAULT = "default"
"""Name of the QoS level of paths that no rule selects.  OpenSM ignores the case of names of QoS levels."""
_MOST_SL = 15


@dataclass
class _Policy:
    """The part of a policy that was read so far.

    Attributes
    ----------
    path
        The file.
    open
        Name and line of each section that has begun and not ended, from the outermost to the innermost section.
    values
        Values of the lines "name: value" in the innermost section so far, by name.
    levels
        Names of the QoS levels, in lower case.
    chosen
        For each match rule, the name (in lower case) of the QoS level that the rule chooses, and the first line of the
        rule.
    """

    path: Path
    open: list[tuple[str, int]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    levels: set[str] = field(default_factory=set)
    chosen: list[tuple[str, int]] = field(default_factory=list)

    @property
    def section(self) -> str:
        """Return the name of the innermost section; "" outside of all sections."""
        return self.open[-1][0] if self.open else ""

    def error(self, line: int, problem: str, remedy: str | None = None) -> ParseError:
        """Return an error at a line of the file."""
        return ParseError(problem, path=self.path, line=line, remedy=remedy)

    def begin(self, line: int, name: str) -> None:
        """Begin a section."""
        if _PARENTS[name] != self.section:
            place = f"inside {_PARENTS[name]}" if _PARENTS[name] else "outside of all other sections"
            raise self.error(line, f"{name} is not possible here", f"write it {place}")
        self.open.append((name, line))
        self.values = {}

    def end(self, line: int, name: str) -> None:
        """End a section, and check that the section is complete."""
        if name != self.section:
            opened = f"end the section {self.section} first" if self.section else "remove it"
            raise self.error(line, f"end-{name} without {name} before it", opened)
        _, first = self.open.pop()
        needed = {"qos-level": ("name", "sl"), "qos-match-rule": ("qos-level-name",)}.get(name, ())
        for key in needed:
            if key not in self.values:
                raise self.error(first, f"{name} has no {key}", f"add a line '{key}: ...'")
        if name == "qos-level":
            self.levels.add(self.values["name"].lower())
        if name == "qos-match-rule":
            self.chosen.append((self.values["qos-level-name"].lower(), first))

    def check_sl(self, line: int, text: str) -> None:
        """Check that ``text`` is an SL."""
        number = c_number(text)
        if number is None or not text[0].isdigit():
            raise self.error(line, f"{text!r} is not an SL", f"use 0 to {_MOST_SL}")
        if number > _MOST_SL:
            raise self.error(line, f"SL {number} does not exist", f"use 0 to {_MOST_SL}")

    def read(self, line: int, text: str) -> None:
        """Read the text of a line, without comments and white space at its ends."""
        name, colon, value = (part.strip(" \t") for part in text.partition(":"))
        if not colon and name in _PARENTS:
            self.begin(line, name)
        elif not colon and name.removeprefix("end-") in _PARENTS:
            self.end(line, name.removeprefix("end-"))
        elif self.section == "qos-ulps":
            rule = _RULE.fullmatch(text)
            if rule is None:
                raise self.error(
                    line, f"{text!r} is not a rule of qos-ulps", "write 'default : 0' or 'any, pkey 1 : 2'"
                )
            self.check_sl(line, rule["sl"])
            if rule["default"]:
                self.levels.add(_DEFAULT)
        elif colon and name in _NAMES.get(self.section, ()):
            self.values[name] = value
            if name == "sl":
                self.check_sl(line, value)
        else:
            known = _NAMES.get(self.section, [key for key, around in _PARENTS.items() if around == self.section])
            place = f"in {self.section}" if self.section else "here"
            raise self.error(line, f"{text!r} is not possible {place}", f"known are {', '.join(known)}")


def _has_several_statements(section: str, text: str) -> bool:
    """Return whether a line probably has more than one statement, which OpenSM accepts and this check does not read.

    ``section`` is the section of the line.
    """
    name, _, value = (part.strip(" \t") for part in text.partition(":"))
    begins = len(text.split()) > 1 and text.split(maxsplit=1)[0].removeprefix("end-") in _PARENTS
    return begins or (section in ("qos-level", "qos-match-rule") and ":" in value and name != "use")


def check_qos_policy(path: Path) -> None:
    """Check a QoS policy file.  The check ends without a result at a line with several statements.

    Raises
    ------
    ParseError
        OpenSM would drop the policy.  The error names the first line that is wrong.
    InputError, EnvironmentProblem
        The file cannot be read.
    """
    policy, lines = _Policy(path), read_text(path).split("\n")
    if b"\r\n" in path.read_bytes():  # OpenSM takes the carriage return as a part of the last word.
        raise ParseError("its lines end with a carriage return", path=path, line=1, remedy="use Unix line ends")
    continues = False  # whether the line continues a list of the previous line
    number = 0
    for number, raw in enumerate(lines, 1):
        text = raw.partition("#")[0].strip(" \t")
        if text and not continues and text[0] not in ",-0123456789":
            if _has_several_statements(policy.section, text):
                return
            policy.read(number, text)
        continues = text.endswith((",", ":", "-")) if text else continues
    if policy.open:
        name, line = policy.open[-1]
        raise policy.error(line, f"the section {name} does not end", f"write end-{name}")
    for level, line in policy.chosen:
        if level not in policy.levels:
            raise policy.error(line, f"there is no QoS level {level!r}", "define it in qos-levels")
    if _DEFAULT not in policy.levels:
        raise policy.error(number, "there is no default QoS level", "write 'default : 0' in qos-ulps")
