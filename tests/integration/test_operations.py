"""What an operator meets: wrong settings, taken ports, full disks, a second server."""

import fcntl
import hashlib
import json
import os
import subprocess
import socket
import sys

import pytest

from orchard_server import ORCHARDD, SANITIZED, eventually


def refused(server, timeout=30):
    """Starts it; it must end by itself with an error. Returns what it said."""
    server.spawn()
    assert server.process.wait(timeout) != 0
    return server.log()


def test_second_server_on_the_same_state(make_server):
    first = make_server().start()
    second = make_server(state_dir=first.state_dir)
    said = refused(second)
    assert str(first.state_dir) in said and str(first.process.pid) in said
    assert first.client.get("/health").status_code == 200


def test_living_sandboxes_are_not_lost_with_shared_memory_of_another_size(make_server):
    server = make_server().start()
    box = server.create()
    server.stop()
    before = server.settings.get("max_sandboxes", 16384)
    server.settings["max_sandboxes"] = 77
    assert "sandboxes of the server before live (1)" in refused(server)
    check = subprocess.run([ORCHARDD, "-t", "-c", server.conf_path], env=server.environment(), capture_output=True, text=True)
    assert check.returncode == 0 and "a restart will be refused" in check.stderr
    server.settings["max_sandboxes"] = before
    server.start()
    assert box.out("echo lives") == "lives\n"
    server.stop()
    server.settings["max_sandboxes"] = 77
    server.arguments = ["--discard-sandboxes"]
    server.start()
    assert "(1) and are removed" in server.log(100_000)
    eventually(lambda: not server.remains(), 60, "removed")
    server.stop()
    server.arguments, server.settings["max_sandboxes"] = [], 78
    server.start()  # nobody is lost by this


def test_port_taken(make_server):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = make_server(port=taken.getsockname()[1])
        said = refused(server)
        assert "in use" in said.lower() and str(taken.getsockname()[1]) in said


@pytest.mark.parametrize("settings,words", [
    ({"api_keys": ""}, "api_keys"),
    ({"port": "eighty"}, "port"),
    ({"port": 70000}, "65535"),
    ({"service_user": "no-such-user-here"}, "no-such-user-here"),
    ({"agent_path": "/no/such/agent"}, "/no/such/agent"),
    ({"default_memory": "lots"}, "default_memory"),
    ({"driver": "cloud"}, "driver"),
    ({"run_dir": "/run/" + "x" * 90}, "run_dir"),
    ({"workres": 2}, "workres"),
    ({"listen_host": "192.0.2.77"}, "no address of this machine"),
    ({"state_dir": "/run/orchard-test-apart", "run_dir": "/run/orchard-test-apart"}, "each other's way"),
    ({"state_dir": "/run/orchard-test-apart/sandboxes", "run_dir": "/run/orchard-test-apart"}, "each other's way"),
])
def test_wrong_settings_are_named(make_server, settings, words):
    server = make_server(**settings)
    assert words in refused(server)
    check = subprocess.run([ORCHARDD, "-t", "-c", server.conf_path], env=server.environment(),
                           capture_output=True, text=True)
    assert check.returncode != 0 and words in check.stdout + check.stderr


def test_good_configuration_passes_the_check(make_server):
    server = make_server()
    server.write_conf()
    check = subprocess.run([ORCHARDD, "-t", "-c", server.conf_path], env=server.environment(),
                           capture_output=True, text=True)
    assert check.returncode == 0, check.stderr


def test_unreadable_configuration(tmp_path):
    for path in (tmp_path / "missing.conf", tmp_path):
        run = subprocess.run([ORCHARDD, "-c", path], capture_output=True, text=True, timeout=30)
        assert run.returncode != 0 and str(path) in run.stderr


def test_environment_overrides_the_file(make_server):
    server = make_server()
    server.write_conf()
    env = server.environment() | {"MAX_CONCURRENT_EXECS": "417"}
    shown = subprocess.run([ORCHARDD, "--print-config", "-c", server.conf_path], env=env, capture_output=True, text=True)
    assert "417" in shown.stdout and server.key not in shown.stdout
    bad = subprocess.run([ORCHARDD, "-t", "-c", server.conf_path], env=env | {"MAX_CONCURRENT_EXECS": "many"},
                         capture_output=True, text=True)
    assert bad.returncode != 0 and "MAX_CONCURRENT_EXECS" in bad.stderr


