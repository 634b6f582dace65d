"""How jobs ended, told to other servers although something went wrong just then."""

import os
import signal

import pytest

from files import put
from orchard_server import eventually


@pytest.fixture
def pair(redis, make_server):
    servers = [make_server(use_redis=True, redis_url=redis.url, workers=1).start() for _ in range(2)]
    for server in servers:
        eventually(lambda s=server: s.client.get("/ready").status_code == 200, 30, "Redis serves it")
    return servers


# faults.md B085: a result that only this server knows, and the process that was to tell it is gone
def test_an_end_is_told_although_its_process_has_gone(redis, pair):
    here, there = pair
    box = here.create()
    job = box.start("while [ ! -e /go ]; do sleep 0.05; done; echo z")
    box.wait_running(job)
    eventually(lambda: there.client.get(f"/jobs/{job}").json()["status"] == "running", 30, "it is known elsewhere")
    redis.freeze()
    try:
        eventually(lambda: here.client.get("/ready").status_code == 503, 30, "Redis is away")
        put(box, "/go", b"")
        eventually(lambda: here.client.get(f"/jobs/{job}").json()["status"] == "succeeded", 30, "it has ended here")
        for pid in here.processes()["worker"]:
            os.kill(pid, signal.SIGKILL)
    finally:
        redis.thaw()
    eventually(lambda: there.client.get(f"/jobs/{job}").json().get("stdout") == "z\n", 60, "it is told")
    server = (here.state_dir / "replica-id").read_text().strip()
    assert redis.call("SCARD", f"orchard:jobs:{server}") == 0


# What Redis has forgotten of a job does not stay in its list of live ones
def test_a_forgotten_job_is_not_named_for_ever(redis, pair):
    here, _ = pair
    server = (here.state_dir / "replica-id").read_text().strip()
    redis.call("SADD", f"orchard:jobs:{server}", "11111111-1111-4111-8111-111111111111", "x" * 5000)
    redis.freeze()
    try:
        eventually(lambda: here.client.get("/ready").status_code == 503, 30, "Redis is away")
    finally:
        redis.thaw()
    eventually(lambda: redis.call("SCARD", f"orchard:jobs:{server}") == 0, 60, "it is taken out")
