"""A storm: clients send counted commands while every process of the service is killed; then the accounts are made.

Each command appends its number to the file of its lane, so the files say what ran, how often and in which order,
and are compared with what the service says of each job. Used by test_storm.py and bench/storm.py.
"""

import asyncio
import collections
import os
import random
import signal
import time

from orchard_server import eventually
from storm_http import Connection, Cut

BIG = 2 << 20
SLICE = 500_000
LIVE_NOTHING = {name: 0.0 for name in ("orchard_jobs_live ", "orchard_execs_running ", "orchard_execs_queued ",
                                      "orchard_waiters ")}
ONCE, NEVER, MAYBE = "once", "never", "at most once"

# What a command does after it has noted its number, how often it is chosen, and how it may end.
KINDS = {
    "plain": 60,
    "status": 12,  # ends with a status of its own
    "timeout": 3,
    "cancel": 5,
    "big": 0.3,  # 2 MiB of output
    "slow": 3,  # a few tenths of a second
}
BLOWS = {
    "worker": 8,
    "workers": 1,  # all of them
    "reaper": 3,
    "spawner": 2,
    "helper": 2,
    "server": 2,  # the master with all children; then it is started again
    "master": 1,  # the master alone; the same
    "stop": 3,  # a worker stands still for a while
    "reload": 2,
}


class Fault(AssertionError):
    pass


def choose(rng, weights):
    return rng.choices(list(weights), list(weights.values()))[0]


