"""A soak: sandboxes come and go while every process of the service is killed; then everything is counted again.

Used by test_soak.py and bench/soak.py. What is counted: processes, agents, mounts, control groups, namespaces,
files, descriptors and places in the tables.
"""

import collections
import os
import random
import threading
import time
from pathlib import Path

import httpx

from orchard_server import children, eventually, is_zombie
from storm import BLOWS, choose, open_files

NAMESPACES = ("mnt", "pid", "user", "net", "uts", "ipc", "cgroup")


def server_pids(server):
    return [pid for role in server.processes().values() for pid in role]


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child] + descendants(child)
    return found


def groups_of(prefix):
    """Control groups of our sandboxes, in every hierarchy."""
    return sum(name.startswith(prefix) for _, names, _ in os.walk("/sys/fs/cgroup") for name in names)


def mounts_of(server):
    """What the host and the spawner have mounted of ours."""
    found = 0
    for pid in ("self", server.processes()["spawner"][0]):
        text = Path(f"/proc/{pid}/mountinfo").read_text()
        found += sum(str(server.run_dir) in line or str(server.state_dir) in line for line in text.splitlines())
    return found


def table_places(server):
    """Sandboxes, live jobs and places in the queue, as the metrics say."""
    text = server.client.get("/metrics").text
    wanted = ("orchard_sandboxes{", "orchard_jobs_live ", "orchard_execs_running ", "orchard_execs_queued ", "orchard_waiters ")
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(wanted))


def census(server, prefix):
    pids = [server.process.pid] + descendants(server.process.pid)
    spaces = {os.readlink(f"/proc/{pid}/ns/{kind}") for pid in pids for kind in NAMESPACES}
    tops = [server.state_dir / name for name in ("sandboxes", "trash", "images/tmp")]
    tops += [server.run_dir / name for name in ("sandboxes", "runtime", "network")]
    # What blanks stand on is there or not, as they come and go.
    files = [path for top in tops for path in [top, *top.rglob("*")] if path.exists() and "/sandboxes/-" not in str(path)]
    return {
        "processes": len([pid for pid in pids if not is_zombie(pid)]),
        "zombies": len([pid for pid in pids if is_zombie(pid)]),
        "agents": len(server.agents()),
        "mounts": mounts_of(server),
        "groups": groups_of(prefix),
        "namespaces": len(spaces),
        "files": len(files),
        "places": table_places(server),
    }


def descriptors(server):
    return {role: max(open_files(pid) for pid in pids) for role, pids in server.processes().items()}


