"""Access to the compiled kernels: array pointers, C structs and return codes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from routing.errors import KernelError

try:
    from routing._kernels._native import ffi, lib
except ModuleNotFoundError as error:
    # Python searches the working directory first.  In the folder of the sources, Python therefore imports the sources
    # instead of the installed package.  The sources have no compiled kernels, so the message names two remedies.
    raise ModuleNotFoundError(
        "the kernels are not built in this folder of sources (run Python in another folder, or pip install -e . here)",
        name=error.name,
    ) from None

__all__ = ["call", "check", "ffi", "grouped", "lib", "pointer", "struct_of"]

_INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int32", "int64")
_POINTERS = {np.dtype(name): ffi.typeof(f"{name}_t *") for name in _INTEGERS} | {
    np.dtype("float64"): ffi.typeof("double *")
}
_MEANING = {1: "out of memory", 2: "could not start a thread", 3: "a mechanism of the simulation is not compiled in"}
_ARRAYS: WeakKeyDictionary[Any, list[npt.NDArray[Any]]] = WeakKeyDictionary()
"""The arrays to which the fields of each existing C struct point.  The arrays stay alive as long as the struct."""


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
    # The attribute ``ctypes`` of an array is not used, because it takes seven times as long.
    return ffi.from_buffer(_POINTERS[array.dtype], array)


def call(kernel: Callable[..., int], *arguments: Any) -> None:
    """Call a kernel, and check its return code.  Arrays are passed as pointers, and None is passed as NULL.

    Raises
    ------
    KernelError
        The return code is not 0.
    TypeError
        An array has another type than the kernel's parameter, or is not contiguous.
    """
    check(kernel(*map(_converted, arguments)))


def struct_of(kind: str, *values: Any, **fields: Any) -> Any:
    """Return a new C struct.  The arrays to which its fields point stay alive as long as the struct.

    Parameters
    ----------
    kind
        C type of the struct.
    values
        Instances of dataclasses.  A field that is not in ``fields`` gets its value from the first instance that has an
        attribute with the field's name.  All other fields are 0.
    fields
        Values of fields by name: numbers, or arrays whose dtype is exactly the dtype of the field.  None becomes NULL.
        If an array is not C-contiguous, the field points to a copy.

    Raises
    ------
    TypeError
        An array has another dtype than its field.
    """
    struct = ffi.new(f"{kind} *")
    for name, position in _dataclass_fields(kind, *map(type, values)):
        if name not in fields:
            fields[name] = getattr(values[position], name)
    arrays = []
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            arrays.append(np.ascontiguousarray(value))
            setattr(struct, name, pointer(arrays[-1]))
        else:
            setattr(struct, name, ffi.NULL if value is None else value)
    _ARRAYS[struct] = arrays
    return struct


@cache
def _dataclass_fields(kind: str, *classes: Any) -> tuple[tuple[str, int], ...]:
    """Find the fields of a C struct that are also fields of a dataclass in ``classes``.

    Return the name of each such field, and the index of the first dataclass in ``classes`` that has this field.
    """
    found = []
    for name, _ in ffi.typeof(kind).fields:
        having = [position for position, one in enumerate(classes) if name in one.__dataclass_fields__]
        found += [(name, having[0])] if having else []
    return tuple(found)


def _converted(value: Any) -> Any:
    """Convert a value for a C function or struct: an array to a pointer, None to NULL.  Other values stay unchanged."""
    return pointer(value) if value is None or isinstance(value, np.ndarray) else value


def grouped(key: npt.NDArray[np.integer[Any]], count: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Sort the numbers of items by their keys, so that the items of each key are a range (CSR lists).

    Parameters
    ----------
    key
        int[N], key of each item; items with a key below 0 belong to no group.
    count
        Number of keys: the keys are 0 to ``count - 1``, or below 0.

    Returns
    -------
    first, members
        int32[count + 1] and int32[N]: the items with key ``k`` are ``members[first[k]:first[k + 1]]``, in ascending
        order.  Items with a key below 0 are before index ``first[0]``.
    """
    members = np.argsort(key, kind="stable").astype(np.int32)
    return np.searchsorted(key[members], np.arange(count + 1)).astype(np.int32), members
