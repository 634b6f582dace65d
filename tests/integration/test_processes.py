"""Process hygiene inside a sandbox (fault group G) and its isolation (R)."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchard_server import eventually


def test_b046_orphans_are_reaped(fresh):
    for _ in range(100):
        fresh.out("(sleep 0.05 &); true")
    eventually(lambda: int(fresh.exec("ps -eo stat= | grep -c ^Z")["stdout"]) <= 2, 10, "no zombies")


def test_b048_fork_bomb(server):
    box, neighbour = server.create(), server.create()
    job = box.exec(":(){ :|:& };:; sleep 60", timeout_seconds=3)
    assert job["verdict"] == "timed_out"
    assert box.out("echo ok", timeout_seconds=30) == "ok\n"
    assert neighbour.out("echo ok") == "ok\n"
    assert int(box.out("ps -e | wc -l")) < 20
    box.delete(), neighbour.delete()


def test_b049_oom_never_takes_the_agent(server):
    box = server.create(memory="256Mi")
    agent = box.agent_pid()
    box.exec("for i in $(seq 60); do python3 -c 'x=bytearray(8<<20);import time;time.sleep(5)' & done; wait",
             timeout_seconds=60)
    score, word = box.out("cat /proc/self/oom_score_adj; echo ok").split()
    assert int(score) >= 0 and word == "ok"
    assert box.agent_pid() == agent and os.path.exists(f"/proc/{agent}")
    box.delete()


def test_b051_no_descriptor_leaks_into_commands(fresh):
    with ThreadPoolExecutor(8) as pool:
        others = [pool.submit(fresh.exec, "sleep 1", lane=f"lane{i}") for i in range(8)]
        names = fresh.out("ls /proc/self/fd").split()
        [other.result() for other in others]
    assert sorted(names)[:3] == ["0", "1", "2"] and len(names) == 4


def test_b053_delete_is_quick(server):
    early = server.create(wait=False)
    idle = server.create()
    for box in (early, idle):
        box.delete()
        eventually(lambda box=box: not (server.state_dir / "sandboxes" / box.id).exists(), 20, "gone")


def test_b054_dead_agent_fails_the_sandbox(server):
    box = server.create()
    job_id = box.start("sleep 100")
    box.wait_running(job_id)
    os.kill(box.agent_pid(), signal.SIGKILL)
    state = eventually(lambda: (s := box.get().json())["status"] == "failed" and s, 20, "failed")
    assert state["ready"] is False and state["status_message"]
    job = box.wait_job(job_id, 20)
    assert (job["status"], job["verdict"]) == ("failed", "agent_lost")
    assert box.post_exec("echo").status_code in (409, 503)
    box.delete()


def test_agent_survives_what_its_sandbox_does_to_it(fresh):
    agent = fresh.agent_pid()
    for sig in ("TERM", "INT", "HUP", "KILL", "STOP", "USR1", "SEGV", "QUIT"):
        fresh.exec(f"kill -{sig} 1")
    assert fresh.out("echo ok") == "ok\n"
    assert fresh.agent_pid() == agent


# --- isolation ------------------------------------------------------------
def test_namespaces_and_identity(box):
    assert box.out("hostname").strip() == box.id
    assert box.out("cat /proc/1/comm").strip() == "orchard-agent"
    uid_map = box.out("cat /proc/self/uid_map").split()
    assert uid_map[0] == "0" and int(uid_map[1]) >= 65536 and int(uid_map[2]) == 65536
    links = box.out("ls /sys/class/net").split()
    assert links == ["lo"]
    for name in ("user", "mnt", "pid", "uts", "ipc", "net", "cgroup"):
        inside = box.out(f"readlink /proc/self/ns/{name}").strip()
        assert inside != os.readlink(f"/proc/self/ns/{name}"), name


@pytest.mark.parametrize("command", [
    "mount -t tmpfs none /mnt", "echo x > /proc/sys/kernel/core_pattern", "echo b > /proc/sysrq-trigger",
    "mknod /tmp/sda b 8 0 && head -c1 /tmp/sda", "unshare -Ur true", "chroot /proc/1/root true && false",
    "touch /dev/new", "echo 1 > /proc/1/oom_score_adj && false", "cat /proc/kcore | head -c 10 | grep -q .",
    "dmesg", "nsenter -t 1 -m true", "sysctl -w kernel.hostname=x", "hwclock -w", "cat /sys/firmware/* 2>/dev/null | grep .",
])
def test_what_a_sandbox_must_not(box, command):
    assert box.exec(command)["exit_code"] != 0


def test_capabilities_and_no_new_privs(box):
    status = dict(line.split(":\t", 1) for line in box.out("cat /proc/self/status").splitlines() if ":\t" in line)
    assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
    assert int(status["CapBnd"], 16) & (1 << 21) == 0  # no CAP_SYS_ADMIN


def test_dev_is_minimal_and_useful(box):
    names = set(box.out("ls /dev").split())
    assert {"null", "zero", "full", "random", "urandom", "tty", "fd", "ptmx", "pts", "shm"} <= names
    assert not names & {"vda", "sda", "mem", "kmsg", "kvm", "fuse"}
    assert box.out("echo x > /dev/null; head -c3 /dev/zero | wc -c; python3 -c 'import os; print(len(os.openpty()))'"
                   ).split() == ["3", "2"]


def test_b045_dev_shm(server):
    box = server.create(memory="1Gi")
    out = box.out("dd if=/dev/zero of=/dev/shm/t bs=1M count=200 2>&1 | tail -1; stat -c %s /dev/shm/t; rm /dev/shm/t")
    assert str(200 << 20) in out
    box.delete()


def test_b045_a_full_dev_shm_leaves_a_small_sandbox_alive(server):
    box = server.create(memory="64Mi")
    pid = box.agent_pid()
    job = box.exec("dd if=/dev/zero of=/dev/shm/t bs=1M count=200")
    assert job["verdict"] == "exited" and "No space left on device" in job["stderr"]
    for _ in range(5):
        assert box.out("head -c 20000000 /dev/zero | tr '\\0' x | wc -c") == "20000000\n"
    assert box.agent_pid() == pid and box.get().json()["ready"]
    box.delete()


def test_b119_network_is_loopback_only(box):
    assert box.exec("python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 2)\"")["exit_code"] != 0
    script = ("import socket; s=socket.create_server(('127.0.0.1', 0)); c=socket.create_connection(s.getsockname()); "
              "print('local')")
    assert box.out(["python3", "-c", script]) == "local\n"


def test_b155_each_sandbox_has_its_own_ports(server):
    boxes = [server.create(), server.create()]
    script = "import socket; socket.create_server(('0.0.0.0', 9090)); print('bound')"
    for box in boxes:
        assert box.out(["python3", "-c", script]) == "bound\n"
        assert box.out("hostname").strip() == box.id
        box.delete()


# --- limits really hold ---------------------------------------------------
def test_b152_memory_limit(server):
    box = server.create(memory="128Mi")
    assert box.exec("python3 -c 'b=bytearray(400<<20)'")["exit_code"] == 137
    box.delete()


def test_b152_cpu_limit(server):
    box = server.create(cpu="0.2")
    usage = box.exec("timeout 3 sh -c 'while :; do :; done'")["usage"]
    assert usage["cpu_user_s"] + usage["cpu_sys_s"] < 0.5 * usage["wall_s"]
    box.delete()


def test_b152_pids_limit(make_server):
    server = make_server(sandbox_pids_max=32).start()
    box = server.create()
    job = box.exec("for i in $(seq 100); do sleep 5 & done; wait", timeout_seconds=20)
    assert "ork" in job["stderr"]  # "Cannot fork" / "fork: retry"
    assert box.out("echo ok", timeout_seconds=30) == "ok\n"
