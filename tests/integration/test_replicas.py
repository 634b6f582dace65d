"""Two and three servers at one Redis: any of them answers for every sandbox."""

import json
import os
import random
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchard_server import Sandbox, eventually
from terminals import Terminal


@pytest.fixture
def replicas(redis, make_server):
    def start(count, **settings):
        servers = [make_server(use_redis=True, redis_url=redis.url, workers=1, **settings).start() for _ in range(count)]
        for server in servers:
            eventually(lambda: server.client.get("/ready").status_code == 200, 30, "Redis serves it")
        return servers
    return start


@pytest.fixture
def pair(replicas):
    return replicas(2)


def at(server, box):
    return Sandbox(server, box.id)


def tail_says(server, words):
    return words in server.log(1_000_000)


def test_a_new_sandbox_is_everywhere_at_once(pair):
    here, there = pair
    made = here.client.post("/sandboxes", json={"image": "default"}).json()
    far = Sandbox(there, made["sandbox_id"])
    assert far.get().json()["status"] in ("pending", "ready")
    assert far.out("echo far") == "far\n"
    assert made["sandbox_id"] in there.list_ids()


def test_files_and_terminals_elsewhere(pair):
    here, there = pair
    box = here.create()
    far = at(there, box)
    assert there.client.put(f"{box.url}/files/raw", params={"path": "/f"}, content=b"from far").status_code == 200
    assert here.client.get(f"{box.url}/files/raw", params={"path": "/f"}).content == b"from far"
    with Terminal(far, cmd=["cat", "/f"]) as terminal:
        terminal.ready()
        terminal.until("exit")
        assert b"from far" in terminal.output


def test_jobs_elsewhere(pair):
    here, there = pair
    box = here.create()
    job = at(there, box).start("echo there; sleep 0.3")
    end = here.client.get(f"/jobs/{job}/wait", params={"timeout": 60}, timeout=90).json()
    assert (end["status"], end["stdout"]) == ("succeeded", "there\n")
    assert end == there.client.get(f"/jobs/{job}").json()


def test_deleted_elsewhere(pair):
    here, there = pair
    box = here.create()
    job = box.start("sleep 600")
    box.wait_running(job)
    at(there, box).delete()
    assert there.client.get(box.url).status_code == 404
    eventually(lambda: here.client.get(box.url).status_code == 404, 15, "its home has heard of it")
    assert box.wait_job(job)["verdict"] == "sandbox_deleted"
    eventually(lambda: not here.remains(), 30, "its home has removed it")
    at(there, box).delete()  # twice is no error, wherever
    box.delete()


def test_unknown_ids(pair):
    here, there = pair
    for server in pair:
        answer = server.client.get("/sandboxes/never-made")
        assert answer.status_code == 404 and answer.json()["code"] == "not_found"
        assert server.client.delete("/sandboxes/never-made").status_code == 404
        assert server.client.post("/sandboxes/never-made/exec", json={"command": "true"}).status_code == 404


def test_changes_elsewhere(pair):
    here, there = pair
    box = here.create(labels={"a": "1"})
    far = at(there, box)
    answer = there.client.patch(box.url, json={"labels": {"b": "2"}, "ttl_seconds": 500})
    assert answer.status_code == 200 and answer.json()["labels"] == {"b": "2"}
    eventually(lambda: box.get().json()["labels"] == {"b": "2"}, 15, "its home has heard of it")
    assert here.client.patch(box.url, json={"labels": {"c": "3"}}).json()["labels"] == {"c": "3"}
    eventually(lambda: far.get().json()["labels"] == {"c": "3"}, 15, "so has the other")
    assert there.client.patch(box.url, json={"labels": {"d": "x" * 2000}}).status_code == 422


def test_a_failure_is_told(pair):
    here, there = pair
    box = here.create(wait=False, image="default", timeout=60)
    far = at(there, box)
    far.wait_ready()
    os.kill(box.agent_pid(), signal.SIGKILL)
    eventually(lambda: far.get().json()["status"] == "failed", 30, "its end is known elsewhere")


