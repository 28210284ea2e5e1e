"""Parse whole numbers, and format counts together with a noun."""

from __future__ import annotations

DIGITS = 18
"""Maximum number of digits that is accepted, so that every number fits into 64 bits."""


def parse_decimal(text: str) -> int | None:
    """Return the whole number that a text of ASCII digits stands for.

    The result is None for any other text, and for more than :data:`DIGITS` digits.
    """
    return int(text) if len(text) <= DIGITS and text.isascii() and text.isdecimal() else None


def count_noun(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: "1 switch", "2 switches".  ``many`` is the plural of the noun if this plural is
    irregular.
    """
    if count == 1:
        return f"1 {one}"
    if many is None:
        ends = {"y": one[:-1] + "ies"} if one[-2:-1] not in "aeiou" else {}
        many = ends.get(one[-1], one + ("es" if one.endswith(("s", "x", "ch", "sh")) else "s"))
    return f"{count} {many}"


def per_second(count: int, seconds: float) -> str:
    """Format a rate as "756 a second", or with one decimal below 10, as "0.5 a second"."""
    rate = count / max(seconds, 1e-9)
    return f"{rate:.{0 if rate >= 10 else 1}f} a second"
