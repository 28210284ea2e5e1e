"""Test lab: a real OpenSM on a real ibsim, with faults and with readback of the tables."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from ibsim_fixtures import ibdmchk, mad_client, readback
from ibsim_fixtures.ibdmchk import Verdict
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Plugin, Setting
from ibsim_fixtures.opensm_log import Sweep
from ibsim_fixtures.processes import TIMEOUT_SECONDS
from ibsim_fixtures.readback import Owner
from ibsim_fixtures.records import NAME as RECORDS
from ibsim_fixtures.records import Records, checked_records
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric
from routing.formats.table_files import read_tables
from routing.tables import Routing

Vls = tuple[int, ...]
"""The 16 VLs of an SL2VL row, by SL."""


class Lab:
    """A running pair of ibsim and OpenSM.

    Every fault method waits until OpenSM has finished a sweep with the fault in place, and returns that sweep.

    Parameters
    ----------
    net_path
        The fabric.
    routing_engine, config, plugin, arguments, wrapper
        As for :class:`~ibsim_fixtures.opensm.OpenSM`.
    sm_host
        Device on which OpenSM and all queries run.
    timeout
        Time limit in seconds for any awaited state.

    Attributes
    ----------
    ibsim, opensm
        The two components, for direct use.
    """

    def __init__(
        self,
        net_path: str | Path,
        *,
        routing_engine: str = "minhop",
        config: Mapping[str, Setting] | None = None,
        plugin: Plugin | None = None,
        arguments: Sequence[str] = (),
        wrapper: Sequence[str] = (),
        sm_host: str | int | None = None,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.ibsim = Ibsim(net_path, sm_host=sm_host, timeout=timeout)
        self.opensm = OpenSM(
            self.ibsim,
            routing_engine=routing_engine,
            config=config,
            plugin=plugin,
            arguments=arguments,
            wrapper=wrapper,
            timeout=timeout,
        )
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Lab:
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.ibsim)
            stack.enter_context(self.opensm)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def sweep(self) -> Sweep | None:
        """Return the latest sweep that reached SUBNET UP."""
        return self.opensm.last_sweep

    # Faults

    def _after(self, change: Callable[[], None]) -> Sweep:
        change()
        # A trap may be lost, and several traps may lead to one sweep, so a sweep is requested explicitly.
        return self.opensm.resweep()

    def unlink(self, device: str | int, port: int | None = None) -> Sweep:
        """Pull a cable, or all cables of a device."""
        return self._after(lambda: self.ibsim.unlink(device, port))

    def relink(self, device: str | int, port: int | None = None) -> Sweep:
        """Reconnect a cable, or all cables of a device."""
        return self._after(lambda: self.ibsim.relink(device, port))

    def unlink_live(self, device: str | int, port: int | None = None) -> Sweep:
        """Pull a cable, and wait for the sweep that the traps of the switches cause."""
        position = self.opensm.mark()
        self.ibsim.unlink(device, port)
        return self.opensm.wait_for_subnet_up(after=position)

    def relink_live(self, device: str | int, port: int | None = None) -> Sweep:
        """Reconnect a cable, and wait for the sweep that the traps of the switches cause."""
        position = self.opensm.mark()
        self.ibsim.relink(device, port)
        return self.opensm.wait_for_subnet_up(after=position)

    # Current state

    def ca_sls(self) -> dict[tuple[int, int], int]:
        """Return the SL from every CA to the base LID of every other CA, by (node GUID, LID), as OpenSM's SA answers.

        Pairs without a path are omitted.  For a CA with two ports, the SL of the last port is returned.
        """
        owners = self.owners()
        ends = {owner.lid: owner.guid for owner in owners if owner.kind == "CA"}
        return {(ends[a], b): sl for (a, b), sl in self._sls(list(ends)).items()}

    def sls(self) -> dict[tuple[int, int], int]:
        """Return the SL between any two base LIDs of CAs, switches and routers, as OpenSM's SA answers.

        Pairs without a path are omitted.
        """
        return self._sls([owner.lid for owner in self.owners()])

    def sm_lid(self, owners: Sequence[Owner] | None = None) -> int:
        """Return the LID of the port on which OpenSM runs; ``owners`` saves a call of :meth:`owners`."""
        host = self.ibsim.device(self.ibsim.sm_host).guid
        return next(owner.lid for owner in owners or self.owners() if owner.guid == host)

    def records(self) -> Records | None:
        """Return all SLs and SL2VL rows from the file of the record plugin.

        Returns None if OpenSM has not loaded this plugin, or if a sample differs from the answers of the SA and the
        switches.  SLs and rows then have to be queried.
        """
        plugin = self.opensm.plugin
        return checked_records(self) if plugin is not None and RECORDS in plugin.name.split() else None

    def requested_sls(
        self, *, sl: int | None = None, pkey: int | None = None, service: int | None = None
    ) -> dict[tuple[int, int], int]:
        """Return the SL between the base LIDs of any two CAs for requests with a given SL, P_Key or service ID.

        Pairs without such a path are omitted.
        """
        return self._sls([owner.lid for owner in self.owners() if owner.kind == "CA"], (sl, pkey, service))

    def _sls(self, lids: list[int], request: mad_client.Request = (None, None, None)) -> dict[tuple[int, int], int]:
        pairs = [(source, to) for source in lids for to in lids if source != to]
        sls, _ = mad_client.ask(self.ibsim, sm_lid=self.sm_lid(), paths=pairs, request=request)
        return {pair: sl for pair, sl in zip(pairs, sls, strict=True) if sl is not None}

    def switch_sl2vl(self, ports: Mapping[int, Sequence[int]] | None = None) -> dict[tuple[int, int, int], Vls]:
        """Read the SL2VL rows from every switch: 16 VLs by (switch GUID, in-port, out-port).

        Parameters
        ----------
        ports
            Ports by switch GUID between which the rows are read; port 0 is always an in-port too.  None: all ports of
            all switches.
        """
        owned = [owner for owner in self.owners() if owner.kind == "SW"]
        if ports is None:
            ports = {owner.guid: range(1, self.ibsim.device(owner.guid).ports + 1) for owner in owned}
        keys = [
            (owner, entry, leave)
            for owner in owned
            for entry in (0, *ports.get(owner.guid, ()))
            for leave in ports.get(owner.guid, ())
        ]
        _, rows = mad_client.ask(self.ibsim, sl2vl=[(owner.lid, entry, leave) for owner, entry, leave in keys])
        found = zip(keys, rows, strict=True)
        return {(owner.guid, entry, leave): row for (owner, entry, leave), row in found if row is not None}

    def vl_weights(self, ports: Sequence[tuple[int, int]]) -> list[dict[int, int] | None]:
        """Read the arbitration weight of every VL, summed over both tables, for each (LID, port); None: no answer."""
        return mad_client.arbitration(self.ibsim, ports)

    def ibdmchk(self, *, sls: Mapping[tuple[int, int], int] | None = None, switches: bool = False) -> Verdict:
        """Check OpenSM's dumps with ibdmchk.

        Parameters
        ----------
        sls
            SL by (node GUID of the source, destination LID), e.g. :meth:`ca_sls`; None: 0 everywhere.
        switches
            Whether to check the paths from and to switches as well.
        """
        return ibdmchk.check(self.opensm.folder, sls=sls, switches=switches)

    def fabric(self) -> Fabric:
        """Return the live fabric with its LIDs, as discovered by ibnetdiscover."""
        path = self.ibsim.folder / "ibnetdiscover.out"
        # Four queries ahead instead of two take two thirds of the time; eight take no less.
        path.write_text(self.ibsim.run("ibnetdiscover", "-o", 4))
        return read_fabric(path)

    def routing(self, fabric: Fabric | None = None) -> Routing:
        """Return OpenSM's dumped tables, for :meth:`fabric` or for a fabric with the same GUIDs and LIDs.

        OpenSM dumps no SLs, so they are 0 here; :meth:`sl` and :meth:`ca_sls` query them.
        """
        return read_tables(self.opensm.folder, self.fabric() if fabric is None else fabric)

    def dumped_lfts(self) -> dict[int, dict[int, int]]:
        """Return the forwarding tables in OpenSM's dump: out-port by switch GUID and LID."""
        return readback.dumped_lfts(self.opensm.folder)

    def switch_lfts(self, fabric: Fabric | None = None) -> dict[int, dict[int, int]]:
        """Read the forwarding tables from the switches: out-port by switch GUID and LID.

        ``fabric``, the current :meth:`fabric`, makes a discovery of the switches unnecessary.
        """
        if fabric is None:
            return readback.switch_lfts(self.ibsim)
        lids = dict(zip(fabric.switch_guid.tolist(), fabric.switch_lid.tolist(), strict=True))
        return readback.switch_lfts(self.ibsim, lids)

    def owners(self) -> list[Owner]:
        """Return the owners of all base LIDs, from OpenSM's dump."""
        return readback.owners(self.opensm.folder)

    def sl2vl(self, lid: int, out_ports: Sequence[int]) -> dict[tuple[int, int], tuple[int, ...]]:
        """Read the SL-to-VL rows of a switch or CA from the device, by (in-port, out-port)."""
        return readback.sl2vl(self.ibsim, lid, out_ports)

    def sl(self, source_lid: int, destination_lid: int) -> int:
        """Return the SL of the path from one LID to another, as the SA answers."""
        return readback.path_record(self.ibsim, source_lid, destination_lid).sl

    def portinfo(self, lid: int, port: int = 0) -> dict[str, str]:
        """Read PortInfo from the device, by field name."""
        return readback.portinfo(self.ibsim, lid, port)
