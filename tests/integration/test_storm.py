"""Ten thousand counted commands while every process of the service is killed over and over."""

import os
import random

import pytest

from orchard_server import SANITIZED
from storm import Storm

COMMANDS = int(os.environ.get("STORM_COMMANDS", "2500" if SANITIZED else "10000"))


@pytest.mark.timeout(600)  # a minute where nobody else uses the machine
def test_every_command_runs_once_and_in_order_whatever_is_killed(make_server, busybox):
    seed = int(os.environ.get("STORM_SEED", random.randrange(1 << 32)))
    server = make_server(workers=3, default_image=busybox).start()
    storm = Storm(server, seed, COMMANDS)
    try:
        faults = storm.run()
    finally:
        print(storm.report())
    assert not faults
    assert storm.verdicts["exited"] > COMMANDS / 2
    assert storm.metric("orchard_execs_recovered_total") > 0
