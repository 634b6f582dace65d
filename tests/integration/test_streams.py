"""Output while it comes, and by offset: live, resumed, from any worker (fault groups C and D)."""

import hashlib
import http.client
import os
import signal
import socket
import uuid

import httpx
import pytest

from orchard_server import SANITIZED, eventually, is_zombie
from streams import Follower, Stream, feed, output

MANY = 100 * 1024 * 1024


def test_events_arrive_before_the_command_ends(fresh):
    job_id = fresh.start("echo one; echo oops >&2; read line; echo \"two $line\"", stdin_open=True)
    with Stream(fresh.server, job_id) as stream:
        assert stream.response.status == 200
        assert stream.response.headers["content-type"] == "text/event-stream"
        assert stream.response.headers["cache-control"] == "no-store"
        assert {stream.next_of("stdout", "stderr")[0], stream.next_of("stdout", "stderr")[0]} == {"stdout", "stderr"}
        assert fresh.job(job_id)["status"] == "running"
        assert feed(fresh, job_id, b"go\n").status_code == 200
        event, event_id, data = stream.next_of("stdout")
        assert data == {"offset": 4, "data": "dHdvIGdvCg=="} and event_id == "11:5"
        ended = stream.next_of("exit")[2]
    assert ended["exit_code"] == 0 and ended["status"] == "succeeded" and "stdout" not in ended
    assert ended["stdout_bytes"] == 11
    assert {k: v for k, v in fresh.job(job_id).items() if k not in ("stdout", "stderr")} == ended


def test_b021_a_queued_job_is_followed_from_its_place_to_its_end(fresh):
    first = fresh.start("read x", stdin_open=True)
    second = fresh.start("echo second; exit 5")
    assert fresh.job(second)["exit_code"] is None
    with Stream(fresh.server, second) as stream:
        assert stream.next_of("status")[2] == {"status": "queued", "queue_position": 1}
        assert feed(fresh, first, b"\n").status_code == 200
        assert stream.next_of("status")[2]["status"] == "running"
        assert stream.next_of("stdout")[2]["offset"] == 0
        assert stream.next_of("exit")[2]["exit_code"] == 5


def test_a_job_cancelled_in_the_queue_ends_its_stream(fresh):
    first = fresh.start("sleep 60")
    second = fresh.start("echo never")
    with Stream(fresh.server, second) as stream:
        assert stream.next_of("status")[2]["status"] == "queued"
        fresh.client.post(f"/jobs/{second}/cancel")
        assert stream.next_of("stdout", "exit")[2]["verdict"] == "canceled"
    fresh.client.post(f"/jobs/{first}/cancel")


def other_worker(server, job_id, follower, not_pid):
    """Follows on in any worker but that one."""
    for _ in range(100):
        with Stream(server, job_id, follower.headers()) as stream:
            if stream.worker() != not_pid:
                for event in stream:
                    if follower.take(*event):
                        break
                return
    raise AssertionError("every connection came to the same worker")


def test_resumed_in_another_worker_it_is_byte_for_byte_the_same(fresh):
    job_id = fresh.start("for i in 1 2 3 4 5 6 7 8; do head -c 200000 /dev/urandom; head -c 1000 /dev/urandom >&2;"
                         " read x; done | tee /tmp/out; cat /tmp/out | sha256sum >/tmp/sum", stdin_open=True)
    follower = Follower()
    worker = follower.follow(fresh.server, job_id, events=4)
    assert follower.exit is None and len(follower.bytes["stdout"]) > 0
    assert feed(fresh, job_id, b"\n" * 20).status_code == 200
    other_worker(fresh.server, job_id, follower, worker)
    assert follower.exit["status"] == "succeeded"
    assert len(follower.bytes["stdout"]) == 1_600_000 == follower.exit["stdout_bytes"]
    assert len(follower.bytes["stderr"]) == 8_000
    sha = hashlib.sha256(follower.bytes["stdout"]).hexdigest()
    assert fresh.out("cut -c1-64 /tmp/sum").strip() == sha
    # The same once more, by offset parameters, long after the end.
    with Stream(fresh.server, job_id, stdout_offset=1_000_001, stderr_offset=7_999) as stream:
        again = Follower()
        again.bytes = {"stdout": bytearray(1_000_001), "stderr": bytearray(7_999)}
        for event in stream:
            again.take(*event)
    assert again.bytes["stdout"][1_000_001:] == follower.bytes["stdout"][1_000_001:]
    assert again.bytes["stderr"][7_999:] == follower.bytes["stderr"][7_999:]


