"""orchardctl top and doctor."""

import json
import os
import re
import signal

import pytest

from ctl import ORCHARDCTL, Ctl
from ctl_fake import Fake
from ctl_screen import Screen
from orchard_server import BUILD, eventually


@pytest.fixture
def ctl(server, tmp_path):
    return Ctl(server, tmp_path)


def test_top_once(ctl, box):
    out = ctl.out("top", "-n", "1")
    title, *rows = out.splitlines()
    assert title.split()[:2] == ["SANDBOX", "CPU"]
    assert any(row.startswith(box.id) for row in rows)


def test_top_measures(ctl, server, fresh):
    """Who computes all the time has about what his cpu allows; what the host can't tell is null."""
    fresh.start("while :; do :; done")
    rows = json.loads(ctl.out("top", "-n", "1", "-o", "json", "--interval", "1s"))
    row = next(row for row in rows if row["sandbox_id"] == fresh.id)
    assert set(row) == {"sandbox_id", "status", "cpu_percent", "cpu_limit", "memory_bytes", "memory_percent", "memory_limit",
                        "memory_peak_bytes", "pids", "disk_bytes"}
    usage = fresh.get().json().get("usage")
    if usage and usage.get("cpu_s") is not None:
        assert row["cpu_percent"] > 0
        assert row["memory_bytes"] > 0


def test_top_gives_lines_of_json(ctl, box):
    process = ctl.start("top", "-o", "json", "--interval", "100ms")
    for _ in range(3):
        assert isinstance(json.loads(process.stdout.readline()), list)
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130


def test_top_filters_and_sorts(ctl, server):
    boxes = [server.create(labels={"top": "yes"}) for _ in range(3)]
    out = ctl.out("top", "-n", "1", "--label", "top=yes", "--sort", "name", "-q")
    assert out.split() == sorted(box.id for box in boxes)
    for box in boxes:
        box.delete()


@pytest.mark.parametrize("key", ["\x03", "xyzq"])
def test_top_live_leaves_the_screen_as_it_was(ctl, box, key):
    with Screen([ORCHARDCTL, "top", "--interval", "100ms"], ctl.env, rows=12, cols=60) as screen:
        screen.see("\x1b[?1049h").see("   sandboxes ").see(box.id[:10]).see("   sandboxes ")
        screen.type(key)
        assert screen.end() == 0
        screen.see("\x1b[?1049l")
        assert screen.restored() and "xyz" not in screen.text


def checks(ctl, *words, env=None):
    done = ctl.run("doctor", "-o", "json", *words, env=env)
    return done.returncode, {item["check"]: item for item in json.loads(done.stdout)}


def test_doctor_finds_nothing(ctl, server):
    env = {"PATH": f"{BUILD / 'src'}:{os.environ['PATH']}"}
    code, found = checks(ctl, "--try", "--conf", str(server.conf_path), env=env)
    assert code == 0, found
    for name in ("configuration", "kernel", "namespaces", "overlayfs", "cgroups", "settings", "images", "server", "version",
                 "key", "ready", "driver", "isolation", "processes", "command"):
        assert found[name]["result"] == "ok", found[name]
    assert not [box for box in ctl.out("ls", "-l", "orchardctl=doctor", "-o", "name").split()]


def test_doctor_lets_sandboxes_share_the_host(make_server, tmp_path):
    """One host's cpus are promised many times over: that is how it is meant to be used."""
    server = make_server().start()
    for _ in range(2):
        server.create(cpu=os.cpu_count())
    _, found = checks(Ctl(server, tmp_path))
    assert found["driver"]["result"] == "ok", found["driver"]
    assert f"sandboxes may use {2 * os.cpu_count()} cpu and 1Gi of memory" in found["driver"]["message"]


