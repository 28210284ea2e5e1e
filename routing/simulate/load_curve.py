"""Measure latency and throughput over offered load.  Detect the warm-up, and compute confidence intervals over seeds.

A run is cut into batches of equal length.  The rule MSER finds the batches of the warm-up (White, "An effective
truncation heuristic for bias reduction in simulation output", Simulation 69, 1997).  MSER cuts off the first batches,
at most half of them, so that the standard error of the remaining batches is smallest.  If MSER cuts off the whole first
half, the warm-up may be longer, and the run is continued by a further part.  If this is so even after
:data:`MOST_PARTS` parts, the network does not settle at the given load.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from routing.errors import OptionError
from routing.simulate.adaptive import Adaptive, Scheme, simulate_adaptive
from routing.simulate.latency import Latencies
from routing.simulate.mechanisms.base import Mechanism
from routing.simulate.network import Network
from routing.simulate.options import Switching
from routing.simulate.patterns import offered_rate
from routing.simulate.run import Simulation, simulate
from routing.simulate.traffic import Traffic, message_interval

BATCHES = 20
"""Number of batches in each part of a run.  A run that has not settled is continued by a further part."""
MOST_PARTS = 4
"""Number of parts after which a run ends even if it has not settled."""
BATCH_MESSAGES = 100
"""Length of a batch, in units of the time of a message on a CA's link."""
SETTLED = 0.95
"""A network counts as saturated if it accepts less than this share of the offered load."""
T_QUANTILE = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
"""97.5 % quantiles of Student's t distribution with 1 to 15 degrees of freedom.  The last quantile is also used for
more degrees.
"""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Measurement:
    """Result of one run at one load.

    Attributes
    ----------
    accepted
        Throughput after the warm-up, in the unit of the offered load.
    latency, packet_p50, packet_p99, message_p99
        Mean latency of packets, and percentiles of packets and of messages, in ticks.  Latency is from the due time of
        the message to the arrival of the last byte.  None if no packet arrived.
    warm_up, length
        A run is cut into batches of equal length.  ``warm_up`` is the number of batches of the warm-up, and ``length``
        the number of batches of the whole run.
    settled
        Whether latency became stationary and the network accepted the offered load.
    deadlock
        Whether virtual channels wait for one another forever at the end of the run.  False if all switches drop packets
        that cannot move.
    """

    accepted: float
    latency: float | None
    packet_p50: float | None
    packet_p99: float | None
    message_p99: float | None
    warm_up: int
    length: int
    settled: bool
    deadlock: bool


def truncation_point(values: Floats) -> int:
    """Return how many of the first values belong to the warm-up of a run, by the rule MSER.

    ``values`` are the mean latencies of the run's batches.  The warm-up takes at most half of the batches.
    Cost: O(n^2) for n values.
    """
    half = len(values) // 2
    errors = [float(np.var(values[cut:])) / (len(values) - cut) for cut in range(half + 1)]
    return int(np.argmin(errors))


def measure(simulation: Simulation, traffic: Traffic, load: float) -> Measurement:
    """Run a simulation until its latency is stationary, and measure it after the warm-up.

    ``load`` is the offered load for which :func:`routing.simulate.patterns.pattern_traffic` made the traffic.
    """
    network = simulation.network
    message = max(message_interval(network, flow.source, 1.0, flow.bytes) for flow in traffic.flows)
    period = max(1, math.ceil(BATCH_MESSAGES * message))
    histograms, delivered, sums = [simulation.latencies()], [0], [0]
    cut, stationary = 0, False
    for part in range(1, MOST_PARTS + 1):
        for _ in range(BATCHES):
            simulation.run(simulation.now + period)
            histograms.append(simulation.latencies())
            delivered.append(simulation.totals()["delivered_bytes"])
            sums.append(simulation.latency_sum())
        means = _batch_means(histograms, sums)
        cut = truncation_point(means)
        stationary = cut < BATCHES * part // 2
        if stationary:
            break
    length = len(delivered) - 1
    rate = (delivered[-1] - delivered[cut]) / (period * (length - cut))
    accepted = load * rate / offered_rate(traffic)
    after = histograms[-1].since(histograms[cut])
    count = int(after.packets.sum())
    return Measurement(
        accepted=accepted,
        latency=(sums[-1] - sums[cut]) / count if count else None,
        packet_p50=after.packet_percentile(50),
        packet_p99=after.packet_percentile(99),
        message_p99=after.message_percentile(99),
        warm_up=cut,
        length=length,
        settled=stationary and accepted >= SETTLED * load,
        deadlock=bool(simulation.deadlocks()),
    )


def _batch_means(histograms: Sequence[Latencies], sums: Sequence[int]) -> Floats:
    """Return the mean latency of each batch.  A batch without deliveries gets the value of the previous batch.

    ``histograms`` has the histograms of all latencies since the start of the simulation, and ``sums`` has the sums of
    these latencies.  Both have one element for the beginning of each batch, and one for the end of the last batch.
    """
    counts = np.diff([int(each.packets.sum()) for each in histograms])
    means, last = [], 0.0
    for total, count in zip(np.diff(np.asarray(sums)).tolist(), counts.tolist(), strict=True):
        last = total / count if count else last
        means.append(last)
    return np.asarray(means)


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """Return the mean of the results of several seeds, and half the width of its 95 % confidence interval.

    The half width is None for a single value.

    Raises
    ------
    OptionError
        There are no values.
    """
    if not values:
        raise OptionError("there is no value to average")
    if len(values) == 1:
        return values[0], None
    quantile = T_QUANTILE[min(len(values) - 1, len(T_QUANTILE)) - 1]
    return statistics.fmean(values), quantile * statistics.stdev(values) / math.sqrt(len(values))


def simulation_of(
    network: Network,
    traffic: Traffic,
    scheme: Scheme | None,
    *,
    mechanisms: Sequence[Mechanism] = (),
    speedup: int = 1,
    seed: int = 1,
) -> Simulation:
    """Set up a simulation with fixed tables or with a scheme of adaptive routing.

    If ``scheme`` is None, switches use the fixed tables of the network.  ``mechanisms`` and ``speedup`` have an effect
    only with fixed tables.  ``speedup`` is the number of packets that an input of a switch can send at once.

    With the scheme ESCAPE, the tables of the network are the escape paths.  The time limits of a scheme have the
    default values of scenario files: a scheme acts on a packet that has waited at the head of its queue for one packet
    time.
    """
    if scheme is None:
        switching = Switching(speedup=speedup, seed=seed)
        return simulate(network, traffic, switching=switching, mechanisms=mechanisms)
    packet = max(1, round(max(message_interval(network, flow.source, 1.0, traffic.mtu) for flow in traffic.flows)))
    adaptive = Adaptive(
        scheme, ca_vls=network.vls - (scheme is Scheme.ESCAPE), stay=scheme is Scheme.ESCAPE, detect=packet,
        repeat=packet, lasts=20 * packet, hold=64 * packet, sample=max(1, packet // 2), seed=seed,
    )  # fmt: skip
    return simulate_adaptive(network, traffic, adaptive)
