"""The settings that isolate: safe by default, each can be weakened, the log tells, the agent stays out of reach."""

import os
import subprocess
from pathlib import Path

import pytest

from orchard_server import ORCHARDD, eventually

DEFAULT = 0xa80425fb  # what containers usually keep
CAP_MKNOD, CAP_NET_ADMIN = 1 << 27, 1 << 12
WEAKER = "sandboxes are weaker than by default: "


def warnings(server):
    return [line["msg"].removeprefix(WEAKER) for line in server.log_lines() if WEAKER in line.get("msg", "")]


def weakened(server):
    """Setting -> in how many ways it weakens, of GET /metrics."""
    lines = [line for line in server.client.get("/metrics").text.splitlines() if line.startswith("orchard_sandbox_weakened{")]
    return {line.split('"')[1]: int(line.split()[-1]) for line in lines}


def status_of(text):
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def own_status(box, **fields):
    return status_of(box.out("cat /proc/self/status", **fields))


def agent_is_out_of_reach(box):
    agent = box.agent_pid()
    box.exec("kill -KILL 1; kill -STOP 1")
    for name in ("environ", "mem", "maps", "exe", "root/", "cwd/", "fd/"):
        assert box.exec(f"ls -L /proc/1/{name} && cat /proc/1/{name} /proc/1/{name}* | grep -q .")["exit_code"] != 0, name
    score = box.out("cat /proc/1/oom_score_adj")
    for name in ("oom_score_adj", "oom_adj", "task/1/oom_score_adj", "task/1/oom_adj"):
        box.exec(f"test -e /proc/1/{name} && echo 15 > /proc/1/{name}")
    assert box.out("cat /proc/1/oom_score_adj /proc/1/task/1/oom_score_adj") == score + score and int(score) <= 0
    assert box.agent_pid() == agent and box.out("echo ok") == "ok\n"


SET_USER_ID = "cp /usr/bin/id /tmp/id && chmod 4755 /tmp/id"


def test_by_default_nothing_is_weak(server, fresh):
    assert warnings(server) == []
    assert len(weakened(server)) == 5 and set(weakened(server).values()) == {0}
    assert int(own_status(fresh)["CapBnd"], 16) == DEFAULT
    fresh.out(SET_USER_ID)
    assert fresh.out("/tmp/id -u", user="nobody") == fresh.out("id -u", user="nobody") != "0\n"
    assert fresh.out("ulimit -c; ulimit -Hn").split()[0] == "0"
    agent_is_out_of_reach(fresh)


def test_each_part_can_be_weakened_and_the_log_tells(make_server):
    server = make_server(sandbox_no_new_privs=False, sandbox_seccomp_allow=["keyctl", "unshare"],
                         sandbox_capabilities_add=["net_admin", "CAP_SYS_NICE"], sandbox_capabilities_drop=["MKNOD"],
                         sandbox_mask_paths=False, sandbox_nofile_max=4096).start()
    told = warnings(server)
    for word in ("sandbox_no_new_privs is off", "sandbox_mask_paths is off", "call keyctl", "call unshare",
                 "have net_admin", "have CAP_SYS_NICE"):
        assert sum(word in line for line in told) == 1, (word, told)
    assert weakened(server) == {"sandbox_no_new_privs": 1, "sandbox_seccomp": 0, "sandbox_mask_paths": 1,
                                "sandbox_seccomp_allow": 2, "sandbox_capabilities_add": 2}
    box = server.create()
    status = own_status(box)
    assert status["NoNewPrivs"] == "0" and status["Seccomp"] == "2"
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16) == (DEFAULT | CAP_NET_ADMIN | 1 << 23) & ~CAP_MKNOD
    assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    box.out(SET_USER_ID)
    assert box.out("/tmp/id -u", user="nobody") == "0\n"
    assert box.out("ulimit -Hn; ulimit -Sn").split() == ["4096", "4096"]
    assert box.out("ip link add d type dummy 2>&1 || true; unshare -U echo in").endswith("in\n")
    assert box.exec("mknod /tmp/n c 1 3")["exit_code"] != 0
    assert box.exec("echo x > /proc/sys/kernel/core_pattern; echo h > /proc/sysrq-trigger")["exit_code"] != 0
    agent_is_out_of_reach(box)


def test_a_reload_changes_neither_the_walls_nor_what_is_told_of_them(make_server):
    server = make_server(workers=1, sandbox_capabilities_add=["NET_ADMIN"]).start()
    old = server.processes()["worker"]
    server.settings.update(sandbox_no_new_privs=False, sandbox_seccomp=False, sandbox_mask_paths=False,
                           sandbox_capabilities_add=[], sandbox_capabilities_drop=["MKNOD"], sandbox_nofile_max=4096)
    server.write_conf()
    server.reload()
    eventually(lambda: not set(server.processes()["worker"]) & set(old), 60, "old worker gone")
    told = next(line["msg"] for line in server.log_lines() if "until a restart" in line.get("msg", ""))
    for name in ("sandbox_no_new_privs", "sandbox_seccomp", "sandbox_mask_paths", "sandbox_capabilities_add",
                 "sandbox_capabilities_drop", "sandbox_nofile_max"):
        assert name in told
    assert weakened(server) == {"sandbox_no_new_privs": 0, "sandbox_seccomp": 0, "sandbox_mask_paths": 0,
                                "sandbox_seccomp_allow": 0, "sandbox_capabilities_add": 1}
    status = own_status(server.create())
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert int(status["CapBnd"], 16) == DEFAULT | CAP_NET_ADMIN


