"""Two servers in one namespace: without a common Redis one of them has it, and the other makes and removes nothing."""

import json
import secrets
import shutil
import time

import httpx
import pytest
from ctl import Ctl
from fake_cluster import LEASES, PODS, POLICIES, SPACES
from orchard_server import Server, eventually
from redis_server import Redis

LEASE = f"{LEASES}/orchard"
SLOW_S = 3.2


@pytest.fixture
def make_other():
    """A further server of a play's cluster; not started."""
    made = []

    def make(play, **settings):
        directory = play.directory / secrets.token_hex(4)
        directory.mkdir(mode=0o755)
        made.append(Server(directory, "test-image", [], **play.settings | settings))
        return made[-1]
    yield make
    for one in made:
        if one.process is not None and one.process.poll() is None:
            one.kill_all()
        one.close()


@pytest.fixture
def make_one(make_play):
    """What the test has its cluster refuse without an end is over with the test."""
    plays = []

    def make(**settings):
        plays.append(make_play(**settings))
        return plays[-1]
    yield make
    for play in plays:
        play.cluster.faults.clear()


def words(server):
    """Of /ready; "" while nobody answers there."""
    try:
        return server.client.get("/ready").text
    except httpx.TransportError:
        return ""


def is_ready(server):
    try:
        return server.client.get("/ready").status_code == 200
    except httpx.TransportError:
        return False


def lease_of(play):
    return play.cluster.things[LEASES]["orchard"]["spec"]


def looks(play, count):
    """Until the lease was asked for so many times more."""
    before = len(play.cluster.asked("GET", LEASE))
    eventually(lambda: len(play.cluster.asked("GET", LEASE)) >= before + count, 30, "the lease is looked at")


def test_a_second_server_waits_and_leaves_all_alone(make_one, make_other, tmp_path):
    play = make_one()
    play.server.start()
    name, holder = play.create(), lease_of(play)["holderIdentity"]
    other = make_other(play)
    other.spawn()
    eventually(lambda: "holds the namespace sandbox-pods" in words(other), 30, other.log)
    assert holder in words(other) and "use Redis" in words(other) and "sandbox_namespace" in words(other)
    assert "holds the namespace" in other.log(1_000_000)
    done = Ctl(other, tmp_path).run("doctor", "-o", "json", "--retry", "0")
    found = {one["check"]: one for one in json.loads(done.stdout)}
    assert holder in found["ready"]["message"] and "get lease orchard" in found["ready"]["cure"], found
    answer = other.client.post("/sandboxes", json={"image": "default", "sandbox_id": "no"})
    assert answer.status_code == 200, answer.text
    eventually(lambda: "holds the namespace" in (other.client.get("/sandboxes/no").json()["status_message"] or ""), 30, other.log)
    looks(play, 8)  # as often it has looked for lost pods, at least
    assert not play.cluster.asked("DELETE", f"{PODS}/sandbox-{name}") and "sandbox-no" not in play.cluster.pods
    assert play.get(name)["status"] == "ready" and is_ready(play.server)
    assert other.log(1_000_000).count("nothing is concluded: another server") == 1
    # who leaves gives it back, and what it leaves is the other's to judge
    assert play.server.stop() == 0, play.server.log()
    other.wait_ready()
    assert lease_of(play)["holderIdentity"] not in ("", holder)
    assert "is this server's now" in other.log(1_000_000)
    eventually(lambda: not play.cluster.pods, 30, "the pods that it has no record of are gone")
    other.client.post("/sandboxes", json={"image": "default", "sandbox_id": "yes"})
    eventually(lambda: other.client.get("/sandboxes/yes").json()["status"] == "ready", 30, other.log)


def test_a_killed_server_has_it_until_it_runs_out_or_is_back(make_one, make_other):
    play = make_one()
    play.server.start()
    name = play.create()
    first = dict(lease_of(play))
    play.server.kill_all()
    play.server.start()  # the same state_dir: the same server
    assert lease_of(play)["leaseTransitions"] == first["leaseTransitions"]
    assert lease_of(play)["holderIdentity"] == first["holderIdentity"]
    other = make_other(play)
    other.spawn()
    eventually(lambda: "holds the namespace" in words(other), 30, other.log)
    play.server.kill_all()
    looks(play, 1)
    assert not is_ready(other) and f"sandbox-{name}" in play.cluster.pods
    other.wait_ready(60)
    assert lease_of(play)["leaseTransitions"] == first["leaseTransitions"] + 1
    play.server.spawn()
    eventually(lambda: lease_of(play)["holderIdentity"] in words(play.server), 30, play.server.log)
    assert other.stop() == 0
    play.server.wait_ready()


@pytest.mark.parametrize("status", [403, 404, 405])
def test_where_leases_may_not_be_used_all_goes_on(make_one, status):
    play = make_one()
    play.cluster.fail("GET", LEASE, *[403 if status == 403 else 404] * 1000)
    play.cluster.fail("POST", LEASES, *[status] * 1000)
    play.server.start()
    play.delete(play.create())
    assert "no Lease guards the namespace sandbox-pods" in play.server.log(1_000_000)


