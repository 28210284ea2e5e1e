"""Check the sums of a simulation of packets."""

import numpy as np


def account(simulation):
    """Check all sums that must hold at any stop of a simulation."""
    flows, vcs, totals = simulation.flows(), simulation.virtual_channels(), simulation.totals()
    assert flows.sent_packets.sum() == totals["injected"]
    assert flows.packets.sum() == totals["delivered"]
    assert flows.dropped.sum() == totals["dropped"]
    in_flight = flows.sent_packets - flows.packets - flows.dropped
    assert (in_flight >= 0).all()
    assert in_flight.sum() == totals["in_flight"]
    held = np.bincount(simulation.packets()[:, 0], minlength=len(in_flight))
    assert (held <= in_flight).all()
    assert (vcs.credits + vcs.occupancy + vcs.flying + vcs.returning == vcs.buffer).all()
    for blocks in (vcs.occupancy, vcs.flying, vcs.returning):
        assert (blocks >= 0).all()
    counters = simulation.counters()
    reasons = (
        counters.port_sw_hoq_lifetime_limit_discards + counters.port_sw_lifetime_limit_discards
        + counters.vl_stalled_discards
    )  # fmt: skip
    assert (reasons <= counters.port_xmit_discards).all()
    assert (vcs.waiting.sum(axis=1) == counters.waiting).all()
    elsewhere = counters.buffer_overrun_errors + counters.port_rcv_switch_relay_errors + counters.link_down_discards
    assert counters.port_xmit_discards.sum() <= totals["dropped"] <= (counters.port_xmit_discards + elsewhere).sum()