# faults.md B105: an id is one sandbox, whoever is asked
def test_b105_one_id_is_one_sandbox(replicas):
    servers = replicas(3)
    first = servers[0].client.post("/sandboxes", json={"image": "default", "sandbox_id": "dup"})
    assert first.status_code == 200
    for server in servers:
        other = server.client.post("/sandboxes", json={"image": "default", "sandbox_id": "dup", "cpu": 0.5})
        assert (other.status_code, other.json()["code"]) == (409, "sandbox_exists"), other.text
        again = server.client.post("/sandboxes", json={"image": "default", "sandbox_id": "dup"})
        assert again.status_code == 200 and again.json()["sandbox_id"] == "dup", again.text

    def race(server):
        return server.client.post("/sandboxes", json={"image": "default", "sandbox_id": "race"})
    with ThreadPoolExecutor(9) as pool:
        answers = list(pool.map(race, servers * 3))
    assert [answer.status_code for answer in answers] == [200] * 9, [answer.text for answer in answers]
    Sandbox(servers[1], "race").wait_ready()
    assert sum(len(server.agents()) for server in servers) == 2


# faults.md B075: the answer to a create is lost, and asked for again
def test_b075_a_key_is_one_sandbox_everywhere(replicas):
    servers = replicas(3)
    key = {"Idempotency-Key": str(uuid.uuid4())}
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(
            lambda server: server.client.post("/sandboxes", json={"image": "default"}, headers=key), servers * 2))
    assert [answer.status_code for answer in answers] == [200] * 6, [answer.text for answer in answers]
    ids = {answer.json()["sandbox_id"] for answer in answers}
    assert len(ids) == 1
    Sandbox(servers[2], ids.pop()).wait_ready()
    assert sum(len(server.agents()) for server in servers) == 1
    other = servers[1].client.post("/sandboxes", json={"image": "default", "cpu": 0.5}, headers=key)
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")


def test_a_key_is_one_command_everywhere(pair):
    here, there = pair
    box = here.create()
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = {"command": "echo x >> /once; cat /once", "wait": True}
    first = here.client.post(f"{box.url}/exec", json=body, headers=key, timeout=90).json()
    again = there.client.post(f"{box.url}/exec", json=body, headers=key, timeout=90).json()
    assert first["job_id"] == again["job_id"] and again["stdout"] == "x\n"


# faults.md B096, B099: one server judges, and signs of life count wherever they came
def test_b099_a_rule_takes_one_life_only(replicas):
    servers = replicas(3, cleanup_interval_seconds=1)

    def make(server, **fields):
        """As soon as the id is free."""
        eventually(lambda: server.client.post("/sandboxes", json={"image": "default", "sandbox_id": "short"} | fields)
                   .status_code == 200, 30, "the id is free")
        return Sandbox(server, "short")

    for _ in range(2):
        box = make(servers[0], ttl_seconds=1)
        eventually(lambda: all(s.client.get(box.url).status_code == 404 for s in servers), 30, "its time is over")
        make(servers[2])
        later = Sandbox(servers[1], "short")
        later.wait_ready()
        assert later.out("echo mine") == "mine\n"
        later.delete()
        eventually(lambda: not any(s.agents() for s in servers), 30, "it is gone")


def test_b096_heartbeats_count_at_any_server(replicas):
    here, there = replicas(2, heartbeat_cleanup_enabled=True, heartbeat_timeout_seconds=4)
    beaten, silent = here.create(), here.create()
    assert there.client.post(f"{silent.url}/heartbeat").status_code == 200

    def beat():
        assert there.client.post(f"{beaten.url}/heartbeat").status_code == 200
        return silent.get().status_code == 404
    eventually(beat, 60, "the other one is over")
    assert beaten.get().status_code == 200 and at(there, beaten).get().status_code == 200


