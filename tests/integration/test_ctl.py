"""orchardctl: what all commands share, and the ones that look and remove."""

import json
import os
import stat
import subprocess

import pytest

from ctl import ORCHARDCTL, Ctl
from orchard_server import eventually, free_port


@pytest.fixture
def ctl(server, tmp_path):
    return Ctl(server, tmp_path)


def test_exit_status_tells_what_kind_of_failure_it_was(ctl):
    gone = {"SANDBOX_BASE_URL": f"http://127.0.0.1:{free_port()}"}
    for words, env, status, said in (
            (["get", "no-such"], {}, 4, b'there is no sandbox "no-such" [not_found, request '),
            (["get", ".."], {}, 4, b"[not_found, request "),
            (["rm", "."], {}, 4, b"[not_found, request "),
            (["help", "lss"], {}, 2, b'there is no command "lss"'),
            (["ls", "--retry", "0"], gone, 3, b"no answer from http://127.0.0.1:"),
            (["ls"], {"SANDBOX_API_KEY": "wrong"}, 1, b"[invalid_api_key, request "),
            (["ls"], {"SANDBOX_API_KEY": ""}, 1, b"SANDBOX_API_KEY"),
            (["ls", "--status", "x"], {}, 2, b"pending unschedulable ready"),
            (["ls", "--label", "none"], {}, 2, b"NAME=VALUE"),
            (["rm", "--label", "none"], {}, 2, b"NAME=VALUE"),
            (["create", "--cpu", "abc"], {}, 2, b"500m"),
            (["create", "-m", "12XB"], {}, 2, b"512Mi"),
            (["create", "--disk", "-1"], {}, 2, b"512Mi"),
            (["exec", "x", "--", "printf", b"\xff"], {}, 2, b"word 2 of the command is not UTF-8"),
            (["run", "default", "--retry", "10ms", "true"], gone, 125, b"no answer from http://127.0.0.1:"),
            (["lss"], {}, 2, b'do you mean "ls"?'),
            (["ls", "--lable", "a=b"], {}, 2, b"do you mean --label?"),
            (["rm"], {}, 2, b"orchardctl rm --help"),
            ([], {}, 2, b"orchardctl --help"),
            (["ls"], {"SANDBOX_BASE_URL": "localhost:8000"}, 2, b"http://localhost:8000"),
            (["ls", "--context", "x"], {}, 2, b"get-contexts")):
        done = ctl.run(*words, env=env)
        assert (done.returncode, done.stdout) == (status, b""), done
        assert said in done.stderr, done
        assert done.stderr.startswith(b"orchardctl: ") and done.stderr.count(b"orchardctl: ") == 1, done


def test_every_command_has_help_with_examples(ctl):
    text = ctl.out("--help")
    groups = text.split("\n\n")[2:6]
    assert [group.splitlines()[0] for group in groups] == [
        "sandboxes:", "commands and files in them:", "the server:", "orchardctl itself:"]
    names = [line.split()[0] for group in groups for line in group.splitlines()[1:]]
    assert {"run", "ls", "cp", "doctor", "help"} <= set(names) and text == ctl.out("help")
    for name in names:
        told = ctl.out(name, "--help")
        assert told == ctl.out("help", name)
        assert told.startswith(f"orchardctl {name} - "), told
        assert f"  orchardctl {name}" in told.split("\nexamples:\n")[1], told
        usage = told.split("usage: ")[1].split("\n")[0]
        assert ("\noptions:\n" in told) == bool(set(usage.split()) & {"[OPTION]...", "OPTION...", "[--client]"}), told


