"""Do work in a thread of low priority, so that no sweep waits for it."""

from __future__ import annotations

import os
import queue
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

NICE = 10
"""Nice value (scheduling priority) of the thread.  The routing of the next sweep has a higher priority."""

Item = TypeVar("Item")


class LastItemThread(Generic[Item]):
    """A thread that processes items from a queue.  If several items are queued, it processes only the last of them.

    Parameters
    ----------
    name
        Name of the thread.
    process
        Function that processes an item.  The thread calls it.  An exception ends only the work on the item.
    """

    def __init__(self, name: str, process: Callable[[Item], None]) -> None:
        self._process = process
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def put(self, item: Item) -> None:
        """Queue an item."""
        self._items.put(item)

    def _run(self) -> None:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        while True:
            item = self._items.get()
            with suppress(queue.Empty):
                while True:
                    item = self._items.get_nowait()
            try:
                self._process(item)
            except Exception:
                traceback.print_exc()
            # Free the memory of the item, which is large.  The thread may wait long for the next item.
            del item
