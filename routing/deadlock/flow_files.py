"""Read files of flows, given as pairs of end ports of a fabric, or as paths over named links."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from routing.deadlock.pause import Flows
from routing.deadlock.pause_flows import Demand
from routing.endports import find_endport
from routing.errors import OptionError, ParseError
from routing.fabric import Fabric
from routing.formats.text import lines_of, read_text
from routing.numerals import count_noun

_RATE = re.compile(r"[0-9]{1,9}(?:/[0-9]{1,9}|\.[0-9]{1,9})?", re.ASCII)


def read_demands(path: str | Path, fabric: Fabric) -> list[Demand]:
    """Read a file with one flow per line: ``SOURCE DESTINATION [RATE]``.

    SOURCE and DESTINATION are names of CAs or routers, GUIDs (0x...) of nodes or ports, or LIDs.  Names with blanks
    need quotes.  A CA with several cabled ports needs the GUID or a LID of the port.  RATE is a share of the rate of
    the sender's link, such as 1/3 or 0.5.  The default is 1.  ``#`` begins a comment.

    Raises
    ------
    ParseError
        A line is invalid, the fabric does not have the source or the destination, or a rate is not above 0 and at most
        1.
    """
    found = []
    for line, words in _lines(path):
        if len(words) not in (2, 3):
            raise ParseError(
                count_noun(len(words), "word"), path=path, line=line, remedy="write SOURCE DESTINATION [RATE]"
            )
        source, target = (_endport(fabric, word, path, line) for word in words[:2])
        if fabric.endport_switch[source[0]] < 0 or fabric.endport_switch[target[0]] < 0:
            raise ParseError("one of the ends is cabled to no switch", path=path, line=line, remedy="leave it out")
        if source[0] == target[0]:
            raise ParseError(f"{words[0]} sends to itself", path=path, line=line, remedy="leave that line out")
        rate = _rate(words[2], path, line) if len(words) == 3 else Fraction(1)
        found.append(Demand(source[0], target[1], rate))
    if not found:
        raise ParseError("the file has no flow", path=path, remedy="write SOURCE DESTINATION [RATE], a line each")
    return found


def read_paths(path: str | Path) -> Flows:
    """Read a file with the path of one flow per line: ``FLOW: LINK LINK ...``.

    Names of flows and links are arbitrary, and every link has capacity 1.

    Raises
    ------
    ParseError
        A line is invalid, a flow is repeated, or a flow uses a link twice.
    """
    paths: dict[str, list[str]] = {}
    for line, words in _lines(path):
        name, links = words[0].removesuffix(":"), words[1:]
        if name == words[0] or not name or not links:
            raise ParseError("this line is not a flow", path=path, line=line, remedy="write FLOW: LINK LINK ...")
        if name in paths:
            raise ParseError(f"flow {name} occurs twice", path=path, line=line, remedy="give it another name")
        paths[name] = links
        try:
            Flows.of({name: links})
        except OptionError as error:
            raise ParseError(error.problem, path=path, line=line, remedy=error.remedy) from None
    if not paths:
        raise ParseError("the file has no flow", path=path, remedy="write FLOW: LINK LINK ..., a line each")
    return Flows.of(paths)


def _lines(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    for line, text in lines_of(read_text(path)):
        try:
            words = shlex.split(text, comments=True)
        except ValueError as error:
            raise ParseError(str(error).lower(), path=path, line=line, remedy="close the quotes") from None
        if words:
            yield line, words


def _endport(fabric: Fabric, word: str, path: str | Path, line: int) -> tuple[int, int]:
    """Find the end port to which a word of the file (name, GUID or LID) refers.

    Returns
    -------
    row : int
        Row of the end port in the fabric.
    lid : int
        LID that the word states.  If the word states no LID, the base LID of the end port.
    """
    try:
        return find_endport(fabric, word)
    except OptionError as error:
        raise ParseError(error.problem, path=path, line=line, remedy=error.remedy) from None


def _rate(word: str, path: str | Path, line: int) -> Fraction:
    try:
        # A rate with an exponent is refused, because Fraction would expand "1e-999999999" to a number of a billion
        # digits.
        rate = Fraction(word) if _RATE.fullmatch(word) else Fraction(0)
    except ZeroDivisionError:
        rate = Fraction(0)
    if not 0 < rate <= 1:
        raise ParseError(f"{word[:40]} is not a rate", path=path, line=line, remedy="a share of the link such as 1/3")
    return rate
