"""Names and texts use the words of docs/glossary.md, and none of the retired words."""

import ast
import functools
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = ("ibnue", "routing", "osm_plugin", "ibsim_fixtures")
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs")

RETIRED = re.compile(
    r"\b(mend(s|ed|ing)?|afresh|anew|climb(s|ed|ing)?|rides?|rode|hangs? (on|from|off|together)|whoever|(?<!\")nobody"
    r"|everybody|ways?|lanes?|lay(s|ing)?|laid|heal(s|ed|ing)?|homes?|deeds?|tells?|told|fullness|slowness|foreseen?"
    r"|(?<!here )(is|are|was|were) no (?!longer\b|more\b|less\b|other\b))\b",
    re.I,
)
"""Words and phrases in place of which the glossary has path, VL, dependency, compute, repair, depend on, report ..."""

PLAIN = re.compile(
    r"\b(on|under|in) (the|its|their|that|this)? ?(same )?way\b|\b(one|k)-way"
    r"|\b(virtual|physical|per|fewer|\d+) lanes?\b|\blanes? wide|\ba lane's speed",
    re.I,
)
"""Phrases in which a retired word is allowed, such as "lane" for a physical lane of a link or in "virtual lane"."""

RETIRED_NAME = re.compile(
    r"mend(s|ed)?|anew|afresh|climb(s|ing)?|rides|ways?|lays?|laid|heal(s|ed)?|homes?|deeds?|tells?|told|slowness|fullness"
    r"|foreseen?|looks|hopeless|patience|strays|steep|circling|unjudged|obituary|heed|easing|ringed"
)
"""Retired words as parts of names, as in ``lay_block`` or ``CreditLoop``."""


def files(folders, *suffixes):
    """Return the files of the project below folders that have one of the suffixes."""
    paths = [
        path for name in folders for path in ([ROOT / name] if (ROOT / name).is_file() else (ROOT / name).rglob("*"))
    ]
    return sorted(path for path in paths if path.suffix in suffixes and path.name != "_native.c")


@functools.cache
def nodes(path):
    """Return the nodes of the syntax tree of a module."""
    return list(ast.walk(ast.parse(path.read_text())))


def python_texts(path, source):
    """Yield the comments, docstrings and messages of a module; a string without a space is a name, not a message."""
    # The tokenizer is slow, so it runs only if a retired word follows a "#", which may be a part of a string.
    if any(map(retired, re.findall(r"#.*", source))):
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                yield token.string
    for node in nodes(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.value


def texts(path):
    """Return the texts of a file in which retired words are looked for."""
    source = path.read_text()
    if path.suffix == ".py":
        return python_texts(path, source)
    if path.suffix in (".c", ".h"):
        return re.findall(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)* (?:[^"\\\n]|\\.)*"', source, re.DOTALL)
    return source.split("\n\n")


def names(path):
    """Return the names that a module defines, or all names in C code."""
    source = path.read_text()
    if path.suffix != ".py":
        return re.findall(r"[A-Za-z_]\w*", re.sub(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', "", source, flags=re.DOTALL))
    found = set()
    for node in nodes(path):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def retired(text):
    """Return the first retired word of a text outside of quoted code, or None."""
    unwrapped = re.sub(r"\s+", " ", re.sub(r"\n\s*\* ", " ", text))
    found = RETIRED.search(PLAIN.sub("", re.sub(r"`+[^`]*`+|\]\([^)]*\)", "", unwrapped)))
    return None if found is None else found[0]


@pytest.mark.parametrize(("text", "word"), [
    ("the way back", "way"), ("credits on their way", None), ("two lanes of a VL", "lanes"), ("virtual lanes", None),
    ("the fabric is no tree", "is no "), ("there is no loop", None), ("`ways` is `paths`", None),
])  # fmt: skip
def test_words_are_found_in_their_retired_sense(text, word):
    assert retired(text) == word


@pytest.mark.parametrize("folder", CODE)
def test_no_retired_words_in_code(folder):
    paths = files([folder], ".py", ".c", ".h", ".toml", ".net")
    assert paths
    assert [(path.name, word, text[:70]) for path in paths for text in texts(path) if (word := retired(text))] == []


def test_no_retired_words_on_pages():
    paths = files(PAGES, ".md")
    assert paths
    assert [(path.name, word, text[:70]) for path in paths for text in texts(path) if (word := retired(text))] == []


@pytest.mark.parametrize("folder", CODE)
def test_no_retired_words_in_names(folder):
    paths = files([folder], ".py", ".c", ".h")
    assert paths
    found = {(path.name, name) for path in paths for name in names(path)}
    parts = {where: re.findall(r"[A-Z]?[a-z]+|[A-Z]+", where[1]) for where in found}
    assert [
        where for where, words in parts.items() if any(RETIRED_NAME.fullmatch(word.lower()) for word in words)
    ] == []
