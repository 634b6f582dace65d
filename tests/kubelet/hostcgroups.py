"""Control groups of a test's own: all that the node makes lies below one group in each hierarchy."""

import os
import subprocess
from pathlib import Path

from orchard_server import eventually

TOP = Path("/sys/fs/cgroup")


def hierarchies():
    """(controllers or name=NAME, where it is mounted, the group of this process) of each hierarchy of version 1."""
    found = []
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if number != "0":
            found.append((controllers, TOP / controllers.removeprefix("name="), path.lstrip("/")))
    return found


def make(name):
    """The group NAME below that of this process, everywhere; returns their directories."""
    made = []
    for controllers, mounted, path in hierarchies():
        group = mounted / path / name
        group.mkdir()
        made.append(group)
        if controllers == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                (group / file).write_text((group.parent / file).read_text())
    return made


def enter(groups):
    for group in groups:
        (group / "cgroup.procs").write_text("0")


def mount():
    """Over this mount namespace's view: only what lies below the root of the group namespace."""
    all_of_them = hierarchies()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "cgroups", TOP], check=True)
    for controllers, mounted, _ in all_of_them:
        mounted.mkdir()
        options = f"none,{controllers}" if "=" in controllers else controllers
        subprocess.run(["mount", "-t", "cgroup", "-o", options, "cgroup", mounted], check=True)


def inside(groups):
    return [path for group in groups for path, _, _ in os.walk(group, topdown=False)]


def remove(groups):
    def removed():
        for path in inside(groups):
            try:
                os.rmdir(path)
            except OSError:  # who was killed is still ending
                pass
        return not any(group.exists() for group in groups)
    eventually(removed, 30, lambda: f"no control group is left: {inside(groups)}")
