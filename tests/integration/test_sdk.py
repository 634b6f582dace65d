"""The Python SDK against the real server: sandboxes, commands, clean-up, both faces of it."""

import asyncio
import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from ctl_fake import Fake
from orchard_server import eventually

SDK = Path(__file__).resolve().parents[2] / "sdk" / "python" / "src"
sys.path.insert(0, str(SDK))

import orchard_env  # noqa: E402
from orchard_env import AsyncSandboxClient, SandboxClient  # noqa: E402


@pytest.fixture
def client(server):
    with SandboxClient(server.url, server.key) as made:
        yield made


@pytest.fixture
def sandbox(client, server):
    return client.create_sandbox(server.image)


def run_async(server, work):
    async def main():
        async with AsyncSandboxClient(server.url, server.key) as client:
            return await work(client)
    return asyncio.run(main())


def script(server, body, **popen):
    """A user's program of its own process; it may use `client` and IMAGE."""
    text = "import os, signal, sys, threading, time\nfrom orchard_env import *\n" \
           f"IMAGE = {server.image!r}\nclient = SandboxClient()\n" + textwrap.dedent(body)
    env = os.environ | {"PYTHONPATH": str(SDK), "SANDBOX_BASE_URL": server.url, "SANDBOX_API_KEY": server.key}
    return subprocess.Popen([sys.executable, "-c", text], env=env, stdout=subprocess.PIPE, text=True, **popen)


def exists(server, sandbox_id):
    return server.client.get(f"/sandboxes/{sandbox_id}").status_code == 200


# --- commands --------------------------------------------------------------
def test_a_command_and_what_came_of_it(sandbox):
    job = sandbox.exec("echo out; echo err >&2; exit 3", env={"A": "b"}, cwd="/tmp")
    assert (job.status, job.failed, job.succeeded, job.is_complete) == ("failed", True, False, True)
    assert (job.stdout, job.stderr, job.exit_code, job.verdict) == ("out\n", "err\n", 3, "exited")
    assert job.sandbox_id == sandbox.sandbox_id and job.usage["wall_s"] >= 0
    assert sandbox.exec(["printf", "%s", "a b"]).stdout == "a b"
    assert sandbox.get_job(job.job_id) == job
    assert sandbox.list_jobs()[1].job_id == job.job_id


def test_b165_wait_false_answers_with_a_job_that_is_not_complete(sandbox):
    sandbox.exec("mkfifo /go")
    job = sandbox.exec("read word < /go; echo $word", wait=False)
    assert job.job_id and not job.is_complete
    assert not sandbox.get_job(job.job_id).is_complete
    sandbox.exec("echo now > /go", lane="other")
    assert sandbox.wait_job(job.job_id).stdout == "now\n"


def test_b165_timeouts(sandbox):
    job = sandbox.exec("sleep 300", timeout=1)
    assert job.is_complete and job.timed_out and job.exit_code == 124
    for wrong in (0, -1, "x", True):
        with pytest.raises(ValueError, match="timeout"):
            sandbox.exec("true", timeout=wrong)


def test_b021_a_wait_that_runs_out_is_never_complete(sandbox, monkeypatch):
    monkeypatch.setattr("orchard_env._ops.POLL_SECONDS", 0.5)
    monkeypatch.setattr("orchard_env._core.POLL_SECONDS", 0.5)
    assert sandbox.exec("sleep 2; echo whole", timeout=60).stdout == "whole\n"
    job = sandbox.exec("sleep 300", wait=False)
    with pytest.raises(orchard_env.SandboxTimeoutError):
        sandbox.wait_job(job.job_id, timeout=0.3)
    assert sandbox.cancel_job(job.job_id).job_id == job.job_id
    assert sandbox.wait_job(job.job_id, timeout=60).verdict == "canceled"


def test_output_while_it_runs(sandbox):
    sandbox.exec("mkfifo /go")
    events = sandbox.exec_stream("echo one; read x < /go; echo two >&2")
    first = next(events)
    assert (first.stream, first.text, first.offset) == ("stdout", "one\n", 0)
    sandbox.exec("echo > /go", lane="other")
    rest = list(events)
    assert [event.stream for event in rest] == ["stderr", "exit"] and rest[0].data == b"two\n"
    assert rest[-1].job.succeeded and rest[-1].job.stdout == "one\n"


