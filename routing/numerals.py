"""Whole numbers in text: read, and written with what they count."""

from __future__ import annotations

DIGITS = 18
"""Digits of a number at most, so that it fits 64 bits; Python itself refuses to read some thousand."""


def decimal(text: str) -> int | None:
    """The whole number that ASCII digits mean, None if they mean none or are more than :data:`DIGITS`."""
    return int(text) if len(text) <= DIGITS and text.isascii() and text.isdecimal() else None


def number_of(count: int, one: str, many: str | None = None) -> str:
    """A number with what it counts: "1 switch", "2 switches"; ``many`` where the plural is not made by rule."""
    if count == 1:
        return f"1 {one}"
    if many is None:
        ends = {"y": one[:-1] + "ies"} if one[-2:-1] not in "aeiou" else {}
        many = ends.get(one[-1], one + ("es" if one.endswith(("s", "x", "ch", "sh")) else "s"))
    return f"{count} {many}"


def rate_of(count: int, seconds: float) -> str:
    """So many in such a time: "756 a second"; "0.5 a second" where whole ones would say little."""
    rate = count / max(seconds, 1e-9)
    return f"{rate:.{0 if rate >= 10 else 1}f} a second"
