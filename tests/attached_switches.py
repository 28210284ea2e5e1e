"""Attach I/O switches to switches of a fabric."""

from collections.abc import Sequence

from routing.fabric import Fabric, NodeKind
from routing.fabric_builder import FabricBuilder


def attached(fabric: Fabric, ends: Sequence[Sequence[int]], cas: int = 2) -> Fabric:
    """Return a fabric with further switches: a switch is linked to the switches of each item of ``ends``.

    Rows from ``fabric.switches`` on denote the further switches themselves, in the order of ``ends``.

    Each switch of the given fabric keeps its links to other switches, and gets one CA.  Each further switch has ``cas``
    CAs.
    """
    builder = FabricBuilder(name="attached")
    switches = [
        builder.add_device(NodeKind.SWITCH, 0x1000 + row, name, 64) for row, name in enumerate(fabric.switch_name)
    ]
    for ports in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        if max(ports[0]) < fabric.switches:
            (a, b), (port, other) = ports
            builder.connect(switches[a], port, switches[b], other)
    for number, switch in enumerate(switches):
        builder.connect(switch, 60, builder.add_device(NodeKind.CA, 0x100000 + number, f"ca{number}", 1), 1)
    for number, near in enumerate(ends):
        added = builder.add_device(NodeKind.SWITCH, 0x200000 + number, f"io{number}", 64)
        for port, row in enumerate(near, 1):
            builder.connect(added, port, switches[row], 40 + number % 20)
        switches.append(added)
        for ca in range(cas):
            guid = 0x300000 + 64 * number + ca
            builder.connect(added, 30 + ca, builder.add_device(NodeKind.CA, guid, f"storage{number}.{ca}", 1), 1)
    return builder.build()
