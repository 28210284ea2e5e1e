"""The code stays small: functions fit a screen, and the number of lines is limited."""

import ast
import functools
import io
import re
import tokenize
from pathlib import Path

import pytest
from statements import statements

ROOT = Path(__file__).parents[1]
PACKAGES = ("routing", "osm_plugin", "ibsim_fixtures", "ibnue")
MOST_LINES_OF_A_FUNCTION = 60
MOST_LINES = 72_040
"""Upper bound of the number of lines of product code.  Raise it only for a new feature, and delete unused
code first.
"""


def product(*suffixes):
    """Return the source files of the product that have one of the suffixes."""
    found = (path for name in PACKAGES for path in (ROOT / name).rglob("*") if path.suffix in suffixes)
    return sorted(path for path in found if path.name != "_native.c")


@functools.cache
def nodes(path):
    """Return the statements of a module."""
    return list(statements(ast.parse(path.read_text())))


def python_functions(path):
    """Yield the name and the number of lines of each Python function, without its docstring."""
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first, lines = node.body[0], node.end_lineno - node.lineno + 1
            if ast.get_docstring(node, clean=False) is not None:
                lines -= first.end_lineno - first.lineno + 1
            yield node.name, lines


def c_functions(path):
    """Yield the first line and the number of lines of each C function, from its opening to its closing brace."""
    opened = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("{"):
            opened = number
        elif line.startswith("}") and opened:
            yield f"line {opened}", number - opened + 1
            opened = 0


def python_lines(path):
    """Return the number of lines with code of a module, without blank lines, comments and docstrings."""
    left_out = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if token.type not in left_out | {tokenize.ENDMARKER}:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in nodes(path):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def c_lines(source):
    """Return the number of lines with code, without blank lines and comments."""
    code = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
    return sum(bool(line.strip()) for line in code.splitlines())


@pytest.mark.parametrize(("suffix", "functions"), [(".py", python_functions), (".c", c_functions), (".h", c_functions)])
def test_functions_fit_a_screen(suffix, functions):
    long = [
        f"{path.relative_to(ROOT)} {name}: {lines}"
        for path in product(suffix)
        for name, lines in functions(path)
        if lines > MOST_LINES_OF_A_FUNCTION
    ]
    assert not long


def test_the_product_does_not_grow_unseen():
    lines = sum(python_lines(path) for path in product(".py"))
    lines += sum(c_lines(path.read_text()) for path in product(".c", ".h"))
    assert 0.9 * MOST_LINES < lines <= MOST_LINES
