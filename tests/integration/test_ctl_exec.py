"""orchardctl exec and run: the command's output, input and exit code as if it ran here, and nothing left behind."""

import json
import os
import re
import signal

import pytest

from ctl import Ctl
from orchard_server import eventually

ALL_BYTES = bytes(range(256))
WRITES_ON = "while :; do echo y; sleep 0.05; done"
DIFF = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-hello\n+world\n"


@pytest.fixture
def ctl(server, tmp_path):
    return Ctl(server, tmp_path)


def test_streams_and_exit_code_are_the_commands(ctl, box):
    done = ctl.run("exec", box.id, "--", "sh", "-c", r"printf 'o\000\377'; printf 'e\001' >&2; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"o\0\xff", b"e\1")
    assert ctl.run("exec", box.id, "true").returncode == 0
    assert ctl.run("exec", box.id, "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert ctl.run("exec", box.id, "no-such-program").returncode == 127
    late = ctl.run("exec", "--timeout", "300ms", box.id, "sleep", "100")
    assert late.returncode == 124 and b"[timed_out, job " in late.stderr
    assert ctl.run("exec", "no-such", "true").returncode == 125
    assert ctl.run("exec", box.id).returncode == ctl.run("exec").returncode == 2


def test_words_are_passed_as_they_stand(ctl, box):
    words = ["a b", "$HOME", "", "'", "--help", "-i"]
    assert ctl.out("exec", box.id, "printf", "%s|", *words) == "|".join(words) + "|"
    assert ctl.out("exec", "-c", box.id, "echo", "$((6 *", "7))") == "42\n"
    assert ctl.out("exec", box.id, "-w", "/tmp", "-e", "A=1=2", "-e", "HERE", "--", "sh", "-c", "pwd; echo $A $HERE",
                   env={"HERE": "ours"}) == "/tmp\n1=2 ours\n"
    assert ctl.run("exec", "-e", "NOWHERE", box.id, "true").returncode == 2


def test_stdin_goes_through_to_its_last_byte(ctl, box):
    data = ALL_BYTES * 1500
    done = ctl.run("exec", "-i", box.id, "cat", input=data)
    assert (done.returncode, done.stdout == data, done.stderr) == (0, True, b"")
    assert ctl.run("exec", "-i", box.id, "--", "head", "-c", "3", input=data).stdout == data[:3]
    assert ctl.run("exec", "-i", box.id, "cat", input=b"").stdout == b""
    assert ctl.run("exec", box.id, "cat", input=b"unread").stdout == b""


def test_output_comes_while_the_command_runs(ctl, box):
    process = ctl.start("exec", "-i", box.id, "--", "sh", "-c", "echo first; read line; echo got $line", stdin=-1)
    assert process.stdout.readline() == b"first\n"
    assert process.communicate(b"answer\n")[0] == b"got answer\n"
    assert process.returncode == 0


def test_more_output_than_a_job_keeps(ctl, box):
    done = ctl.run("exec", box.id, "--", "head", "-c", "3000000", "/dev/zero")
    assert (done.returncode, len(done.stdout), done.stdout.strip(b"\0")) == (0, 3000000, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_command(ctl, fresh, number):
    process = ctl.start("exec", fresh.id, "--", "sh", "-c", "echo up; sleep 600")
    assert process.stdout.readline() == b"up\n"
    process.send_signal(number)
    assert process.communicate(timeout=60) == (b"", b"")
    assert process.returncode == 128 + number
    job = json.loads(ctl.out("jobs", fresh.id, "-o", "json"))[0]
    assert job["verdict"] == "canceled"


def test_a_reader_that_leaves_ends_the_command(ctl, fresh):
    process = ctl.start("exec", fresh.id, "--", "sh", "-c", WRITES_ON)
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    assert process.wait(60) == 141 and process.stderr.read() == b""
    process.stderr.close()
    assert json.loads(ctl.out("jobs", fresh.id, "-o", "json"))[0]["verdict"] == "canceled"


def test_a_reader_that_rests_holds_up_no_signal(ctl, fresh):
    process = ctl.start("exec", fresh.id, "--", "sh", "-c", "echo y; head -c 1000000 /dev/zero; sleep 600")
    assert process.stdout.readline() == b"y\n"
    # nobody reads on: the pipe is full, and orchardctl waits for room in it
    process.send_signal(signal.SIGINT)
    eventually(lambda: json.loads(ctl.out("jobs", fresh.id, "-o", "json"))[0]["verdict"] == "canceled", 60, "cancel")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    process.stdout.close()
    process.stderr.close()


def test_a_killed_worker_costs_no_byte(make_server, tmp_path):
    server = make_server().start()
    box, ctl = server.create(), Ctl(server, tmp_path)
    process = ctl.start("exec", "-i", box.id, "--", "sh", "-c", "while read n; do echo $n; done; exit 9", stdin=-1)
    for n in range(40):
        process.stdin.write(b"%d\n" % n)
        process.stdin.flush()
        if n % 13 == 5:
            os.kill(server.processes()["worker"][0], signal.SIGKILL)
        assert process.stdout.readline() == b"%d\n" % n
    assert process.communicate()[1] == b"" and process.returncode == 9


def test_the_job_instead_of_its_output(ctl, box):
    done = ctl.run("exec", box.id, "-o", "json", "--", "sh", "-c", "echo hi; exit 3")
    job = json.loads(done.stdout)
    assert (done.returncode, job["stdout"], job["exit_code"]) == (3, "hi\n", 3)


def test_run_takes_its_sandbox_along(make_server, tmp_path):
    server = make_server().start()
    ctl = Ctl(server, tmp_path)
    assert ctl.out("run", "default", "echo", "hi") == "hi\n"
    assert ctl.run("run", "default", "--", "sh", "-c", "exit 5").returncode == 5
    assert ctl.run("run", "no-such-image:x", "--", "true").returncode == 125
    assert ctl.run("run", "default", "no-such").returncode == 127
    assert server.list_ids() == []
    for command, leave in (("sleep 600", lambda p: p.send_signal(signal.SIGTERM)),
                           ("sleep 600", lambda p: p.send_signal(signal.SIGINT)),
                           (WRITES_ON, lambda p: (p.send_signal(signal.SIGINT), p.send_signal(signal.SIGTERM))),
                           (WRITES_ON, lambda p: p.stdout.close())):
        process = ctl.start("run", "default", "--", "sh", "-c", "echo up; " + command)
        assert process.stdout.readline() == b"up\n"
        assert len(server.list_ids()) == 1
        leave(process)
        process.stderr.read()
        assert process.wait(60) in (130, 141, 143)
        assert server.list_ids() == []
    process.stdout.close()


def test_run_interrupted_at_any_moment_leaves_nothing(make_server, tmp_path):
    server = make_server().start()
    ctl = Ctl(server, tmp_path)
    for step in range(12):
        process = ctl.start("run", "default", "--", "sleep", "600")
        eventually(lambda: step < 4 or process.poll() is not None or server.list_ids(), what="it begins")
        for _ in range(step % 4):
            server.client.get("/health")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode in (130, -2)
        assert server.list_ids() == []


def test_run_keeps_what_is_to_be_kept_and_takes_no_others(ctl, server):
    kept = ctl.run("run", "--keep", "--id", "ctl-kept", "default", "true")
    assert kept.returncode == 0 and b"ctl-kept" in kept.stderr
    again = ctl.run("run", "--id", "ctl-kept", "default", "true")
    assert (again.returncode, again.stdout) == (125, b"") and b"already" in again.stderr
    assert ctl.out("exec", "ctl-kept", "echo", "there") == "there\n"
    assert ctl.out("rm", "ctl-kept") == "ctl-kept\n"


def test_create_tells_the_name(ctl, server):
    name = ctl.out("create", "-l", "ctl=create", "-m", "128Mi", "--ttl", "1h", "-e", "A=b").strip()
    box = json.loads(ctl.out("get", name, "-o", "json"))
    assert (box["status"], box["memory"], box["ttl_seconds"], box["labels"]) == ("ready", "128Mi", 3600, {"ctl": "create"})
    assert ctl.out("exec", name, "-c", "echo $A") == "b\n"
    assert json.loads(ctl.out("update", name, "-l", "x=y", "--idle-timeout", "5m", "-o", "json"))["labels"] == \
        {"ctl": "create", "x": "y"}
    assert ctl.out("update", name, "--remove-label", "ctl") == name + "\n"
    box = json.loads(ctl.out("get", name, "-o", "json"))
    assert (box["labels"], box["idle_timeout_seconds"], box["ttl_seconds"]) == ({"x": "y"}, 300, 3600)
    assert ctl.out("heartbeat", name) == ""
    assert ctl.out("wait", name) == ""
    assert ctl.out("rm", name) == name + "\n"
    assert ctl.run("create", "-l", "ctl=failed", "no/such:image").returncode == 1
    assert ctl.run("rm", "--all", "-l", "ctl=failed").returncode == 0
    assert ctl.run("create", "default", "-m", "much").returncode == 2


def test_jobs_are_listed_waited_for_and_cancelled(ctl, fresh):
    job = ctl.out("exec", "-d", fresh.id, "--", "sh", "-c", "echo out; echo err >&2; read x; exit 3").strip()
    assert re.fullmatch(r"[0-9a-f-]{36}", job)
    assert ctl.run("wait", job).returncode == 3
    logs = ctl.run("logs", job)
    assert (logs.returncode, logs.stdout, logs.stderr) == (0, b"out\n", b"err\n")
    assert ctl.run("logs", "-f", fresh.id).stdout == b"out\n"
    assert ctl.out("logs", job, "--stream", "stdout", "--offset", "1") == "ut\n"
    long = ctl.out("exec", "-d", fresh.id, "--", "sh", "-c", "echo up; sleep 600").strip()
    assert ctl.run("wait", long, "--timeout", "10ms").returncode == 1
    follower = ctl.start("logs", "-f", long)
    assert follower.stdout.readline() == b"up\n"
    assert ctl.out("jobs", fresh.id, "-q").split() == [long, job]
    assert json.loads(ctl.out("cancel", long, "-o", "json"))[0]["verdict"] == "canceled"
    assert follower.communicate(timeout=60) == (b"", b"") and follower.returncode == 0
    assert "canceled" in ctl.out("get", long)
    for words in (["logs", "no-such"], ["cancel", "no-such"], ["jobs", "no-such"], ["wait", "no-such"],
                  ["heartbeat", "no-such"], ["patch", "no-such", "-"], ["update", "no-such", "--ttl", "1h"]):
        assert ctl.run(*words, input=b"x").returncode == 4, words


def test_a_patch_applies_whole_or_not_at_all(ctl, box, tmp_path):
    ctl.out("exec", box.id, "-c", "mkdir -p /tmp/p && echo hello >/tmp/p/a.txt")
    (tmp_path / "fix.diff").write_text(DIFF)
    ctl.out("patch", box.id, str(tmp_path / "fix.diff"), "-w", "/tmp/p")
    assert ctl.out("exec", box.id, "cat", "/tmp/p/a.txt") == "world\n"
    again = ctl.run("patch", box.id, "-w", "/tmp/p", input=DIFF.encode())
    assert (again.returncode, again.stdout) == (1, b"") and b"nothing has changed" in again.stderr
    first, *rest = again.stderr.decode().splitlines()
    assert first.startswith("orchardctl: the patch does not fit at a.txt:1: ")
    assert rest[-2:] == ["  | error: patch failed: a.txt:1", "  | error: a.txt: patch does not apply"]
    hostile = ctl.run("patch", box.id, "-w", "/tmp/p", input=b"@@ -1 +1 @@ \x1b[31m\n-a\n+b\n")
    assert (hostile.returncode, b"\x1b" in hostile.stderr) == (1, False)
    assert ctl.run("patch", box.id, input=b"").returncode == 1
    assert ctl.run("patch", box.id, str(tmp_path / "none")).returncode == 1


def test_resources_and_versions(ctl, box):
    assert "(all)" in ctl.out("resources")
    resources = json.loads(ctl.out("resources", "-o", "json"))
    assert resources["status"] == "ok"
    for words in (["-o", "name"], ["-q"]):
        assert ctl.out("resources", *words).split() == [node["name"] for node in resources["nodes"]]
    assert {"client", "server", "url"} == set(json.loads(ctl.out("version", "-o", "json")))
    assert ctl.out("version", "--client", "-q") == ctl.out("--version").split()[1] + "\n"


def test_options_that_do_not_fit_make_no_sandbox(ctl, server):
    before = set(server.list_ids())
    for words in (["-t", "-d"], ["-t", "--lane", "a"], ["-t", "--timeout", "1"], ["-d"], ["--ttl", "soon"], ["-e", "=x"]):
        assert ctl.run("run", *words, "default", "true").returncode == 2, words
    for words in (["run"], ["run", "default"], ["run", "-tc", "default"], ["exec", "-tc", "x"]):
        assert ctl.run(*words).returncode == 2, words
    assert set(server.list_ids()) == before
