"""Check ``import ibnue``: every function, and the properties that all results share."""

import csv
import json
import sys
import types
from pathlib import Path

import pytest
from command_runs import run

import ibnue
import ibnue.engines
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.fabric import NO_PORT
from routing.quality import measure
from routing.topologies import generate

ROOT = Path(__file__).parents[2]
RACK = ROOT / "docs" / "examples" / "rack"
LONGEST = 200
"""Maximum number of letters of a repr."""


@pytest.fixture(scope="module")
def site():
    """Return a fabric, its tables, the fabric without a link, and re-routed tables."""
    fabric = ibnue.generate("torus", "4x3", cas=2)
    tables = ibnue.route(fabric, "nue", vls=2)
    broken = ibnue.load(fabric, faults=["sw0.0/3"])
    return fabric, tables, broken, ibnue.route(broken, previous=tables)


@pytest.fixture(scope="module")
def results(site):
    fabric, tables, broken, after = site
    return {
        "fabric": fabric,
        "tables": tables,
        "rerouted": after,
        "check": ibnue.check(RACK / "ibnetdiscover.txt", RACK / "dump_fts.txt"),
        "measures": ibnue.measure(fabric, tables, patterns=3),
        "faults": ibnue.whatif(fabric, tables=tables, links=3),
        "transition": ibnue.transition(broken, tables, after),
        "simulation": ibnue.simulate("one-vl-ring", cases=["dependencies"]),
        "drawing": ibnue.draw(fabric, after, faults=["sw0.0/3"]),
    }


NAMES = ("fabric", "tables", "rerouted", "check", "measures", "faults", "transition", "simulation", "drawing")


@pytest.mark.parametrize("name", NAMES)
def test_every_result_shows_itself(results, name, tmp_path):
    result = results[name]
    assert isinstance(result, ibnue.Result)
    assert len(repr(result)) < LONGEST and "\n" not in repr(result)
    assert result.summary().count("\n") + 1 == len(result.report().summary)
    assert result._repr_html_().startswith("<svg" if name == "drawing" else "<table>")
    result.save(tmp_path / "x.html")
    result.save(tmp_path / "x.csv")
    with (tmp_path / "x.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert len(header) > 2 and (rows or name == "transition")
    with pytest.raises(ibnue.OptionError, match="suffix"):
        result.save(tmp_path / "x.doc")


@pytest.mark.parametrize("name", NAMES)
def test_every_result_has_a_data_frame(results, name, monkeypatch):
    """The test replaces pandas by an object with one function, because pandas need not be installed."""
    frame = types.SimpleNamespace(from_records=lambda rows, columns: (rows, columns))
    monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=frame))
    rows, columns = results[name].to_dataframe()
    assert all(len(row) == len(columns) for row in rows)


def test_without_pandas_the_error_names_it(results, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ibnue.EnvironmentProblem, match="pip install pandas"):
        results["fabric"].to_dataframe()


def test_values_of_a_large_fabric_have_a_short_repr():
    fabric = generate("torus", ["10x10"])
    routing = ENGINES["updn"].route(fabric, ibnue.engines.EngineOptions())
    for value in (fabric, routing, prove(fabric, routing)):
        assert len(repr(value)) < LONGEST


def test_functions_do_what_the_commands_do(site, tmp_path):
    fabric, tables, _, after = site
    fabric.write(tmp_path / "x.net")
    assert run("route", tmp_path / "x.net", "-e", "nue", "--vls", 2, "-o", tmp_path / "t").exit_code == 0
    tables.write(tmp_path / "own")
    for name in ("opensm-lfts.dump", "opensm-path-records.dump", "opensm-sl2vl.dump"):
        assert (tmp_path / "t" / name).read_bytes() == (tmp_path / "own" / name).read_bytes()
    command = run("check", tmp_path / "x.net", tmp_path / "t")
    assert command.stdout.startswith(ibnue.check(tmp_path / "x.net", tmp_path / "t").summary())
    found = json.loads(run("quality", tmp_path / "x.net", tmp_path / "t", "--json").stdout)
    assert found["all_to_all"] == ibnue.measure(fabric, tables).quality.all_to_all
    command = run("route", tmp_path / "x.net", "--fail", "sw0.0/3", "--previous", tmp_path / "t", "--json")
    assert json.loads(command.stdout)["rerouted"]["entries_changed"] == after.rerouted.changed


