"""Sandboxes that this process made are deleted when it ends.

At exit of the interpreter, which SIGINT comes to by itself. SIGTERM would end the process at once: where
nobody handles it, it becomes an orderly exit with status 143. A handler does no more than that, what others
installed stays, and a child made by fork leaves its parent's sandboxes alone and ends at once, as others' do: a
handler in Python would have to wait for what the child is blocked in.
"""

from __future__ import annotations

import atexit
import os
import signal
import threading
import weakref
from typing import Any, Protocol


class Owner(Protocol):
    def delete_own(self) -> None: ...


_owners: weakref.WeakSet[Any] = weakref.WeakSet()
_pid = 0


def watch(owner: Owner) -> None:
    """The owner's sandboxes go with the process."""
    global _pid, _owners
    if _pid != os.getpid():
        _pid, _owners = os.getpid(), weakref.WeakSet()
        atexit.register(_at_exit, _pid)
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _on_term)
    _owners.add(owner)


def _after_fork() -> None:
    if signal.getsignal(signal.SIGTERM) is _on_term:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=_after_fork)


def _at_exit(pid: int) -> None:
    if pid == os.getpid():
        for owner in list(_owners):
            owner.delete_own()


def _on_term(number: int, frame: Any) -> None:
    if os.getpid() == _pid:
        raise SystemExit(128 + number)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
