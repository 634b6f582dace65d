"""Idempotency-Key: one key is one job, in every worker, after every death, until its time is over."""

import os
import signal
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from orchard_server import eventually


def post(box, key, body, path="/exec", client=None, **options):
    headers = {"Idempotency-Key": key} if key is not None else {}
    return (client or box.client).post(f"{box.url}{path}", json=body, headers=headers, timeout=60, **options)


def new_key():
    return "test " + str(uuid.uuid4())


def alive(server):
    try:
        return server.client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def own_client(server):
    return httpx.Client(base_url=str(server.client.base_url), headers=server.client.headers, timeout=60, verify=False)


def metric(server, name):
    for line in server.client.get("/metrics").text.splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(name)


def test_same_key_and_body_run_once(fresh):
    key, body = new_key(), {"command": "echo x >> /tmp/n; wc -l < /tmp/n"}
    first = post(fresh, key, body).json()
    again = post(fresh, key, body).json()
    assert first == again and first["stdout"] == "1\n"
    assert post(fresh, key, body | {"wait": False}).json() == {"job_id": first["job_id"], "status": "queued"}
    assert post(fresh, key, body | {"wait_timeout": 5}).json() == first
    assert post(fresh, key, {"wait": True} | body | {"cwd": None}).json() == first
    assert fresh.out("wc -l < /tmp/n") == "1\n"


def test_many_at_the_same_moment_in_all_workers_run_once(make_server):
    server = make_server(workers=4).start()
    box = server.create()
    for round_number in range(5):
        key, body = new_key(), {"command": f"echo x >> /tmp/n{round_number}; sleep 0.2; wc -l < /tmp/n{round_number}"}

        def one(_):
            with own_client(server) as client:  # a connection of its own: any worker
                return post(box, key, body, client=client).json()
        with ThreadPoolExecutor(24) as pool:
            jobs = list(pool.map(one, range(24)))
        assert {job["job_id"] for job in jobs} == {jobs[0]["job_id"]}
        assert {job["stdout"] for job in jobs} == {"1\n"}
    assert metric(server, "orchard_idempotency_keys") == 5
    assert metric(server, "orchard_idempotency_replays_total") == 5 * 23
    assert metric(server, "orchard_jobs_live") == 0


def test_another_body_or_route_is_a_conflict(server, fresh):
    key = new_key()
    other = server.create()
    assert post(fresh, key, {"command": "true"}).status_code == 200
    before = metric(server, "orchard_idempotency_conflicts_total")
    for answer in (post(fresh, key, {"command": "false"}), post(other, key, {"command": "true"})):
        assert answer.status_code == 409 and answer.json()["code"] == "idempotency_conflict"
    assert metric(server, "orchard_idempotency_conflicts_total") == before + 2
    other.delete()


@pytest.mark.parametrize("key", ["", "x" * 256, b"\xc3\xa4", "a\tb"])
def test_wrong_keys_are_422(fresh, key):
    answer = post(fresh, key, {"command": "echo x >> /tmp/never"})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["header", "Idempotency-Key"]
    assert fresh.exec("cat /tmp/never")["exit_code"] == 1


def test_two_header_lines_are_refused(fresh):
    answer = fresh.client.post(f"{fresh.url}/exec", json={"command": "true"},
                               headers=[("Idempotency-Key", "a"), ("Idempotency-Key", "a")])
    assert answer.status_code == 422


def test_what_was_refused_does_not_hold_the_key(make_server):
    server = make_server(sandbox_exec_queue_limit=1).start()
    box = server.create()
    key = new_key()
    blocker = box.start("sleep 60")
    assert post(box, key, {"command": "echo one"}).status_code == 503
    assert box.client.post(f"/sandboxes/nosuch/exec", json={"command": "x"},
                           headers={"Idempotency-Key": key}).status_code == 404
    assert post(box, key, {"command": 5}).status_code == 422
    box.client.post(f"/jobs/{blocker}/cancel")
    eventually(lambda: metric(server, "orchard_jobs_live") == 0, 20)
    assert post(box, key, {"command": "echo two"}).json()["stdout"] == "two\n"


