"""A second packet simulator, written from docs/simulation.md alone.  It shares no code with ibnue.

The simulator visits every channel in every tick.  It has switches with a queue for each output, credits, wires, a
crossbar, and arbitration in turn.
"""

from collections import defaultdict, deque
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PlainFlow:
    """A flow that always has a packet of ``blocks`` blocks to send along ``path``, a list of device names."""

    path: tuple[str, ...]
    blocks: int
    vl: int
    start: int
    window: int


@dataclass(eq=False)
class Channel:
    """One direction of a cable.  ``inputs`` has the sender's neighbours in the order of ports, or a CA's flows."""

    wire: int
    credits: list[int]
    inputs: list
    free_at: int = 0
    last_vl: int = -1
    last_input: dict = field(default_factory=lambda: defaultdict(lambda: -1))
    queues: dict = field(default_factory=lambda: defaultdict(deque))


class PlainSimulator:
    """``ports`` maps each device to its neighbours in the order of ports.  ``wires`` and ``buffers`` map (sender,
    receiver) to the delay of the cable and to the buffer of each VL.  A head takes ``delay`` ticks in a switch.
    Crossbars have a speedup of 1, or no limit if ``ideal`` is true.
    """

    def __init__(self, ports, wires, buffers, delay, vls, flows, ideal):
        self.flows, self.delay, self.vls, self.ideal, self.now = flows, delay, vls, ideal, 0
        self.sent, self.delivered = [0] * len(flows), [0] * len(flows)
        self.heads, self.tails, self.credits = defaultdict(list), defaultdict(list), defaultdict(list)
        self.input_free_at, self.channels, self.tied = defaultdict(int), {}, False
        for near, neighbours in ports.items():
            own = [number for number, flow in enumerate(flows) if flow.path[0] == near]
            for ends in ((near, far) for far in neighbours):
                self.channels[ends] = Channel(wires[ends], [buffers[ends]] * vls, own or neighbours)

    def tick(self):
        """Simulate the present tick, and advance to the next tick."""
        self.delivered_before = [*self.delivered]
        for ends, vl, blocks in self.credits.pop(self.now, ()):
            self.channels[ends].credits[vl] += blocks
        for number, hop in self.heads.pop(self.now, ()):
            flow = self.flows[number]
            self.channels[flow.path[hop : hop + 2]].queues[flow.vl, flow.path[hop - 1]].append((number, hop))
        for number in self.tails.pop(self.now, ()):
            self.delivered[number] += 1
            self.return_credits(number, len(self.flows[number].path) - 2, self.now)
        for ends, channel in self.channels.items():
            if channel.free_at <= self.now:
                self.arbitrate(ends, channel)
        self.now += 1

    def return_credits(self, number, hop, freed):
        """Return the credits of channel ``hop`` of a packet's path.  The buffer is free from tick ``freed`` on."""
        flow = self.flows[number]
        ends = flow.path[hop : hop + 2]
        self.credits[freed + self.channels[ends].wire].append((ends, flow.vl, flow.blocks))

    def arbitrate(self, ends, channel):
        """Send the next packet of a channel: the VLs take turns, and so do the inputs of each VL."""
        for vl in (*range(channel.last_vl + 1, self.vls), *range(channel.last_vl + 1)):
            last = channel.last_input[vl]
            for turn in (*range(last + 1, len(channel.inputs)), *range(last + 1)):
                packet = self.first_packet(channel, vl, channel.inputs[turn])
                if not packet:
                    continue
                if self.flows[packet[0]].blocks > channel.credits[vl]:
                    break  # Smaller packets of other inputs do not overtake this packet.
                if self.crossbar_allows(channel.inputs[turn], ends[0]):
                    channel.last_vl, channel.last_input[vl] = vl, turn
                    self.send(channel, *packet)
                    return

    def crossbar_allows(self, source, device):
        """Return whether an input may send, and record whether two outputs need one input in the same tick."""
        if self.ideal or not isinstance(source, str):
            return True
        free_at, since = self.input_free_at.get((source, device), (0, -1))
        self.tied |= since == self.now
        return free_at <= self.now

    def first_packet(self, channel, vl, source):
        """Return the first packet of an input as (flow, hop), or None."""
        if isinstance(source, str):
            return next(iter(channel.queues[vl, source]), None)
        flow, away = self.flows[source], self.sent[source] - self.delivered_before[source]
        return (source, 0) if flow.vl == vl and flow.start <= self.now and away < flow.window else None

    def send(self, channel, number, hop):
        """Begin to send a packet over channel ``hop`` of its path."""
        flow = self.flows[number]
        end = self.now + flow.blocks
        channel.credits[flow.vl] -= flow.blocks
        channel.free_at = end
        if hop:
            channel.queues[flow.vl, flow.path[hop - 1]].popleft()
            self.input_free_at[flow.path[hop - 1 : hop + 1]] = end, self.now
            self.return_credits(number, hop - 1, end)
        else:
            self.sent[number] += 1
        if hop + 2 == len(flow.path):
            self.tails[end + channel.wire].append(number)
        else:
            self.heads[self.now + channel.wire + self.delay].append((number, hop + 1))
