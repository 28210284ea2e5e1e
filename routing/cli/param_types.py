"""Define a click parameter type for numbers, and the options that several commands share."""

from __future__ import annotations

import math
from typing import Any

import click


class Number(click.FloatRange):
    """A number within a range.

    If the upper end of the range is 1, the number is a share.  Users may then also write a percentage, such as 5%.  The
    text "nan" is rejected here, because click's check of the range would accept it.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the value as a number.  A value that is not a number within the range causes a usage error."""
        if self.max == 1 and isinstance(value, str) and value.endswith("%"):
            value = click.FLOAT(value[:-1], param, ctx) / 100
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


threads_option = click.option(
    "--threads", type=click.IntRange(1, 256), metavar="N", default=2, show_default=True, help="Worker threads."
)
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), metavar="N", default=1, show_default=True, help="Random seed."
)
