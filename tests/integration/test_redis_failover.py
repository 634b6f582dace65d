"""Redis fails over to a copy that lacks what was written last, or is emptied: whoever wrote it says it again."""

import threading
import time

import pytest

from files import put
from orchard_server import Sandbox, eventually


@pytest.fixture
def servers(redis_pair, make_server):
    servers = [make_server(use_redis=True, redis_url=redis_pair.proxy().url, workers=1, cleanup_interval_seconds=1).start()
               for _ in range(2)]
    for server in servers:
        until_ready(server)
    return servers


def until_ready(server):
    eventually(lambda: server.client.get("/ready").status_code == 200, 60, "Redis serves it")


def at(server, box):
    return Sandbox(server, box.id)


def ask(server, path, wanted=(200,), **query):
    """While nobody can say, the answer is 503, and not that it does not exist."""
    answers = []

    def asked():
        answers.append(server.client.get(path, params=query))
        assert answers[-1].status_code in (*wanted, 503), answers[-1].text
        return answers[-1].status_code in wanted
    eventually(asked, 60, lambda: f"{path}: {answers[-1].text}")
    return answers[-1]


def read(box):
    return box.client.get(f"{box.url}/files/raw", params={"path": "/ran"}).content


def open_gate(box):
    put(box, "/go", b"")


# faults.md L: what was promised before a fail-over holds after it, at each server
def test_a_copy_that_lacks_the_last_writes(redis_pair, servers):
    here, there = servers
    old, doomed = here.create(), here.create()
    assert at(there, old).out("echo old") == "old\n" and at(there, doomed).out("echo doomed") == "doomed\n"
    redis_pair.lag()
    new = here.create()
    doomed.delete()
    here.client.patch(old.url, json={"labels": {"n": "1"}}).raise_for_status()
    ended = old.start("echo ended")
    assert old.wait_job(ended)["stdout"] == "ended\n"
    live = old.start("while [ ! -e /go ]; do sleep 0.05; done; echo live", lane="live")
    old.wait_running(live)
    eventually(lambda: there.client.get(f"/jobs/{live}").json().get("status") == "running", 30, "known elsewhere")
    redis_pair.fail_over()
    assert ask(there, f"/jobs/{ended}").json()["stdout"] == "ended\n"
    assert ask(there, f"/jobs/{live}").json()["status"] == "running"
    assert ask(there, new.url).json()["status"] == "ready"
    for server in servers:
        until_ready(server)
        eventually(lambda: server.client.get(old.url).json()["labels"] == {"n": "1"}, 60, "the change stands")
        eventually(lambda: at(server, new).post_exec("echo new").json().get("stdout") == "new\n", 60, "it can be used")
    open_gate(old)
    assert ask(there, f"/jobs/{live}/wait", timeout=30).json()["stdout"] == "live\n"
    for server in servers:
        eventually(lambda: server.client.get(doomed.url).status_code == 404, 90, "what is deleted stays so")


# A request with a key is made once, also when the copy has never heard of the key
def test_a_key_that_the_copy_lacks_is_still_one_request(redis_pair, servers):
    here, there = servers
    box = here.create()
    assert at(there, box).out("echo there") == "there\n"
    requests = [(f"{box.url}/exec", {"command": f"echo {n} >> /ran; echo {n}", "wait": True}, {"Idempotency-Key": f"k{n}"})
                for n in range(3)]
    requests += [("/sandboxes", {"image": "default"}, {"Idempotency-Key": "box"})]
    redis_pair.lag()
    first = [here.client.post(path, json=body, headers=key) for path, body, key in requests]
    assert [answer.status_code for answer in first] == [200] * len(requests), first
    redis_pair.fail_over()
    for (path, body, key), before in zip(requests, first):
        answers = []

        def asked():
            answers.append(there.client.post(path, json=body, headers=key))
            assert answers[-1].status_code in (200, 503), answers[-1].text
            return answers[-1].status_code == 200
        eventually(asked, 60, lambda: answers[-1].text)
        name = "sandbox_id" if path == "/sandboxes" else "job_id"
        assert answers[-1].json()[name] == before.json()[name]
    assert eventually(lambda: at(there, box).post_exec("cat /ran").json().get("stdout"), 60, "the lane goes on") == "0\n1\n2\n"
    # What nobody has asked for before is done, once all have said what they know.
    eventually(lambda: there.client.post(f"{box.url}/exec", json={"command": "true", "wait": True},
                                         headers={"Idempotency-Key": "new"}).status_code == 200, 60, "new keys are taken")