def test_b071_client_that_lost_its_answer_gets_it_by_asking_again(fresh):
    key, body = new_key(), {"command": "echo x >> /tmp/n; sleep 1; wc -l < /tmp/n"}
    for _ in range(3):
        with pytest.raises(httpx.ReadTimeout):
            fresh.client.post(f"{fresh.url}/exec", json=body, headers={"Idempotency-Key": key}, timeout=0.2)
    job = post(fresh, key, body).json()
    assert job["status"] == "succeeded" and job["stdout"] == "1\n"


def test_key_holds_through_the_death_of_workers_and_of_the_server(make_server):
    server = make_server().start()
    box = server.create()
    running, done, gone = new_key(), new_key(), new_key()
    slow, quick = {"command": "echo x >> /n; sleep 3; wc -l < /n"}, {"command": "echo once"}
    finished = post(box, done, quick).json()
    job_id = post(box, running, slow | {"wait": False}).json()["job_id"]
    box.wait_running(job_id)
    for pid in server.processes()["worker"]:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: alive(server), 30)
    assert post(box, done, quick).json() == finished
    assert post(box, running, slow | {"wait": False}).json()["job_id"] == job_id
    server.kill_all()
    server.start()
    assert post(box, done, quick).json() == finished
    job = post(box, running, slow).json()
    assert (job["job_id"], job["status"], job["stdout"]) == (job_id, "succeeded", "1\n")
    box.delete()
    assert post(box, running, slow).json() == job
    assert post(box, gone, quick).status_code == 404
    server.stop()
    (server.run_dir / "shm").unlink()  # as after a boot: only the files are left
    server.start()
    assert post(box, running, slow).json() == job
    assert post(box, done, {"command": "other"}).status_code == 409


def create(server, key, body, client=None):
    return (client or server.client).post("/sandboxes", json=body, headers={"Idempotency-Key": key}, timeout=60)


def test_b075_repeated_create_makes_one_sandbox(make_server):
    server = make_server(workers=3).start()
    key, body = new_key(), {"image": "default", "labels": {"run": "7"}}

    def one(_):
        with own_client(server) as client:
            return create(server, key, body, client).json()
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(one, range(16)))
    assert all(answer["sandbox_id"] == answers[0]["sandbox_id"] for answer in answers), answers
    assert server.list_ids() == [answers[0]["sandbox_id"]]
    first = create(server, key, body).json()
    conflict = create(server, key, body | {"cpu": "500m"})
    assert conflict.status_code == 409 and conflict.json()["code"] == "idempotency_conflict"
    server.kill_all()
    server.start()
    assert create(server, key, body).json() == first
    server.client.delete(f"/sandboxes/{first['sandbox_id']}")
    eventually(lambda: not server.remains(), 30, "removed")
    assert create(server, key, body).json() == first
    assert server.list_ids() == []


def test_b075_lost_answers_to_creates_leave_one_sandbox_each(make_server):
    """Workers die while creates are under way; each client asks again until it is answered."""
    server = make_server(workers=3).start()

    def run(number):
        key = new_key()
        for _ in range(200):
            try:
                with own_client(server) as client:
                    answer = create(server, key, {"image": "default", "labels": {"n": str(number)}}, client)
            except httpx.TransportError:
                continue
            if answer.status_code == 200:
                return answer.json()["sandbox_id"]
        raise AssertionError(server.log())
    with ThreadPoolExecutor(8) as pool:
        ids = [pool.submit(run, number) for number in range(40)]
        for _ in range(3):
            workers = eventually(lambda: server.processes().get("worker"), 40)
            try:
                os.kill(workers[0], signal.SIGKILL)
            except ProcessLookupError:
                pass
        made = [one.result() for one in ids]
    assert len(set(made)) == 40
    assert sorted(server.list_ids()) == sorted(made)


