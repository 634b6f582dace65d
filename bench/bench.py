#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures a running server, and the same work without it, in one run: medians and ratios.

    bench/bench.py --url http://127.0.0.1:8000 --key-file /var/lib/orchard/api-key --pid-file /run/orchard/orchardd.pid

Needs only Python's standard library; `health` also wants wrk. Everything goes to loopback and is bounded.
`exec-null` starts a server of its own from a build directory (as root, after `make bench`), whose agents run nothing; so do
`create-ratio` and `density`, with real agents:

    bench/bench.py --build build [--against OTHER_BUILD] exec-null
    bench/bench.py --build build --image /path/of/a/root create-ratio density

`cluster` starts several at a redis-server of its own, with agents that run nothing:

    bench/bench.py --build build cluster

`sdk` starts one as well, for as many sandboxes at once as `--boxes` says, by the Python SDK (with httpx and websockets installed):

    bench/bench.py --build build --image /path/of/a/root --boxes 500 sdk

`kubernetes` starts one that makes pods in a stand-in for a cluster, or in one that is given:

    bench/bench.py --build build [--kubeconfig FILE | --stand-in DIR] kubernetes

Figures drift with the machine: quote the ratios, and the medians with the machine they came from.
"""

import argparse
import contextlib
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

from cluster import bench_cluster
from density import bench_create_ratio, bench_density
from files import bench_files
from kubernetes import bench_kubernetes
from measure import Api, children, cpu_seconds, median_ms, private_kib, show, timed
from own_server import NullServer
from sdk import bench_sdk
from terminal import bench_terminal


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
    """exec in 64 sandboxes at once against 64 loops that spawn the same outside, in turns; CPU of the server per exec."""
    api = Api(options)
    sandboxes = [api.create() for _ in range(64)]
    pids = [options.pid] + children(options.pid)
    port = urllib.parse.urlsplit(options.url).port
    rounds = []
    for _ in range(options.rounds):
        bare = json.loads(subprocess.check_output(
            [f"{options.build}/bench/bench_agent", "-n", "64", "-s", str(options.seconds), "-", "/bin/true"]))
        before = cpu_seconds(pids)
        lines = subprocess.run(
            [f"{options.build}/bench/load", "-k", options.key, "-b", '{"command":["/bin/true"]}', "-c", "64", "-w", "0.2",
             "-s", str(options.seconds), str(port), "POST", "/sandboxes/@/exec"],
            input="\n".join(sandboxes) + "\n", stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
        ours = json.loads(lines[-1])
        if ours["failures"]:
            raise SystemExit(f"parallel: {ours['failures']} answers were not 200")
        rounds.append((ours["answers"] / ours["seconds"], ours["p50_us"] / 1000, ours["p99_us"] / 1000,
                       (cpu_seconds(pids) - before) / ours["answers"] * 1e6, bare["p50_us"] / 1000,
                       bare["p99_us"] / 1000, ours["p99_us"] / bare["p99_us"]))
    rate, p50, p99, cost, bare_p50, bare_p99, ratio = (statistics.median(column) for column in zip(*rounds))
    show("exec /bin/true, 64 sandboxes", f"{rate:.0f}/s, median {p50:.1f} ms, p99 {p99:.1f} ms, server {cost:.0f} us CPU an "
         f"exec; the same spawn outside: median {bare_p50:.1f} ms, p99 {bare_p99:.1f} ms; p99 ratio {ratio:.2f}")
    for sandbox in sandboxes:
        api.delete(sandbox)


def bench_exec_null(options):
    """Commands that cost nothing, 64 connections on 64 sandboxes: the server's own CPU per exec, builds in turn."""
    builds = [options.build] + ([options.against] if options.against else [])
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(NullServer(build, options.workers)) for build in builds]
        rounds = [[server.load(options.seconds) for server in servers] for _ in range(options.rounds)]
        for number, build in enumerate(builds):
            worker, all_of_it, rate, latency = (statistics.median(column) for column in
                                                zip(*(turn[number] for turn in rounds)))
            show(f"exec, null agents, {build}", f"workers {worker:.1f} us CPU an exec, all of the server {all_of_it:.1f} us, "
                 f"{rate:.0f}/s, median {latency:.2f} ms")
            kib = [private_kib(pid) for pid in servers[number].workers()]
            show("", f"a worker's private memory after it: {max(kib)} KiB")
        if options.against:
            ratios = [turn[0][0] / turn[1][0] for turn in rounds]
            show("", f"worker CPU, {builds[0]} / {builds[1]}: median {statistics.median(ratios):.3f}, "
                 f"{min(ratios):.3f} to {max(ratios):.3f} in {len(ratios)} pairs")


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
           "memory": bench_memory, "agent-start": bench_agent_start, "terminal": bench_terminal,
           "files": bench_files}
OWN_SERVER = {"exec-null": bench_exec_null, "create-ratio": bench_create_ratio, "density": bench_density,
              "kubernetes": bench_kubernetes, "cluster": bench_cluster, "sdk": bench_sdk}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--key-file", default="/var/lib/orchard/api-key")
    parser.add_argument("--pid-file", default="/run/orchard/orchardd.pid")
    parser.add_argument("--agent", help="the agent binary, for agent-start (default build/agent/orchard-agent)")
    parser.add_argument("--count", type=int, default=200, help="repetitions (default 200)")
    parser.add_argument("--seconds", type=int, default=3, help="length of a load run (default 3)")
    parser.add_argument("--build", default="build", help="exec-null, cluster, parallel: the build directory, after `make bench` (default build)")
    parser.add_argument("--against", help="exec-null, kubernetes: another build directory, measured in turn")
    parser.add_argument("--rounds", type=int, default=5, help="exec-null, cluster, parallel: load runs (default 5)")
    parser.add_argument("--workers", type=int, default=2, help="exec-null, cluster: worker processes (default 2)")
    parser.add_argument("--image", default="/var/cache/orchard-tests/debian",
                        help="create-ratio, density, sdk: the root directory of the sandboxes (default: the tests' Debian)")
    parser.add_argument("--mib", type=int, default=256, help="files: size of the big file (default 256)")
    parser.add_argument("--boxes", type=int, default=1000, help="density, kubernetes, sdk: sandboxes at once (default 1000)")
    parser.add_argument("--clients", type=int, default=16, help="density, kubernetes: connections (default 16)")
    parser.add_argument("--kubeconfig", help="kubernetes: of a cluster (default: a stand-in, which is slow itself)")
    known = BENCHES | OWN_SERVER
    parser.add_argument("--stand-in", help="kubernetes: a directory with the programs fakek8s and nullagent: a stand-in that is not")
    parser.add_argument("--pause", type=int, default=0, help="kubernetes: once more, one each so many ms")
    parser.add_argument("what", nargs="*", help=f"any of: {' '.join(known)} (default: all but {' '.join(OWN_SERVER)})")
    options = parser.parse_args()
    unknown = [name for name in options.what if name not in known]
    if unknown:
        parser.error(f"unknown: {' '.join(unknown)}; known: {' '.join(known)}")
    wanted = options.what or list(BENCHES)
    if any(name in BENCHES for name in wanted):
        with open(options.key_file) as key:
            options.key = key.read().strip()
        with open(options.pid_file) as pid:
            options.pid = int(pid.read())
    with open("/proc/cpuinfo") as cpus:
        model = next((line.split(":")[1].strip() for line in cpus if line.startswith("model name")), "?")
    print(f"# {os.cpu_count()} cores, {model}, Linux {os.uname().release}", flush=True)
    for name in wanted:
        known[name](options)


if __name__ == "__main__":
    sys.exit(main())
