"""Expand ranges in the arguments of generators: ``torus:{4..6}x4`` stands for three fabrics."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from routing.errors import OptionError
from routing.numerals import parse_decimal
from routing.topologies import TOPOLOGIES

MOST_FABRICS = 10_000
"""Largest number of fabrics that one argument with braces may mean."""
_BRACES = re.compile(r"\{([^{}]*)\}")


def expand_ranges(text: str) -> Iterator[str]:
    """Replace the braces in a FABRIC argument by each of their values, and yield the resulting texts.

    Braces contain values and ranges, separated by commas: ``{4,6..8}`` stands for 4, 6, 7 and 8, and ``{8..16..4}`` for
    8, 12 and 16.  The values of the last braces change fastest.  The function yields the argument unchanged if a file
    has this name, or if the argument does not begin with the name of a generator.

    Raises
    ------
    OptionError
        Braces do not close, are empty or nested, a range is invalid, or there are over :data:`MOST_FABRICS` fabrics.
    """
    if not ("{" in text or "}" in text) or text.partition(":")[0] not in TOPOLOGIES or Path(text).exists():
        yield text
        return
    parts = _BRACES.split(text)  # Texts between braces have even indices, contents of braces have odd indices.
    if any("{" in part or "}" in part for part in parts):
        raise OptionError(f"the braces of {text!r} do not match", remedy="write a range like torus:{4..6}x4")
    choices = [_values(part) if index % 2 else [part] for index, part in enumerate(parts)]
    fabrics = 1
    for values in choices:
        fabrics *= len(values)
    if fabrics > MOST_FABRICS:
        raise OptionError(f"{text!r} stands for over {MOST_FABRICS:,} fabrics", remedy="use smaller ranges")
    for chosen in itertools.product(*choices):
        yield "".join(chosen)


def _values(content: str) -> list[str]:
    """Return the values for which the content of braces stands, each value once, in the order of the content."""
    values: list[str] = []
    for word in content.split(","):
        ends = word.strip().split("..")
        if len(ends) == 1 and ends[0]:
            values.append(ends[0])
            continue
        numbers = [parse_decimal(end) for end in ends]
        first, last, step = [*numbers, 1][:3] if len(numbers) in (2, 3) else (None, None, None)
        if first is None or last is None or not step or last < first:
            raise OptionError(f"{{{content}}} is not a list of values", remedy="write it like {4,6..8} or {8..16..4}")
        if (last - first) // step >= MOST_FABRICS:
            raise OptionError(f"{{{content}}} has over {MOST_FABRICS:,} values", remedy="use a smaller range")
        values.extend(map(str, range(first, last + 1, step)))
    return list(dict.fromkeys(values))
