"""Fuzz the readers of fabrics, GUIDs and LFTs with guidance by coverage.  This program is not part of the tests.

usage: pip install atheris; python tests/routing/formats/fuzz_readers.py [-max_total_time=300 and the like]

The fuzzing begins with the samples of the tests.  An outcome other than a fabric or an ibnue error ends the run, and
the input is kept as crash-*.
"""

import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["routing.formats", "routing.fabric_builder"]):
    from routing.errors import IbnueError
    from routing.formats.fabric_files import read_fabric, write_fabric
    from routing.formats.guid_files import read_guid2lid, read_guid_lines, read_node_name_map
    from routing.formats.lft_files import read_lft_file

DATA = Path(__file__).parent / "data"
FABRIC = read_fabric(DATA / "mixed.ibnetdiscover")


def read_tables_of_fabric(path):
    return read_lft_file(path, FABRIC)


READERS = (read_fabric, read_guid2lid, read_guid_lines, read_node_name_map, read_tables_of_fabric)


def main():
    with tempfile.TemporaryDirectory() as folder:
        corpus, path = Path(folder) / "corpus", Path(folder) / "input"
        corpus.mkdir()
        for sample in (entry for entry in DATA.iterdir() if entry.is_file()):
            shutil.copy(sample, corpus)
        for suffix in (".json", ".graphml", ".dot"):
            write_fabric(read_fabric(DATA / "mixed.ibnetdiscover"), corpus / f"own{suffix}")

        def once(data):
            path.write_bytes(data)
            for read in READERS:
                with suppress(IbnueError):
                    read(path)

        atheris.Setup([*sys.argv, str(corpus), "-max_len=6000", "-timeout=10", "-rss_limit_mb=1500"], once)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
