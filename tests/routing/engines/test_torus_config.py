"""Check that torus-2qos uses the dimensions, directions and datelines of a torus-2QoS.conf."""

import numpy as np
import pytest

from benchmarks.opensm_tables import opensm_tables
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import InputError, OptionError
from routing.formats.fabric_files import write_net
from routing.topologies import generate


def conf_of(fabric, *lines):
    """Return the lines of a torus-2QoS.conf with GUIDs instead of the names of switches."""
    guid = {name: f"{number:#x}" for name, number in zip(fabric.switch_name, fabric.switch_guid.tolist(), strict=True)}
    return "".join(" ".join(guid.get(word, word) for word in line.split()) + "\n" for line in lines)


def routed(fabric, path, text, **options):
    path.write_text(text)
    routing = ENGINES["torus-2qos"].route(fabric, EngineOptions(torus_config=path, **options))
    proof = prove(fabric, routing)
    assert proof.complete and proof.certified
    return routing


@pytest.mark.lab
def test_tables_are_those_of_opensm_where_no_ring_has_two_equal_sides(tmp_path):
    fabric = generate("torus", ["5x7"], cas=1)
    text = conf_of(fabric, "torus 7 5 1", "xm_link sw2.3 sw2.4", "yp_link sw2.3 sw3.3", "x_dateline 2", "y_dateline -1")
    write_net(fabric, tmp_path / "torus.net")
    (tmp_path / "torus.conf").write_text(text)
    theirs = opensm_tables(
        tmp_path / "torus.net", "torus-2QoS", vls=8, config={"torus_config": tmp_path / "torus.conf"}
    )
    ours = routed(theirs.fabric, tmp_path / "torus.conf", text)
    lids = theirs.fabric.endport_lid
    assert np.array_equal(ours.lft, theirs.routing.lft)
    between = ~np.eye(len(lids), dtype=bool)
    switch = theirs.fabric.endport_switch
    assert np.array_equal(ours.sl[switch][:, lids][between], theirs.routing.sl[switch][:, lids][between])


def test_the_second_seed_gives_equal_sls(tmp_path):
    fabric = generate("torus", ["6x5"], cas=1)
    first = ["xp_link sw0.0 sw1.0", "yp_link sw0.0 sw0.1"]
    second = ["next_seed", "xm_link sw3.2 sw2.2", "yp_link sw3.2 sw3.3", "x_dateline -3", "y_dateline -2"]
    one, other = (
        routed(fabric, tmp_path / f"{number}.conf", conf_of(fabric, "torus 6 5 1", *lines))
        for number, lines in enumerate((first, ["xp_link 0xdead 0xbeef", "yp_link 0xdead 0xbeef", *second]))
    )
    assert np.array_equal(one.sl, other.sl) and np.array_equal(one.lft, other.lft)


def test_datelines_decide_the_sl(tmp_path):
    fabric = generate("torus", ["5x3"], cas=1)
    lines = ["xp_link sw0.0 sw1.0", "yp_link sw0.0 sw0.1"]
    for shift in (0, 2, -1):
        routing = routed(fabric, tmp_path / "c", conf_of(fabric, "torus 5 3 1", *lines, f"x_dateline {shift}"))
        row = {name: number for number, name in enumerate(fabric.switch_name)}
        lid = dict(zip(fabric.endport_switch.tolist(), fabric.endport_lid.tolist(), strict=True))
        crossing = {at for at in range(5) if routing.sl[row[f"sw{at}.0"], lid[row[f"sw{(at + 1) % 5}.0"]]]}
        assert crossing == {(shift - 1) % 5}  # this is the link into the origin


@pytest.mark.parametrize(
    ("size", "lines", "line", "problem"),
    [
        ("5x6", ["torus 5 5 1", "xp_link sw0.0 sw1.0", "yp_link sw0.0 sw0.1"], 1, "dimension y is a ring of 5"),
        ("5x6", ["mesh 5 6T 1", "xp_link sw0.0 sw1.0", "yp_link sw0.0 sw0.1"], 1, "dimension x is a line of 5"),
        ("5x6", ["torus 5 6 1", "xp_link sw0.0 sw1.1", "yp_link sw0.0 sw0.1"], 2, "are not neighbours"),
        ("5x6", ["torus 5 6 1", "xp_link sw0.0 sw1.0"], 2, "lacks a link in dimension y"),
        ("5x4", ["torus 5 4 1", "xp_link sw0.0 sw1.0", "yp_link sw0.0 sw0.1"], 2, "lacks a link in dimension y"),
        ("5x6", ["torus 5 1 1", "xp_link sw0.0 sw1.0"], 1, "lacks a dimension of 6 switches"),
        ("5x6", ["torus 5 6 1", "xp_link 1 2"], None, "no seed has all of its switches"),
    ],
)
def test_errors_name_file_and_line(tmp_path, size, lines, line, problem):
    fabric = generate("torus", [size], cas=1)
    path = tmp_path / "torus.conf"
    with pytest.raises(InputError, match=problem) as error:
        routed(fabric, path, conf_of(fabric, *lines))
    assert (error.value.path, error.value.line) == (str(path), line) and error.value.remedy


@pytest.mark.parametrize(
    ("size", "lines"),
    [
        ("5x4", ["torus 5 4 1", "xp_link sw0.0 sw1.0", "yp_link sw0.0 sw0.1", "ym_link sw0.0 sw0.3"]),
        ("4x4x5", ["torus 4 4 5", "xp_link sw0.0.0 sw1.0.0", "xm_link sw0.0.0 sw3.0.0", "yp_link sw0.0.0 sw0.1.0",
                   "ym_link sw0.0.0 sw0.3.0", "zm_link sw0.0.0 sw0.0.4"]),
    ],
)  # fmt: skip
def test_rings_of_four_and_a_lost_link(tmp_path, size, lines):
    fabric = generate("torus", [size], cas=1)
    for links in ([], [0]):
        routed(fabric.without_links(links), tmp_path / "c", conf_of(fabric, *lines))


def test_other_engines_refuse_the_file(tmp_path):
    with pytest.raises(OptionError, match="reads no torus"):
        ENGINES["dor"].route(generate("torus", ["5x5"], cas=1), EngineOptions(torus_config=tmp_path / "c"))
