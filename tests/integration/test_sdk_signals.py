"""What the Python SDK does when a signal would end its process: delete, then what was to be done without it."""

import signal
import subprocess
import threading

import pytest

from ctl_fake import Fake
from test_sdk import exists, script

MAKE = {"sync": "first = client.create_sandbox(IMAGE)",
        "async": """
import asyncio
loop = asyncio.new_event_loop()
first = loop.run_until_complete(AsyncSandboxClient()._create(IMAGE))
"""}
FACES = pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
TERM = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)"


def run(server, body, make=MAKE["sync"], before="", **popen):
    """The id of the sandbox that a program made, the lines that it wrote after that, and its exit status."""
    program = script(server, "\n".join((before, make, "print(first.sandbox_id, flush=True)", body)), **popen)
    output = program.communicate(timeout=60)[0].splitlines()
    return output[0], output[1:], program.returncode


@FACES
def test_without_a_handler_the_signal_ends_the_process_as_ever(server, make):
    sandbox_id, _, status = run(server, TERM, make)
    assert status == -signal.SIGTERM and not exists(server, sandbox_id)


@FACES
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_earlier_handler_is_called_when_the_sandboxes_are_gone(server, make, number):
    sandbox_id, said, status = run(server, f"""
os.kill(os.getpid(), {int(number)})
print("goes on", flush=True)
os.kill(os.getpid(), {int(number)})
""", make, before=f"""
def mine(*args):
    gone = [one.sandbox_id for one in client.list_sandboxes()]
    print(args[0], args[1].f_code.co_name, first.sandbox_id in gone, flush=True)
    if mine.called:
        os._exit(9)
    mine.called = True
mine.called = False
signal.signal({int(number)}, mine)
""")
    assert said == [f"{int(number)} <module> False", "goes on", f"{int(number)} <module> False"]
    assert status == 9 and not exists(server, sandbox_id)


def test_an_earlier_handler_may_raise(server):
    sandbox_id, said, status = run(server, f"""
try:
    {TERM}
except KeyError:
    print("caught", flush=True)
os._exit(0)
""", before="""
def mine(*args):
    raise KeyError
signal.signal(signal.SIGTERM, mine)
""")
    assert (said, status) == (["caught"], 0) and not exists(server, sandbox_id)


