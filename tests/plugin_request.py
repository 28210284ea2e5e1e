"""Write requests to the plugin's worker in the format of the C part of the plugin."""

import numpy as np

from osm_plugin.policies import POLICY_REQUEST
from osm_plugin.policies import REQUEST_MAGIC as TABLES_MAGIC
from osm_plugin.snapshot import CABLE, DEVICE, ENDPORT, PAGE, REQUEST, REQUEST_MAGIC


def arrays_of(fabric):
    """Return the arrays of devices, end ports and cables that the C part writes for a fabric, and the number of
    switches.
    """
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


def write_request(fabric, memory, *, sequence=7, conf="", data_vls=8, throttled=(), sick=(), installed=None):
    """Write a request for a fabric into shared memory, and return the offset at which the answer may begin.

    Parameters
    ----------
    fabric, memory
        The fabric, and the shared memory.
    sequence, conf, data_vls
        Number of the request, text of the configuration, and number of data VLs.
    throttled, sick
        Indices of cables with these flags.
    installed
        Tables that the switches hold; None: the request has no tables.
    """
    device, endport, cable, switches = arrays_of(fabric)
    head = np.zeros(1, REQUEST)
    head["magic"], head["sequence"], head["switches"], head["data_vls"] = (
        REQUEST_MAGIC, sequence, switches, data_vls,
    )  # fmt: skip
    cable["throttled"][list(throttled)], cable["sick"][list(sick)] = 1, 1
    position = REQUEST.itemsize
    for name, part in (("device", device), ("endport", endport), ("cable", cable)):
        head[f"{name}_at"], head[f"{name}s"] = position, len(part)
        position += part.nbytes
    text, at = conf.encode(), -(-position // 8) * 8
    head["conf_at"], head["conf_bytes"] = at, len(text)
    position, parts = -(-(at + len(text)) // 8) * 8, []
    if installed is not None:
        for name, part in (
            ("top_at", installed.top),
            ("known_at", installed.known.astype(np.uint8)),
            ("lft_at", installed.lft),
        ):
            head[name] = position
            position += part.nbytes
            parts.append(part.tobytes())
        head["lids"], head["served"] = installed.lft.shape[1], {"ours": 1, "other": 2}.get(installed.served, 0)
    head["end"] = position
    data = b"".join(part.tobytes() for part in (head, device, endport, cable)).ljust(at, b"\0") + text
    data = b"".join([data.ljust(-(-len(data) // 8) * 8, b"\0"), *parts])
    memory.view(len(data))[: len(data)] = data
    return -(-position // PAGE) * PAGE


def write_request_with_tables(fabric, lft, memory, **request):
    """Write a request with the LFTs ``lft`` (uint8[S, L]) after it, as policies.c writes the tables of OpenSM."""
    write_request(fabric, memory, **request)
    head = np.frombuffer(memory.view()[: REQUEST.itemsize], REQUEST)[0]
    at = -(-(int(head["conf_at"]) + int(head["conf_bytes"])) // 8) * 8
    extra = np.zeros(1, POLICY_REQUEST)
    extra["magic"], extra["lids"] = TABLES_MAGIC, lft.shape[1]
    data = extra.tobytes() + lft.tobytes()
    memory.view(at + len(data))[at : at + len(data)] = data
    changed = np.frombuffer(memory.view()[: REQUEST.itemsize], REQUEST).copy()
    changed["end"] = at + len(data)
    memory.view()[: REQUEST.itemsize] = changed.tobytes()
