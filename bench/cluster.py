# SPDX-License-Identifier: MIT
"""Commands through one, two and three servers at one Redis, against one server without Redis, in turn."""

import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from measure import Api, cpu_seconds, median_ms, show, timed
from own_server import Load, OwnServer

CONNECTIONS = 48  # of all servers together: divides by one, two and three


@contextlib.contextmanager
def own_redis():
    """The url of a redis-server that keeps nothing on disk."""
    with tempfile.TemporaryDirectory(prefix="orchard-bench-") as directory:
        os.chmod(directory, 0o755)  # the servers are no root
        path = f"{directory}/redis.sock"
        process = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", path, "--unixsocketperm", "777",
                                    "--save", "", "--dir", directory], stdout=subprocess.DEVNULL)
        try:
            yield f"unix://{path}"
        finally:
            process.terminate()
            process.wait()


class Group:
    """Servers that share sandboxes of null agents: an equal number is made at each."""

    def __init__(self, stack, options, count, redis):
        shared = {"use_redis": "on", "redis_url": redis} if redis else {}
        self.servers = [stack.enter_context(OwnServer(options.build, agent="bench/null_agent", workers=options.workers, **shared))
                        for _ in range(count)]
        self.sandboxes = [[Api(server).create() for _ in range(CONNECTIONS // count)] for server in self.servers]
        stack.callback(self.delete)

    def delete(self):
        for server, sandboxes in zip(self.servers, self.sandboxes):
            for sandbox in sandboxes:
                Api(server).delete(sandbox)

    def wait_known(self):
        """Every server knows every sandbox."""
        deadline = time.monotonic() + 30
        for server in self.servers:
            while len(Api(server).call("GET", "/sandboxes?limit=1000")["sandboxes"]) < CONNECTIONS:
                if time.monotonic() > deadline:
                    raise SystemExit("servers do not hear of each other's sandboxes")
                time.sleep(0.05)

    def run(self, shift, seconds):
        """Execs a second, median and p99 in ms, us of workers' CPU an exec; a server is asked for sandboxes of the shift-th after it."""
        count = len(self.servers)
        workers = [pid for server in self.servers for pid in server.role("worker")]
        loads = [Load(server, self.sandboxes[(number + shift) % count], CONNECTIONS // count, seconds)
                 for number, server in enumerate(self.servers)]
        for load in loads:
            load.warm()
        before = cpu_seconds(workers)
        results = [load.end() for load in loads]
        spent = cpu_seconds(workers) - before
        return (sum(result["answers"] / result["seconds"] for result in results),
                statistics.median(result["p50_us"] for result in results) / 1000,
                max(result["p99_us"] for result in results) / 1000,
                spent / sum(result["answers"] for result in results) * 1e6)

    def hand_over(self, count):
        """Two lists of seconds, one command after the other in one sandbox: always at one server, and at two in turn."""
        apis = [Api(server) for server in self.servers[:2]]
        sandbox = self.sandboxes[0][0]
        return [[timed(lambda: api.exec(sandbox, "true")) for _ in range(count // 2) for api in turn]
                for turn in ((apis[0], apis[0]), apis)]


def bench_cluster(options):
    """Throughput and latency of commands that cost nothing, by how many servers share them."""
    if not shutil.which("redis-server"):
        show("cluster", "skipped: redis-server is not installed")
        return
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(own_redis())
        runs = [("without Redis", Group(stack, options, 1, None), 0)]
        for count in (1, 2, 3):
            group = Group(stack, options, count, f"{redis}?db={count}")  # it shares with itself alone
            group.wait_known()
            runs.append((f"{count} with Redis", group, 0))
            if count > 1:
                runs.append((f"{count}, sandboxes of another server", group, 1))
                there, turns = (median_ms(spent) for spent in group.hand_over(options.count))
                show(f"exec, {count} with Redis, one at a time", f"median {there:.2f} ms at one server, {turns:.2f} ms at two in turn")
        rounds = [[group.run(shift, options.seconds) for _, group, shift in runs] for _ in range(options.rounds)]
        for number, (name, _, _) in enumerate(runs):
            rate, p50, p99, cost = (statistics.median(column) for column in zip(*(turn[number] for turn in rounds)))
            ratio = statistics.median(turn[number][0] / turn[0][0] for turn in rounds)
            slower = statistics.median(turn[number][2] / turn[0][2] for turn in rounds)
            show(f"exec, {name}", f"{rate:.0f}/s, median {p50:.2f} ms, p99 {p99:.2f} ms, workers {cost:.0f} us CPU; "
                 f"to without Redis: rate {ratio:.2f}, p99 {slower:.2f}")
