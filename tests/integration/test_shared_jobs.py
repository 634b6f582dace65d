"""Jobs of one server, asked for at another one at the same Redis, and taken over when their server is gone."""

import base64
import os
import signal
import threading
import time

import pytest

from orchard_server import Sandbox, eventually
from streams import Stream, output

GATED = "while [ ! -e /go ]; do sleep 0.05; done; echo z"


@pytest.fixture
def replicas(redis, make_server):
    def start(count, **settings):
        return [make_server(use_redis=True, redis_url=redis.url, workers=1, **settings).start() for _ in range(count)]
    return start


@pytest.fixture
def pair(replicas):
    return replicas(2)


def at(server, box):
    return Sandbox(server, box.id)


def pids(server):
    return [server.process.pid] + [pid for role in server.processes().values() for pid in role]


def send_all(server, number):
    for pid in pids(server):
        os.kill(pid, number)


def open_gate(box):
    assert box.post_exec("touch /go", lane="gate").status_code == 200


# faults.md B083: a wait elsewhere lasts until the end, and says the same
def test_wait_at_another_server(pair):
    here, there = pair
    box = here.create()
    job = box.start(GATED)
    box.wait_running(job)
    assert there.client.get(f"/jobs/{job}").json()["status"] in ("queued", "running")
    answers = []
    waiter = threading.Thread(
        target=lambda: answers.append(there.client.get(f"/jobs/{job}/wait", params={"timeout": 60}, timeout=90)))
    waiter.start()
    open_gate(box)
    waiter.join(90)
    assert answers and answers[0].status_code == 200, answers
    assert answers[0].json()["status"] == "succeeded" and answers[0].json()["stdout"] == "z\n"
    assert answers[0].json() == here.client.get(f"/jobs/{job}").json()


def test_result_outlives_its_server(pair):
    here, there = pair
    box = here.create()
    job = box.start("echo kept")
    assert here.client.get(f"/jobs/{job}/wait", params={"timeout": 60}, timeout=90).json()["status"] == "succeeded"
    eventually(lambda: there.client.get(f"/jobs/{job}").status_code == 200, 10, "the end is told")
    here.kill_all()
    assert there.client.get(f"/jobs/{job}").json()["stdout"] == "kept\n"


def test_cancel_at_another_server(pair):
    here, there = pair
    box = here.create()
    job = box.start("sleep 600")
    box.wait_running(job)
    assert there.client.post(f"/jobs/{job}/cancel", timeout=90).json()["verdict"] == "canceled"
    assert box.job(job)["verdict"] == "canceled"


# faults.md B089: known sandboxes go on; what was not told is told later
def test_commands_go_on_without_redis(redis, pair):
    here, there = pair
    box = here.create()
    assert box.post_exec("true").status_code == 200
    redis.kill()
    eventually(lambda: here.client.get("/ready").status_code == 503, 30, "Redis is away")
    answer = box.post_exec("echo on")
    assert answer.status_code == 200 and answer.json()["stdout"] == "on\n"
    unknown = here.client.get("/jobs/11111111-1111-4111-8111-111111111111")
    assert unknown.status_code == 503 and int(unknown.headers["retry-after"]) >= 1
    redis.start()
    job = answer.json()["job_id"]
    eventually(lambda: there.client.get(f"/jobs/{job}").status_code == 200, 30, "the end is told at last")


# --- what a job of another server writes, and is given ----------------------------------------------------


# Any server follows a job.
def test_output_and_stream_at_another_server(pair):
    here, there = pair
    box = here.create()
    job = box.start("echo first; while [ ! -e /go ]; do sleep 0.05; done; echo last; echo err >&2")
    box.wait_running(job)
    far = at(there, box)
    eventually(lambda: output(far, job).text == "first\n", 30, "what it has written so far")
    assert output(far, job, offset=2, limit=3).text == "rst"
    assert output(far, job, offset=100).status_code == 416
    told = {"stdout": b"", "stderr": b""}
    with Stream(there, job) as stream:
        for event, _, data in stream:
            if event == "exit":
                assert (data["status"], data["exit_code"]) == ("succeeded", 0)
                break
            if event == "status":
                assert data["status"] == "running"
                continue
            told[event] += base64.b64decode(data["data"])
            if told["stdout"] == b"first\n":
                open_gate(box)
    assert told == {"stdout": b"first\nlast\n", "stderr": b"err\n"}
    assert output(far, job, offset=6).text == "last\n"
    assert output(far, job, "stderr").text == "err\n"