def test_help_and_version():
    for option in ("--help", "--version"):
        run = subprocess.run([ORCHARDD, option], capture_output=True, text=True)
        assert run.returncode == 0 and "orchard" in run.stdout.lower()
    assert subprocess.run([ORCHARDD, "--nonsense"], capture_output=True).returncode != 0


def test_children_have_no_privileges(server):
    for role in ("worker", "reaper"):
        for pid in server.processes()[role]:
            status = open(f"/proc/{pid}/status").read()
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            assert fields["Uid"].split()[0] != "0"
            assert int(fields["CapEff"], 16) == 0 and int(fields["CapBnd"], 16) == 0
            assert fields["NoNewPrivs"].strip() == "1"


CARELESS = """
import os, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
os.umask(0o777)
os.set_inheritable(os.open(sys.argv[1], os.O_RDONLY), True)
os.execv(sys.argv[2], sys.argv[2:])
"""


def test_habits_of_whoever_started_it_do_not_matter(make_server, tmp_path):
    """Ignored signals (an ignored SIGCHLD hides dead children), a umask that lets nobody pass, open files."""
    lent = tmp_path / "lent"
    lent.touch()
    server = make_server()
    server.launcher = [sys.executable, "-c", CARELESS, lent]
    server.start()
    box = server.create()
    assert box.out("umask; grep SigIgn /proc/self/status").split() == ["0022", "SigIgn:", "0000000000000000"]
    pids = [server.process.pid, box.agent_pid()] + [pid for role in server.processes().values() for pid in role]
    assert not any(file == str(lent) for pid in pids for file in open_files(pid))
    server.replace("worker")
    server.replace("spawner")
    assert box.out("echo hi") == "hi\n"


def open_files(pid):
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except (FileNotFoundError, ProcessLookupError):  # ended meanwhile
        return
    for name in names:
        try:
            yield os.readlink(f"/proc/{pid}/fd/{name}")
        except (FileNotFoundError, ProcessLookupError):  # closed meanwhile
            pass


def test_configuration_that_is_an_open_descriptor(make_server):
    """As `orchardd -c <(...)` of a shell gives it."""
    server = make_server()
    server.launcher = ["bash", "-c", 'exec "$0" -c <(cat "$2")']
    server.start()
    assert server.client.get("/sandboxes").status_code == 200


def test_fifos_in_the_place_of_its_files_hold_up_nobody(make_server):
    """Each start goes on without what stood there, or says at once which file is in the way."""
    server = make_server().start()
    box = server.create()
    box.exec("true")
    server.stop()
    for path in (server.run_dir / "spawner" / "cgroups", server.run_dir / "spawner" / "destroyed",
                 *(server.state_dir / "jobs").glob("*.log")):
        path.unlink()
        os.mkfifo(path)
    server.start()
    assert box.out("echo hi") == "hi\n" and server.create().out("echo hi") == "hi\n"
    server.stop()
    kept = (server.state_dir / "lock").read_bytes()
    (server.state_dir / "lock").unlink()
    os.mkfifo(server.state_dir / "lock")
    assert "lock is no plain file" in refused(server)
    (server.state_dir / "lock").unlink()
    (server.state_dir / "lock").write_bytes(kept)
    server.start()


def test_a_full_run_dir_is_told_and_works_again_later(make_server):
    server = make_server()
    server.run_dir.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=755", "none", server.run_dir], check=True)
    try:
        server.start()
        box = server.create()
        filler = server.run_dir / "filler"
        with open(filler, "wb", buffering=0) as out:
            try:
                while True:
                    out.write(bytes(4096))
            except OSError:
                pass
        answer = server.client.post(f"{box.url}/exec", json={"command": "true", "wait": True},
                                    headers={"Idempotency-Key": "k"})
        assert answer.status_code == 503 and "run_dir" in answer.json()["detail"], answer.text
        filler.unlink()
        assert box.out("echo again") == "again\n"
        assert server.create().out("echo ok") == "ok\n"
    finally:
        server.close()
        subprocess.run(["umount", "-l", server.run_dir], check=False)
        server.run_dir.rmdir()


