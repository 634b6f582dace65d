"""The connections of a driver, each used by one request at a time.

A pool of httpx looks at each of its connections for each request, so that hundreds of requests at once cost their
square. Here a client of httpx is one connection, taken for a request and given back after it; the last one that was
used is used next.
"""

from __future__ import annotations

import os
from typing import Callable, Generic, TypeVar

H = TypeVar("H")
KEPT = 256  # that wait for a request


class Pool(Generic[H]):
    """Thread-safe. Belongs to the process that made it: its child has to leave the connections alone."""

    def __init__(self, make: Callable[[], H]) -> None:
        self.pid = os.getpid()
        self._make = make
        self._free: list[H] = []
        self._closed = False

    def take(self) -> H:
        try:
            return self._free.pop()
        except IndexError:
            return self._make()

    def give(self, connection: H) -> bool:
        """False: it is not kept, and is to be closed."""
        if self._closed or len(self._free) >= KEPT:
            return False
        self._free.append(connection)
        return True

    def drain(self) -> list[H]:
        """Those that are to be closed; the ones in use are told so by `give`."""
        self._closed = True
        free, self._free = self._free, []
        return free