def test_doctor_says_what_is_wrong_and_what_mends_it(ctl, server, tmp_path):
    code, found = checks(ctl, env={"SANDBOX_API_KEY": "wrong"})
    assert (code, found["key"]["result"]) == (1, "fail")
    assert "--api-key" in found["key"]["cure"]
    assert "\n" not in found["key"]["message"]
    code, found = checks(ctl, "--retry", "0", env={"SANDBOX_BASE_URL": "http://127.0.0.1:1"})
    assert (code, found["server"]["result"]) == (1, "fail")
    assert "orchardd" in found["server"]["cure"]
    wrong = tmp_path / "wrong.conf"
    wrong.write_text("no_such_setting = 1\n")
    env = {"PATH": f"{BUILD / 'src'}:{os.environ['PATH']}"}
    code, found = checks(ctl, "--conf", str(wrong), env=env)
    assert (code, found["settings"]["result"]) == (1, "fail")
    assert "no_such_setting" in found["settings"]["message"]


def test_doctor_looks_at_who_may_read_the_key(ctl, tmp_path):
    config = tmp_path / "config.json"
    config.write_text('{"contexts": {}}')
    config.chmod(0o644)
    code, found = checks(ctl, env={"ORCHARD_CONFIG": str(config)})
    assert found["configuration"]["result"] == "warn"
    assert found["configuration"]["cure"] == f"chmod 600 '{config}'"


def test_doctor_sees_weak_walls(make_server, tmp_path):
    server = make_server(sandbox_no_new_privs=False).start()
    code, found = checks(Ctl(server, tmp_path))
    assert found["isolation"]["result"] == "warn"
    assert "sandbox_no_new_privs" in found["isolation"]["message"]


def test_doctor_tells_a_death_of_late(make_server, tmp_path):
    server = make_server().start()
    ctl = Ctl(server, tmp_path)
    for _ in range(3):  # a reload takes the places of the one before it, and nobody died
        before = server.processes()["worker"]
        server.reload()
        eventually(lambda: len(now := server.processes()["worker"]) == len(before) and not set(now) & set(before), 30)
    server.wait_ready()
    assert checks(ctl)[1]["processes"]["message"] == "none had to be replaced"
    server.replace("worker")
    server.wait_ready()
    found = checks(ctl)[1]["processes"]
    assert found["result"] == "warn" and "journalctl" in found["cure"]
    assert re.fullmatch(rf"died and was replaced: worker, {len(before)} times, the last \S+ ago", found["message"])


@pytest.mark.parametrize(("count", "age", "result", "said"), [
    (0, None, "ok", "none had to be replaced"), (1, 599, "warn", "worker, 9m59s ago"),
    (3, 600, "ok", "all is well since one was replaced: worker, 3 times, the last 10m ago"), (1, 86400, "ok", "1d ago")])
def test_doctor_forgives_an_old_death(tmp_path, count, age, result, said):
    metrics = f'orchard_process_restarts{{role="worker"}} {count}\n' + \
        (f'orchard_process_restart_age_seconds{{role="worker"}} {age}\n' if age else "")

    def answer(request):
        request.answer(200, metrics.encode() if request.path == "/metrics" else {"service": "orchard", "version": "1"})
    fake = Fake(answer)
    try:
        found = checks(Ctl(fake, tmp_path), "--no-host")[1]["processes"]
    finally:
        fake.close()
    assert found["result"] == result and said in found["message"]
    assert (found["cure"] is not None) == (result == "warn"), found


def test_doctor_for_people(ctl):
    with Screen([ORCHARDCTL, "doctor"], ctl.env) as screen:
        assert screen.end() == 0
        assert re.search(r"\x1b\[32mok", screen.text)
    done = ctl.run("doctor", "-q")
    assert done.returncode == 0
    assert b"\nok" not in done.stdout and b"\x1b" not in done.stdout


def test_words_without_a_meaning(ctl):
    for words in (["top", "--sort", "age"], ["top", "x1"], ["top", "--interval", "0"], ["doctor", "now"]):
        done = ctl.run(*words)
        assert (done.returncode, done.stdout) == (2, b""), words
        assert b"--help" in done.stderr
