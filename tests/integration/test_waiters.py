"""Thousands wait for the end of one job: it costs a descriptor each, no time while they wait, and all hear of it."""

import asyncio
import os
import resource
import time

from orchard_server import eventually
from storm import open_files
from storm_http import Connection

WAITERS = 5000
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids):
    spent = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        spent += int(fields[11]) + int(fields[12])
    return spent / TICKS


def metric(server, name):
    lines = server.client.get("/metrics").text.splitlines()
    return float(next(line.rsplit(" ", 1)[1] for line in lines if line.startswith(name + " ")))


async def wait_all(server, job_id, meanwhile):
    connections = [Connection(server.port, server.key) for _ in range(WAITERS)]
    try:
        answers = asyncio.gather(*(one.request("GET", f"/jobs/{job_id}/wait?timeout=200") for one in connections))
        await asyncio.to_thread(meanwhile)
        return await answers
    finally:
        for one in connections:
            one.close()


def test_five_thousand_waiters_of_one_job_wake_and_cost_nothing_before(make_server, busybox):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    server = make_server(workers=3, default_image=busybox).start()
    box = server.create()
    box.out("mkfifo /go")
    job = box.start("read word < /go; echo $word")
    box.wait_running(job)
    workers = server.processes()["worker"]
    before = {pid: open_files(pid) for pid in workers}

    def meanwhile():
        eventually(lambda: metric(server, "orchard_waiters") == WAITERS, 100, "all wait")
        grown = [open_files(pid) - before[pid] for pid in workers]
        assert sum(grown) <= WAITERS + 64, grown
        assert sum(count > WAITERS / 50 for count in grown) >= 2, f"one worker has them all: {grown}"
        # Two seconds, as the server counts them.
        began, spent = time.monotonic(), cpu_seconds(workers)
        assert box.client.get(f"/jobs/{job}/wait", params={"timeout": 2}).json()["status"] == "running"
        spent = cpu_seconds(workers) - spent
        assert spent < (time.monotonic() - began) / 10, f"{spent} s of CPU for waiting"
        box.out("echo now > /go", lane="other")

    answers = asyncio.run(wait_all(server, job, meanwhile))
    assert len(answers) == WAITERS
    assert all(status == 200 and (answer["status"], answer["stdout"]) == ("succeeded", "now\n")
               for status, answer in answers)
    assert server.processes()["worker"] == workers
    eventually(lambda: all(open_files(pid) <= before[pid] + 16 for pid in workers), 30, "descriptors given back")
    assert metric(server, "orchard_waiters") == 0
