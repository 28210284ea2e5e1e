"""The one door to the compiled kernels: array pointers and return codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from routing._kernels._native import ffi, lib
from routing.errors import KernelError

__all__ = ["check", "ffi", "lib", "pointer"]

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


def pointer(ctype: str, array: npt.NDArray[Any], dtype: npt.DTypeLike) -> Any:
    """Pointer to the data of a C-contiguous array of exactly this dtype (``ctype`` such as ``"int32_t *"``).

    The caller keeps the array alive for as long as the kernel runs.
    """
    if array.dtype != np.dtype(dtype) or not array.flags.c_contiguous:
        raise TypeError(f"kernel wants C-contiguous {np.dtype(dtype)}, got {array.dtype}")
    return ffi.cast(ctype, array.ctypes.data)
