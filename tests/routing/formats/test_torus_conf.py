"""Check the reader of torus-2QoS.conf, and its errors with file and line."""

import re

import pytest

from routing.errors import InputError, ParseError
from routing.formats.torus_conf import read_torus_conf

GOOD = """# from the manual page
mesh 3T 4 5

yp_link 0x10 0x20 more words
zm_link 0x10 021
y_dateline -2
portgroup_max_ports 20
next_seed
xm_link 48 0x31
port_order 7 10
"""


def test_keys_of_a_torus_conf(tmp_path):
    path = tmp_path / "torus.conf"
    path.write_text(GOOD)
    conf = read_torus_conf(path)
    assert (conf.line, conf.radix, conf.is_ring) == (2, (3, 4, 5), (True, False, False))
    first, second = conf.seeds
    assert {key: (link.start, link.end, link.line) for key, link in first.links.items()} == {
        (1, 1): (16, 32, 4),
        (2, -1): (16, 17, 5),
    }
    assert first.datelines == {1: -2}
    assert second.switch == 48


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", None, "states no topology"),
        ("xp_link 1 2\n", 1, "'xp_link' comes before the topology"),
        ("torus 4 4\n", 1, "no three sizes"),
        ("torus 4 4 0\n", 1, "no three sizes"),
        ("torus 4x 4 1\n", 1, "no three sizes"),
        ("torus 5 5 1\n\n# a\nwp_link 1 2\n", 4, "'wp_link' is not a keyword"),
        ("torus 5 5 1\nxp_link 0x1\n", 2, "xp_link has no two GUIDs"),
        ("torus 5 5 1\nxp_link 0x1 0xg\n", 2, "xp_link has no two GUIDs"),
        ("torus 5 5 1\nxp_link 1 2\nyp_link 2 3\n", 3, "the link starts at 0x2, and the seed at 0x1"),
        ("torus 5 5 1\nxp_link 1 2\nx_dateline\n", 3, "x_dateline has no position"),
        ("torus 5 5 1\nx_dateline 1\n", None, "has no seed"),
    ],
)
def test_errors_name_file_and_line(tmp_path, text, line, problem):
    path = tmp_path / "torus.conf"
    path.write_text(text)
    where = f"{path}: " if line is None else f"{path}:{line}: "
    with pytest.raises(ParseError, match=re.escape(where) + ".*" + re.escape(problem)) as error:
        read_torus_conf(path)
    assert isinstance(error.value, InputError) and error.value.remedy