def test_a_stream_goes_on_after_its_server_was_killed(make_server):
    server = make_server().start()
    with SandboxClient(server.url, server.key) as client:
        sandbox = client.create_sandbox(server.image)
        sandbox.exec("mkfifo /go")
        events = sandbox.exec_stream("echo one; read x < /go; echo two")
        assert next(events).text == "one\n"
        server.kill_all()
        server.start()
        sandbox.exec("echo > /go", lane="other")
        rest = list(events)
        assert rest[0].text == "two\n" and rest[-1].job.succeeded and rest[-1].job.stdout == "one\ntwo\n"


def test_stdin_of_a_running_command(sandbox):
    job = sandbox.exec("cat", wait=False, stdin_open=True)
    assert sandbox.write_stdin(job.job_id, b"ab") == 2
    sandbox.write_stdin(job.job_id, b"c\n", eof=True)
    assert sandbox.wait_job(job.job_id).stdout == "abc\n"


def test_b071_b072_a_retry_never_runs_a_command_twice(make_server):
    """Every worker is killed while the command runs: the SDK asks again, with the same key."""
    server = make_server(workers=2).start()
    with SandboxClient(server.url, server.key) as client:
        sandbox = client.create_sandbox(server.image)
        sandbox.exec("mkfifo /go")
        answers = []
        asking = threading.Thread(target=lambda: answers.append(
            sandbox.exec("echo x >> /count; read x < /go; cat /count")))
        asking.start()
        eventually(lambda: sandbox.exec("cat /count 2>/dev/null", lane="look").stdout == "x\n", 20)
        for pid in server.processes()["worker"]:
            os.kill(pid, signal.SIGKILL)
        eventually(lambda: sandbox.exec("echo > /go", lane="other").succeeded, 30)
        asking.join(60)
        assert answers[0].stdout == "x\n" and answers[0].succeeded


def test_errors_carry_what_is_needed_to_act(client, sandbox, server):
    with pytest.raises(orchard_env.NotFoundError) as missing:
        client.get_sandbox("nosuch")
    assert (missing.value.status, missing.value.code) == (404, "not_found") and missing.value.request_id
    with pytest.raises(orchard_env.InvalidRequestError, match="command"):
        sandbox.exec([])
    with pytest.raises(orchard_env.ConflictError) as taken:
        client.create_sandbox(server.image, sandbox_id=sandbox.sandbox_id, memory="300Mi")
    assert taken.value.code == "sandbox_exists"
    with pytest.raises(orchard_env.AuthenticationError), SandboxClient(server.url, "wrong") as other:
        other.list_sandboxes()
    with pytest.raises(orchard_env.TransportError), SandboxClient("http://127.0.0.1:1", "x", retry_seconds=0) as other:
        other.health()


# --- life and clean-up -----------------------------------------------------
def test_sandboxes_are_found_listed_and_deleted(client, server):
    made = client.create_sandbox(server.image, labels={"suite": "sdk"}, wait_ready=False)
    made.wait_ready(60)
    assert client.get_sandbox(made.sandbox_id).exec("echo hi").stdout == "hi\n"
    assert [one.sandbox_id for one in client.list_sandboxes(label={"suite": "sdk"})] == [made.sandbox_id]
    assert made.refresh().ready and made.status == "ready"
    made.delete()
    made.delete()
    client.delete_sandbox(made.sandbox_id)
    assert not exists(server, made.sandbox_id)
    assert client.health() == {"status": "healthy"} and client.resources()["nodes"]


def test_b163_with_deletes_and_masks_nothing(client, server):
    with pytest.raises(KeyError, match="mine"), client.create_sandbox(server.image) as sandbox:
        raise KeyError("mine")
    assert not exists(server, sandbox.sandbox_id)
    with pytest.raises(orchard_env.SandboxFailedError, match="(?i)no such file"):
        client.create_sandbox(str(server.image) + "-missing", sandbox_id="sdk-failed")
    eventually(lambda: not exists(server, "sdk-failed"), 10)


def test_only_what_the_client_made_is_cleaned_up(server):
    with SandboxClient(server.url, server.key) as maker:
        made = maker.create_sandbox(server.image)
        with SandboxClient(server.url, server.key) as other:
            other.get_sandbox(made.sandbox_id)
        assert exists(server, made.sandbox_id)
        assert maker.create_many(3, server.image)[0].exec("true").succeeded
    assert not exists(server, made.sandbox_id)


@pytest.mark.parametrize(("how", "status"), [("sys.exit(3)", 3), ("raise KeyError", 1),
                                             ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -15),
                                             ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2)])
def test_sandboxes_go_with_the_process(server, how, status):
    program = script(server, f"""
        print(client.create_sandbox(IMAGE).sandbox_id, flush=True)
        {how}
    """, stderr=subprocess.DEVNULL)
    sandbox_id = program.stdout.readline().strip()
    assert program.wait(60) == status
    assert sandbox_id and not exists(server, sandbox_id)


