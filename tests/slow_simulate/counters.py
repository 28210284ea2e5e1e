"""Rows of counters, in the columns that the kernel reports."""


class Rows:
    def channel_rows(self):
        rows = []
        for c, counters in enumerate(self.counters):
            waiting = sum(self.vc_waiting(c * self.vls + vl) for vl in range(self.vls))
            more = max(0, self.now - max(self.since[c], self.busy[c])) if waiting else 0
            values = list(counters.values())
            rows.append([*values[:2], values[2] + more, *values[3:], waiting])
        return rows

    def vc_rows(self):
        return [
            [self.fctbs[x], self.fccl[x], self.fccl[x] - self.fctbs[x], self.held[x], self.flying[x], self.returning[x],
             self.buffer[x], self.vc_waiting(x), self.vc_sent[x], *self.watched(x), int(self.stalled[x]),
             int(self.paused[x]), self.pauses[x]]
            for x in range(len(self.held))
        ]  # fmt: skip

    def flow_rows(self):
        return [
            [flow.made, flow.sent_packets, flow.got_packets, flow.got_bytes, flow.lost, flow.latency, flow.in_network,
             flow.worst, flow.done]
            for flow in self.flows
        ]  # fmt: skip
