"""A sandbox that was made ahead is walled like one that was not, and what is made ahead stays with the server that made it."""

import json
import re
from pathlib import Path

import pytest

from orchard_server import eventually

BLANKS = 3
STATUS = ("Umask", "Groups", "NSpid", "NSsid", "NSpgid", "Cap", "NoNewPrivs", "Seccomp", "Sig", "Shd", "TracerPid", "CoreDumping",
          "Cpus_allowed_list", "Mems_allowed_list")
INSIDE = """
cat /proc/1/limits /proc/1/cgroup; tr '\\0' '\\n' </proc/1/environ; cat /proc/1/cmdline | tr '\\0' ' '
for kind in /proc/sys/user/max_*_namespaces; do echo $kind $(cat $kind); done
cat /proc/self/uid_map | wc -l; cat /proc/1/oom_score_adj; cat /proc/1/sessionid /proc/1/loginuid
ls -la / /dev /dev/pts /dev/shm /proc/1/task/1/fd 2>&1 | wc -l
ls /sys/class/net; cat /proc/net/route | wc -l; cut -d' ' -f1 /proc/net/if_inet6; df -k /dev/shm | tail -n 1
cat /proc/sys/kernel/hostname /etc/hostname /etc/hosts /etc/resolv.conf; umask; id
"""


def blanks(server):
    return server.processes().get("blank", [])


def await_blanks(server, count=BLANKS):
    return eventually(lambda: len(found := blanks(server)) == count and (found or True), 30, lambda: f"{count} blanks: {blanks(server)}")


def group_of(box):
    return json.loads((box.server.state_dir / "sandboxes" / box.id / "state.json").read_text()).get("group")


def groups(server):
    return {path.name for top in server.cgroups() for path in top.iterdir() if path.is_dir()}


def mounts(pid):
    """In the order of their places: options, propagation, kind; without what counts up."""
    lines = []
    for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines():
        words = line.split(" ", 3)[3]  # not its number, its parent's, its device's
        lines.append(re.sub(r"/fd/\d+|([ug]id)=\d+", r"\1", words))
    return sorted(lines)


def portrait(box):
    pid = box.agent_pid()
    proc = Path(f"/proc/{pid}")
    status = [line for line in (proc / "status").read_text().splitlines() if line.startswith(STATUS)]
    status = [re.sub(r"^(NS\w+:\t)\d+", r"\1N", line) for line in status]
    mine = {link.name for link in Path("/proc/self/ns").iterdir() if link.readlink() == (proc / "ns" / link.name).readlink()}
    fds = {link.name: re.sub(r"\d+", "N", link.readlink().name) for link in (proc / "fd").iterdir() if int(link.name) <= 8}
    root = (proc / "root").readlink(), (proc / "cwd").readlink(), (proc / "comm").read_text()
    inside = box.out(INSIDE, timeout_seconds=60).replace(box.id, "NAME")
    return {"status": status, "mounts": mounts(pid), "shared": mine, "descriptors": fds, "root": root, "inside": inside}


@pytest.fixture(scope="module")
def pair(make_server_session):
    with_blanks = make_server_session(local_runtime="builtin", sandbox_blanks=BLANKS, network_subnet="10.231.0.0/16").start()
    without = make_server_session(local_runtime="builtin", sandbox_blanks=0, network_subnet="10.232.0.0/16").start()
    yield with_blanks, without
    with_blanks.close()
    without.close()


@pytest.mark.parametrize("block_network", [True, False])
def test_it_is_walled_like_any_other(pair, block_network):
    with_blanks, without = pair
    ahead = await_blanks(with_blanks)
    assert not blanks(without)
    one, other = [server.create(block_network=block_network, memory="128Mi", cpu="500m") for server in pair]
    assert one.agent_pid() in ahead and group_of(one) in groups(with_blanks)
    assert group_of(other) is None and groups(without) == {other.id}
    first, second = portrait(one), portrait(other)
    for part in first:
        assert first[part] == second[part], part
    one.delete()
    other.delete()
    await_blanks(with_blanks)
    eventually(lambda: len(groups(with_blanks)) == BLANKS and not groups(without), 20, lambda: groups(with_blanks))


def test_a_reload_keeps_them_and_loses_none(make_server, busybox):
    server = make_server(local_runtime="builtin", sandbox_blanks=BLANKS, default_image=busybox).start()
    await_blanks(server)
    box = server.create()
    workers = set(server.processes()["worker"])
    server.reload()
    eventually(lambda: not set(server.processes()["worker"]) & workers, 30, "old generation gone")
    assert box.out("echo through") == "through\n" and server.create().out("echo on") == "on\n"
    await_blanks(server)
    eventually(lambda: len(groups(server)) == BLANKS + 2, 20, lambda: groups(server))
    server.close()


def test_those_of_a_killed_spawner_go_and_what_was_one_stays(make_server, busybox):
    server = make_server(local_runtime="builtin", sandbox_blanks=BLANKS, default_image=busybox).start()
    await_blanks(server)
    box = server.create()
    await_blanks(server)
    before = groups(server)
    assert len(before) == BLANKS + 1
    server.replace("spawner")
    await_blanks(server)
    eventually(lambda: before & groups(server) == {group_of(box)} and len(groups(server)) == BLANKS + 1, 20, lambda: groups(server))
    assert box.out("echo on") == "on\n" and box.get().json()["usage"]["pids"] >= 1
    assert "orphan" not in server.log(100_000)
    box.delete()
    server.close()
