"""Check that lines of text files end only with a newline, which a carriage return may precede."""

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from strategies import ring_fabric

from routing.deadlock.flow_files import read_demands, read_paths
from routing.errors import ParseError
from routing.faults.text import read_faults
from routing.formats.guid_files import read_guid_lines, read_node_name_map
from routing.formats.ibnetdiscover import parse_ibnetdiscover
from routing.formats.ibsim_net import parse_net
from routing.formats.text import lines_of, read_text
from routing.formats.toml_text import parse_toml

NO_LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
RING = ring_fabric(3)
READERS = {
    "flows": (lambda path: read_demands(path, RING), "ca0 ca1"),
    "paths": (read_paths, "f: l1 l2"),
    "faults": (lambda path: read_faults(path, RING), "sw0"),
    "GUIDs": (read_guid_lines, "0x1"),
    "names": (read_node_name_map, '0x1 "a"'),
    "net": (lambda path: parse_net(read_text(path), path), 'Hca 1 "a"'),
    "ibnetdiscover": (lambda path: parse_ibnetdiscover(read_text(path), path), "Hostname: a"),
    "TOML": (lambda path: parse_toml(read_text(path), path), "a = 1"),
}


@examples(100)
@given(st.text(st.sampled_from("ab\n" + NO_LINE_ENDS)))
def test_lines_together_are_the_text(text):
    numbers, lines = zip(*lines_of(text), strict=True)
    assert "\n".join(lines) == text
    assert numbers == tuple(range(1, text.count("\n") + 2))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("reader", READERS)
def test_a_comment_lasts_until_the_newline(tmp_path, reader, end):
    """After any other character, the comment continues, and line numbers stay right."""
    read, good = READERS[reader]
    within = NO_LINE_ENDS[1:] if reader != "TOML" else NO_LINE_ENDS[-3:]  # TOML does not allow the other characters
    path = tmp_path / "f"
    text = f"# none{' = nothing '.join(within)} at all{end}{good}{end}# {within}{end}"
    path.write_bytes(f"{text}= = ={end}".encode())
    with pytest.raises(ParseError) as caught:
        read(path)
    assert caught.value.line == 4


def test_an_end_that_is_missing_is_that_of_the_last_line():
    with pytest.raises(ParseError) as caught:
        parse_toml("# a\u2028b\na = [", "x")
    assert caught.value.line == 2


def test_a_name_may_hold_what_ends_lines_elsewhere(tmp_path):
    path = tmp_path / "paths"
    path.write_bytes(f"f{NO_LINE_ENDS[1:]}: l1 l2\n".encode())
    assert [flow.name for flow in read_paths(path).flows] == [f"f{NO_LINE_ENDS[1:]}"]
