# SPDX-License-Identifier: MIT
"""Sandboxes by the thousand, and one after the other against crun: times, memory of each, what is left behind."""

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time

from measure import Api, children, cpu_seconds, median_ms, private_kib, show, timed
from own_server import OwnServer

LIMITS = {"memory": "256Mi", "cpu": 1}
CGROUPS = "/sys/fs/cgroup"


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1000


# --- what there is ---

def slab_objects(name):
    """Of the whole host: all namespaces of a kind, also those that no process is in."""
    with open("/proc/slabinfo") as slabs:
        return next((int(line.split()[1]) for line in slabs if line.startswith(name + " ")), 0)


def cgroups(prefix):
    found = []
    for root, names, _ in os.walk(CGROUPS):
        found += [os.path.join(root, name) for name in names if name.startswith(prefix)]
    return found


def census(server, prefix):
    """Everything a sandbox has, counted."""
    spawner = server.role("spawner")[0]
    family = server.pids() + children(spawner)
    with open(f"/proc/{spawner}/mountinfo") as mounts:
        mount_count = len(mounts.readlines())
    return {"processes": sum(name_of(pid) != "orchard-blank" for pid in children(spawner)), "mounts": mount_count, "cgroups": len(cgroups(prefix)),
            "directories": len(sandboxes_in(server.state_dir)) + len(os.listdir(f"{server.state_dir}/trash")),
            "sockets": len(sandboxes_in(server.run_dir)),
            "descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in family if is_ours(pid))}


def sandboxes_in(directory):
    """Names of their directories there, but for what is made ahead."""
    return [name for name in os.listdir(f"{directory}/sandboxes") if not name.startswith("-")]


def name_of(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm") as comm:
        return comm.read().strip()
    return None


def is_ours(pid):
    """A process of the server: no agent, and no blank, whose memory is its helper's."""
    return name_of(pid) not in (None, "orchard-agent", "orchard-blank")


def kernel_kib():
    """What the kernel holds and can't give back; the host's, so others' share is in it."""
    with open("/proc/meminfo") as info:
        fields = {line.split(":")[0]: int(line.split()[1]) for line in info}
    return {"kernel": sum(fields[name] for name in ("SUnreclaim", "KernelStack", "PageTables", "Percpu")),
            "reclaimable": fields["SReclaimable"], "available": fields["MemAvailable"]}


def cgroup_kib(prefix):
    total = 0
    for group in cgroups(prefix):
        for name in ("memory.usage_in_bytes", "memory.current"):
            with contextlib.suppress(OSError), open(f"{group}/{name}") as value:
                total += int(value.read()) // 1024
    return total


def memory(server, prefix):
    spawner = server.role("spawner")[0]
    agents = [pid for pid in children(spawner) if not is_ours(pid)]
    own = [pid for pid in server.pids() + children(spawner) if is_ours(pid)]
    return kernel_kib() | {"agents": sum(private_kib(pid, ("Anonymous:",)) for pid in agents),
                           # what processes have in common since their fork counts once
                           "server": sum(private_kib(pid, ("Pss_Anon:",)) for pid in own),
                           "shared": os.stat(f"{server.run_dir}/shm").st_blocks // 2, "cgroups": cgroup_kib(prefix)}


# --- many ---

def in_parallel(server, clients, items, work):
    """work(api, item) for each, by so many connections; returns the seconds of each and of all."""
    waiting, spent, failures = list(reversed(items)), [], []

    def client():
        api = Api(server)
        while waiting and not failures:
            try:
                item = waiting.pop()
            except IndexError:
                return
            try:
                spent.append(timed(lambda: work(api, item)))
            except (Exception, SystemExit) as error:
                failures.append(f"{item}: {error}")

    threads = [threading.Thread(target=client) for _ in range(clients)]

    def all_of_it():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    total = timed(all_of_it)
    if failures:
        raise SystemExit(f"density: {failures[0]}")
    return spent, total


def seconds_until(condition, limit=120):
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > limit:
            return None
        time.sleep(0.02)
    return time.perf_counter() - began


def show_times(name, spent, total):
    show(name, f"{total:.2f} s for {len(spent)}; each: median {median_ms(spent):.1f} ms, p99 {percentile(spent, 0.99):.1f} ms, "
         f"at least {min(spent) * 1000:.1f} ms")


def show_memory(before, after, count):
    each = {name: (after[name] - before[name]) / count for name in after}
    each["available"] = -each["available"]
    told = each["kernel"] + each["agents"] + each["server"] + each["shared"]
    show("memory of each, all told", f"{told:.0f} KiB: kernel {each['kernel']:.0f}, agent {each['agents']:.0f}, server "
         f"{each['server']:.0f}, shared memory {each['shared']:.1f}; beside that reclaimable slab {each['reclaimable']:.0f}")
    show("", f"its cgroup {each['cgroups']:.0f} KiB; the host's MemAvailable went down by {each['available']:.0f} KiB each")


def run_density(server, options):
    prefix = f"density-{os.getpid()}-"
    names = [f"{prefix}{number}" for number in range(options.boxes)]
    in_parallel(server, 1, [prefix + "first"], make_one)  # what the first one alone pays
    in_parallel(server, 8, [prefix + "first"] * 64, run_one)  # every worker has opened the log of jobs
    in_parallel(server, 1, [prefix + "first"], lambda api, name: api.delete(name))
    seconds_until(lambda: census(server, prefix)["directories"] == 0)
    before, free, namespaces = census(server, prefix), memory(server, prefix), slab_objects("net_namespace")
    show("server, idle", f"{free['server']} KiB private, {free['shared']} KiB of shared memory, {before['descriptors']} descriptors")

    family = server.pids() + children(server.role("spawner")[0])
    spent, total = in_parallel(server, options.clients, names, make_one)
    show_times("create to ready", spent, total)
    at_work = memory(server, prefix)
    show_memory(free, at_work, len(names))
    live = census(server, prefix)
    show("", "of each: " + ", ".join(f"{(live[kind] - before[kind]) / len(names):.2f} {kind}" for kind in before))
    idle = cpu_seconds(family)
    time.sleep(options.seconds)
    show("server, CPU while all are idle", f"{(cpu_seconds(family) - idle) / options.seconds * 100:.1f} % of a processor")
    spent, total = in_parallel(server, 1, names, run_one)
    show_times("exec /bin/true, one at a time", spent, total)

    began = time.perf_counter()
    spent, total = in_parallel(server, options.clients, names, lambda api, name: api.delete(name))
    show_times("delete, to the answer", spent, total)
    seconds_until(lambda: not sandboxes_in(server.state_dir))
    stopped = time.perf_counter() - began
    gone = seconds_until(lambda: not os.listdir(f"{server.state_dir}/trash"))
    total = time.perf_counter() - began
    show("all gone", f"processes, cgroups and sockets after {stopped:.2f} s, files after {total:.2f} s" if gone is not None
         else "not within two minutes")
    after = census(server, prefix)
    left = {kind: after[kind] - before[kind] for kind in before if after[kind] != before[kind]}
    show("left behind", json.dumps(left) if left else "nothing")
    waited = seconds_until(lambda: slab_objects("net_namespace") <= namespaces + 5)
    show("", f"network namespaces gone {waited:.2f} s later" if waited is not None else
         f"network namespaces of the host: {namespaces} before, {slab_objects('net_namespace')} now")


def make_one(api, name):
    api.call("POST", "/sandboxes", {"image": "default", "sandbox_id": name} | LIMITS)
    state = api.call("GET", f"/sandboxes/{name}/wait?timeout=110")
    if state["status"] != "ready":
        raise SystemExit(f"{state}")


def run_one(api, name):
    job = api.exec(name, ["/bin/true"])
    if job["status"] != "succeeded":
        raise SystemExit(f"{job}")


def bench_density(options):
    """Many live sandboxes at once: their making, memory, and removal, and what is left behind."""
    show("", f"{options.boxes} sandboxes, {options.clients} connections, load average {os.getloadavg()[0]:.1f}")
    with OwnServer(options.build, options.image) as server:
        run_density(server, options)


# --- one after the other ---

class Crun:
    """`crun run -d` of a root that nothing writes to, with the same limits, in namespaces of the same kinds."""

    def __init__(self, image):
        self.bundle = tempfile.mkdtemp(prefix="orchard-bench-crun-")
        subprocess.run(["crun", "spec"], cwd=self.bundle, check=True)
        with open(f"{self.bundle}/config.json") as config:
            spec = json.load(config)
        spec["root"] = {"path": image, "readonly": True}
        spec["process"] |= {"terminal": False, "args": ["/bin/sleep", "1000"]}
        linux = spec["linux"]
        linux["namespaces"] = [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount", "cgroup", "user")]
        linux["uidMappings"] = linux["gidMappings"] = [{"containerID": 0, "hostID": 900000000, "size": 65536}]
        linux["resources"] = {"memory": {"limit": 256 << 20}, "cpu": {"quota": 100000, "period": 100000},
                              "pids": {"limit": 1024}}
        with open(f"{self.bundle}/config.json", "w") as config:
            json.dump(spec, config)
        # Debian's crun refuses hosts with v1 groups beside v2: the shell that runs it does not see the latter.
        self.shell = subprocess.Popen(["unshare", "--mount", "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask("umount /sys/fs/cgroup/unified 2>/dev/null; true")

    def ask(self, command):
        self.shell.stdin.write(f"{command}; echo $?\n")
        self.shell.stdin.flush()
        code = self.shell.stdout.readline().strip()
        if code != "0":
            with open(f"{self.bundle}/log") as log:
                raise SystemExit(f"crun: {log.read()[-500:]}")

    def create(self, name):
        self.ask(f"crun run -d --bundle {self.bundle} {name} </dev/null >{self.bundle}/log 2>&1")

    def delete(self, name):
        self.ask(f"crun delete -f {name} </dev/null >{self.bundle}/log 2>&1")

    def close(self):
        self.shell.stdin.close()
        self.shell.wait()
        shutil.rmtree(self.bundle)


def bench_create_ratio(options):
    """create to ready and delete through the API, in turn with `crun run -d` and `crun delete -f` of the same root."""
    if not shutil.which("crun"):
        show("create against crun", "skipped: crun is not installed")
        return
    crun = Crun(options.image)
    ours, theirs, our_ends, their_ends = [], [], [], []
    with OwnServer(options.build, options.image) as server, contextlib.closing(crun):
        api = Api(server)
        for number in range(options.count // 2 + 5):
            name = f"ratio-{os.getpid()}-{number}"
            times = (timed(lambda: make_one(api, name)), timed(lambda: crun.create(name)),
                     timed(lambda: api.delete(name)), timed(lambda: crun.delete(name)))
            for values, seconds in zip((ours, theirs, our_ends, their_ends), times if number >= 5 else ()):
                values.append(seconds)
        steps = create_steps(api)
    ratio = statistics.median(theirs) / statistics.median(ours)
    show("create to ready, one at a time", f"median {median_ms(ours):.2f} ms, at least {min(ours) * 1000:.2f} ms, p99 "
         f"{percentile(ours, 0.99):.1f} ms")
    show("crun run -d, in turn", f"median {median_ms(theirs):.2f} ms, at least {min(theirs) * 1000:.2f} ms; ratio {ratio:.2f} "
         f"(median of the pairs {statistics.median(b / a for a, b in zip(ours, theirs)):.2f})")
    show("delete (answer)", f"median {median_ms(our_ends):.2f} ms; crun delete -f {median_ms(their_ends):.2f} ms")
    if steps:
        show("steps of a create, ms", ", ".join(f"{name} {seconds * 1000:.2f}" for name, seconds in steps))


def create_steps(api):
    """Mean seconds of each step as the server counted them."""
    sums, counts = {}, {}
    for line in api.text("/metrics").splitlines():
        name, _, value = line.rpartition(" ")
        for kind, into in (("sum", sums), ("count", counts)):
            start = f'orchard_create_step_seconds_{kind}{{step="'
            if name.startswith(start):
                into[name[len(start):-2]] = float(value)
    return [(step, sums[step] / counts[step]) for step in sums if counts.get(step)]