def test_b161_children_made_by_fork_leave_the_sandboxes_alone(server, sandbox):
    context = multiprocessing.get_context("fork")
    # CPython forgets a signal that reaches a child within its fork, so it is sent when the child says that it runs.
    running = context.Event()
    child = context.Process(target=lambda: (running.set(), signal.pause()), daemon=True)
    child.start()
    assert running.wait(30)
    child.terminate()
    child.join(30)
    assert child.exitcode == -signal.SIGTERM
    quitter = os.fork()
    if quitter == 0:
        try:
            sys.exit(0)
        finally:
            os._exit(0)
    os.waitpid(quitter, 0)
    assert sandbox.exec("echo ok").stdout == "ok\n"
    program = script(server, """
        sandbox = client.create_sandbox(IMAGE)
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        print(sandbox.exec("echo ok").stdout, end="", flush=True)
    """)
    assert program.communicate(timeout=60)[0] == "ok\n"


def test_a_child_made_by_fork_has_no_handler_of_its_parents(server):
    program = script(server, """
        mine = client.create_sandbox(IMAGE)
        before = signal.getsignal(signal.SIGTERM)
        child = os.fork()
        if child == 0:
            os._exit(signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL)
        print(before is not signal.SIG_DFL, os.waitpid(child, 0)[1], signal.getsignal(signal.SIGTERM) is before)
    """)
    assert program.communicate(timeout=60)[0] == "True 0 True\n"


def test_a_child_made_by_fork_can_use_the_client(sandbox):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, sandbox.exec("echo child").stdout.encode())
        finally:
            os._exit(0)
    assert sandbox.exec("echo parent").stdout == "parent\n"
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"child\n"


def test_b101_heartbeats(make_server):
    server = make_server(heartbeat_timeout_seconds=2, cleanup_interval_seconds=1).start()
    with SandboxClient(server.url, server.key) as client:
        sandbox = client.create_sandbox(server.image)
        sandbox.start_heartbeat(0.5)
        eventually(lambda: server.client.get(f"/sandboxes/{sandbox.sandbox_id}").json().get("last_heartbeat"), 10)
        heart = sandbox._heart
        server.client.delete(f"/sandboxes/{sandbox.sandbox_id}")
        eventually(lambda: not heart.is_alive(), 10, "it stops when the sandbox is gone")
        assert isinstance(sandbox.heartbeat_error, orchard_env.NotFoundError)
        sandbox.stop_heartbeat()


# --- asyncio ---------------------------------------------------------------
def test_both_faces_offer_the_same():
    def public(cls):
        return {name: inspect.signature(value) for name, value in inspect.getmembers(cls)
                if callable(value) and not name.startswith("_")}

    for sync, other in ((SandboxClient, AsyncSandboxClient),
                        (orchard_env.SandboxInstance, orchard_env.AsyncSandboxInstance),
                        (orchard_env.ContainerProcess, orchard_env.AsyncContainerProcess)):
        mine, theirs = public(sync), public(other)
        assert set(mine) == set(theirs)
        for name in mine:
            assert [p.name for p in mine[name].parameters.values()] == \
                [p.name for p in theirs[name].parameters.values()], name
            assert getattr(sync, name).__doc__, name
            assert getattr(other, name).__doc__, name


def test_async_from_create_to_delete(server):
    async def work(client):
        async with client.create_sandbox(server.image) as sandbox:
            assert (await sandbox.exec("echo hi")).stdout == "hi\n"
            sandbox.start_heartbeat(0.5)
            events = [event async for event in sandbox.exec_stream("echo a; exit 4")]
            assert [event.stream for event in events] == ["stdout", "exit"] and events[-1].job.exit_code == 4
            await asyncio.sleep(0)
            assert sandbox.heartbeat_error is None
        with pytest.raises(orchard_env.NotFoundError):
            await sandbox.refresh()
        return await client.create_sandbox(server.image)
    left = run_async(server, work)
    assert not exists(server, left.sandbox_id)


def test_many_sandboxes_at_once(server):
    async def work(client):
        sandboxes = await client.create_many(24, server.image, concurrency=12)
        outputs = await asyncio.gather(*(one.exec(f"echo {i}") for i, one in enumerate(sandboxes)))
        assert [job.stdout for job in outputs] == [f"{i}\n" for i in range(24)]
    run_async(server, work)