# faults.md B096: clocks that stand 10 minutes apart count the same seconds of a life
def test_b096_one_clock_runs_ahead(redis, make_server):
    settings = dict(use_redis=True, redis_url=redis.url, workers=1, heartbeat_cleanup_enabled=True,
                    heartbeat_timeout_seconds=4, cleanup_interval_seconds=1)
    here = make_server(**settings).start()
    ahead = make_server(**settings)
    ahead.launcher = ["unshare", "--time", "--boottime", "600", "--monotonic", "600"]
    ahead.start()
    for server in (here, ahead):
        eventually(lambda: server.client.get("/ready").status_code == 200, 30, "Redis serves it")

    def watch(home, other):
        beaten, silent = home.create(), home.create()
        assert other.client.post(f"{silent.url}/heartbeat").status_code == 200

        def beat():
            assert other.client.post(f"{beaten.url}/heartbeat").status_code == 200
            return silent.get().status_code == 404
        eventually(beat, 60, "the other one is over")
        assert beaten.get().status_code == 200 and at(other, beaten).out("echo on") == "on\n"

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(watch, (here, ahead), (ahead, here)))


# faults.md B078: a lease that runs out under its holder lets nobody in beside it, and its late end frees nobody's turn
def test_b078_a_lease_runs_out_while_its_command_runs(redis, replicas):
    servers = replicas(3)
    box = servers[0].create()
    gate = "while [ ! -e /go ]; do sleep 0.05; done"

    def command(n):
        return f"echo begin {n} >> /log; {gate if n == 0 else 'sleep 0.1'}; echo end {n} >> /log"

    jobs = [(box, box.start(command(0)))]
    box.wait_running(jobs[0][1])
    for n, server in enumerate(servers[1:] + servers, 1):
        jobs.append((at(server, box), at(server, box).start(command(n))))
    lane = redis.call("KEYS", "orchard:lane:*")
    lane = next(key for key in lane if not key.endswith(":queue"))
    holder = redis.call("HGET", lane, "holder")

    def passed_on():
        redis.call("HSET", lane, "until", "1")
        return redis.call("HGET", lane, "holder") != holder
    eventually(passed_on, 30, "another server has the lane")
    assert box.out("cat /log", lane="look") == "begin 0\n"
    assert box.out("touch /go", lane="gate") == ""
    for asked, job in jobs:
        assert asked.wait_job(job)["status"] == "succeeded"
    lines = box.out("cat /log", lane="look").split("\n")[:-1]
    assert lines[0::2] == [line.replace("end", "begin") for line in lines[1::2]], lines
    assert sorted(lines[1::2]) == [f"end {n}" for n in range(len(jobs))], lines


# faults.md B087: of two ends that come together the first one stands, and nobody ever says otherwise
def test_b087_one_end_for_good(replicas):
    servers = replicas(3)
    box = servers[0].create()

    def end_twice(n):
        job = box.start(f"sleep 0.{n:02}", lane=f"l{n}")
        views = [[] for _ in servers]
        servers[1].client.post(f"/jobs/{job}/cancel", timeout=90)

        def look():
            for server, view in zip(servers, views):
                answer = server.client.get(f"/jobs/{job}")
                if answer.status_code == 200:
                    view.append(answer.json())
            return all(view and view[-1]["completed_at"] for view in views)
        eventually(look, 60, "it has ended everywhere")
        look()
        for view in views:
            ended = [job["completed_at"] is not None for job in view]
            assert ended == sorted(ended), view
        ends = [job for view in views for job in view if job["completed_at"]]
        assert all(job == ends[0] for job in ends), ends

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(end_twice, range(0, 48, 4)))


# faults.md B146: answers that came too late are nobody's
def test_b146_late_answers_are_nobodys(redis, replicas):
    here, there = replicas(2, redis_timeout_ms=200)
    box = here.create()
    jobs = [box.start(f"echo {n}", lane=f"l{n}") for n in range(12)]
    for job in jobs:
        box.wait_job(job)
    eventually(lambda: all(there.client.get(f"/jobs/{job}").status_code == 200 for job in jobs), 30, "all are told")

    def look(n):
        answer = there.client.get(f"/jobs/{jobs[n % 12]}")
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == 200:
            assert answer.json()["job_id"] == jobs[n % 12] and answer.json()["stdout"] == f"{n % 12}\n"
        else:
            redis.thaw()
        return answer.status_code

    with ThreadPoolExecutor(12) as pool:
        for _ in range(2):
            redis.freeze()
            assert 503 in list(pool.map(look, range(50)))
            eventually(lambda: there.client.get("/ready").status_code == 200, 30, "Redis serves it")
            eventually(lambda: set(pool.map(look, range(50))) == {200}, 30, "all have their own")


