"""Names as text: they come from fabrics and files, and may hold any character."""

from __future__ import annotations

from collections.abc import Callable


def escaped(text: str, may_stay: Callable[[str], bool] = str.isprintable) -> str:
    r"""The text with escapes such as ``\n`` or ``\x1b`` for the characters that may not stay.

    Without ``may_stay`` the text is one line of what a terminal shows and does not obey.
    """
    if text.isprintable() and may_stay is str.isprintable:
        return text
    return "".join(letter if may_stay(letter) else letter.encode("unicode_escape").decode() for letter in text)
