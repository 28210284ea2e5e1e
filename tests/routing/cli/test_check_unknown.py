"""Check ``ibnue check`` on files that do not state SLs or SL2VL tables."""

import json

import pytest
from command_runs import assert_refused, run

from routing.formats.table_files import BUNDLE, LFTS, PATH_RECORDS, PSL, SL2VL

FABRIC = "torus:5x5"
ENGINES = {"nue": ("--vls", 2), "dfsssp": ("--vls", "min"), "lash": ("--vls", "min")}


@pytest.fixture(scope="module")
def routed(tmp_path_factory):
    """Return a folder with folders of tables, from which the bundles were removed."""
    folder = tmp_path_factory.mktemp("routed")
    for engine, options in ENGINES.items():
        assert run("route", FABRIC, "-e", engine, *options, "-o", folder / engine).exit_code == 0
        (folder / engine / BUNDLE).unlink()
    assert run("route", FABRIC, "-e", "minhop", "-o", folder / "minhop").exit_code == 1
    (folder / "minhop" / BUNDLE).unlink()
    return folder


def checked(*words):
    """Return the exit status, the text, and the JSON document of ``ibnue check``."""
    result, reported = run("check", FABRIC, *words), run("check", FABRIC, *words, "--json")
    assert result.exit_code == reported.exit_code, result.output
    return result.exit_code, result.stdout, json.loads(reported.stdout)


@pytest.mark.parametrize("engine", ENGINES)
def test_layered_tables_are_proven_only_with_their_sls(routed, engine):
    folder = routed / engine
    status, text, reported = checked(folder)
    assert (status, reported["verdict"], reported["assumed"], reported["certified"]) == (0, "none", [], True)
    status, text, reported = checked(folder / LFTS)
    assert (status, reported["verdict"], reported["certified"], reported["ok"]) == (3, "unknown", False, False)
    assert (reported["credit_loop"], reported["strength"], reported["vls"]) == (None, None, None)
    assert reported["possible_loop"]
    assert len(reported["assumed"]) == 2
    assert "credit loops  possible: service levels unknown, SL 0 assumed\n" in text
    for sls in (PATH_RECORDS, PSL):
        status, text, reported = checked(folder / LFTS, "--sl", folder / sls, "--sl2vl", folder / SL2VL)
        assert (status, reported["verdict"], reported["vls"] >= 2) == (0, "none", True)
    status, text, reported = checked(folder / LFTS, "--sl", folder / PSL)
    assert (status, reported["verdict"]) == (3, "unknown")
    assert "possible: SL2VL tables unknown, SL n on VL n modulo 8 assumed; under this assumption" in text


def test_a_loop_that_the_sls_confirm_is_a_finding(routed):
    folder = routed / "minhop"
    assert checked(folder)[0] == 1
    status, text, reported = checked(folder / LFTS, "--sl2vl", folder / SL2VL)
    assert (status, reported["verdict"]) == (1, "yes")  # every SL uses VL 0
    assert reported["credit_loop"] and reported["possible_loop"] is None
    assert "credit loops  YES" in text
    assert checked(folder / LFTS)[0] == 3


def test_paths_that_the_file_does_not_state_do_not_decide(routed, tmp_path):
    folder = routed / "nue"
    lines = (folder / PSL).read_text().splitlines()
    kept = [line for number, line in enumerate(lines) if number % 50]
    (tmp_path / "some.psl").write_text("\n".join(kept) + "\n")
    status, text, reported = checked(folder / LFTS, "--sl", tmp_path / "some.psl", "--sl2vl", folder / SL2VL)
    assert (status, reported["verdict"]) == (3, "unknown")
    assert "without a stated SL in some.psl" in reported["assumed"][0]
    assert "some service levels unknown" in text


def test_missing_routes_decide_before_unknown_sls(routed, tmp_path):
    lines = (routed / "nue" / LFTS).read_text().splitlines()
    held = [line for line in lines if not line.startswith("0x0014")]
    assert len(held) < len(lines)
    (tmp_path / LFTS).write_text("\n".join(held) + "\n")
    status, text, reported = checked(tmp_path / LFTS)
    assert (status, reported["verdict"], reported["complete"]) == (1, "unknown", False)
    assert "not delivered" in text


def test_message_types_need_the_vls(routed):
    status, text, reported = checked(routed / "nue" / LFTS, "--message-types", 2)
    assert (status, reported["message_types"]["vls_needed"]) == (3, None)
    assert "message types  unknown" in text


