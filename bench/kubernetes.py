# SPDX-License-Identifier: MIT
"""Sandboxes as pods: what the server's own processes use for each, against a cluster that costs nothing of it."""

import contextlib
import os
import sys
import tempfile
from pathlib import Path

from density import in_parallel, seconds_until, show_times
from measure import Api, cpu_seconds, private_kib, show
from own_server import OwnServer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/integration"))
from fake_cluster import FakeCluster  # noqa: E402

SETTLED = 1.0  # seconds until idle processes have put down what they do after a create


def name_of(pid):
    with open(f"/proc/{pid}/comm") as comm:
        return comm.read().strip().removeprefix("orchard-")


def show_cpu(name, before, after, count):
    each = {pid: (after[pid] - before[pid]) / count * 1000 for pid in before}
    shares = ", ".join(f"{name_of(pid)} {spent:.2f}" for pid, spent in each.items() if spent >= 0.005)
    show(name, f"{sum(each.values()):.2f} ms of processor time: {shares}")


def show_memory(name, pids):
    sizes = {pid: private_kib(pid, ("Pss:",)) for pid in pids}
    show(name, f"{sum(sizes.values()) / 1024:.1f} MiB (proportional): "
         + ", ".join(f"{name_of(pid)} {size / 1024:.1f}" for pid, size in sizes.items()))


def costs(pids):
    return {pid: cpu_seconds([pid]) for pid in pids}


def ask_for(api, name):
    api.call("POST", "/sandboxes", {"image": "python:3.11", "sandbox_id": name, "memory": "256Mi", "cpu": 1})


def wait_for(api, name):
    state = api.call("GET", f"/sandboxes/{name}/wait?timeout=110")
    if state["status"] != "ready":
        raise SystemExit(f"{state}")


def is_empty(api):
    return not api.call("GET", "/sandboxes?limit=1")["sandboxes"]


def run_lives(server, options):
    pids, api = server.pids(), Api(server)
    names = [f"pod-{os.getpid()}-{number}" for number in range(options.boxes)]
    show_memory("server, idle", pids)
    before = costs(pids)
    show_times("create, to the answer", *in_parallel(server, options.clients, names, ask_for))
    spent, total = in_parallel(server, options.clients, names, wait_for)
    show("all ready", f"{len(spent)} of {len(names)}, {total:.1f} s after the last was asked for")
    seconds_until(lambda: False, SETTLED)
    show_cpu("a create, the server's own", before, costs(pids), len(names))
    show_memory(f"server, with {len(names)} sandboxes", pids)
    before = costs(pids)
    in_parallel(server, options.clients, names, lambda api, name: api.delete(name))
    gone = seconds_until(lambda: is_empty(api))
    show("all gone", f"{gone:.1f} s after the last answer" if gone is not None else "not within two minutes")
    seconds_until(lambda: False, SETTLED)
    show_cpu("a delete, the server's own", before, costs(pids), len(names))


def bench_kubernetes(options):
    """Many at once. The times are mostly the stand-in's: what counts is what the server's processes use."""
    show("", f"{options.boxes} sandboxes, {options.clients} connections, load average {os.getloadavg()[0]:.1f}")
    with contextlib.ExitStack() as stack:
        kubeconfig = options.kubeconfig
        if kubeconfig is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orchard-bench-")))
            directory.chmod(0o755)
            cluster = FakeCluster(directory)
            stack.callback(cluster.close)
            kubeconfig = cluster.kubeconfig
        server = stack.enter_context(OwnServer(
            options.build, driver="kubernetes", in_cluster="off", kubeconfig=kubeconfig, max_sandboxes=options.boxes + 10))
        run_lives(server, options)