def test_disk_full_under_state_dir(make_server, work_dir):
    mount = work_dir / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m,mode=755", "none", mount], check=True)
    server = make_server(state_dir=mount / "state")
    try:
        server.start()
        box = server.create()
        filler = mount / "filler"
        with open(filler, "wb") as out:
            try:
                while True:
                    out.write(bytes(65536))
                    out.flush()
            except OSError:
                pass
        answer = server.client.post("/sandboxes", json={"image": "default"})
        if answer.status_code == 200:
            state = server.client.get(f"/sandboxes/{answer.json()['sandbox_id']}/wait?timeout=30").json()
            assert state["status"] == "failed" and "space" in state["status_message"], state
        else:
            assert answer.status_code == 507, answer.text
        job = box.client.post(f"{box.url}/exec", json={"command": "echo hi", "wait": True})
        assert job.status_code in (200, 507), job.text
        filler.unlink()
        assert box.out("echo again") == "again\n"
        assert server.create().out("echo ok") == "ok\n"
    finally:
        server.close()
        subprocess.run(["umount", "-l", mount], check=False)


def test_results_that_cannot_be_written_are_no_fault_of_the_client(make_server):
    """As on a disk that has become read-only: 503, and never "denied" or "image_not_allowed"."""
    server = make_server().start()
    box = server.create()
    stores = [server.state_dir / name for name in ("jobs", "keys")]
    owner = stores[0].stat()
    for store in stores:
        os.chown(store, 0, 0)
    key = {"Idempotency-Key": "k"}
    for answer in (box.post_exec("true"),
                   server.client.post(f"{box.url}/exec", json={"command": "true", "wait": True}, headers=key),
                   server.client.post("/sandboxes", json={"image": "default"}, headers=key)):
        assert answer.status_code == 503 and answer.json()["code"] == "unavailable", answer.text
    assert "cannot be written" in server.client.get("/ready").text
    for store in stores:
        os.chown(store, owner.st_uid, owner.st_gid)
    assert box.out("echo hi") == "hi\n"
    assert server.client.post(f"{box.url}/exec", json={"command": "true", "wait": True}, headers=key).status_code == 200


def test_nothing_is_left_after_a_clean_stop(make_server):
    server = make_server().start()
    for _ in range(3):
        server.create()
    for item in server.list_ids():
        server.client.delete(f"/sandboxes/{item}")
    eventually(lambda: not server.remains(), 30, "sandboxes removed")
    pids = [pid for role in server.processes().values() for pid in role]
    assert server.stop() == 0
    eventually(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), 10, "no process is left")
    assert not [line for line in open("/proc/mounts") if str(server.state_dir) in line]
    own = "orchard-" + hashlib.sha256(str(server.state_dir).encode()).hexdigest()[:12]
    found = subprocess.run(["find", "/sys/fs/cgroup", "-name", own], capture_output=True, text=True).stdout
    assert not found


@pytest.mark.skipif(SANITIZED, reason="a sanitizer keeps freed memory, keys included")
def test_keys_are_only_in_the_memory_of_those_who_check_them(server):
    """An archive that takes over the process that unpacks it must find no key there."""
    def holds_key(pid):
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                area, rights = line.split()[:2]
                if not rights.startswith("rw") or line.rstrip().endswith("/shm"):
                    continue
                low, high = (int(part, 16) for part in area.split("-"))
                memory.seek(low)
                if server.key.encode() in memory.read(high - low):
                    return True
        return False
    roles = server.processes()
    assert all(holds_key(pid) for pid in roles["worker"])
    assert not any(holds_key(pid) for role in ("gateway", "reaper", "spawner", "helper") for pid in roles[role])


def test_a_reader_of_the_log_that_stands_still_holds_up_nobody(make_server, tmp_path):
    """As a pager, or a collector that hangs."""
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    try:
        fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
        server = make_server(log_level="debug")
        server.launcher = ["sh", "-c", f'exec "$0" "$@" 2>{fifo}']
        server.start()
        assert all(server.client.get("/health", timeout=20).status_code == 200 for _ in range(100))
        assert server.create().out("echo hi") == "hi\n"

        def told():
            server.client.get("/health")
            lines = os.read(reader, 65536).decode().splitlines()
            return any(json.loads(line).get("dropped", 0) for line in lines if line.startswith("{") and line.endswith("}"))
        eventually(told, 20, "it says what was dropped")
    finally:
        os.close(reader)
