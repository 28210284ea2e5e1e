"""The lab: a real OpenSM on a real ibsim, faults, and the tables read back."""

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
from ibsim_fixtures.processes import PATIENCE
from ibsim_fixtures.readback import Owner
from routing.fabric import Fabric
from routing.formats.fabric_files import read_fabric
from routing.formats.table_files import read_tables
from routing.tables import Routing


class Lab:
    """ibsim and OpenSM together.

    Every fault method waits until OpenSM has swept with the fault in place, and returns that sweep.

    Parameters
    ----------
    net_path
        The fabric.
    routing_engine, config, plugin, arguments, wrapper
        As for :class:`~ibsim_fixtures.opensm.OpenSM`.
    sm_host
        Device that OpenSM and all queries run on.
    timeout
        Seconds that any awaited state may take.

    Attributes
    ----------
    ibsim, opensm
        The two, to be used directly for what is not offered here.
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
        timeout: float = PATIENCE,
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
        """The latest sweep that reached SUBNET UP."""
        return self.opensm.last_sweep

    # Faults

    def _after(self, change: Callable[[], None]) -> Sweep:
        change()
        # A trap may be lost on its way and several may fold into one sweep, so the sweep is asked for.
        return self.opensm.resweep()

    def unlink(self, device: str | int, port: int | None = None) -> Sweep:
        """Pull a cable, or all cables of a device."""
        return self._after(lambda: self.ibsim.unlink(device, port))

    def relink(self, device: str | int, port: int | None = None) -> Sweep:
        """Put back a cable, or all cables of a device."""
        return self._after(lambda: self.ibsim.relink(device, port))

    def unlink_live(self, device: str | int, port: int | None = None) -> Sweep:
        """Pull a cable and leave it to the trap of the switches that OpenSM sweeps."""
        place = self.opensm.mark()
        self.ibsim.unlink(device, port)
        return self.opensm.wait_for_subnet_up(after=place)

    def relink_live(self, device: str | int, port: int | None = None) -> Sweep:
        """Put back a cable and leave it to the trap of the switches that OpenSM sweeps."""
        place = self.opensm.mark()
        self.ibsim.relink(device, port)
        return self.opensm.wait_for_subnet_up(after=place)

    # What is there now

    def ca_sls(self) -> dict[tuple[int, int], int]:
        """The SL from every CA to the base LID of every other, by (node GUID, LID), as OpenSM's SA answers.

        A pair without a path is not there.  Where a CA has two ports the last one's SL stands for it.
        """
        owners = self.owners()
        ends = {owner.lid: owner.guid for owner in owners if owner.kind == "CA"}
        return {(ends[a], b): sl for (a, b), sl in self._sls(owners, list(ends)).items()}

    def sls(self) -> dict[tuple[int, int], int]:
        """The SL between any two base LIDs, those of switches and routers too, as OpenSM's SA answers.

        A pair without a path is not there.
        """
        owners = self.owners()
        return self._sls(owners, [owner.lid for owner in owners])

    def _sls(self, owners: list[Owner], lids: list[int]) -> dict[tuple[int, int], int]:
        pairs = [(source, to) for source in lids for to in lids if source != to]
        host = self.ibsim.device(self.ibsim.sm_host).guid
        sm_lid = next(owner.lid for owner in owners if owner.guid == host)
        sls, _ = mad_client.ask(self.ibsim, sm_lid=sm_lid, paths=pairs)
        return {pair: sl for pair, sl in zip(pairs, sls, strict=True) if sl is not None}

    def switch_sl2vl(self) -> dict[tuple[int, int, int], tuple[int, ...]]:
        """16 VLs by (switch GUID, in-port, out-port), read from every switch itself, for every pair of its ports."""
        owned = [(owner, self.ibsim.device(owner.guid).ports) for owner in self.owners() if owner.kind == "SW"]
        keys = [(o, entry, leave) for o, p in owned for entry in range(p + 1) for leave in range(1, p + 1)]
        _, rows = mad_client.ask(self.ibsim, sl2vl=[(owner.lid, entry, leave) for owner, entry, leave in keys])
        found = zip(keys, rows, strict=True)
        return {(owner.guid, entry, leave): row for (owner, entry, leave), row in found if row is not None}

    def ibdmchk(self, *, sls: Mapping[tuple[int, int], int] | None = None, switches: bool = False) -> Verdict:
        """What ibdmchk says of OpenSM's dumps.

        Parameters
        ----------
        sls
            Service level by (node GUID of the source, destination LID), e.g. :meth:`ca_sls`; None: 0 everywhere.
        switches
            Take ways from and to switches into account as well.
        """
        return ibdmchk.check(self.opensm.folder, sls=sls, switches=switches)

    def fabric(self) -> Fabric:
        """The live fabric with its LIDs, as ibnetdiscover sees it."""
        path = self.ibsim.folder / "ibnetdiscover.out"
        path.write_text(self.ibsim.run("ibnetdiscover"))
        return read_fabric(path)

    def routing(self, fabric: Fabric | None = None) -> Routing:
        """OpenSM's dumped tables as a value, for :meth:`fabric` or for one that has the same GUIDs and LIDs.

        OpenSM dumps no service levels, so they are 0 here; :meth:`sl` and :meth:`ca_sls` ask for them.
        """
        return read_tables(self.opensm.folder, self.fabric() if fabric is None else fabric)

    def dumped_lfts(self) -> dict[int, dict[int, int]]:
        """Forwarding tables by switch GUID and LID, from OpenSM's dump."""
        return readback.dumped_lfts(self.opensm.folder)

    def switch_lfts(self) -> dict[int, dict[int, int]]:
        """Forwarding tables by switch GUID and LID, read from the switches themselves."""
        return readback.switch_lfts(self.ibsim)

    def owners(self) -> list[Owner]:
        """Who owns which base LID, as OpenSM dumped it."""
        return readback.owners(self.opensm.folder)

    def sl2vl(self, lid: int, out_ports: Sequence[int]) -> dict[tuple[int, int], tuple[int, ...]]:
        """SL-to-VL rows of a switch or CA by (in-port, out-port), read from the device itself."""
        return readback.sl2vl(self.ibsim, lid, out_ports)

    def sl(self, source_lid: int, destination_lid: int) -> int:
        """The SL that the SA gives for the way from one LID to another."""
        return readback.path_record(self.ibsim, source_lid, destination_lid).sl

    def portinfo(self, lid: int, port: int = 0) -> dict[str, str]:
        """PortInfo by field name, read from the device itself."""
        return readback.portinfo(self.ibsim, lid, port)
