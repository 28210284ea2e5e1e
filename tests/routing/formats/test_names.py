"""Check that any name may occur in a fabric: a file with the name reads back, or is refused in one line."""

import re
from dataclasses import replace

import numpy as np
from examples import examples
from hypothesis import example, given
from hypothesis import strategies as st
from routing_cases import FakeProof, shortest, tables
from strategies import ring_fabric

from routing.errors import IbnueError
from routing.formats.bundle import read_bundle
from routing.formats.fabric_files import read_fabric, write_fabric
from routing.formats.table_files import BUNDLE, FORMATS, read_tables, write_tables
from routing.names import escape_control

PLAIN = ring_fabric(3, cas=1)
LINES = (
    "a\n0x0001 003", "a\r\nb", "a\nUnicast lids [0-6] of switch Lid 1 guid 0x0000000000200001 ('b'):",
    "a portguid 0x0000000000100001: 'b'", "' portguid 0x0000000000200002", "5 lids dumped", '", port 3', '"[2] w=2',
    "", "a # lid 9 lmc 0", " base port 0 lid 9", "\v\f\x1c\x85\u2028\u2029", "\x1b[31m", "a\0",
    "\ud800", "\ud800\udc00",
)  # fmt: skip
"""Names that look like parts of the files that contain them, or that end a line in some program."""
NAMES = st.lists(st.sampled_from(LINES) | st.text(st.characters(), max_size=12), max_size=3).map("".join)
SIX = st.lists(NAMES, min_size=6, max_size=6)

HELD = {
    ".json": re.compile("[^\ud800-\udfff]").fullmatch,
    ".graphml": re.compile("[\t\n -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]").fullmatch,
    ".dot": lambda letter: letter.isprintable() or letter in "\t\n",
}
"""Functions that return whether a file contains a character unchanged."""


def called(names):
    return replace(PLAIN, name=names[0], switch_name=tuple(names[:3]), terminal_name=tuple(names[3:]))


def all_names(fabric):
    return [*fabric.switch_name, *fabric.terminal_name]


def read_back(fabric, folder):
    """Write tables, and return the contents of the bundle and of the text files."""
    routing = tables(fabric, sl_form="switch", per_port=True)[0]
    write_tables(folder, fabric, routing, FakeProof(shortest(fabric)[1], None), formats=list(FORMATS))
    bundle = read_bundle((folder / BUNDLE).rename(folder.parent / f"{folder.name}.npz"))
    return bundle, read_tables(folder, fabric)


@examples(150)
@given(SIX)
@example([LINES[3]] * 6)
def test_tables_come_back_under_any_name(tmp_path_factory, names):
    fabric, folder = called(names), tmp_path_factory.mktemp("t")
    (_, plain), (bundle, texts) = read_back(PLAIN, folder / "plain"), read_back(fabric, folder / "any")
    for found in (texts, bundle.routing):
        assert np.array_equal(found.lft, plain.lft)
    assert np.array_equal(texts.sl, plain.sl)
    assert np.array_equal(texts.sl2vl, plain.sl2vl)
    assert bundle.switch_name == tuple(name.replace("\0", "\\x00") for name in fabric.switch_name)


@examples(150)
@given(SIX, st.sampled_from([".json", ".graphml", ".dot", ".net"]))
def test_fabrics_come_back_under_any_name(tmp_path_factory, names, suffix):
    fabric, path = called(names), tmp_path_factory.mktemp("f") / f"a{suffix}"
    try:
        write_fabric(fabric, path)
        again = read_fabric(path)
    except IbnueError as error:
        assert len(str(error).splitlines()) == 1
        return
    assert again.digest == fabric.digest
    write_fabric(again, path)
    twice = read_fabric(path)
    assert (twice.name, all_names(twice)) == (again.name, all_names(again))
    for wanted, found in zip(all_names(fabric), all_names(again), strict=True):
        if suffix == ".net":
            kept = escape_control(wanted.replace('"', "'")).encode()[:63].decode(errors="ignore")
            assert found == kept or not kept
        else:
            assert found == escape_control(wanted, HELD[suffix])
