from pathlib import Path

from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from in_one_test import cases_in_one_test

import ibsim_fixtures
import routing
from routing.errors import ParseError
from routing.formats import toml_text
from routing.formats.toml_text import Toml

TEXT = """# a comment with [[rule]] in it
title = 'x'
about = \"\"\"
[[rule]]
ports = 3
\"\"\"

[engine]
vls.most = 4
"a key" = 1

[[rule]]
ports = [
  "1", # one
  "2",
]
[rule.times]
hoq = 1

[[rule]]
  ports = '3'
  times = { hoq = 2 }

[[rule.part]]
[[rule.part]]
name = 'x'
[engine.nue]
ways = [{ a = 1 }, { a = 2, b = [3] }]
"""

PLACES = {
    ("title",): 2,
    ("about",): 3,
    ("engine",): 8,
    ("engine", "vls"): 9,
    ("engine", "vls", "most"): 9,
    ("engine", "a key"): 10,
    ("rule",): 12,
    ("rule", 0): 12,
    ("rule", 0, "ports"): 13,
    ("rule", 0, "ports", 0): 14,
    ("rule", 0, "ports", 1): 15,
    ("rule", 0, "times"): 17,
    ("rule", 0, "times", "hoq"): 18,
    ("rule", 1): 20,
    ("rule", 1, "ports"): 21,
    ("rule", 1, "times", "hoq"): 22,
    ("rule", 1, "part", 0): 24,
    ("rule", 1, "part", 1): 25,
    ("rule", 1, "part", 1, "name"): 26,
    ("engine", "nue"): 27,
    ("engine", "nue", "ways", 1, "b", 0): 28,
}


@cases_in_one_test("end", ["\n", "\r\n"])
@cases_in_one_test(("where", "line"), PLACES.items(), ids=lambda value: str(value).replace(" ", ""))
def test_every_value_has_its_line(where, line, end):
    assert Toml.of(TEXT.replace("\n", end), "x.toml").line(*where) == line


def test_a_missing_key_has_the_line_of_its_table():
    file = Toml.of(TEXT, "x.toml")
    assert file.line("rule", 1, "name") == 20
    assert file.line("rule", 7) == 12
    assert file.line("nothing") is None
    assert file.line() is None


def test_an_error_names_file_and_line():
    file = Toml.of(TEXT, "x.toml")
    reported = file.error("is wrong", "rule", 1, "ports", remedy="repair it")
    assert isinstance(reported, ParseError)
    assert str(reported) == "x.toml:21: is wrong (repair it)"
    assert str(file.error("title is missing")) == "x.toml: title is missing"


def test_lines_as_editors_count_them():
    """Unicode has more line ends than TOML."""
    assert Toml.of("a = 'x\u2028y\u0085z'\nb = 1\n", "x.toml").line("b") == 2


SHIPPED = [path for package in (routing, ibsim_fixtures) for path in Path(package.__file__).parent.rglob("*.toml")]


def places(value, where=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*where, key)
        yield from places(item, (*where, key))


@cases_in_one_test("path", SHIPPED, ids=lambda path: path.stem)
def test_every_value_of_the_files_that_are_shipped_is_found(path):
    file = Toml.read(path)
    lines = path.read_text().split("\n")
    assert SHIPPED
    for where in places(file.table):
        assert isinstance(where[-1], int) or where[-1] in lines[file.lines[where] - 1]
    assert len(file.lines) > len(file.table)


@st.composite
def statements(draw, depth=2):
    """Hypothesis strategy: a value of TOML, over several lines if TOML allows this."""
    plain = ["1", "2.5e3", "true", "1979-05-27T07:32:00Z", "'[# '", '"]\\"{"', '"""\n[a]\\""""""', "'''}\n'''''"]
    if not depth or draw(st.booleans()):
        return draw(st.sampled_from(plain))
    inner = draw(st.lists(statements(depth=depth - 1), max_size=3))
    if draw(st.booleans()):
        between = draw(st.sampled_from([", ", ",\n", ", # ]\n"]))
        return f"[{between.join(inner)}{between if inner else ''}]"
    flat = [value for value in inner if "\n" not in value or value[:3] in ("'''", '"""')]
    return f"{{ {', '.join(f'k{n} = {value}' for n, value in enumerate(flat))} }}"


@examples(200)
@given(st.lists(st.tuples(statements(), st.sampled_from(["", " # [", "\n", "\n# x = [\n"])), max_size=6))
def test_keys_stand_where_their_statements_begin(parts):
    text, lines = "", []
    for number, (value, after) in enumerate(parts):
        lines.append(1 + text.count("\n"))
        text += f"key{number} = {value}{after}\n"
    file = Toml.of(text, "x.toml")
    assert [file.line(f"key{number}") for number in range(len(parts))] == lines


def test_long_arrays_take_one_walk(monkeypatch):
    read, loads = [], toml_text.tomllib.loads
    monkeypatch.setattr(toml_text.tomllib, "loads", lambda text: read.append(len(text)) or loads(text))
    text = "a = [\n" + "".join(f"  {number}, # one\n" for number in range(3000)) + "]\nb = 1\n"
    assert Toml({}, text, "x.toml").line("b") == 3003
    assert sum(read) <= len(text)
