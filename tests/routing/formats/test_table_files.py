import numpy as np
import pytest
from routing_cases import tables
from strategies import random_fabric

from routing.errors import EnvironmentProblem, InputError, OptionError, TableError
from routing.formats.table_files import BUNDLE, FORMATS, LFTS, read_tables, write_tables


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def case():
    fabric = random_fabric(1, switches=5, lmc=1)
    return fabric, *tables(fabric, sl_form="switch")


def test_a_folder_is_written_and_read(tmp_path, case):
    fabric, routing, proof = case
    written = write_tables(tmp_path / "t", fabric, routing, proof)
    assert (names_in(tmp_path / "t")) == sorted(FORMATS[name].file for name in written)
    for path in (tmp_path / "t", tmp_path / "t" / BUNDLE):
        found = read_tables(path, fabric)
        assert np.array_equal(found.lft, routing.lft) and np.array_equal(found.sl, routing.sl)
    write_tables(tmp_path / "t", fabric, routing, proof, formats=["lfts"])
    assert (names_in(tmp_path / "t")) == [BUNDLE, LFTS]


def test_dumps_alone_state_what_was_assumed(tmp_path, case):
    fabric, routing, proof = case
    write_tables(tmp_path / "t", fabric, routing, proof, formats=["lfts"])
    (tmp_path / "t" / BUNDLE).unlink()
    for path in (tmp_path / "t", tmp_path / "t" / LFTS):
        found = read_tables(path, fabric)
        assert np.array_equal(found.lft, routing.lft) and not found.sl.any()
        assert "SL 0" in str(found.provenance.options["assumed"])


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
    with pytest.raises(InputError, match="holds neither"):
        read_tables(tmp_path, fabric)
