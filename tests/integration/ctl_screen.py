"""A terminal that a program of a test runs in: a pseudo-terminal of its own, and what was seen on it."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time


def window(rows, cols):
    return struct.pack("HHHH", rows, cols, 0, 0)


class Screen:
    """Starts a program as the leader of a session on a fresh terminal."""

    def __init__(self, words, env, rows=24, cols=80, **fields):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, window(rows, cols))
        self.before = termios.tcgetattr(self.slave)
        self.seen = bytearray()
        self.mark = 0
        streams = {"stdin": self.slave, "stdout": self.slave, "stderr": self.slave} | fields
        self.process = subprocess.Popen(words, env=env | {"TERM": "xterm-256color"}, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0), **streams)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            os.close(fd)

    @property
    def text(self):
        return self.seen.decode(errors="replace")

    def hear(self, timeout):
        """Whether anything came."""
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        self.seen += os.read(self.master, 65536)
        return True

    def see(self, words, timeout=60):
        """Waits until the words stand behind those that were waited for before."""
        words = words if isinstance(words, bytes) else words.encode()
        deadline = time.monotonic() + timeout
        while (at := self.seen.find(words, self.mark)) < 0:
            assert self.hear(max(0, deadline - time.monotonic())), f"{words} not seen: {self.text[-2000:]!r}"
        self.mark = at + len(words)
        return self

    def type(self, keys):
        os.write(self.master, keys if isinstance(keys, bytes) else keys.encode())
        return self

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, window(rows, cols))

    def signal(self, number):
        self.process.send_signal(number)

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def end(self, timeout=60):
        """Takes what comes until the program has ended; its exit status as a shell tells it."""
        deadline = time.monotonic() + timeout
        while self.process.poll() is None:
            self.hear(0.05)
            assert time.monotonic() < deadline, f"still runs: {self.text[-2000:]!r}"
        while self.hear(0):
            pass
        code = self.process.returncode
        return code if code >= 0 else 128 - code

    def restored(self):
        """The terminal is as it was."""
        return termios.tcgetattr(self.slave) == self.before


TERM, ABRT, KILL = signal.SIGTERM, signal.SIGABRT, signal.SIGKILL
