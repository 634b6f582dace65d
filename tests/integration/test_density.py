"""Many sandboxes at once: all come up, each costs little, and nothing of them stays."""

import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from orchard_server import SANITIZED, Sandbox, children, eventually, is_agent

BOXES = 30 if SANITIZED else 100
CLIENTS = 8
MIB = 1 << 20


def groups(prefix):
    return [Path(root) / name for root, names, _ in os.walk("/sys/fs/cgroup") for name in names if name.startswith(prefix)]


def charged(group):
    """Bytes of memory that its cgroups count for one sandbox."""
    for name in ("memory.current", "memory.usage_in_bytes"):
        if (group / name).exists():
            return int((group / name).read_text())
    return 0


def private_bytes(pid):
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:"))


def share(pid):
    """Bytes of memory, with its part of what others have mapped too; 0 for a process that has just ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return 1024 * next((int(line.split()[1]) for line in rollup if line.startswith("Pss:")), 0)


def census(server, prefix):
    """What sandboxes add to, counted."""
    roles = server.processes()
    spawner = roles["spawner"][0]
    own = [server.process.pid] + [pid for name in ("spawner", "helper") for pid in roles[name]]
    return {"agents": len([pid for pid in children(spawner) if is_agent(pid)]),
            "mounts": len(Path(f"/proc/{spawner}/mountinfo").read_text().splitlines()),
            "cgroups": len(groups(prefix)),
            "files": len(server.remains()),
            "descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in own)}


def make_and_use(server, name):
    box = server.create(sandbox_id=name, memory="128Mi")
    assert box.out(["/bin/echo", name]) == name + "\n"
    return box


def shared_bytes(server):
    return (server.run_dir / "shm").stat().st_blocks * 512


def test_many_at_once_cost_little_and_leave_nothing(make_server, busybox):
    server = make_server(default_image=busybox).start()
    prefix = f"density-{os.getpid()}-"
    make_and_use(server, prefix + "first").delete()  # what the first one alone brings
    eventually(lambda: not server.remains(), 60, "the first one is gone")
    before, shared = census(server, prefix), shared_bytes(server)

    names = [f"{prefix}{number}" for number in range(BOXES)]
    with ThreadPoolExecutor(CLIENTS) as pool:
        boxes = list(pool.map(lambda name: make_and_use(server, name), names))
    live = census(server, prefix)
    assert live["agents"] == before["agents"] + BOXES
    assert live["mounts"] == before["mounts"]  # every mount is in a sandbox's own namespace
    assert live["descriptors"] <= before["descriptors"] + BOXES // 2  # the spawner holds none for each
    each = [sum(charged(group) for group in groups(name) if group.name == name) for name in names[:20]]
    assert statistics.median(each) < MIB, each
    agents = [private_bytes(box.agent_pid()) for box in boxes[:20]]
    assert statistics.median(agents) < MIB // 2, agents
    assert (shared_bytes(server) - shared) / BOXES < 64 * 1024

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(Sandbox.delete, boxes))
    eventually(lambda: not server.remains(), 120, lambda: f"all are gone: {len(server.remains())}")
    eventually(lambda: census(server, prefix) == before, 60, lambda: f"as before: {before}, now {census(server, prefix)}")
    assert shared_bytes(server) < 20 * MIB


def test_limits_of_the_host_that_are_too_low_are_told(make_server):
    limit = int(Path("/proc/sys/user/max_net_namespaces").read_text())
    if limit > 900000:
        pytest.skip("no setting reaches the limit")
    server = make_server(max_sandboxes=limit).start()
    assert "max_net_namespaces is" in server.log(100_000) and "max_sandboxes" in server.log(100_000)


def test_an_idle_server_is_small(make_server):
    server = make_server().start()
    assert shared_bytes(server) < 6 * MIB
    if SANITIZED:
        return
    own = [server.process.pid] + [pid for role in server.processes().values() for pid in role]
    assert sum(share(pid) for pid in own) + shared_bytes(server) < 20 * MIB
