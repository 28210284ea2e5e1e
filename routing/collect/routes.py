"""Compute directed routes: the out-ports by which a query reaches every device of a fabric without any LFT."""

from __future__ import annotations

from routing.fabric import Fabric

MOST_HOPS = 63
"""Largest number of hops of a directed route."""


def directed_routes(fabric: Fabric, device: int, port: int) -> list[bytes | None]:
    """Return a shortest directed route to every device.

    Parameters
    ----------
    fabric
        The fabric.
    device, port
        Number of the device that sends the queries, and the port by which the queries leave this device.  A CA sends
        all queries by this port.

    Returns
    -------
    list of bytes or None
        For each device number, the out-ports on the route from the sending device; None if no route reaches the device.

    Notes
    -----
    Breadth-first search, O(devices + links).  Only switches forward, so no route leads through a CA or router.
    """
    peers: list[list[tuple[int, int]]] = [[] for _ in range(fabric.switches + fabric.terminals)]
    for (one, other), (left, right) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        peers[one].append((left, other))
        peers[other].append((right, one))
    routes: list[bytes | None] = [None] * len(peers)
    routes[device] = b""
    queue = [device]
    for here in queue:
        route = routes[here] or b""
        if len(route) == MOST_HOPS:
            break
        for leave, there in sorted(peers[here]):
            sends = here < fabric.switches or (here == device and leave == port)
            if sends and routes[there] is None:
                routes[there] = route + bytes([leave])
                queue.append(there)
    return routes
