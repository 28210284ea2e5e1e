"""Requests to the worker, laid out as the shim lays them."""

import numpy as np

from osm_plugin.policies import POLICY_REQUEST
from osm_plugin.policies import REQUEST_MAGIC as TABLES_MAGIC
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


def lay(fabric, memory, *, sequence=7, conf="", data_vls=8, throttled=(), sick=(), held=None):
    """Write a request as the shim does; where the answer may begin.  ``held``: tables of the switches that it names."""
    device, endport, cable, switches = arrays_of(fabric)
    head = np.zeros(1, REQUEST)
    head["magic"], head["sequence"], head["switches"], head["data_vls"] = (
        REQUEST_MAGIC, sequence, switches, data_vls,
    )  # fmt: skip
    cable["throttled"][list(throttled)], cable["sick"][list(sick)] = 1, 1
    place = REQUEST.itemsize
    for name, part in (("device", device), ("endport", endport), ("cable", cable)):
        head[f"{name}_at"], head[f"{name}s"] = place, len(part)
        place += part.nbytes
    text, at = conf.encode(), -(-place // 8) * 8
    head["conf_at"], head["conf_bytes"] = at, len(text)
    place, parts = -(-(at + len(text)) // 8) * 8, []
    if held is not None:
        for name, part in (("top_at", held.top), ("known_at", held.known.astype(np.uint8)), ("lft_at", held.lft)):
            head[name] = place
            place += part.nbytes
            parts.append(part.tobytes())
        head["lids"], head["served"] = held.lft.shape[1], {"ours": 1, "other": 2}.get(held.served, 0)
    head["end"] = place
    data = b"".join(part.tobytes() for part in (head, device, endport, cable)).ljust(at, b"\0") + text
    data = b"".join([data.ljust(-(-len(data) // 8) * 8, b"\0"), *parts])
    memory.view(len(data))[: len(data)] = data
    return -(-place // PAGE) * PAGE


def lay_with_tables(fabric, lft, memory, **request):
    """A request with forwarding tables behind it, as policies.c writes it."""
    lay(fabric, memory, **request)
    head = np.frombuffer(memory.view()[: REQUEST.itemsize], REQUEST)[0]
    at = -(-(int(head["conf_at"]) + int(head["conf_bytes"])) // 8) * 8
    extra = np.zeros(1, POLICY_REQUEST)
    extra["magic"], extra["lids"] = TABLES_MAGIC, lft.shape[1]
    data = extra.tobytes() + lft.tobytes()
    memory.view(at + len(data))[at : at + len(data)] = data
    changed = np.frombuffer(memory.view()[: REQUEST.itemsize], REQUEST).copy()
    changed["end"] = at + len(data)
    memory.view()[: REQUEST.itemsize] = changed.tobytes()