def test_cpu_weight_and_as_many_helpers_as_set(make_server):
    helpers = os.cpu_count() + 6
    server = make_server(sandbox_cpu_weight=25, max_concurrent_creates=helpers).start()
    assert len(server.processes()["helper"]) >= helpers
    box = server.create()
    lines = [line.split(":", 2) for line in Path(f"/proc/{box.agent_pid()}/cgroup").read_text().splitlines()]
    places = {names: path for _, names, path in lines}
    v1 = next((path for names, path in places.items() if "cpu" in names.split(",")), None)
    if v1 is not None:
        mount = next(line.split() for line in Path("/proc/mounts").read_text().splitlines()
                     if " cgroup " in line and "cpu" in line.split()[3].split(","))[1]
        assert Path(f"{mount}{v1}/cpu.shares").read_text() == "256\n"
    else:
        assert Path(f"/sys/fs/cgroup{places['']}/../cpu.weight").read_text() == "25\n"


def io_weights(box):
    """File -> what it holds, of those that say the weight of the sandbox."""
    places = [line.split(":", 2) for line in Path(f"/proc/{box.agent_pid()}/cgroup").read_text().splitlines()]
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    v1 = next((Path(mount[1] + path) for _, names, path in places if "blkio" in names.split(",")
               for mount in mounts if mount[2] == "cgroup" and "blkio" in mount[3].split(",")), None)
    group = v1 or next(Path(mount[1] + path).parent for _, names, path in places if names == ""
                       for mount in mounts if mount[2] == "cgroup2")
    names = ("io.weight", "io.bfq.weight", "blkio.bfq.weight", "blkio.weight")
    return group, {name: (group / name).read_text().split()[-1] for name in names if (group / name).exists()}


def io_warnings(server):
    return [line["msg"] for line in server.log_lines() if "sandbox_io_weight has no effect" in line.get("msg", "")]


@pytest.mark.parametrize("weight", [25, 5000])
def test_io_weight(make_server, weight):
    server = make_server(sandbox_io_weight=weight).start()
    told = io_warnings(server)
    _, weights = io_weights(server.create())
    wanted = {"io.weight": weight, "io.bfq.weight": min(weight, 1000), "blkio.bfq.weight": min(weight, 1000),
              "blkio.weight": min(5 * weight, 1000)}
    assert weights == {name: str(wanted[name]) for name in weights}
    assert any("cgroup" in line for line in told) == (weights == {}), (told, weights)
    disks = [path.read_text() for path in Path("/sys/block").glob("*/queue/scheduler")]
    cost = Path("/sys/fs/cgroup/io.cost.qos")
    shared = any("[bfq]" in disk for disk in disks) or (cost.exists() and "enable=1" in cost.read_text())
    assert any("no disk" in line for line in told) == (not shared), (told, disks)
    check = subprocess.run([ORCHARDD, "-t", "-c", server.conf_path], env=server.environment(),
                           capture_output=True, text=True)
    assert "no disk" not in check.stdout + check.stderr if shared else check.stderr.count("no disk") == 1


def test_io_weight_of_old_sandboxes(make_server):
    """At the default no group is made for it, and those that are left from before are still removed."""
    server = make_server(sandbox_io_weight=25).start()
    old = server.create()
    group, weights = io_weights(old)
    told = io_warnings(server)
    server.stop()
    server.settings["sandbox_io_weight"] = 100
    server.start()
    assert io_warnings(server) == told
    assert old.out("echo here") == "here\n"
    old.delete()
    if "blkio" in "".join(weights):
        eventually(lambda: not group.exists())
    server.stop()
    server.start()
    assert set(io_weights(server.create())[1].values()) <= {"100", "500"}


def test_seccomp_off(make_server):
    server = make_server(sandbox_seccomp=False, sandbox_seccomp_allow=["keyctl"], sandbox_no_new_privs=False).start()
    assert [line for line in warnings(server) if "seccomp" in line] == [
        "sandbox_seccomp is off, every system call reaches the kernel"]
    box = server.create()
    assert own_status(box)["Seccomp"] == "0"
    assert box.exec("mount -t tmpfs none /mnt")["exit_code"] != 0  # it has no capability for that
    agent_is_out_of_reach(box)


@pytest.mark.parametrize("add, held", [([], 0), (["CHOWN"], 1)])
def test_commands_without_capabilities_and_an_agent_that_still_works(make_server, add, held):
    server = make_server(sandbox_capabilities_drop=["ALL"], sandbox_capabilities_add=add).start()
    assert len(warnings(server)) == len(add)
    box = server.create()
    status = own_status(box)
    for name in ("CapBnd", "CapEff", "CapPrm"):
        assert int(status[name], 16) == held, name
    assert int(status["CapInh"], 16) == int(status["CapAmb"], 16) == 0
    agent = status_of(Path(f"/proc/{box.agent_pid()}/status").read_text())
    assert int(agent["CapEff"], 16) == DEFAULT
    assert box.out("id -u; id -G", user="nobody").split() == ["65534", "65534"]
    assert set(own_status(box, user="nobody")[name] for name in ("CapInh", "CapPrm", "CapEff")) == {"0" * 16}
    job = box.exec("sleep 60", user="nobody", timeout_seconds=0.5)  # another user's process is ended all the same
    assert job["verdict"] == "timed_out"
    assert box.exec("chown nobody /tmp")["exit_code"] == (0 if add else 1)
    assert os.path.exists(f"/proc/{box.agent_pid()}")
    agent_is_out_of_reach(box)


def test_a_wrong_name_is_told_at_the_start(make_server):
    server = make_server(sandbox_capabilities_add=["SYS_PTRACE"])
    assert server.spawn().wait(20) != 0
    assert "sandbox_capabilities_add" in server.log() and "could change the agent" in server.log()
