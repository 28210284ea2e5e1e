"""Check that each output of a host becomes one line in OpenSM's log."""

import cffi
import pytest

from osm_plugin.callbacks import FAILED, TOKEN, Callbacks
from routing.errors import RoutingError


class Host:
    """Host that returns a text, or fails with this text."""

    def __init__(self, output, fails):
        self.answer, self.fails = output, fails

    def check_worker(self):
        if self.fails:
            raise self.fails(self.answer)
        return self.answer


@pytest.mark.parametrize(
    ("fails", "answer", "wanted"),
    [
        (None, TOKEN, "sw 1 \\x1b[31m"),
        (RoutingError, FAILED, "sw\\n1 \\x1b[31m"),
        (ValueError, FAILED, "ValueError in the host: sw\\n1 \\x1b[31m"),
    ],
)
def test_names_break_no_line_of_the_log(fails, answer, wanted):
    ffi = cffi.FFI()
    note = ffi.new("char[200]")
    assert Callbacks(ffi, Host("sw\n1 \x1b[31m", fails)).check_worker(note, 200) == answer
    assert ffi.string(note).decode() == wanted
