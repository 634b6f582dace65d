"""orchardctl shell in a pseudo-terminal: keys, sizes, job control, and every way out."""

import re
import shutil
import signal
import subprocess
import uuid

import pytest

from ctl import ORCHARDCTL, Ctl
from ctl_screen import Screen
from ctl_wire import Wire
from orchard_server import eventually

PROMPT = "here> "


@pytest.fixture
def ctl(server, tmp_path):
    return Ctl(server, tmp_path)


@pytest.fixture
def wire(server):
    wire = Wire(server.port)
    yield wire
    wire.close()


def shell(ctl, box, *words, program=("env", f"PS1={PROMPT}", "bash", "--norc", "--noediting"), rows=24, cols=80, env=None):
    return Screen([ORCHARDCTL, "shell", *words, box.id, "--", *program], ctl.env | (env or {}), rows, cols)


def test_keys_go_there_and_the_exit_code_comes_back(ctl, box):
    with shell(ctl, box) as screen:
        screen.see(PROMPT).type("echo $((6 * 7))-$TERM; exit 7\r").see("42-xterm-256color")
        assert screen.end() == 7
        assert screen.restored()


def test_users_shell_without_a_command(ctl, box):
    with Screen([ORCHARDCTL, "shell", box.id, "-w", "/usr", "-e", "WHO=me"], ctl.env) as screen:
        screen.type("pwd; echo $WHO; exit\r").see("/usr").see("me")
        assert screen.end() == 0


def test_exec_and_run_at_a_terminal(ctl, box, server):
    with Screen([ORCHARDCTL, "exec", "-it", box.id, "-c", "test -t 0 && test -t 1 && read x && echo got-$x; exit 5"], ctl.env) as screen:
        eventually(screen.is_raw, what="raw")
        screen.type("word\r").see("got-word")
        assert screen.end() == 5
        assert screen.restored()
    before = set(server.list_ids())
    with Screen([ORCHARDCTL, "run", "-t", "default", "--", "sh", "-c", "tty; exit 6"], ctl.env) as screen:
        screen.see("/dev/pts/")
        assert screen.end() == 6
    assert set(server.list_ids()) == before
    for words in (["-d"], ["--timeout", "1m"], ["--lane", "x"]):
        assert ctl.run("exec", "-t", *words, box.id, "true").returncode == 2


def test_death_by_signal_is_128_and_its_number(ctl, box):
    with shell(ctl, box, program=("sh", "-c", "kill -TERM $$")) as screen:
        assert screen.end() == 128 + signal.SIGTERM


def test_window_size_follows(ctl, box):
    with shell(ctl, box, rows=31, cols=101) as screen:
        screen.see(PROMPT).type("stty size\r").see("31 101")
        screen.resize(44, 133)
        screen.type("until [ \"$(stty size)\" = '44 133' ]; do sleep 0.05; done; echo it-is-$((40 + 4))\r").see("it-is-44")


def test_ctrl_c_ends_what_runs_there(ctl, box):
    with shell(ctl, box) as screen:
        # What says begun is in the foreground by then; a `sleep` behind it would still have to get there.
        screen.see(PROMPT).type("(echo be''gun; exec sleep 1000)\r").see("begun").type("\x03").see(PROMPT)
        screen.type("exit 3\r")
        assert screen.end() == 3


def test_job_control_is_there(ctl, box):
    with shell(ctl, box) as screen:
        screen.see(PROMPT).type("(echo be''gun; read word; echo go''t $word; exec sleep 1000)\r")
        screen.see("begun").type("\x1a").see("Stopped").see(PROMPT)
        screen.type("jobs\r").see("Stopped").see(PROMPT)
        # The shell names the job before that has the terminal: who reads a word has it.
        screen.type("fg\r").type("this\r").see("got this").type("\x03").see(PROMPT)


def test_full_screen_programs_get_every_byte(ctl, box):
    with shell(ctl, box, program=("sh", "-c", "stty raw -echo; echo raw; head -c 256 | od -An -v -tu1 | tr -s ' \\n' ' '")) as screen:
        screen.see("raw")
        eventually(screen.is_raw, what="raw here, too")
        # "~" only at the beginning of a line is for orchardctl
        screen.type(b"x" + bytes(range(1, 256)))
        expected = " ".join(str(n) for n in [120, *range(1, 256)])
        screen.see(expected)


def test_much_output_arrives_whole(ctl, box):
    with shell(ctl, box, program=("seq", "1", "200000")) as screen:
        assert screen.end() == 0
        assert screen.text.replace("\r\n", "\n").split()[:200000] == [str(n) for n in range(1, 200001)]


