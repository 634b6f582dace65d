#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A long soak: sandboxes come and go on a server of its own while every process of it is killed; prints the accounts.

As root, with the Python environment of the integration tests:

    ORCHARD_BUILD_DIR=build build/venv/bin/python bench/soak.py --cycles 20000 --seed 1

Status 0: processes, mounts, control groups, namespaces, files, descriptors and table places are as many as before.
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
from soak import Soak  # noqa: E402


def run(options, directory):
    image = images.busybox(directory / "images" / "busybox")
    (directory / "server").mkdir()
    (directory / "server").chmod(0o755)
    server = Server(directory / "server", f"dir:{image}", [directory / "images"], workers=options.workers,
                    cleanup_interval_seconds=5)
    soak = Soak(server.start(), options.seed, options.cycles, f"dir:{image}", clients=options.clients,
                pause=(options.pause / 5, options.pause * 2 - options.pause / 5))
    try:
        soak.run()
    finally:
        print(soak.report(), flush=True)
        if soak.faults or sys.exc_info()[0]:
            shutil.copy(server.log_path, f"/tmp/soak-{options.seed}.log")
        server.close()
    return 1 if soak.faults else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--pause", type=float, default=1.0, help="mean seconds between two blows (default 1.0)")
    options = parser.parse_args()
    print(f"# seed {options.seed}", flush=True)
    directory = Path(tempfile.mkdtemp(prefix="orchard-soak-", dir="/var/tmp"))
    directory.chmod(0o755)
    (directory / "images").mkdir()
    try:
        return run(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
