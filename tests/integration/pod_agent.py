"""A real agent for a pod of a FakeCluster, in cgroups of its own, which it sees as a container does."""

import os
import secrets
import subprocess
from pathlib import Path

from orchard_server import AGENT, eventually

SHOW = """
    for one in $1; do echo $$ >"${one%=*}/cgroup.procs" || exit 1; done
    exec unshare --mount sh -c '
        mount -t tmpfs none /mnt || exit 1
        for one in $1; do
            mkdir -p "/mnt/${one#*=}" && mount --bind "${one%=*}" "/mnt/${one#*=}" || exit 1
        done
        mount --rbind /mnt /sys/fs/cgroup && exec "$2" --listen "$3"' sh "$@"
"""


def hierarchies():
    """Where groups can be made: {directory: its place below /sys/fs/cgroup}; all of version 1, or version 2."""
    found = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        place = Path(fields.split()[4])
        if kind.startswith("cgroup ") and place.name in ("memory", "pids", "cpuacct", "cpu,cpuacct"):
            found[place] = place.name
    return found or {Path("/sys/fs/cgroup"): "."}


class PodAgent:
    def __init__(self, cluster, name):
        """The pod is there and does not run yet."""
        cluster.run(name, silent=True)
        pod = cluster.pods[name]
        config = next(one["value"] for one in pod["spec"]["containers"][0]["env"] if one["name"] == "ORCHARD_AGENT_CONFIG")
        self.groups = {}
        for place, shown in hierarchies().items():
            group = place / f"orchard-test-{secrets.token_hex(6)}"
            group.mkdir()
            self.groups[group] = shown
        words = " ".join(f"{group}={shown}" for group, shown in self.groups.items())
        self.process = subprocess.Popen(
            ["sh", "-c", SHOW, "sh", words, AGENT, f"{pod['status']['podIP']}:9090"], stdin=subprocess.DEVNULL,
            env={"PATH": os.environ["PATH"], "ORCHARD_AGENT_CONFIG": config})

    def counts(self):
        """What the kernel counts here."""
        files = {"cpu_s": ("cpu.stat", "cpuacct.usage"), "memory_bytes": ("memory.current", "memory.usage_in_bytes"),
                 "memory_peak_bytes": ("memory.peak", "memory.max_usage_in_bytes"), "pids": ("pids.current",)}
        return {name for name, there in files.items() if any((group / one).exists() for group in self.groups for one in there)}

    def close(self):
        self.process.kill()
        self.process.wait()
        for group in self.groups:
            eventually(lambda group=group: remove(group), 10, f"{group} is empty")


def remove(group):
    try:
        group.rmdir()
    except OSError:
        return False
    return True
