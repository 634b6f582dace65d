"""Jobs, waits and the exec lock across workers (fault groups K and L)."""

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from orchard_server import eventually


def test_job_shape(box):
    job = box.exec("echo out; echo err >&2; exit 3")
    assert {"job_id", "sandbox_id", "command", "status", "stdout", "stderr", "exit_code", "created_at",
            "started_at", "completed_at", "error"} <= set(job)
    assert job["sandbox_id"] == box.id and job["command"].startswith("echo out")
    assert (job["status"], job["stdout"], job["stderr"], job["exit_code"]) == ("failed", "out\n", "err\n", 3)
    assert job["created_at"] <= job["started_at"] <= job["completed_at"] <= time.time() + 1
    assert box.job(job["job_id"]) == job


def test_wait_false_answers_at_once(fresh):
    fresh.out("mkfifo /go")
    job_id = fresh.start("read word < /go; echo r")
    assert fresh.job(job_id)["status"] in ("queued", "running")
    fresh.out("echo > /go", lane="other")
    assert fresh.wait_job(job_id)["stdout"] == "r\n"


def test_b077_commands_of_a_sandbox_never_overlap(fresh):
    script = "echo in >> /tmp/log; sleep 0.05; echo out >> /tmp/log"
    with ThreadPoolExecutor(24) as pool:
        jobs = list(pool.map(lambda _: fresh.exec(script), range(24)))
    assert all(job["status"] == "succeeded" for job in jobs)
    assert fresh.out("cat /tmp/log").split() == ["in", "out"] * 24


def test_b081_first_come_first_served(fresh):
    fresh.start("sleep 1")
    jobs = [fresh.start(f"echo {number} >> /tmp/order") for number in range(30)]
    assert fresh.job(jobs[-1])["status"] == "queued"
    for job in jobs:
        assert fresh.wait_job(job)["status"] == "succeeded"
    assert fresh.out("cat /tmp/order").split() == [str(number) for number in range(30)]


def test_b081_queue_bound(make_server):
    server = make_server(sandbox_exec_queue_limit=5).start()
    box = server.create()
    answers = [box.client.post(f"{box.url}/exec", json={"command": "sleep 1", "wait": False}) for _ in range(8)]
    assert [a.status_code for a in answers] == [200] * 5 + [503] * 3
    refused = answers[-1]
    assert int(refused.headers["retry-after"]) >= 1 and refused.json()["code"] == "queue_full"


def test_lanes_run_side_by_side(fresh):
    meet = "touch /tmp/meet-$0; until [ $(ls /tmp/meet-* | wc -l) = 4 ]; do sleep 0.05; done"
    jobs = [fresh.start(["bash", "-c", meet, str(i)], lane=f"lane-{i}", timeout_seconds=60) for i in range(4)]
    for job in jobs:
        assert fresh.wait_job(job)["status"] == "succeeded"


def test_max_concurrent_execs_is_a_real_limit(make_server):
    server = make_server(max_concurrent_execs=2).start()
    boxes = [server.create() for _ in range(4)]
    jobs = [(box, box.start("sleep 1")) for box in boxes]

    ended = [box.wait_job(job) for box, job in jobs]
    assert all(job["status"] == "succeeded" for job in ended)
    # How many ran at the start of each, by the jobs' own times.
    peaks = [sum(other["started_at"] <= job["started_at"] < other["completed_at"] for other in ended) for job in ended]
    assert max(peaks) == 2


def test_waits_wake_in_every_worker(fresh):
    """Many connections, so that both workers hold some; all hear of the end long before their own time is over."""
    job_id = fresh.start("sleep 1.5; echo z")

    def wait():
        with httpx.Client(base_url=str(fresh.client.base_url), headers=fresh.client.headers, timeout=200,
                          verify=False) as own:
            return own.get(f"/jobs/{job_id}/wait", params={"timeout": 3000}).json()
    with ThreadPoolExecutor(32) as pool:
        jobs = list(pool.map(lambda _: wait(), range(32)))
    assert {job["stdout"] for job in jobs} == {"z\n"}


@pytest.mark.parametrize("value,status", [("0", 200), ("999999", 200), ("-1", 422), ("abc", 422), ("nan", 422), ("", 422)])
def test_b091_wait_timeouts(box, value, status):
    job = box.exec("true")
    assert box.client.get(f"/jobs/{job['job_id']}/wait?timeout={value}").status_code == status


