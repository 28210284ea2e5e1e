"""Compare a simulation that has mechanisms with the slow reference simulator."""

import numpy as np
from slow_simulate import Slow

from routing._kernels.simulate import VC_FIELDS
from routing.simulate.mechanisms.base import with_mechanisms
from routing.simulate.options import option_arrays
from routing.simulate.traffic import traffic_arrays


def slow_twin(network, traffic, switching, remedies, mechanisms):
    """Return the slow reference for a simulation, from the arguments of the simulation."""
    options = with_mechanisms(option_arrays(network, switching, remedies, traffic.mtu), mechanisms, network, traffic)
    return Slow(network.arrays, options, traffic_arrays(network, traffic))


def assert_equal(fast, slow):
    """Check that all counters of a simulation equal those of its slow reference."""
    handle = fast._handle
    np.testing.assert_array_equal(handle.channels(), np.array(slow.channel_rows()))
    np.testing.assert_array_equal(handle.virtual_channels().reshape(-1, len(VC_FIELDS)), np.array(slow.vc_rows()))
    np.testing.assert_array_equal(handle.flows()[:, [0, 1, 3, 4, 5, 6, 7, 8, 9]], np.array(slow.flow_rows()))
