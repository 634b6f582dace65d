#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures a running server, and the same work without it, in one run: medians and ratios.

    bench/bench.py --url http://127.0.0.1:8000 --key-file /var/lib/orchard/api-key --pid-file /run/orchard/orchardd.pid

Needs only Python's standard library; `health` also wants wrk. Everything goes to loopback and is bounded.
Figures drift with the machine: quote the ratios, and the medians with the machine they came from.
"""

import argparse
import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

TICKS = os.sysconf("SC_CLK_TCK")


class Api:
    """One keep-alive connection."""

    def __init__(self, options):
        url = urllib.parse.urlsplit(options.url)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=120)
        self.headers = {"X-API-Key": options.key}

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, body=data, headers=self.headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text)

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


def bench_health(options):
    """CPU of all server processes per keep-alive GET /health."""
    if not shutil.which("wrk"):
        show("health", "skipped: wrk is not installed")
        return
    pids = [options.pid] + children(options.pid)
    for connections in (16, 256):
        before = cpu_seconds(pids)
        out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{options.seconds}", options.url + "/health"],
                             capture_output=True, text=True, check=True).stdout
        spent = cpu_seconds(pids) - before
        count = int(next(line.split()[0] for line in out.splitlines() if "requests in" in line))
        show(f"GET /health, {connections} connections",
             f"{spent / count * 1e6:.1f} us CPU a request, {count / options.seconds:.0f}/s")


def outside(argv):
    pid = os.posix_spawn(argv[0], argv, os.environ, file_actions=[
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
    os.waitpid(pid, 0)


def bench_exec(options):
    """`true` in a sandbox against the same spawn outside, in turn."""
    api = Api(options)
    sandbox = api.create()
    for name, command, argv in (("shell (bash -c true)", "true", ["/bin/bash", "-c", "true"]),
                                ("argv (/bin/true)", ["/bin/true"], ["/bin/true"])):
        inside, without = [], []
        for number in range(options.count + 20):
            spent = timed(lambda: api.exec(sandbox, command)), timed(lambda: outside(argv))
            if number >= 20:
                inside.append(spent[0])
                without.append(spent[1])
        ratio = statistics.median(a / b for a, b in zip(inside, without))
        show(f"exec {name}", f"median {median_ms(inside):.2f} ms, outside {median_ms(without):.2f} ms, ratio {ratio:.2f}")
    api.delete(sandbox)


def bench_parallel(options):
    """exec in 64 sandboxes at once: throughput, and CPU of the server's own processes per exec."""
    api = Api(options)
    sandboxes = [api.create() for _ in range(64)]
    pids = [options.pid] + children(options.pid)
    latencies = []

    def work(sandbox):
        own = Api(options)
        for _ in range(options.count // 10):
            latencies.append(timed(lambda: own.exec(sandbox, ["/bin/true"])))
    before, began = cpu_seconds(pids), time.perf_counter()
    with ThreadPoolExecutor(64) as pool:
        list(pool.map(work, sandboxes))
    spent, wall = cpu_seconds(pids) - before, time.perf_counter() - began
    latencies.sort()
    show("exec /bin/true, 64 sandboxes", f"{len(latencies) / wall:.0f}/s, median {median_ms(latencies):.1f} ms, p99 "
         f"{latencies[int(len(latencies) * .99)] * 1000:.1f} ms, server {spent / len(latencies) * 1e6:.0f} us CPU an exec")
    for sandbox in sandboxes:
        api.delete(sandbox)


def bench_create(options):
    """create to ready, and delete, one after the other."""
    api = Api(options)
    creates, deletes = [], []
    for _ in range(options.count // 4):
        made = []
        creates.append(timed(lambda: made.append(api.create())))
        deletes.append(timed(lambda: api.delete(made[0])))
    show("create to ready", f"median {median_ms(creates):.2f} ms")
    show("delete (answer)", f"median {median_ms(deletes):.2f} ms")


def bench_agent_start(options):
    """From spawning an agent to its first accepted connection, outside any sandbox."""
    agent = options.agent or os.environ.get("AGENT_PATH", "build/agent/orchard-agent")
    if not os.path.exists(agent):
        show("agent, start to listening", f"skipped: no {agent}; name it with --agent")
        return
    with tempfile.NamedTemporaryFile("w", suffix=".json") as config:
        json.dump({"sandbox_id": "bench", "sandbox_uid": "00000000-0000-4000-8000-000000000000", "token": "t" * 64,
                   "env": [], "user": "", "working_dir": "/", "cgroup_fd": -1, "oom_fd": -1}, config)
        config.flush()
        spent = []
        for _ in range(50):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                address = probe.getsockname()
            began = time.perf_counter()
            pid = os.posix_spawn(agent, [agent, "--listen", f"127.0.0.1:{address[1]}", "--config", config.name], {})
            deadline = began + 5
            while time.perf_counter() < deadline:
                with socket.socket() as client:
                    if client.connect_ex(address) == 0:
                        break
            spent.append(time.perf_counter() - began)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    show("agent, start to listening", f"median {median_ms(spent):.2f} ms, {os.path.getsize(agent)} bytes with symbols")


def bench_memory(options):
    """Private memory of an idle agent, and of the server's processes."""
    api = Api(options)
    sandbox = api.create()
    api.exec(sandbox, "true")
    agent = newest_agent(options.pid)
    # All agents share the pages of one binary; only what is anonymous comes with each.
    show("agent, private memory idle", f"{private_kib(agent, ('Anonymous:',))} KiB" if agent else "skipped: no agent found")
    total = sum(private_kib(pid) for pid in [options.pid] + children(options.pid))
    show("server, private memory", f"{total} KiB in {1 + len(children(options.pid))} processes")
    api.delete(sandbox)


def newest_agent(server):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as comm:
                if comm.read().strip() == "orchard-agent":
                    found.append(int(pid))
        except OSError:
            pass
    return max(found, default=None)


BENCHES = {"health": bench_health, "exec": bench_exec, "parallel": bench_parallel, "create": bench_create,
           "memory": bench_memory, "agent-start": bench_agent_start}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key-file", default="/var/lib/orchard/api-key")
    parser.add_argument("--pid-file", default="/run/orchard/orchardd.pid")
    parser.add_argument("--agent", help="the agent binary, for agent-start (default build/agent/orchard-agent)")
    parser.add_argument("--count", type=int, default=200, help="repetitions (default 200)")
    parser.add_argument("--seconds", type=int, default=3, help="length of a load run (default 3)")
    parser.add_argument("what", nargs="*", help=f"any of: {' '.join(BENCHES)} (default: all)")
    options = parser.parse_args()
    unknown = [name for name in options.what if name not in BENCHES]
    if unknown:
        parser.error(f"unknown: {' '.join(unknown)}; known: {' '.join(BENCHES)}")
    with open(options.key_file) as key:
        options.key = key.read().strip()
    with open(options.pid_file) as pid:
        options.pid = int(pid.read())
    with open("/proc/cpuinfo") as cpus:
        model = next((line.split(":")[1].strip() for line in cpus if line.startswith("model name")), "?")
    print(f"# {os.cpu_count()} cores, {model}, Linux {os.uname().release}", flush=True)
    for name in options.what or BENCHES:
        BENCHES[name](options)


if __name__ == "__main__":
    sys.exit(main())