def test_fabrics_are_taken_in_every_form(tmp_path):
    made = ibnue.load("ring:5,cas=2")
    made.write(tmp_path / "ring.json")
    assert made.digest == ibnue.load(tmp_path / "ring.json").digest == ibnue.generate("ring", 5, cas=2).digest
    assert ibnue.load(made) is made
    plain = generate("ring", ["5"])
    assert ibnue.load(plain).switch_guid is plain.switch_guid
    (tmp_path / "names").write_text(f'0x{int(plain.switch_guid[0]):016x} "first"\n')
    assert ibnue.load(plain, node_names=tmp_path / "names").switch_name[0] == "first"
    with pytest.raises(ibnue.InputError, match="no such file or generator"):
        ibnue.load("nothing")


def test_only_proven_tables_are_written(site, tmp_path):
    fabric, tables, *_ = site
    tables.write(tmp_path / "t")
    read = ibnue.load_tables(fabric, tmp_path / "t")
    assert (read.routing.lft == tables.routing.lft).all()
    with pytest.raises(ibnue.OptionError, match="not proven"):
        read.write(tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert ibnue.check(fabric, read).good
    assert measure(fabric, read.routing).all_to_all == ibnue.measure(fabric, read).quality.all_to_all


def test_all_entries_are_in_the_table(site):
    fabric, tables, *_ = site
    rows = tables._table().rows
    assert len(rows) == fabric.switches * (fabric.endports + fabric.switches)
    row_of = {name: row for row, name in enumerate(fabric.labels)}
    for switch, lid, _owner, port in rows:
        assert tables.routing.lft[row_of[switch], lid] == (NO_PORT if port is None else port)


def test_wrong_arguments_are_refused(site):
    fabric, tables, broken, _ = site
    with pytest.raises(ibnue.OptionError, match="no option 'vl'"):
        ibnue.route(fabric, vl=2)
    with pytest.raises(ibnue.OptionError, match="earlier tables"):
        ibnue.route(fabric, rebalance=3)
    with pytest.raises(ibnue.OptionError, match="those of nue, not of updn"):
        ibnue.route(broken, "updn", previous=tables)
    with pytest.raises(ibnue.OptionError, match="use 2 VLs, --vls allows 1"):
        ibnue.route(broken, previous=tables, vls=1)
    with pytest.raises(ibnue.TableError):
        ibnue.check("ring:5", tables)
    with pytest.raises(ibnue.OptionError, match="need a dump of LFTs"):
        ibnue.check(fabric, tables, sl="f")
    with pytest.raises(ibnue.OptionError, match="no case"):
        ibnue.simulate("one-vl-ring", cases=["none"])
    with pytest.raises(ibnue.OptionError, match="those of minhop, not of updn"):
        ibnue.whatif("ring:6", "updn", tables=ibnue.route("ring:6", "minhop"))
    for parts in (-1, "some"):
        with pytest.raises(ibnue.OptionError, match="is neither all nor a number"):
            ibnue.whatif("ring:4", links=parts)
    with pytest.raises(ibnue.OptionError, match="there is no stability 'half' \\(use full, balanced, fresh\\)"):
        ibnue.whatif("ring:4", stability="half")


def test_one_fault_may_be_a_string():
    assert (
        len(ibnue.load("ring:4", faults="sw0/3").channels) == len(ibnue.load("ring:4", faults=["sw0/3"]).channels) == 6
    )


def test_public_names_exist_and_are_documented():
    page = (ROOT / "docs" / "python.md").read_text() + (ROOT / "docs" / "engine-template.md").read_text()
    for name in ibnue.__all__:
        assert hasattr(ibnue, name)
        assert name in page, name
    assert set(ibnue.engines.__all__) <= set(dir(ibnue.engines))
    assert (Path(ibnue.__file__).parent / "py.typed").exists()


def test_a_fabric_is_compared_with_its_plan():
    plan = ibnue.generate("torus", "4x4", cas=2)
    assert ibnue.compare(plan, plan).same
    found = ibnue.compare(plan, ibnue.load(plan, faults=["swap sw0.0/3 sw2.2/4"]))
    assert not found.same
    assert repr(found) == "<Cabling torus-4x4: 48 devices in both, 1 findings about cables>"
    assert "1 cable to reconnect" in found.summary()
    assert [row[0] for row in found.report().tables[0].rows] == ["swapped"]
