"""The Python SDK as programs use it: cancelled, forked, pickled, in several loops, with arguments that can't be meant."""

import asyncio
import functools
import inspect
import io
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tarfile
import threading
from fractions import Fraction
from pathlib import Path

import pytest

from ctl_fake import Fake
from orchard_server import eventually
from test_sdk import SDK, exists, script

import orchard_env
from orchard_env import AsyncSandboxClient, SandboxClient

READY = {"sandbox_id": "x1", "status": "ready", "ready": True}


@pytest.fixture
def fake():
    """One that makes as many sandboxes as it is asked for: x1, x2, ... Its `slow(request)` may hold up an answer."""
    keys = {}

    def answer(request):
        made.slow(request)
        if request.method == "POST" and request.path == "/sandboxes":
            name = keys.setdefault(request.headers["Idempotency-Key"], f"x{len(keys) + 1}")
            request.answer(200, READY | {"sandbox_id": name, "status": "pending", "ready": False})
        else:
            request.answer(200, READY)
    made = Fake(answer)
    made.slow, made.image = lambda request: None, "default"
    made.deleted = lambda: sorted(one.path[-2:] for one in made.requests if one.method == "DELETE")
    yield made
    made.close()


@pytest.fixture(scope="module")
def sandbox(server):
    with SandboxClient(server.url, server.key) as client, client.create_sandbox(server.image) as made:
        yield made


# --- interrupted ------------------------------------------------------------
class Hold:
    """Holds up the first request of a kind until the test is over."""

    def __init__(self, method, end):
        self.method, self.end = method, end
        self.here, self.go = threading.Event(), threading.Event()

    def __call__(self, request):
        if not self.here.is_set() and request.method == self.method and request.path.split("?")[0].endswith(self.end):
            self.here.set()
            self.go.wait(30)


@pytest.fixture(params=[("POST", "/sandboxes"), ("GET", "/wait")], ids=["made", "ready"])
def hold(request, fake):
    fake.slow = Hold(*request.param)
    yield fake.slow
    fake.slow.go.set()


def test_a_cancelled_create_leaves_nothing(fake, hold):
    async def work():
        client = AsyncSandboxClient(fake.url, "x", cleanup=False)
        create = asyncio.create_task(client.create_sandbox("default"))
        await asyncio.to_thread(hold.here.wait, 30)
        create.cancel()
        with pytest.raises(asyncio.CancelledError):
            await create
        await client.close()
    asyncio.run(work())
    assert fake.deleted() == ["x1"]


def test_an_interrupted_create_leaves_nothing(fake, hold):
    program = script(fake, """
        try:
            client.create_sandbox(IMAGE)
        except KeyboardInterrupt:
            os._exit(7)
    """)
    assert hold.here.wait(30)
    program.send_signal(signal.SIGINT)
    assert program.wait(30) == 7
    assert fake.deleted() == ["x1"]


def test_of_many_that_were_cancelled_none_is_left(fake):
    fake.slow = Hold("GET", "/x3/wait")

    async def work():
        client = AsyncSandboxClient(fake.url, "x", cleanup=False)
        creates = asyncio.create_task(client.create_many(4, "default", concurrency=2))
        await asyncio.to_thread(fake.slow.here.wait, 30)
        creates.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creates
        await client.close()
    asyncio.run(work())
    fake.slow.go.set()
    made = {one.headers["Idempotency-Key"] for one in fake.requests if one.path == "/sandboxes"}
    assert len(fake.deleted()) == len(made) >= 3


def test_a_create_may_be_a_task(server):
    async def work():
        async with AsyncSandboxClient(server.url, server.key) as client:
            made = await asyncio.gather(*(asyncio.create_task(client.create_sandbox(server.image)) for _ in range(2)))
            assert (await asyncio.wait_for(made[0].exec("echo hi"), 60)).stdout == "hi\n"
    asyncio.run(work())


