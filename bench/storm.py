#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A long storm: counted commands on a server of its own while every process of it is killed; prints the accounts.

As root, with the Python environment of the integration tests:

    ORCHARD_BUILD_DIR=build build/venv/bin/python bench/storm.py --commands 1000000 --seed 1

Status 0: every job's end was true, every command ran once and in order, nothing was left behind.
"""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "integration"))

import images  # noqa: E402
from orchard_server import Server  # noqa: E402
from storm import Storm  # noqa: E402


def private_mib(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            return sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Clean", "Private_Dirty"))) / 1024
    except OSError:
        return 0.0


def run(options, directory):
    image = images.busybox(directory / "images" / "busybox")
    (directory / "server").mkdir()
    (directory / "server").chmod(0o755)
    server = Server(directory / "server", f"dir:{image}", [directory / "images"], workers=options.workers,
                    idempotency_ttl_seconds=900)
    storm = Storm(server.start(), options.seed, options.commands, boxes=options.boxes, clients=options.clients,
                  pause=None if options.calm else (options.pause / 5, options.pause * 2 - options.pause / 5))
    try:
        storm.run()
        for role, pids in server.processes().items():
            print(f"private memory of a {role}: {max(map(private_mib, pids)):.1f} MiB")
        print(f"log lines: {len(server.log_lines())}, recovered: {storm.metric('orchard_execs_recovered_total'):.0f}")
    finally:
        print(storm.report(), flush=True)
        if storm.faults or options.keep or sys.exc_info()[0]:
            shutil.copy(server.log_path, f"/tmp/storm-{options.seed}.log")
        server.close()
    return 1 if storm.faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--boxes", type=int, default=6, help="sandboxes (default 6), each with one to three lanes")
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--pause", type=float, default=0.5, help="mean seconds between two blows (default 0.5)")
    parser.add_argument("--calm", action="store_true", help="nobody is killed")
    parser.add_argument("--keep", action="store_true", help="keep the server's log as /tmp/storm-SEED.log in any case")
    options = parser.parse_args()
    print(f"# seed {options.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="orchard-storm-", dir="/var/tmp"))
    directory.chmod(0o755)
    (directory / "images").mkdir()
    try:
        return run(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