def test_b091_abandoned_waiters_are_forgotten(fresh):
    job_id = fresh.start("sleep 60")
    host, port = "127.0.0.1", fresh.server.port
    import socket
    request = (f"GET /jobs/{job_id}/wait?timeout=50 HTTP/1.1\r\nHost: x\r\nX-API-Key: {fresh.server.key}\r\n\r\n").encode()
    sockets = [socket.create_connection((host, port)) for _ in range(200)]
    for one in sockets:
        one.sendall(request)
    metric = lambda: metrics(fresh.client)["orchard_waiters"]
    eventually(lambda: metric() >= 200, 10, "200 waiters")
    for one in sockets:
        one.close()
    eventually(lambda: metric() == 0, 10, "no waiters")
    fresh.client.post(f"/jobs/{job_id}/cancel")


def metrics(client):
    values = {}
    for line in client.get("/metrics").text.splitlines():
        if line and not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            values[name] = float(value)
    return values


def test_b093_unknown_and_odd_job_ids(server):
    for name in ("nosuch", "%00", str(uuid.uuid4()), "x" * 300, "%ff"):
        for path in (f"/jobs/{name}", f"/jobs/{name}/wait?timeout=30"):
            answer = server.client.get(path)
            assert answer.status_code in (400, 404), (path, answer.text)
            assert answer.json()["detail"]


def test_b093_job_of_a_deleted_sandbox_stays_readable(server):
    box = server.create()
    job = box.exec("echo kept")
    running = box.start("printf part; sleep 100")
    eventually(lambda: box.client.get(f"/jobs/{running}/output").text == "part", what="it has written")
    queued = box.start("echo never")
    box.delete()
    assert box.job(job["job_id"])["stdout"] == "kept\n"
    ended = box.wait_job(running, 10)
    assert (ended["status"], ended["verdict"], ended["error"]) == ("failed", "sandbox_deleted", "sandbox deleted")
    assert (ended["stdout"], ended["stdout_bytes"], ended["exit_code"]) == ("part", 4, None)
    assert ended["started_at"] is not None
    ended = box.wait_job(queued, 10)
    assert (ended["verdict"], ended["stdout_bytes"], ended["started_at"]) == ("sandbox_deleted", 0, None)


def test_b093_no_list_misses_a_job_that_ends_meanwhile(server):
    """A job moves from the live ones to the ended ones while another process lists both."""
    def storm(number):
        box, lists = server.create(image="default"), httpx.Client(base_url=server.client.base_url, headers=server.client.headers)
        known = set()
        for turn in range(96):
            known.add(box.start(["true"], lane=str(turn % 3)))
            for _ in range(2):
                listed = [job["job_id"] for job in lists.get(f"{box.url}/jobs").json()["jobs"]]
                assert set(listed) == known and len(listed) == len(known)
        lists.close()
        box.delete()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(storm, range(4)))


def test_jobs_of_a_sandbox_are_listed_newest_first(fresh):
    ids = [fresh.exec(f"echo {n}")["job_id"] for n in range(3)] + [fresh.start("sleep 30")]
    listed = fresh.client.get(f"{fresh.url}/jobs").json()["jobs"]
    assert [job["job_id"] for job in listed] == ids[::-1]


def test_client_that_leaves_does_not_end_its_command(fresh):
    with pytest.raises(httpx.ReadTimeout):
        fresh.client.post(f"{fresh.url}/exec", json={"command": "sleep 1; echo x >> /tmp/n", "wait": True}, timeout=0.3)
    eventually(lambda: fresh.exec("cat /tmp/n", lane="look")["stdout"] == "x\n", 10, "command went on")


def test_other_calls_do_not_wait_for_the_exec_lock(fresh):
    job = fresh.start("sleep 600")
    fresh.wait_running(job)
    assert fresh.client.post(f"{fresh.url}/heartbeat").json() == {"status": "ok", "sandbox_id": fresh.id}
    assert fresh.get().status_code == 200
    assert fresh.job(job)["status"] == "running"
    fresh.client.post(f"/jobs/{job}/cancel")


def test_exec_before_ready_waits_for_it(server):
    box = server.create(wait=False)
    assert box.out("echo early") == "early\n"
    box.delete()


def test_parallel_commands_in_many_sandboxes(server):
    boxes = [server.create(wait=False) for _ in range(16)]
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda box: [box.out(f"echo {box.id} {n}") for n in range(10)], boxes))
    for box, lines in zip(boxes, results):
        assert lines == [f"{box.id} {n}\n" for n in range(10)]
        box.delete()
