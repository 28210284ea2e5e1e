"""Run a real OpenSM that manages a fabric of :class:`~ibsim_fixtures.ibsim.Ibsim`, as a context manager."""

from __future__ import annotations

import bisect
import contextlib
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ibsim_fixtures.ibsim import Ibsim
from ibsim_fixtures.opensm_log import Event, EventKind, LogReader, Sweep, finished_sweep, fruitless_sweeps, last_sweep
from ibsim_fixtures.processes import TIMEOUT_SECONDS, Child, LabError, find_program, poll, tail
from routing.deferred_signals import DeferredSignals
from routing.processes import remove_folder

Setting = str | int | float | bool | Path

# Log flags: 0x01 (errors), 0x02 (information) and 0x40 (dump files).  0x04 (verbose) is set only in the modules that
# log the start of sweeps and engines.
_LOG_FLAGS = "0x43"
_VERBOSE_MODULES = ("osm_state_mgr.c 0x47", "osm_ucast_mgr.c 0x47")
# Options whose default values name files that another OpenSM on this machine may read, too.  The lab sets these options
# to other files, so that the files of that OpenSM do not affect the lab.
_OWN_FILES = ("partition_config_file", "prefix_routes_file")


@dataclass(frozen=True)
class Plugin:
    """Plugin that OpenSM loads.

    Attributes
    ----------
    name
        Name of the plugin.  The file of the library is ``lib<name>.so``.
    options
        Options of the plugin as free text (``event_plugin_options`` in opensm.conf).
    folder
        Folder of the library.  None: a folder that the system searches by default.
    environment
        Additional environment variables for OpenSM.
    """

    name: str
    options: str = ""
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class OpenSM:
    """OpenSM process that is connected to an ibsim.

    Parameters
    ----------
    ibsim
        Running ibsim.
    routing_engine
        Value of ``routing_engine`` in opensm.conf, such as "minhop" or "ibnue-updn,no_fallback".
    config
        Further settings in opensm.conf.  True and False become TRUE and FALSE.
    plugin
        Plugin to load.  None: no plugin.
    once
        Whether to run with ``-o``: one sweep, then exit.  With ``no_fallback`` and an engine that fails, OpenSM never
        exits in this mode.  But :meth:`wait_for_subnet_up` detects the failure immediately.
    host
        Device on which OpenSM runs.  None: ``sm_host`` of the ibsim.
    arguments
        Further command line arguments.
    wrapper
        Command that runs OpenSM, such as ``["valgrind", "--error-exitcode=9"]``.
    wait
        Whether to wait for SUBNET UP before the body of the ``with`` statement begins.
    timeout
        Time limit in seconds of each wait for a state.

    Attributes
    ----------
    folder
        Temporary folder with configuration, log, cache and dumps, which is removed when the context ends.

    Raises
    ------
    EnvironmentProblem
        OpenSM is not installed.
    LabError
        OpenSM ended, no engine could route, or OpenSM did not reach SUBNET UP in time.  The message ends with the last
        lines of the log.
    """

    def __init__(
        self,
        ibsim: Ibsim,
        *,
        routing_engine: str = "minhop",
        config: Mapping[str, Setting] | None = None,
        plugin: Plugin | None = None,
        once: bool = False,
        host: str | int | None = None,
        arguments: Sequence[str] = (),
        wrapper: Sequence[str] = (),
        wait: bool = True,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self.ibsim = ibsim
        self.routing_engine = routing_engine
        self.config = dict(config or {})
        self.plugin = plugin
        self.once = once
        self.host = host
        self.arguments = tuple(arguments)
        self.wrapper = tuple(wrapper)
        self.wait = wait
        self.timeout = timeout
        self._child: Child | None = None
        self._folder: Path | None = None
        self._reader: LogReader | None = None

    def __enter__(self) -> OpenSM:
        program = find_program("opensm")
        host = self.ibsim.sm_host if self.host is None else self.ibsim.device(self.host).id
        # A second OpenSM on this device is refused, because each of the two would receive answers for the other.
        if any(client.is_sm and client.device == host for client in self.ibsim.clients()):
            raise LabError(f"an OpenSM runs on {host!r} already: give this one another host")
        with DeferredSignals():
            self._folder = Path(tempfile.mkdtemp(prefix="ibnue-opensm-"))
        try:
            self._start(program)
            if self.wait:
                self.wait_for_subnet_up(after=0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End OpenSM with all its child processes, and remove its folder.  A second call has no effect."""
        self.stop()
        if self._folder is not None:
            remove_folder(str(self._folder))
            self._folder = None

    def stop(self) -> None:
        """End OpenSM but keep its folder, so that the log and the dumps can still be read."""
        if self._child is not None:
            self._child.end()

    @property
    def folder(self) -> Path:
        """Return the temporary folder with configuration, log, cache and dumps.

        Raises
        ------
        LabError
            OpenSM was not started, or :meth:`close` has removed the folder.
        """
        if self._folder is None:
            raise LabError("OpenSM is not running: use it as a context manager")
        return self._folder

    @property
    def log_path(self) -> Path:
        """Return the path of OpenSM's log."""
        return self.folder / "opensm.log"

    def _start(self, program: Path) -> None:
        self._reader = LogReader(self.log_path)
        conf = self.folder / "opensm.conf"
        conf.write_text("".join(f"{key} {_value(value)}\n" for key, value in self._settings().items()))
        (self.folder / "modules.conf").write_text("\n".join(_VERBOSE_MODULES) + "\n")
        environment = self.ibsim.environment(self.host)
        environment |= {"OSM_CACHE_DIR": str(self.folder), "OSM_TMP_DIR": str(self.folder)}
        if self.plugin is not None:
            # LD_PRELOAD begins with the libraries of the plugin's environment, because a sanitizer library works only
            # as the first preloaded library.
            preload = filter(None, [self.plugin.environment.get("LD_PRELOAD"), environment["LD_PRELOAD"]])
            environment |= {**self.plugin.environment, "LD_PRELOAD": ":".join(preload)}
            if self.plugin.folder is not None:
                paths = [str(self.plugin.folder), *filter(None, [environment.get("LD_LIBRARY_PATH")])]
                environment["LD_LIBRARY_PATH"] = os.pathsep.join(paths)
        command: list[str | Path] = [*self.wrapper, program, "-F", conf, "-f", self.log_path]
        command += ["-o"] if self.once else []
        with (self.folder / "opensm.out").open("wb") as out:
            # libumad2sim creates its simulated sysfs in the working directory, as it does for diagnostic programs.
            self._child = Child(
                [*command, *self.arguments], environment=environment, folder=self.ibsim.folder, stdout=out, stderr=out
            )

    def _settings(self) -> dict[str, Setting]:
        settings: dict[str, Setting] = {
            "routing_engine": self.routing_engine,
            "dump_files_dir": self.folder,
            "log_file": self.log_path,
            "log_flags": _LOG_FLAGS,
            "force_log_flush": True,
            "per_module_logging_file": self.folder / "modules.conf",
            **{name: self.folder / f"no-{name}" for name in _OWN_FILES},
        }
        if self.plugin is not None:
            settings["event_plugin_name"] = self.plugin.name
            if self.plugin.options:
                settings["event_plugin_options"] = self.plugin.options
        return {**settings, **self.config}

    # Methods that query the state of OpenSM, and wait for states.

    @property
    def pid(self) -> int:
        """Return the process id of OpenSM, or of the wrapper if there is a wrapper."""
        return self._running().pid

    @property
    def returncode(self) -> int | None:
        """Return OpenSM's exit status (negative: the signal), or None while it runs."""
        return self._running().returncode

    def _running(self) -> Child:
        if self._child is None:
            raise LabError("OpenSM is not running: use it as a context manager")
        return self._child

    def events(self, after: int = 0) -> list[Event]:
        """Return the events (messages) in the log after a position."""
        assert self._reader is not None
        events = self._reader.read()
        return events[bisect.bisect_right(events, after, key=lambda event: event.position) :]

    def mark(self) -> int:
        """Return the present end of the log, in bytes, for use as the argument ``after`` of other methods.

        Call this method before the action whose effect is to be awaited.
        """
        events = self.events()
        return events[-1].position if events else 0

    @property
    def errors(self) -> list[str]:
        """Return the texts of all errors that OpenSM has logged."""
        return [event.text for event in self.events() if event.kind is EventKind.ERROR]

    def wait_for(
        self, found: Callable[[list[Event]], bool], *, what: str, after: int = 0, timeout: float | None = None
    ) -> None:
        """Wait until ``found`` returns True for the list of events after a position in the log.

        ``what`` names the state in error messages.

        Raises
        ------
        LabError
            OpenSM ended, or the time limit has passed.
        """
        seconds = self.timeout if timeout is None else timeout

        def ready() -> bool:
            ended = self.returncode is not None
            if found(self.events(after)):
                return True
            if ended:
                raise self._failure(f"OpenSM {self._running().describe_end()} before {what}")
            return False

        if not poll(ready, seconds):
            raise self._failure(f"OpenSM: no {what} within {seconds:g} s")

    def wait_for_subnet_up(
        self, *, after: int | None = None, timeout: float | None = None, fruitless: int = 1, any_start: bool = False
    ) -> Sweep:
        """Wait for a heavy sweep that begins after a position in the log and reaches SUBNET UP.  Return this sweep.

        Parameters
        ----------
        after
            Position from :meth:`mark`, taken before the action that makes OpenSM sweep.  None: the present end of the
            log.
        timeout
            Time limit in seconds.  None: the time limit of this object.
        fruitless
            Number of failed sweeps after which this method gives up.  A sweep fails if no engine can route.  OpenSM
            itself starts further sweeps forever.
        any_start
            Whether a sweep that began before the position ``after`` is accepted, too.

        Raises
        ------
        LabError
            OpenSM ended, no engine could route, or the time limit has passed.
        """
        position = self.mark() if after is None else after

        def found(events: list[Event]) -> bool:
            if finished_sweep(events, position, any_start=any_start) is not None:
                return True
            if fruitless_sweeps(events, position) >= fruitless:
                why = next((f": {event.text}" for event in events if event.kind is EventKind.ERROR), "")
                raise self._failure(f"OpenSM: no routing engine could route this fabric{why}")
            return False

        # With any_start, a sweep that was in progress at `position` in the log is accepted, too.  Its first events are
        # before `position`, so all events of the log are read.
        known = 0 if any_start else position
        self.wait_for(found, what="SUBNET UP", after=known, timeout=timeout)
        sweep = finished_sweep(self.events(known), position, any_start=any_start)
        assert sweep is not None
        return sweep

    @property
    def last_sweep(self) -> Sweep | None:
        """Return the latest sweep that has reached SUBNET UP, or None."""
        return last_sweep(self.events())

    def resweep(self, *, timeout: float | None = None, fruitless: int = 1) -> Sweep:
        """Request a sweep (by SIGHUP), and wait until it has ended.

        The sweep begins after this call, so it takes all earlier changes of the fabric into account.

        ``fruitless`` is the number of failed sweeps after which this method gives up.  A sweep fails if no engine can
        route.
        """
        position = self.mark()
        self.signal(signal.SIGHUP)
        return self.wait_for_subnet_up(after=position, timeout=timeout, fruitless=fruitless)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to OpenSM."""
        if self.returncode is not None:
            raise self._failure(f"OpenSM {self._running().describe_end()}")
        os.kill(self.pid, number)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Suspend OpenSM (by SIGSTOP) during a ``with`` block.  Packets to OpenSM are queued meanwhile."""
        self.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.signal(signal.SIGCONT)

    def wait_for_exit(self, timeout: float | None = None) -> int:
        """Wait until OpenSM has ended, and return its exit status.

        OpenSM ends after one sweep if ``once`` is set, or after a signal.
        """
        seconds = self.timeout if timeout is None else timeout
        if not poll(lambda: self.returncode is not None, seconds):
            raise self._failure(f"OpenSM did not end within {seconds:g} s")
        code = self.returncode
        assert code is not None
        return code

    def _failure(self, problem: str) -> LabError:
        text = f"{problem}\n{self.log_path.name}:\n{tail(self.log_path)}"
        out = self.folder / "opensm.out"
        if self.returncode is not None:
            text += f"\n{out.name}:\n{tail(out, 8)}"
        return LabError(text)


def _value(value: Setting) -> str:
    return str(value).upper() if isinstance(value, bool) else str(value)
