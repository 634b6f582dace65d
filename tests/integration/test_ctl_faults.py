"""orchardctl and servers that break off, are busy, or talk nonsense."""

import base64
import signal
import threading

import pytest

from ctl import Ctl
from ctl_fake import Fake

JOB = "0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77"
EXIT = {"job_id": JOB, "status": "failed", "exit_code": 6, "verdict": "exited", "error": None}


@pytest.fixture
def fake(tmp_path):
    made = []

    def make(answer):
        made.append(Fake(answer))
        return made[-1], Ctl(made[-1], tmp_path)
    yield make
    for one in made:
        one.close()


def output(name, offset, data):
    return name, {"offset": offset, "data": base64.b64encode(data).decode()}


def test_all_tries_of_a_post_are_one_request(fake):
    def answer(request):
        if len(server.requests) == 1:
            request.drop()
        elif len(server.requests) == 2:
            request.answer(503, {"detail": "full", "code": "queue_full"}, [("Retry-After", "0")])
        else:
            request.answer(200, {"sandbox_id": "x1"})
    server, ctl = fake(answer)
    done = ctl.run("create", "--no-wait")
    assert (done.returncode, done.stdout) == (0, b"x1\n") and b"trying again" in done.stderr
    assert len({request.headers["Idempotency-Key"] for request in server.requests}) == 1
    assert len({request.body for request in server.requests}) == 1 and len(server.requests) == 3
    server.requests.clear()
    assert ctl.run("create", "--no-wait", "--retry", "0").returncode == 3
    assert len(server.requests) == 1


def test_a_pause_that_is_longer_than_all_tries_is_not_waited_for(fake):
    _, ctl = fake(lambda request: request.answer(503, {"detail": "full", "code": "queue_full"}, [("Retry-After", "900")]))
    done = ctl.run("ls")
    assert done.returncode == 1 and b"queue_full" in done.stderr


def test_a_refusal_is_shown_and_not_obeyed_by_the_terminal(fake):
    _, ctl = fake(lambda request: request.answer(
        409, {"detail": "no\x1b]0;title\x07\r", "code": "conflict", "request_id": "r1"}))
    done = ctl.run("ls")
    assert done.stderr == b"orchardctl: no\\x1b]0;title\\x07\\r [conflict, request r1]\n"


def test_a_proxy_of_the_environment_is_for_other_hosts(fake):
    here, ctl = fake(lambda request: request.answer(200, {"sandboxes": []}))
    proxy, _ = fake(lambda request: request.answer(200, {"sandboxes": []}))
    env = {"http_proxy": proxy.url, "all_proxy": proxy.url}
    ctl.out("ls", "-q", env=env)
    assert len(here.requests) == 1 and not proxy.requests
    ctl.out("ls", "-q", env=env | {"SANDBOX_BASE_URL": "http://localhost.example"})
    assert len(here.requests) == 1 and proxy.requests[0].path.startswith("http://localhost.example/sandboxes")


@pytest.mark.parametrize("body", [b"<html>502</html>", b"", b"{", b"[]", b'{"sandboxes": 7}', b'"text"', b"\xff\xfe"])
def test_what_is_no_server_of_ours_is_said(fake, body):
    for status in (200, 404, 500):
        _, ctl = fake(lambda request: request.answer(status, body))
        done = ctl.run("ls", "--retry", "0")
        assert done.returncode in (0, 1, 4) and (done.returncode == 0 or done.stderr.startswith(b"orchardctl: ")), done
        assert ctl.run("exec", "x1", "true", "--retry", "0").returncode == 125
        assert ctl.run("create", "--retry", "0").returncode in (1, 4)


