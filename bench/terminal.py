# SPDX-License-Identifier: MIT
"""What a terminal costs: the round trip of a key, and opening sessions."""

import base64
import contextlib
import json
import os
import socket
import struct
import time
import urllib.parse

from measure import Api, show


class Terminal:
    """A WebSocket client of just what is needed, so that it costs little itself."""

    def __init__(self, options, sandbox, cmd):
        url = urllib.parse.urlsplit(options.url)
        self.socket = socket.create_connection((url.hostname, url.port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = self.socket.makefile("rb")
        nonce = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            (f"GET /sandboxes/{sandbox}/exec/pty HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
             f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {nonce}\r\nX-API-Key: {options.key}\r\n\r\n").encode())
        status = self.input.readline()
        if b" 101 " not in status:
            raise RuntimeError(f"refused: {status.decode().strip()}")
        while self.input.readline() != b"\r\n":
            pass
        self.send(type="init", cmd=cmd)

    def send(self, **message):
        body = json.dumps(message).encode()
        head = bytes([0x81, 0x80 | len(body)]) if len(body) < 126 else b"\x81\xfe" + struct.pack(">H", len(body))
        self.socket.sendall(head + bytes(4) + body)  # a mask of zeros is a mask

    def hear(self):
        """The next message; pings are left unanswered, nothing here lasts that long."""
        while True:
            first, size = self.input.read(2)
            if size == 126:
                size = struct.unpack(">H", self.input.read(2))[0]
            body = self.input.read(size)
            if first == 0x81:
                return json.loads(body)
            if first & 0x0F == 8:
                raise RuntimeError(f"closed: {body[2:].decode()}")

    def see(self, count):
        seen = 0
        while seen < count:
            message = self.hear()
            if message["type"] == "stdout":
                seen += len(base64.b64decode(message["data"]))

    def close(self):
        self.socket.close()


def bench_terminal(options):
    """The round trip of one key through a raw terminal, and opening a session until its program has written."""
    api = Api(options)
    echo = ["sh", "-c", "stty raw -echo; echo R; exec cat"]
    key = base64.b64encode(b"k").decode()
    sandbox = api.create()
    with contextlib.ExitStack() as stack:
        stack.callback(api.delete, sandbox)
        opened, trips = [], []
        for _ in range(min(options.count, 100)):
            start = time.perf_counter()
            terminal = Terminal(options, sandbox, echo)
            stack.callback(terminal.close)
            terminal.see(2)
            opened.append(time.perf_counter() - start)
        for _ in range(options.count * 5):
            start = time.perf_counter()
            terminal.send(type="stdin", data=key)
            terminal.see(1)
            trips.append(time.perf_counter() - start)
    for name, times in (("open", opened), ("key", trips)):
        times.sort()
        show(f"terminal {name}", f"median {times[len(times) // 2] * 1000:.2f} ms, "
             f"p99 {times[int(len(times) * 0.99)] * 1000:.2f} ms ({len(times)} times, {len(opened)} open at the end)")
