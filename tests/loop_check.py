"""An obvious second look at live tables: networkx on what ibsim and the switches say, and none of our own readers."""

import networkx as nx


def cables(lab):
    """(device, port) at the other end of each cable, by (GUID, port)."""
    devices = {device.id: device for device in lab.ibsim.devices}
    ports = [port for port in lab.ibsim.ports() if port.peer is not None]
    return {(devices[port.device].guid, port.port): (devices[port.peer[0]], port.peer[1]) for port in ports}


def walk_everything(lab, lmc=0):
    """(dependency graph of channels, ways that do not arrive) for traffic from every switch to every LID."""
    cable = cables(lab)
    tables = lab.switch_lfts()
    owners = {}
    for owner in lab.owners():
        for lid in range(owner.lid, owner.lid + (1 if owner.kind == "SW" else 1 << lmc)):
            owners[lid] = owner.guid, owner.port
    graph, lost = nx.DiGraph(), []
    for lid, owner in owners.items():
        for switch in tables:
            problem = _follow(graph, cable, tables, switch, lid, owner)
            if problem:
                lost.append(f"LID {lid} from {switch:#x}: {problem}")
    return graph, lost


def _follow(graph, cable, tables, switch, lid, owner):
    before, here, seen = None, switch, set()
    while here not in seen:
        seen.add(here)
        port = tables[here].get(lid)
        if port is None:
            return f"no route at {here:#x}"
        if port == 0:
            return None if owner == (here, 0) else f"ends at {here:#x}"
        if (here, port) not in cable:
            return f"sent out of {here:#x} port {port}, where there is no cable"
        device, entry = cable[here, port]
        if device.kind != "Switch":
            return None if owner == (device.guid, entry) else f"delivered to {device.id} port {entry}"
        channel = here, port
        graph.add_node(channel)
        if before is not None:
            graph.add_edge(before, channel)
        before, here = channel, device.guid
    return f"goes round through {here:#x}"


def walk_layers(lab, sls):
    """Dependency graph of (channel, VL) for traffic from every CA to every other, on the SLs that the SA gives out."""
    cable, tables, rows = cables(lab), lab.switch_lfts(), lab.switch_sl2vl()
    ports = {(owner.guid, owner.port) for owner in lab.owners() if owner.kind == "CA"}
    graph = nx.DiGraph()
    for guid, port in ports:
        for (source, lid), sl in sls.items():
            if source != guid:
                continue
            (device, entry), before = cable[guid, port], None
            while device.kind == "Switch":
                leave = tables[device.guid][lid]
                channel = device.guid, leave, rows[device.guid, entry, leave][sl]
                device, entry = cable[device.guid, leave]
                if device.kind != "Switch":
                    break
                graph.add_node(channel)
                if before is not None:
                    graph.add_edge(before, channel)
                before = channel
    return graph


def has_loop(graph):
    return not nx.is_directed_acyclic_graph(graph)
