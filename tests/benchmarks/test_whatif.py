"""Check that the benchmark of the what-if analysis runs from end to end."""

import pytest

from benchmarks.whatif import main


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_row_for_each_fabric_and_engine(capsys, jobs):
    assert main(["ring:6,cas=1", "mesh:3,cas=1", "-e", "updn,dfsssp", "--jobs", jobs, "--most", "4"]) == 0
    head, rule, *rows = (line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines())
    assert len(rule[0].strip("|").split("|")) == len(head)
    assert [(row[0], row[1], row[3], row[7]) for row in rows] == [
        (fabric, engine, links, links)
        for fabric, links in (("ring-6", "4"), ("mesh-3", "2"))
        for engine in ("updn", "dfsssp")
    ]
