"""What orchardctl writes of itself: completion of shells, and its man page."""

import json
import shutil
import subprocess

import pytest

from ctl import ORCHARDCTL, Ctl
from ctl_screen import Screen

# A command `show` that prints its words, completed as orchardctl is.
SHELLS = {
    "bash": (["bash", "--norc", "-i"], "PS1='REA''DY> '; source <(orchardctl completion bash); "
             "show() { printf '<%s>' \"$@\"; echo; }; complete -F _orchardctl show"),
    "zsh": (["zsh", "-f", "-i"], "PS1='REA''DY> '; autoload -U compinit; compinit -u -D; "
            "source <(orchardctl completion zsh); show() { printf '<%s>' \"$@\"; echo }; compdef _orchardctl show"),
    "fish": (["fish", "--no-config", "-i"], "function fish_prompt; echo 'REA''DY> '; end; "
             "orchardctl completion fish | source; function show; printf '<%s>' $argv; echo; end; complete -c show -w orchardctl"),
}


@pytest.fixture
def ctl(server, tmp_path):
    return Ctl(server, tmp_path)


@pytest.fixture
def complete(ctl):
    def offered(*words):
        return [line.split("\t")[0] for line in ctl.out("__complete", *words).splitlines()]
    return offered


def test_what_a_word_may_become(ctl, complete, tmp_path):
    assert complete("ex") == ["exec"] == complete("-o", "json", "--server", "x", "ex") == complete("help", "ex")
    assert complete("-o", "j") == ["json"] and complete("ls", "--status", "re") == ["ready"]
    assert complete("ls", "--st") == ["--status"] and complete("ls", "--status=re") == ["--status=ready"]
    assert {"--label", "--output", "--help"} <= set(complete("rm", "--"))
    assert complete("completion", "z") == ["zsh"] and complete("config", "use") == ["use-context"]
    assert complete("run", "de") == ["default"] and complete("run", "default", "de") == []
    assert complete("run", "default", "ls", "--") == [] and "--cpu" in complete("run", "default", "--")
    assert complete("create", "--env-file", "") != [":files"] == complete("doctor", "--conf", "")
    ctl.out("config", "set-context", "lab", "--server", "http://127.0.0.1:1")
    assert complete("config", "use-context", "") == ["lab"] == complete("config", "delete-context", "l")
    assert complete("config", "use-context", "lab", "") == [] == complete("config", "view", "")
    assert complete("--context", "") == ["lab"]
    assert ctl.run("__complete", "--context", "lab", "get", "").stdout == b"", "that server is asked, which is away"


def test_what_the_server_knows_is_offered(ctl, complete, fresh):
    name = fresh.id[:-1]
    assert complete("exec", "-e", "A=1", name) == [fresh.id] == complete("patch", name) == complete("rm", fresh.id, name)
    assert complete("exec", fresh.id, name) == [] and complete("patch", fresh.id, "") == [":files"]
    ctl.out("exec", fresh.id, "--", "sh", "-c", "mkdir -p /w/dir; touch /w/.hidden '/w/a b' /w/abc \"$(printf '/w/\\n')\"")
    assert complete("cp", name) == [fresh.id + ":", ":files"] and complete("cp", "./") == [":files"]
    assert complete("cp", "x", f"{fresh.id}:/w/") == [f"{fresh.id}:/w/{name}" for name in ("a b", "abc", "dir/")]
    assert complete("cp", f"{fresh.id}:/w/.") == [f"{fresh.id}:/w/.hidden"] and complete("cp", f"{fresh.id}:/none/") == []
    assert f"{fresh.id}:w/" in complete("cp", f"{fresh.id}:") or f"{fresh.id}:etc/" in complete("cp", f"{fresh.id}:")
    assert complete("exec", fresh.id, "cat", "/w/ab") == ["/w/abc"] == complete("shell", fresh.id, "--", "/w/ab")
    job = ctl.out("exec", "-d", fresh.id, "--", "sleep", "1000").strip()
    ended = json.loads(ctl.out("jobs", fresh.id, "-o", "json"))[1]["job_id"]
    assert complete("cancel", job[:-1]) == [job] == complete("logs", job[:-1]) and complete("cancel", ended[:-1]) == []
    assert complete("get", "x", ended[:-1]) == [ended] == complete("wait", ended[:-1])


@pytest.mark.parametrize("shell", SHELLS)
def test_shells_complete(ctl, fresh, tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "sub dir").mkdir()
    (tmp_path / "sub dir" / "fi le").touch()
    ctl.out("exec", fresh.id, "--", "sh", "-c", "mkdir -p /w/dir; touch '/w/a b' /w/abc")
    words, setup = SHELLS[shell]
    env = ctl.env | {"PATH": f"{ORCHARDCTL.parent}:{ctl.env['PATH']}"}
    with Screen(words, env, cols=200, cwd=tmp_path) as screen:
        screen.type(setup + "\n").see("READY> ")
        for typed, becomes in ((f"cp {fresh.id}:/w/di", f"<cp><{fresh.id}:/w/dir/>"),
                               (f"cp {fresh.id}:/w/a\\ ", f"<cp><{fresh.id}:/w/a b>"),
                               ("cp sub\\ dir/f", "<cp><sub dir/fi le>"), (f"exec {fresh.id} cat /w/ab", "<cat></w/abc>"),
                               ("ls --status=re", "<ls><--status=ready>"), ("-o json canc", "<json><cancel>"),
                               (f"cp {fresh.id[:-1]}", f"<cp><{fresh.id}:>")):
            screen.type(f"show {typed}\t\n").see(becomes).see("READY> ")


def test_the_man_page_is_clean_and_whole(ctl):
    page = ctl.out("man")
    if shutil.which("man") is not None:
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", "-"], input=page, capture_output=True, text=True,
            env=ctl.env | {"MANWIDTH": "100"})
        assert (done.returncode, done.stderr) == (0, ""), done
        assert "EXIT STATUS" in done.stdout and "orchardctl exec [OPTION]" in done.stdout
    groups = ctl.out("--help").split("\noptions of")[0].split(":\n")[1:]
    names = [line.split()[0] for group in groups for line in group.splitlines() if line.startswith("  ")]
    assert names == [line.split()[1] for line in page.splitlines() if line.startswith(".SS ")]


def test_colours_are_for_terminals_only(ctl, box):
    script = ["script", "-qec", f"{ORCHARDCTL} ls", "/dev/null"]
    on = subprocess.run(script, env=ctl.env | {"TERM": "xterm"}, capture_output=True, stdin=subprocess.DEVNULL)
    assert b"\x1b[32mready\x1b[0m" in on.stdout
    for env in ({"TERM": "dumb"}, {"TERM": "xterm", "NO_COLOR": "1"}):
        off = subprocess.run(script, env=ctl.env | env, capture_output=True, stdin=subprocess.DEVNULL)
        assert b"ready" in off.stdout and b"\x1b" not in off.stdout
    assert json.loads(ctl.out("get", box.id, "-o", "json", env={"TERM": "xterm"}))["status"] == "ready"