# The next change of what the copy has is one of what was promised
def test_a_change_of_an_older_record_keeps_what_was_changed_before(redis_pair, servers):
    here, there = servers
    box = here.create()
    eventually(lambda: there.client.get(box.url).status_code == 200, 30, "known elsewhere")
    redis_pair.lag()
    here.client.patch(box.url, json={"labels": {"n": "1"}}).raise_for_status()
    eventually(lambda: there.client.get(box.url).json()["labels"] == {"n": "1"}, 30, "heard elsewhere")
    redis_pair.proxies[0].mute = True  # its home does not tell of it first
    redis_pair.fail_over()
    eventually(lambda: there.client.patch(box.url, json={"ttl_seconds": 5000}).status_code == 200, 60, "it is changed")
    redis_pair.proxies[0].mute = False
    for server in servers:
        until_ready(server)
        eventually(lambda: server.client.get(box.url).json()["ttl_seconds"] == 5000, 60, "the new change stands")
        assert server.client.get(box.url).json()["labels"] == {"n": "1"}


# A command is in its lane once, whoever has the lane now
def test_fences_go_on_above_what_the_agent_has_seen(redis_pair, servers):
    here, there = servers
    box = here.create()
    numbers = []
    for n in range(6):  # each passes the lane on
        assert at(servers[n % 2], box).out(f"echo {n}") == f"{n}\n"
    redis_pair.lag()
    for n in range(6):
        job = at(servers[n % 2], box).start("true")
        numbers.append(ask(servers[n % 2], f"/jobs/{job}/wait", timeout=30).json()["status"])
    redis_pair.fail_over()
    for server in servers:
        until_ready(server)
    answers = []

    def run(server, n):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            answer = at(server, box).post_exec(f"echo b {n} >> /j; echo e {n} >> /j")
            if answer.status_code == 200:
                answers.append(answer.json()["status"])
                return
            assert answer.status_code == 503, answer.text
    threads = [threading.Thread(target=run, args=(servers[n % 2], n)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert answers == ["succeeded"] * 8 and numbers == ["succeeded"] * 6
    lines = at(there, box).out("cat /j").split("\n")[:-1]
    assert sorted(lines[::2]) == [f"b {n}" for n in range(8)]
    assert [line[1:] for line in lines[::2]] == [line[1:] for line in lines[1::2]]


# Its command ended while its server had no Redis: the end may still be on its way when the client asks another server
def test_a_job_that_is_told_of_is_known_elsewhere(redis_pair, servers):
    here, there = servers
    box = here.create()
    assert box.out("echo first") == "first\n"  # this server has the lane
    proxy, answers = redis_pair.proxies[0], []
    proxy.mute = True
    poster = threading.Thread(target=lambda: answers.append(box.post_exec("echo x >> /ran", wait=False)))
    poster.start()
    eventually(lambda: read(box) == b"x\n", 30, "it runs all the same")
    proxy.delay_there, proxy.mute = 0.2, False
    poster.join(60)
    answer = there.client.get(f"/jobs/{answers[0].json()['job_id']}")
    proxy.delay_there = 0.0
    assert answers[0].status_code == 200 and answer.status_code == 200, (answers[0].text, answer.text)


# FLUSHALL: the connections stay, and nobody is told
def test_an_emptied_redis_is_told_everything_again(redis_pair, servers):
    here, there = servers
    box = here.create()
    ended = box.start("echo ended")
    assert box.wait_job(ended)["stdout"] == "ended\n"
    live = box.start("while [ ! -e /go ]; do sleep 0.05; done; echo live", lane="live")
    box.wait_running(live)
    assert at(there, box).out("echo there") == "there\n"
    redis_pair.call("FLUSHALL")
    for job, field, value in ((ended, "stdout", "ended\n"), (live, "status", "running")):
        eventually(lambda: there.client.get(f"/jobs/{job}").json().get(field) == value, 60, f"{field} is told again")
    assert at(there, box).out("echo again") == "again\n"
    open_gate(box)
    assert there.client.get(f"/jobs/{live}/wait", params={"timeout": 30}).json()["stdout"] == "live\n"
    rows = there.client.get(f"{box.url}/jobs").json()["jobs"]
    assert {ended, live} <= {row["job_id"] for row in rows}