def test_stream_of_a_queued_job_at_another_server(pair):
    here, there = pair
    box = here.create()
    first = box.start(GATED)
    box.wait_running(first)
    queued = box.start("echo mine; while [ ! -e /end ]; do sleep 0.05; done")
    with Stream(there, queued) as stream:
        assert stream.next_of("status")[2]["status"] == "queued"
        open_gate(box)
        assert stream.next_of("status")[2]["status"] == "running"
        assert base64.b64decode(stream.next_of("stdout")[2]["data"]) == b"mine\n"
        assert at(there, box).post_exec("touch /end", lane="gate").status_code == 200
        assert stream.next_of("exit")[2]["status"] == "succeeded"


def test_stdin_at_another_server(pair):
    here, there = pair
    box = here.create()
    first = box.start(GATED)
    box.wait_running(first)
    job = box.start("cat", stdin_open=True)
    answers = []
    # It waits for the job to run.
    writer = threading.Thread(
        target=lambda: answers.append(there.client.post(f"/jobs/{job}/stdin", content=b"far\n", timeout=90)))
    writer.start()
    open_gate(box)
    writer.join(90)
    assert answers and answers[0].json() == {"job_id": job, "accepted": 4, "stdin_bytes": 4, "closed": False}
    assert there.client.post(f"/jobs/{job}/stdin", params={"eof": 1}).json()["closed"] is True
    assert there.client.get(f"/jobs/{job}/wait", params={"timeout": 60}, timeout=90).json()["stdout"] == "far\n"
    late = there.client.post(f"/jobs/{job}/stdin", content=b"late")
    assert (late.status_code, late.json()["code"]) == (409, "stdin_closed")
    unknown = there.client.post("/jobs/11111111-1111-4111-8111-111111111111/stdin", content=b"x")
    assert unknown.status_code == 404


def test_lists_are_the_same_everywhere(pair):
    here, there = pair
    box = here.create()
    far = at(there, box)
    assert box.out("echo here") == "here\n"
    assert far.out("echo there") == "there\n"
    job = far.start(GATED, lane="other")
    far.wait_running(job)

    def listed(which):
        answer = which.client.get(f"{box.url}/jobs")
        assert answer.status_code == 200, answer.text
        return [(item["job_id"], item["command"], item["status"]) for item in answer.json()["jobs"]]
    eventually(lambda: len(listed(box)) == len(listed(far)) == 3, 30, "all are told")
    assert [row[1:] for row in listed(box)] == [(GATED, "running"), ("echo there", "succeeded"), ("echo here", "succeeded")]
    assert listed(box) == listed(far)
    assert all("stdout" not in item for item in box.client.get(f"{box.url}/jobs").json()["jobs"])
    assert [row[0] for row in listed(box)][:1] == [item["job_id"] for item in box.client.get(
        f"{box.url}/jobs", params={"limit": 1}).json()["jobs"]]
    open_gate(box)
    box.wait_job(job)


# What is too long for Redis is read from the agent.
def test_long_output_at_another_server(replicas):
    here, there = replicas(2, redis_output_bytes=2048)
    box = here.create()
    result = box.exec("seq 1 2000")
    job, whole = result["job_id"], result["stdout"]
    assert len(whole) > 8000
    eventually(lambda: there.client.get(f"/jobs/{job}").status_code == 200, 30, "the end is told")
    far = there.client.get(f"/jobs/{job}").json()
    assert far["stdout_truncated"] is True and len(far["stdout"]) < 2200
    head, omitted, tail = far["stdout"].partition(f"\n...[{len(whole) - 2048} bytes omitted]...\n")
    assert omitted and whole.startswith(head) and whole.endswith(tail)
    assert output(at(there, box), job).text == whole
    assert here.client.get(f"/jobs/{job}").json()["stdout"] == whole


# --- what was said and not heard --------------------------------------------------------------------------


def test_a_cancel_that_was_not_heard(redis, pair):
    here, _ = pair
    box = here.create()
    job = box.start("sleep 600")
    box.wait_running(job)
    # The mark stands, and the message about it was lost with the process that should have heard it.
    assert redis.call("HSET", f"orchard:job:{job}", "cancel", "1") == 1
    for pid in here.processes()["reaper"]:
        os.kill(pid, signal.SIGKILL)
    assert box.wait_job(job)["verdict"] == "canceled"


# --- a server that is gone --------------------------------------------------------------------------------


