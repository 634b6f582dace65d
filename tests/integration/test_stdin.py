"""Commands that are fed while they run, and commands in the background."""

import hashlib
import os
import signal
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx

from orchard_server import eventually
from streams import Follower, Stream, feed, output

MIB = 1 << 20


def test_cat_echoes_what_it_is_fed(fresh):
    job_id = fresh.start("cat", stdin_open=True)
    answer = feed(fresh, job_id, b"one\n")
    assert answer.status_code == 200
    assert answer.json() == {"job_id": job_id, "accepted": 4, "stdin_bytes": 4, "closed": False}
    assert feed(fresh, job_id, b"\x00\xff\n").json()["stdin_bytes"] == 7
    eventually(lambda: output(fresh, job_id).content == b"one\n\x00\xff\n", what="the echo")
    last = feed(fresh, job_id, b"end", eof=True).json()
    assert last["closed"] is True and last["stdin_bytes"] == 10
    assert fresh.wait_job(job_id)["status"] == "succeeded"
    assert output(fresh, job_id).content == b"one\n\x00\xff\nend"


def test_eof_alone(fresh):
    job_id = fresh.start("wc -c", stdin_open=True, stdin="12345")
    assert feed(fresh, job_id, eof=True).json() == {"job_id": job_id, "accepted": 0, "stdin_bytes": 5, "closed": True}
    assert fresh.wait_job(job_id)["stdout"] == "5\n"


def test_without_stdin_open_it_is_closed(fresh):
    job_id = fresh.start("sleep 30", stdin="x")
    answer = feed(fresh, job_id, b"x")
    assert answer.status_code == 409 and answer.json()["code"] == "stdin_closed"
    fresh.client.post(f"/jobs/{job_id}/cancel")
    ended = fresh.exec("cat", stdin_open=True, stdin="all", wait=False)["job_id"]
    assert feed(fresh, ended, eof=True).status_code == 200
    assert fresh.wait_job(ended)["stdout"] == "all"
    for more in (b"x", b""):
        answer = feed(fresh, ended, more, eof=not more)
        assert answer.status_code == 409 and answer.json()["code"] == "stdin_closed"


def test_after_eof_and_after_the_program_closed_it_is_closed(fresh):
    job_id = fresh.start("exec 0<&-; sleep 30", stdin_open=True)
    eventually(lambda: feed(fresh, job_id, b"x").status_code == 409, what="the program closed its stdin")
    fresh.client.post(f"/jobs/{job_id}/cancel")
    job_id = fresh.start("cat >/dev/null; sleep 30", stdin_open=True)
    assert feed(fresh, job_id, eof=True).status_code == 200
    assert feed(fresh, job_id, b"x").status_code == 409
    fresh.client.post(f"/jobs/{job_id}/cancel")


def test_a_queued_job_is_fed_when_it_runs(fresh):
    first = fresh.start("read x", stdin_open=True)
    second = fresh.start("cat", stdin_open=True)
    with ThreadPoolExecutor(1) as pool:
        early = pool.submit(feed, fresh, second, b"early", True, httpx.Client(
            base_url=str(fresh.client.base_url), headers=fresh.client.headers))
        assert fresh.job(second)["status"] == "queued"
        assert not early.done()
        feed(fresh, first, b"\n")
        assert early.result().status_code == 200
    assert fresh.wait_job(second)["stdout"] == "early"


def test_a_job_that_stays_queued_is_told_in_time(make_server):
    server = make_server(readiness_wait_seconds=1).start()
    box = server.create()
    first = box.start("sleep 60")
    second = box.start("cat", stdin_open=True)
    answer = feed(box, second, b"x")
    assert answer.status_code == 409 and answer.json()["code"] == "job_not_running"
    box.client.post(f"/jobs/{first}/cancel")
    assert feed(box, second, b"y", eof=True).status_code == 200
    assert box.wait_job(second)["stdout"] == "y"


