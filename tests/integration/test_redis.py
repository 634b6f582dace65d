"""One server with Redis: what it refuses to start with, and what it says while Redis is away."""

import re

import httpx
import pytest

from orchard_server import eventually


def problems(server):
    return " ".join(server.client.get("/ready").json().get("problems", []))


def reaches(server, path):
    try:
        return server.client.get(path).status_code
    except httpx.TransportError:
        return None


def metric(server, name):
    found = re.search(rf"^{re.escape(name)} ([0-9.]+)$", server.client.get("/metrics").text, re.M)
    assert found, f"{name} is in no metric"
    return float(found[1])


@pytest.mark.parametrize("url,words", [
    ("rediss://cache.example", "TLS"),
    ("localhost:6379", "must begin with redis://"),
    ("redis://:hush%zz@h", "the password in redis_url"),
])
def test_wrong_urls_are_refused_at_start(make_server, url, words):
    server = make_server(use_redis=True, redis_url=url)
    assert server.spawn().wait(20) == 1
    assert words in server.log() and "hush" not in server.log()


def test_without_it_the_url_does_not_matter(make_server):
    server = make_server(redis_url="nonsense").start()
    assert metric(server, "orchard_redis_up") == 0
    assert metric(server, "orchard_redis_used") == 0
    assert not (server.state_dir / "replica-id").exists()


def test_it_starts_without_redis_and_says_why_it_does_not_serve(make_server):
    server = make_server(use_redis=True, redis_url="unix:///nowhere/redis.sock", workers=1)
    server.spawn()
    try:
        eventually(lambda: reaches(server, "/health") == 200, 30, "it lives")
        eventually(lambda: "No such file" in problems(server), 30, "not ready, and why")
        answer = server.client.post("/sandboxes", json={"image": "default"})
        assert answer.status_code == 503 and answer.headers["Retry-After"], answer.text
        assert "Redis is away: No such file" in answer.json()["detail"], answer.text
    finally:
        server.stop()


# faults.md B089: no longer ready, still alive, and ready again by itself
def test_readiness_follows_redis(redis, make_server):
    server = make_server(use_redis=True, redis_url=redis.url, workers=1).start()
    eventually(lambda: metric(server, "orchard_redis_up") == 2, what="worker and reaper are served")
    assert metric(server, "orchard_redis_used") == 2
    names = re.findall(r" name=(\S+)", redis.call("CLIENT", "LIST"))
    assert {"orchard-worker", "orchard-reaper"} <= set(names)
    redis.kill()
    eventually(lambda: "Redis at unix://" in problems(server), what="not ready without Redis")
    assert server.client.get("/health").status_code == 200
    redis.start()
    eventually(lambda: server.client.get("/ready").status_code == 200, what="ready again")
    eventually(lambda: metric(server, "orchard_redis_connects_total") >= 4, what="they have connected again")


def test_a_frozen_redis_is_noticed_and_forgiven(redis, make_server):
    server = make_server(use_redis=True, redis_url=redis.url, redis_timeout_ms=300, workers=1).start()
    redis.freeze()
    try:
        eventually(lambda: "has not answered" in problems(server) or "did not answer" in problems(server), 30,
                   what="a mute Redis is away")
        assert server.client.get("/health").status_code == 200
    finally:
        redis.thaw()
    eventually(lambda: server.client.get("/ready").status_code == 200, what="ready again")


def test_a_bad_network_to_redis(redis, make_server):
    proxy = redis.proxy()
    server = make_server(use_redis=True, redis_url=proxy.url, workers=1).start()
    proxy.cut_in_answer = 3
    proxy.cut()
    eventually(lambda: proxy.cut_in_answer == 0, 30, "three answers were cut in the middle")
    eventually(lambda: server.client.get("/ready").status_code == 200, 30, "ready again")
    proxy.down()
    eventually(lambda: "Redis at redis://127.0.0.1" in problems(server), what="not ready without a way to Redis")
    proxy.up()
    eventually(lambda: server.client.get("/ready").status_code == 200, 30, "ready again")


def test_a_redis_that_may_evict_is_told_of(redis, make_server):
    redis.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    server = make_server(use_redis=True, redis_url=redis.url, workers=1).start()
    eventually(lambda: "maxmemory-policy to noeviction (it is allkeys-lru)" in server.log(1_000_000),
               what="the policy is told of")


def test_a_password_is_used_and_not_told(redis, make_server):
    redis.call("CONFIG", "SET", "requirepass", "s3cret-word")
    server = make_server(use_redis=True, redis_url=redis.url, workers=1)
    server.spawn()
    eventually(lambda: "NOAUTH" in server.log(1_000_000), 30, "it says that it is refused")
    server.stop()
    server.settings["redis_url"] = redis.url.replace("unix://", "unix://:s3cret-word@")
    server.start()
    assert "s3cret-word" not in server.log(1_000_000)


# faults.md B099: what must be done once has one server for it, and another one in seconds
def test_one_of_three_servers_is_elected(redis, make_server):
    servers = [make_server(use_redis=True, redis_url=redis.url, redis_replica_seconds=3, workers=1).start()
               for _ in range(3)]

    def elected():
        holders = [one for one in servers if metric(one, "orchard_replica_elected") == 1]
        return holders[0] if len(holders) == 1 else None
    first = eventually(elected, 30, "one is elected")
    eventually(lambda: all(metric(one, "orchard_replicas_alive") == 3 for one in servers), 30, "they know each other")
    servers.remove(first)
    first.kill_all()
    second = eventually(elected, 30, "another one is elected")
    eventually(lambda: all(metric(one, "orchard_replicas_alive") == 2 for one in servers), 30, "the dead one is gone")
    servers.remove(second)
    assert second.stop() == 0
    eventually(elected, 30, "the last one is elected")
    first.start()
    eventually(lambda: metric(first, "orchard_replicas_alive") >= 2, 30, "the dead one is back, by the same id")
    # Those that left no jobs are forgotten.
    assert redis.call("ZCARD", "orchard:replicas") <= 3
    assert redis.call("ZSCORE", "orchard:replicas", (first.state_dir / "replica-id").read_text().strip()) is not None
