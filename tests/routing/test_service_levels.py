"""Compare the SL of each sender and destination with a lookup by hand, for all shapes of SL tables."""

import numpy as np
import pytest

from routing.tables import ServiceLevels, SlForm

SWITCHES, LIDS = 3, 6
SHAPES = {SlForm.BY_LID: (LIDS,), SlForm.BY_SWITCH: (SWITCHES, LIDS), SlForm.BY_SOURCE_LID: (LIDS, LIDS)}
SWITCH_OF_LID = np.array([0, 0, 1, 2, 2, 1])


def lookup(table, form, switch, lid, to):
    """Return the SL of one sender, according to the documented shape of the table."""
    if form is SlForm.BY_LID:
        return table[to]
    return table[switch, to] if form is SlForm.BY_SWITCH else table[lid, to]


@pytest.mark.parametrize("form", SlForm)
def test_every_form_answers_for_senders_and_destinations(form):
    table = np.random.default_rng(3).integers(0, 16, SHAPES[form], np.uint8)
    sls, lids = ServiceLevels.of(table, SWITCHES), np.arange(LIDS)
    wanted = [[lookup(table, form, SWITCH_OF_LID[lid], lid, to) for to in lids] for lid in lids]
    assert sls.form is form
    assert sls.rows == (0 if form is SlForm.BY_LID else len(table))
    assert sls.matrix[sls.row_of(SWITCH_OF_LID, lids)].tolist() == wanted
    assert [sls.from_sender(int(SWITCH_OF_LID[lid]), int(lid)).tolist() for lid in lids] == wanted
    assert sls.with_rows(SWITCHES).shape == (LIDS if form is SlForm.BY_SOURCE_LID else SWITCHES, LIDS)
    assert sls.of_any_sender(table == table.flat[0]).tolist() == [table.flat[0] in sls.matrix[:, to] for to in lids]