def test_a_stream_goes_on_at_the_byte_where_it_broke(fake):
    streams = []

    def answer(request):
        if request.path.startswith("/sandboxes/"):
            request.answer(200, {"job_id": JOB, "status": "queued"})
            return
        streams.append(request.path.split("?")[1])
        if len(streams) == 1:
            request.stream(output("stdout", 0, b"abc"), output("stderr", 0, b"E"))
        elif len(streams) == 2:
            request.drop()
        elif len(streams) == 3:  # an answer that overlaps, and one that is cut inside of an event
            request.stream(output("stdout", 1, b"bcde"))
        else:
            request.stream(output("stdout", 5, b"f"), output("stdout", 9, b"j"), ("exit", EXIT))
    _, ctl = fake(answer)
    done = ctl.run("exec", "x1", "cmd")
    assert (done.returncode, done.stdout) == (6, b"abcdefj")
    assert done.stderr == b"Eorchardctl: 3 bytes of stdout are not kept any more and are missing here\n"
    assert streams[1] == streams[2] == "stdout_offset=3&stderr_offset=1" and streams[3] == "stdout_offset=5&stderr_offset=1"


@pytest.mark.parametrize("at_its_end", [False, True])
def test_an_output_with_a_hole_is_no_success(fake, at_its_end):
    def answer(request):
        if request.path.endswith("/exec"):
            request.answer(200, {"job_id": JOB, "status": "queued"})
        else:
            rest = [] if at_its_end else [output("stdout", 9, b"j")]
            request.stream(output("stdout", 0, b"a"), *rest, ("exit", EXIT | {
                "exit_code": 0, "stdout_bytes": 9 if at_its_end else 10, "stderr_bytes": None}))
    _, ctl = fake(answer)
    done = ctl.run("exec", "x1", "cmd")
    assert (done.returncode, done.stdout) == (1, b"a" if at_its_end else b"aj")
    assert b"8 bytes of stdout" in done.stderr


@pytest.mark.parametrize("code", [None, "agent_unreachable", "unavailable"])
def test_a_piece_of_stdin_whose_answer_is_lost_is_asked_for(fake, code):
    """Of the first piece the job gets a part, of the second all, before the answers are lost."""
    taken, pieces, ended = bytearray(), [], threading.Event()

    def answer(request):
        if request.path.startswith("/sandboxes/"):
            request.answer(200, {"job_id": JOB, "status": "queued"})
        elif "/stream" in request.path:
            ended.wait(60)
            request.stream(("exit", EXIT))
        elif request.path.endswith("eof=1"):
            request.answer(200, {"stdin_bytes": len(taken), "closed": True})
            ended.set()
        elif not request.body:
            request.answer(200, {"stdin_bytes": len(taken), "closed": False})
        else:
            pieces.append(request.body)
            taken.extend(request.body[:5] if len(pieces) == 1 else request.body)
            if len(pieces) > 2:
                request.answer(200, {"stdin_bytes": len(taken), "closed": False})
            elif code is None:
                request.drop()
            else:
                request.answer(503, {"detail": "who knows", "code": code}, [("Retry-After", "1")])
    _, ctl = fake(answer)
    data = bytes(range(256)) * 300
    done = ctl.run("exec", "-i", "x1", "cmd", input=data)
    assert (done.returncode, done.stderr) == (6, b"") and bytes(taken) == data


def test_a_second_signal_leaves_at_once(fake):
    followed, cancelled, over = threading.Event(), threading.Event(), threading.Event()

    def answer(request):
        if request.path.startswith("/sandboxes/"):
            request.answer(200, {"job_id": JOB, "status": "queued"})
            return
        (cancelled if "/cancel" in request.path else followed).set()
        over.wait(100)
        request.drop()
    _, ctl = fake(answer)
    process = ctl.start("exec", "x1", "cmd")
    try:
        assert followed.wait(60)
        process.send_signal(signal.SIGINT)
        assert cancelled.wait(60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 130
    finally:
        over.set()
        process.communicate()


def test_a_job_that_is_not_known_any_more(fake):
    def answer(request):
        if request.path.startswith("/sandboxes/"):
            request.answer(200, {"job_id": JOB, "status": "queued"})
        else:
            request.answer(404, {"detail": "there is no such job", "code": "not_found"})
    _, ctl = fake(answer)
    done = ctl.run("exec", "x1", "cmd")
    assert done.returncode == 125 and b"there is no such job" in done.stderr
    assert ctl.run("logs", "-f", JOB).returncode == 4