def test_tilde_dot_ends_the_session(ctl, box):
    with shell(ctl, box) as screen:
        mark = f"mark-{uuid.uuid4().hex[:8]}"
        screen.see(PROMPT).type(f"exec -a {mark} sleep 1000\r")
        eventually(lambda: mark in box.out("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", lane=mark), what="it runs")
        screen.type("\r~.")
        screen.see("\x1b7\x1b[?1049l").see("\x1b7\x1b[r\x1b8")  # the cursor stays: both would move it
        assert screen.end() == 0
        assert screen.restored()
    eventually(lambda: f"{mark} 1000" not in box.out("cat /proc/[0-9]*/cmdline | tr '\\0' ' '", lane=mark), what="it is gone")


def test_tilde_tilde_and_help(ctl, box):
    with shell(ctl, box) as screen:
        screen.see(PROMPT).type("~?").see("ends the session").type("\r").see(PROMPT)
        screen.type("~~x\x15echo fi''ne\r").see("~x").see("fine")


def test_a_session_is_left_and_come_back_to(ctl, box):
    with shell(ctl, box) as screen:
        screen.see(PROMPT).type("left=$((6 * 7))\r").see(PROMPT).type("~d").see("to come back:")
        assert screen.end() == 0
        assert screen.restored()
        session = re.search(r"--attach ([0-9a-f-]{36})", screen.text).group(1)
    with Screen([ORCHARDCTL, "shell", box.id, "--attach", session], ctl.env) as screen:
        screen.type("echo it-was-$left; exit 5\r").see("it-was-42")
        assert screen.end() == 5
    with Screen([ORCHARDCTL, "shell", box.id, "--attach", session], ctl.env) as screen:
        assert screen.end() == 4
        assert "no such session" in screen.text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGABRT, signal.SIGSEGV])
def test_the_terminal_is_restored_whatever_ends_us(ctl, box, number):
    with shell(ctl, box) as screen:
        screen.see(PROMPT)
        assert screen.is_raw()
        screen.signal(number)
        assert screen.end() == 128 + number
        assert screen.restored()


def test_a_broken_connection_is_made_anew_without_loss(ctl, box, wire):
    env = {"SANDBOX_BASE_URL": f"http://127.0.0.1:{wire.port}"}
    with shell(ctl, box, env=env) as screen:
        screen.see(PROMPT).type("n=0; while [ $n -lt 1000 ]; do n=$((n+1)); echo line-$n; read -t 0.001 x; done; echo d''one\r")
        for at in (100, 500):
            screen.see(f"line-{at}\r\n")
            wire.cut()
            screen.see("trying again").see("connected again")
        screen.see("done")
        lines = [line for line in screen.text.split("\r\n") if re.fullmatch(r"line-\d+", line)]
        assert lines == [f"line-{n}" for n in range(1, 1001)]
        screen.see(PROMPT).type("exit 9\r")
        assert screen.end() == 9


def test_what_stood_on_the_screen_is_drawn_again(ctl, box, wire):
    """Our words about a connection stand in what a program believes to be its screen."""
    env = {"SANDBOX_BASE_URL": f"http://127.0.0.1:{wire.port}"}
    with shell(ctl, box, env=env, program=("env", f"PS1={PROMPT}", "bash", "--norc")) as screen:
        screen.see(PROMPT).type("echo ha''lf").see("ha''lf")
        wire.cut()
        screen.see("connected again").see(f"{PROMPT}echo ha''lf").type("\r").see("half\r\n").see(PROMPT)
        screen.type("~?").see("ends the session").see(PROMPT).type("exit 9\r")
        assert screen.end() == 9
    draws = ("import os, signal\n"
             "signal.signal(signal.SIGWINCH, lambda *_: print('drawn on', *os.get_terminal_size(), flush=True))\n"
             "print('be''gun', flush=True)\n"
             "while True: signal.pause()\n")
    with shell(ctl, box, env=env, program=("python3", "-c", draws)) as screen:
        screen.see("begun")
        for _ in range(3):
            wire.cut()
            screen.see("connected again").see("drawn on 80 24")
        screen.type("\x03")
        assert screen.end() == 130


def test_who_waits_for_a_connection_can_leave(ctl, box, wire):
    env = {"SANDBOX_BASE_URL": f"http://127.0.0.1:{wire.port}"}
    with shell(ctl, box, env=env) as screen:
        screen.see(PROMPT)
        wire.closed = True
        wire.cut()
        screen.see("trying again").type("\x03")
        assert screen.end() == 130
        assert screen.restored()
        assert "--attach" in screen.text


