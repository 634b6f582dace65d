"""The queue of a lane: its order, who stands in front, who may leave, and what is told at each bound."""

import os
import signal
import socket

import httpx

from orchard_server import eventually


def send_exec(box, command, **headers):
    """A raw client that asks for a command and never reads: its socket is its life."""
    body = f'{{"command": "{command}"}}'
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    sock = socket.create_connection(("127.0.0.1", box.server.port))
    sock.sendall((f"POST {box.url}/exec HTTP/1.1\r\nHost: x\r\nX-API-Key: {box.server.key}\r\n{lines}"
                  f"Content-Length: {len(body)}\r\n\r\n{body}").encode())
    return sock


def live_jobs(box):
    return {job["job_id"]: job for job in box.client.get(f"{box.url}/jobs").json()["jobs"]}


def queued(box, command):
    return [job for job in live_jobs(box).values() if job["command"] == command and job["status"] == "queued"]


def test_b081_a_queued_job_tells_its_place_and_who_runs(fresh):
    holder = fresh.start("sleep 60")
    fresh.wait_running(holder)
    behind = [fresh.start(f"echo {n}") for n in range(3)]
    for position, job_id in enumerate(behind, 1):
        job = fresh.job(job_id)
        assert (job["status"], job["queue_position"], job["blocked_by"]) == ("queued", position, holder)
        assert job["queue_s"] >= 0 and job["started_at"] is None
    listed = live_jobs(fresh)
    assert {listed[job_id]["blocked_by"] for job_id in behind} == {holder}
    assert "blocked_by" not in fresh.job(holder)
    fresh.client.post(f"/jobs/{holder}/cancel")
    jobs = [fresh.wait_job(job_id) for job_id in behind]
    assert [job["stdout"] for job in jobs] == ["0\n", "1\n", "2\n"]
    assert all(0 < job["queue_s"] <= job["started_at"] - job["created_at"] + 0.5 for job in jobs), jobs


def test_b081_blocked_by_a_command_of_before_the_restart(make_server):
    """Nobody of the new server has the lane, but the agent runs a command in it: it is named all the same."""
    server = make_server().start()
    box = server.create()
    running = box.start("sleep 4")
    box.wait_running(running)
    server.kill_all()
    server.start()
    later = box.start("true")
    job = eventually(lambda: (found := box.job(later))["status"] != "queued" or found.get("blocked_by") and found, 10)
    assert job is not True and job["blocked_by"] == running
    assert box.wait_job(later)["status"] == "succeeded"


def test_a_client_that_leaves_while_queued_gives_its_place_up(fresh):
    holder = fresh.start("sleep 60")
    fresh.wait_running(holder)
    leaver = send_exec(fresh, "echo never >> /tmp/n")
    (waiting,) = eventually(lambda: queued(fresh, "echo never >> /tmp/n"), 10)
    behind = fresh.start("echo behind >> /tmp/n")
    leaver.close()
    job = fresh.wait_job(waiting["job_id"], 10)
    assert (job["status"], job["verdict"], job["started_at"], job["exit_code"]) == ("failed", "never_started", None, None)
    assert "left" in job["error"] and job["queue_s"] > 0
    assert fresh.job(behind)["queue_position"] == 1
    fresh.client.post(f"/jobs/{holder}/cancel")
    assert fresh.wait_job(behind)["status"] == "succeeded"
    assert fresh.out("cat /tmp/n") == "behind\n"


def test_a_command_with_a_key_outlives_its_client_in_the_queue(fresh):
    holder = fresh.start("sleep 60")
    fresh.wait_running(holder)
    client = send_exec(fresh, "echo keyed", Idempotency_Key="the client comes back")
    (waiting,) = eventually(lambda: queued(fresh, "echo keyed"), 10)
    client.close()
    fresh.client.get(f"/jobs/{waiting['job_id']}/wait", params={"timeout": 0.5})
    assert fresh.job(waiting["job_id"])["status"] == "queued"
    fresh.client.post(f"/jobs/{holder}/cancel")
    again = fresh.client.post(f"{fresh.url}/exec", json={"command": "echo keyed"},
                              headers={"Idempotency-Key": "the client comes back"}).json()
    assert (again["job_id"], again["stdout"]) == (waiting["job_id"], "keyed\n")


