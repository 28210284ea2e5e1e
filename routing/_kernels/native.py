"""The one door to the compiled kernels: array pointers and return codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels._native import ffi, lib
from routing.errors import KernelError

__all__ = ["check", "ffi", "grouped", "lib", "point", "pointer"]

_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int32", "int64")
_POINTERS = {np.dtype(name): f"{name}_t *" for name in _INTEGERS} | {np.dtype("float64"): "double *"}
_MEANING = {1: "out of memory", 2: "could not start a thread"}


def check(code: int) -> None:
    """Turn a kernel's return code into an exception (0 is success).

    Raises
    ------
    KernelError
        For every code but 0.
    """
    if code != 0:
        raise KernelError(f"kernel failed: {_MEANING.get(code, f'code {code}')}")


def pointer(array: npt.NDArray[Any] | None) -> Any:
    """Pointer to the data of a C-contiguous array, typed by its dtype; None is NULL.

    cffi holds the type against that of the argument or of the struct's field.  The caller keeps the array alive for as
    long as the kernel runs.

    Raises
    ------
    TypeError
        The array is not contiguous, or of a type that no kernel takes.
    """
    if array is None:
        return ffi.NULL
    if array.dtype not in _POINTERS or not array.flags.c_contiguous:
        raise TypeError(f"kernels want C-contiguous numbers, got {array.dtype}")
    return ffi.cast(_POINTERS[array.dtype], array.ctypes.data)


def point(struct: Any, **arrays: npt.NDArray[Any] | None) -> None:
    """Let fields of a C struct point to C-contiguous arrays of exactly the type that the header says; None is NULL.

    The caller keeps the arrays alive for as long as the kernel runs.

    Raises
    ------
    TypeError
        An array of another type, or one that is not contiguous.
    """
    for name, array in arrays.items():
        setattr(struct, name, pointer(array))


def grouped(key: npt.NDArray[np.integer[Any]], count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """int32[count + 1], int32[N]: where each key from 0 on begins in the second, which lists who has it, in order.

    Those with a key under 0 stand in front of all.
    """
    members = np.argsort(key, kind="stable").astype(np.int32)
    return np.searchsorted(key[members], np.arange(count + 1)).astype(np.int32), members
