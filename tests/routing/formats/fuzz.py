"""Fuzz the readers: ``python tests/routing/formats/fuzz.py --seconds 3600 --keep FOLDER [READER...]``.

``--corpus FILE.zip`` starts from the inputs of an earlier run, and adds new ones.  ``tests/routing/formats/corpus.zip``
is such a file; ``test_mutations.py`` reads all its inputs again.

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
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
# The root comes first: tests/ has a folder named "routing" too.
sys.path[:0] = [str(HERE.parents[2]), str(HERE), str(HERE.parents[1])]

import test_mutations as samples  # noqa: E402
from damages import SNIPPETS, damaged  # noqa: E402

from routing.errors import IbnueError  # noqa: E402

SLOW = 5.0
MOST_BYTES = 20_000
"""Size of the largest input that a corpus keeps."""


def ending(error: BaseException | None) -> tuple[str, ...]:
    """Return where a reader ended: the lines of its code that the error passed, or nothing after a success."""
    places, trace = [], error.__traceback__ if error else None
    while trace is not None:
        places.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    return tuple(places[1:])


def complaint(error: Exception | None, caught: list[warnings.WarningMessage], seconds: float) -> str:
    """Return a description of what is wrong with the end of a reader; an empty text if nothing is wrong."""
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


def attempt(name: str, path: Path, data: bytes) -> tuple[str, tuple[str, ...]]:
    """Give an input to a reader.  Return what is wrong with the end of the reader, and where the reader ended."""
    error, begin = None, time.process_time()
    path.write_bytes(data)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            samples.READERS[name](path)
        except Exception as raised:  # every other error is what the fuzzer looks for
            error = raised
    return complaint(error, caught, time.process_time() - begin), ending(error)


def read_corpus(path: Path | None, name: str) -> list[bytes]:
    """Return the stored inputs of a reader; an empty list if there is no file."""
    if path is None or not path.exists():
        return []
    with zipfile.ZipFile(path) as file:
        return [file.read(entry) for entry in file.namelist() if entry.rpartition("/")[0] == name]


def write_corpus(path: Path, found: dict[str, list[bytes]]) -> None:
    """Replace the stored inputs of the readers in ``found``, and keep the inputs of all other readers."""
    names = {} if not path.exists() else dict.fromkeys(
        entry.rpartition("/")[0] for entry in zipfile.ZipFile(path).namelist()
    )  # fmt: skip
    whole = {name: read_corpus(path, name) for name in names} | found
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for name, inputs in sorted(whole.items()):
            for number, data in enumerate(inputs):
                file.writestr(zipfile.ZipInfo(f"{name}/{number:04}"), data, zipfile.ZIP_DEFLATED)


def fuzz(
    name: str, inputs: list[bytes], folder: Path, *, seconds: float, seed: int, keep: Path
) -> tuple[int, list[bytes]]:
    """Fuzz a reader and print the result.  Return the number of finds, and the inputs with different endings."""
    rng, corpus, seen, runs, finds = random.Random(f"{name} {seed}"), inputs[:1], set(), 0, 0
    path, until = folder / "file", time.monotonic() + seconds
    waiting = inputs[1:]
    while waiting or time.monotonic() < until:
        changed = waiting.pop(0) if waiting else change(rng, corpus)
        wrong, place = attempt(name, path, changed)
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
    return finds, corpus


def main() -> int:
    """Fuzz the named readers, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", metavar="READER", help=f"of {', '.join(samples.READERS)}")
    parser.add_argument("--seconds", type=float, default=60, help="wall time for each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, metavar="FILE.zip", help="inputs to start from, and to add new ones to")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-finds"), help="folder for inputs that are finds")
    given = parser.parse_args()
    keep, finds, found = given.keep.absolute(), 0, {}
    stored = given.corpus.absolute() if given.corpus else None
    with tempfile.TemporaryDirectory(prefix="ibnue-fuzz-") as name:
        folder = Path(name)
        own = samples.write_own(folder)
        (folder / "mixed_spines.net").write_bytes((samples.DATA / "mixed_spines.net").read_bytes())
        os.chdir(folder)
        for reader in given.readers or samples.READERS:
            inputs = [samples.sample(reader, own), *read_corpus(stored, reader)]
            more, corpus = fuzz(reader, inputs, folder, seconds=given.seconds, seed=given.seed, keep=keep)
            finds, found[reader] = finds + more, [data for data in corpus[1:] if len(data) <= MOST_BYTES]
    if stored is not None:
        write_corpus(stored, found)
    return 1 if finds else 0


if __name__ == "__main__":
    sys.exit(main())
