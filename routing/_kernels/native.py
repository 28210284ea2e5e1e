"""Access to the compiled kernels: array pointers, C structs and return codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from routing.errors import KernelError

try:
    from routing._kernels._native import ffi, lib
except ModuleNotFoundError as error:
    # Python searches the working directory first.  In the source tree, the sources would hide the installed package
    # there.
    raise ModuleNotFoundError(
        "the kernels are not built in this folder of sources (run Python in another folder, or pip install -e . here)",
        name=error.name,
    ) from None

__all__ = ["check", "ffi", "grouped", "lib", "point", "pointer"]

_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int32", "int64")
_POINTERS = {np.dtype(name): ffi.typeof(f"{name}_t *") for name in _INTEGERS} | {
    np.dtype("float64"): ffi.typeof("double *")
}
_MEANING = {1: "out of memory", 2: "could not start a thread"}


def check(code: int) -> None:
    """Raise an exception if a kernel's return code is not 0 (success).

    Raises
    ------
    KernelError
        The code is not 0.
    """
    if code != 0:
        raise KernelError(f"kernel failed: {_MEANING.get(code, f'code {code}')}")


def pointer(array: npt.NDArray[Any] | None) -> Any:
    """Return a pointer to the data of a C-contiguous array, with the C type of the array's dtype.  None becomes NULL.

    cffi compares this C type with the type of the kernel's argument or of the struct's field.  The caller must keep the
    array alive while the kernel runs.

    Raises
    ------
    TypeError
        The array is not contiguous, or no kernel takes its dtype.
    """
    if array is None:
        return ffi.NULL
    if array.dtype not in _POINTERS or not array.flags.c_contiguous:
        raise TypeError(f"kernels want C-contiguous numbers, got {array.dtype}")
    # The attribute ``ctypes`` of an array takes seven times as long.
    return ffi.from_buffer(_POINTERS[array.dtype], array)


def point(struct: Any, **arrays: npt.NDArray[Any] | None) -> None:
    """Set fields of a C struct to point to C-contiguous arrays.  The dtype of an array must be exactly the dtype of its
    field.  None becomes NULL.

    The caller keeps the arrays alive while the kernel runs.

    Raises
    ------
    TypeError
        An array has another type, or is not contiguous.
    """
    for name, array in arrays.items():
        setattr(struct, name, pointer(array))


def grouped(key: npt.NDArray[np.integer[Any]], count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Sort the numbers of items by their keys, so that the items of each key are a range (CSR lists).

    Parameters
    ----------
    key
        int[N], key of each item; items with a key below 0 belong to no group.
    count
        Number of keys, from 0 on.

    Returns
    -------
    first, members
        int32[count + 1] and int32[N]: the items with key ``k`` are ``members[first[k]:first[k + 1]]``, in ascending
        order.  Items with a key below 0 are before index ``first[0]``.
    """
    members = np.argsort(key, kind="stable").astype(np.int32)
    return np.searchsorted(key[members], np.arange(count + 1)).astype(np.int32), members
