"""What is over goes by a rule that is named, what is used stays, and what crashes leave is found."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from orchard_server import eventually


def reaped(server, rule):
    for line in server.client.get("/metrics").text.splitlines():
        if line.startswith(f'orchard_sandboxes_reaped_total{{rule="{rule}"}}'):
            return int(line.split()[-1])
    return None


def is_gone(box):
    return box.get().status_code == 404


def reload(server, **settings):
    old = set(server.processes()["reaper"] + server.processes()["worker"])
    server.settings.update(settings)
    server.write_conf()
    server.reload()

    def done():
        now = set(server.processes().get("reaper", []) + server.processes().get("worker", []))
        return len(now) == len(old) and not now & old
    eventually(done, 40, lambda: server.log())


# --- the rules ------------------------------------------------------------


def test_a_rule_is_named_wherever_one_looks(make_server, busybox):
    server = make_server(idle_timeout_seconds=1).start()
    idle, lasting = server.create(image=busybox), server.create(image=busybox, idle_timeout_seconds=0)
    assert idle.get().json()["idle_timeout_seconds"] == 1
    running = idle.start("sleep 600; echo never")
    idle.wait_running(running)
    assert idle.get().json()["expires_by"] == "ttl"  # it is in use
    idle.client.post(f"/jobs/{running}/cancel")
    idle.wait_job(running)
    shown = idle.get()
    assert shown.status_code == 404 or shown.json()["expires_by"] == "idle"
    eventually(lambda: is_gone(idle), 20, "idle rule")
    assert 'removed by the rule "idle"' in idle.get().json()["detail"]
    assert idle.post_exec("true").status_code == 404
    assert any(line.get("sandbox_id") == idle.id and '"idle"' in line["msg"] for line in server.log_lines())
    eventually(lambda: reaped(server, "idle") == 1, 10, "counted")
    assert idle.client.delete(idle.url).json() == {"status": "deleted", "sandbox_id": idle.id}
    assert idle.client.post(f"{idle.url}/heartbeat").status_code == 404
    assert lasting.get().json()["expires_by"] == "ttl"


def test_looking_is_no_use_and_acting_is(make_server, busybox):
    server = make_server(cleanup_interval_seconds=1).start()
    box = server.create(image=busybox, idle_timeout_seconds=100)

    def ends():
        """When it goes if nothing more happens: once the command before is no longer counted."""
        return eventually(lambda: (shown := box.get().json())["expires_by"] == "idle" and shown["expires_at"], 30, "idle rule")
    first = ends()
    box.client.get("/sandboxes")
    box.client.post(f"{box.url}/heartbeat")
    box.client.get(f"{box.url}/jobs")
    assert ends() == first
    box.out("true")
    assert ends() > first


def test_rules_follow_the_settings_at_a_reload(make_server, busybox):
    server = make_server(heartbeat_timeout_seconds=1, heartbeat_cleanup_enabled=False).start()
    plain, own, beating = (server.create(image=busybox, **fields) for fields in ({}, {"ttl_seconds": 5000}, {"ttl_seconds": 5000}))
    assert beating.client.post(f"{beating.url}/heartbeat").status_code == 200
    assert beating.get().json()["expires_by"] == "ttl"
    assert plain.get().json()["ttl_seconds"] == 7200
    reload(server, sandbox_ttl_hours=0.0001, heartbeat_cleanup_enabled=True)
    eventually(lambda: is_gone(plain), 20, "the ttl of now")
    eventually(lambda: is_gone(beating), 20, "the heartbeat rule of now")
    assert own.get().json()["status"] == "ready" and own.get().json()["expires_by"] == "ttl"
    assert (reaped(server, "ttl"), reaped(server, "heartbeat")) == (1, 1)


def test_a_failed_sandbox_can_be_read_of_and_goes(make_server, image_dir):
    (image_dir / "empty").mkdir(exist_ok=True)
    server = make_server(failed_keep_seconds=2).start()
    box = server.create(image=f"dir:{image_dir}/empty/none", wait=False)
    answer = box.client.get(f"{box.url}/wait")
    assert answer.json()["status"] == "failed" and answer.json()["status_message"]
    assert answer.json()["expires_by"] == "failed"
    eventually(lambda: is_gone(box), 20, "failed rule")
    assert 'rule "failed"' in box.get().json()["detail"]


@pytest.mark.parametrize("body", [
    {"ttl_seconds": 0}, {"ttl_seconds": -1}, {"ttl_seconds": "60"}, {"ttl_seconds": True}, {"ttl_seconds": [60]},
    {"ttl_seconds": 1e300}, {"idle_timeout_seconds": -0.5}, {"idle_timeout_seconds": "x"}, {"idle_timeout_seconds": {}},
    {"labels": "x"}, {"labels": {"a": 1}}, {"labels": {"a": None}}, {"labels": ["a"]}, {"labels": {"a": "x" * 1024}},
])
def test_patch_changes_nothing_when_anything_is_wrong(box, body):
    def record():
        return {name: value for name, value in box.get().json().items() if name != "usage"}

    before = record()
    answer = box.client.patch(box.url, json={"labels": {"new": "1"}, "ttl_seconds": 9999} | body)
    assert answer.status_code == 422
    assert [fault["loc"][1] for fault in answer.json()["detail"]] == list(body)
    assert record() == before


def test_patch_moves_the_end(fresh):
    before = fresh.get().json()
    began = time.time()
    after = fresh.client.patch(fresh.url, json={"ttl_seconds": 100, "unknown": 5}).json()
    assert began + 99 < after["expires_at"] < time.time() + 101 and after["labels"] == before["labels"]
    after = fresh.client.patch(fresh.url, json={"idle_timeout_seconds": 50, "labels": {}}).json()
    assert after["expires_by"] == "idle" and (after["ttl_seconds"], after["labels"]) == (100, {})
    after = fresh.client.patch(fresh.url, json={"ttl_seconds": None, "idle_timeout_seconds": 0}).json()
    assert after["expires_by"] == "ttl" and after["ttl_seconds"] == 100
    assert fresh.client.patch(fresh.url, content=b"[]").status_code == 422


def test_b094_the_ttl_ends_a_running_command_and_says_so(make_server, busybox):
    server = make_server().start()
    box = server.create(image=busybox)
    job_id = box.start("echo begun; echo > /begun; sleep 600")
    assert box.out("until test -e /begun; do sleep 0.1; done; echo it has", lane="other") == "it has\n"
    assert box.client.patch(box.url, json={"ttl_seconds": 2, "idle_timeout_seconds": 1}).status_code == 200
    job = box.wait_job(job_id)
    assert (job["status"], job["verdict"], job["stdout"]) == ("failed", "sandbox_deleted", "begun\n")
    assert job["error"] == 'sandbox deleted: removed by the rule "ttl"'


def test_b099_the_id_is_free_when_the_rule_has_taken_it(make_server, busybox):
    server = make_server(cleanup_interval_seconds=1).start()
    first = server.create(image=busybox, sandbox_id="again", ttl_seconds=2)
    first.out("echo old > /mark")

    def created():
        return server.client.post("/sandboxes", json={"image": busybox, "sandbox_id": "again"}).status_code == 200
    eventually(created, 20, "made again")
    first.wait_ready()
    assert first.out("ls /mark 2>&1; true") != "/mark\n"
    for _ in range(2):
        server.replace("reaper")
    assert first.out("echo lives") == "lives\n" and first.get().json()["expires_by"] == "ttl"


# --- outages --------------------------------------------------------------


def test_heartbeats_get_a_full_timeout_after_an_outage(make_server, busybox):
    server = make_server(heartbeat_timeout_seconds=20).start()
    box = server.create(image=busybox)
    box.client.post(f"{box.url}/heartbeat")
    before = box.get().json()
    assert before["expires_by"] == "heartbeat"
    server.kill_all()
    stopped = time.monotonic()
    eventually(lambda: time.monotonic() - stopped > 4, 10)
    server.start()
    shown = eventually(lambda: (got := box.get().json())["expires_at"] > before["expires_at"] + 3 and got, 15, "grace")
    assert shown["expires_by"] == "heartbeat" and shown["status"] == "ready"


def test_b103_one_that_cannot_go_stops_no_sweep(make_server, busybox):
    server = make_server().start()
    stuck, *others = [server.create(image=busybox, wait=False) for _ in range(6)]
    for box in [stuck, *others]:
        box.wait_ready()
    # A directory that can't be moved into the trash.
    directory = server.state_dir / "sandboxes" / stuck.id
    os.system(f"chattr +i {directory} 2>/dev/null || mount --bind {directory} {directory}")
    try:
        for box in [stuck, *others]:
            box.client.patch(box.url, json={"ttl_seconds": 0.5})
        eventually(lambda: all(is_gone(box) for box in others), 20, "the others are gone")
        eventually(lambda: {Path(name).name for name in server.remains()} == {stuck.id}, 20, "nothing is left of the others")
    finally:
        os.system(f"chattr -i {directory} 2>/dev/null; umount {directory} 2>/dev/null")
    eventually(lambda: not server.remains(), 60, lambda: f"tried again until it went: {server.remains()}")


def tops_of_groups(box):
    """The directory in each hierarchy that holds the groups of all sandboxes."""
    record = json.loads((box.server.state_dir / "sandboxes" / box.id / "state.json").read_text())
    name = record.get("group", box.id)
    mounts = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
    for line in Path(f"/proc/{box.agent_pid()}/cgroup").read_text().splitlines():
        for mount in mounts:
            parts = Path(mount[4] + line.split(":", 2)[2]).parts
            if name in parts and (top := Path(*parts[:parts.index(name)])).is_dir() and (top / name).is_dir():
                yield top


def test_what_belongs_to_no_sandbox_is_found_while_the_server_runs(make_server, busybox):
    server = make_server(cleanup_interval_seconds=1).start()
    box = server.create(image=busybox, sandbox_id="real")
    tops = set(tops_of_groups(box))
    assert tops
    strays = [server.state_dir / "sandboxes" / "stray1", server.run_dir / "sandboxes" / "stray2",
              *(top / "stray3" for top in tops)]
    for stray in strays:
        stray.mkdir()
    (strays[0] / "file").write_text("x")
    (server.state_dir / "trash" / "stray4").mkdir()
    stuck = subprocess.Popen(["sleep", "600"])
    for stray in strays[2:]:
        (stray / "cgroup.procs").write_text(str(stuck.pid))
    eventually(lambda: not any(stray.exists() for stray in strays), 30,
               lambda: f"left: {[stray for stray in strays if stray.exists()]} {server.log()}")
    assert stuck.wait(20) == -signal.SIGKILL
    eventually(lambda: not (server.state_dir / "trash" / "stray4").exists(), 10, "the trash is emptied")
    assert box.out("echo lives") == "lives\n"


def test_a_trash_that_somebody_removed_is_made_again(make_server, busybox):
    server = make_server(cleanup_interval_seconds=1).start()
    boxes = [server.create(image=busybox) for _ in range(3)]
    shutil.rmtree(server.state_dir / "trash")
    for box in boxes:
        box.delete()
    eventually(lambda: not server.remains(), 30, lambda: f"all gone: {server.remains()} {server.log()}")
    (server.state_dir / "trash" / "stray").mkdir()
    eventually(lambda: not (server.state_dir / "trash" / "stray").exists(), 30, "the trash is emptied")


@pytest.mark.parametrize("top, name", [("run_dir", "sandboxes"), ("run_dir", "runtime"), ("state_dir", "sandboxes"),
                                       ("state_dir", "trash"), ("state_dir", "images")])
def test_directories_that_somebody_removed_are_made_again(make_server, busybox, top, name):
    """By whoever sees it first, and said once; what was made ahead in them is not used."""
    server = make_server(cleanup_interval_seconds=1, sandbox_blanks=4).start()
    server.create(image=busybox).delete()
    directory = getattr(server, top) / name
    before = directory.stat()
    eventually(lambda: not server.remains(), 30, lambda: f"all gone: {server.remains()} {server.log()}")
    aside = directory.with_name("removed")
    directory.rename(aside)  # what is being made ahead just now may still come into it
    eventually(lambda: shutil.rmtree(aside, ignore_errors=True) or not aside.exists(), 30, "removed")
    boxes = [server.create(image=busybox) for _ in range(6)]
    assert [box.out("echo lives") for box in boxes] == ["lives\n"] * 6
    after = directory.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    for box in boxes:
        box.delete()
    eventually(lambda: not server.remains(), 30, lambda: f"all gone: {server.remains()} {server.log()}")
    assert [line["msg"] for line in server.log_lines() if "made anew" in line.get("msg", "")] == [
        f"{directory} was removed: it is made anew"]


def test_deletes_go_on_whoever_dies(make_server, busybox):
    server = make_server(workers=2).start()
    boxes = [server.create(image=busybox, wait=False) for _ in range(12)]
    for box in boxes:
        box.wait_ready()
    for number, box in enumerate(boxes):
        box.delete()
        role = ("worker", "reaper", "helper", "spawner")[number % 4]
        for pid in server.processes().get(role, [])[:1]:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: answers(server), 40, "server answers")
    eventually(lambda: not server.remains(), 60, lambda: f"all gone: {server.remains()}")
    assert server.list_ids() == []
    for box in boxes:
        box.delete()


def answers(server):
    try:
        return server.client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def test_results_stay_within_their_budget_whoever_dies(make_server, busybox):
    """A reaper that never lives for a minute still removes the oldest results."""
    server = make_server(job_store_max_bytes=1 << 20, default_image=busybox).start()
    store = server.state_dir / "jobs"

    def size():
        return sum(path.stat().st_size for path in store.iterdir())

    box = server.create()
    for _ in range(4):
        box.exec("head -c 700000 /dev/zero | tr '\\0' x")
    # Only what nobody writes to any more can go, and only when it is older than what may be on its way.
    for pid in server.processes()["worker"]:
        os.kill(pid, signal.SIGKILL)
    server.wait_ready()
    assert size() > 2 << 20
    for path in store.iterdir():
        os.utime(path, (0, 0))

    os.kill(server.processes()["reaper"][0], signal.SIGKILL)
    # The next one does so first of all, not a minute later.
    eventually(lambda: size() <= 1 << 20, 50, lambda: f"{size()} bytes are left")
    assert box.exec("echo on")["stdout"] == "on\n"
