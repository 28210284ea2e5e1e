"""Measure the seconds to read and to write a fabric, by file format, as a Markdown table.

The fabric is a three-level tree of 2000 switches with 40 ports each.  With 10 CAs at each leaf switch (the default), it
has 10,000 nodes and 40,000 cables.  The program itself generates the files of formats that ibnue only reads, such as
the output of ibnetdiscover.  Each figure is the lowest CPU time of three runs, so that other processes on the machine
do not count.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType

from benchmarks.usage import parser_of
from routing.fabric import Fabric, NodeKind
from routing.formats.fabric_files import read_fabric, write_fabric
from routing.topologies import xgft


def best(work: Callable[[], object]) -> float:
    """Run a function three times, and return the lowest CPU seconds."""
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        work()
        seconds.append(time.process_time() - begin)
    return min(seconds)


def cables(fabric: Fabric) -> dict[int, list[tuple[int, int, int]]]:
    """Return the cables at each device, by device number: (port, device at the other end, port at the other end)."""
    by_device: dict[int, list[tuple[int, int, int]]] = {d: [] for d in range(fabric.switches + fabric.terminals)}
    for (a, b), (p, q) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        by_device[a].append((p, b, q))
        by_device[b].append((q, a, p))
    return by_device


def ibnetdiscover_lines(fabric: Fabric) -> Iterator[str]:
    """Yield the lines that ibnetdiscover would print for a fabric with 4xEDR links only."""
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    port_guid = dict(zip(fabric.endport_terminal.tolist(), fabric.endport_guid.tolist(), strict=True))
    lids = [*fabric.switch_lid.tolist(), *(0 for _ in range(fabric.terminals))]
    for terminal, lid in zip(fabric.endport_terminal.tolist(), fabric.endport_lid.tolist(), strict=True):
        lids[fabric.switches + terminal] = lid
    yield f"# Initiated from node {guids[-1]:016x} port {guids[-1] + 1:016x}"
    for device, ports in cables(fabric).items():
        name, guid, lid = fabric.device_name(device), guids[device], lids[device]
        if device < fabric.switches:
            yield f"\nvendid=0x2c9\ndevid=0xd2f0\nsysimgguid={guid:#x}\nswitchguid={guid:#x}({guid:x})"
            yield f'Switch\t{fabric.switch_ports[device]} "S-{guid:016x}"\t\t# "{name}" enhanced port 0 lid {lid} lmc 0'
        else:
            yield f'\ncaguid={guid:#x}\nCa\t1 "H-{guid:016x}"\t\t# "{name}"'
        for port, far, far_port in sorted(ports):
            far_name, end = fabric.device_name(far), f"lid {lids[far]} 4xEDR"
            if device >= fabric.switches:
                own = port_guid[device - fabric.switches]
                yield f'[{port}]({own:x}) \t"S-{guids[far]:016x}"[{far_port}]\t\t# lid {lid} lmc 0 "{far_name}" {end}'
            elif far >= fabric.switches:
                own = port_guid[far - fabric.switches]
                yield f'[{port}]\t"H-{guids[far]:016x}"[{far_port}]({own:x}) \t\t# "{far_name}" {end}'
            else:
                yield f'[{port}]\t"S-{guids[far]:016x}"[{far_port}]\t\t# "{far_name}" {end}'


def subnet_lines(fabric: Fabric) -> Iterator[str]:
    """Yield the lines that OpenSM would write to its file opensm-subnet.lst for a fabric."""
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    port_counts = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]

    def half(device: int, port: int) -> str:
        kind, port_guid = ("SW", guids[device]) if device < fabric.switches else ("CA", guids[device] + port)
        return (
            f"{{ {kind} Ports:{port_counts[device]:02X} SystemGUID:{guids[device]:016x} NodeGUID:{guids[device]:016x} "
            f"PortGUID:{port_guid:016x} VenID:000000 DevID:0000 Rev:000000A1 {{{fabric.device_name(device)}}} "
            f"LID:0000 PN:{port:02X} }}"
        )

    for device, ports in cables(fabric).items():
        for port, far, far_port in ports:
            yield f"{half(device, port)} {half(far, far_port)} PHY=4x LOG=ACT SPD=25"


def linkinfo_lines(fabric: Fabric) -> Iterator[str]:
    """Yield the lines that ``iblinkinfo -l`` would print for a fabric with 4xEDR links only."""
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    for device, ports in cables(fabric).items():
        for port, far, far_port in ports:
            own, other = (
                guids[d] if d < fabric.switches else guids[d] + p for d, p in ((device, port), (far, far_port))
            )
            yield (
                f'0x{own:016x} "{fabric.device_name(device):>30}"{0:7d} {port:4d}[  ] ==( 4X      25.78125 Gbps Active/'
                f'  LinkUp)==>  0x{other:016x} {0:6d} {far_port:4d}[  ] "{fabric.device_name(far)}" ( )'
            )


def database_lines(fabric: Fabric) -> Iterator[str]:
    """Yield the lines of an ibdiagnet2.db_csv with the columns that ibnue reads, for a fabric with only 4xEDR links."""
    guids = [*fabric.switch_guid.tolist(), *fabric.terminal_guid.tolist()]
    port_counts = [*fabric.switch_ports.tolist(), *fabric.terminal_ports.tolist()]
    yield "START_NODES\nNodeDesc,NumPorts,NodeType,NodeGUID"
    for device, guid in enumerate(guids):
        yield f'"{fabric.device_name(device)}",{port_counts[device]},{2 if device < fabric.switches else 1},{guid:#x}'
    yield "END_NODES\nSTART_PORTS\nNodeGuid,PortGuid,PortNum,LID,LMC,LinkWidthActv,LinkSpeedActv"
    for device, ports in cables(fabric).items():
        for port, _, _ in ports:
            yield f"{guids[device]:#x},{guids[device] + port:#x},{port},0,0,2,512"
    yield "END_PORTS\nSTART_LINKS\nNodeGuid1,PortNum1,NodeGuid2,PortNum2"
    for (a, b), (p, q) in zip(fabric.link_device.tolist(), fabric.link_port.tolist(), strict=True):
        yield f"{guids[a]:#x},{p},{guids[b]:#x},{q}"
    yield "END_LINKS"


LINES: Mapping[str, Callable[[Fabric], Iterator[str]]] = MappingProxyType(
    {
        ".ibnetdiscover": ibnetdiscover_lines,
        ".lst": subnet_lines,
        ".iblinkinfo": linkinfo_lines,
        ".db_csv": database_lines,
    }
)
"""Formats that ibnue reads but does not write: for each file suffix, the function that yields the lines of a file."""


def main(words: Sequence[str] | None = None) -> None:
    """Write and read the fabric in every format, and print the table."""
    parser = parser_of("read_fabrics", __doc__)
    parser.add_argument("cas", nargs="?", type=int, default=10, metavar="CAS_PER_LEAF")
    fabric = xgft([parser.parse_args(words).cas, 20, 40], [1, 20, 20])
    cas = int((fabric.terminal_kind == NodeKind.CA).sum())
    print(f"{fabric.switches} switches, {cas} CAs, {fabric.links} cables\n")
    print("| format | MB | read, s | write, s |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".net", ".json", ".graphml", *LINES):
            path = Path(folder) / f"fabric{suffix}"
            written = ""
            if suffix in LINES:
                path.write_text("\n".join(LINES[suffix](fabric)) + "\n")
            else:
                written = f"{best(partial(write_fabric, fabric, path)):.2f}"
            assert read_fabric(path).links == fabric.links
            seconds = best(partial(read_fabric, path))
            print(f"| {suffix} | {path.stat().st_size / 1e6:.1f} | {seconds:.2f} | {written} |")


if __name__ == "__main__":
    main()