def test_offset_parameters_win_over_the_last_event_id(fresh):
    job_id = fresh.exec("printf 0123456789")["job_id"]
    with Stream(fresh.server, job_id, {"Last-Event-ID": "9:0"}, stdout_offset=4) as stream:
        assert stream.next_of("stdout")[2] == {"offset": 4, "data": "NDU2Nzg5"}
        assert stream.next_of("exit", "stderr")[0] == "exit"


def test_a_killed_worker_takes_nothing_along(make_server):
    server = make_server(workers=3).start()
    box = server.create()
    job_id = box.start("for i in 1 2 3 4; do head -c 300000 /dev/urandom; read x; done | tee /tmp/out; wait",
                       stdin_open=True)
    follower = Follower()
    with Stream(server, job_id) as stream:
        while len(follower.bytes["stdout"]) < 300_000:
            follower.take(*stream.next_of("status", "stdout"))
        worker = stream.worker()
        os.kill(worker, signal.SIGKILL)
        try:
            assert "exit" not in [event[0] for event in stream]
        except (ConnectionError, http.client.HTTPException):
            pass
    eventually(lambda: is_zombie(worker), 20, "all its connections are closed")
    assert feed(box, job_id, b"\n" * 10).status_code == 200
    # Its owner may have been the one that was killed: then the reaper ends it.
    follower.follow(server, job_id)
    assert follower.exit["status"] == "succeeded"
    assert bytes(follower.bytes["stdout"]) == output(box, job_id).content
    assert hashlib.sha256(follower.bytes["stdout"]).hexdigest() == box.out("sha256sum </tmp/out").split()[0]


def test_a_reload_ends_streams_and_their_clients_go_on(make_server):
    server = make_server(drain_timeout_seconds=3600).start()
    box = server.create()
    job_id = box.start("echo one; read x; echo two", stdin_open=True)
    follower = Follower()
    with Stream(server, job_id) as stream:
        while not follower.take(*stream.next_of("status", "stdout")) and not follower.bytes["stdout"]:
            pass
        server.reload()
        assert list(stream) == []  # a clean end without exit, and not at the drain's deadline

    def again():
        # Another of the old workers, which is just being told to end, ends this one at once as well.
        stream = Stream(server, job_id, follower.headers())
        first = next(iter(stream), None)
        if first is None:
            stream.close()
        return first and (stream, first)
    stream, first = eventually(again, 30, "a stream from a new worker")
    with stream:
        assert (first[0], first[2]["status"]) == ("status", "running")
        assert feed(box, job_id, b"\n").status_code == 200
        for event in stream:
            follower.take(*event)
    while follower.exit is None:  # that worker, too, was about to be told
        follower.follow(server, job_id)
    assert follower.bytes["stdout"] == b"one\ntwo\n" and follower.exit["exit_code"] == 0


def test_a_deleted_sandbox_ends_its_streams(server):
    box = server.create()
    job_id = box.start("echo known; sleep 60")
    with Stream(server, job_id) as stream:
        assert stream.next_of("stdout")[2]["data"] == "a25vd24K"
        box.delete()
        assert stream.next_of("exit")[2]["verdict"] == "sandbox_deleted"
    answer = output(box, job_id)
    assert answer.status_code == 410 and answer.json()["code"] == "output_gone", answer.text


def test_a_dead_agent_ends_its_streams(server):
    box = server.create()
    job_id = box.start("echo known; sleep 60")
    with Stream(server, job_id) as stream:
        stream.next_of("stdout")
        os.kill(box.agent_pid(), signal.SIGKILL)
        assert stream.next_of("exit")[2]["verdict"] == "agent_lost"
    box.delete()


