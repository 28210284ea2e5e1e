"""Check the table of fabrics like those of real clusters: no engine exceeds a limit, and each engine has a row."""

import math

import pytest

from benchmarks.real_fabrics import KINDS, Kind, cut_limit, gave_up, main
from routing.class_settings import PortClass
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.quality import measure
from routing.topologies import generate


@pytest.mark.parametrize("words", ["rails 2x3x4 3 speed=EDR", "cluster 2x3x4 2x2", "kary-ntree 3 3"])
def test_no_tables_exceed_the_limit(words):
    fabric = Kind(words).fabric()
    quality = measure(fabric, ENGINES["updn"].route(fabric, EngineOptions(threads=1)), shifts=0, permutations=0)
    assert 0.5 * cut_limit(fabric) < quality.all_to_all <= cut_limit(fabric) + 1e-9
    compute = next(each.all_to_all for each in quality.classes if each.label == "compute")
    assert compute <= cut_limit(fabric, PortClass.COMPUTE) + 1e-9


def test_the_limit_is_that_of_the_worst_cut():
    assert math.isclose(cut_limit(generate("kary-ntree", ["3", "3"])), 26 / 24)  # 3 * 24 flows use 3 of 3 links
    # The links from a group of three leaves to the top switches are half of all links of these leaves upwards.
    assert math.isclose(cut_limit(generate("xgft", ["3x3x3", "1x2x1"])), 26 * 2 / (9 * 18))


def test_the_command_prints_a_row_for_each_engine(capsys):
    assert main(["--opensm", "", "--ours", "updn,ftree", "--only", "rails:4x8x16,8,speed=NDR` without"]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert [line.split(" | ")[0] for line in printed] == ["| engine", "| ---", "| limit by cuts", "| updn", "| ftree"]
    assert len({line.count("|") for line in printed}) == 1
    assert "proven reversible" in printed[-1]


def test_variants_are_what_their_titles_say():
    titles = [kind.title for kind in KINDS]
    assert len(set(titles)) == len(titles)
    assert "leaf-management" not in Kind("cluster 2x3x4 2x2", without="leaf-management").fabric().switch_name
    whole, broken = Kind("rails 2x3x4 3").fabric(), Kind("rails 2x3x4 3", missing=0.1).fabric()
    assert len(whole.channels) // 2 - len(broken.channels) // 2 == round(0.1 * len(whole.channels) / 2)


def test_reasons_are_shortened():
    text = "no routing engine could route this fabric: construct_fabric: ERR AB2B: Found more than one root on fabric"
    assert gave_up("OpenSM ftree", text)[-1] == "gave up: Found more than one root on fabric"
