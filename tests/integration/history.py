"""Counted commands through several servers at one Redis while servers, network and Redis fail; then the history is checked.

Each command takes a number from its lane's counter, notes its begin and its end, and prints the number. So the sandbox's own
journal says what ran, one after the other or not, and the clients know when they asked and when they were answered.
Used by test_history.py and bench/history.py.
"""

import asyncio
import collections
import itertools
import os
import random
import signal
import time

import httpx

from orchard_server import eventually
from storm_http import Connection, Cut

COMMAND = ("echo b {number} >> {path}; read n < {path}.n; n=$((n + 1)); echo $n > {path}.n; "
           "{body}echo e {number} >> {path}; echo $n")
SLICE = 500_000
BLOWS = {
    "server": 2,  # all of its processes; then it is started again
    "worker": 6,
    "reaper": 2,
    "standstill": 3,  # every process of a server for a while
    "reload": 1,
    "cut": 4,  # the connections of a server to Redis
    "mute": 3,
    "slow": 2,
    "half": 3,  # an answer of Redis ends in its middle
    "redis frozen": 2,
    "redis killed": 1,
    "redis fails over": 1,  # to a copy that lacks what was written last
}


class Operation:
    __slots__ = ("number", "lane", "text", "key", "sent", "ended", "job_id", "fate", "printed", "told")

    def __init__(self, number, lane, key, slow):
        self.number, self.lane, self.key = number, lane, key
        self.text = COMMAND.format(number=number, path=lane.path, body="sleep 0.05; " if slow else "")
        self.sent = self.ended = self.job_id = self.printed = self.told = None
        self.fate = "unknown"  # ran, never


class Lane:
    def __init__(self, box, name):
        self.box, self.name = box, name
        self.path = f"/tmp/lane{name}"
        self.operations = []


class Client:
    """Sends one command after the other, each to a server of its choice, and asks for its end at any of them."""

    def __init__(self, history, number):
        self.history = history
        self.rng = random.Random(f"{history.seed}/client/{number}")
        self.connections = [Connection(server.port, server.key) for server in history.servers]

    async def run(self):
        for number in self.history.numbers:
            if number >= self.history.count or self.history.is_over():
                break
            await self.one(number)
        for connection in self.connections:
            connection.close()

    async def one(self, number):
        lane = self.rng.choice(self.history.lanes)
        key = f"{self.history.seed}-{number}" if self.rng.random() < 0.5 else None
        operation = Operation(number, lane, key, self.rng.random() < 0.05)
        lane.operations.append(operation)
        answer = await self.send(operation, self.rng.random() < 0.7)
        if answer is not None and answer["status"] in ("queued", "running"):
            answer = await self.wait(operation)
        if answer is not None:
            operation.ended = time.monotonic()
            self.history.judge(operation, answer)

    async def request(self, method, path, body=None, key=None, timeout=120.0):
        return await self.rng.choice(self.connections).request(method, path, body, key=key, timeout=timeout)

    async def send(self, operation, wait):
        body = {"command": operation.text, "lane": operation.lane.name, "wait": wait}
        operation.sent = time.monotonic()
        while True:
            try:
                status, answer = await self.request("POST", f"/sandboxes/{operation.lane.box}/exec", body, operation.key)
            except Cut as cut:
                self.history.counts["cut" if cut.sent else "not connected"] += 1
                if cut.sent and not operation.key:
                    return None  # nobody knows
            else:
                operation.job_id = answer.get("job_id", operation.job_id)
                operation.told = f"told by {status} {answer}"
                if status == 200:
                    return answer
                self.history.counts[f"refused {answer['code']}"] += 1
                if status not in (503, 409):
                    raise AssertionError(f"{operation.text}: {status} {answer}")
                if operation.job_id is not None:
                    return await self.wait(operation)
            await asyncio.sleep(0.05 * self.rng.random())

    async def wait(self, operation):
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            try:
                status, answer = await self.request("GET", f"/jobs/{operation.job_id}/wait?timeout=30")
                if status == 200 and answer["status"] not in ("queued", "running"):
                    return answer
                if status not in (200, 503):
                    raise AssertionError(f"job of {operation.text!r}, {operation.told}: {status} {answer}")
            except Cut:
                pass
            await asyncio.sleep(0.05 * self.rng.random())
        raise AssertionError(f"job {operation.job_id} of {operation.text!r} has no end: {answer}")