def test_an_ended_job_is_told_whole_then_its_exit(box):
    job = box.exec("seq 200000; echo err >&2; exit 3")
    follower = Follower()
    follower.follow(box.server, job["job_id"])
    assert follower.bytes["stdout"] == b"".join(b"%d\n" % i for i in range(1, 200001))
    assert follower.bytes["stderr"] == b"err\n" and follower.exit["exit_code"] == 3


def test_a_stream_without_output(box):
    job = box.exec("true")
    follower = Follower()
    follower.follow(box.server, job["job_id"])
    assert follower.exit["status"] == "succeeded" and follower.last_id is None


def test_b023_raw_bytes_of_what_is_not_text(box):
    raw = bytes(range(256)) * 40
    job = box.exec("for i in $(seq 40); do printf '" + "".join(f"\\{b:03o}" for b in range(256)) + "'; done")
    assert "\ufffd" in job["stdout"] and not job["stdout_truncated"]
    answer = output(box, job["job_id"])
    assert answer.content == raw and answer.headers["content-type"] == "application/octet-stream"
    assert box.job(job["job_id"]) == job
    coded = box.exec("printf '\\377\\376ok\\n'", encoding="base64")
    assert output(box, coded["job_id"]).content == b"\xff\xfeok\n"


def test_raw_bytes_outlive_their_sandbox(server):
    box = server.create()
    job = box.exec("printf 'a\\377b'; echo text >&2")
    box.delete()
    assert output(box, job["job_id"]).content == b"a\xffb"
    assert output(box, job["job_id"], "stderr").content == b"text\n"


def test_b026_all_of_a_truncated_output_is_there_by_offset(fresh):
    job = fresh.exec("head -c 10485760 /dev/urandom | tee /tmp/out; seq 5 >&2")
    assert job["stdout_truncated"] and job["stdout_bytes"] == 10485760 and len(job["stdout"]) < 4_000_000
    answer = output(fresh, job["job_id"])
    assert answer.status_code == 200
    assert answer.headers["x-output-offset"] == "0" and answer.headers["x-output-bytes"] == "10485760"
    assert answer.headers["x-job-status"] == "succeeded"
    sha = fresh.out("sha256sum </tmp/out").split()[0]
    assert hashlib.sha256(answer.content).hexdigest() == sha
    middle = output(fresh, job["job_id"], offset=5_000_001, limit=1_000_003)
    assert middle.content == answer.content[5_000_001:6_000_004]
    assert middle.headers["x-output-offset"] == "5000001"
    assert output(fresh, job["job_id"], offset=10485760).content == b""
    assert output(fresh, job["job_id"], "stderr").content == b"1\n2\n3\n4\n5\n"
    follower = Follower()
    follower.follow(fresh.server, job["job_id"])
    assert hashlib.sha256(follower.bytes["stdout"]).hexdigest() == sha


def test_output_of_a_running_job(fresh):
    job_id = fresh.start("echo started; read x; echo done", stdin_open=True)
    eventually(lambda: output(fresh, job_id).content == b"started\n", what="its first line")
    answer = output(fresh, job_id, offset=3, limit=4)
    assert answer.content == b"rted" and answer.headers["x-job-status"] == "running"
    assert answer.headers["x-output-bytes"] == "8"
    assert output(fresh, job_id, "stderr").content == b""
    assert output(fresh, job_id, offset=9).status_code == 416
    queued = fresh.start("true")
    answer = output(fresh, queued)
    assert answer.status_code == 200 and answer.content == b"" and answer.headers["x-job-status"] == "queued"
    assert feed(fresh, job_id, b"\n").status_code == 200
    fresh.wait_job(job_id)
    assert output(fresh, job_id).content == b"started\ndone\n"


def test_beyond_the_spool_bytes_are_gone_and_it_says_so(make_server):
    server = make_server(spool_limit_bytes="2Mi", max_output_bytes="64Ki").start()
    box = server.create()
    job = box.exec("head -c 4194304 /dev/urandom | tee /tmp/out")
    answer = output(box, job["job_id"])
    assert answer.status_code == 200 and answer.headers["x-output-bytes"] == "4194304"
    kept = len(answer.content)
    assert kept == 2 * 1024 * 1024
    assert hashlib.sha256(answer.content).hexdigest() == box.out(f"head -c {kept} /tmp/out | sha256sum").split()[0]
    gone = output(box, job["job_id"], offset=kept)
    assert gone.status_code == 410 and gone.json()["code"] == "output_gone"
    assert output(box, job["job_id"], offset=4194305).status_code == 416
    with Stream(server, job["job_id"]) as stream:
        events = list(stream)
    assert events[-1][0] == "exit" and sum(e[0] == "stdout" for e in events) > 0


