"""Check the file of ``qos_policy_file`` before OpenSM reads it.

If the file has an error, OpenSM drops the whole QoS policy.  The check divides the file into the same words as OpenSM's
lexer, and accepts the same sequences of words as OpenSM's grammar.  The check does not know the subnet.  So it cannot
find out whether the partition of a rule for ``ipoib`` has two full members, or whether a switch has the port that a
port name states.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

from routing.errors import ParseError, raise_errors
from routing.formats.text import c_number, read_text

_PARENTS: Mapping[str, str] = {
    "qos-ulps": "", "port-groups": "", "port-group": "port-groups", "qos-setup": "",
    "vlarb-tables": "qos-setup", "vlarb-scope": "vlarb-tables",
    "sl2vl-tables": "qos-setup", "sl2vl-scope": "sl2vl-tables",
    "qos-levels": "", "qos-level": "qos-levels", "qos-match-rules": "", "qos-match-rule": "qos-match-rules",
}  # fmt: skip
"""For each section, the section around this section; "" if there is no section around it."""
_NEVER_EMPTY = ("qos-ulps", "port-groups")
"""Sections in which OpenSM expects at least one rule or section."""
_NAMES: Mapping[str, Mapping[str, str]] = {
    "port-group": {
        "name": "string", "use": "string", "port-guid": "ranges", "port-name": "strings", "pkey": "ranges",
        "partition": "strings", "node-type": "types",
    },
    "vlarb-scope": {
        "group": "strings", "across": "strings", "vlarb-high": "pairs", "vlarb-low": "pairs", "vl-high-limit": "number",
    },
    "sl2vl-scope": {
        "group": "strings", "across": "strings", "across-to": "strings", "across-from": "strings", "to": "ports",
        "from": "ports", "sl2vl-table": "numbers",
    },
    "qos-level": {
        "name": "string", "use": "string", "sl": "number", "mtu-limit": "number", "rate-limit": "number",
        "packet-life": "number", "path-bits": "ranges", "pkey": "ranges",
    },
    "qos-match-rule": {
        "use": "string", "qos-class": "ranges", "source": "strings", "destination": "strings", "service-id": "ranges",
        "pkey": "ranges", "qos-level-name": "string",
    },
}  # fmt: skip
"""For each section with statements "name: value", the names of these statements and the forms of their values."""
_ONCE = ("name", "use", "sl", "mtu-limit", "rate-limit", "packet-life", "qos-level-name", "sl2vl-table")
"""Names of statements that a section may have only once."""
_NEEDED: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "port-group": (("name",),),
    "vlarb-scope": (("group", "across"),),
    "sl2vl-scope": (("sl2vl-table",), ("group", "across", "across-to", "across-from")),
    "qos-level": (("name",), ("sl",)),
    "qos-match-rule": (("qos-level-name",),),
}
"""For each section, sets of names of statements.  A section needs at least one statement of each of its sets."""
_LIMITS: Mapping[str, tuple[int, int]] = {
    "sl": (0, 15), "sl2vl-table": (0, 15), "mtu-limit": (1, 5), "rate-limit": (2, 22), "to": (0, 127), "from": (0, 127),
    "port-num": (0, 0xFFFF),
}  # fmt: skip
"""Smallest and largest permitted number, by the name of the statement or rule that has the number."""
_SL2VL_NUMBERS = 16
_DEFAULT = "default"
"""Name of the QoS level of paths that no rule selects.  OpenSM ignores the case of names of QoS levels."""
_DEFAULT_PKEY = 0x7FFF
"""PKey, without the bit for full membership, of the partition that always exists."""
_TEXTS = ("string", "strings")
_END = "the end of the file"
_Item = TypeVar("_Item")


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the given words.  If several words fit, the pattern matches the longest of
    them.
    """
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_WORD = re.compile(
    rf"""(?P<line>\#.*\n | [ \t]*\n) | (?P<white>[ \t]+)
    | (?P<name>{_any_of({name for names in _NAMES.values() for name in names})})[ \t]*:[ \t]*
    | (?P<section>(?:end-)?(?:{_any_of(_PARENTS)}))
    | (?P<rule>(?i:default|sdp|rds|iser|ipoib)[ \t]*:[ \t]*)
    | (?P<list>(?i:sdp|rds|iser)[ \t]*,[ \t]*port-num | (?i:ipoib)[ \t]*,[ \t]*pkey
        | (?i:srp)[ \t]*,[ \t]*target-port-guid
        | (?i:any)[ \t]*,[ \t]*(?:service-id|pkey|(?:source-target-|source-|target-)port-guid))
    | (?P<number>0[xX][0-9a-fA-F]+|[0-9]+) | (?P<quoted>"[^"]*") | (?P<mark>[-:,*])
    | (?P<type>(?i:router|ca|switch|self|all)) | (?P<text>.)""",
    re.VERBOSE,
)
"""Pattern that finds words as OpenSM's lexer does.  The groups ``rule`` and ``list`` match the beginning of a rule in
``qos-ulps``.  A list of numbers follows a word of the group ``list``, but not a word of the group ``rule``.
"""


