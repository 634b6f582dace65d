"""Thousands of commands through three servers at one Redis, whatever fails: no overlap, no double, none lost, in order."""

import os
import random

import pytest

from history import History, Lane, Operation
from orchard_server import SANITIZED

# A run by hand: HISTORY_COUNT=500000, or bench/history.py.
COUNT = int(os.environ.get("HISTORY_COUNT", "1000" if SANITIZED else "20000"))
# A machine that has much else to do sends fewer of them.
SECONDS = None if "HISTORY_COUNT" in os.environ else 240


@pytest.mark.parametrize("journal, ends, words", [
    ("b1 e1 b2 e2", {1: 1, 2: 2}, None),
    ("b1 b2 e2 e1", {1: 1, 2: 2}, "began while"),
    ("b1 e1 b2", {1: 1}, "no end"),
    ("b1 e1 b1 e1 b2 e2", {1: 1, 2: 3}, "ran twice"),
    ("b1 e1", {1: 1, 2: 2}, "2 ran"),
    ("b1 e1 b2 e2", {1: 1, 2: None}, "2 never"),
    ("b1 e1 b2 e2", {1: 2, 2: 1}, "printed"),
    ("b2 e2 b1 e1", {2: 1, 1: 2}, "ran after it"),
    ("b1 e1 b7 e7 b2 e2", {1: 1, 2: 3}, "nobody sent"),
])
def test_the_checker_sees_what_is_wrong(journal, ends, words):
    history, lane = History([], [], None, 0, 0), Lane("box", "")
    for number, end in ends.items():
        operation = Operation(number, lane, None, False)
        operation.sent, operation.ended = 10.0 * number, 10.0 * number + 1
        operation.fate, operation.printed = ("never", None) if end is None else ("ran", end)
        lane.operations.append(operation)
    history.check(lane, [(word[0], int(word[1:])) for word in journal.split()])
    if words is None:
        assert history.faults == []
    else:
        assert any(words in fault for fault in history.faults), history.faults


@pytest.mark.timeout(900)
def test_b077_the_history_of_a_lane_is_one_whoever_fails(redis_pair, make_server, busybox):
    seed = int(os.environ.get("HISTORY_SEED", random.randrange(1 << 32)))
    proxies = [redis_pair.proxy() for _ in range(3)]
    servers = [make_server(use_redis=True, redis_url=proxy.url, workers=2, default_image=busybox,
                           redis_replica_seconds=3).start() for proxy in proxies]
    history = History(servers, proxies, redis_pair, seed, COUNT, seconds=SECONDS)
    try:
        faults = history.run()
    finally:
        print(history.report())
    assert not faults
    assert history.counts["exited"] > history.sent() / 2
