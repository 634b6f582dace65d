"""A redis-server of a test's own, and several orchardd at it."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

from orchard_server import eventually
from redis_proxy import RedisProxy


class Redis:
    """Listens on a unix socket only. Nothing is written to disk unless `arguments` say so."""

    def __init__(self, *arguments):
        self.directory = Path(tempfile.mkdtemp(prefix="orchard-redis-", dir="/var/tmp"))
        self.directory.chmod(0o755)
        self.socket = self.directory / "redis.sock"
        self.arguments = arguments
        self.process = None
        self.proxies = []

    @property
    def url(self):
        return f"unix://{self.socket}"

    def start(self):
        self.socket.unlink(missing_ok=True)
        with open(self.directory / "redis.log", "ab") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "redis-server", "--port", "0", "--unixsocket", self.socket, "--unixsocketperm", "777", "--save", "",
                 "--appendonly", "no", "--dir", self.directory, *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        eventually(self.answers, 30, "redis-server answers")
        return self

    def answers(self):
        try:
            return self.socket.exists() and self.call("PING") == "PONG"
        except RuntimeError:  # it is reading what it has kept
            return False

    def kill(self):
        self.process.kill()
        self.process.wait(10)

    def freeze(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def proxy(self):
        self.proxies.append(RedisProxy(self.socket))
        return self.proxies[-1]

    def close(self):
        for proxy in self.proxies:
            proxy.close()
        if self.process is not None and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- looking --------------------------------------------------------
    def call(self, *words):
        """One command on a connection of its own; None while there is no server."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(10)
            try:
                connection.connect(str(self.socket))
            except OSError:
                return None
            parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
            connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(p), p) for p in parts))
            with connection.makefile("rb") as answer:
                return read_answer(answer)


class RedisPair:
    """A Redis with a copy of it, which is promoted when told to and may lag behind; what is said to the pair is said to who serves."""

    def __init__(self, *arguments):
        self.arguments = arguments
        self.proxies = []  # of the servers
        self.redis = Redis(*arguments)
        self.link = self.copy = None

    def start(self):
        if self.redis.process is None or self.redis.process.poll() is not None:
            self.redis.start()
        if self.copy is None:
            self.link = RedisProxy(self.redis.socket)
            self.copy = Redis("--replicaof", "127.0.0.1", str(self.link.port), "--repl-diskless-sync-delay", "0",
                              *self.arguments).start()
        return self

    def proxy(self):
        self.proxies.append(RedisProxy(self.redis.socket))
        return self.proxies[-1]

    def place(self, redis):
        """How much of the stream of replication it has."""
        role = redis.call("ROLE")
        return role[1] if role[0] == "master" else role[4] if role[3] == "connected" else -1

    def lag(self):
        """What is written from now on the copy does not get."""
        eventually(lambda: self.place(self.copy) >= self.place(self.redis), 30, "the copy is one")
        self.link.mute = True

    def fail_over(self):
        """The copy serves, and has a copy of its own."""
        old, link = self.redis, self.link
        old.kill()
        link.close()
        self.copy.call("REPLICAOF", "NO", "ONE")
        self.copy.arguments = self.arguments
        self.redis, self.copy = self.copy, None
        for proxy in self.proxies:
            proxy.target = str(self.redis.socket)
            proxy.cut()
        old.close()
        self.start()

    def kill(self):
        self.redis.kill()

    def freeze(self):
        self.redis.freeze()

    def thaw(self):
        self.redis.thaw()

    def call(self, *words):
        return self.redis.call(*words)

    def close(self):
        for proxy in [*self.proxies, self.link]:
            if proxy is not None:
                proxy.close()
        for redis in (self.redis, self.copy):
            if redis is not None:
                redis.close()


def read_answer(stream):
    line = stream.readline().rstrip(b"\r\n")
    kind, rest = line[:1], line[1:]
    if kind == b"+":
        return rest.decode()
    if kind == b"-":
        raise RuntimeError(rest.decode())
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if int(rest) < 0 else stream.read(int(rest) + 2)[:-2].decode(errors="replace")
    if kind == b"*":
        return None if int(rest) < 0 else [read_answer(stream) for _ in range(int(rest))]
    raise RuntimeError(f"no answer of Redis: {line!r}")