def test_a_bundle_has_its_own_sls(routed, tmp_path):
    assert run("route", FABRIC, "-e", "updn", "-o", tmp_path / "out").exit_code == 0
    psl = routed / "nue" / PSL
    assert_refused(
        run("check", FABRIC, tmp_path / "out", "--sl", psl), "has service levels and SL2VL tables of its own"
    )
    assert_refused(run("check", FABRIC, routed / "nue" / LFTS, "--sl", "/nonexistent"), "/nonexistent")
    (tmp_path / "bad").write_text("0x0000000000200000 6 0\nnonsense\n")
    assert_refused(run("check", FABRIC, routed / "nue" / LFTS, "--sl", tmp_path / "bad"), "bad:2: ")


NOTE = "all packets share one VL, because service levels and SL2VL tables are unknown"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Return a folder with two folders of tables of one VL, from which the bundles were removed."""
    folder = tmp_path_factory.mktemp("tree")
    for name, root in (("one", "sw0.0"), ("two", "sw2.2")):
        assert run("route", FABRIC, "-e", "updn", "--vls", 1, "--root", root, "-o", folder / name).exit_code == 0
        (folder / name / BUNDLE).unlink()
    return folder


def test_transition_decides_only_what_no_sl_can_change(routed, tree):
    same = run("transition", FABRIC, tree / "one" / LFTS, tree / "one" / LFTS)
    assert (same.exit_code, "verdict  any-order" in same.stdout, NOTE in same.stdout) == (0, True, True)
    layered = [routed / "nue" / LFTS, routed / "nue" / LFTS]
    result = run("transition", FABRIC, *layered)
    assert (result.exit_code, "verdict  unknown: " in result.stdout) == (3, True)
    reported = json.loads(run("transition", FABRIC, *layered, "--json").stdout)
    assert (reported["verdict"], reported["safe"], reported["assumed"], reported["sls_differ"]) == (
        "unknown",
        False,
        [NOTE],
        None,
    )
    assert run("transition", FABRIC, routed / "nue", routed / "nue").exit_code == 0


def test_every_command_says_what_it_assumes(routed, tree, tmp_path):
    (tmp_path / "flows").write_text("26 28\n")
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "all"\nrole = "loop"\nhoq_life = "1 s"\n')
    lone = tree / "one" / LFTS
    reported = run("whatif", FABRIC, "--tables", lone, "--fault", "sw0.0/1")
    assert reported.exit_code == 0, reported.output
    assert f"assumed       {NOTE}\n" in reported.stdout
    record = json.loads(run("whatif", FABRIC, "--tables", lone, "--fault", "sw0.0/1", "--json").stdout)
    assert record["assumed"] == [NOTE]
    assert f"assumed: {NOTE}\n" in run("pause", FABRIC, lone, "--flows", tmp_path / "flows").stdout
    assert f"# Assumed: {NOTE}.\n" in run("policy", "suggest", FABRIC, lone).stdout
    assert f"assumed: {NOTE}\n" in run("policy", "check", tmp_path / "rules.toml", FABRIC, "--tables", lone).stderr
    difference = run("diff", tree / "one" / LFTS, tree / "one", "--fabric", FABRIC)
    assert difference.exit_code == 0, difference.output
    assert "SLs           unknown, because the files do not state them\n" in difference.stdout


def test_a_watch_without_sls_covers_every_loop_that_may_be(routed):
    result = run("policy", "suggest", FABRIC, routed / "nue" / LFTS)
    assert 'role = "loop"' in result.stdout
    sls = ("--sl", routed / "nue" / PSL, "--sl2vl", routed / "nue" / SL2VL)
    result = run("policy", "suggest", FABRIC, routed / "nue" / LFTS, *sls)
    assert 'role = "loop"' not in result.stdout
    assert "Assumed" not in result.stdout


def test_sls_without_tables_are_wrong_use(routed, tmp_path):
    (tmp_path / "rules.toml").write_text('[[rule]]\nname = "all"\nhoq_life = "1 s"\n')
    psl = routed / "nue" / PSL
    assert_refused(run("whatif", FABRIC, "--sl", psl), "--sl and --sl2vl have no effect without --tables")
    assert_refused(
        run("policy", "check", tmp_path / "rules.toml", FABRIC, "--sl", psl), "have no effect without --tables"
    )
