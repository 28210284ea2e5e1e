"""Check that the kernels of the simulator write only within the arrays that they are given."""

import numpy as np
import pytest
from sim_cases import PACKET, fig4_simulation, pause_ring

from routing._kernels.native import ffi, lib, pointer
from routing._kernels.simulate import LOG_FIELDS, PACKET_FIELDS
from routing.errors import KernelError
from routing.simulate.mechanisms.injection_limit import InjectionLimit
from routing.simulate.options import Remedies, Remedy, Switching
from routing.simulate.run import Simulation


@pytest.fixture(scope="module")
def handle():
    """Return a locked ring that has dropped packets."""
    simulation = fig4_simulation(True, 4, remedies=Remedies(Remedy(hoq=100)))
    simulation.run(1000 * PACKET)
    return simulation._handle


@pytest.mark.parametrize("start", [0, 3])
def test_rows_of_the_log_stop_where_the_array_does(handle, start):
    whole = handle.log()
    left = len(whole) - start
    for room in (0, 1, left - 1, left, left + 2):
        rows = np.full((room + 1, len(LOG_FIELDS)), -7, np.int64)
        assert lib.ibn_simulate_log(handle._sim, start, room, pointer(rows)) == left
        written = min(room, left)
        assert np.array_equal(rows[:written], whole[start : start + written])
        assert (rows[written:] == -7).all()
    assert lib.ibn_simulate_log(handle._sim, start, 0, ffi.NULL) == left


def test_rows_that_the_log_has_not(handle):
    logged = len(handle.log())
    for start in (-1, -(2**62), logged + 1, 2**62):
        assert lib.ibn_simulate_log(handle._sim, start, 1, ffi.NULL) == -1
    assert lib.ibn_simulate_log(handle._sim, logged, 1, ffi.NULL) == 0
    with pytest.raises(KernelError, match="from -1 on"):
        handle.log(-1)


def test_waiting_packets_stop_where_the_array_does(handle):
    whole = handle.packets()
    rows = np.full((len(whole), len(PACKET_FIELDS)), -7, np.int64)
    assert lib.ibn_simulate_packets(handle._sim, 1, pointer(rows)) == len(whole) > 1
    assert np.array_equal(rows[:1], whole[:1])
    assert (rows[1:] == -7).all()


def test_a_mechanism_that_the_kernels_do_not_have_is_named_as_the_reason():
    class Unknown(InjectionLimit):
        name = "unknown"

    with pytest.raises(KernelError, match="a mechanism of the simulation is not compiled in"):
        Simulation(*pause_ring(2, 64), Switching(), Remedies(), [Unknown()])
