"""Check ``ibnue transition`` from the command line."""

import json

import numpy as np
import pytest
from command_runs import run
from json_contract import assert_valid

from routing.cli.fabric_argument import read
from routing.deadlock.mixed import MixedGraphs, Mixture
from routing.formats.table_files import read_tables


@pytest.fixture
def torus(tmp_path):
    assert run("fabric", "torus", "4x4", "-o", tmp_path / "torus.net").exit_code == 0
    return tmp_path / "torus.net"


@pytest.fixture
def routed(torus, tmp_path):
    for name, root in (("one", "sw0.0"), ("two", "sw2.2")):
        assert run("route", torus, "-e", "updn", "--root", root, "--vls", "1", "-o", tmp_path / name).exit_code == 0
    return tmp_path / "one", tmp_path / "two"


def test_the_same_tables_are_safe_in_any_order(torus, routed):
    result = run("transition", torus, routed[0], routed[0])
    assert result.exit_code == 0, result.output
    assert "any-order" in result.stdout
    assert "0 entries of 0 LIDs in 0 blocks" in result.stdout


def test_another_root_is_not_safe_in_any_order(torus, routed, tmp_path):
    result = run("transition", torus, *routed, "--plan", tmp_path / "plan.json")
    reported = json.loads(run("transition", torus, *routed, "--json").stdout)
    assert result.exit_code == (0 if reported["safe"] else 1)
    assert reported["verdict"] in {"ordered", "drained"}
    assert reported["verdict"] in result.stdout
    assert "credit loop of" in result.stdout
    assert "by the new entry there" in result.stdout
    before = result.stdout[: result.stdout.index("credit loop of")].splitlines()[-1]
    avoided = {"ordered": "the rounds avoid this loop", "drained": "the steps avoid this loop"}[reported["verdict"]]
    assert before == f"{avoided}, which can form if switches are written in any order:"
    loop = reported["any_order_loop"]
    for turn, following in zip(loop, [*loop[1:], loop[0]], strict=True):
        assert turn["peer_guid"] == following["switch_guid"]
        assert turn["entry"] in {"old", "new", "both"}


def test_writing_what_the_plan_states_leads_to_the_new_tables(torus, routed, tmp_path):
    result = run("transition", torus, *routed, "--plan", tmp_path / "plan.json")
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert_valid(plan)
    fabric = read(str(torus))
    old, new = (read_tables(path, fabric) for path in routed)
    row = {f"0x{guid:016x}": s for s, guid in enumerate(fabric.switch_guid.tolist())}
    state = old.lft.copy()
    for part in plan["rounds"] or plan["steps"]:
        before = state.copy()
        for block in part["write"]:
            assert fabric.switch_name[row[block["switch_guid"]]] == block["switch_name"]
            for lid, port in block["port_by_lid"].items():
                assert int(lid) // 64 == block["block"]
                state[row[block["switch_guid"]], int(lid)] = port
        if plan["rounds"]:
            mixture = Mixture.of(fabric, old, new).between(before, state)
            assert MixedGraphs(mixture).order(replies=False, switch_pairs=False) is not None
    assert np.array_equal(state, new.lft)
    assert plan["verdict"] in result.stdout


def test_double_scheme_when_no_order_may_be_looked_for(torus, routed):
    result = run("transition", torus, *routed, "--rounds", "0")
    assert result.exit_code == 1
    assert "verdict  drained" in result.stdout
    assert "Double Scheme in 5 steps" in result.stdout
    assert result.stdout.count("; safe") == 5


def test_old_tables_of_a_fabric_that_lost_a_link(torus, routed, tmp_path):
    fabric = read(str(torus))
    from routing.formats.fabric_files import write_net  # noqa: PLC0415

    write_net(fabric.without_links([int(fabric.channels.link[0])]), tmp_path / "cut.net")
    assert run("route", tmp_path / "cut.net", "--root", "sw0.0", "--vls", "1", "-o", tmp_path / "cut").exit_code == 0
    reported = json.loads(
        run("transition", tmp_path / "cut.net", routed[0], tmp_path / "cut", "--old-fabric", torus, "--json").stdout
    )
    assert reported["entries_changed"] > 0
    assert reported["drops"]["old"] > 0
    assert reported["drops"]["new"] == 0


def test_rounds_that_remove_entries_are_in_the_plan(tmp_path):
    whole, cut, plan = tmp_path / "torus.net", tmp_path / "cut.net", tmp_path / "plan.json"
    assert run("fabric", "torus", "4x3", "--cas", "1", "-o", whole).exit_code == 0
    assert run("fabric", whole, "--fail", "sw0.0/2", "-o", cut).exit_code == 0
    for name in (whole, cut):
        options = "-e", "updn", "--vls", "1", "--effort", "0"
        assert run("route", name, *options, "-o", name.with_suffix("")).exit_code == 0
    change = "transition", cut, whole.with_suffix(""), cut.with_suffix(""), "--old-fabric", whole
    result, reported = run(*change, "--plan", plan), json.loads(run(*change, "--json").stdout)
    assert result.exit_code == 0 and reported["verdict"] == "ordered"
    first, second = reported["rounds"]
    assert f"{first['entries_removed']} old entries are removed until a later round" in result.stdout
    assert f"{first['entries_removed']} of them removed" in result.stdout
    assert "only after packets have left" in result.stdout
    assert first["entries_removed"] > 0 and second["drains"]
    blocks = json.loads(plan.read_text())["rounds"][0]["write"]
    assert [port for block in blocks for port in block["port_by_lid"].values()].count(255) == first["entries_removed"]


def test_a_loop_of_the_old_tables_over_swapped_cables_is_not_called_safe(torus, tmp_path):
    swapped, plan = tmp_path / "swapped.net", tmp_path / "plan.json"
    assert run("fabric", torus, "--fail", "swap sw0.0/2 sw1.1/3", "-o", swapped).exit_code == 0
    assert run("route", torus, "--vls", "1", "--effort", "0", "-o", tmp_path / "one").exit_code == 0
    earlier = "--previous", tmp_path / "one", "--was", torus
    again = run("route", swapped, "--vls", "1", "--effort", "0", *earlier, "-o", tmp_path / "two")
    assert again.exit_code == 0, again.output
    change = "transition", swapped, tmp_path / "one", tmp_path / "two", "--old-fabric", torus
    result, reported = run(*change, "--plan", plan), json.loads(run(*change, "--json").stdout)
    assert result.exit_code == 1 and "after-removal: cables have changed places" in result.stdout
    assert reported["verdict"] == "after-removal" and not reported["safe"]
    assert_valid(reported)
    assert len(json.loads(plan.read_text())["rounds"]) == len(reported["rounds"]) > 1


def test_tables_of_another_fabric_are_refused(torus, routed):
    result = run("transition", "ring:5", *routed)
    assert result.exit_code == 2
    assert result.stderr.startswith("ibnue: ")
    assert result.stderr.count("\n") == 1
