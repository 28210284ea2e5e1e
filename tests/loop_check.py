"""Search for credit loops in a running lab with networkx, without any reader or proof of ibnue.

Cables come from ibsim, and tables from the switches.
"""

import networkx as nx


def cables(lab):
    """Return the cables of the lab: the device and port at the other end, by GUID and port."""
    devices = {device.id: device for device in lab.ibsim.devices}
    ports = [port for port in lab.ibsim.ports() if port.peer is not None]
    return {(devices[port.device].guid, port.port): (devices[port.peer[0]], port.peer[1]) for port in ports}


def walk_everything(lab, lmc=0):
    """Follow the path from every switch to every LID.

    Returns
    -------
    graphs : dict
        A graph of dependencies between channels for each kind of traffic.  "all": all traffic.  "endports": all but
        traffic between switches.  "cas": traffic between CAs.
    lost : list
        A description of each path that does not reach its LID.
    """
    cable = cables(lab)
    tables = lab.switch_lfts()
    positions = [(owner.kind, _near(cable, owner)) for owner in lab.owners()]
    with_cas = {switch for kind, switch in positions if kind == "CA"}
    with_endports = {switch for kind, switch in positions if kind != "SW"}
    graphs, lost = {scope: nx.DiGraph() for scope in ("all", "endports", "cas")}, []
    for owner in lab.owners():
        for lid in range(owner.lid, owner.lid + (1 if owner.kind == "SW" else 1 << lmc)):
            for switch in tables:
                channels, problem = _follow(cable, tables, switch, lid, (owner.guid, owner.port))
                if problem:
                    lost.append(f"LID {lid} from {switch:#x}: {problem}")
                nx.add_path(graphs["all"], channels)
                if owner.kind != "SW" or switch in with_endports:
                    nx.add_path(graphs["endports"], channels)
                if owner.kind == "CA" and switch in with_cas:
                    nx.add_path(graphs["cas"], channels)
    return graphs, lost


def _near(cable, owner):
    """Return the GUID of the switch at which packets of a LID's owner enter the fabric."""
    return owner.guid if owner.kind == "SW" else cable[owner.guid, owner.port][0].guid


def _follow(cable, tables, switch, lid, owner):
    """Return the channels of a path, and a description of its fault, or None if the path reaches the owner of
    the LID.
    """
    channels, here, seen = [], switch, set()
    while here not in seen:
        seen.add(here)
        port = tables[here].get(lid)
        if port is None:
            return channels, f"no route at {here:#x}"
        if port == 0:
            return channels, None if owner == (here, 0) else f"ends at {here:#x}"
        if (here, port) not in cable:
            return channels, f"sent out of {here:#x} port {port}, where there is no cable"
        device, entry = cable[here, port]
        if device.kind != "Switch":
            return channels, None if owner == (device.guid, entry) else f"delivered to {device.id} port {entry}"
        channels.append((here, port))
        here = device.guid
    return channels, f"goes round through {here:#x}"


def walk_layers(lab, sls, rows=None):
    """Return the graph of dependencies between virtual channels for traffic between CAs, on the SLs that the SA
    returns.

    ``sls`` is the SL by GUID of the sender and destination LID.  ``rows`` gives the SL2VL tables if they were read
    before some switches became unreachable.
    """
    cable, tables, rows = cables(lab), lab.switch_lfts(), lab.switch_sl2vl() if rows is None else rows
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