def test_sandboxes_that_nobody_remembers_go_with_the_process(server):
    program = script(server, """
        import gc
        print(SandboxClient().create_sandbox(IMAGE).sandbox_id, flush=True)
        gc.collect()
    """)
    sandbox_id = program.communicate(timeout=60)[0].strip()
    assert sandbox_id and not exists(server, sandbox_id)


# --- loops and processes ----------------------------------------------------
def test_each_loop_has_connections_of_its_own(server, sandbox):
    client = AsyncSandboxClient(server.url, server.key)
    there = orchard_env.AsyncSandboxInstance(client, sandbox.info, False)

    async def say(word):
        jobs = await asyncio.gather(*(there.exec(f"echo {word} {n}", lane=f"{word}{n}") for n in range(4)))
        return [job.stdout for job in jobs]

    def run(word):
        assert asyncio.run(say(word)) == [f"{word} {n}\n" for n in range(4)]

    run("one")
    run("two")

    async def outer():
        await asyncio.gather(say("three"), asyncio.to_thread(run, "four"))
        child = multiprocessing.get_context("fork").Process(target=run, args=("five",))
        child.start()
        assert await say("six")
        await asyncio.to_thread(child.join, 60)
        assert child.exitcode == 0
        await client.close()
    asyncio.run(outer())
    run("seven")


@pytest.mark.parametrize("ends", ["sys.exit(0)", "raise KeyboardInterrupt"])
def test_a_child_made_by_fork_takes_its_own_along_and_no_others(server, ends):
    program = script(server, f"""
        with client, client.create_sandbox(IMAGE) as sandbox:
            if os.fork() == 0:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                with client.create_sandbox(IMAGE) as one:
                    print(one.sandbox_id, client.create_sandbox(IMAGE).sandbox_id, flush=True)
                    {ends}
            os.wait()
            print(sandbox.exec("echo ok").stdout, end="", flush=True)
    """)
    said = program.communicate(timeout=60)[0].split()
    assert len(said) == 3 and said[2] == "ok"
    assert not any(exists(server, one) for one in said[:2])


def test_what_is_pickled_serves_another_process(server, sandbox):
    text = "import pickle, sys\nsandbox = pickle.loads(bytes.fromhex(sys.argv[1]))\n" \
           "with sandbox.client: print(sandbox.exec('echo there').stdout, end='')"
    env = os.environ | {"PYTHONPATH": str(SDK)}
    done = subprocess.run([sys.executable, "-c", text, pickle.dumps(sandbox).hex()], env=env, capture_output=True)
    assert (done.stdout, done.stderr) == (b"there\n", b"")
    assert sandbox.exec("echo here").stdout == "here\n"
    job = sandbox.exec("exit 3")
    refused = orchard_env.APIError(404, "not_found", "no", "r", 1.5)
    for value in (job, sandbox.info, orchard_env.SandboxTimeoutError("x"), orchard_env.TransportError("x"), refused):
        again = pickle.loads(pickle.dumps(value))
        assert type(again) is type(value) and (again == value or str(again) == str(value))
    assert pickle.loads(pickle.dumps(refused)).retry_after == 1.5
    pickled = pickle.loads(pickle.dumps(AsyncSandboxClient(server.url, server.key)))
    assert asyncio.run(pickled.health()) == {"status": "healthy"}