def test_without_a_spool_the_live_stream_still_works(make_server):
    server = make_server(spool_limit_bytes=0, max_output_bytes="64Ki").start()
    box = server.create()
    job_id = box.start("read x; seq 3", stdin_open=True)
    follower = Follower()
    with Stream(server, job_id) as stream:
        stream.next_of("status")
        assert feed(box, job_id, b"\n").status_code == 200
        for event in stream:
            follower.take(*event)
    assert follower.bytes["stdout"] == b"1\n2\n3\n"
    job = box.exec("head -c 300000 /dev/zero")
    # What the agent holds of it in memory goes once the result is stored.
    eventually(lambda: output(box, job["job_id"]).status_code == 410, what="it is gone")


@pytest.mark.parametrize("route,query", [
    ("stream", "stdout_offset=-1"), ("stream", "stdout_offset=x"), ("stream", "stderr_offset=1e3"),
    ("stream", "stdout_offset=99999999999999999999"), ("stream", "stdout_offset="),
    ("stream", "stdout_offset=1&stdout_offset=2"),
    ("output", "offset=-1"), ("output", "offset=9223372036854775808"), ("output", "offset=0x10"),
    ("output", "limit=0"), ("output", "limit=all"), ("output", "stream=stdin"), ("output", "stream="),
    ("output", "stream=stdout&stream=stderr"),
])
def test_wrong_parameters_are_told(box, route, query):
    job = box.exec("true")
    answer = box.client.get(f"/jobs/{job['job_id']}/{route}?{query}")
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"][0]["loc"] == ["query", query.split("=")[0]]


@pytest.mark.parametrize("last_id", ["x", "1", "1:", ":1", "1:-1", "1:2:3", "99999999999999999999:0"])
def test_a_wrong_last_event_id_is_told(box, last_id):
    job = box.exec("true")
    answer = box.client.get(f"/jobs/{job['job_id']}/stream", headers={"Last-Event-ID": last_id})
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"] == ["header", "Last-Event-ID"]


def test_unknown_jobs_are_404(box):
    for path in ("output", "stream"):
        assert box.client.get(f"/jobs/{uuid.uuid4()}/{path}").status_code == 404
        assert box.client.get(f"/jobs/nothing/{path}").status_code == 404
        assert box.client.head(f"/jobs/{uuid.uuid4()}/{path}").status_code == 404
        keyless = httpx.get(f"{box.client.base_url}/jobs/{uuid.uuid4()}/{path}")
        assert keyless.status_code == 401
    assert feed(box, uuid.uuid4(), b"x").status_code == 404


def test_head_tells_without_a_body(box):
    job = box.exec("head -c 100000 /dev/zero")
    head = box.client.head(f"/jobs/{job['job_id']}/output")
    assert head.status_code == 200 and head.content == b""
    assert head.headers["x-output-bytes"] == "100000" and head.headers["content-length"] == "100000"
    stream = box.client.head(f"/jobs/{job['job_id']}/stream")
    assert stream.status_code == 200 and stream.headers["content-type"] == "text/event-stream"
    assert "content-length" not in stream.headers
    assert box.client.get("/health").status_code == 200


def test_http_1_0_clients_get_it_until_the_connection_closes(box):
    job = box.exec("echo hello")
    for path, wanted in (("output", b"\r\n\r\nhello\n"), ("stream", b"event: exit\ndata: {")):
        with socket.create_connection(("127.0.0.1", box.server.port)) as raw:
            raw.sendall(f"GET /jobs/{job['job_id']}/{path} HTTP/1.0\r\nX-API-Key: {box.server.key}\r\n\r\n".encode())
            answer = b"".join(iter(lambda: raw.recv(65536), b""))
        assert wanted in answer and b"chunked" not in answer


