"""How much a sandbox may write, and what happens when there is no more room.

Project quotas need a kernel that has them: tests/vm checks those.
"""
import os
import signal
import subprocess

import pytest

from orchard_server import Sandbox, eventually


@pytest.fixture
def small_disk(work_dir):
    """A filesystem of 64 MiB, ext4."""
    image, mount = work_dir / "disk.img", work_dir / "disk"
    mount.mkdir()
    subprocess.run(["truncate", "-s", "64M", image], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    mount.chmod(0o755)
    yield mount
    subprocess.run(["umount", "-l", mount], check=False)
    image.unlink()
    mount.rmdir()


def created(server, **fields):
    return server.client.post("/sandboxes", json={"image": "default", **fields})


def started(server):
    """A ready sandbox, or None when there is no room for one yet."""
    answer = created(server)
    if answer.status_code != 200:
        return None
    sandbox = Sandbox(server, answer.json()["sandbox_id"])
    state = sandbox.client.get(f"{sandbox.url}/wait?timeout=30").json()
    if state["status"] == "ready":
        return sandbox
    assert "space" in state["status_message"], state
    sandbox.delete()
    return None


def written(server):
    """A sandbox that had room to be made and to write, or None; what has no room says so."""
    sandbox = started(server)
    if sandbox is None:
        return None
    answer = sandbox.post_exec("echo again >/new && cat /new")
    if answer.status_code == 200 and answer.json()["status"] == "succeeded":
        assert answer.json()["stdout"] == "again\n", answer.text
        return sandbox
    sandbox.delete()
    if answer.status_code == 200:
        assert "disk is full" in answer.json()["error"], answer.text
    else:
        assert answer.json()["code"] == "insufficient_storage", answer.text
    return None


def test_disk_is_checked_and_shown(make_server):
    server = make_server(max_sandbox_disk="20Gi").start()
    try:
        assert created(server).json()["disk"] == "10Gi"
        answer = created(server, disk="512Mi").json()
        assert answer["disk"] == "512Mi"
        assert server.client.get(f"/sandboxes/{answer['sandbox_id']}").json()["disk"] == "512Mi"
        assert created(server, disk=1 << 30).json()["disk"] == "1Gi"
        for wrong in ("lots", -1, "1Ki", True, "21Gi", 0):
            refused = created(server, disk=wrong)
            assert refused.status_code == 422 and '"disk"' in refused.text, (wrong, refused.text)
        assert "max_sandbox_disk" in created(server, disk="21Gi").text
    finally:
        server.close()


def test_disk_without_a_limit(make_server):
    server = make_server(sandbox_disk=0).start()
    try:
        assert created(server).json()["disk"] is None
        assert created(server, disk="1Gi").json()["disk"] == "1Gi"
        assert created(server, disk=0).json()["disk"] is None
    finally:
        server.close()


def test_all_of_the_disk_is_used_up(make_server, small_disk, busybox):
    server = make_server(state_dir=small_disk / "state", default_image=busybox, sandbox_disk=0).start()
    try:
        box = server.create()
        job = box.exec("head -c 100000000 /dev/zero >/big")
        assert job["status"] == "failed" and job["verdict"] == "exited", job
        assert "disk is full" in job["error"], job
        answer = created(server)
        if answer.status_code == 200:
            state = server.client.get(f"/sandboxes/{answer.json()['sandbox_id']}/wait?timeout=30").json()
            assert state["status"] == "failed" and "space" in state["status_message"], state
        else:
            assert answer.status_code == 507, answer.text
        job = box.post_exec("rm /big")  # a job is written down before it runs, on the same disk
        assert job.status_code == 200 or job.json()["code"] == "insufficient_storage", job.text
        box.delete()
        # What was deleted goes piece by piece: there may be room for a sandbox and none for its commands yet.
        other = eventually(lambda: written(server), 60, "room again")
        assert other.exec("false")["error"] is None
    finally:
        server.close()


# --- where the filesystem can't limit, the spawner measures ---

FILL = "while :; do head -c 1000000 /dev/zero >>/big; sleep 0.01; done"


@pytest.fixture(scope="module")
def measured(make_server_session, busybox):
    server = make_server_session(default_image=busybox).start()
    if "no project quotas" not in server.log(1 << 20):
        server.close()
        pytest.skip("the filesystem of state_dir has project quotas")
    yield server
    server.close()


@pytest.fixture
def limited(measured):
    box = measured.create(disk="32Mi")
    yield box
    box.client.delete(box.url)


def is_ended_for_disk(job):
    assert job["verdict"] == "disk_full" and job["status"] == "failed", job
    assert "disk limit" in job["error"], job


def test_writing_more_than_the_limit_is_ended(limited):
    is_ended_for_disk(limited.exec(FILL, timeout_seconds=60))
    # What does not write more runs on, however often it is measured meanwhile.
    assert limited.out("sleep 2; echo ok") == "ok\n"
    is_ended_for_disk(limited.exec(FILL, timeout_seconds=60))
    assert limited.out("rm /big; echo gone") == "gone\n"
    assert limited.out("head -c 20000000 /dev/zero >/big; sleep 2; echo fits") == "fits\n"


def test_many_empty_files_count(limited):
    is_ended_for_disk(limited.exec(
        "mkdir /m; cd /m; i=0; while :; do i=$((i+1)); touch $(seq ${i}0000 ${i}2000); done", timeout_seconds=60))


def test_what_a_command_left_behind_is_ended_too(limited):
    limited.out(f"(setsid sh -c '{FILL}' </dev/null >/dev/null 2>&1 &)")
    # Whoever looks may be ended with it.
    eventually(lambda: limited.exec("ps | grep -c '[0]00000 /dev/zero >>'; true")["stdout"] == "0\n", 30,
               "the writer is ended")
    assert int(limited.out("stat -c %s /big")) > 32 << 20


def test_others_are_let_be(measured, limited):
    other = measured.create(disk="1Gi")
    job = other.start("sleep 60 & head -c 50000000 /dev/zero >/big; wait")
    is_ended_for_disk(limited.exec(FILL, timeout_seconds=60))
    assert other.job(job)["status"] == "running"
    other.delete()


def test_links_and_holes_do_not_count_twice(limited):
    limited.out("head -c 10000000 /dev/zero >/a; for i in $(seq 20); do ln /a /a$i; done")
    limited.out("dd if=/dev/zero of=/hole bs=1 count=1 seek=1000000000 2>/dev/null; ln -s / /loop")
    assert limited.out("sleep 2; echo ok") == "ok\n"


def test_the_limit_holds_after_a_death_of_the_spawner(make_server, busybox):
    server = make_server(default_image=busybox).start()
    try:
        if "no project quotas" not in server.log(1 << 20):
            pytest.skip("the filesystem of state_dir has project quotas")
        box = server.create(disk="32Mi")
        os.kill(server.processes()["spawner"][0], signal.SIGKILL)
        is_ended_for_disk(box.exec(FILL, timeout_seconds=60))
        server.stop()
        server.start()
        is_ended_for_disk(box.exec(FILL, timeout_seconds=60))
    finally:
        server.close()
