"""Classic ways out of a container, tried inside real sandboxes: none may work, and the host must not notice."""

import base64
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import images
from orchard_server import AGENT, BUILD, eventually


@pytest.fixture(scope="session")
def prober():
    """The static program of prober.c, as text."""
    path = BUILD / "tests/integration/prober"
    if not path.exists():
        subprocess.run(["make", "-C", BUILD, "tests/integration/prober"], check=True, capture_output=True)
    return base64.b64encode(path.read_bytes()).decode()


@pytest.mark.parametrize("tail", ["", "/..", "/../.." * 8, "/../../../../../../etc"])
def test_no_working_directory_through_descriptors(fresh, tail):
    """The agent holds directories of the host; a path must not lead to them (the class of CVE-2024-21626)."""
    fresh.out("ln -sfn /proc/self/fd /tmp/fd")
    for number in range(3, 40):
        for head in ("/proc/self/fd", "/proc/thread-self/fd", "/tmp/fd"):
            answer = fresh.post_exec("pwd -P; ls -A", cwd=f"{head}/{number}{tail}")
            assert answer.status_code != 200 or answer.json()["exit_code"] in (126, 127), (number, answer.text)


@pytest.mark.parametrize("number", range(3, 40))
def test_no_program_through_descriptors(box, number):
    for up in ("", "/../../../../../../../../../.."):
        job = box.exec([f"/proc/self/fd/{number}{up}/bin/true"])
        assert job["exit_code"] in (126, 127), job


def test_no_link_of_an_image_leads_to_what_the_spawner_holds(server, image_dir, work_dir):
    """What a sandbox's init fills in (/etc/hostname...) must not land behind /proc/self/fd of that init."""
    root = image_dir / "linked"
    images.busybox(root)
    shutil.rmtree(root / "etc")
    target = work_dir / "open-to-all"
    target.mkdir()
    target.chmod(0o777)
    for number in range(3, 30):
        (root / "etc").unlink(missing_ok=True)
        (root / "etc").symlink_to(f"/proc/self/fd/{number}/{'../' * 12}{str(target)[1:]}")
        box = server.create(image=f"dir:{root}")
        box.delete()
        assert not list(target.iterdir()), number


@pytest.fixture(scope="module")
def probed(box, prober):
    box.out("base64 -d > /tmp/prober && chmod 755 /tmp/prober", stdin=prober)
    return box


def answers(box, **fields):
    return dict(line.split() for line in box.out("/tmp/prober 2>&1", **fields).splitlines())


ALLOWED = """netlink_route internet unshare_files trace_me personality agents_limits
    signal_agent stop_agent""".split()  # the last two: sent to PID 1, which the kernel shields
OTHER = {"clone3": "ENOSYS", "io_uring_setup": "ENOSYS", "io_uring_enter": "ENOSYS", "io_uring_register": "ENOSYS",
         "nice": "EACCES", "packet_socket": "EAFNOSUPPORT", "kernel_crypto": "EAFNOSUPPORT", "vsock": "EAFNOSUPPORT",
         "bluetooth": "EAFNOSUPPORT", "netlink_crypto": "EPROTONOSUPPORT", "x32": "SIGSYS"}


def test_every_denied_call_is_answered_so(probed):
    found = answers(probed)
    assert len(found) > 70
    assert found == {name: "OK" if name in ALLOWED else OTHER.get(name, "EPERM") for name in found}


def test_other_users_are_denied_no_less(probed):
    found = answers(probed, user="nobody")
    allowed = set(ALLOWED) - {"agents_limits", "signal_agent", "stop_agent"}
    assert found == {name: "OK" if name in allowed else OTHER.get(name, "EPERM") for name in found}


def test_without_the_filter_the_kernel_itself_still_refuses(make_server, prober):
    """Nothing rests on seccomp alone, but what is no boundary of the kernel's."""
    server = make_server(sandbox_seccomp=False).start()
    box = server.create()
    box.out("base64 -d > /tmp/prober && chmod 755 /tmp/prober", stdin=prober)
    found = answers(box)
    for name in """mount mount_bind remount_rw umount2 pivot_root open_tree move_mount unshare_mnt unshare_pid unshare_net
            unshare_cgroup init_module delete_module kexec_load reboot swapon acct syslog mknod_disk mknod_mem attach_agent
            seize_agent read_agent clock_settime sethostname realtime""".split():
        assert found[name] not in ("OK", "EFAULT"), (name, found[name])