def worker_memory(server):
    """Private memory in KiB of all workers together."""
    total = 0
    for pid in server.processes()["worker"]:
        with open(f"/proc/{pid}/smaps_rollup") as rollup:
            total += sum(int(line.split()[1]) for line in rollup if line.startswith(("Private_Clean", "Private_Dirty")))
    return total


def test_b026_a_slow_reader_of_endless_output_costs_nobody_anything(make_server):
    server = make_server().start()
    box = server.create(memory="512Mi")
    other = server.create()
    other.out("true")
    # More than any buffer holds is waiting, and nobody reads it.
    job_id = box.start(f"yes | head -c {MANY}", lane="noise")
    with Stream(server, job_id) as warm:
        warm.next_of("stdout")
    before = worker_memory(server)
    slow = [Stream(server, job_id) for _ in range(20)]
    assert eventually(lambda: box.wait_job(job_id)["status"] == "succeeded", 120, "it is not held up")
    assert box.job(job_id)["stdout_bytes"] == MANY
    for number in range(20):
        assert other.out(f"echo {number}") == f"{number}\n"
    growth = worker_memory(server) - before
    assert SANITIZED or growth < 20 * 1500, growth  # KiB: a few pieces for each
    for stream in slow:
        stream.close()


def test_an_output_read_slowly_costs_one_piece(make_server):
    server = make_server().start()
    box = server.create(memory="512Mi")
    job = box.exec("yes | head -c 60000000")
    output(box, job["job_id"], limit=1000000)
    before = worker_memory(server)
    request = f"GET /jobs/{job['job_id']}/output HTTP/1.1\r\nHost: x\r\nX-API-Key: {server.key}\r\n\r\n".encode()
    slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    for one in slow:
        one.sendall(request)
    for one in slow:
        assert one.recv(1000)
    assert box.out("echo ok") == "ok\n"
    growth = worker_memory(server) - before
    assert SANITIZED or growth < 20 * 2500, growth
    for one in slow:
        one.close()


def metric(client, name):
    for line in client.get("/metrics").text.splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(name)


def test_many_streams_of_one_job_and_their_bound(make_server):
    server = make_server(workers=2, max_waiters=400).start()
    box = server.create()
    job_id = box.start("read x; seq 1000", stdin_open=True)
    box.wait_running(job_id)
    streams = [Stream(server, job_id) for _ in range(300)]
    assert all(s.response.status == 200 for s in streams)
    assert metric(server.client, "orchard_streams") == 300
    assert box.exec("echo beside", lane="other")["stdout"] == "beside\n"
    # A worker has so many waiters, and no more.
    refused = None
    while refused is None and len(streams) < 900:
        one = Stream(server, job_id)
        if one.response.status == 503:
            refused = one
        else:
            streams.append(one)
    assert refused is not None and int(refused.response.headers["retry-after"]) >= 1
    refused.close()
    for _ in range(3):
        streams.pop().close()

    def feed_anew():
        with httpx.Client(base_url=str(box.client.base_url), headers=box.client.headers) as own:
            return feed(box, job_id, b"\n", client=own).status_code == 200
    eventually(feed_anew, what="a worker with room")
    wanted = b"".join(b"%d\n" % i for i in range(1, 1001))
    for stream in streams:
        follower = Follower()
        for event in stream:
            if follower.take(*event):
                break
        assert follower.bytes["stdout"] == wanted and follower.exit["exit_code"] == 0
        stream.close()
    eventually(lambda: metric(server.client, "orchard_streams") == 0, what="no stream is left")
    assert metric(server.client, "orchard_stream_bytes_total") >= 300 * len(wanted)


def test_streams_whose_clients_left_are_forgotten(fresh):
    job_id = fresh.start("sleep 60")
    fresh.wait_running(job_id)
    streams = [Stream(fresh.server, job_id) for _ in range(50)]
    eventually(lambda: metric(fresh.client, "orchard_streams") >= 50, what="50 streams")
    for stream in streams:
        stream.close()
    eventually(lambda: metric(fresh.client, "orchard_streams") == 0, what="no stream")
    fresh.client.post(f"/jobs/{job_id}/cancel")
