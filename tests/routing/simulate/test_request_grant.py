"""Compare requests and grants between adapters with their slow reference, and with the theorems of the paper."""

import random
from dataclasses import replace

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from slow_compare import assert_equal, slow_twin

from routing.errors import OptionError
from routing.simulate.clos import ClosTiming, build_clos
from routing.simulate.mechanisms.congestion import CongestionControl
from routing.simulate.mechanisms.request_grant import RequestGrant, hotspot_loads
from routing.simulate.options import Inputs, Remedies, Switching
from routing.simulate.run import Simulation

SWITCHES = Switching(inputs=Inputs.FIFO, speedup=0)


def any_loads(rng, adapters):
    loads = np.array([[rng.choice([0, 0.2, 1.0]) * rng.random() for _ in range(adapters)] for _ in range(adapters)])
    return loads / max(1.0, loads.sum(axis=1).max()) * 0.99


def any_adapters(rng):
    adapters, radix = rng.choice([(2, 2), (4, 2), (4, 4), (4, 2)])
    timing = ClosTiming(
        rng.choice([1.0, 1.3]), rng.choice([1.0, 2.0]), rng.choice([1, 7, 40]), rng.choice([0, 3, 50]),
        rng.choice([1, 9]), rng.choice([4, 9]), rng.choice([4, 20]),
    )  # fmt: skip
    segment, large = rng.choice([(40, 40), (100, 300), (256, 900)])
    grant = -(-large // segment) + rng.choice([0, 1, 5])
    return RequestGrant(
        build_clos(adapters, radix, timing), any_loads(rng, adapters), rng.random() < 0.5, rng.random() < 0.6,
        rng.choice([1, 60]), segment, rng.choice([1, 20]), grant, grant + rng.choice([0, 20]),
        grant + rng.choice([0, 3, 20]), rng.choice([0.7, 1.0, 10.0]), rng.choice([1, 40]), large,
        rng.choice([0.0, 0.3]), rng.choice([1.0, 4.0]), rng.choice([[], [0], [1, 0]]), 200, 450,
    )  # fmt: skip


@examples(4)
@given(st.integers(0, 1 << 30))
def test_any_adapters_beside_the_slow_twin(seed):
    rng = random.Random(seed)
    adapters = any_adapters(rng)
    network, switching = adapters.clos.network, replace(SWITCHES, seed=rng.randint(1, 9))
    fast = Simulation(network, adapters.traffic(), switching, Remedies(), [adapters])
    slow = slow_twin(network, adapters.traffic(), switching, Remedies(), [adapters])
    for stop in (220, 500, 900):
        fast.run(stop)
        slow.run(fast.now)
        fast.check()
        assert_equal(fast, slow)
        np.testing.assert_array_equal(np.array(adapters.counts(fast)).T, slow.attached[0].counts())


def test_other_mechanisms_are_refused():
    adapters = any_adapters(random.Random(1))
    with pytest.raises(OptionError, match="beside other mechanisms"):
        Simulation(adapters.clos.network, adapters.traffic(), SWITCHES, Remedies(), [adapters, CongestionControl()])


def run_adapters(adapters, until, **how):
    simulation = Simulation(adapters.clos.network, adapters.traffic(), SWITCHES, Remedies(), [adapters])
    simulation.run(until)
    return simulation, adapters.counts(simulation)


def with_wires(clos, wires):
    """Return the network with other lengths of the wires from each adapter to its first switch."""
    arrays = clos.network.arrays
    wire = arrays.wire.copy()
    for sender, length in zip(clos.sender.tolist(), wires, strict=True):
        wire[clos.network.endport_channel(sender)] = length
    return replace(clos, network=replace(clos.network, arrays=replace(arrays, wire=wire)))


@examples(4)
@given(st.lists(st.integers(1, 400), min_size=8, max_size=8), st.integers(8, 12), st.integers(0, 9))
def test_lemma_1_backlog_is_at_most_the_difference_of_round_trips(wires, grant, seed):
    loads = np.zeros((8, 8))
    loads[:, 0] = 0.9
    clos = with_wires(build_clos(8, 8, ClosTiming(output_blocks=2000)), wires)
    adapters = RequestGrant(
        clos, loads, False, False, 500, 40, 20, grant, 10_000, 1, 1.0, 40, 40, burst=float(1 + seed % 5)
    )  # fmt: skip
    switching = replace(SWITCHES, seed=seed)
    simulation = Simulation(clos.network, adapters.traffic(), switching, Remedies(), [adapters])
    inside = clos.network.arrays.dst < clos.network.arrays.switches
    most = 0
    for tick in range(3000, 7000, 25):
        simulation.run(tick)
        most = max(most, int(simulation.virtual_channels().occupancy[inside].sum()))
    # The segment that the output is sending and the one inside the crossbar do not count as backlog.
    assert most <= (max(wires) - min(wires)) / 40 + 2
    assert adapters.counts(simulation).departed_bytes[0] > 0.8 * (7000 - 2000)


@pytest.mark.parametrize("difference", [2, 4, 6])
def test_the_bound_of_lemma_1_is_reached(difference):
    """Fig. 3 of the paper: if the round trips differ by 4 segments, the backlog reaches 4 segments."""
    loads = np.zeros((8, 8))
    loads[:, 0] = 0.9
    clos = with_wires(build_clos(8, 8, ClosTiming(output_blocks=2000)), [1] * 4 + [1 + 40 * difference] * 4)
    adapters = RequestGrant(clos, loads, False, False, 500, 40, 20, 8, 10_000, 1, 1.0, 40, 40, burst=4.0)
    simulation = Simulation(clos.network, adapters.traffic(), SWITCHES, Remedies(), [adapters])
    inside = clos.network.arrays.dst < clos.network.arrays.switches
    most = 0
    for tick in range(3000, 7000, 5):
        simulation.run(tick)
        most = max(most, int(simulation.virtual_channels().occupancy[inside].sum()))
    # The segment that the output is sending does not count as backlog.
    assert most == difference + 1


class Fluid:
    """A model of five stages of k x k switches for k^3 lines, which moves one unit of traffic per step.

    Output buffers never stop a sender.  A buffer is a queue of parcels, arrays with one amount for each destination.
    It sends one unit per step.
    """

    def __init__(self, k):
        self.k, self.lines, self.buffers = k, k**3, {}

    def send(self, stage, buffer, parcel):
        self.buffers.setdefault((stage, buffer), []).append(parcel)

    def served(self, stage, buffer):
        room, sent, queue = 1.0, np.zeros(self.lines), self.buffers.get((stage, buffer), [])
        while queue and room > 1e-12:
            part = min(1.0, room / queue[0].sum()) if queue[0].sum() else 1.0
            sent, room = sent + part * queue[0], room - part * queue[0].sum()
            queue[0] = (1 - part) * queue[0]
            if part == 1.0:
                queue.pop(0)
        return sent

    def step(self, injected):
        """Move all buffers by one step.  In buffer names, (a, b) are the choices in the first and second stage, and `d`
        is the destination.
        """
        k, arrived, lines = self.k, np.zeros(self.lines), np.arange(self.lines)
        for d in lines:
            arrived += self.served(5, d)
        moved = {key: self.served(*key) for key in list(self.buffers) if key[0] < 5}
        for (stage, buffer), parcel in moved.items():
            if stage == 1:  # the buffer is (switch of the first stage, a)
                for b in range(k):
                    self.send(2, (buffer[1], buffer[0] // k, b), parcel / k)
            elif stage == 2:  # the buffer (a, switch of the second stage, b) leads to the middle switch (a, b)
                for third in range(k):
                    chosen = parcel * (lines // k**2 == third)
                    self.send(3, (buffer[0], buffer[2], third), chosen)
            elif stage == 3:
                for last in range(k * buffer[2], k * buffer[2] + k):
                    self.send(4, (buffer[0], last), parcel * (lines // k == last))
            else:
                for d in lines[lines // k == buffer[1]]:
                    self.send(5, d, parcel * (lines == d))
        for i in lines:
            for a in range(k):
                self.send(1, (i // k, a), injected[i] / k)
        return arrived

    def fullest(self):
        return max((sum(float(parcel.sum()) for parcel in queue) for queue in self.buffers.values()), default=0.0)


@pytest.mark.parametrize("k", [2, 3])
@examples(4)
@given(st.integers(0, 1 << 30))
def test_theorem_1_no_buffer_of_a_fluid_overflows(k, seed):
    fullest, lines = {}, k**3
    for bound in (6.0, 1e9):
        rng, fluid, outstanding, fullest[bound] = np.random.default_rng(seed), Fluid(k), np.zeros(lines), 0.0
        favourites = rng.random((lines, lines)) ** 4 + rng.choice(2, lines, p=[0.7, 0.3])
        favourites[:, rng.integers(lines)] += 1
        for _ in range(40):
            wish = favourites * rng.random((lines, lines))
            wish /= np.maximum(wish.sum(axis=1, keepdims=True), 1.0)
            wish *= np.minimum(1.0, (bound - outstanding) / np.maximum(wish.sum(axis=0), 1e-12))
            outstanding += wish.sum(axis=0)
            outstanding -= fluid.step(wish)
            fullest[bound] = max(fullest[bound], fluid.fullest())
    assert fullest[6.0] <= 6.0 + 1e-9
    assert fullest[1e9] > 6.0


def test_reserved_buffers_of_five_stages_never_fill_and_hotspots_do_no_harm():
    delays = []
    for hot in (0, 2):
        clos = build_clos(8, 2, ClosTiming(input_blocks=40, output_blocks=200))
        loads = hotspot_loads(8, range(hot), 2.0, 0.55)
        adapters = RequestGrant(clos, loads, True, False, 1900, 40, 20, 50, 10_000, 200, 10.0, burst=8.0)
        simulation, early = run_adapters(adapters, 40 * 2000)
        fullest = 0
        for tick in range(2000, 5000, 20):
            simulation.run(40 * tick)
            fullest = max(fullest, int(simulation.virtual_channels().occupancy[clos.output_queue].max()))
        late = adapters.counts(simulation)
        cold = slice(hot, 8)
        departed = (late.departed - early.departed)[cold].sum()
        delays.append((late.delay - early.delay)[cold].sum() / departed / 40)
        assert departed * 40 >= 0.95 * (late.offered_bytes - early.offered_bytes)[cold].sum()
        assert fullest <= 200
    assert delays[1] <= 1.25 * delays[0]


def test_smallest_delays_are_those_of_the_delays_of_the_network():
    for in_band, trips in ((True, 1), (False, 3)):
        clos = build_clos(64, 8, ClosTiming())
        loads = np.zeros((64, 64))
        loads[5, 60] = 1e-4
        adapters = RequestGrant(clos, loads, True, in_band)
        _, counts = run_adapters(adapters, 40 * 200_000)
        # The delay is one trip of 27.5 packet times, or three with a request and a grant.  One packet time is added,
        # and a tick for each output queue.
        assert counts.departed[60] > 10
        assert counts.delay[60] / counts.departed[60] / 40 == pytest.approx(27.5 * trips + 1, abs=0.4)


@pytest.mark.parametrize("speedup", [1.0, 1.1])
@pytest.mark.parametrize("in_band", [False, True])
def test_smallest_delay_of_a_large_packet(speedup, in_band):
    """Section 4: the delay is one and a half trips of 55 packet times, and the time of 9000 bytes on a link."""
    clos = build_clos(64, 8, ClosTiming(speedup=speedup))
    loads = np.zeros((64, 64))
    loads[5, 60] = 0.02
    adapters = RequestGrant(clos, loads, True, in_band, small=9000)
    _, counts = run_adapters(adapters, 40 * 100_000)
    assert counts.departed[60] > 4
    assert counts.delay[60] / counts.departed[60] / 40 == pytest.approx(1.5 * 55 + 225 / speedup, abs=0.6)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"grant": 0}, "grant"), ({"grant": 1, "small": 9000}, "never requested"),
        ({"reassembly": 10}, "room for a grant"),
        ({"fabric_buffer": 10}, "room for a grant"), ({"blocked": [9]}, "blocked"), ({"burst": 0.5}, "burst"),
        ({"loads": np.ones((4, 4))}, "loads of 4 adapters"), ({"grant_rate": 0.0}, "grant_rate"),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(setting, message):
    adapters = replace(RequestGrant(build_clos(4, 2, ClosTiming()), np.full((4, 4), 0.1)), **setting)
    with pytest.raises(OptionError, match=message):
        adapters.numbers(adapters.clos.network, adapters.traffic())


@pytest.mark.parametrize(("adapters", "radix"), [(6, 2), (9, 3), (8, 1), (512, 8), (4096, 8)])
def test_networks_that_cannot_be_are_refused(adapters, radix):
    with pytest.raises(OptionError, match=r"Clos network|LMC"):
        build_clos(adapters, radix, ClosTiming())


def test_every_lid_of_a_clos_network_is_a_path_of_its_own():
    clos = build_clos(8, 2, ClosTiming())
    arrays = clos.network.arrays
    for adapter, first in enumerate(clos.first_lid.tolist()):
        paths = {tuple(clos.network.vcs_of_path(int(clos.sender[0]), first + p)) for p in range(clos.paths)}
        assert len(paths) == clos.paths == 4
        assert all(
            len(path) == 9 for path in paths
        )  # a crossbar and an output queue in each of 5 stages, without the last link
        assert arrays.lid_device[first] == arrays.dst[clos.output_channel[adapter]]