# --- what programs of a shell can try: exit status 0 would mean that it worked --------------------------
ESCAPES = {
    # the host's disks, memory and kernel, by devices
    "disk": "mknod /tmp/d b 8 0 && head -c1 /tmp/d",
    "memory": "mknod /tmp/m c 1 1 && head -c1 /tmp/m",
    "kernel-log-device": "mknod /tmp/k c 1 11 && head -c1 /tmp/k",
    "devices": "test -n \"$(find /dev -type b)\" || find /dev -type c | grep -vE '/(null|zero|full|random|urandom|tty|ptmx)$'",
    "device-directory": "touch /dev/x || rm /dev/null || mkdir /dev/mqueue/x",
    # programs that the kernel would run on the host
    "core-pattern": "echo '|/tmp/x' > /proc/sys/kernel/core_pattern",
    "modprobe": "echo /tmp/x > /proc/sys/kernel/modprobe",
    "uevent-helper": "echo /tmp/x > /sys/kernel/uevent_helper",
    "binfmt": "echo ':x:M::xx::/tmp/x:' > /proc/sys/fs/binfmt_misc/register || mount -t binfmt_misc none /mnt",
    "release-agent": "for t in rdma memory pids cpu; do mount -t cgroup -o $t cgroup /mnt && exit 0; done; exit 1",
    "cgroup2": "mount -t cgroup2 none /mnt || test -n \"$(find / -xdev -name release_agent)\"",
    "usermode-helper": "echo 1 > /proc/sys/kernel/usermodehelper/bset",
    # settings and machine
    "sysrq": "echo h > /proc/sysrq-trigger",
    "sysctl": "for f in $(find /proc/sys/kernel /proc/sys/vm /proc/sys/fs -type f -perm /222); do "
              "v=$(cat $f) && echo \"$v\" > $f && exit 0; done 2>/dev/null; exit 1",
    "sys": "for f in $(find /sys -type f -perm /222 | head -400); do echo 0 > $f && exit 0; done 2>/dev/null; exit 1",
    "interrupts": "echo 1 > /proc/irq/default_smp_affinity",
    "power": "echo mem > /sys/power/state",
    "remount-proc": "mount -o remount,rw,bind /proc/sys || mount -o remount,rw /sys",
    "fresh-proc": "mount -t proc proc /mnt || unshare -Urmpf mount -t proc proc /mnt",
    "fresh-sysfs": "mount -t sysfs sysfs /mnt || mount -t debugfs none /mnt || mount -t tracefs none /mnt",
    "uncover": "umount /proc/kcore || umount /sys/firmware || umount -l /proc || umount /dev/shm",
    "overlay": "mkdir -p /tmp/l /tmp/u /tmp/w && mount -t overlay o -o lowerdir=/tmp/l,upperdir=/tmp/u,workdir=/tmp/w /mnt",
    "user-namespace": "unshare -Ur true || unshare -m true || unshare -n true",
    "enter-namespaces": "nsenter -t 1 -m -p true || nsenter --target 1 --net true || nsenter -t $$ -U true",
    "kernel-log": "dmesg || head -c1 /proc/kmsg | grep -q .",
    "kernel-addresses": "grep -q . /proc/kallsyms || head -c1 /proc/kcore | grep -q . || grep -q . /proc/keys",
    "clock": "date -s '2001-01-01' || hwclock -w",
    # the agent
    "agent-root": "ls /proc/1/root/ || ls /proc/1/cwd/ || ls /proc/1/task/1/root/",
    "agent-descriptors": "ls -l /proc/1/fd/ | grep -q -- '->' || cat /proc/1/fdinfo/3",
    "agent-memory": "head -c1 /proc/1/mem || grep -q . /proc/1/maps || ls /proc/1/map_files/ || grep -q . /proc/1/environ",
    "agent-program": "cp /proc/1/exe /tmp/x || echo x > /proc/1/exe",
    "agent-namespaces": "readlink /proc/1/ns/mnt || readlink /proc/1/ns/user",
    "agent-kernel-stack": "cat /proc/1/stack || cat /proc/1/syscall | grep -vx running",
    "agent-ids": "echo 0 0 1 > /proc/1/uid_map || echo allow > /proc/1/setgroups || echo 0 0 4294967295 > /proc/self/uid_map",
    "agent-name": "echo x > /proc/1/comm",
    # what could be left of the host
    "descriptors": "test $(ls /proc/self/fd | wc -l) -gt 4",
    "host-paths": "grep -E ' (/var|/home|/root|/run/orchard)' /proc/self/mountinfo",
    "host-cgroups": "grep -E 'orchard|[.]slice|docker' /proc/self/cgroup",
    "host-processes": "test $(ls -d /proc/[0-9]* | wc -l) -gt 12 || pgrep orchardd",
    "host-sockets": "grep -q @ /proc/net/unix || test -S /run/docker.sock",
    "host-ipc": "test $(cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg | wc -l) -ne 3 || ls /dev/mqueue | grep -q .",
    "host-network": "test $(ls /sys/class/net | wc -l) -ne 1",
    "host-keys": "grep -q . /proc/keys /proc/key-users",
    "hard-link-out": "ln /proc/1/exe /tmp/agent || ln -L /proc/1/exe /tmp/agent",
    "shared-mounts": "grep -qE ' (shared|master):' /proc/self/mountinfo",
}

