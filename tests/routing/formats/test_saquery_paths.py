"""Check the SLs in the output of ``saquery PR``."""

import numpy as np
import pytest
from routing_cases import tables
from strategies import random_fabric, ring_fabric

from routing.errors import ParseError, TableError
from routing.formats import path_sl

RECORD = """PathRecord dump:
\t\tservice_id..............0x0000000000000000
\t\tdgid....................fe80::20:0
\t\tsgid....................fe80::10:1
\t\tdlid....................{}
\t\tslid....................{}
\t\thop_flow_raw............0x0
\t\tqos_class...............0x0
\t\tsl......................0x{:X}
\t\tmtu.....................0x83
"""


def records(fabric, sl):
    """Return the text of a record for every pair of base LIDs."""
    lids = sorted([*fabric.switch_lid.tolist(), *fabric.endport_lid.tolist()])
    return [RECORD.format(lid, source, sl[source, lid]) for source in lids for lid in lids if lid != source]


def test_printed_path_records_are_read(tmp_path):
    fabric = random_fabric(3, switches=5, cas=3)
    routing, _ = tables(fabric, sl_form="pair")
    (tmp_path / "pr").write_text("".join(records(fabric, routing.sl)))
    stated = path_sl.read_stated(tmp_path / "pr", fabric)
    assert path_sl.unstated_pairs(fabric, routing.lft, stated) == 0
    for row, source in enumerate([*fabric.switch_lid.tolist(), *fabric.endport_lid.tolist()]):
        for lid in [*fabric.switch_lid.tolist(), *fabric.endport_lid.tolist()]:
            assert stated[row, lid] == (255 if lid == source else routing.sl[source, lid])


def test_records_that_differ_state_nothing(tmp_path):
    fabric = ring_fabric(4)
    routing, _ = tables(fabric, sl_form="pair")
    pair = fabric.endport_lid[:2].tolist()
    sl = int(routing.sl[pair[0], pair[1]])
    again = [RECORD.format(pair[1], pair[0], level) for level in (sl, sl ^ 1)]
    (tmp_path / "pr").write_text("".join([*records(fabric, routing.sl), *again]))
    stated = path_sl.read_stated(tmp_path / "pr", fabric)
    assert path_sl.unstated_pairs(fabric, routing.lft, stated) == 1
    assert stated[fabric.switches, pair[1]] == 255


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (RECORD.format(0, 5, 0), 11),
        (RECORD.format(5, 0, 0), 11),
        (RECORD.format(5, 6, 16), 11),
        (RECORD[: RECORD.index("qos_class")].format(5, 6), 11),
    ],
)
def test_damaged_records_are_refused_with_their_line(tmp_path, text, line):
    (tmp_path / "pr").write_text(RECORD.format(5, 6, 0) + text + RECORD.format(6, 5, 0))
    with pytest.raises(ParseError, match=rf"pr:{line}: a path record has no LIDs or no SL"):
        path_sl.read_stated(tmp_path / "pr", ring_fabric(4))


def test_records_of_another_fabric_are_refused(tmp_path):
    fabric = ring_fabric(4)
    (tmp_path / "pr").write_text(RECORD.format(5, 600, 0))
    with pytest.raises(TableError, match="pr:1: LID 600 is not in the fabric"):
        path_sl.read_stated(tmp_path / "pr", fabric)
    (tmp_path / "pr").write_text(RECORD.format(5, 6, 0))
    with pytest.raises(TableError, match="the file has no paths from"):
        path_sl.read_stated(tmp_path / "pr", fabric)
    assert np.count_nonzero(fabric.endport_lid) == 4
