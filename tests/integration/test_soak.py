"""Hundreds of sandboxes come and go while everything is killed; nothing of them is left."""

import os
import random

from orchard_server import SANITIZED
from soak import Soak

CYCLES = int(os.environ.get("SOAK_CYCLES", "100" if SANITIZED else "300"))


def test_nothing_is_left_of_hundreds_of_sandboxes_whatever_is_killed(make_server, busybox):
    seed = int(os.environ.get("SOAK_SEED", random.randrange(1 << 32)))
    server = make_server(workers=2, cleanup_interval_seconds=2).start()
    soak = Soak(server, seed, CYCLES, busybox)
    try:
        faults = soak.run()
    finally:
        print(soak.report())
    assert not faults
    assert soak.counts["cycles"] == CYCLES