def test_two_clients_feed_one_job(fresh):
    job_id = fresh.start("cat", stdin_open=True)

    def write(client_number):
        with httpx.Client(base_url=str(fresh.client.base_url), headers=fresh.client.headers) as own:
            for number in range(50):
                assert feed(fresh, job_id, f"{client_number}-{number:03}\n".encode(), client=own).status_code == 200
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, range(2)))
    feed(fresh, job_id, eof=True)
    lines = fresh.wait_job(job_id)["stdout"].split()
    assert sorted(lines) == sorted(f"{c}-{n:03}" for c in range(2) for n in range(50))
    for client_number in range(2):
        own = [line for line in lines if line.startswith(f"{client_number}-")]
        assert own == sorted(own)


def test_much_input_arrives_whole(fresh):
    job_id = fresh.start("sha256sum", stdin_open=True)
    data = bytes(range(256)) * 4096  # 1 MiB
    for _ in range(8):
        assert feed(fresh, job_id, data).json()["accepted"] == len(data)
    feed(fresh, job_id, eof=True)
    assert fresh.wait_job(job_id)["stdout"].split()[0] == hashlib.sha256(data * 8).hexdigest()


def test_a_program_that_never_reads_makes_its_writers_wait(fresh):
    job_id = fresh.start("sleep 300", stdin_open=True)
    data = bytes(1024 * 1024)
    answer = None
    for _ in range(4):
        answer = feed(fresh, job_id, data)
        if answer.status_code != 200:
            break
    assert answer.status_code == 503 and answer.json()["code"] == "queue_full", answer.text
    assert int(answer.headers["retry-after"]) >= 1
    assert fresh.exec("echo beside", lane="other")["stdout"] == "beside\n"
    # Nothing of the refused one was written: the count goes on where it stood.
    fresh.client.post(f"/jobs/{job_id}/cancel")
    assert feed(fresh, job_id, b"x").status_code == 409


def test_what_a_stopped_agent_may_have_taken_is_not_denied(fresh):
    job_id = fresh.start("cat", stdin_open=True)
    fresh.wait_running(job_id)
    agent = fresh.agent_pid()
    os.kill(agent, signal.SIGSTOP)
    try:
        answer = feed(fresh, job_id, b"once\n", timeout=120)
        assert answer.status_code == 503 and answer.json()["code"] == "agent_unreachable", answer.text
        assert "not known" in answer.json()["detail"]
    finally:
        os.kill(agent, signal.SIGCONT)
    total = eventually(lambda: feed(fresh, job_id, b"").json().get("stdin_bytes"), 30, "how far stdin has come")
    if total == 0:  # the agent found it taken back
        total = feed(fresh, job_id, b"once\n").json()["stdin_bytes"]
    assert total == 5 and feed(fresh, job_id, eof=True).status_code == 200
    assert fresh.wait_job(job_id)["stdout"] == "once\n"


def test_a_client_that_leaves_while_it_waits_has_written_nothing(fresh):
    job_id = fresh.start("read go </tmp/fifo; wc -c", stdin_open=True)
    fresh.exec("mkfifo /tmp/fifo", lane="other")
    fresh.client.post(f"/jobs/{job_id}/cancel")
    job_id = fresh.start("read go </tmp/fifo; wc -c", stdin_open=True)
    total = 0
    data = bytes(1024 * 1024)
    while True:
        try:
            total = feed(fresh, job_id, data, timeout=3).json()["stdin_bytes"]
        except httpx.ReadTimeout:
            break
    fresh.exec("echo go >/tmp/fifo", lane="other")
    last = feed(fresh, job_id, b"end", eof=True).json()
    assert last["stdin_bytes"] == total + 3
    assert fresh.wait_job(job_id)["stdout"].strip() == str(total + 3)


def test_bodies_have_their_bound(fresh):
    job_id = fresh.start("cat >/dev/null", stdin_open=True)
    answer = feed(fresh, job_id, bytes(1024 * 1024 + 1))
    assert answer.status_code == 413 and answer.json()["code"] == "payload_too_large"
    chunked = fresh.client.post(f"/jobs/{job_id}/stdin", content=(bytes(65536) for _ in range(17)))
    assert chunked.status_code == 413
    assert fresh.client.post(f"/jobs/{job_id}/stdin?eof=yes", content=b"x").status_code == 422
    assert fresh.client.get(f"/jobs/{job_id}/stdin").status_code == 405
    assert feed(fresh, job_id, b"", eof=True).json()["stdin_bytes"] == 0


