import gzip

import numpy as np
import pytest
from routing_cases import tables
from strategies import random_fabric

from ibsim_fixtures.catalogue import FIXTURES
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.errors import EnvironmentProblem, InputError, OptionError, ParseError, TableError
from routing.formats.fabric_files import read_fabric
from routing.formats.table_files import BUNDLE, FORMATS, LFTS, read_tables, write_tables
from routing.publish import verify


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def case():
    fabric = random_fabric(1, switches=5, lmc=1)
    return fabric, *tables(fabric, sl_form="switch")


def test_a_folder_is_written_and_read(tmp_path, case):
    fabric, routing, proof = case
    written = write_tables(tmp_path / "t", fabric, routing, proof)
    assert set(written) == set(FORMATS)
    assert names_in(tmp_path / "t") == sorted(FORMATS[name].file for name in written)
    for path in (tmp_path / "t", tmp_path / "t" / BUNDLE):
        found = read_tables(path, fabric)
        assert np.array_equal(found.lft, routing.lft) and np.array_equal(found.sl, routing.sl)
    write_tables(tmp_path / "t", fabric, routing, proof, formats=["lfts"])
    assert names_in(tmp_path / "t") == [BUNDLE, LFTS]


@pytest.mark.parametrize("per_port", [False, True])
@pytest.mark.parametrize("sl_form", ["lid", "switch", "pair"])
def test_dumps_carry_what_the_bundle_carries(tmp_path, sl_form, per_port):
    fabric = random_fabric(2, switches=5, cas=3)
    routing, proof = tables(fabric, sl_form=sl_form, per_port=per_port)
    write_tables(tmp_path / "t", fabric, routing, proof)
    (tmp_path / "t" / BUNDLE).unlink()
    for gone in (None, "opensm-path-records.dump", "opensm-sl2vl.dump"):
        if gone is not None:
            (tmp_path / "t" / gone).unlink()
        found = read_tables(tmp_path / "t", fabric)
        assert found.provenance.options["assumed"] == []
        assert np.array_equal(found.lft, routing.lft) and found.sl.shape == routing.sl.shape
        owned = np.flatnonzero(routing.lft.min(axis=0) != 255)
        where = np.ix_(owned, owned) if sl_form == "pair" else (..., owned)
        assert np.array_equal(found.sl[where], routing.sl[where])
        assert found.sl2vl.shape == routing.sl2vl.shape


@pytest.mark.parametrize("lft_file", [LFTS, "opensm.fdbs"])
def test_dumps_may_be_compressed_by_gzip(tmp_path, case, lft_file):
    fabric, routing, proof = case
    folder = tmp_path / "t"
    write_tables(folder, fabric, routing, proof)
    (folder / BUNDLE).unlink()
    (folder / ({LFTS, "opensm.fdbs"} - {lft_file}).pop()).unlink()
    plain = read_tables(folder, fabric)
    for path in folder.iterdir():
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    packed = read_tables(folder, fabric)
    for part in ("lft", "sl", "sl2vl"):
        assert np.array_equal(getattr(packed, part), getattr(plain, part))
    file = folder / f"{lft_file}.gz"
    assert np.array_equal(read_tables(file, fabric).lft, plain.lft)
    data = file.read_bytes()
    for damage in (data[:-9], data[:40], data[:30] + bytes(20) + data[50:]):
        file.write_bytes(damage)
        with pytest.raises(ParseError, match=f"{file}: damaged gzip data"):
            read_tables(file, fabric)


def test_dumps_alone_state_what_was_assumed(tmp_path, case):
    fabric, routing, proof = case
    write_tables(tmp_path / "t", fabric, routing, proof, formats=["lfts"])
    (tmp_path / "t" / BUNDLE).unlink()
    for path in (tmp_path / "t", tmp_path / "t" / LFTS):
        found = read_tables(path, fabric)
        assert np.array_equal(found.lft, routing.lft) and not found.sl.any()
        assert "SL 0" in str(found.provenance.options["assumed"])


def test_large_files_are_left_out_unless_asked_for(tmp_path, case, monkeypatch):
    fabric, routing, proof = case
    monkeypatch.setattr("routing.formats.table_files.AUTO_BYTES", 100)
    monkeypatch.setattr("routing.formats.table_files.NAMED_ENTRIES", 1)
    assert write_tables(tmp_path / "t", fabric, routing, proof) == ("bundle", "lfts", "mcfdbs", "guid2lid")
    assert np.array_equal(read_tables(tmp_path / "t" / LFTS, fabric).lft, routing.lft)
    assert "portguid" not in (tmp_path / "t" / LFTS).read_text()
    assert write_tables(tmp_path / "t", fabric, routing, proof, formats=["psl"]) == ("bundle", "psl")


def test_wrong_use(tmp_path, case):
    fabric, routing, proof = case
    with pytest.raises(OptionError, match="no table format 'nonsense'"):
        write_tables(tmp_path / "t", fabric, routing, proof, formats=["nonsense"])
    with pytest.raises(TableError):
        write_tables(tmp_path / "t", random_fabric(2), routing, proof)
    with pytest.raises(EnvironmentProblem):
        write_tables(tmp_path / "none" / "t", fabric, routing, proof)
    assert names_in(tmp_path) == []
    with pytest.raises(InputError, match="no such file"):
        read_tables(tmp_path / "t", fabric)
    with pytest.raises(InputError, match="has neither"):
        read_tables(tmp_path, fabric)


@pytest.mark.parametrize("name", sorted(FIXTURES))
def test_every_fixture_is_written_and_read(tmp_path, name):
    fabric = read_fabric(FIXTURES[name].path)
    engine = ENGINES["updn"]
    routing = engine.route(fabric, EngineOptions(vls=1, effort=0.01))
    write_tables(tmp_path / "out", fabric, routing, verify(fabric, routing, engine).proof)
    assert np.array_equal(read_tables(tmp_path / "out", fabric).lft, routing.lft)
