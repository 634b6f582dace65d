# SPDX-License-Identifier: MIT
"""Sandboxes as pods: what the server's own processes use for each, against a cluster that costs nothing of it."""

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from density import in_parallel, percentile, seconds_until, show_times
from measure import Api, cpu_seconds, median_ms, private_kib, show
from own_server import OwnServer
from stand_in import StandIn

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


async def call(streams, key, method, path, body=None):
    reader, writer = streams
    data = b"" if body is None else json.dumps(body).encode()
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: bench\r\nX-API-Key: {key}\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    text = await reader.readexactly(length)
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{method} {path}: {head[:40]!r} {text[:300]!r}")
    return json.loads(text)


async def live(server, name, spent):
    """A client that wants one sandbox: when it was asked for, when that was answered, when it was ready."""
    streams = await asyncio.open_connection("127.0.0.1", server.port)
    began = time.monotonic()
    await call(streams, server.key, "POST", "/sandboxes", {"image": "python:3.11", "sandbox_id": name, "memory": "256Mi", "cpu": 1})
    answered = time.monotonic()
    state = await call(streams, server.key, "GET", f"/sandboxes/{name}/wait?timeout=110")
    if state["status"] != "ready":
        raise SystemExit(f"{state}")
    spent[name] = began, answered, time.monotonic()
    streams[1].close()


async def live_all(server, names, pause):
    spent, tasks = {}, []
    for name in names:
        tasks.append(asyncio.create_task(live(server, name, spent)))
        await asyncio.sleep(pause)
    await asyncio.gather(*tasks)
    return spent


def show_lives(spent, cluster):
    began = min(times[0] for times in spent.values())
    ends = [times[2] for times in spent.values()]
    show_times("create, to the answer", [answered - asked for asked, answered, _ in spent.values()],
               max(answered for _, answered, _ in spent.values()) - began)
    show("all ready", f"{len(ends)}, {max(ends) - began:.1f} s after the first was asked for")
    for step, told in (cluster.times(len(ends)) if cluster else {}).items():
        late = [times[2] - told[name] for name, times in spent.items()]
        show("ready, after the cluster said " + step, f"median {median_ms(late):.1f} ms, p99 {percentile(late, 0.99):.1f} ms")


def is_empty(api):
    return not api.call("GET", "/sandboxes?limit=1")["sandboxes"]


def run_lives(server, options, cluster, pause):
    pids, api = server.pids(), Api(server)
    names = [f"pod-{server.process.pid}-{number}-{pause * 1000:.0f}" for number in range(options.boxes)]
    show("", f"{len(names)} sandboxes, " + (f"one each {pause * 1000:.0f} ms" if pause else "at once")
         + f", load average {os.getloadavg()[0]:.1f}")
    show_memory("server, idle", pids)
    before = costs(pids)
    spent = asyncio.run(live_all(server, names, pause))
    seconds_until(lambda: False, SETTLED)
    show_lives(spent, cluster)
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
    with contextlib.ExitStack() as stack:
        kubeconfig, cluster = options.kubeconfig, None
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="orchard-bench-")))
        directory.chmod(0o755)
        if options.stand_in is not None:
            cluster = StandIn(options.stand_in, directory)
            stack.callback(cluster.close)
            kubeconfig = cluster.kubeconfig
        elif kubeconfig is None:
            fake = FakeCluster(directory)
            stack.callback(fake.close)
            kubeconfig = fake.kubeconfig
        for build in [options.build] + ([options.against] if options.against else []):
            show("", build)
            with OwnServer(build, driver="kubernetes", in_cluster="off", kubeconfig=kubeconfig,
                           max_sandboxes=options.boxes + 10) as server:
                run_lives(server, options, cluster, 0)
                if options.pause:
                    run_lives(server, options, cluster, options.pause / 1000)