# faults.md B085: a server dies, and others end its jobs truthfully
def test_jobs_of_a_dead_server_are_taken_over(replicas):
    here, *others = replicas(3, redis_replica_seconds=2)
    box = here.create()
    running = box.start("echo begun; while [ ! -e /go ]; do sleep 0.05; done; echo z")
    box.wait_running(running)
    ended = box.start(GATED, lane="ended")
    box.wait_running(ended)
    queued = box.start("echo never > /never")
    there = others[0]
    far = at(there, box)
    eventually(lambda: len(there.client.get(f"{box.url}/jobs").json()["jobs"]) == 3, 30, "all are known")
    here.kill_all()
    # Known before anybody has taken them over, too.
    assert there.client.get(f"/jobs/{running}").json()["status"] == "running"
    assert output(far, running).text == "begun\n"
    result = there.client.get(f"/jobs/{queued}/wait", params={"timeout": 60}, timeout=90).json()
    assert (result["status"], result["verdict"], result["command"]) == ("failed", "never_started", "echo never > /never")
    assert there.client.post(f"{box.url}/exec", json={"command": "touch /go", "lane": "gate"}, timeout=90).status_code == 200
    for server in others:
        for job, words in ((running, "begun\nz\n"), (ended, "z\n")):
            result = server.client.get(f"/jobs/{job}/wait", params={"timeout": 60}, timeout=90).json()
            assert (result["status"], result["stdout"]) == ("succeeded", words)
            assert result == there.client.get(f"/jobs/{job}").json()
    assert "never" not in far.out("ls /", lane="gate").split()
    took = [line["msg"] for server in others for line in server.log_lines() if "took over" in line.get("msg", "")
            and "which is gone" in line["msg"]]
    assert took, "somebody says so"
    far.delete()


# faults.md B087: a slow server and the one that has taken its job over: the job runs once, and has one end
def test_a_slow_server_finds_its_job_taken(replicas):
    here, there = replicas(2, redis_replica_seconds=2)
    box = here.create()
    job = box.start("echo once >> /count; while [ ! -e /go ]; do sleep 0.05; done; cat /count")
    box.wait_running(job)
    send_all(here, signal.SIGSTOP)
    try:
        eventually(lambda: any("took over 1 jobs of server" in line.get("msg", "") for line in there.log_lines()), 60,
                   "it is taken over")
    finally:
        send_all(here, signal.SIGCONT)
    eventually(lambda: any("another server drives this job now" in line.get("msg", "") for line in here.log_lines()), 30,
               "its old home steps back")
    assert here.client.get(f"/jobs/{job}").json()["status"] == "running"
    far = at(there, box)
    assert far.post_exec("touch /go", lane="gate").status_code == 200
    result = here.client.get(f"/jobs/{job}/wait", params={"timeout": 60}, timeout=90).json()
    assert (result["status"], result["stdout"]) == ("succeeded", "once\n")
    assert result == there.client.get(f"/jobs/{job}").json()


# It comes back with what it knew, and finds the end that others have told.
def test_a_server_that_starts_again_takes_the_others_word(replicas):
    here, there = replicas(2, redis_replica_seconds=2)
    box = here.create()
    running = box.start("echo run; sleep 0.1")
    eventually(lambda: at(there, box).job(running)["status"] == "succeeded", 30, "its end is told")
    gated = box.start(GATED)
    box.wait_running(gated)
    queued = box.start("echo twice >> /count")
    eventually(lambda: there.client.get(f"/jobs/{queued}").status_code == 200, 30, "it is known")
    here.kill_all()
    barred = there.client.get(f"/jobs/{queued}/wait", params={"timeout": 60}, timeout=90).json()
    assert barred["verdict"] == "never_started"
    at(there, box).post_exec("touch /go", lane="gate")
    ended = there.client.get(f"/jobs/{gated}/wait", params={"timeout": 60}, timeout=90).json()
    assert ended["status"] == "succeeded"
    here.start()
    for job, end in ((queued, barred), (gated, ended)):
        assert here.client.get(f"/jobs/{job}/wait", params={"timeout": 60}, timeout=90).json()["verdict"] == end["verdict"]
    assert box.exec("cat /count")["exit_code"] != 0


# Redis, not the server, was away: nobody is gone.
def test_no_live_server_is_taken_for_dead(redis, replicas):
    here, there = replicas(2, redis_replica_seconds=2)
    box = here.create()
    job = box.start(GATED)
    box.wait_running(job)
    redis.freeze()
    eventually(lambda: here.client.get("/ready").status_code == 503, 30, "Redis is away")
    frozen = time.monotonic()
    eventually(lambda: time.monotonic() - frozen > 3, 30, "longer than a server may be silent")
    redis.thaw()
    for server in (here, there):
        eventually(lambda: server.client.get("/ready").status_code == 200, 30, "Redis is back")
    open_gate(box)
    assert there.client.get(f"/jobs/{job}/wait", params={"timeout": 60}, timeout=90).json()["status"] == "succeeded"
    for server in (here, there):
        assert not any("which is gone" in line.get("msg", "") for line in server.log_lines())
