"""Following a job over Server-Sent Events, on a connection of the test's own."""

import base64
import http.client
import json
import os
from pathlib import Path


class Stream:
    """GET /jobs/{id}/stream; iterates over (event, id, data)."""

    def __init__(self, server, job_id, headers=None, timeout=60, **offsets):
        self.server = server
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout)
        query = "&".join(f"{name}={value}" for name, value in offsets.items())
        self.connection.request("GET", f"/jobs/{job_id}/stream?{query}",
                                headers={"X-API-Key": server.key} | (headers or {}))
        self.port = self.connection.sock.getsockname()[1]
        self.response = self.connection.getresponse()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def close(self):
        self.response.close()
        self.connection.close()

    def __iter__(self):
        event, event_id, data = None, None, None
        while True:
            line = self.response.readline()
            if not line:
                return
            line = line.decode().rstrip("\n")
            if line.startswith("event: "):
                event = line[7:]
            elif line.startswith("id: "):
                event_id = line[4:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif line == "" and event is not None:
                yield event, event_id, data
                event, event_id, data = None, None, None

    def next_of(self, *wanted):
        """The next event of these kinds."""
        for event in self:
            if event[0] in wanted:
                return event
        raise AssertionError(f"the stream ended without {wanted}")

    def worker(self):
        """The pid of the worker that serves it."""
        return worker_of(self.server, self.port)


class Follower:
    """Puts events together, and knows where to go on."""

    def __init__(self):
        self.bytes = {"stdout": bytearray(), "stderr": bytearray()}
        self.last_id = None
        self.statuses = []
        self.exit = None

    def take(self, event, event_id, data):
        if event == "exit":
            self.exit = data
        elif event == "status":
            self.statuses.append(data["status"])
        else:
            assert data["offset"] == len(self.bytes[event]), "a gap, or something twice"
            self.bytes[event] += base64.b64decode(data["data"])
            self.last_id = event_id
            position = {"stdout": 0, "stderr": 1}[event]
            assert int(event_id.split(":")[position]) == len(self.bytes[event])
        return self.exit is not None

    def headers(self):
        return {"Last-Event-ID": self.last_id} if self.last_id else {}

    def follow(self, server, job_id, events=None):
        """Takes so many events, or all until the stream ends. Returns the worker's pid."""
        with Stream(server, job_id, self.headers()) as stream:
            assert stream.response.status == 200
            worker = stream.worker()
            for number, event in enumerate(stream, 1):
                if self.take(*event) or number == events:
                    break
            return worker


def worker_of(server, client_port):
    inode = None
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        field = line.split()
        if int(field[1].split(":")[1], 16) == server.port and int(field[2].split(":")[1], 16) == client_port:
            inode = field[9]
    for pid in server.processes()["worker"]:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                if os.readlink(f"/proc/{pid}/fd/{fd}") == f"socket:[{inode}]":
                    return pid
            except FileNotFoundError:
                pass
    return None


def output(box, job_id, stream="stdout", **params):
    return box.client.get(f"/jobs/{job_id}/output", params={"stream": stream} | params)


def feed(box, job_id, data=b"", eof=False, client=None, timeout=90):
    return (client or box.client).post(f"/jobs/{job_id}/stdin" + ("?eof=1" if eof else ""), content=data,
                                       timeout=timeout)