def test_stopping_and_reloading_workers_is_no_clients_leaving(make_server):
    server = make_server(drain_timeout_seconds=1).start()
    box = server.create()
    holder = box.start("sleep 6; echo held >> /n")
    box.wait_running(holder)
    clients = [send_exec(box, f"echo {n} >> /n") for n in range(4)]
    eventually(lambda: len([j for j in live_jobs(box).values() if j["status"] == "queued"]) == 4, 10)
    ids = [job_id for job_id, job in live_jobs(box).items() if job["status"] == "queued"]
    old = set(server.processes()["worker"])
    server.reload()
    eventually(lambda: not set(server.processes().get("worker", [])) & old, 30, server.log())
    answers = [sock.recv(4096).decode() for sock in clients]  # each is told how its job stands
    assert all("200 OK" in answer and '"status":"queued"' in answer.replace(" ", "") for answer in answers), answers
    for sock in clients:
        sock.close()
    assert [box.wait_job(job_id)["status"] for job_id in ids] == ["succeeded"] * 4
    assert box.wait_job(holder)["status"] == "succeeded"
    assert sorted(box.out("cat /n").split()) == ["0", "1", "2", "3", "held"]


def test_no_room_to_wait_is_told_before_anything_is_recorded(make_server):
    server = make_server(max_waiters=2, workers=1).start()
    box = server.create()
    holders = [send_exec(box, "sleep 60") for _ in range(2)]
    eventually(lambda: len(live_jobs(box)) == 2, 10)
    refused = box.post_exec("echo never >> /n")
    assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
    assert len(live_jobs(box)) == 2
    for sock in holders:
        sock.close()


def test_all_commands_of_a_server_are_bounded(make_server):
    server = make_server(exec_queue_limit=4, sandbox_exec_queue_limit=100).start()
    one, two = server.create(), server.create()
    answers = [box.client.post(f"{box.url}/exec", json={"command": "sleep 60", "wait": False})
               for box in (one, two, one, two, one, two)]
    assert [a.status_code for a in answers] == [200] * 4 + [503] * 2
    assert all(a.json()["code"] == "queue_full" and "retry-after" in a.headers and "job_id" not in a.json()
               for a in answers[4:])
    assert len(live_jobs(one)) + len(live_jobs(two)) == 4


def test_b077_order_holds_over_the_workers_of_a_server(make_server):
    """Each request on a connection of its own, so that all workers take part; none overlaps, all in order."""
    server = make_server(workers=4).start()
    box = server.create()
    holder = box.start("sleep 2")
    box.wait_running(holder)
    ids = []
    for number in range(40):
        with httpx.Client(base_url=str(server.client.base_url), headers=server.client.headers, verify=False) as own:
            ids.append(own.post(f"{box.url}/exec", json={"command": f"echo in {number} >> /n; echo out {number} >> /n",
                                                         "wait": False}).json()["job_id"])
    assert [box.job(job_id)["status"] for job_id in ids[-3:]] == ["queued"] * 3
    for job_id in ids:
        assert box.wait_job(job_id)["status"] == "succeeded"
    assert box.out("cat /n").split("\n")[:-1] == [f"{word} {n}" for n in range(40) for word in ("in", "out")]


def test_b082_commands_of_killed_workers_end_before_the_next_begins(make_server):
    server = make_server(workers=2).start()
    box = server.create()
    first = box.start("sleep 3; date +%s%N > /a")
    box.wait_running(first)
    for pid in server.processes()["worker"]:
        os.kill(pid, signal.SIGKILL)

    def second():
        try:
            return box.exec("date +%s%N > /b")
        except (httpx.TransportError, AssertionError):
            return None
    assert eventually(second, 60)["status"] == "succeeded"
    a, b = box.out("cat /a /b").split()
    assert int(a) < int(b)
    assert box.job(first)["status"] == "succeeded"