def test_a_lease_that_somebody_edits_is_believed(make_one):
    play = make_one()
    play.server.start()
    name = play.create()

    def edit(**changes):
        with play.cluster.changed:
            lease = play.cluster.things[LEASES]["orchard"]
            play.cluster.version += 1
            play.cluster.make(LEASES, lease | {"spec": lease["spec"] | changes})
    edit(holderIdentity="jo", leaseDurationSeconds=600)
    eventually(lambda: "another server, jo, holds" in words(play.server), 30, play.server.log)
    assert play.client.delete(f"/sandboxes/{name}").status_code == 200
    looks(play, 3)
    assert not play.cluster.asked("DELETE", f"{PODS}/sandbox-{name}")
    edit(holderIdentity="")
    eventually(lambda: is_ready(play.server), 30, play.server.log)
    eventually(lambda: f"sandbox-{name}" not in play.cluster.pods, 60, "what was to be removed is removed now")
    with play.cluster.changed:
        del play.cluster.things[LEASES]["orchard"]
    eventually(lambda: "orchard" in play.cluster.things[LEASES], 30, "a lease that was deleted is made again")
    play.create()


def test_while_nobody_can_renew_nothing_is_made_and_nobody_takes_over(make_one, make_other):
    """For longer than the lease lasts; then whoever had it goes on."""
    play = make_one()
    play.server.start()
    before = dict(lease_of(play))
    other = make_other(play)
    other.spawn()
    eventually(lambda: "holds the namespace" in words(other), 30, other.log)
    play.cluster.fail("PUT", LEASE, *[500] * 10000)
    play.cluster.fail("GET", LEASE, *[500] * 10000)
    eventually(lambda: "has not said for a while" in words(play.server), 60, play.server.log)
    play.create(wait=False, sandbox_id="later")
    for _ in range(4):
        looks(play, 10)
    assert "sandbox-later" not in play.cluster.pods
    play.cluster.faults.clear()
    play.until("later", "ready")
    assert {name: lease_of(play)[name] for name in ("holderIdentity", "leaseTransitions")} == {
        name: before[name] for name in ("holderIdentity", "leaseTransitions")}
    assert not is_ready(other)


def test_a_lease_that_is_refused_once_it_was_there_is_not_done_without(make_one):
    """The namespace that goes, rights that an API server does not know yet: another may have it by then."""
    play = make_one()
    play.server.start()
    for method, path in ("PUT", LEASE), ("GET", LEASE), ("POST", LEASES):
        play.cluster.fail(method, path, *[403] * 10000)
    eventually(lambda: "has not said for a while" in words(play.server), 60, play.server.log)
    assert "the tests want 403" in words(play.server)
    play.create(wait=False, sandbox_id="later")
    looks(play, 3)
    assert "sandbox-later" not in play.cluster.pods and "no Lease guards" not in play.server.log(1_000_000)
    play.cluster.faults.clear()
    play.until("later", "ready")


def test_a_namespace_that_is_made_anew_is_had_again_behind_its_policy(make_one):
    play = make_one()
    play.server.start()
    before = len(play.cluster.calls)
    with play.cluster.changed:
        for kind in SPACES, POLICIES, LEASES:
            play.cluster.things[kind].clear()
    play.cluster.fail("POST", LEASES, *[404] * 10000)  # where nothing can be put into it
    eventually(lambda: "has not said for a while" in words(play.server), 60, play.server.log)
    play.create(wait=False, sandbox_id="later")
    eventually(lambda: play.cluster.things[SPACES], 60, "the namespace is made again")
    assert "sandbox-later" not in play.cluster.pods
    play.cluster.faults.clear()
    play.until("later", "ready")
    made = [path for method, path, _ in play.cluster.calls[before:] if method == "POST"]
    assert max(made.index(path) for path in (SPACES, LEASES, POLICIES)) < made.index(PODS)


def test_an_api_server_that_answers_slowly_is_enough(make_one):
    """Later than a renewal comes after the one before."""
    play = make_one()
    for method, path in ("GET", LEASE), ("POST", LEASES), ("PUT", LEASE):
        play.cluster.fail(method, path, *[lambda _: time.sleep(SLOW_S)] * 1000)
    play.server.start()
    play.create()

    def steady():
        assert is_ready(play.server), words(play.server)
        return len(play.cluster.asked("PUT", LEASE)) >= 4
    eventually(steady, 60, "it is renewed")


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_servers_with_redis_keep_one_without_away(make_one, make_other, work_dir):
    secret = work_dir / "secret-of-both"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    redis = Redis().start()
    try:
        play = make_one(use_redis=True, redis_url=redis.url, agent_secret_file=secret)
        play.server.start()
        name = play.create()
        assert lease_of(play)["holderIdentity"] == "servers-with-redis"
        second = make_other(play)
        second.start()
        other = make_other(play, use_redis=False)
        other.spawn()
        eventually(lambda: "servers-with-redis, holds the namespace" in words(other), 30, other.log)
        assert second.stop() == 0 and play.get(name)["status"] == "ready"
        looks(play, 3)
        assert not is_ready(other)
        other.kill_all()
        play.delete(name)
        assert play.server.stop() == 0
    finally:
        redis.close()