def open_files(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except FileNotFoundError:
        return 0


class Command:
    __slots__ = ("number", "kind", "lane", "wait", "key", "job_id", "text", "fields", "status")

    def __init__(self, number, kind, lane, wait, key):
        self.number, self.kind, self.lane, self.wait, self.key = number, kind, lane, wait, key
        self.job_id = None
        self.status = number % 100 if kind == "status" else 0
        tail = {"plain": f"echo {number}", "status": f"echo {number}; exit {self.status}",
                "timeout": "sleep 300", "cancel": "sleep 300", "slow": f"sleep 0.{number % 4}; echo {number}",
                "big": f"head -c {BIG} /dev/zero"}[kind]
        self.text = f"echo {number} >> {lane.path}; {tail}"
        self.fields = {"lane": lane.name, "wait": wait}
        if kind == "timeout":
            self.fields["timeout_seconds"] = 0.2
        elif kind == "cancel":
            self.fields["timeout_seconds"] = 30  # for one that nobody could cancel


class Lane:
    def __init__(self, box, name):
        self.box, self.name = box, name
        self.path = f"/tmp/n{name}"
        self.expected = {}  # number -> ONCE, NEVER or MAYBE
        self.ordered = set()  # numbers whose place in the order of their client is known


class Client:
    """Sends its commands one after the other; those nobody waits for are collected in batches."""

    def __init__(self, storm, number):
        self.storm, self.id = storm, number
        self.rng = random.Random(f"{storm.seed}/client/{number}")
        self.http = storm.connection()
        self.turn = 0
        self.open = []

    async def run(self):
        while self.storm.admit():
            await self.one()
            if len(self.open) >= self.rng.randrange(1, 12):
                await self.collect()
        await self.collect()
        self.http.close()

    async def one(self):
        kind = choose(self.rng, KINDS)
        wait = kind != "cancel" and self.rng.random() < 0.6
        self.turn += 1
        number = self.turn * self.storm.clients + self.id
        key = f"{self.storm.seed}-{number}" if self.rng.random() < 0.4 else None
        command = Command(number, kind, self.rng.choice(self.storm.lanes), wait, key)
        # Until more is known of it.
        command.lane.expected[command.number] = MAYBE
        job = await self.send(command)
        if command.job_id is None:
            return
        if kind == "cancel":
            await self.cancel(command)
        if job is None or job["status"] in ("queued", "running"):
            self.open.append(command)
        else:
            self.storm.judge(command, job)

    async def post(self, command):
        body = {"command": command.text} | command.fields
        return await self.http.request("POST", f"/sandboxes/{command.lane.box}/exec", body, key=command.key)

    async def send(self, command):
        began = time.time()
        while True:
            try:
                status, answer = await self.post(command)
                break
            except Cut as cut:
                self.storm.counts["cut" if cut.sent else "not connected"] += 1
                if cut.sent:
                    await self.find(command, began)
                else:
                    await asyncio.sleep(0.02)
                if not command.key:
                    if not cut.sent:
                        command.lane.expected[command.number] = NEVER
                    return None
                command.lane.expected[command.number] = MAYBE
                self.storm.counts["sent again by key"] += 1
        return await self.take_answer(command, status, answer)

    async def take_answer(self, command, status, answer):
        if status == 200:
            if command.job_id not in (None, answer["job_id"]):
                self.storm.fault(f"{command.text!r}: two jobs for one key: {command.job_id} and {answer}")
            command.job_id = answer["job_id"]
            command.lane.ordered.add(command.number)
            if command.key and command.number % 8 == 0:
                await self.repeat(command)
            return answer if command.wait else None
        if command.job_id is not None:
            self.storm.counts["refused, though it is recorded"] += 1
            return None
        self.storm.counts[f"refused {answer['code']}"] += 1
        command.job_id = answer.get("job_id")
        if command.job_id is None:
            if status not in (503, 409):
                raise Fault(f"{command.text}: {status} {answer}")
            command.lane.expected[command.number] = NEVER
            await asyncio.sleep(0.05)
        return None

    async def repeat(self, command):
        """What has been answered can be asked for again."""
        try:
            status, answer = await self.post(command)
        except Cut:
            return
        if status == 200 and answer["job_id"] != command.job_id:
            self.storm.fault(f"{command.text!r}: two jobs for one key: {command.job_id} and {answer}")
        self.storm.counts[f"repeated, {status}"] += 1

    async def ask(self, method, path, timeout=120.0):
        """Asks until there is an answer that is not a refusal to look now."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                status, answer = await self.http.request(method, path)
                if status != 503:
                    return status, answer
            except Cut:
                pass
            if time.monotonic() > deadline:
                raise Fault(f"{method} {path}: no answer in {timeout} s")
            await asyncio.sleep(0.05)

    async def find(self, command, began):
        """The connection broke without an answer: the sandbox's list tells."""
        status, answer = await self.ask("GET", f"/sandboxes/{command.lane.box}/jobs")
        if status != 200:
            raise Fault(f"list of jobs: {status} {answer}")
        jobs = answer["jobs"]
        for job in jobs:
            if job["command"] == command.text:
                command.job_id = job["job_id"]
                self.storm.counts["cut, listed"] += 1
                return
        if len(jobs) < 100 or jobs[-1]["created_at"] < began - 1:
            command.lane.expected[command.number] = NEVER
            self.storm.counts["cut, not recorded"] += 1
        else:
            self.storm.counts["cut, list too short"] += 1

    async def collect(self):
        mine, self.open = self.open, []
        for command in mine:
            while True:
                status, job = await self.ask("GET", f"/jobs/{command.job_id}/wait?timeout=60")
                if status != 200:
                    raise Fault(f"job {command.job_id} of {command.text!r}: {status} {job}")
                if job["status"] not in ("queued", "running"):
                    break
                self.storm.check_time(command, job)
            self.storm.judge(command, job)

    async def cancel(self, command):
        if self.rng.random() < 0.5:  # let it start
            await asyncio.sleep(self.rng.random() * 0.1)
        status, job = await self.ask("POST", f"/jobs/{command.job_id}/cancel")
        if status != 200:
            raise Fault(f"cancel {command.job_id}: {status} {job}")


class Killer:
    """Strikes at random moments until it is told to stop."""

    def __init__(self, storm, pause):
        self.storm, self.server = storm, storm.server
        self.rng = random.Random(f"{storm.seed}/killer")
        self.pause = pause

    async def run(self, over):
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), self.rng.uniform(*self.pause))
            except asyncio.TimeoutError:
                blow = choose(self.rng, BLOWS)
                self.storm.counts[f"blow {blow}"] += 1
                await self.strike(blow)

    async def strike(self, blow):
        if blow in ("server", "master"):
            await asyncio.to_thread(self.restart, blow)
        elif blow == "reload":
            self.server.reload()
        elif blow == "stop":
            await self.stand_still()
        else:
            pids = self.server.processes().get("worker" if blow == "workers" else blow, [])
            for pid in pids if blow == "workers" else pids and [self.rng.choice(pids)]:
                self.signal(pid, signal.SIGKILL)

    async def stand_still(self):
        pids = self.server.processes().get("worker", [])
        if pids:
            pid = self.rng.choice(pids)
            self.signal(pid, signal.SIGSTOP)
            await asyncio.sleep(self.rng.uniform(0.02, 1.0))
            self.signal(pid, signal.SIGCONT)

    def restart(self, blow):
        if blow == "master":
            self.server.kill_master()
        else:
            self.server.kill_all()
        self.server.start()

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class Storm:
    def __init__(self, server, seed, commands, boxes=6, clients=24, pause=(0.1, 0.9), image="default"):
        self.server, self.seed, self.left, self.clients = server, seed, commands, clients
        self.commands = commands
        self.image, self.pause = image, pause
        self.counts = collections.Counter()
        self.verdicts = collections.Counter()
        self.faults = []
        rng = random.Random(f"{seed}/storm")
        self.boxes = [f"storm-{n}" for n in range(boxes)]
        self.lanes = [Lane(box, name) for box in self.boxes for name in ["", "a", "b"][:rng.randrange(1, 4)]]
        self.seconds = 0.0

    def connection(self):
        return Connection(self.server.port, self.server.key)

    def admit(self):
        self.left -= 1
        return self.left >= 0

    def fault(self, words):
        self.faults.append(words)

    # --- one job ----------------------------------------------------------
    def check_time(self, command, job):
        if time.time() - job["created_at"] > 300:
            raise Fault(f"{command.text!r} hangs: {job}")

    def judge(self, command, job):
        """Is this end of the job a possible one, and what must the file say then?"""
        verdict = job["verdict"]
        self.verdicts[verdict] += 1
        self.counts[command.kind] += 1
        command.lane.expected[command.number] = MAYBE
        if job["command"] != command.text or job["job_id"] != command.job_id:
            self.fault(f"another job's answer: {command.text!r}: {job}")
        if verdict == "never_started" or (verdict == "canceled" and job["usage"] is None):
            command.lane.expected[command.number] = NEVER
            if verdict == "never_started" and not command.wait:
                self.fault(f"given up, though it was promised: {job}")
            if job["usage"] is not None or job["exit_code"] is not None or job["status"] != "failed":
                self.fault(f"ran, though it says that it did not: {job}")
        elif verdict == "exited":
            command.lane.expected[command.number] = ONCE
            self.judge_exit(command, job)
        elif verdict == "timed_out":
            if command.kind not in ("timeout", "cancel") or job["exit_code"] != 124 or job["status"] != "failed":
                self.fault(f"timed out: {command.text!r}: {job}")
        elif verdict == "canceled":
            if command.kind != "cancel":
                self.fault(f"canceled by nobody: {command.text!r}: {job}")
        else:
            self.fault(f"{command.text!r}: {job}")

    def judge_exit(self, command, job):
        brief = {name: value for name, value in job.items() if name not in ("stdout", "stderr")}
        if command.kind in ("timeout", "cancel"):
            self.fault(f"ended, though it sleeps: {command.text!r}: {brief}")
        if job["exit_code"] != command.status or (job["status"] == "succeeded") != (command.status == 0):
            self.fault(f"status {command.status} expected: {command.text!r}: {brief}")
        if command.kind == "big":
            if job["stdout_bytes"] != BIG or not job["stdout_truncated"] or len(job["stdout"]) < BIG // 4:
                self.fault(f"output: {len(job['stdout'])}: {brief}")
        elif job["stdout"] != f"{command.number}\n" or job["stderr"] != "":
            self.fault(f"output {job['stdout']!r} {job['stderr']!r}: {brief}")

    # --- the whole --------------------------------------------------------
    async def prepare(self):
        http = self.connection()
        for box in self.boxes:
            status, answer = await http.request("POST", "/sandboxes", {
                "image": self.image, "sandbox_id": box, "memory": "256Mi", "ttl_seconds": 86000})
            assert status == 200, answer
        for box in self.boxes:
            status, answer = await http.request("GET", f"/sandboxes/{box}/wait?timeout=60")
            assert answer["status"] == "ready", answer
        http.close()

    async def churn(self, over):
        """Sandboxes come and go meanwhile."""
        client = Client(self, self.clients)
        number = 0
        while not over.is_set():
            number += 1
            box = f"churn-{number}"
            try:
                status, _ = await client.http.request("POST", "/sandboxes", {"image": self.image, "sandbox_id": box})
                if status == 200:
                    await client.ask("GET", f"/sandboxes/{box}/wait?timeout=20")
                    await client.http.request("POST", f"/sandboxes/{box}/exec", {"command": "echo churn"})
                await client.ask("DELETE", f"/sandboxes/{box}")
                self.counts["churned sandboxes"] += 1
            except Cut:
                pass
            await asyncio.sleep(0.2)
        client.http.close()

    async def rage(self):
        over = asyncio.Event()
        began = time.monotonic()
        killer = asyncio.create_task(Killer(self, self.pause).run(over)) if self.pause else None
        churn = asyncio.create_task(self.churn(over))
        clients = [asyncio.create_task(Client(self, number).run()) for number in range(self.clients)]
        watched = clients + [churn] + ([killer] if killer else [])
        try:
            waiting = set(clients)
            while waiting:
                await asyncio.wait(waiting, timeout=1, return_when=asyncio.FIRST_EXCEPTION)
                for task in watched:
                    if task.done():
                        task.result()
                waiting = {task for task in clients if not task.done()}
        finally:
            over.set()
            self.seconds = time.monotonic() - began
            if killer:
                await killer
            for task in clients:
                task.cancel()
            await churn

    async def settle(self):
        """A fresh command in every lane ends at once, nothing is live any more."""
        client = Client(self, self.clients)
        await client.ask("GET", "/ready")
        for lane in self.lanes:
            text, piece = "", "\n"
            while piece:
                status, job = await client.http.request("POST", f"/sandboxes/{lane.box}/exec", {
                    "command": f"touch {lane.path}; tail -c +{len(text) + 1} {lane.path} | head -c {SLICE}",
                    "lane": lane.name}, timeout=60)
                if status != 200 or job["status"] != "succeeded":
                    raise Fault(f"lane {lane.name!r} of {lane.box} is stuck: {status} {job}")
                piece = job["stdout"]
                text += piece
            self.account(lane, [int(word) for word in text.split()])
        client.http.close()

    def account(self, lane, ran):
        found = collections.Counter(ran)
        where = f"{lane.box}{lane.path}"
        for number, times in found.items():
            if times > 1:
                self.fault(f"{where}: {number} ran {times} times")
            if lane.expected.get(number) == NEVER:
                self.fault(f"{where}: {number} ran, though it was said not to")
            if number not in lane.expected:
                self.fault(f"{where}: {number} was never sent")
        for number, expected in lane.expected.items():
            if expected == ONCE and found[number] == 0:
                self.fault(f"{where}: {number} did not run")
        self.account_order(lane, ran, where)

    def account_order(self, lane, ran, where):
        newest = collections.defaultdict(int)
        for number in ran:
            client = number % self.clients
            if number in lane.ordered:
                if number < newest[client]:
                    self.counts["out of order"] += 1
                    self.fault(f"{where}: {number} ran after {newest[client]} of the same client")
                newest[client] = max(newest[client], number)

    def run(self):
        asyncio.run(self.prepare())
        before = self.descriptors()
        asyncio.run(self.rage())
        asyncio.run(self.settle())
        self.check_leaks(before)
        return self.faults

    # --- nothing leaks ----------------------------------------------------
    def descriptors(self):
        """The most descriptors that a process of each role has open."""
        self.server.wait_ready()
        return {role: max(map(open_files, pids)) for role, pids in self.server.processes().items() if pids}

    def check_leaks(self, before):
        live = eventually(lambda: self.live() == LIVE_NOTHING and LIVE_NOTHING, 30, lambda: f"all ended: {self.live()}")
        assert live == LIVE_NOTHING
        # What was killed last may be in its pause before it is replaced.
        eventually(lambda: set(self.server.processes()) - {"blank"} == {"worker", "gateway", "reaper", "spawner", "helper"}, 90,
                   lambda: f"all are back: {self.server.processes()}")
        # Each keeps a few connections to every agent.
        room = 16 + 8 * len(self.boxes)
        for role, count in self.descriptors().items():
            if count > before.get(role, count) + room:
                self.fault(f"a {role} has {count} descriptors open, {before} before")
        for box in self.server.list_ids():
            self.server.client.delete(f"/sandboxes/{box}")
        eventually(lambda: not self.server.remains() and not self.metric("orchard_sandboxes{"), 60,
                   lambda: f"nothing left: {self.server.remains()} {self.metric('orchard_sandboxes{')}")

    def live(self):
        return {name: self.metric(name) for name in LIVE_NOTHING}

    def metric(self, name):
        """The sum of the metrics whose names begin so."""
        lines = self.server.client.get("/metrics").text.splitlines()
        found = [float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name)]
        if not found:
            raise Fault(f"no metric {name}")
        return sum(found)

    def report(self):
        lines = [f"seed {self.seed}: {self.commands} commands in {self.seconds:.1f} s, "
                 f"{self.commands / max(self.seconds, 0.001):.0f}/s, {len(self.lanes)} lanes"]
        lines += ["verdicts: " + ", ".join(f"{n} {v}" for v, n in self.verdicts.most_common())]
        lines += [f"  {name}: {count}" for name, count in sorted(self.counts.items())]
        lines += [f"FAULT {words}" for words in self.faults[:20]]
        return "\n".join(lines)
