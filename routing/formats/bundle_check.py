"""Check the arrays of a bundle: dtypes, shapes that agree, and values.

Sizes are checked before large arrays are read, so that a damaged file cannot exhaust the memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from routing.errors import DamagedBundle
from routing.fabric import MAX_UNICAST_LID, NO_PORT
from routing.formats.npz import Expected
from routing.tables import DATA_VLS

LARGEST = 4 << 30
"""Maximum size in bytes of all arrays of a bundle together."""

_LONGEST_NAME = 4096
_LONGEST_META = 1 << 24

KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "format": ("U", ("",)),
    "switch_guid": ("u8", ("S",)),
    "switch_name": ("U", ("S",)),
    "switch_lid": ("u2", ("S",)),
    "endport_guid": ("u8", ("E",)),
    "endport_name": ("U", ("E",)),
    "endport_port": ("u1", ("E",)),
    "endport_lid": ("u2", ("E",)),
    "endport_lmc": ("u1", ("E",)),
    "lft": ("u1", ("SL",)),
    "sl": ("u1", ("L", "SL", "LL")),
    "sl2vl": ("u1", ("N", "SPPN")),
    "vls": ("i8", ("",)),
    "vls_needed": ("i8", ("",)),
    "channel_switch": ("i4", ("C",)),
    "channel_port": ("u1", ("C",)),
    "order": ("i4", ("VC",)),
    "meta": ("U", ("",)),
}
"""Dtype and allowed shapes of each array, in the order in which they are written and read.

Each letter is one dimension of a shape: S switches, E end ports, L LIDs, P ports, V VLs, C channels, N the 16 SLs.
"""

OWNERS = tuple(name for name in KINDS if name.startswith(("switch_", "endport_")))
"""Names of the arrays that determine the owner of each LID.

These arrays are read first, because the highest LID in them determines the number of columns of the tables.
"""

_MOST = {"S": MAX_UNICAST_LID, "E": 2 * MAX_UNICAST_LID, "L": MAX_UNICAST_LID + 1, "P": 255, "V": 16, "C": 1 << 24}


class BundleChecker:
    """Checks the arrays of one bundle: dtype and shape of each array before it is read, and values afterwards."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._size: dict[str, int] = {"N": 16}
        self._bytes = 0

    def expect(self, name: str) -> Expected:
        """Return a function that checks the dtype and the shape of the array ``name``.

        The returned function describes the first error, or returns None without an error.
        :class:`~routing.formats.npz.NpzReader` calls the returned function before it reads the array.
        """

        def complaint(dtype: np.dtype[Any], shape: tuple[int, ...]) -> str | None:
            kind, forms = KINDS[name]
            if dtype.kind != "U" if kind == "U" else dtype.str[1:] != kind:
                return f"is of type {dtype.str}, wanted {kind}"
            if kind == "U" and not dtype.itemsize:
                return "has texts of length 0"
            if kind == "U" and dtype.itemsize > 4 * (_LONGEST_META if name == "meta" else _LONGEST_NAME):
                return "has a text that is too long"
            fitting = [form for form in forms if self._fits(form, shape)]
            if not fitting:
                return f"has the shape {shape}, wanted {' or '.join(self._shown(form) for form in forms)}"
            self._size.update(zip(fitting[0], shape, strict=True))
            self._bytes += int(np.prod(shape, dtype=object)) * dtype.itemsize
            return f"makes the bundle unpack to over {LARGEST >> 30} GiB" if self._bytes > LARGEST else None

        return complaint

    def _fits(self, form: str, shape: tuple[int, ...]) -> bool:
        if len(form) != len(shape):
            return False
        size = dict(self._size)
        return all(
            size.setdefault(letter, n) == n and n <= _MOST.get(letter, 16)
            for letter, n in zip(form, shape, strict=True)
        )

    def _shown(self, form: str) -> str:
        return "[" + ", ".join(str(self._size.get(letter, letter)) for letter in form) + "]"

    def check_owners(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Check GUIDs, LIDs and LMCs.  The highest LID then determines how many columns the tables must have.

        Raises
        ------
        DamagedBundle
            A value is invalid, or two ports have the same LID.
        """
        for name in ("switch_guid", "endport_guid"):
            guid = arrays[name]
            self._demand(bool((guid > 0).all() and (guid[1:] > guid[:-1]).all()), f"{name} is not in ascending order")
        lmc = arrays["endport_lmc"].astype(np.int64)
        self._demand(int(lmc.max(initial=0)) <= 7, "an LMC is over 7")
        base = arrays["endport_lid"].astype(np.int64)
        count = np.where(base > 0, 1 << lmc, 0)
        first = np.cumsum(count) - count
        lid = np.repeat(base - first, count) + np.arange(int(count.sum())) if len(base) else base
        own = arrays["switch_lid"][arrays["switch_lid"] > 0].astype(np.int64)
        every = np.concatenate([lid, own])
        self._demand(len(np.unique(every)) == len(every), "a LID belongs to two ports")
        self._size["L"] = int(every.max(initial=0)) + 1
        self._demand(self._size["L"] <= MAX_UNICAST_LID + 1, "a LID is over 0xBFFF")

    def check_tables(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Check the values of the tables, of the channels and of the certificate.

        Raises
        ------
        DamagedBundle
            A value is invalid.
        """
        for name in ("sl", "sl2vl"):
            self._demand(int(arrays[name].max(initial=0)) <= 15, f"{name} has a number over 15")
        self._demand(1 <= int(arrays["vls"]) <= DATA_VLS, f"the number of VLs is not 1 to {DATA_VLS}")
        self._demand(0 <= int(arrays["vls_needed"]) <= DATA_VLS, f"the number of VLs needed is not 0 to {DATA_VLS}")
        switch, port = arrays["channel_switch"], arrays["channel_port"]
        inside = bool(((switch >= 0) & (switch < self._size["S"])).all()) and bool(
            ((port > 0) & (port < NO_PORT)).all()
        )
        self._demand(inside, "a channel leaves from a switch or port that does not exist")
        key = switch.astype(np.int64) * 256 + port
        self._demand(bool((key[1:] > key[:-1]).all()), "the channels are not in ascending order")
        self._demand(int(arrays["order"].min(initial=0)) >= -1, "the certificate has a position below -1")

    def meta(self, text: str) -> dict[str, object]:
        """Parse the array ``meta``, a JSON object in text form.

        Raises
        ------
        DamagedBundle
            The text is not a JSON object.
        """
        try:
            meta = json.loads(text)
        except (ValueError, RecursionError):
            meta = None
        if not isinstance(meta, dict):
            raise DamagedBundle("its description (meta) is not a JSON object", path=self._path, remedy="make it again")
        return meta

    def _demand(self, good: bool, otherwise: str) -> None:
        if not good:
            raise DamagedBundle(otherwise, path=self._path, remedy="the bundle is damaged; make it again")