class Soak:
    def __init__(self, server, seed, cycles, image, clients=6, pause=(0.2, 1.2)):
        self.server, self.seed, self.left, self.image = server, seed, cycles, image
        self.clients, self.pause = clients, pause
        self.prefix = f"soak{seed % (1 << 32):x}-"
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.counts = collections.Counter()
        self.faults = []
        self.seconds = 0.0

    def admit(self):
        with self.lock:
            self.left -= 1
            return self.left >= 0

    # --- a client ---------------------------------------------------------
    def client(self, number):
        rng = random.Random(f"{self.seed}/client/{number}")
        with httpx.Client(base_url=self.server.client.base_url, headers=self.server.client.headers, timeout=120) as http:
            while self.admit():
                try:
                    self.cycle(http, rng, f"{self.prefix}{number}-{rng.randrange(4)}")
                except Exception as error:
                    self.faults.append(f"client {number}: {error!r}")
                    return

    def ask(self, http, method, path, **fields):
        """Asks until there is an answer that is not "again"."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                answer = http.request(method, path, **fields)
            except httpx.TransportError:
                self.counts["cut"] += 1
                self.over.wait(0.05)
                continue
            if answer.status_code not in (409, 503):
                return answer
            self.counts[answer.json()["code"]] += 1
            if answer.json()["code"] == "sandbox_not_ready":
                return answer
            self.over.wait(0.05)
        raise AssertionError(f"{method} {path}: no end")

    def cycle(self, http, rng, box):
        """One life of one of few ids, so that the next one often follows at once."""
        mark = f"{rng.randrange(1 << 60):x}"
        fate = choose(rng, {"at once": 2, "ready": 4, "used": 4, "by ttl": 1})
        body = {"image": self.image, "sandbox_id": box, "memory": "64Mi", "labels": {"mark": mark}}
        made = self.ask(http, "POST", "/sandboxes", json=body | ({"ttl_seconds": rng.uniform(0.1, 1)} if fate == "by ttl" else {}))
        if made.status_code != 200:
            raise AssertionError(f"{box}: {made.status_code} {made.text}")
        self.counts[fate] += 1
        if fate in ("ready", "used"):
            self.ask(http, "GET", f"/sandboxes/{box}/wait?timeout=60")
        if fate == "used":
            self.use(http, box, mark)
        elif fate == "by ttl":
            eventually(lambda: self.ask(http, "GET", f"/sandboxes/{box}").status_code == 404, 60, f"{box}: ttl")
        gone = self.ask(http, "DELETE", f"/sandboxes/{box}")
        if gone.status_code != 200:
            raise AssertionError(f"{box} is not deleted: {gone.status_code} {gone.text}")
        self.counts["cycles"] += 1

    def use(self, http, box, mark):
        """An earlier life of the id has left its mark: nobody may ever see it."""
        job = self.ask(http, "POST", f"/sandboxes/{box}/exec", json={
            "command": f"test ! -e /mark || grep -v {mark} /mark; echo {mark} > /mark"}).json()
        if job.get("verdict") == "exited" and job["stdout"] != "":
            self.faults.append(f"{box}: the remains of another life: {job}")
        self.counts[f"command {job.get('verdict', job.get('code'))}"] += 1

    # --- blows ------------------------------------------------------------
    def killer(self):
        rng = random.Random(f"{self.seed}/killer")
        while not self.over.wait(rng.uniform(*self.pause)):
            blow = choose(rng, BLOWS)
            self.counts[f"blow {blow}"] += 1
            if blow in ("server", "master"):
                (self.server.kill_all if blow == "server" else self.server.kill_master)()
                self.server.start()
            elif blow == "reload":
                self.server.reload()
            else:
                self.strike(rng, blow)

    def strike(self, rng, blow):
        role = {"workers": "worker", "stop": "reaper"}.get(blow, blow)
        pids = self.server.processes().get(role, [])
        for pid in pids if blow == "workers" else pids and [rng.choice(pids)]:
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass

    # --- the whole --------------------------------------------------------
    def settle(self, before):
        """Nothing may be left but what there was before, and by itself."""
        roles = {"worker", "gateway", "reaper", "spawner", "helper"}
        eventually(lambda: set(self.server.processes()) >= roles, 90, lambda: f"all are back: {self.server.processes()}")
        self.server.wait_ready(90)

        def rest():
            try:
                now = census(self.server, self.prefix)
            except (OSError, KeyError, httpx.TransportError):  # somebody left while it was counted
                return {"nothing": (0, 0)}
            return {name: (before[name], now[name]) for name in before if now[name] != before[name]}
        try:
            eventually(lambda: not rest(), 90)
        except AssertionError:
            self.faults.append(f"not as before (before, now): {rest()}; {self.server.remains()}")

    def warm(self):
        """Every process has opened what it keeps open."""
        with httpx.Client(base_url=self.server.client.base_url, headers=self.server.client.headers, timeout=120) as http:
            for number in range(8):
                self.ask(http, "POST", "/sandboxes", json={"image": self.image, "sandbox_id": f"{self.prefix}{number}"})
                self.ask(http, "GET", f"/sandboxes/{self.prefix}{number}/wait?timeout=60")
                self.ask(http, "POST", f"/sandboxes/{self.prefix}{number}/exec", json={"command": "true"})  # the log of jobs
                self.ask(http, "DELETE", f"/sandboxes/{self.prefix}{number}")
        eventually(lambda: not self.server.remains(), 60, "warm ones are gone")

    def run(self):
        self.warm()
        before, open_before = census(self.server, self.prefix), descriptors(self.server)
        began = time.monotonic()
        clients = [threading.Thread(target=self.client, args=(number,)) for number in range(self.clients)]
        killer = threading.Thread(target=self.killer)
        for thread in clients + [killer]:
            thread.start()
        for thread in clients:
            thread.join()
        self.over.set()
        killer.join()
        self.seconds = time.monotonic() - began
        self.settle(before)
        for role, count in descriptors(self.server).items():
            if count > open_before.get(role, 0) + 24:  # connections that are kept for a while
                self.faults.append(f"a {role} has {count} descriptors open, {open_before} before")
        return self.faults

    def report(self):
        lines = [f"seed {self.seed}: {self.counts['cycles']} cycles in {self.seconds:.0f} s"]
        lines += [f"  {name}: {count}" for name, count in sorted(self.counts.items())]
        return "\n".join(lines + [f"FAULT {fault}" for fault in self.faults])
