"""Check that every error code of the plugin has one meaning, and one row in the table of docs/failure-modes.md."""

import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "failure-modes.md"
LITERAL = re.compile(r'"(ERR IBN[^"]*)"')


def literals():
    """Return the texts of all error lines in the sources, by code."""
    found = defaultdict(set)
    for source in [*(ROOT / "osm_plugin").glob("*.c"), *(ROOT / "osm_plugin").glob("[hs]*.py")]:
        for text in LITERAL.findall(source.read_text()):
            code, colon, rest = text.removeprefix("ERR ").partition(":")
            assert re.fullmatch(r"IBN[0-9A-Z]+", code), f"{source.name}: {text!r} has no code"
            found[code].add((source.name, rest) if colon else (source.name,))
    return found


def rows():
    """Return the number of rows of each code in the table of the page."""
    return Counter(re.findall(r"^\| `(IBN[0-9A-Z]+)` \|", PAGE.read_text(), re.MULTILINE))


def test_every_code_has_one_row_and_every_row_a_code():
    assert set(literals()) == set(rows())
    assert set(rows().values()) == {1}


def test_no_code_has_two_meanings():
    assert {code: texts for code, texts in literals().items() if len(texts) > 1} == {}


def test_every_row_names_cause_and_remedy():
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `IBN"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == 4 and all(cells), line
