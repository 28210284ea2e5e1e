"""Check for credit loops with ibdmchk of ibutils, an independent program that reads OpenSM's dumps.

Known defects of ibdmchk need workarounds:

- ibdmchk always crashes after it has printed its verdict.  So its output is parsed, and its exit status is ignored.
- ibdmchk requires the file of multicast groups, which OpenSM does not write if multicast is disabled.
  So an empty file replaces a missing file.
- ibdmchk writes a report with a fixed name to /var/cache/ibutils.  So each run gets a private empty folder at this
  path, in a mount namespace.  If the system does not allow mount namespaces, a lock serialises the runs and the report
  is removed.
- ibdmchk silently ignores SLs in OpenSM's own dump format, and then reports loops that do not exist.  So SLs are passed
  in the format that ibdmchk understands.
- ibdmchk checks paths from CA to CA.  With an option, and if the fabric has CAs, ibdmchk also checks paths from and to
  switches.  ibdmchk never checks paths of routers.  It checks only paths to base LIDs, because its LMC option fails on
  every fabric.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ibsim_fixtures.processes import TIMEOUT_SECONDS, LabError, find_program
from routing.formats.table_files import PSL, SLVL

_CACHE = Path("/var/cache/ibutils")
_CHANNEL = re.compile(r"(?:Found credit loop on|BT credit loop through): S([0-9a-f]{16})/U1/P(\d+) VL: (\d+)")
_SWITCH = re.compile(r"^Switch 0x([0-9a-f]+)", re.MULTILINE)
_ROW = re.compile(r"^(\d+)\s+(\d+)\s*:\s*((?:\d+\s*){16})$", re.MULTILINE)
_NO_LOOP = "no credit loops found"
_LOOP = "-E- credit loops in routing"


@dataclass(frozen=True)
class LoopChannel:
    """Virtual channel of a credit loop: GUID and out-port of the sending switch, and the VL."""

    guid: int
    port: int
    vl: int

    def __str__(self) -> str:
        return f"0x{self.guid:016x} port {self.port} VL {self.vl}"


@dataclass(frozen=True)
class Verdict:
    """Result of a run of ibdmchk.

    Attributes
    ----------
    credit_loop
        Whether the tables have a credit loop.
    loop
        Channels of the loop, in the direction in which packets travel.  The last channel depends on the first channel.
    paths
        Number of paths that ibdmchk followed.
    sls
        Number of SLs that ibdmchk took into account.
    errors
        Other errors that ibdmchk reports, mostly paths that do not reach their destination.
    output
        Complete output of ibdmchk.
    """

    credit_loop: bool
    loop: tuple[LoopChannel, ...]
    paths: int
    sls: int
    errors: tuple[str, ...]
    output: str

    def describe(self) -> list[str]:
        """Return the channels of the loop as text, one line for each."""
        return [str(channel) for channel in self.loop]


def check(
    folder: Path,
    *,
    sls: Mapping[tuple[int, int], int] | None = None,
    sl2vl: Mapping[tuple[int, int, int], Sequence[int]] | None = None,
    switches: bool = False,
    timeout: float = TIMEOUT_SECONDS,
) -> Verdict:
    """Run ibdmchk on OpenSM's dumps or on files of ``ibnue route``, and return its verdict.

    Parameters
    ----------
    folder
        Folder with OpenSM's dumps, or with the files of ``ibnue route`` and the fabric as ``opensm-subnet.lst``.
    sls
        SL by (node GUID of the source, destination LID).  None: the files ``ibdmchk.psl`` and ``ibdmchk.slvl`` of
        ``ibnue route`` are used; without these files, all SLs are 0.
    sl2vl
        16 VLs by (switch GUID, in-port, out-port), used only with ``sls``.  None: the SL2VL tables that OpenSM dumped
        are used, or VL = SL if OpenSM dumped no such tables.
    switches
        Whether to check the paths from and to switches as well.
    timeout
        Time limit in seconds.

    Raises
    ------
    EnvironmentProblem
        ibdmchk is not installed.
    LabError
        ibdmchk gave no verdict.
    """
    program = find_program("ibdmchk")
    if sl2vl is None:
        sl2vl = read_sl2vl(folder / "opensm-sl2vl.dump")
    with tempfile.TemporaryDirectory(prefix="ibnue-ibdmchk-") as name:
        own = Path(name)
        multicast = folder / "opensm.mcfdbs"
        if not multicast.exists():
            multicast = own / "opensm.mcfdbs"
            multicast.touch()
        arguments: list[str | Path] = [
            "-s",
            folder / "opensm-subnet.lst",
            "-f",
            folder / "opensm.fdbs",
            "-m",
            multicast,
        ]
        arguments += ["-a"] if switches else []
        if sls is None and (folder / PSL).exists():
            arguments += ["-c", folder / PSL, "-d", folder / SLVL]
        if sls is not None:
            arguments += ["-c", own / "psl.txt"]
            (own / "psl.txt").write_text("".join(f"0x{g:016x} {lid} {sl}\n" for (g, lid), sl in sls.items()))
        if sls is not None and sl2vl:
            arguments += ["-d", own / "slvl.txt"]
            (own / "slvl.txt").write_text("".join(_slvl_line(*key, row) for key, row in sl2vl.items()))
        return _parse(_run([str(program), *map(str, arguments)], own, timeout))


def read_sl2vl(path: Path) -> dict[tuple[int, int, int], tuple[int, ...]]:
    """Read OpenSM's file opensm-sl2vl.dump: 16 VLs by (switch GUID, in-port, out-port).  Empty if there is no such
    file.
    """
    if not path.exists():
        return {}
    text = path.read_text(errors="replace")
    rows: dict[tuple[int, int, int], tuple[int, ...]] = {}
    heads = list(_SWITCH.finditer(text))
    for head, end in zip(heads, [*(h.start() for h in heads[1:]), len(text)], strict=False):
        for entry, leave, row in _ROW.findall(text, head.end(), end):
            rows[int(head[1], 16), int(entry), int(leave)] = tuple(map(int, row.split()))
    return rows


def _slvl_line(guid: int, entry: int, leave: int, row: Sequence[int]) -> str:
    pairs = " ".join(f"0x{a:x}{b:x}" for a, b in zip(row[::2], row[1::2], strict=True))
    return f"0x{guid:016x} {entry} {leave} {pairs}\n"


def _run(command: list[str], own: Path, timeout: float) -> str:
    # ibdmchk always crashes at its end, so core files are switched off.
    plain = f"ulimit -c 0; exec {shlex.join(command)}"
    if not _CACHE.is_dir():
        return _output(["sh", "-c", plain], own, timeout)
    if shutil.which("unshare"):
        private = f"mount -t tmpfs none {_CACHE} && echo private && {plain}"
        for become in ([], ["--map-root-user"]):
            output = _output(["unshare", *become, "--mount", "sh", "-c", private], own, timeout)
            if output.startswith("private\n"):
                return output
    with _in_line():
        return _output(["sh", "-c", plain], own, timeout)


def _output(command: list[str], own: Path, timeout: float) -> str:
    try:
        done = subprocess.run(
            command, cwd=own, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"ibdmchk did not end within {timeout:g} s") from None
    return (done.stdout + done.stderr).decode(errors="replace")


@contextlib.contextmanager
def _in_line() -> Iterator[None]:
    """Let one run of ibdmchk at a time use ibdmchk's cache folder on this machine, while other runs wait.

    The files that the run has added to the folder are removed when the run ends.
    """
    path = Path(tempfile.gettempdir()) / "ibnue-ibdmchk.lock"
    with path.open("a") as lock:
        with contextlib.suppress(PermissionError):
            path.chmod(0o666)
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = set(_CACHE.iterdir())
        try:
            yield
        finally:
            for added in set(_CACHE.iterdir()) - before:
                added.unlink(missing_ok=True)


def _parse(output: str) -> Verdict:
    lines = output.splitlines()
    loop = _LOOP in output
    if loop == (_NO_LOOP in output):
        errors = [line for line in lines if line.startswith("-E-")] or lines[-1:] or ["it said nothing"]
        raise LabError(f"ibdmchk gave no verdict: {errors[-1]}")
    scanned, sls = re.findall(r"Scanned:(\d+) (?:CA to CA )?paths", output), re.search(r"Loops (\d+) SLs", output)
    return Verdict(
        credit_loop=loop,
        loop=_loop(output) if loop else (),
        paths=int(scanned[-1]) if scanned else 0,
        sls=int(sls[1]) if sls else 0,
        errors=tuple(line[4:].strip() for line in lines if line.startswith("-E-") and line != _LOOP),
        output=output,
    )


def _loop(output: str) -> tuple[LoopChannel, ...]:
    """Return the channels of the credit loop that ibdmchk prints as a backtrace.

    The backtrace begins with the channels of the loop.  It ends with the channels between the loop and the channel at
    which ibdmchk began its search.  These last channels are left out.

    ``output`` is the text that ibdmchk has printed.
    """
    trace = [LoopChannel(int(guid, 16), int(port), int(vl)) for guid, port, vl in _CHANNEL.findall(output)]
    again = trace.index(trace[0], 1) if trace and trace[0] in trace[1:] else len(trace)
    return tuple(trace[1 : again + 1][::-1])
