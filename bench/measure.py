# SPDX-License-Identifier: MIT
"""What all measurements share: a client, the costs of processes, the print of a figure."""

import http.client
import json
import os
import statistics
import time
import urllib.parse

TICKS = os.sysconf("SC_CLK_TCK")


class Api:
    """One keep-alive connection to whatever has a url and a key."""

    def __init__(self, place):
        url = urllib.parse.urlsplit(place.url)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=120)
        self.headers = {"X-API-Key": place.key}

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, body=data, headers=self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text)

    def text(self, path):
        self.connection.request("GET", path, headers=self.headers)
        return self.connection.getresponse().read().decode()

    def create(self):
        made = self.call("POST", "/sandboxes", {"image": "default", "memory": "256Mi"})["sandbox_id"]
        state = self.call("GET", f"/sandboxes/{made}/wait?timeout=60")
        if state["status"] != "ready":
            raise SystemExit(f"sandbox: {state}")
        return made

    def exec(self, sandbox, command):
        return self.call("POST", f"/sandboxes/{sandbox}/exec", {"command": command, "wait": True})

    def delete(self, sandbox):
        self.call("DELETE", f"/sandboxes/{sandbox}")


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as listed:
        return [int(word) for word in listed.read().split()]


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def private_kib(pid, fields=("Private_Clean", "Private_Dirty")):
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        return sum(int(line.split()[1]) for line in rollup if line.startswith(fields))


def median_ms(seconds):
    return statistics.median(seconds) * 1000


def show(name, text):
    print(f"{name:<34} {text}", flush=True)


def timed(work):
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