def test_without_reconnect_a_broken_connection_ends_it(ctl, box, wire):
    env = {"SANDBOX_BASE_URL": f"http://127.0.0.1:{wire.port}"}
    with shell(ctl, box, "--reconnect", "0", env=env) as screen:
        screen.see(PROMPT)
        wire.cut()
        assert screen.end() == 3
        assert screen.restored()


def test_a_killed_gateway_is_survived(make_server, tmp_path):
    server = make_server().start()
    box = server.create()
    with shell(Ctl(server, tmp_path), box) as screen:
        screen.see(PROMPT).type("kept=$((6 * 7))\r").see(PROMPT)
        for pid in server.processes()["gateway"]:
            subprocess.run(["kill", "-KILL", str(pid)], check=True)
        screen.see("connected again").type("echo it-is-$kept; exit 6\r").see("it-is-42")
        assert screen.end() == 6


def test_a_deleted_sandbox_ends_it_with_words(ctl, fresh):
    with shell(ctl, fresh) as screen:
        screen.see(PROMPT)
        fresh.delete()
        assert screen.end() in (1, 4)
        assert screen.restored()
        assert "deleted" in screen.text


def test_suspended_and_continued_by_the_shell_here(ctl, box):
    """~^Z and fg: as with ssh, the shell here gets its terminal back meanwhile."""
    with Screen(["bash", "--norc", "--noprofile", "-i"], ctl.env | {"PS1": "local> "}) as screen:
        screen.see("local> ").type(f"{ORCHARDCTL} shell {box.id} -- env 'PS1={PROMPT}' bash --norc\r").see("\n").see(PROMPT)
        screen.type("kept=$((6 * 7))\r").see(PROMPT).type("~\x1a").see("Stopped").see("local> ")
        screen.type("echo lo''cal\r").see("local\r\n").type("fg\r").see("bash --norc\r\n").see(PROMPT)
        screen.type("echo it-is-$kept\r").see("it-is-42").see(PROMPT).type("exit 4\r")
        screen.see("local> ").type("echo code=$?\r").see("code=4").see("local> ").type("exit\r")
        screen.end()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_in_tmux(ctl, box, tmp_path):
    """A real terminal emulator: its size, its redraws, its detach."""
    tmux = ["tmux", "-S", str(tmp_path / "tmux"), "-f", "/dev/null"]

    def run(*words):
        return subprocess.run([*tmux, *words], env=ctl.env, check=True, capture_output=True, text=True).stdout

    command = f"{ORCHARDCTL} shell {box.id} -- env 'PS1={PROMPT}' bash --norc; echo code=$?; read x"
    run("new-session", "-d", "-s", "t", "-x", "90", "-y", "27", command)
    try:
        eventually(lambda: PROMPT.strip() in run("capture-pane", "-p", "-t", "t"), what="prompt")
        run("send-keys", "-t", "t", "stty size; echo $TERM", "Enter")
        eventually(lambda: re.search(r"2[67] 90", run("capture-pane", "-p", "-t", "t")), what="size")
        run("resize-window", "-t", "t", "-x", "120", "-y", "40")
        run("send-keys", "-t", "t", "until stty size | grep -qE '^(39|40) 120'; do sleep 0.1; done; echo si''zed", "Enter")
        eventually(lambda: "sized" in run("capture-pane", "-p", "-t", "t"), what="new size")
        run("send-keys", "-t", "t", "(echo be''gun; exec sleep 1000)", "Enter")
        eventually(lambda: "begun" in run("capture-pane", "-p", "-t", "t"), what="what Ctrl-C is for")
        run("send-keys", "-t", "t", "C-c")
        run("send-keys", "-t", "t", "exit 12", "Enter")
        eventually(lambda: "code=12" in run("capture-pane", "-p", "-t", "t"), what="exit")
    finally:
        run("kill-server")


def test_what_can_not_be_is_refused_before_anything(ctl, box):
    with Screen([ORCHARDCTL, "shell", "no-such-box"], ctl.env) as screen:
        assert screen.end() == 4
        assert "no-such-box" in screen.text
    done = ctl.run("shell", box.id)
    assert done.returncode == 2
    assert b"no terminal" in done.stderr
    assert b"exec -i" in done.stderr
    with Screen([ORCHARDCTL, "shell", box.id, "--", "/no/such/program"], ctl.env) as screen:
        assert screen.end() in (125, 127)


def test_words_without_a_meaning(ctl):
    for words in (["shell"], ["shell", "x", "--attach", "nonsense"], ["shell", "x", "--reconnect", "soon"],
                  ["shell", "x", "-e", "=1"]):
        done = ctl.run(*words)
        assert done.returncode == 2, words
        assert done.stdout == b""
        assert b"--help" in done.stderr