def test_proxies_are_for_other_hosts(server, sandbox, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with SandboxClient(server.url, server.key, retry_seconds=0) as client:
        there = client.get_sandbox(sandbox.sandbox_id)
        with there.exec("echo terminal", pty=True) as terminal:
            assert terminal.read_all(timeout=30) == b"terminal\r\n"
    with pytest.raises(orchard_env.TransportError), SandboxClient("http://192.0.2.1", "x", retry_seconds=0) as client:
        client.health()


# --- arguments and answers --------------------------------------------------
@pytest.mark.parametrize(("error", "words", "call"), [
    (TypeError, "a command must be", lambda box: box.exec(None)),
    (TypeError, "a command must be", lambda box: box.exec(b"ls")),
    (TypeError, "word 1 of the command", lambda box: box.exec(["sleep", 5])),
    (TypeError, "word 1 of the command", lambda box: next(box.exec_stream(["sleep", 5]))),
    (TypeError, "word 1 of the command", lambda box: box.exec(["sleep", 5], pty=True)),
    (TypeError, r"env\['A'\]", lambda box: box.exec("true", env={"A": 1})),
    (TypeError, "cwd", lambda box: box.exec("true", cwd=5)),
    (ValueError, "timeout", lambda box: box.exec("true", timeout=math.nan)),
    (ValueError, "timeout", lambda box: box.exec("true", timeout=math.inf)),
    (ValueError, "timeout", lambda box: box.exec("true", timeout=10**400)),
    (ValueError, "timeout", lambda box: box.exec("true", timeout=0, pty=True)),
    (ValueError, "timeout", lambda box: box.wait_job("j", timeout=math.nan)),
    (ValueError, "timeout", lambda box: box.apply_patch("x", timeout=-1)),
    (TypeError, "a patch", lambda box: box.apply_patch(5)),
    (TypeError, "content", lambda box: box.upload_content(5, "/x")),
    (TypeError, "path", lambda box: box.upload_content("x", b"/x")),
    (TypeError, "path", lambda box: box.download_content(None)),
    (TypeError, "data", lambda box: box.write_stdin("j", 5)),
    (TypeError, "an id", lambda box: box.get_job(None)),
    (ValueError, "no id", lambda box: box.wait_job("")),
    (ValueError, "no id", lambda box: box.client.get_sandbox("..")),
    (ValueError, "no id", lambda box: box.client.delete_sandbox("")),
    (NotADirectoryError, "Not a directory", lambda box: box.upload_dir(__file__, "/x")),
])
def test_what_can_not_be_meant_is_said_before_anything_is_sent(fake, error, words, call):
    with SandboxClient(fake.url, "x") as client:
        box = client.get_sandbox("x1")
        with pytest.raises(error, match=words):
            call(box)
    assert len(fake.requests) == 1


@pytest.mark.parametrize("arguments", [
    {"base_url": "127.0.0.1:8000"}, {"base_url": "localhost:8000"}, {"base_url": "http://"}, {"api_key": "ü"},
    {"api_key": "a\nb"}, {"timeout": 0}, {"timeout": math.nan}, {"retry_seconds": math.nan}])
def test_a_client_that_can_reach_nothing_is_none(arguments):
    for face in (SandboxClient, AsyncSandboxClient):
        with pytest.raises(ValueError, match=next(iter(arguments))):
            face(**({"base_url": "http://127.0.0.1:1", "api_key": "x"} | arguments))


def test_arguments_in_other_dresses(server, sandbox):
    with SandboxClient(f" {server.url}/\n", server.key + "\n", timeout=Fraction(60)) as client:
        box = client.get_sandbox(sandbox.sandbox_id)
        job = box.exec(("printf", "%s", Path("/a")), timeout=Fraction(61, 2), cwd=Path("/tmp"), env=os.environ)
        assert job.stdout == "/a"
        for data in (b"ab", bytearray(b"ab"), memoryview(b"ab"), "ab"):
            assert box.upload_content(data, Path("/dresses")) == 2
        job = box.exec("cat", wait=False, stdin_open=True)
        assert box.write_stdin(job.job_id, bytearray(b"ab"), eof=True) == 2
        assert box.wait_job(job.job_id, timeout=math.inf).stdout == "ab"


def test_a_wait_of_no_time_only_looks(sandbox):
    done, job = sandbox.exec("true"), sandbox.exec("sleep 300", wait=False)
    for timeout in (0, -1):
        assert sandbox.wait_job(done.job_id, timeout=timeout).succeeded
        assert sandbox.wait_ready(timeout=timeout).ready
        with pytest.raises(orchard_env.SandboxTimeoutError):
            sandbox.wait_job(job.job_id, timeout=timeout)
    sandbox.cancel_job(job.job_id)


def test_an_answer_of_another_server_is_an_error_of_ours():
    fake = Fake(lambda request: request.answer(200, b"<html>hello"))
    try:
        with SandboxClient(fake.url, "x") as client, pytest.raises(orchard_env.TransportError, match="<html>hello"):
            client.create_sandbox("default")
    finally:
        fake.close()


def test_only_its_own_lines_cut_an_event(sandbox):
    odd = "a\u2028b\u2029c\x85d\x0ce\x1cf"
    events = list(sandbox.exec_stream(["printf", "%s", odd]))
    assert b"".join(event.data for event in events).decode() == odd and events[-1].job.succeeded


def test_what_was_read_before_a_time_out_is_kept(sandbox):
    with sandbox.exec("echo one; read x; echo two", pty=True) as terminal:
        assert eventually(lambda: terminal.poll() is None and terminal._output, 30)
        with pytest.raises(orchard_env.SandboxTimeoutError):
            terminal.read_all(timeout=0.2)
        terminal.write_stdin("\n")
        assert terminal.read_all(timeout=math.inf).startswith(b"one\r\n")


@pytest.mark.parametrize("face", ["sync", "asyncio"])
def test_a_terminal_waits_for_a_reader_that_thinks(server, sandbox, monkeypatch, face):
    """Pings of the library, were there any, would find no answer behind the output."""
    module = __import__(f"websockets.{face}.client", fromlist=["connect"])
    connect = module.connect

    @functools.wraps(connect)
    def impatient(*args, **options):
        return connect(*args, **pings | options)
    pings = {name: 0.2 for name in ("ping_interval", "ping_timeout") if name in inspect.signature(connect).parameters}
    monkeypatch.setattr(module, "connect", impatient)
    command = "head -c 20000000 /dev/zero | tr '\\0' x; echo end"
    if face == "sync":
        with sandbox.exec(command, pty=True) as terminal:
            sandbox.exec("sleep 2")
            assert terminal.read_all(timeout=120).endswith(b"xend\r\n")
        return

    async def work():
        async with AsyncSandboxClient(server.url, server.key) as client:
            there = orchard_env.AsyncSandboxInstance(client, sandbox.info, False)
            async with await there.exec(command, pty=True) as terminal:
                await there.exec("sleep 2")
                assert (await terminal.read_all(timeout=120)).endswith(b"xend\r\n")
    asyncio.run(work())


# --- files ------------------------------------------------------------------
def test_a_download_touches_nothing_but_its_target(sandbox, tmp_path):
    sandbox.upload_content("new", "/got")
    (tmp_path / "got.part").write_text("mine")
    sandbox.download_file("/got", tmp_path)
    long = tmp_path / ("n" * 255)
    sandbox.download_file("/got", long)
    assert (tmp_path / "got").read_text() == long.read_text() == "new"
    assert (tmp_path / "got.part").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_download_to_a_pipe_is_written_to_it(sandbox, tmp_path):
    sandbox.upload_content("through", "/got")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    sandbox.download_file("/got", pipe)
    reader.join(30)
    assert read == ["through"] and pipe.is_fifo()


def test_a_directory_with_all_that_there_is(sandbox, tmp_path):
    sandbox.exec("mkdir -p /odd/sub && cd /odd && ln -s /usr/bin/env out && ln -s ../../etc up && ln -s sub/x in && "
                 "echo hi > sub/x && ln sub/x hard && chmod 4755 sub/x && mkfifo fifo && touch -- -dash 'new\nline' && "
                 "chmod 555 sub && : > \"$(printf '\\377')\"")
    for _ in range(2):  # and once more over what is there
        sandbox.download_dir("/odd", tmp_path / "odd")
    top = os.fsencode(tmp_path / "odd")
    assert sorted(os.listdir(top)) == sorted([b"sub", b"in", b"hard", b"-dash", b"new\nline", b"\xff"])
    assert (tmp_path / "odd" / "in").read_text() == "hi\n"
    assert (tmp_path / "odd" / "hard").samefile(tmp_path / "odd" / "sub" / "x")
    assert (tmp_path / "odd" / "sub" / "x").stat().st_mode & 0o7777 == 0o755
    assert (tmp_path / "odd" / "sub" / "x").stat().st_uid == os.geteuid()
    (tmp_path / "link").symlink_to("odd")
    sandbox.upload_dir(tmp_path / "link", "/back")
    assert sandbox.exec("cd /odd && ls -A | wc -l; cd /back && ls -A | wc -l").stdout == "10\n7\n"


def member(name, kind=tarfile.REGTYPE, to="", mode=0o644, data=b""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size, info.uid = kind, to, mode, len(data), 4321
    return info, data


@pytest.mark.parametrize("members", [
    [member("../evil", data=b"x")],
    [member("/evil", data=b"x")],
    [member("d", tarfile.SYMTYPE, ".."), member("d/evil", data=b"x")],
    [member("f", tarfile.SYMTYPE, "../victim"), member("f", data=b"x")],
    [member("f", tarfile.LNKTYPE, "../victim"), member("f", data=b"x")],
    [member("f", tarfile.LNKTYPE, "old/../../victim"), member("f", data=b"x")],
    [member("b/c", tarfile.DIRTYPE), member("a", tarfile.SYMTYPE, "e/../victim"), member("e", tarfile.SYMTYPE, "."),
     member("a", data=b"x")],
    [member("a", tarfile.SYMTYPE, "e/../victim"), member("e", tarfile.SYMTYPE, ".")],
    [member("old", data=b"x")],
    [member("a", tarfile.LNKTYPE, "a"), member("a", tarfile.LNKTYPE, "old")],
    [member("n", tarfile.CHRTYPE), member("n2", tarfile.BLKTYPE), member("n3", tarfile.LNKTYPE, "n")],
])
def test_nothing_leads_out_of_a_directory_that_came(tmp_path, members):
    """Of archives that no server of ours makes: `old` is a link here that leads out."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for info, data in [*members, member("good", mode=0o4777, data=b"good")]:
            tar.addfile(info, io.BytesIO(data))
    fake = Fake(lambda request: request.answer(200, READY if "archive" not in request.path else packed.getvalue()))
    victim, top = tmp_path / "victim", tmp_path / "top"
    victim.write_text("safe")
    top.mkdir()
    (top / "old").symlink_to("../victim")
    try:
        with SandboxClient(fake.url, "x") as client:
            client.get_sandbox("x1").download_dir("/x", top)
    finally:
        fake.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["top", "victim"] and not Path("/evil").exists()
    assert victim.read_text() == "safe" and victim.stat().st_nlink == 1
    for one in top.iterdir():
        assert one.resolve().is_relative_to(top) or (one.name, one.is_symlink()) == ("old", True)
        assert one.lstat().st_uid == os.geteuid()
    assert (top / "good").read_text() == "good" and (top / "good").stat().st_mode & 0o7777 == 0o755


def test_a_loop_goes_on_while_a_directory_is_packed(server, sandbox, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    beat, pack = threading.Event(), orchard_env._ops.pack
    monkeypatch.setattr("orchard_env._ops.pack", lambda *given: (beat.wait(30) and pack(*given)))

    async def work():
        async with AsyncSandboxClient(server.url, server.key) as client:
            there = orchard_env.AsyncSandboxInstance(client, sandbox.info, False)
            asyncio.get_running_loop().call_later(0.05, beat.set)
            await there.upload_dir(tmp_path, "/packed")
            assert await there.download_content("/packed/file") == b"x"
    asyncio.run(work())
