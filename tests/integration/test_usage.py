"""What a sandbox takes of the host, as GET /sandboxes/{id} tells it."""

import os
import signal

import pytest

from orchard_server import eventually

MIB = 1 << 20


def usage(sandbox):
    return sandbox.client.get(sandbox.url).json()["usage"]


def test_usage_follows_what_the_sandbox_does(server):
    fresh = server.create(disk="100Mi")  # the smaller, the sooner it is measured again
    before = eventually(lambda: usage(fresh)["disk_bytes"] is not None and usage(fresh), what="the disk is measured")
    assert set(before) == {"cpu_s", "memory_bytes", "memory_peak_bytes", "pids", "disk_bytes"}
    assert before["pids"] >= 1 and before["memory_bytes"] > 0 and before["cpu_s"] >= 0

    fresh.exec("head -c 8M /dev/zero >/big; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done", timeout_seconds=120)
    eventually(lambda: usage(fresh)["disk_bytes"] >= before["disk_bytes"] + 8 * MIB, 60, lambda: usage(fresh))
    after = usage(fresh)
    assert after["cpu_s"] > before["cpu_s"]
    peak = after["memory_peak_bytes"]  # a kernel before 5.19 tells none in its v2 tree
    assert peak is None or peak >= max(before["memory_peak_bytes"], before["memory_bytes"])

    job = fresh.start("sleep 600 & sleep 600 & wait", timeout_seconds=600)
    eventually(lambda: usage(fresh)["pids"] >= before["pids"] + 3, what=lambda: usage(fresh))
    fresh.client.post(f"/jobs/{job}/cancel")
    eventually(lambda: usage(fresh)["pids"] <= before["pids"], what=lambda: usage(fresh))
    fresh.delete()


def test_only_who_looks_at_one_is_told(server, fresh):
    listed = server.client.get("/sandboxes").json()["sandboxes"]
    assert listed and not any("usage" in item for item in listed)
    assert "usage" not in fresh.client.get(fresh.url + "/wait").json()
    other = server.client.get("/sandboxes/no-such-sandbox")
    assert other.status_code == 404 and "usage" not in other.json()


def test_of_what_failed_nothing_is_told(server):
    box = server.create()
    os.kill(box.agent_pid(), signal.SIGKILL)
    state = eventually(lambda: (s := box.client.get(box.url).json())["status"] == "failed" and s, what="it failed")
    assert state["usage"] is None
    box.delete()


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_a_look_does_not_hang_on_the_spawner(make_server, busybox, how):
    server = make_server(default_image=busybox).start()
    box = server.create()
    [spawner] = server.processes()["spawner"]
    os.kill(spawner, how)
    try:
        answers = [box.client.get(box.url) for _ in range(3)]
    finally:
        if how == signal.SIGSTOP:
            os.kill(spawner, signal.SIGCONT)
    assert all(answer.status_code == 200 and answer.json()["ready"] for answer in answers)
    if how == signal.SIGSTOP:
        assert [answer.json()["usage"] for answer in answers] == [None] * 3
    eventually(lambda: usage(box), what="the next spawner, or this one, tells again")
    server.close()
