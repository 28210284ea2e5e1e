"""Parameter type for numbers on the command line."""

from __future__ import annotations

import math
from typing import Any

import click


class Number(click.FloatRange):
    """Number within a range; "nan" is rejected, although click's comparison would accept it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the value as a number, or raise a usage error."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number