# faults.md B104: what is being made is no orphan for anybody
def test_b104_nobody_removes_what_is_being_made(replicas):
    servers = replicas(2, cleanup_interval_seconds=1)
    with ThreadPoolExecutor(4) as pool:
        boxes = list(pool.map(lambda n: servers[n % 2].create(wait=False, block_network=True), range(16)))
    for n, box in enumerate(boxes):
        at(servers[(n + 1) % 2], box).wait_ready()
    for server in servers:
        assert len(server.list_ids()) == 16
        assert not tail_says(server, "removed by the rule")


# faults.md B089: what is known goes on, the rest is refused, and nothing is lost
def test_redis_away_and_back(redis, pair):
    here, there = pair
    box, doomed = here.create(), here.create()
    assert at(there, box).out("echo on") == "on\n"
    redis.kill()
    for server in pair:
        eventually(lambda: server.client.get("/ready").status_code == 503, 30, "Redis is away")
        for answer in (server.client.post("/sandboxes", json={"image": "default"}),
                       server.client.get("/sandboxes/never-made")):
            assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1, answer.text
    assert box.get().status_code == 200 and at(there, box).get().status_code == 200
    assert there.client.put(f"{box.url}/files/raw", params={"path": "/f"}, content=b"x").status_code == 200
    assert there.client.delete(box.url).status_code == 503
    doomed.delete()
    redis.start()  # empty
    for server in pair:
        eventually(lambda: server.client.get("/ready").status_code == 200, 30, "Redis is back")
    eventually(lambda: at(there, doomed).get().status_code == 404, 30, "the deletion is told")
    eventually(lambda: redis.call("EXISTS", f"orchard:sandbox:{box.id}"), 30, "what there is is told again")
    assert at(there, box).out("cat /f") == "x"
    late = there.create()
    assert at(here, late).out("echo late") == "late\n"
    at(there, box).delete()
    eventually(lambda: box.get().status_code == 404, 15, "its home has heard of it")


def test_on_another_host(redis, pair):
    """A host that shares no more than Redis, as far as the record says."""
    here, there = pair
    box = here.create()
    eventually(lambda: redis.call("HGET", f"orchard:sandbox:{box.id}", "status") == "ready", 15, "told")
    eventually(lambda: at(there, box).get().status_code == 200, 15, "known there")
    redis.call("HSET", f"orchard:sandbox:{box.id}", "host", str(uuid.uuid4()))
    there.client.patch(box.url, json={"labels": {"moved": "yes"}}).raise_for_status()
    for answer in (at(there, box).post_exec("true"), there.client.get(f"{box.url}/files/raw", params={"path": "/f"})):
        assert answer.status_code == 503 and "on another host" in answer.json()["detail"], answer.text
    assert at(there, box).get().json()["labels"] == {"moved": "yes"}
    at(there, box).delete()


def test_restarted_servers_find_theirs(pair):
    here, there = pair
    box = here.create()
    there.stop()
    there.start()
    assert at(there, box).out("echo again") == "again\n"


def test_switched_on_and_off_with_living_sandboxes(redis, make_server):
    here = make_server(workers=1).start()
    there = make_server(use_redis=True, redis_url=redis.url, workers=1).start()
    box = here.create()
    assert box.out("echo alone") == "alone\n"
    here.stop()
    here.settings.update(use_redis=True, redis_url=redis.url)
    here.start()
    eventually(lambda: at(there, box).get().status_code == 200, 30, "the other one is told")
    assert at(there, box).out("echo shared") == "shared\n"
    far = there.create()
    assert at(here, far).out("echo far") == "far\n"
    here.stop()
    here.settings.update(use_redis=False)
    here.start()
    assert box.out("echo alone again") == "alone again\n"
    assert here.list_ids() == [box.id]
    box.delete()
    eventually(lambda: not here.remains(), 30, "it is gone")


