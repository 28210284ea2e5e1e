import pytest

from benchmarks import nue_seeds, nue_tori
from routing.formats.fabric_files import write_net
from routing.topologies import generate


def cells(text):
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "---" not in line]


def test_tori_are_certified(capsys):
    assert nue_tori.main(["--count", "3", "--opensm", ""]) == 0
    head, *rows = cells(capsys.readouterr().out)
    assert [row[0] for row in rows] == ["2x2x2", "3x2x2", "3x3x2"]
    assert {row[head.index("certified")] for row in rows} == {"yes"}


def test_a_table_is_drawn(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    assert nue_tori.main(["--count", "3", "--opensm", ""]) == 0
    page, picture = tmp_path / "page.md", tmp_path / "tori.svg"
    page.write_text(f"# A page\n\nwords | words\n\n{capsys.readouterr().out}\nmore words\n")
    assert [row["torus"] for row in nue_tori.rows_of(page.read_text())] == ["2x2x2", "3x2x2", "3x3x2"]
    assert nue_tori.main(["--table", str(page), "--plot", str(picture)]) == 0
    assert "<svg" in picture.read_text()


def test_there_are_as_many_tori_as_were_published():
    assert len(nue_tori.SIZES) == 25
    assert nue_tori.SIZES[0] == (2, 2, 2) and nue_tori.SIZES[-1] == (10, 10, 10)


def test_failed_links_are_the_same_every_time():
    one, two = (nue_tori.torus((6, 5, 5)) for _ in range(2))
    assert one.digest == two.digest
    assert one.links == generate("torus", ["6x5x5"], cas=4).links - 4


@pytest.mark.parametrize(("topology", "size", "paths"), [("torus", "3x3", 4), ("kary-ntree", "3,2", 5)])
def test_initial_orders(topology, size, paths, tmp_path, capsys):
    write_net(generate(topology, size.split(",")), tmp_path / "fabric.net")
    assert nue_seeds.main([str(tmp_path / "fabric.net"), "--vls", "2"]) == 0
    _, *rows = cells(capsys.readouterr().out)
    assert len(rows) == paths
    assert all(0.0 < float(row[3]) <= float(row[4]) for row in rows)