WATCHED = ["kernel/core_pattern", "kernel/modprobe", "kernel/sysrq", "kernel/hostname", "kernel/randomize_va_space",
           "kernel/panic", "kernel/printk", "kernel/kptr_restrict", "kernel/dmesg_restrict", "kernel/pid_max", "vm/overcommit_memory",
           "vm/swappiness", "fs/suid_dumpable", "fs/file-max", "net/ipv4/ip_default_ttl"]


def host_state(server):
    """What of the host an escape would change."""
    state = {name: (Path("/proc/sys") / name).read_text() for name in WATCHED if (Path("/proc/sys") / name).exists()}
    state["agents"] = server.agents()
    state["processes"] = server.processes()["spawner"]
    state["program"] = AGENT.stat().st_mtime_ns
    state["release"] = [path.read_text() for path in Path("/sys/fs/cgroup").glob("*/release_agent")]
    return state


@pytest.mark.parametrize("name", ESCAPES)
def test_escape_fails_and_the_host_does_not_notice(server, box, name):
    before = host_state(server)
    job = box.exec(ESCAPES[name], timeout_seconds=60)
    assert job["verdict"] == "exited" and job["exit_code"] not in (0, 126, 127), (job["stdout"], job["stderr"])
    assert "not found" not in job["stderr"], job["stderr"]  # else it would prove nothing
    assert host_state(server) == before
    assert box.out("echo ok") == "ok\n"


def test_the_agents_program_cannot_be_overwritten(server, fresh, prober):
    """The class of CVE-2019-5736: a command that is the agent's own program, which others then write to."""
    job_id = fresh.start(["/proc/1/exe"])
    assert fresh.wait_job(job_id)["exit_code"] in (126, 127)
    fresh.out("printf '#!/proc/self/exe\n' > /tmp/again; chmod 755 /tmp/again")
    job_id = fresh.start(["/tmp/again"])
    fresh.exec("for i in $(seq 50); do for p in /proc/[0-9]*; do case $(readlink $p/exe) in *orchard-agent*) "
               "echo x > $p/exe && echo WRITTEN;; esac; done; done 2>/dev/null")
    assert fresh.wait_job(job_id)["status"] != "running"
    assert fresh.out("echo ok") == "ok\n"
    server.create().delete()


# --- sandboxes that will not end -------------------------------------------------------------------------
STUCK = {
    "fork-bomb": ":(){ :|:& };:; sleep 600",
    "ignores-all": "trap '' TERM INT HUP QUIT; for i in $(seq 40); do (trap '' TERM; while :; do sleep 1000; done) & done; wait",
    "all-stopped": "for i in $(seq 20); do sleep 1000 & done; kill -STOP -1; sleep 1000",
    "vfork-wait": "python3 -c 'import os\nfor i in range(50): os.fork()==0 and os.setsid() and os.pause()' ; sleep 1000",
}


@pytest.mark.parametrize("name", STUCK)
@pytest.mark.parametrize("frozen", [False, True])
def test_b053_stuck_sandbox_is_removed_for_good(server, name, frozen):
    box = server.create()
    agent = box.agent_pid()
    box.wait_running(box.start(STUCK[name]))
    group = cgroup_of(agent)
    if frozen:
        if not (group / "cgroup.freeze").exists():
            pytest.skip("NO FREEZER: this host has no cgroup v2 tree")
        (group / "cgroup.freeze").write_text("1")
        eventually(lambda: "frozen 1" in (group / "cgroup.events").read_text(), 20, "frozen")
    os.kill(agent, signal.SIGSTOP)
    box.delete()
    eventually(lambda: not (server.state_dir / "sandboxes" / box.id).exists(), 30, "removed")
    eventually(lambda: not Path(f"/proc/{agent}").exists(), 10, "the agent is gone")
    assert not group.exists()


def cgroup_of(pid):
    """The sandbox's own directory in the v2 tree."""
    line = eventually(lambda: next((line for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()
                                    if line.startswith("0::") and line.endswith("/agent")), None), what="the agent has its group")
    root = next(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup2 " in line)
    return Path(root + line.removeprefix("0::")).parent  # it is in agent/


def test_b054_the_reason_of_a_dead_agent_is_told(server):
    box = server.create()
    os.kill(box.agent_pid(), signal.SIGKILL)
    state = eventually(lambda: (s := box.get().json())["status"] == "failed" and s, 20, "failed")
    assert "agent" in state["status_message"] and "signal 9" in state["status_message"], state["status_message"]
    box.delete()
