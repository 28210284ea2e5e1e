"""Requests to the worker, laid out as the shim lays them."""

import numpy as np

from osm_plugin.snapshot import CABLE, DEVICE, ENDPORT, PAGE, REQUEST, REQUEST_MAGIC


def arrays_of(fabric):
    """What the shim would write of a fabric."""
    switches, terminals = fabric.switches, fabric.terminals
    device = np.zeros(switches + terminals, DEVICE)
    device["guid"] = np.concatenate([fabric.switch_guid, fabric.terminal_guid])
    device["name"] = [name.encode() for name in fabric.switch_name + fabric.terminal_name]
    device["ports"] = np.concatenate([fabric.switch_ports, fabric.terminal_ports])
    device["kind"][switches:] = fabric.terminal_kind
    device["lid"][:switches] = fabric.switch_lid
    endport = np.zeros(fabric.endports, ENDPORT)
    endport["guid"], endport["lid"], endport["lmc"] = fabric.endport_guid, fabric.endport_lid, fabric.endport_lmc
    endport["device"], endport["port"] = fabric.endport_terminal + switches, fabric.endport_port
    endport = endport[np.lexsort((endport["port"], endport["device"]))]
    cable = np.zeros(fabric.links, CABLE)
    cable["device"], cable["port"] = fabric.link_device, fabric.link_port
    cable["width"], cable["speed"] = fabric.link_width, fabric.link_speed
    return device, endport, cable, switches


def lay(fabric, memory, *, sequence=7):
    """Write a request as the shim does; where the answer may begin."""
    device, endport, cable, switches = arrays_of(fabric)
    head = np.zeros(1, REQUEST)
    head["magic"], head["sequence"], head["switches"], head["data_vls"] = REQUEST_MAGIC, sequence, switches, 8
    place = REQUEST.itemsize
    for name, part in (("device", device), ("endport", endport), ("cable", cable)):
        head[f"{name}_at"], head[f"{name}s"] = place, len(part)
        place += part.nbytes
    head["end"] = place
    data = b"".join(part.tobytes() for part in (head, device, endport, cable))
    memory.view(len(data))[: len(data)] = data
    return -(-place // PAGE) * PAGE
