#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A long history: counted commands through several servers at one Redis while servers, network and Redis fail.

As root, with the Python environment of the integration tests, and redis-server:

    ORCHARD_BUILD_DIR=build build/venv/bin/python bench/history.py --count 500000 --seed 1

Status 0: in every lane one command ran after the other, each once, none was lost, and each server told the truth.
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "integration"))

import images  # noqa: E402
from history import History  # noqa: E402
from orchard_server import Server  # noqa: E402
from redis_server import RedisPair  # noqa: E402


def start(options, directory, redis):
    image = images.busybox(directory / "images" / "busybox")
    for number in range(options.servers):
        place = directory / f"server-{number}"
        place.mkdir()
        place.chmod(0o755)
        yield Server(place, f"dir:{image}", [directory / "images"], workers=options.workers, use_redis=True,
                     redis_url=redis.proxy().url, redis_replica_seconds=3)


def run(options, directory):
    redis = RedisPair("--appendonly", "yes", "--appendfsync", "always").start()
    servers = []
    try:
        servers += start(options, directory, redis)
        for server in servers:
            server.start()
        history = History(servers, redis.proxies, redis, options.seed, options.count, boxes=options.boxes,
                          clients=options.clients, pause=None if options.calm else (options.pause / 5, options.pause * 2))
        history.fails_over = options.fail_over
        try:
            history.run()
        finally:
            print(history.report(), flush=True)
            if history.faults or sys.exc_info()[0]:
                for number, server in enumerate(servers):
                    shutil.copy(server.log_path, f"/tmp/history-{options.seed}-{number}.log")
        return 1 if history.faults else 0
    finally:
        for server in servers:
            server.close()
        redis.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--boxes", type=int, default=4, help="sandboxes (default 4), every other one with two lanes")
    parser.add_argument("--clients", type=int, default=48)
    parser.add_argument("--workers", type=int, default=2, help="of each server")
    parser.add_argument("--pause", type=float, default=0.8, help="mean seconds between two blows, about (default 0.8)")
    parser.add_argument("--fail-over", action="store_true", help="Redis fails over, too, to a copy that lacks what was written last")
    parser.add_argument("--calm", action="store_true", help="nothing fails")
    options = parser.parse_args()
    print(f"# seed {options.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="orchard-history-", dir="/var/tmp"))
    directory.chmod(0o755)
    (directory / "images").mkdir()
    try:
        return run(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