class _Word(NamedTuple):
    """A word of the file.

    Attributes
    ----------
    kind
        Usually the name of the group in the pattern :data:`_WORD` that matched the word, such as "number".  The kind of
        a punctuation mark is the mark itself.  The kind "" stands for the end of the file.
    text
        The word.  The colon after a name is left out.
    line
        Line of the word, counted from 1.
    rest
        The word and the rest of its line, for errors.
    """

    kind: str
    text: str
    line: int
    rest: str


def _words(text: str) -> Iterator[_Word]:
    """Yield the words of a policy, with a last word for the end of the file.

    As in OpenSM, the name of a statement decides how the rest of the line is read.  For example, all words after the
    name ``use`` are text, including numbers.
    """
    # `forms` is the set of forms (as in `_NAMES`) of values that may follow the names read so far in the current line.
    # After the name "use", the set also contains the word "use", which is not a form.
    line, forms = 1, set[str]()
    for match in _WORD.finditer(text):
        kind, word = str(match.lastgroup), match[0]
        if kind == "line":
            forms = set()
        elif "use" in forms or (kind in ("number", "mark") and word != "," and not forms.isdisjoint(_TEXTS)):
            kind = "text"
        elif kind == "name":
            word = match["name"]
            forms |= {"use"} if word == "use" else {names[word] for names in _NAMES.values() if word in names}
        kind = {"quoted": "text", "mark": word, "type": kind if "types" in forms else "text"}.get(kind, kind)
        if kind not in ("line", "white"):
            end = text.find("\n", match.start())
            rest = text[match.start() : end if end >= 0 else None].partition("#")[0].strip() or word.strip()
            yield _Word(kind, word.strip('"') if match["quoted"] else word, line, rest)
        line += match[0].count("\n")
    yield _Word("", "", line, _END)


