"""Sandboxes that this process made are deleted when it ends.

At exit of the interpreter, which KeyboardInterrupt comes to by itself, and when a signal would end it before. The
handler of that signal deletes and then does what was to be done without it. It is installed by the main thread with
its first sandbox, in front of the handler that is there; what is installed later takes its place. A child made by
fork leaves its parent's sandboxes alone and has the handlers that its parent had without us: one in Python would
have to wait for what the child is blocked in.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import threading
from typing import Any, Protocol

SECONDS = 10.0  # that a signal waits for what is deleted


class Owner(Protocol):
    def delete_own(self) -> None: ...


_owners: set[Owner] = set()  # they are small, and go with the process
_pid = 0
_before: dict[int, Any] = {}  # what was there when the first sandbox was made, by signal
_deleting = _thread.allocate_lock()


def watch(owner: Owner) -> None:
    """The owner's sandboxes go with the process."""
    global _pid, _owners
    if _pid != os.getpid():
        _pid, _owners = os.getpid(), set()
        atexit.register(_at_exit, _pid)
    _owners.add(owner)
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            _stand_before(number)


def _stand_before(number: int) -> None:
    there = signal.getsignal(number)
    if number in _before and there is not signal.SIG_DFL:  # the latter is also what asyncio leaves
        return
    _before[number] = there
    if there is not None and there is not signal.SIG_IGN and not _interrupts(there):
        signal.signal(number, _on_signal)


def _interrupts(handler: Any) -> bool:
    """It is Python's own way from SIGINT to KeyboardInterrupt, or that of asyncio.run."""
    function = getattr(handler, "func", handler)
    return handler is signal.default_int_handler or getattr(function, "__module__", None) == "asyncio.runners"


def _after_fork() -> None:
    for number, before in _before.items():
        if signal.getsignal(number) is _on_signal:
            signal.signal(number, before)
    _before.clear()
    if _deleting.locked():
        _deleting.release()


os.register_at_fork(after_in_child=_after_fork)


def _at_exit(pid: int) -> None:
    if pid == os.getpid():
        _delete_all()


def _delete_all() -> None:
    for owner in list(_owners):
        owner.delete_own()


def _on_signal(number: int, frame: Any) -> None:
    before = _before.get(number, signal.SIG_DFL)
    if os.getpid() == _pid:
        _delete_in_time()
    if callable(before):
        before(number, frame)
        return
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    raise SystemExit(128 + number)  # the first process of a container has no default action


def _delete_in_time() -> None:
    """By a thread, which can wait for locks of the code that was interrupted; a second signal does not wait for it."""
    if not _deleting.acquire(blocking=False):
        return

    def work() -> None:
        try:
            _delete_all()
        finally:
            _deleting.release()

    try:
        _thread.start_new_thread(work, ())  # threading's own has a lock that may be held just now
    except RuntimeError:
        _deleting.release()  # the interpreter is ending, and starts no thread
        return
    if _deleting.acquire(timeout=SECONDS):
        _deleting.release()