def test_a_write_of_nothing_tells_how_far_stdin_has_come(fresh):
    job_id = fresh.start("cat", stdin_open=True)
    feed(fresh, job_id, b"four")
    for _ in range(2):
        assert feed(fresh, job_id, b"").json() == {"job_id": job_id, "accepted": 0, "stdin_bytes": 4, "closed": False}
    assert feed(fresh, job_id, b"5").json()["stdin_bytes"] == 5


def test_a_loop_is_fed_line_by_line_and_followed(fresh):
    """As one talks to an interpreter: a line in, its answer out, over and over."""
    job_id = fresh.start("while read -r line; do eval \"echo $line\"; done; echo bye >&2", stdin_open=True)
    follower = Follower()
    with Stream(fresh.server, job_id) as stream:
        for number in range(50):
            assert feed(fresh, job_id, f"$(({number} * {number}))\n".encode()).status_code == 200
            wanted = "".join(f"{n * n}\n" for n in range(number + 1)).encode()
            while follower.bytes["stdout"] != wanted:
                assert not follower.take(*stream.next_of("status", "stdout", "stderr", "exit"))
        feed(fresh, job_id, eof=True)
        for event in stream:
            follower.take(*event)
    assert follower.bytes["stderr"] == b"bye\n" and follower.exit["status"] == "succeeded"


def test_background_processes_are_listed_followed_fed_and_cancelled(fresh):
    jobs = {name: fresh.start("while read -r line; do echo \"" + name + " $line\"; done", lane=name, stdin_open=True)
            for name in ("first", "second")}
    assert fresh.out("echo front") == "front\n"
    listed = {job["job_id"]: job for job in fresh.client.get(f"{fresh.url}/jobs").json()["jobs"]}
    for name, job_id in jobs.items():
        assert listed[job_id]["status"] == "running" and listed[job_id]["lane"] == name
        assert feed(fresh, job_id, b"hello\n").status_code == 200
        with Stream(fresh.server, job_id) as stream:
            assert stream.next_of("stdout")[2]["offset"] == 0
        assert output(fresh, job_id).content == f"{name} hello\n".encode()
    assert fresh.client.post(f"/jobs/{jobs['first']}/cancel").json()["verdict"] == "canceled"
    assert feed(fresh, jobs["first"], b"x").status_code == 409
    with Stream(fresh.server, jobs["first"]) as stream:
        events = list(stream)
    assert [e[0] for e in events] == ["stdout", "exit"] and events[-1][2]["verdict"] == "canceled"
    assert feed(fresh, jobs["second"], b"still\n").status_code == 200
    eventually(lambda: output(fresh, jobs["second"]).content.endswith(b"second still\n"), what="the other one lives")
    fresh.client.post(f"/jobs/{jobs['second']}/cancel")


def test_feeding_works_in_every_worker(fresh):
    job_id = fresh.start("cat", stdin_open=True)
    for number in range(40):
        with httpx.Client(base_url=str(fresh.client.base_url), headers=fresh.client.headers) as own:
            assert feed(fresh, job_id, b"%d\n" % number, client=own).status_code == 200
    feed(fresh, job_id, eof=True)
    assert fresh.wait_job(job_id)["stdout"].split() == [str(n) for n in range(40)]


def test_b030_a_request_larger_than_the_memory_allows_never_starts(server):
    """The agent lives within the sandbox's memory: it must not die of what it is asked."""
    box = server.create(memory="64Mi")
    agent = box.agent_pid()
    for size in (24 * MIB, 40 * MIB):
        for request in ({"command": "wc -c", "stdin": "x" * size}, {"command": ["true", "x" * size]}):
            job = box.exec(**request)
            assert (job["verdict"], job["exit_code"]) == ("never_started", None), job
            assert "memory" in job["error"] and "too_large" in job["error"]
    assert box.exec("wc -c", stdin="x" * 8 * MIB)["stdout"].strip() == str(8 * MIB)
    assert box.agent_pid() == agent and box.get().json()["ready"]
    box.delete()
