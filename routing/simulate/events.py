"""Format the event log of a simulation as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from routing.numerals import count_noun
from routing.simulate.network import Network
from routing.simulate.run import Simulation
from routing.simulate.state import Event

Describer = Callable[[Network, int, int, int, int], str]


def _lid(network: Network, lid: int) -> str:
    """Return the text for a LID, with the label of its end port if one owns the LID."""
    endport = int(network.fabric.lids.endport[lid])
    return f"LID {lid}" if endport < 0 else f"{network.fabric.endport_label[endport]} (LID {lid})"


DESCRIBERS: Mapping[Event, Describer] = {
    Event.HOQ_DROP: lambda net, a, b, c, d: f"{net.vc_name(a)}: head to {_lid(net, b)} dropped, {d} in a row",
    Event.STALLED: lambda net, a, b, c, d: f"{net.vc_name(a)}: stalled until tick {b}",
    Event.UNSTALLED: lambda net, a, b, c, d: f"{net.vc_name(a)}: no longer stalled",
    Event.SUSPECTED: lambda net, a, b, c, d: f"{net.vc_name(a)}: suspected, its number is {b:#010x}",
    Event.CLEARED: lambda net, a, b, c, d: f"{net.vc_name(a)}: no longer suspected",
    Event.CLCM: lambda net, a, b, c, d: f"{net.vc_name(a)}: message {b:#010x} sent, phase {c}, index {d}",
    Event.REPLACED: lambda net, a, b, c, d: f"{net.vc_name(a)}: passes on {b:#010x}, which came by {net.vc_name(c)}",
    Event.MASTER: lambda net, a, b, c, d: (
        f"{net.fabric.labels[d]} is master of the loop from {net.vc_name(b)}"
        f" to {net.vc_name(a)}, its number is {c:#010x}"
    ),
    Event.REROUTED: lambda net, a, b, c, d: f"{net.fabric.labels[a]}: {_lid(net, b)} goes by port {c} now",
    Event.RELEASED: lambda net, a, b, c, d: f"{net.vc_name(a)}: {count_noun(c, 'packet')} may go without credit",
    Event.OVERRUN: lambda net, a, b, c, d: f"{net.vc_name(a)}: packet to {_lid(net, b)} found no room",
    Event.FOUND: lambda net, a, b, c, d: (
        f"{net.fabric.labels[d]} found a loop of {c} from {net.vc_name(b)} to {net.vc_name(a)}"
    ),
    Event.RULE: lambda net, a, b, c, d: (
        f"{net.vc_name(a)}: serves {net.vc_name(b)} only, whose buffer has {count_noun(c, 'block')} more"
    ),
    Event.RULE_END: lambda net, a, b, c, d: f"{net.vc_name(a)}: serves all again",
    Event.FAILED: lambda net, a, b, c, d: f"{net.channel_name(a)}: link down, {count_noun(b, 'packet')} lost",
    Event.RESTORED: lambda net, a, b, c, d: f"{net.channel_name(a)}: link up",
    Event.ROUND: lambda net, a, b, c, d: f"{net.vc_name(a)}: draws {b:#010x} for round {c}",
}
"""Functions that format an event, by the kind of the event.  Their arguments are the four numbers of the event
(:class:`Event` lists them).
"""


def describe(simulation: Simulation, most: int) -> list[tuple[int, str]]:
    """Return the tick and the text of each event of a simulation, for the first ``most`` events.

    A control message that a deadlock breaker sends again with the same content is listed only once.
    """
    found: list[tuple[int, str]] = []
    stated: set[tuple[int, ...]] = set()
    for tick, kind, *numbers in simulation.log().tolist():
        if len(found) == most:
            break
        if kind == Event.CLCM:
            if tuple(numbers) in stated:
                continue
            stated.add(tuple(numbers))
        found.append((tick, DESCRIBERS[Event(kind)](simulation.network, *numbers)))
    return found
