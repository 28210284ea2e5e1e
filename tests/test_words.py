"""Comments and docstrings keep to the words of docs/glossary.md: those of an older dialect do not come back."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RETIRED = re.compile(r"\b(mend(s|ed|ing)?|afresh|anew|climbs|rides?|hangs? on|whoever|nobody|everybody)\b", re.I)


def python_texts(source):
    """Yield the comments and docstrings of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            yield text


def texts(path):
    source = path.read_text()
    return python_texts(source) if path.suffix == ".py" else re.findall(r"/\*.*?\*/", source, re.DOTALL)


@pytest.mark.parametrize("folder", ["ibnue", "routing", "osm_plugin", "ibsim_fixtures"])
def test_retired_words_do_not_come_back(folder):
    paths = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".py", ".c", ".h")]
    assert paths
    found = [
        f"{path.relative_to(ROOT)}: {match[0]!r} in {text[:60]!r}"
        for path in paths
        if path.name != "_native.c"
        for text in texts(path)
        if (match := RETIRED.search(re.sub(r"`+[^`]*`+", "", text)))
    ]
    assert found == []