def test_a_list_in_every_form(ctl, fresh, server):
    server.client.patch(fresh.url, json={"labels": {"ctl": "list", "note": "a\x1b[31m\nb"}})
    table = ctl.out("ls", "-l", "ctl=list").splitlines()
    assert len(table) == 2 and table[0].startswith("SANDBOX ")
    assert table[1].split()[:2] == [fresh.id, "ready"] and "\\x1b[31m\\nb" in table[1]
    assert ctl.out("ls", "-l", "ctl=list", "-o", "name") == ctl.out("ls", "-ql", "ctl=list") == fresh.id + "\n"
    assert json.loads(ctl.out("-o", "json", "ls", "-l", "ctl=list"))[0]["labels"]["ctl"] == "list"
    yaml = ctl.out("ls", "-l", "ctl=list", "-o", "yaml")
    assert f"- sandbox_id: {fresh.id}\n" in yaml and '\n  cpu: "1"\n' in yaml and "\n  ready: true\n" in yaml
    nothing = ctl.run("ls", "-l", "ctl=none")
    assert (nothing.returncode, nothing.stdout) == (0, b"") and b"no sandboxes" in nothing.stderr
    assert json.loads(ctl.out("ls", "-l", "ctl=none", "-o", "json")) == []


def test_a_list_through_all_pages(ctl, make_server, tmp_path, busybox):
    server = make_server(default_memory="16Mi").start()
    made = {server.create(busybox, wait=False).id for _ in range(5)}
    own = Ctl(server, tmp_path)
    assert len(own.out("ls", "-q", "-n", "3").split()) == 3
    assert set(own.out("ls", "-q").split()) == made
    assert set(own.out("rm", "--all").split()) == made
    assert own.out("ls", "-o", "name") == ""


def test_removing_by_name_and_by_label(ctl, server):
    one, two, three = (server.create(labels={"ctl": "rm"} if n else {}, wait=False).id for n in range(3))
    done = ctl.run("rm", one, "no-such")
    assert (done.returncode, done.stdout) == (4, one.encode() + b"\n")
    assert ctl.out("rm", "-f", "no-such") == ""
    assert set(ctl.out("rm", "--label", "ctl=rm").split()) == {two, three}
    assert ctl.run("rm", "x", "--all").returncode == 2
    four, five = (server.create(wait=False).id for _ in range(2))
    told = [json.loads(line) for line in ctl.out("rm", four, five, "-o", "json").splitlines()]
    assert [(one["sandbox_id"], one["status"]) for one in told] == [(four, "deleted"), (five, "deleted")]


def test_a_name_can_be_used_again_at_once(ctl):
    """It is not free until all of the one before is removed: a refusal for a moment, which is waited for."""
    for _ in range(3):
        done = ctl.run("create", "--id", "ctl-again", "--no-wait")
        assert (done.returncode, done.stdout) == (0, b"ctl-again\n"), done
        assert ctl.out("rm", "ctl-again") == "ctl-again\n"
    assert ctl.run("get", "ctl-again").returncode == 4


def test_watching_ends_with_its_reader(ctl, box):
    process = ctl.start("ls", "--watch", "--interval", "50ms", "-q")
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(30) != 0


def test_one_that_is_missing_hides_no_other(ctl, box):
    done = ctl.run("get", box.id, "no-such", box.id, "-o", "json")
    assert (done.returncode, done.stderr.count(b"orchardctl: ")) == (4, 1)
    assert [item["sandbox_id"] for item in json.loads(done.stdout)] == [box.id] * 2
    done = ctl.run("get", "no-such", box.id, "-o", "json")
    assert [item["sandbox_id"] for item in json.loads(done.stdout)] == [box.id]


def test_watching_tells_what_comes_and_goes(ctl, server):
    process = ctl.start("ls", "--watch", "--interval", "50ms", "-l", "ctl=watch", "-o", "json")
    try:
        box = server.create(labels={"ctl": "watch"})
        assert json.loads(process.stdout.readline())["sandbox_id"] == box.id
        box.delete()
        while json.loads(process.stdout.readline())["status"] != "deleted":
            pass
    finally:
        process.kill()
        process.communicate()


