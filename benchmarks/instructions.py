"""Count the instructions that the C kernels execute, and compare the counts with stored ones.

Running times depend on the machine and on other processes.  Numbers of instructions depend only on the compiler.
valgrind counts the instructions of the kernels in four kinds of steps: routing, proof, re-route after the loss of a
link, and simulation.  The exit status is 1 if a count exceeds the stored count by more than the tolerance.  After an
intended change, --update stores the new counts.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.usage import parser_of
from routing.deadlock.proof import prove
from routing.engines import ENGINES
from routing.engines.base import EngineOptions
from routing.reroute import Published, reroute
from routing.simulate.adaptive import Adaptive, Scheme, simulate_adaptive
from routing.simulate.network import BLOCK, Timing, build_network
from routing.simulate.options import Switching
from routing.simulate.run import Simulation, simulate
from routing.simulate.traffic import Process, uniform
from routing.topologies import from_words

ROOT = Path(__file__).parents[1]
STORED = Path(__file__).with_suffix(".json")
KERNELS = "_native.abi3.so"
TOLERANCE = 0.05
CASES = (("torus:4x4x4,cas=2", "updn"), ("torus:4x4x4,cas=2", "nue"), ("kary-ntree:6,3", "dfsssp"))
SIMULATED_TICKS, SIMULATED_LOAD = 200, 0.3
CLIENT = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(const char *name) { CALLGRIND_STOP_INSTRUMENTATION; CALLGRIND_DUMP_STATS_AT(name); }
"""


class CannotCountError(Exception):
    """Raised if instructions cannot be counted on this machine.  The message states the reason."""


def compiler() -> str:
    """Return the version of the C compiler: the first line of ``cc --version``.

    Raises
    ------
    CannotCountError
        valgrind or the compiler is missing.
    """
    if shutil.which("valgrind") is None or shutil.which("cc") is None:
        raise CannotCountError("apt-get install valgrind gcc: instructions are counted by valgrind")
    return subprocess.run(["cc", "--version"], check=True, capture_output=True, text=True).stdout.split("\n")[0]


def work(count: Callable[[str, Callable[[], object]], object]) -> None:
    """Run all steps whose instructions are counted.

    ``count`` is a function with two arguments: the name of a step, and a function that performs the step.  ``count``
    calls this function, and returns its result.
    """
    for design, name in CASES:
        topology, _, words = design.partition(":")
        fabric, engine = from_words(topology, words.split(",")), ENGINES[name]
        options = EngineOptions(threads=1, vls=4, effort=0.01)
        routing = count(f"route {design} {name}", lambda f=fabric, e=engine, o=options: e.route(f, o))
        proof = count(f"prove {design} {name}", lambda f=fabric, r=routing: prove(f, r, threads=1))
        before, less = Published(fabric, routing, proof), fabric.without_links([int(fabric.channels.link[0])])
        count(f"re-route {design} {name}", lambda e=engine, o=options, b=before, f=less: reroute(e, o, b, f))
    for name, simulation in simulations().items():
        count(f"simulate {name}", lambda s=simulation: s.run(SIMULATED_TICKS))


def simulations() -> dict[str, Simulation]:
    """Set up the simulations whose instructions are counted.

    The first simulation has switches without any option, the second the default switches, and the third adaptive
    switches.
    """
    fabric = from_words("torus", ["4x4x4", "cas=2"])
    routing = ENGINES["updn"].route(fabric, EngineOptions(threads=1, vls=2, effort=0.01))
    network = build_network(fabric, routing, Timing(tick=1.0, wire=1, switch=1, block=1.0, buffer=8), vls=3)
    traffic = uniform(network, SIMULATED_LOAD, bytes=BLOCK, mtu=BLOCK, process=Process.BERNOULLI)
    return {
        "ideal crossbars": simulate(network, traffic, switching=Switching(speedup=0)),
        "crossbars of speedup 1": simulate(network, traffic),
        "adaptive switches": simulate_adaptive(network, traffic, Adaptive(Scheme.ESCAPE, stay=True)),
    }


