# SPDX-License-Identifier: MIT
"""What file calls cost: small files one after the other, and how fast a big one passes."""

import contextlib
import http.client
import urllib.parse

from measure import Api, children, cpu_seconds, median_ms, private_kib, show, timed

SMALL = b"x" * 1000
BLOCK = bytes(1 << 20)


class Files:
    """Raw file calls of one sandbox on one connection."""

    def __init__(self, options, sandbox):
        url = urllib.parse.urlsplit(options.url)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=600)
        self.headers = {"X-API-Key": options.key}
        self.target = f"/sandboxes/{sandbox}/files/raw?path="

    def answer(self):
        answer = self.connection.getresponse()
        if answer.status != 200:
            raise SystemExit(f"files: {answer.status} {answer.read(300)!r}")
        return answer

    def put(self, path, data=SMALL):
        self.connection.request("PUT", self.target + path, body=data, headers=self.headers)
        self.answer().read()

    def put_big(self, path, blocks):
        headers = self.headers | {"Content-Length": str(blocks * len(BLOCK))}
        self.connection.request("PUT", self.target + path, body=(BLOCK for _ in range(blocks)), headers=headers)
        self.answer().read()

    def get(self, path):
        """How many bytes it had."""
        self.connection.request("GET", self.target + path, headers=self.headers)
        answer, room, size = self.answer(), memoryview(bytearray(len(BLOCK))), 0
        while got := answer.readinto(room):
            size += got
        return size


def passed(name, options, mib, work):
    """Prints the speed of it, and what it cost the server's processes (agents are not among them)."""
    pids = [options.pid] + children(options.pid)
    cpu, memory = cpu_seconds(pids), sum(private_kib(pid) for pid in pids)
    seconds = timed(work)
    show(name, f"{mib / seconds:.0f} MiB/s; server {(cpu_seconds(pids) - cpu) / mib * 1024:.2f} s CPU a GiB, "
         f"{sum(private_kib(pid) for pid in pids) - memory:+d} KiB private memory")


def bench_files(options):
    """Files of 1000 bytes, and one of --mib that is sent, fetched, and fetched where it is sparse."""
    api = Api(options)
    sandbox = api.create()
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: Api(options).delete(sandbox))  # that of before has long been idle then
        api.exec(sandbox, ["truncate", "-s", f"{options.mib}M", "/tmp/sparse"])
        files = Files(options, sandbox)
        spent = {"put": [], "get": [], "command": []}
        for number in range(options.count + 20):
            took = {"put": timed(lambda: files.put("/tmp/small")), "get": timed(lambda: files.get("/tmp/small")),
                    "command": timed(lambda: api.exec(sandbox, ["/bin/true"]))}
            if number >= 20:
                for name, seconds in took.items():
                    spent[name].append(seconds)
        put, get, command = (median_ms(spent[name]) for name in ("put", "get", "command"))
        show("file of 1000 bytes", f"put median {put:.2f} ms, get {get:.2f} ms; exec /bin/true in turn with them {command:.2f} ms")
        passed("big file, up", options, options.mib, lambda: files.put_big("/tmp/big", options.mib))
        passed("big file, down", options, options.mib, lambda: files.get("/tmp/big"))
        passed("big sparse file, down", options, options.mib, lambda: files.get("/tmp/sparse"))
