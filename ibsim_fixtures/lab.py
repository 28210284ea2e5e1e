"""Run a real OpenSM on a real ibsim, inject faults, and read back the tables in force."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ibsim_fixtures import ibdmchk, mad_client, readback
from ibsim_fixtures.ibdmchk import Verdict
from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm import OpenSM, Plugin, Setting
from ibsim_fixtures.opensm_log import Sweep
from ibsim_fixtures.processes import TIMEOUT_SECONDS
from ibsim_fixtures.readback import Owner
from ibsim_fixtures.records import NAME as RECORDS
from ibsim_fixtures.records import Records, checked_records
from routing.collect.mads import Request
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric
from routing.formats.table_files import read_tables
from routing.tables import Routing

Vls = tuple[int, ...]
"""16 VLs of one row of an SL2VL table, indexed by SL."""


class Lab:
    """Running pair of ibsim and OpenSM.

    Every method that injects a fault waits until OpenSM has finished a sweep (discovery and routing) after the fault,
    and returns this sweep.

    Parameters
    ----------
    net_path
        File of the fabric.
    routing_engine, config, plugin, arguments, wrapper
        Options of OpenSM, see :class:`~ibsim_fixtures.opensm.OpenSM`.
    sm_host
        Device on which OpenSM and all queries run.  None: a default that ibsim chooses.
    timeout
        Time limit in seconds of each wait for a state.

    Attributes
    ----------
    ibsim, opensm
        The two running programs, ibsim and OpenSM, for direct use.
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

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def sweep(self) -> Sweep | None:
        """Return the latest sweep that has reached SUBNET UP, or None."""
        return self.opensm.last_sweep

    # Methods that inject faults.

    def _after(self, change: Callable[[], None]) -> Sweep:
        change()
        # A trap may be lost, and several traps may cause only one sweep.  So a sweep is requested explicitly.
        return self.opensm.resweep()

    def unlink(self, device: str | int, port: int | None = None) -> Sweep:
        """Pull the cable of a port, or all cables of a device.  Return the sweep that follows."""
        return self._after(lambda: self.ibsim.unlink(device, port))

    def relink(self, device: str | int, port: int | None = None) -> Sweep:
        """Plug in the cable of a port, or all cables of a device, again.  Return the sweep that follows."""
        return self._after(lambda: self.ibsim.relink(device, port))

    def unlink_live(self, device: str | int, port: int | None = None) -> Sweep:
        """Pull a cable without requesting a sweep.  Return the sweep that OpenSM starts because of a switch's trap."""
        position = self.opensm.mark()
        self.ibsim.unlink(device, port)
        return self.opensm.wait_for_subnet_up(after=position)

    def relink_live(self, device: str | int, port: int | None = None) -> Sweep:
        """Plug in a cable again without requesting a sweep.  Return the sweep that OpenSM starts because of a switch's
        trap.
        """
        position = self.opensm.mark()
        self.ibsim.relink(device, port)
        return self.opensm.wait_for_subnet_up(after=position)

    # Methods that read the present state.

    def cuts_off_opensm(self, device: str | int, port: int | None = None) -> bool:
        """Return whether :meth:`unlink` with these arguments would pull the last cable of OpenSM's own device."""
        host, pulled = self.ibsim.sm_host, self.ibsim.device(device).id
        cables = [((each.device, each.port), each.peer) for each in self.ibsim.ports(host) if each.peer is not None]
        kept = [ends for ends in cables if not any(name == pulled and port in (None, number) for name, number in ends)]
        return bool(cables) and not kept

    def ca_sls(self) -> dict[tuple[int, int], int]:
        """Query the SA for the SL from every CA to the base LID of every other CA.

        The keys of the result are (node GUID of the source, destination LID).  Pairs without a path are omitted.  If a
        source has two ports, the SLs are those of the port with the larger LID.
        """
        owners = self.owners()
        ends = {owner.lid: owner.guid for owner in owners if owner.kind == "CA"}
        return {(ends[a], b): sl for (a, b), sl in self._sls(list(ends)).items()}

    def sls(self) -> dict[tuple[int, int], int]:
        """Query the SA for the SL between any two base LIDs of CAs, switches and routers.

        The keys of the result are (source LID, destination LID).  Pairs without a path are omitted.
        """
        return self._sls([owner.lid for owner in self.owners()])

    def sm_lid(self, owners: Sequence[Owner] | None = None) -> int:
        """Return the LID of the port on which OpenSM runs.

        ``owners``, a result of :meth:`owners`, names the device of each LID.  None: :meth:`owners` is called.
        """
        host = self.ibsim.device(self.ibsim.sm_host).guid
        return next(owner.lid for owner in owners or self.owners() if owner.guid == host)

    def records(self) -> Records | None:
        """Read all SLs and SL2VL rows from the file of the record plugin, which is faster than queries.

        Some of the values are compared with answers of the SA and the switches.  The result is None if a value differs
        from the answer, or if OpenSM has not loaded the record plugin.  Then all SLs and rows have to be queried.
        """
        plugin = self.opensm.plugin
        return checked_records(self) if plugin is not None and RECORDS in plugin.name.split() else None

    def requested_sls(
        self, *, sl: int | None = None, pkey: int | None = None, service: int | None = None
    ) -> dict[tuple[int, int], int]:
        """Query the SA for the path from each CA port to each other CA port, and return the SLs of the answers.

        Each query demands the given SL, P_Key and service ID (None: any).  The keys of the result are
        (source LID, destination LID), both base LIDs.  Pairs are omitted if the SA names no path for the query.
        """
        return self._sls([owner.lid for owner in self.owners() if owner.kind == "CA"], (sl, pkey, service))

    def _sls(self, lids: list[int], request: Request = (None, None, None)) -> dict[tuple[int, int], int]:
        pairs = [(source, to) for source in lids for to in lids if source != to]
        sls, _ = mad_client.ask(self.ibsim, sm_lid=self.sm_lid(), paths=pairs, request=request)
        return {pair: sl for pair, sl in zip(pairs, sls, strict=True) if sl is not None}

    def switch_sl2vl(self, ports: Mapping[int, Sequence[int]] | None = None) -> dict[tuple[int, int, int], Vls]:
        """Read SL2VL rows from the switches: 16 VLs by (switch GUID, in-port, out-port).

        Parameters
        ----------
        ports
            Ports of each switch (by GUID) between which rows are read.  Port 0 is always included as in-port.  None:
            all ports of all switches.
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

    def ibdmchk(self, *, sls: Mapping[tuple[int, int], int] | None = None, switches: bool = False) -> Verdict:
        """Check the tables in OpenSM's dumps for credit loops with ibdmchk, an independent program.

        Parameters
        ----------
        sls
            SL by (node GUID of the source, destination LID), for example from :meth:`ca_sls`.  None: all SLs are 0.
        switches
            Whether to check the paths from and to switches as well.
        """
        return ibdmchk.check(self.opensm.folder, sls=sls, switches=switches)

    def fabric(self) -> Fabric:
        """Discover the present fabric with its LIDs by ibnetdiscover."""
        path = self.ibsim.folder / "ibnetdiscover.out"
        # -o 4: ibnetdiscover waits for the answers to up to four queries at once.  The default is two queries, with
        # which ibnetdiscover needs one and a half times as long.  With eight queries, ibnetdiscover is not faster.
        # -t 20000: the time limit of an answer is 20 s.  The default of 1 s may be too short on a busy machine.
        path.write_text(self.ibsim.run("ibnetdiscover", "-o", 4, "-t", 20_000))
        return read_fabric(path)

    def routing(self, fabric: Fabric | None = None) -> Routing:
        """Return the tables in OpenSM's dumps, arranged by the switches and LIDs of ``fabric``.

        ``fabric`` must have the GUIDs and LIDs of the running fabric.  None: :meth:`fabric` discovers the fabric.

        OpenSM dumps no SLs, so the SLs in the result are 0.  :meth:`sl` and :meth:`ca_sls` query the real SLs.
        """
        return read_tables(self.opensm.folder, self.fabric() if fabric is None else fabric)

    def dumped_lfts(self) -> dict[int, dict[int, int]]:
        """Return the LFTs in OpenSM's dump: out-port by switch GUID and LID."""
        return readback.dumped_lfts(self.opensm.folder)

    def switch_lfts(self, fabric: Fabric | None = None) -> dict[int, dict[int, int]]:
        """Read the LFTs from the switches: out-port by switch GUID and LID.

        ``fabric`` is a result of :meth:`fabric`, which has the LIDs of the switches.  None: the switches are discovered
        first.
        """
        if fabric is None:
            return readback.switch_lfts(self.ibsim)
        lids = dict(zip(fabric.switch_guid.tolist(), fabric.switch_lid.tolist(), strict=True))
        return readback.switch_lfts(self.ibsim, lids)

    def owners(self) -> list[Owner]:
        """Return the owner of every base LID, from OpenSM's dump."""
        return readback.owners(self.opensm.folder)

    def sl2vl(self, lid: int, out_ports: Sequence[int]) -> dict[tuple[int, int], tuple[int, ...]]:
        """Read the SL2VL rows of one switch or CA from the device: 16 VLs by (in-port, out-port).

        ``out_ports`` are the out-ports whose rows are read.
        """
        return readback.sl2vl(self.ibsim, lid, out_ports)

    def sl(self, source_lid: int, destination_lid: int) -> int:
        """Query the SA for the SL of the path from one LID to another LID."""
        return readback.path_record(self.ibsim, source_lid, destination_lid).sl

    def portinfo(self, lid: int, port: int = 0) -> dict[str, str]:
        """Read the PortInfo attribute of a port from the device, as text by field name."""
        return readback.portinfo(self.ibsim, lid, port)