def test_async_sandboxes_go_with_the_process(server):
    program = script(server, """
        import asyncio
        async def main():
            print((await AsyncSandboxClient().create_sandbox(IMAGE)).sandbox_id, flush=True)
        asyncio.run(main())
    """)
    sandbox_id = program.stdout.readline().strip()
    assert program.wait(60) == 0 and sandbox_id
    assert not exists(server, sandbox_id)


@pytest.mark.parametrize("status", [404, 409, 422, 500])
def test_b072_what_is_refused_is_not_sent_again(status):
    fake = Fake(lambda request: request.answer(status, {"detail": "no", "code": "no"}))
    try:
        with SandboxClient(fake.url, "x") as client, pytest.raises(orchard_env.APIError) as refusal:
            client.create_sandbox("default")
        assert refusal.value.status == status and len(fake.requests) == 1
    finally:
        fake.close()


def test_b072_b074_b075_an_answer_that_is_lost_is_asked_for_by_the_same_key():
    """The first try of each request reaches the server; its connection ends without a word."""
    def answer(request):
        tries = [one for one in fake.requests if (one.method, one.path) == (request.method, request.path)]
        if len(tries) % 2:
            request.drop()
        elif request.path.endswith("/exec"):
            request.answer(200, {"job_id": "j", "status": "succeeded", "stdout": "ok"})
        else:
            request.answer(200, {"sandbox_id": "x1", "status": "pending"})
    fake = Fake(answer)
    try:
        with SandboxClient(fake.url, "x") as client:
            sandbox = client.create_sandbox("default", wait_ready=False)
            assert [sandbox.exec("true").stdout for _ in range(2)] == ["ok", "ok"]
        sent = [(one.method, one.path, one.headers["Idempotency-Key"]) for one in fake.requests]
        assert len(sent) == 8 and sent[::2] == sent[1::2] and sent[-1][:2] == ("DELETE", "/sandboxes/x1")
        assert len({key for method, _, key in sent if method == "POST"}) == 3
    finally:
        fake.close()


def test_requests_use_few_connections():
    """One after the other all take the same; those at the same time have one each, and leave it to later ones."""
    fake = Fake(lambda request: (all_here.wait(30), request.answer(200, {"status": "healthy"})))
    all_here = threading.Barrier(1)

    async def at_once(client, count):
        nonlocal all_here
        all_here = threading.Barrier(count)
        await asyncio.gather(*(client.health() for _ in range(count)))

    async def work():
        async with AsyncSandboxClient(fake.url, "x") as client:
            await at_once(client, 12)
            await at_once(client, 12)
            await at_once(client, 3)
    try:
        with SandboxClient(fake.url, "x") as client:
            for _ in range(5):
                client.health()
        assert len(set(fake.callers())) < 4  # one, unless it was idle for so long that it was closed
        fake.requests.clear()
        asyncio.run(work())
        assert len(fake.requests) == 27 and len(set(fake.callers())) < 20
    finally:
        fake.close()


def test_a_place_in_a_queue_is_waited_for():
    def answer(request):
        if len(fake.requests) == 1:  # longer than other problems are waited for
            request.answer(503, {"detail": "full", "code": code}, [("Retry-After", "1.2")])
        else:
            request.answer(200, {"sandboxes": []})
    for code, waits in (("queue_full", True), ("unavailable", False)):
        fake = Fake(answer)
        with SandboxClient(fake.url, "x", retry_seconds=1) as client:
            if waits:
                assert client.list_sandboxes() == []
            else:
                with pytest.raises(orchard_env.UnavailableError):
                    client.list_sandboxes()
        fake.close()


@pytest.mark.parametrize("code, writes", [("queue_full", 2), ("agent_unreachable", 1), ("unavailable", 1)])
def test_what_may_have_been_written_is_not_written_again(code, writes):
    sent = []

    def answer(request):
        if not request.path.endswith("/stdin"):
            request.answer(200, {"sandbox_id": "x1", "status": "ready", "ready": True})
            return
        sent.append(request.body)
        if len(sent) == 1:
            request.answer(503, {"detail": "no", "code": code}, [("Retry-After", "0")])
        else:
            request.answer(200, {"accepted": len(request.body), "stdin_bytes": 4, "closed": False})
    fake = Fake(answer)
    try:
        with SandboxClient(fake.url, "x") as client:
            sandbox = client.get_sandbox("x1")
            if writes == 1:
                with pytest.raises(orchard_env.UnavailableError):
                    sandbox.write_stdin("j1", b"once")
            else:
                assert sandbox.write_stdin("j1", b"once") == 4
        assert sent == [b"once"] * writes
    finally:
        fake.close()