def test_waiting_request_with_a_key_runs_after_its_workers_death(make_server):
    """Queued, not yet started, its client cut off by the death of the worker: the retry finds that very job."""
    server = make_server().start()
    box = server.create()
    box.start("sleep 2")
    key, body = new_key(), {"command": "echo x >> /n; wc -l < /n"}
    answers = []

    def ask():
        for _ in range(50):
            try:
                with own_client(server) as client:
                    answers.append(post(box, key, body, client=client).json())
                    return
            except httpx.TransportError:
                pass
    callers = [threading.Thread(target=ask) for _ in range(4)]
    for caller in callers:
        caller.start()
    eventually(lambda: metric(server, "orchard_idempotency_keys") == 1, 10)
    for pid in server.processes()["worker"]:
        os.kill(pid, signal.SIGKILL)
    for caller in callers:
        caller.join()
    assert [answer["stdout"] for answer in answers] == ["1\n"] * 4
    assert len({answer["job_id"] for answer in answers}) == 1


def test_random_worker_kills_run_every_key_once(make_server):
    """The client's side of exactly once: it asks again until it has an answer."""
    server = make_server(workers=3).start()
    box = server.create()
    stop = threading.Event()

    def kill():
        for _ in range(5):
            workers = eventually(lambda: stop.is_set() or server.processes().get("worker"), 40)
            if stop.wait(0.1):
                return
            try:
                os.kill(workers[0], signal.SIGKILL)
            except ProcessLookupError:
                pass

    def run(number):
        key, body = new_key(), {"command": f"echo {number} >> /n; sleep 0.05", "lane": f"l{number % 4}"}
        for _ in range(200):
            try:
                with own_client(server) as client:
                    answer = post(box, key, body, client=client)
            except httpx.TransportError:
                continue
            if answer.status_code == 200 and answer.json()["status"] in ("succeeded", "failed"):
                return answer.json()
        raise AssertionError(f"no answer for {number}: {server.log()}")
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        with ThreadPoolExecutor(12) as pool:
            jobs = list(pool.map(run, range(120)))
    finally:
        stop.set()
        killer.join()
    eventually(lambda: alive(server), 40, server.log())
    assert {job["status"] for job in jobs} == {"succeeded"}, [j for j in jobs if j["status"] != "succeeded"]
    lines = box.out("cat /n").split()
    assert sorted(lines, key=int) == [str(number) for number in range(120)]


def test_full_of_keys_those_that_ended_first_give_way(make_server):
    """One table full of keys later a new one is taken all the same, and what still runs or is young keeps its own."""
    server = make_server(idempotency_max_records=1024, idempotency_min_seconds=1).start()
    box = server.create()
    held, body = new_key(), {"command": "echo x >> /tmp/held; until test -e /tmp/go; do sleep 0.1; done", "wait": False}
    first = post(box, held, body).json()["job_id"]
    keys = [new_key() for _ in range(1400)]

    def one(key):
        def taken():
            answer = post(box, key, {"command": "true", "lane": key[-1]})
            assert answer.status_code in (200, 503), answer.text
            assert answer.status_code == 200 or "Retry-After" in answer.headers
            return answer.status_code == 200 and answer.json()["job_id"]
        return eventually(taken, 30)
    with ThreadPoolExecutor(8) as pool:
        jobs = list(pool.map(one, keys))
    assert metric(server, "orchard_idempotency_keys") <= 1024
    assert metric(server, "orchard_idempotency_keys_given_way_total") >= 1400 - 1024
    assert post(box, held, body).json()["job_id"] == first
    assert post(box, keys[-1], {"command": "true", "lane": keys[-1][-1]}).json()["job_id"] == jobs[-1]
    box.exec("touch /tmp/go", lane="other")
    assert box.out("wc -l < /tmp/held") == "1\n"


def test_full_of_young_keys_a_new_one_is_refused(make_server):
    server = make_server(idempotency_max_records=1024).start()
    box = server.create()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: post(box, f"k{n}", {"command": "true", "lane": f"l{n % 8}"}), range(1030)))
    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) == 6
    for answer in refused:
        assert answer.status_code == 503 and answer.json()["code"] == "queue_full" and "Retry-After" in answer.headers
        assert "idempotency_max_records" in answer.json()["detail"] and "idempotency_min_seconds" in answer.json()["detail"]
    assert box.exec("echo without a key")["stdout"] == "without a key\n"