class Nemesis:
    """Strikes at random moments until it is told to stop; leaves everything whole."""

    def __init__(self, history, pause):
        self.history, self.pause = history, pause
        self.blows = BLOWS if history.fails_over else {k: v for k, v in BLOWS.items() if k != "redis fails over"}
        self.rng = random.Random(f"{history.seed}/nemesis")

    async def run(self, over):
        while not over.is_set():
            try:
                await asyncio.wait_for(over.wait(), self.rng.uniform(*self.pause))
            except asyncio.TimeoutError:
                blow = self.rng.choices(list(self.blows), list(self.blows.values()))[0]
                self.history.counts[f"blow {blow}"] += 1
                await self.strike(blow)

    async def strike(self, blow):
        at = self.rng.randrange(len(self.history.servers))
        server, proxy, redis = self.history.servers[at], self.history.proxies[at], self.history.redis
        moment = self.rng.uniform(0.05, 2.5)
        if blow == "server":
            await asyncio.to_thread(self.restart, server, moment)
        elif blow in ("worker", "reaper"):
            for pid in server.processes().get(blow, [])[:1]:
                self.signal(pid, signal.SIGKILL)
        elif blow == "standstill":
            pids = [server.process.pid] + list(itertools.chain(*server.processes().values()))
            for number in (signal.SIGSTOP, signal.SIGCONT):
                for pid in pids:
                    self.signal(pid, number)
                await asyncio.sleep(moment)
        elif blow == "reload":
            server.reload()
        elif blow == "cut":
            proxy.cut()
        elif blow == "half":
            proxy.cut_in_answer = 2
        elif blow == "redis frozen":
            redis.freeze()
            await asyncio.sleep(moment)
            redis.thaw()
        elif blow == "redis fails over":
            redis.lag()
            await asyncio.sleep(moment / 5)
            redis.fail_over()  # by this thread, as below
        elif blow == "redis killed":
            redis.kill()
            await asyncio.sleep(moment)
            redis.start()  # by this thread: it dies with the one that has started it
        else:
            proxy.mute, proxy.delay = blow == "mute", 0.05 if blow == "slow" else 0.0
            await asyncio.sleep(moment)
            proxy.up()

    @staticmethod
    def restart(server, moment):
        def starts():
            return server.log(10_000_000).count('"msg":"ready: ')
        server.kill_all()
        time.sleep(moment)
        before = starts()
        server.start()
        # /ready is that of a worker; until all roles are, the death of one ends the server, and nobody here starts it again.
        eventually(lambda: starts() > before, 60, "the server has started")

    @staticmethod
    def signal(pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


class History:
    """
    servers: started, each with its own proxy to one RedisPair that loses nothing when it is killed.
    seconds: no more commands are sent after so long, however many there were.
    """

    def __init__(self, servers, proxies, redis, seed, count, boxes=4, clients=48, pause=(0.1, 1.5), seconds=None):
        self.servers, self.proxies, self.redis = servers, proxies, redis
        self.seed, self.count, self.clients, self.pause = seed, count, clients, pause
        self.limit = seconds
        self.fails_over = False
        self.began = 0.0
        self.counts = collections.Counter()
        self.faults = []
        self.numbers = itertools.count()
        self.lanes = [Lane(f"history-{n}", name) for n in range(boxes) for name in ("", "b")[: 1 + n % 2]]
        self.seconds = 0.0

    def run(self):
        self.prepare()
        asyncio.run(self.rage())
        self.settle()
        for lane in self.lanes:
            self.check(lane, self.journal(lane))
        return self.faults

    def fault(self, words):
        self.faults.append(words)

    def is_over(self):
        return self.limit is not None and time.monotonic() - self.began > self.limit

    def sent(self):
        return sum(len(lane.operations) for lane in self.lanes)

    # --- the run ----------------------------------------------------------
    def prepare(self):
        for number, box in enumerate(dict.fromkeys(lane.box for lane in self.lanes)):
            server = self.servers[number % len(self.servers)]
            server.create(sandbox_id=box, memory="256Mi", ttl_seconds=86000)
        for lane in self.lanes:
            self.exec(lane, f"echo 0 > {lane.path}.n; : > {lane.path}")

    async def rage(self):
        over = asyncio.Event()
        self.began = time.monotonic()
        nemesis = asyncio.create_task(Nemesis(self, self.pause).run(over)) if self.pause else None
        clients = [asyncio.create_task(Client(self, number).run()) for number in range(self.clients)]
        try:
            waiting = set(clients)
            while waiting:
                done, waiting = await asyncio.wait(waiting, timeout=1, return_when=asyncio.FIRST_EXCEPTION)
                for task in done | ({nemesis} if nemesis and nemesis.done() else set()):
                    task.result()
        finally:
            over.set()
            self.seconds = time.monotonic() - self.began
            for task in clients:
                task.cancel()
            if nemesis:
                await nemesis

    def settle(self):
        for proxy in self.proxies:
            proxy.up()
        for server in self.servers:
            eventually(lambda server=server: self.is_ready(server), 60,
                       lambda server=server: "ready: " + server.client.get("/ready").text)

    @staticmethod
    def is_ready(server):
        try:
            return server.client.get("/ready").status_code == 200
        except httpx.TransportError:
            return False

    def exec(self, lane, command):
        def run():
            try:
                answer = self.servers[0].client.post(f"/sandboxes/{lane.box}/exec", timeout=200,
                                                     json={"command": command, "lane": lane.name, "wait": True})
            except httpx.TransportError:
                return None
            return answer if answer.status_code == 200 else None
        job = eventually(run, 60, f"lane {lane.name!r} of {lane.box} is free").json()
        assert job["status"] == "succeeded", job
        return job["stdout"]

    def journal(self, lane):
        text, piece = "", "\n"
        while piece:
            piece = self.exec(lane, f"tail -c +{len(text) + 1} {lane.path} | head -c {SLICE}")
            text += piece
        return [(line[0], int(line[2:])) for line in text.splitlines()]

    # --- the judgement ----------------------------------------------------
    def judge(self, operation, job):
        self.counts[job["verdict"]] += 1
        if job["command"] != operation.text:
            self.fault(f"another job's answer: {operation.text!r}: {job}")
        elif job["verdict"] == "exited" and job["exit_code"] == 0:
            operation.fate, operation.printed = "ran", int(job["stdout"])
        elif job["verdict"] == "never_started":
            operation.fate = "never"
        else:
            self.fault(f"{operation.text!r}: {job}")

    def check(self, lane, journal):
        where = f"lane {lane.name!r} of {lane.box}"
        order = self.check_overlap(where, journal)
        place = {number: at for at, number in enumerate(order, 1)}
        if len(place) != len(order):
            self.fault(f"{where}: ran twice: {[n for n, times in collections.Counter(order).items() if times > 1]}")
        for operation in lane.operations:
            at = place.pop(operation.number, None)
            if (operation.fate == "ran") != (at is not None) and operation.fate != "unknown":
                self.fault(f"{where}: {operation.number} {operation.fate}, its place is {at}")
            elif operation.printed is not None and operation.printed != at:
                self.fault(f"{where}: {operation.number} printed {operation.printed}, its place is {at}")
        if place:
            self.fault(f"{where}: nobody sent {list(place)}")
        self.check_order(where, {number: at for at, number in enumerate(order)}, lane.operations)

    def check_overlap(self, where, journal):
        """Nothing begins while another runs: begins and ends take turns. The order of the begins."""
        running, order = None, []
        for what, number in journal:
            if what == "b":
                if running is not None:
                    self.fault(f"{where}: {number} began while {running} ran")
                running = number
                order.append(number)
            elif running != number:
                self.fault(f"{where}: {number} ended while {running} ran")
            else:
                running = None
        if running is not None:
            self.fault(f"{where}: {running} has no end")
        return order

    def check_order(self, where, place, operations):
        """What was sent after another's end runs after it."""
        latest, who = 0.0, None
        for operation in sorted((o for o in operations if o.number in place), key=lambda o: place[o.number]):
            if operation.ended is not None and latest > operation.ended:
                self.fault(f"{where}: {operation.number} had ended before {who} was sent, and ran after it")
            if operation.sent > latest:
                latest, who = operation.sent, operation.number

    def report(self):
        known = sum(o.fate != "unknown" for lane in self.lanes for o in lane.operations)
        lines = [f"seed {self.seed}: {self.sent()} operations in {self.seconds:.1f} s, "
                 f"{self.sent() / max(self.seconds, 0.001):.0f}/s, {len(self.lanes)} lanes, {known} ends known"]
        lines += [f"  {name}: {count}" for name, count in sorted(self.counts.items())]
        lines += [f"FAULT {words}" for words in self.faults[:20]]
        return "\n".join(lines)
