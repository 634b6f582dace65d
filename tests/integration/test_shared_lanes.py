"""Commands of a server whose lanes are shared through a Redis that has troubles of its own."""

import threading

import pytest

from orchard_server import eventually


@pytest.fixture
def server(redis, make_server):
    server = make_server(use_redis=True, redis_url=redis.url, workers=1).start()
    eventually(lambda: server.client.get("/ready").status_code == 200, 30, "Redis serves it")
    return server


def check_goes_on_as_if_away(server, box, problem):
    eventually(lambda: server.client.get("/ready").status_code == 503, 30, "it is noticed")
    assert problem in server.client.get("/ready").text
    assert box.post_exec("echo on").json()["stdout"] == "on\n"
    refused = box.post_exec("true", lane="new")
    assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1, refused.text


# faults.md B089: a Redis that answers, but takes nothing, is as good as none
def test_a_full_redis_is_away(redis, server):
    box = server.create()
    assert box.post_exec("true").status_code == 200
    redis.call("CONFIG", "SET", "maxmemory", "1")
    # Whoever comes first finds out, and waits.
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(box.post_exec("true", lane="first")))
    waiter.start()
    check_goes_on_as_if_away(server, box, "OOM")
    redis.call("CONFIG", "SET", "maxmemory", "0")
    waiter.join(60)
    assert answers and answers[0].status_code == 200, answers
    eventually(lambda: server.client.get("/ready").status_code == 200, 30, "it serves again")
    assert box.post_exec("true", lane="new").status_code == 200


def test_a_redis_that_refuses_scripts_is_told_of(redis, server):
    box = server.create()
    assert box.post_exec("true").status_code == 200
    redis.call("ACL", "SETUSER", "default", "-rpush")
    waiters = [threading.Thread(target=lambda n=n: box.post_exec("true", lane=f"new {n}")) for n in range(3)]
    for waiter in waiters:
        waiter.start()
    check_goes_on_as_if_away(server, box, "refuses what must be done there")
    redis.call("ACL", "SETUSER", "default", "+rpush")
    for waiter in waiters:
        waiter.join(60)
    eventually(lambda: server.client.get("/ready").status_code == 200, 60, "it serves again")
    assert box.post_exec("true", lane="new").status_code == 200


# Whatever stands in the stream of changes, the reaper lives
def test_nonsense_in_the_stream(redis, server):
    replica = (server.state_dir / "replica-id").read_text().strip()
    reaper = server.processes()["reaper"]
    for kind in ("lane", "job"):
        for name in ("x" * 5000, "", "7:" * 1000, "7a3c:0123456789ABCDEF"):
            redis.call("XADD", "orchard:changes", "*", "kind", kind, "id", name, "to", replica)
    lane = "7a3c:0123456789abcdef"
    redis.call("XADD", "orchard:changes", "*", "kind", "lane", "id", lane, "to", replica)
    eventually(lambda: redis.call("EXISTS", f"orchard:lane:{lane}") == 1, 30, "it has read all of them")
    assert server.processes()["reaper"] == reaper
