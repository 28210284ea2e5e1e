"""Check ``ibnue compare-designs`` from the command line."""

import csv
import json

import pytest
from command_runs import run

from routing.advise.designs import Prices, with_hosts
from routing.errors import OptionError
from routing.topologies import generate

WORDS = ("compare-designs", "ring:{4..5},cas=3", "full-mesh:4,cas=3", "-e", "updn", "--links", "2")


def test_designs_with_equal_hosts_are_compared_within_80_columns(tmp_path):
    table = tmp_path / "designs.csv"
    result = run(*WORDS, "--hosts", 12, "--csv", table, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    ring, larger, mesh = found["designs"]
    assert [each["hosts"] for each in (ring, larger, mesh)] == [12, 12, 12]
    assert [each["fabric"]["switches"] for each in (ring, larger)] == [4, 5]
    assert (ring["cables"], ring["ca_cables"], ring["cost"]) == (4, 12, 400 + 4 * 5 + 12 * 2)
    assert (larger["cables"], larger["cost_per_host"]) == (5, (500 + 5 * 5 + 12 * 2) / 12)
    assert (mesh["hops_max"], mesh["worst_link_loss"] > 0, mesh["refusal"]) == (1, True, None)
    with table.open() as rows:
        assert [float(row["cost"]) for row in csv.DictReader(rows)] == [each["cost"] for each in found["designs"]]


def test_the_printed_table_is_narrow_and_states_prices_and_unequal_hosts():
    result = run(*WORDS, "--cable-price", 7, "--links", 0)
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "1  ring:4,cas=3: 4 switches, 4 cables between them, 12 CAs"
    assert "the designs have different numbers of CAs: --hosts N makes them equal" in lines
    assert lines[-1] == "prices: switch 100, cable between switches 7, cable to a CA 2"


def test_a_design_without_tables_is_a_finding():
    result = run("compare-designs", "dragonfly:2,1,1", "ring:5,cas=1", "-e", "dragonfly", "--links", 0)
    assert result.exit_code == 1
    assert "design 2 has no tables: " in result.output


@pytest.mark.parametrize(
    ("more", "problem"),
    [(("--ports", 4), "needs switches of 5 ports"), (("--hosts", 13), "has 12 CAs, not 13"),
     (("-e", "nou"), "there is no engine 'nou'")],
)  # fmt: skip
def test_designs_that_cannot_be_compared_are_refused(more, problem):
    result = run(*WORDS, *more)
    assert result.exit_code == 2
    assert problem in result.stderr


def test_cas_are_taken_away_evenly():
    fabric = with_hosts(generate("ring", ["4"], cas=3), 8)
    assert fabric.senders_at.tolist() == [2, 2, 2, 2]
    assert Prices(1, 10, 100).of(fabric) == 4 + 40 + 800
    with pytest.raises(OptionError):
        with_hosts(fabric, 9)
