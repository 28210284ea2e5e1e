"""Fuzz the readers: ``python tests/routing/formats/fuzz.py --seconds 3600 --keep FOLDER [READER...]``.

Each reader gets damaged files for so many seconds.  An input joins the corpus if its reader stops at a line of code
that no input has reached before, so later damages build on it.  Anything but a result or an error of ours in one line
is a find: its input is kept in the folder, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The root comes first: tests/ has a folder named "routing" too.
sys.path[:0] = [str(HERE.parents[2]), str(HERE), str(HERE.parents[1])]

import test_mutations as samples  # noqa: E402
from damages import SNIPPETS, damaged  # noqa: E402

from routing.errors import IbnueError  # noqa: E402

SLOW = 5.0


def ending(error: BaseException | None) -> tuple[str, ...]:
    """Return where a reader ended: the lines of its code that the error passed, or nothing after a success."""
    places, trace = [], error.__traceback__ if error else None
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return tuple(places[1:])


def complaint(error: Exception | None, caught: list[warnings.WarningMessage], seconds: float) -> str:
    """Return what is wrong with the end of a reader; an empty text if nothing is."""
    if seconds > SLOW:
        return f"took {seconds:.1f} s"
    if error is not None and not isinstance(error, IbnueError):
        return repr(error)
    texts = [str(error)] if error is not None else []
    return (
        "more than one line" if any("\n" in text for text in [*texts, *map(str, (w.message for w in caught))]) else ""
    )


def change(rng: random.Random, corpus: list[bytes]) -> bytes:
    """Return an input of the corpus with a few damages, sometimes joined to a part of another one."""
    data = rng.choice(corpus)
    if rng.random() < 0.1:
        other = rng.choice(corpus)
        data = data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice(samples.KINDS)
        data = damaged(data, (kind, rng.random(), rng.randint(1, 200), rng.choice(SNIPPETS))) if data else b"\n"
    return data[:1_000_000]


def fuzz(name: str, data: bytes, folder: Path, *, seconds: float, seed: int, keep: Path) -> int:
    """Fuzz a reader, print what came of it, and return the number of finds."""
    rng, corpus, seen, runs, finds = random.Random(f"{name} {seed}"), [data], {()}, 0, 0
    path, until = folder / "file", time.monotonic() + seconds
    while time.monotonic() < until:
        changed, error, begin = change(rng, corpus), None, time.process_time()
        path.write_bytes(changed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                samples.READERS[name](path)
            except Exception as raised:  # every other error is what the fuzzer looks for
                error = raised
        wrong, place = complaint(error, caught, time.process_time() - begin), ending(error)
        runs += 1
        if wrong and (wrong[:40], *place) not in seen:
            finds += 1
            seen.add((wrong[:40], *place))
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{name}.{finds}").write_bytes(changed)
            print(f"{name}: {wrong} at {place[-1:]}, kept as {keep / name}.{finds}", flush=True)
        elif place not in seen:
            seen.add(place)
            corpus.append(changed)
    print(f"{name}: {runs} files, {len(corpus)} endings, {finds} finds", flush=True)
    return finds


def main() -> int:
    """Fuzz the named readers, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of {', '.join(samples.READERS)}")
    parser.add_argument("--seconds", type=float, default=60, help="wall time for each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("fuzz-finds"), help="folder for inputs that are finds")
    given = parser.parse_args()
    keep, finds = given.keep.absolute(), 0
    with tempfile.TemporaryDirectory(prefix="ibnue-fuzz-") as name:
        folder = Path(name)
        own = samples.write_own(folder)
        (folder / "mixed_spines.net").write_bytes((samples.DATA / "mixed_spines.net").read_bytes())
        os.chdir(folder)
        for reader in given.readers or samples.READERS:
            data = samples.sample(reader, own)
            finds += fuzz(reader, data, folder, seconds=given.seconds, seed=given.seed, keep=keep)
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