@FACES
def test_a_signal_that_is_ignored_stays_so(server, make):
    sandbox_id, said, status = run(server, """
os.kill(os.getpid(), signal.SIGTERM)
print(signal.getsignal(signal.SIGTERM) is signal.SIG_IGN, flush=True)
os._exit(0)
""", make, before="signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    assert (said, status) == (["True"], 0) and exists(server, sandbox_id)


@FACES
def test_a_later_handler_takes_our_place_and_keeps_it(server, make):
    sandbox_id, said, status = run(server, f"""
signal.signal(signal.SIGTERM, lambda *_: (print("mine", flush=True), os._exit(9)))
signal.signal(signal.SIGINT, lambda *_: None)
client.create_sandbox(IMAGE)
os.kill(os.getpid(), signal.SIGINT)
{TERM}
""", make)
    assert (said, status) == (["mine"], 9) and exists(server, sandbox_id)


# --- asyncio ---------------------------------------------------------------
LOOP = """
import asyncio
async def main():
    global first
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    {before}
    first = await AsyncSandboxClient().create_sandbox(IMAGE)
    print(first.sandbox_id, flush=True)
    {after}
    os.kill(os.getpid(), signal.{number})
    await told.wait()
    try:
        print((await first.exec("echo told")).stdout, end="", flush=True)
    except NotFoundError:
        print("gone", flush=True)
"""
ADD = "loop.add_signal_handler(signal.{number}, told.set)"


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
@pytest.mark.parametrize(("before", "after", "said"), [(ADD, "", "gone"), ("", ADD, "told")], ids=["before", "after"])
def test_the_handlers_of_a_loop_are_called(server, number, before, after, said):
    text = LOOP.format(before=before, after=after, number=number).replace("{number}", number)
    program = script(server, text + "asyncio.run(main())")
    sandbox_id, *output = program.communicate(timeout=60)[0].splitlines()
    assert (output, program.returncode) == ([said], 0) and not exists(server, sandbox_id)


def test_after_a_loop_that_had_a_handler_there_is_ours_again(server):
    sandbox_id, _, status = run(server, f"second = client.create_sandbox(IMAGE)\n{TERM}", make="""
import asyncio
first = client.create_sandbox(IMAGE)
async def main():
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, print)
asyncio.run(main())
""")
    assert status == -signal.SIGTERM and not exists(server, sandbox_id)


def test_interrupted_in_a_loop(server):
    """asyncio.run has a handler of its own for SIGINT, and is still the one that knows it."""
    program = script(server, """
        import asyncio
        async def main():
            async with AsyncSandboxClient() as client, client.create_sandbox(IMAGE) as sandbox:
                print(sandbox.sandbox_id, flush=True)
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(60)
        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, flush=True)
    """)
    sandbox_id, *output = program.communicate(timeout=60)[0].splitlines()
    assert (output, program.returncode) == (["True"], 0) and not exists(server, sandbox_id)


# --- threads and forks -----------------------------------------------------
@pytest.mark.parametrize("make", ["first = client.create_many(2, IMAGE)[0]", """
maker = threading.Thread(target=lambda: client.create_sandbox(IMAGE))
maker.start()
maker.join()
first = client.create_sandbox(IMAGE)
"""], ids=["many", "one"])
def test_sandboxes_of_threads_go_too(server, make):
    sandbox_id, said, status = run(server, f"print(*client._own, sep='\\n', flush=True)\n{TERM}", make)
    assert status == -signal.SIGTERM and sandbox_id in said and len(said) == 2
    assert not any(exists(server, one) for one in said)


def test_a_child_made_by_fork_has_the_handlers_that_were_there_before(server):
    sandbox_id, said, status = run(server, """
ours = signal.getsignal(signal.SIGTERM)
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), first.exec("echo ok").stdout, end="")
print(ours is signal.getsignal(signal.SIGTERM) is not mine, flush=True)
""", before="""
def mine(number, frame):
    os._exit(7 if signal.getsignal(signal.SIGTERM) is mine else 8)
signal.signal(signal.SIGTERM, mine)
""")
    assert (said, status) == (["7 ok", "True"], 0) and not exists(server, sandbox_id)


def test_a_child_made_by_fork_that_makes_sandboxes_has_ours(server):
    sandbox_id, said, status = run(server, """
child = os.fork()
if child == 0:
    print(SandboxClient().create_sandbox(IMAGE).sandbox_id, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), first.exec("echo ok").stdout, end="", flush=True)
""")
    assert said[1:] == ["-15 ok"] and status == 0
    assert not exists(server, said[0]) and not exists(server, sandbox_id)


# --- a server that does not answer -----------------------------------------
@pytest.fixture
def silent():
    """Makes sandboxes, and says nothing when one is to be deleted."""
    asked, end = threading.Event(), threading.Event()

    def answer(request):
        if request.method == "DELETE":
            asked.set()
            end.wait(60)
            request.drop()
        else:
            request.answer(200, {"sandbox_id": "x1", "status": "ready", "ready": True})
    fake = Fake(answer)
    fake.asked, fake.key, fake.image = asked, "x", "default"
    yield fake
    end.set()
    fake.close()


def test_a_signal_waits_for_a_time_only(silent):
    _, _, status = run(silent, f"orchard_env._cleanup.SECONDS = 0.2\n{TERM}", before="import orchard_env._cleanup")
    assert status == -signal.SIGTERM and silent.asked.is_set()


def test_a_second_signal_does_not_wait(silent):
    program = script(silent, """
        import orchard_env._cleanup
        orchard_env._cleanup.SECONDS = 600
        client.create_sandbox(IMAGE)
        print("made", flush=True)
        time.sleep(600)
    """)
    assert program.stdout.readline() == "made\n"
    program.send_signal(signal.SIGTERM)
    assert silent.asked.wait(60)
    program.send_signal(signal.SIGTERM)
    assert program.wait(60) == -signal.SIGTERM


def test_a_server_that_is_gone_is_waited_for_once():
    fake = Fake(lambda request: request.answer(200, {"sandbox_id": f"x{len(fake.requests)}", "status": "ready",
                                                     "ready": True}))
    fake.key, fake.image = "x", "default"
    program = script(fake, """
        for _ in range(50):
            client.create_sandbox(IMAGE, wait_ready=False)
        print("made", flush=True)
        sys.stdin.read()
    """, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert program.stdout.readline() == "made\n"
    finally:
        fake.close()
    said = program.communicate(timeout=60)[1]
    assert program.returncode == 0
    assert said.count("not deleted") == 1 and "x1, x2" in said and "x50" in said