class _Policy:
    """Reads a policy, and remembers the names in it.

    Parameters
    ----------
    path
        The file.
    text
        The text of the file.
    pkeys
        PKeys of all partitions, without the bit for full membership; None: unknown.
    """

    def __init__(self, path: Path, text: str, pkeys: set[int] | None) -> None:
        self._path, self._pkeys = path, pkeys
        self._words = _words(text)
        self._word, self._line = next(self._words), 1  # the next word; line of the word before it
        # Name and first line of each section that has begun and not ended, the outermost section first.
        self._open: list[tuple[str, int]] = []
        # Whether nothing has been read since the innermost section began.
        self._empty = False
        # The values of the statements in the section that began last, by the name of the statement.
        self._values: dict[str, list[str]] = {}
        self._levels: set[str] = set()
        self._groups: set[str] = set()
        # The QoS levels and port groups that match rules name.  Each element has the text "QoS level" or "port group",
        # the name of the level or group, and the first line of the rule.
        self._used: list[tuple[str, str, int]] = []
        # The errors in statements.
        self._errors: list[ParseError] = []
        # Whether no text in quotation marks continues on a second line.  Such a text can mean that a quotation mark is
        # missing.  Then only the first error is reported, because the errors after it would be misleading.
        self._is_plain = not any("\n" in word.text for word in _words(text))
        # Name and first line of each section that has an error in a statement.
        self._faulty: set[tuple[str, int]] = set()

    def read(self) -> None:
        """Read the whole policy.

        Raises
        ------
        ParseError
            OpenSM would drop the policy.
        """
        while self._word.kind:
            section = self._open[-1] if self._open else ("", 0)
            goes_on = self._word.kind != "section" and section[0] in ("qos-ulps", *_NAMES) and self._is_plain
            try:
                self._statement()
            except ParseError as error:
                self._errors.append(error)
                if not goes_on:
                    break
                self._faulty.add(section)
                while self._word.kind and self._word.line <= (error.line or 0):
                    self._next()
        raise_errors(self._errors)
        if self._open:
            name, line = self._open[-1]
            raise self._error(line, f"the section {name} does not end", f"write end-{name}")
        known = {"QoS level": self._levels, "port group": self._groups}
        for what, name, line in self._used:
            if name not in known[what]:
                raise self._error(line, f"there is no {what} {name!r}", "define it in this file")
        if _DEFAULT not in self._levels:
            raise self._error(self._word.line, "there is no default QoS level", "write 'default : 0' in qos-ulps")

    def _error(self, line: int, problem: str, remedy: str) -> ParseError:
        return ParseError(problem, path=self._path, line=line, remedy=remedy)

    def _statement(self) -> None:
        """Read the beginning or end of a section, a rule of ``qos-ulps``, or a statement "name: value"."""
        word, section = self._word, self._open[-1][0] if self._open else ""
        if word.kind == "section":
            self._next()
            self._end(word) if word.text.startswith("end-") else self._begin(word, section)
            return
        self._empty = False
        if section == "qos-ulps" and word.kind in ("rule", "list"):
            self._rule()
        elif word.kind == "name" and word.text in _NAMES.get(section, {}):
            self._named_value(section)
        else:
            known: Iterable[str] = [key for key, around in _PARENTS.items() if around == section]
            remedy = f"known are {', '.join(_NAMES.get(section, known))}"
            if section == "qos-ulps":
                remedy = "write 'default : 0' or 'any, pkey 1 : 2'"
            raise self._error(word.line, f"{word.rest!r} is not possible in {section or 'this place'}", remedy)

    def _begin(self, word: _Word, around: str) -> None:
        if _PARENTS[word.text] != around:
            place = f"inside {_PARENTS[word.text]}" if _PARENTS[word.text] else "outside of all other sections"
            raise self._error(word.line, f"{word.text} is not possible here", f"write it {place}")
        self._open.append((word.text, word.line))
        self._values, self._empty = {}, True

    def _end(self, word: _Word) -> None:
        name = word.text.removeprefix("end-")
        if not self._open or name != self._open[-1][0]:
            opened = f"end the section {self._open[-1][0]} first" if self._open else "remove it"
            raise self._error(word.line, f"end-{name} without {name} before it", opened)
        section = self._open.pop()
        first = section[1]
        if self._empty and name in _NEVER_EMPTY:
            raise self._error(first, f"{name} is empty", "remove it")
        self._empty = False
        for needed in _NEEDED.get(name, ()):
            if section not in self._faulty and self._values.keys().isdisjoint(needed):
                raise self._error(first, f"{name} has no {' or '.join(needed)}", f"add a line '{needed[0]}: ...'")
        names = [value.lower() for value in self._values.get("name", [])]
        (self._levels if name == "qos-level" else self._groups).update(names)
        if name == "qos-match-rule":
            for what, key in (("QoS level", "qos-level-name"), ("port group", "source"), ("port group", "destination")):
                self._used += [(what, each.lower(), first) for each in self._values.get(key, [])]

    def _rule(self) -> None:
        """Read a rule of ``qos-ulps``."""
        word = self._next()
        kind = word.text.strip(" \t:").lower()
        if word.kind == "list":
            ranges = self._ranges("port-num" if kind.endswith("port-num") else "")
            self._take(":", "a colon and an SL")
        else:
            ranges = [(_DEFAULT_PKEY, _DEFAULT_PKEY)]
        if kind.startswith("ipoib") and self._pkeys is not None:
            for first, last in (sorted(number & _DEFAULT_PKEY for number in pair) for pair in ranges):
                missing = next((pkey for pkey in range(first, last + 1) if pkey not in self._pkeys), None)
                if missing is not None:
                    problem = f"there is no partition with the PKey {missing:#06x}"
                    raise self._error(word.line, problem, "define it in partition_config_file")
        self._number("sl")
        if kind == _DEFAULT:
            self._levels.add(_DEFAULT)

    def _named_value(self, section: str) -> None:
        """Read a statement "name: value" of a section."""
        word = self._next()
        name, form = word.text, _NAMES[section][word.text]
        if name in _ONCE and name in self._values:
            raise self._error(word.line, f"{section} has {name} more than once", "leave one out")
        values: list[str] = []
        if form == "string":
            values = [self._string()]
        elif form == "strings":
            values = self._list(self._string)
        elif form in ("number", "numbers"):
            numbers = [self._number(name)] if form == "number" else self._list(lambda: self._number(name))
            if name == "sl2vl-table" and len(numbers) != _SL2VL_NUMBERS:
                problem = f"sl2vl-table has {len(numbers)} numbers"
                raise self._error(word.line, problem, f"write {_SL2VL_NUMBERS} numbers")
        elif form == "pairs":
            self._list(lambda: (self._number(), self._take(":", "a colon and a weight"), self._number()))
        elif form == "types":
            self._list(lambda: self._take("type", "CA, SWITCH, ROUTER, SELF or ALL"))
        elif form == "ports" and self._word.kind == "*":
            self._next()
        else:
            self._ranges(name)
        for value in values if name == "port-name" else ():
            if not re.search(r"/[pP](?:0[xX])?0*[1-9a-fA-F][^/]*$", value):
                raise self._error(word.line, f"{value!r} is not a port name", "write 'NODE/P1'")
        self._values.setdefault(name, []).extend(values)

    def _list(self, item: Callable[[], _Item]) -> list[_Item]:
        """Read one or more items with commas between them."""
        items = [item()]
        while self._word.kind == ",":
            self._next()
            items.append(item())
        return items

    def _take(self, kind: str, wanted: str) -> _Word:
        """Return the next word, which must have a given kind.  ``wanted`` describes this kind for an error."""
        word = self._word
        if word.kind != kind and word.line > self._line:
            raise self._error(self._line, "the line ends too early", f"write {wanted}")
        if word.kind != kind:
            raise self._error(word.line, f"{word.rest!r} is not possible here", f"write {wanted}")
        return self._next()

    def _next(self) -> _Word:
        """Return the next word."""
        word, self._line = self._word, self._word.line
        if word.kind:
            self._word = next(self._words)
        return word

    def _string(self) -> str:
        """Read a text, and remove white space at its ends."""
        parts = [self._take("text", "a text; a text with a word of this file's format needs quotation marks").text]
        while self._word.kind == "text":
            parts.append(self._next().text)
        return "".join(parts).strip()

    def _number(self, name: str = "") -> int:
        """Read a number, which must be in the range of the statement or rule ``name``."""
        least, most = _LIMITS.get(name, (0, 2**64 - 1))
        word = self._take("number", f"a number from {least} to {most}" if name in _LIMITS else "a number")
        number = c_number(word.text)
        if number is None:
            raise self._error(word.line, f"{word.text!r} is not an octal number", "leave out the first 0")
        if not least <= number <= most:
            what = "SL" if name == "sl" else name
            raise self._error(word.line, f"{what} {number} does not exist", f"use {least} to {most}")
        return number

    def _ranges(self, name: str) -> list[tuple[int, int]]:
        """Read numbers and ranges of numbers."""

        def one() -> tuple[int, int]:
            first = self._number(name)
            if self._word.kind != "-":
                return first, first
            self._next()
            return first, self._number(name)

        return self._list(one)


def check_qos_policy(path: Path, pkeys: set[int] | None = None) -> None:
    """Check a QoS policy file.

    Parameters
    ----------
    path
        The file.
    pkeys
        PKeys of all partitions, without the bit for full membership; None: unknown.

    Raises
    ------
    ParseError
        OpenSM would drop the policy.  If there are several errors, a :class:`~routing.errors.ParseErrors` has all
        errors up to the first after which the check cannot continue.
    InputError, EnvironmentProblem
        The file cannot be read.
    """
    text = read_text(path)
    if b"\r\n" in path.read_bytes():  # OpenSM reads the carriage return as a part of the line's last word.
        raise ParseError("its lines end with a carriage return", path=path, line=1, remedy="use Unix line ends")
    _Policy(path, text, None if pkeys is None else {_DEFAULT_PKEY, *pkeys}).read()
