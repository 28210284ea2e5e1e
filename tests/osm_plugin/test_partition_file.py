"""Check that ``ibnue plugin check`` reads the partition file: errors have file and line, and OpenSM refuses the file,
too.
"""

import pytest
from plugin_lab import opensm_agrees

from osm_plugin.partition_file import check_partitions
from routing.errors import ParseError, ParseErrors

FULL = """# the usual partition
Default=0x7fff, ipoib, sl=1 : ALL=full;
storage=0x0002, sl=3, unknown_flag :   # two lines of ports
    0x100001=full, 0x100002 = both,
    SELF, ALL_SW;
0x0003 : ALL_CAS=limited; other : mgid=ff12:401b::ffff:ffff, Q_Key=0x1
    0x100003;
"""
GOOD = {
    "all forms": FULL,
    "s means scope": FULL.replace("sl=1 ", "s=99 "),
    "one": "Default=0x7fff : ALL=full;",
    "no end": "Default=0x7fff : ALL=full\n",
}
BAD = {
    "no colon": (FULL.replace("sl=1 :", "sl=1"), 2, "a partition has no colon before its ports (write"),
    "a word as PKey": (FULL.replace("storage=0x0002", "storage=two"), 3, "'two' is not a PKey (write a number"),
    "a PKey with a tail": (FULL.replace("0x0003 :", "0x0003x :"), 6, "'0x0003x' is not a PKey"),
    "a word as port": (FULL.replace("0x100001=", "node1="), 4, "'node1' is not a port (use a port GUID or NONE, ALL"),
    "a semicolon first": (FULL.replace("SW;", "SW\n;"), 6, "a line that continues a partition begins with ';'"),
    "GUID 0": (FULL.replace("0x100003", "0x0"), 7, "'0x0' is not a port"),
    "no semicolon": (FULL.replace("=full;", "=full", 1), 3, "'storage' is not a port"),
    "carriage returns": (FULL.replace("\n", "\r\n"), 1, "its lines end with a carriage return (use Unix line ends)"),
}  # fmt: skip

# OpenSM ignores a wrong SL, and logs this only at the level "verbose".
WRONG_SL = {
    "SL 16": (FULL.replace("sl=3", "sl=16"), 3, "'16' is not an SL (write a number from 0 to 15)"),
    "a word as SL": (FULL.replace("sl=1 ", "sl=one "), 2, "'one' is not an SL"),
}
# OpenSM reads the end of a long line as another line.  The place where OpenSM cuts the line determines whether this is
# an error.
MISREAD = {
    "a long line": (f"{FULL}more=0x0004 : {', '.join(['0x100004=full'] * 300)};\n", 8, "the line is longer than 4094"),
}

EMPTY = {"nothing": ("",), "a comment": ("# none\n",), "blank lines": ("\n \n",)}


@pytest.mark.parametrize("name", GOOD)
def test_partitions_without_an_error_pass(tmp_path, name):
    path = tmp_path / "partitions"
    path.write_text(GOOD[name])
    check_partitions(path)


@pytest.mark.parametrize("name", [*BAD, *WRONG_SL, *MISREAD])
def test_an_error_is_reported_with_its_line(tmp_path, name):
    text, line, problem = {**BAD, **WRONG_SL, **MISREAD}[name]
    path = tmp_path / "partitions"
    path.write_text(text, newline="")
    with pytest.raises(ParseError) as caught:
        check_partitions(path)
    assert str(caught.value).startswith(f"{path}:{line}: {problem}")


def test_all_errors_are_reported_up_to_one_after_which_the_check_cannot_go_on(tmp_path):
    path = tmp_path / "partitions"
    path.write_text("a=1, sl=77 : ALL;\nb=0x2 : ALL=full,\n nosuch;\nc=0x3, sl=78 : ALL;\nd=4 ALL;\ne=x : ALL;\n")
    with pytest.raises(ParseErrors) as caught:
        check_partitions(path)
    assert [error.line for error in caught.value.errors] == [1, 3, 4, 5]


@pytest.mark.parametrize("name", EMPTY)
def test_a_file_without_a_partition_is_refused(tmp_path, name):
    path = tmp_path / "partitions"
    path.write_text(*EMPTY[name])
    with pytest.raises(ParseError, match="partitions: defines no partition \\(define one, or name no file\\)"):
        check_partitions(path)


@pytest.mark.lab
def test_opensm_refuses_what_the_check_refuses(live, nets, tmp_path):
    file = tmp_path / "partitions"
    file.write_text(FULL)
    config = {"qos": True, "partition_config_file": file, "log_flags": "0x47"}
    with live(nets("ring", "4", cas=1), "ibnue-updn,no_fallback", config=config) as lab:
        opensm_agrees(lab, file, GOOD, EMPTY, "Partition configuration in error")
        opensm_agrees(lab, file, GOOD, WRONG_SL, "flag 'sl' requires valid value")
        opensm_agrees(lab, file, GOOD, BAD, "PARSE ERROR")