# faults.md L: nothing that stands in Redis ends a process
def test_rubbish_in_redis(redis, pair):
    here, there = pair
    box = here.create()
    reapers = [server.processes()["reaper"] for server in pair]
    rubbish = "x" * 5000
    homes = redis.call("ZRANGE", "orchard:replicas", "0", "-1")
    for kind in ("sandbox", "lane", "job"):
        for to in (rubbish, *homes):
            redis.call("XADD", "orchard:changes", "*", "kind", kind, "what", "deleted", "id", rubbish, "uid", rubbish,
                       "by", rubbish, "to", to)
    redis.call("XADD", "orchard:changes", "*", "kind", "sandbox", "what", "sign", "id", box.id, "uid", box.id,
               "heartbeat_ms", rubbish, "activity_ms", "-1")
    redis.call("HSET", "orchard:sandbox:rubbish", *(word for name in (
        "id", "uid", "tenant", "image", "token", "labels", "egress", "status", "home", "host", "version", "rule")
        for word in (name, rubbish)))
    redis.call("SADD", "orchard:sandboxes", rubbish, "rubbish")
    assert there.client.get("/sandboxes/rubbish").status_code == 503
    box.out("true")
    late = here.create()
    eventually(lambda: at(there, late).get().status_code == 200, 30, "changes are heard")
    assert at(there, late).out("echo late") == "late\n"
    assert [server.processes()["reaper"] for server in pair] == reapers


# faults.md K: whatever the network to Redis does, at last all say the same, and what is there is what they say
def test_all_agree_after_a_bad_network(redis, make_server):
    proxies = [redis.proxy() for _ in range(3)]
    servers = [make_server(use_redis=True, redis_url=proxy.url, workers=1, redis_timeout_ms=500,
                           cleanup_interval_seconds=1).start() for proxy in proxies]
    for server in servers:
        eventually(lambda: server.client.get("/ready").status_code == 200, 30, "Redis serves it")

    def work(seed):
        dice = random.Random(seed)
        for _ in range(60):
            server, name = dice.choice(servers), f"n{dice.randrange(4)}"
            match dice.randrange(6):
                case 0 | 1:
                    answer = server.client.post(
                        "/sandboxes", json={"image": "default", "sandbox_id": name, "block_network": True})
                case 2:
                    answer = server.client.delete(f"/sandboxes/{name}")
                case 3:
                    answer = server.client.patch(f"/sandboxes/{name}", json={"labels": {"n": str(dice.random())}})
                case 4:
                    answer = server.client.get(f"/sandboxes/{name}")
                case 5:
                    proxy = dice.choice(proxies)
                    proxy.cut_in_answer = 1
                    proxy.cut()
                    continue
            assert answer.status_code in (200, 404, 409, 503), answer.text

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    for proxy in proxies:
        proxy.up()

    def views():
        return [sorted((box["sandbox_id"], json.dumps(box["labels"]), box["status"])
                       for box in server.client.get("/sandboxes").json()["sandboxes"]) for server in servers]

    def agree():
        seen = views()
        return all(view == seen[0] for view in seen) and all(row[2] == "ready" for row in seen[0]) and \
            sum(len(server.agents()) for server in servers) == len(seen[0])
    eventually(agree, 60, lambda: f"all agree: {views()} {[len(server.agents()) for server in servers]}")
    for n in range(4):
        eventually(lambda: servers[n % 3].client.delete(f"/sandboxes/n{n}").status_code in (200, 404), 30, "deleted")
    eventually(lambda: views() == [[], [], []], 30, lambda: f"all are gone: {views()}")
    eventually(lambda: not any(server.agents() for server in servers), 30, "so are their agents")
    eventually(lambda: redis.call("SCARD", "orchard:sandboxes") == 0, 30, "and their records")
