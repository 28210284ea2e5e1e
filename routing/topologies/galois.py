"""Arithmetic in finite fields, which the construction of the Slim Fly topology needs."""

from __future__ import annotations

import itertools


class GaloisField:
    """Finite field, whose elements are numbered 0 to ``order - 1``.

    The number of elements is p^n with a prime p.  Each element is a polynomial: the digits of the element's number in
    base p are the coefficients.

    Parameters
    ----------
    order
        Number of elements, which must be a prime power p^n.

    Notes
    -----
    Cost: O(order^2) in the worst case, to find a primitive polynomial.
    """

    def __init__(self, order: int) -> None:
        self.order = order
        self._p, self._n = _root(order)
        self._powers = next(filter(None, map(self._cycle, itertools.product(range(self._p), repeat=self._n))))
        self._log = {element: exponent for exponent, element in enumerate(self._powers)}

    @staticmethod
    def is_prime_power(order: int) -> bool:
        """Return whether a number is a prime power, so that a field with this number of elements exists."""
        return order > 1 and _root(order) != (0, 0)

    def _cycle(self, polynomial: tuple[int, ...]) -> list[int] | None:
        """Return x^0, x^1, x^2, ... modulo the polynomial x^n - ``polynomial``, as numbers of elements.

        Return None if not every nonzero element of the field is such a power.  Otherwise the polynomial is primitive,
        and the list serves as a table for multiplication.
        """
        element, seen = [1] + [0] * (self._n - 1), []
        for _ in range(self.order - 1):
            seen.append(sum(digit * self._p**position for position, digit in enumerate(element)))
            top = element[-1]
            element = [(a + top * b) % self._p for a, b in zip([0, *element[:-1]], polynomial, strict=True)]
        return seen if len(set(seen)) == len(seen) and 0 not in seen else None

    def power(self, exponent: int) -> int:
        """Return a fixed primitive element of the field to the power ``exponent``."""
        return self._powers[exponent % (self.order - 1)]

    def add(self, a: int, b: int) -> int:
        """Return the sum of two elements of the field."""
        return self._digitwise(a, b, 1)

    def subtract(self, a: int, b: int) -> int:
        """Return the difference of two elements of the field."""
        return self._digitwise(a, b, -1)

    def multiply(self, a: int, b: int) -> int:
        """Return the product of two elements of the field."""
        return self.power(self._log[a] + self._log[b]) if a and b else 0

    def _digitwise(self, a: int, b: int, sign: int) -> int:
        result, position = 0, 1
        for _ in range(self._n):
            result += (a % self._p + sign * (b % self._p)) % self._p * position
            a, b, position = a // self._p, b // self._p, position * self._p
        return result


def _root(order: int) -> tuple[int, int]:
    """Return the prime p and the exponent n with p^n = order, or (0, 0) if no such numbers exist."""
    p = next((candidate for candidate in range(2, order + 1) if order % candidate == 0), 0)
    n, rest = 0, order
    while p and rest % p == 0:
        n, rest = n + 1, rest // p
    return (p, n) if rest == 1 and p else (0, 0)