def test_a_watched_table_keeps_its_columns(ctl, server):
    box = server.create(labels={"ctl": "columns"})
    process = ctl.start("ls", "--watch", "-l", "ctl=columns")
    try:
        head, row = process.stdout.readline(), process.stdout.readline()
        assert row.startswith(box.id.encode())
        assert head.index(b"STATUS") == row.index(b"ready"), (head, row)
    finally:
        process.kill()
        process.communicate()
        box.delete()


def test_contexts(ctl, server, tmp_path):
    env = {"SANDBOX_BASE_URL": "", "SANDBOX_API_KEY": ""}
    ctl.run("config", "set-context", "one", "--server", server.url + "/", "--api-key-file", "-",
            input=server.key.encode() + b"\n", env=env)
    ctl.out("config", "set-context", "two", "--server", "http://127.0.0.1:1", "--api-key", "secret-two", env=env)
    path = tmp_path / ".config" / "orchard" / "config.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert ctl.out("config", "current-context", env=env) == "one\n"
    ctl.out("ls", "-o", "json", env=env)
    assert "secret-two" not in ctl.out("config", "view", "-q", env=env)
    assert "secret-two" in ctl.out("config", "view", "-q", "--raw", env=env)
    ctl.out("config", "use-context", "two", env=env)
    assert ctl.run("ls", "--retry", "0", env=env).returncode == 3
    ctl.out("ls", "-o", "json", "--context", "one", env=env)
    rows = ctl.out("config", "get-contexts", env=env).splitlines()
    assert [row.split()[-3:-1] for row in rows[1:]] == [["one", server.url + "/"], ["two", "http://127.0.0.1:1"]]
    ctl.out("ls", "-o", "json")  # the environment wins over the file
    assert ctl.run("config", "use-context", "none", env=env).returncode == 2
    ctl.out("config", "delete-context", "two", env=env)
    assert ctl.run("config", "current-context", env=env).returncode == 1
    path.write_text("{")
    broken = ctl.run("ls", env=env)
    assert broken.returncode == 2 and str(path).encode() in broken.stderr


def test_a_key_of_the_file_goes_to_its_own_server_only(ctl, server):
    env = {"SANDBOX_BASE_URL": "", "SANDBOX_API_KEY": ""}
    ctl.out("config", "set-context", "one", "--server", server.url.replace("127.0.0.1", "localhost"),
            "--api-key", server.key, env=env)
    ctl.out("ls", "-o", "json", env=env)
    for words, more in ((["--server", server.url], {}), ([], {"SANDBOX_BASE_URL": server.url})):
        done = ctl.run("ls", *words, env=env | more)
        assert done.returncode == 1 and b"missing_api_key" in done.stderr
    ctl.out("ls", "-o", "json", "--server", server.url, env=env | {"SANDBOX_API_KEY": server.key})


def test_a_closed_pipe_is_no_noise(ctl, box):
    for words in (["ls"], ["--help"], ["get", box.id, "-o", "yaml"]):
        reader, writer = os.pipe()
        os.close(reader)
        process = ctl.start(*words, stdout=writer)
        os.close(writer)
        assert process.communicate()[1] == b""
        assert process.returncode in (-13, 141)


def test_a_full_disk_is_said(ctl):
    with open("/dev/full", "wb") as full:
        process = ctl.start("--help", stdout=full)
        assert b"No space left" in process.communicate()[1]
        assert process.returncode == 1


def test_it_waits_for_a_server_that_comes_back(ctl, make_server, tmp_path):
    server = make_server().start()
    own = Ctl(server, tmp_path)
    server.stop()
    process = own.start("ls", "-q", "--retry", "60s")
    server.start()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, b"", b"")


def test_standard_streams_may_be_closed(ctl, server):
    done = subprocess.run(["sh", "-c", f'exec "{ORCHARDCTL}" ls >&- 2>&- <&-'], env=ctl.env)
    assert done.returncode in (0, 1)
    eventually(lambda: server.client.get("/health").status_code == 200)
