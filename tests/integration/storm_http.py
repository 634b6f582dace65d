"""A small HTTP/1.1 client for load: one kept connection, one request at a time, and the truth about a cut."""

import asyncio
import json


class Cut(Exception):
    """The connection broke. `sent`: the request may have arrived."""

    def __init__(self, sent):
        super().__init__("cut")
        self.sent = sent


class Connection:
    def __init__(self, port, key):
        self.port = port
        self.key = key
        self.reader = self.writer = None

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None

    async def request(self, method, path, body=None, timeout=120.0, key=None):
        """(status, decoded body); Cut when no complete answer came. A silence over `timeout` is a TimeoutError."""
        try:
            return await asyncio.wait_for(self._request(method, path, body, key), timeout)
        except asyncio.TimeoutError:
            self.close()
            raise

    async def _request(self, method, path, body, key):
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: storm\r\nX-API-Key: {self.key}\r\nContent-Length: {len(data)}\r\n"
        if key:
            head += f"Idempotency-Key: {key}\r\n"
        sent = False
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=8 << 20)
            sent = True
            self.writer.write(head.encode() + b"\r\n" + data)
            answer = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(answer.split("content-length:", 1)[1].split("\r\n", 1)[0])
            payload = await self.reader.readexactly(length)
        except (OSError, EOFError) as error:
            self.close()
            raise Cut(sent) from error
        if "\r\nconnection: close" in answer:
            self.close()
        status = int(answer.split(" ", 2)[1])
        try:
            return status, json.loads(payload)
        except ValueError:
            return status, payload.decode(errors="replace")