def run_inside(client: str) -> None:
    """Run all steps.  This process must run under valgrind, which writes the counts of each step to a separate file.

    ``client`` is the path of a library whose functions start and stop the counting.
    """
    library = ctypes.CDLL(client)

    def count(name: str, step: Callable[[], object]) -> object:
        library.start()
        try:
            return step()
        finally:
            library.stop(name.encode())

    work(count)


def counts() -> dict[str, int]:
    """Return the number of instructions of the kernels in each step.

    Raises
    ------
    CannotCountError
        valgrind, its header or the compiler is missing.
    """
    compiler()
    with tempfile.TemporaryDirectory(prefix="ibnue-instructions-") as name:
        folder = Path(name)
        (folder / "client.c").write_text(CLIENT)
        built = ["cc", "-O1", "-shared", "-fPIC", "-o", folder / "client.so", folder / "client.c"]
        if subprocess.run(built, check=False, capture_output=True).returncode:
            raise CannotCountError("apt-get install valgrind: its header callgrind.h is missing")
        valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", "--dump-line=no", "--compress-pos=no",
                    f"--callgrind-out-file={folder}/out"]  # fmt: skip
        inner = [sys.executable, "-m", "benchmarks.instructions", "--inside", folder / "client.so"]
        environment = {**os.environ, "PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([*valgrind, *inner], check=True, cwd=ROOT, env=environment, stderr=subprocess.PIPE)
        return dict(
            filter(None, map(kernel_count, sorted(folder.glob("out.*"), key=lambda path: int(path.suffix[1:]))))
        )


def kernel_count(path: Path) -> tuple[str, int] | None:
    """Parse an output file of callgrind, and return the name of the step and the number of the kernels' instructions.

    The result is None for the file that callgrind writes when the program ends, because this file belongs to no step.
    """
    name, total, names, kernel, called = "", 0, {}, False, False
    for line in path.read_text().splitlines():
        if line.startswith("desc: Trigger: Client Request:"):
            name = line.rpartition("Client Request: ")[2]
        elif line.startswith("ob="):
            number, _, text = line[3:].partition(" ")
            kernel = names.setdefault(number, text or number).endswith(KERNELS)
        elif line.startswith("cob="):
            number, _, text = line[4:].partition(" ")
            names.setdefault(number, text)
        elif line.startswith("calls="):
            called = True
        elif line[:1].isdigit():
            # After a line "calls=", the next line states the instructions of the called function.  The lines of the
            # called function state these instructions, too.  So the line after "calls=" is skipped.
            total += 0 if called or not kernel else int(line.split()[-1])
            called = False
    return (name, total) if name else None


def differences(found: dict[str, int], stored: dict[str, int]) -> Iterator[tuple[str, float]]:
    """Yield the name of each step, and its count of instructions divided by the stored count.

    The ratio is infinite if no count is stored for the step.
    """
    for name, count in found.items():
        yield name, count / stored[name] if name in stored else float("inf")


def main(words: Sequence[str] | None = None) -> int:
    """Count the instructions of all steps, and print them beside the stored counts.

    Return the exit status: 1 if a count is too large or cannot be determined, otherwise 0.
    """
    parser = parser_of("instructions", __doc__)
    parser.add_argument("--update", action="store_true", help="store the new counts")
    parser.add_argument("--inside", metavar="LIBRARY", help="used by the program itself: run the steps")
    given = parser.parse_args(words)
    if given.inside:
        run_inside(given.inside)
        return 0
    try:
        found, by = counts(), compiler()
    except CannotCountError as error:
        print(error)
        return 1
    if given.update:
        STORED.write_text(json.dumps({"compiler": by, "instructions": found}, indent=2) + "\n", encoding="utf-8")
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    if stored["compiler"] != by:
        print(f"the stored counts are of another compiler ({stored['compiler']}), so the differences mean little")
    worse = 0
    print("| step | instructions | stored | difference |", "|---|---|---|---|", sep="\n")
    for name, ratio in differences(found, stored["instructions"]):
        worse += ratio > 1 + TOLERANCE
        mark = " more than before" if ratio > 1 + TOLERANCE else ""
        print(f"| {name} | {found[name]} | {stored['instructions'].get(name)} | {100 * (ratio - 1):+.1f} %{mark} |")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
