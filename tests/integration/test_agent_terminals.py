# SPDX-License-Identifier: MIT
"""Terminals of a real agent, which is PID 1 of its own namespace, spoken to by a WebSocket library."""

import hashlib
import os
import socket

import pytest
import agent_terminal  # noqa: F401  (finds rig)
import rig
from agent_terminal import Terminal, alive, descriptors
from orchard_server import AGENT, eventually


@pytest.fixture(scope="module")
def agent():
    agent = rig.Agent(str(AGENT))
    yield agent
    agent.close()


@pytest.fixture
def open_terminal(agent):
    opened = []

    def do(init, query="", on=agent):
        opened.append(Terminal(on, init, query))
        return opened[-1]

    yield do
    for terminal in opened:
        terminal.ws.close()


def sessions(agent):
    return agent.call("GET", "/pty/sessions")[1]["sessions"]


def memory(agent):
    with open("/proc/%d/smaps_rollup" % agent.pid) as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))


def sh(script, **more):
    return dict(cmd=["sh", "-c", script], **more)


def bash(script, **more):
    return dict(cmd=["bash", "-c", script], **more)


def test_b128_all_output_comes_before_the_exit(open_terminal):
    wanted = b"".join(b"%d\r\n" % n for n in range(1, 20001)) + b"END\r\n"
    for _ in range(10):
        terminal = open_terminal(sh("seq 1 20000; echo END"))
        assert terminal.finish() == 0
        assert terminal.output == wanted
        assert terminal.closed == 1000
        assert [message["type"] for message in terminal.messages] == ["ready", "exit"]


def test_b128_output_of_a_program_that_closed_its_terminal(open_terminal):
    terminal = open_terminal(sh("exec 3>/dev/tty; exec <&- >&- 2>&- 3>&-; sleep 0.2; echo late >/dev/tty"))
    assert terminal.finish() == 0
    assert terminal.output == b"late\r\n"


def test_b129_background_process_does_not_delay_the_exit(agent, open_terminal):
    terminal = open_terminal(bash("trap '' HUP; sleep 301.129 & echo x"))
    assert terminal.finish() == 0
    assert terminal.output == b"x\r\n"
    # As after a command: what the leader left behind when it ended by itself lives on.
    assert b"301.129" in agent.run("pgrep -fx 'sleep 301.129' -a; pkill -fx 'sleep 301.129'")["stdout"]


def test_b129_background_process_that_writes_for_ever_is_cut(open_terminal):
    terminal = open_terminal(bash("trap '' HUP; yes 2>/dev/null & echo first"))
    assert terminal.finish() == 0
    assert b"first\r\n" in terminal.output


def test_b130_nothing_is_left_of_dropped_clients(agent):
    before = descriptors(agent)
    terminals = [Terminal(agent, dict(cmd=["sleep", "600"])) for _ in range(50)]
    for terminal in terminals:
        terminal.message("ready")
    assert alive(agent, "sleep") == 50
    for terminal in terminals:
        terminal.ws.socket.shutdown(socket.SHUT_RDWR)
    eventually(lambda: alive(agent, "sleep") == 0)
    eventually(lambda: not sessions(agent))
    eventually(lambda: descriptors(agent) <= before + 2, what=lambda: descriptors(agent))
    for terminal in terminals:
        terminal.ws.close()


@pytest.mark.parametrize("script", [
    "trap '' HUP; echo R; sleep 602",
    "nohup sleep 602 & echo R; sleep 602",
    "setsid sleep 602 & echo R; sleep 602",
    "set -m; sleep 602 & kill -STOP $!; echo R; sleep 602",
    "echo R; kill -STOP $$",
])
def test_b130_whatever_it_started_ends_with_the_connection(agent, open_terminal, script):
    terminal = open_terminal(bash(script))
    terminal.read_until(b"R\r\n")
    terminal.ws.socket.shutdown(socket.SHUT_RDWR)
    eventually(lambda: not sessions(agent))
    assert alive(agent, "sleep") == 0


def test_hang_up_can_be_answered(agent, open_terminal, tmp_path):
    mark = tmp_path / "mark"
    terminal = open_terminal(bash(f"trap 'echo bye > {mark}; exit 3' HUP; echo R; while :; do sleep 0.05; done"))
    terminal.read_until(b"R\r\n")
    terminal.say(type="close")
    assert terminal.finish() == 3
    assert mark.read_text() == "bye\n"


def test_u031_close_ends_what_ignores_it(open_terminal):
    terminal = open_terminal(bash("trap '' HUP TERM INT; echo R; while :; do sleep 1; done"))
    terminal.read_until(b"R\r\n")
    terminal.say(type="close")
    assert terminal.finish() == -9
    assert terminal.closed == 1000


def test_b132_paste_of_a_mib_arrives_whole(open_terminal):
    text = b"".join(b"%06d %s\n" % (n, b"x" * 56) for n in range(1 << 14))
    assert len(text) == 1 << 20
    terminal = open_terminal(bash("stty -echo; echo R; head -c %d | md5sum" % len(text)))
    terminal.read_until(b"R\r\n")
    terminal.type(text)
    assert terminal.read_until(b"-\r\n").split()[0].decode() == hashlib.md5(text).hexdigest()
    assert terminal.finish() == 0


def test_b132_paste_into_cat_comes_back_whole(open_terminal):
    text = b"".join(b"%06d %s\n" % (n, b"y" * 56) for n in range(1 << 14))
    terminal = open_terminal(bash("stty -echo; echo R; exec cat"))
    terminal.read_until(b"R\r\n")
    terminal.type(text + b"\x04")  # by a client that reads nothing meanwhile
    assert terminal.finish() == 0
    assert terminal.output == text.replace(b"\n", b"\r\n")


def test_b132_raw_paste_lets_others_go_on(open_terminal, tmp_path):
    text = os.urandom(200000)
    mark = tmp_path / "mark"
    terminal = open_terminal(bash(f"stty raw -echo; echo R; until [ -e {mark} ]; do sleep 0.05; done; "
                                  "head -c 200000 | md5sum"))
    other = open_terminal(dict(cmd=["cat"]))
    terminal.read_until(b"R")
    terminal.type(text)
    other.type(b"meanwhile\n")
    other.read_until(b"meanwhile\r\nmeanwhile\r\n")
    mark.touch()
    assert terminal.read_until(b"-").split()[-2].decode() == hashlib.md5(text).hexdigest()


def test_b132_unread_paste_is_bounded(agent, open_terminal):
    terminal = open_terminal(bash("stty raw -echo; echo R; exec sleep 600"))
    terminal.read_until(b"R")
    before = memory(agent)
    terminal.ws.socket.settimeout(2)
    frame = b"\x82\xff" + (1 << 30).to_bytes(8, "big") + bytes(4)
    sent = 0
    with pytest.raises(TimeoutError):
        terminal.ws.socket.sendall(frame)
        while sent < 1 << 26:
            sent += terminal.ws.socket.send(bytes(65536))
    assert sent < 1 << 23
    assert memory(agent) < before + 4096
    terminal.ws.socket.shutdown(socket.SHUT_RDWR)
    eventually(lambda: not sessions(agent))


def test_b132_unread_input_in_small_frames_is_bounded(agent, open_terminal):
    terminal = open_terminal(bash("stty raw -echo; echo R; exec sleep 600"))
    terminal.read_until(b"R")
    before = memory(agent)
    frame = b"\x82\x81" + bytes(4) + b"\n"
    terminal.ws.socket.sendall(frame * 60000)
    assert terminal.ws.ping().wait(60)
    assert memory(agent) < before + 4096


def test_b134_slow_reader_slows_the_program(agent, open_terminal):
    terminal = open_terminal(dict(cmd=["seq", "1000000000"]))
    other = open_terminal(dict(cmd=["cat"]))
    terminal.message("ready")
    before = memory(agent)
    # Nobody takes what the client's own thread reads, so it stops after a few frames.
    seen = [0, 1]

    def stands():
        seen[0], seen[1] = seen[1], sessions(agent)[0]["bytes"]
        other.type(b"x\n")
        other.read_until(b"x\r\nx\r\n")
        return seen[0] == seen[1] and seen[1] > 100000

    eventually(stands, timeout=60)
    assert memory(agent) < before + 4096
    while len(terminal.output) < seen[1] + 100000:
        assert terminal.step()
    lines = terminal.output.split(b"\r\n")[:-1]
    assert lines == [b"%d" % n for n in range(1, len(lines) + 1)]


def test_b024_characters_are_whole_when_joined(open_terminal):
    terminal = open_terminal(dict(cmd=["python3", "-c", "print('\u2615'*100000,end='')"]))
    assert terminal.finish() == 0
    assert terminal.output.decode() == "\u2615" * 100000


def test_b051_programs_get_no_descriptor_but_their_terminal(agent, open_terminal):
    others = [open_terminal(dict(cmd=["cat"])) for _ in range(20)]
    for other in others:
        other.message("ready")
    terminal = open_terminal(dict(cmd=["ls", "/proc/self/fd"]))
    assert terminal.finish() == 0
    assert terminal.output.split() == [b"0", b"1", b"2", b"3"]
    assert agent.run("ls /proc/self/fd")["stdout"].split() == [b"0", b"1", b"2", b"3"]


def test_b137_size_is_there_before_the_program(open_terminal):
    for _ in range(10):
        terminal = open_terminal(dict(cmd=["stty", "size"], rows=50, cols=132))
        assert terminal.finish() == 0
        assert terminal.output == b"50 132\r\n"
    terminal = open_terminal(dict(cmd=["stty", "size"]))
    terminal.finish()
    assert terminal.output == b"24 80\r\n"


def test_b137_resize_is_told(open_terminal):
    terminal = open_terminal(bash("trap 'stty size' WINCH; echo R; while :; do sleep 0.05; done"))
    terminal.read_until(b"R\r\n")
    for rows, cols in ((0, 80), (-1, 80), (70000, 80), ("x", 80), (24, None)):
        terminal.say(type="resize", rows=rows, cols=cols)
        assert "rows" in terminal.message("error")["message"] or cols is None
    terminal.say(type="resize", rows=40, cols=101)
    assert terminal.read_until(b"\r\n") == b"40 101\r\n"


@pytest.mark.parametrize("init, words", [
    (dict(rows=0), "rows"),
    (dict(rows=-1), "rows"),
    (dict(rows=70000), "rows"),
    (dict(cols="x"), "cols"),
    (dict(cmd=[]), "cmd"),
    (dict(cmd="ls"), "cmd"),
    (dict(cmd=["ls", 5]), "cmd: item 1"),
    (dict(cmd=["ls\0"]), "cmd: item 0"),
    (dict(env={"A": 5}), "env"),
    (dict(env={"A=B": "c"}), "env"),
    (dict(env=[]), "env"),
    (dict(cwd=5), "cwd"),
    (dict(login_shell="yes"), "login_shell"),
    (dict(type="stdin"), "type"),
])
def test_u033_bad_init_is_named_and_starts_nothing(agent, open_terminal, init, words):
    terminal = open_terminal({"cmd": ["sleep", "603"], **init})
    assert terminal.finish() is None
    assert words in terminal.messages[0]["message"]
    assert [message["type"] for message in terminal.messages] == ["error"]
    assert terminal.closed == 4400
    assert alive(agent, "sleep") == 0


@pytest.mark.parametrize("first", ["[]", "{", "null", '{"type":"init","type":"init"}', b"ls\n"])
def test_u033_first_message_must_be_an_init(open_terminal, first):
    terminal = open_terminal(None)
    terminal.ws.send(first)
    assert terminal.finish() is None
    assert (terminal.messages[0]["type"], terminal.closed) == ("error", 4400)


@pytest.mark.parametrize("init, code", [
    (sh("exit 7"), 7),
    (sh("kill -9 $$"), -9),
    (sh("kill -TERM $$"), -15),
    (dict(cmd=["nosuch"]), 127),
    (dict(cmd=["/etc/passwd"]), 126),
    (dict(cmd=["true"], cwd="/nonexistent"), 126),
    (dict(cmd=["true"], user="nobodyknows"), 126),
    (dict(cmd=["true"]), 0),
])
def test_b139_exit_codes(open_terminal, init, code):
    terminal = open_terminal(init)
    assert terminal.finish() == code
    assert terminal.closed == 1000
    never_started = code in (126, 127)
    assert [message["type"] for message in terminal.messages] == ["error" if never_started else "ready", "exit"]


def test_b139_interrupt_stops_the_foreground_only(open_terminal):
    terminal = open_terminal(dict(cmd=["bash", "--norc", "-i"], env={"PS1": "$ "}))
    terminal.read_until(b"$ ")
    # What says go is in the foreground by then; a `sleep` behind it would still have to get there.
    terminal.type(b"(echo g''o; exec sleep 50)\n")
    terminal.read_until(b"go\r\n")
    terminal.type(b"\x03")
    terminal.type(b"echo ne''xt\n")
    terminal.read_until(b"next\r\n")
    terminal.type(b"exit 5\n")
    assert terminal.finish() == 5


def test_b139_signals_go_to_the_foreground_group(open_terminal):
    terminal = open_terminal(bash("trap 'echo one' USR1; trap 'echo int; exit 4' INT; echo R; "
                                  "while :; do sleep 0.05; done"))
    terminal.read_until(b"R\r\n")
    terminal.say(type="signal", sig="FOO")
    assert "FOO" not in terminal.message("error").get("type")
    terminal.say(type="signal", sig="USR1")
    terminal.read_until(b"one\r\n")
    terminal.say(type="signal")
    terminal.message("error")
    terminal.say(type="what")
    terminal.message("error")
    terminal.ws.send("{")
    terminal.message("error")
    terminal.say(type="signal", sig="INT")
    assert terminal.finish() == 4
    assert terminal.output == b"int\r\n"


def test_program_has_a_controlling_terminal_of_its_own(open_terminal):
    script = ("tty; test -t 0 && test -t 1 && test -t 2 && echo three; echo $TERM; "
              "python3 -c 'import os; print(os.getsid(0) == os.getppid() == os.tcgetpgrp(0)); open(\"/dev/tty\")'; :")
    terminal = open_terminal(bash(script))
    assert terminal.finish() == 0
    lines = terminal.output.split(b"\r\n")
    assert lines[0].startswith(b"/dev/pts/")
    assert lines[1:4] == [b"three", b"xterm-256color", b"True"]


def test_environment_user_and_directory_are_as_of_a_command(open_terminal):
    terminal = open_terminal(sh("echo $TERM $A; id -u; pwd; stat -c %u $(tty); umask",
                                env={"TERM": "dumb", "A": "b"}, cwd="/tmp", user="65534"))
    assert terminal.finish() == 0
    assert terminal.output == b"dumb b\r\n65534\r\n/tmp\r\n65534\r\n0022\r\n"


def test_no_command_means_the_shell_of_the_user(open_terminal):
    terminal = open_terminal({})
    terminal.type(b"echo $0 $((6*7)); exit 3\n")
    assert terminal.finish() == 3
    assert b" 42\r\n" in terminal.output


@pytest.fixture
def home(tmp_path):
    (tmp_path / ".bash_profile").write_text("export FROM_PROFILE=one\n")
    (tmp_path / ".bashrc").write_text("case $- in *i*) ;; *) return;; esac\nexport FROM_RC=two\n")
    return {"HOME": str(tmp_path)}


@pytest.mark.parametrize("cmd", [None, ["bash", "-c", "echo $FROM_PROFILE-$FROM_RC; exit 6"]])
def test_login_shell_reads_profile_and_bashrc(open_terminal, home, cmd):
    terminal = open_terminal(dict(cmd=cmd, login_shell=True, env=home))
    if cmd is None:
        terminal.type(b"echo $FROM_PROFILE-$FROM_RC; exit 6\n")
    assert terminal.finish() == 6
    assert b"one-two\r\n" in terminal.output


def test_session_is_attached_to_again(agent, open_terminal):
    first = open_terminal(dict(cmd=["cat"], detach=True))
    ready = first.message("ready")
    assert ready["offset"] == 0
    first.type(b"one\n")
    assert first.read_until(b"one\r\none\r\n") == b"one\r\none\r\n"
    first.ws.close()
    eventually(lambda: not sessions(agent)[0]["attached"])

    query = "?session=%s&offset=%%d" % ready["session"]
    second = open_terminal(None, query % 5)
    again = second.message("ready")
    assert (again["session"], again["pid"], again["offset"]) == (ready["session"], ready["pid"], 5)
    second.type(b"two\n")
    assert second.read_until(b"two\r\ntwo\r\n") == b"one\r\ntwo\r\ntwo\r\n"

    third = open_terminal(None, query % 10)
    assert third.message("ready")["offset"] == 10
    assert second.finish() is None
    assert "elsewhere" in second.messages[-1]["message"] and second.closed == 4409
    third.type(b"\x04")
    assert third.finish() == 0
    assert third.output == b"two\r\ntwo\r\n"
    eventually(lambda: not sessions(agent))


def test_session_without_detach_is_its_clients_alone(open_terminal):
    terminal = open_terminal(dict(cmd=["cat"]))
    session = terminal.message("ready")["session"]
    with pytest.raises(Exception, match="404"):
        open_terminal(None, "?session=" + session)
    terminal.type(b"mine\n")
    terminal.read_until(b"mine\r\nmine\r\n")


def test_replay_holds_the_last_mib(agent, open_terminal):
    terminal = open_terminal(dict(cmd=["sh", "-c", "stty -onlcr; seq 1 400000; echo END"], detach=True))
    session = terminal.message("ready")["session"]
    terminal.ws.close()
    eventually(lambda: sessions(agent)[0]["state"] == "ended", timeout=60)
    described = sessions(agent)[0]
    whole = b"".join(b"%d\n" % n for n in range(1, 400001)) + b"END\n"
    assert (described["bytes"], described["first_offset"]) == (len(whole), len(whole) - (1 << 20))
    late = open_terminal(None, "?session=" + session)
    assert late.finish() == 0
    assert late.messages[0]["offset"] == len(whole) - (1 << 20)
    assert late.output == whole[-(1 << 20):]
    eventually(lambda: not sessions(agent))
    with pytest.raises(Exception, match="404"):
        Terminal(agent, None, "?session=" + session)


def test_ended_session_is_kept_until_it_was_delivered(agent, open_terminal, tmp_path):
    mark = tmp_path / "mark"
    terminal = open_terminal(sh(f"until [ -e {mark} ]; do sleep 0.05; done; echo done; exit 9", detach=True))
    session = terminal.message("ready")["session"]
    terminal.ws.close()
    eventually(lambda: not sessions(agent)[0]["attached"])
    mark.touch()
    eventually(lambda: sessions(agent)[0]["state"] == "ended")
    raw, _ = upgrade(agent, path="/pty?session=" + session)
    raw.close()  # attached, and gone before it said that it has all
    eventually(lambda: not sessions(agent)[0]["attached"])
    late = open_terminal(None, "?session=" + session)
    assert late.finish() == 9
    assert late.output == b"done\r\n"
    eventually(lambda: not sessions(agent))


def test_session_is_deleted(agent, open_terminal):
    terminal = open_terminal(dict(cmd=["sleep", "604"], detach=True))
    session = terminal.message("ready")["session"]
    terminal.ws.close()
    eventually(lambda: not sessions(agent)[0]["attached"])
    assert agent.call("GET", "/health")[1]["terminals"] == 1
    status, told = agent.call("DELETE", "/pty/" + session)
    assert (status, told["session"], told["state"]) == (200, session, "running")
    eventually(lambda: not sessions(agent))
    assert alive(agent, "sleep") == 0
    assert agent.call("DELETE", "/pty/" + session)[0] == 404
    viewed = open_terminal(dict(cmd=["sleep", "604"]))
    agent.call("DELETE", "/pty/" + viewed.message("ready")["session"])
    assert viewed.finish() == -1


def upgrade(agent, headers=None, path="/pty", method="GET"):
    """A raw socket and the head of the answer."""
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(60)
    raw.connect(agent.path)
    wanted = {"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID, "Upgrade": "websocket",
              "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
              "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", **(headers or {})}
    lines = "".join("%s: %s\r\n" % item for item in wanted.items() if item[1] is not None)
    raw.sendall(("%s %s HTTP/1.1\r\nHost: agent\r\n%s\r\n" % (method, path, lines)).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += raw.recv(1)
    return raw, head.decode()


@pytest.mark.parametrize("headers, path, method, status", [
    ({"X-Orchard-Token": "wrong"}, "/pty", "GET", 403),
    ({"Upgrade": None}, "/pty", "GET", 426),
    ({"Upgrade": "h2c"}, "/pty", "GET", 426),
    ({"Connection": "keep-alive"}, "/pty", "GET", 426),
    ({"Sec-WebSocket-Version": "8"}, "/pty", "GET", 426),
    ({"Sec-WebSocket-Key": "short"}, "/pty", "GET", 400),
    ({}, "/pty", "POST", 405),
    ({}, "/pty?session=nosuch", "GET", 404),
    ({}, "/pty?offset=-1", "GET", 422),
    ({}, "/ptyx", "GET", 404),
    ({}, "/pty", "GET", 101),
])
def test_handshake_is_judged_before_the_upgrade(agent, headers, path, method, status):
    raw, head = upgrade(agent, headers, path, method)
    assert head.startswith("HTTP/1.1 %d " % status), head
    if status == 101:
        assert "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in head
    raw.close()


def read_frame(raw):
    head = raw.recv(2, socket.MSG_WAITALL)
    size = head[1] & 127
    if size == 126:
        size = int.from_bytes(raw.recv(2, socket.MSG_WAITALL), "big")
    return head[0] & 15, raw.recv(size, socket.MSG_WAITALL) if size else b""


@pytest.mark.parametrize("frame, code", [
    (b"\x81\x05Hello", 1002),
    (b"\xc1\x80\0\0\0\0", 1002),
    (b"\x09\x80\0\0\0\0", 1002),
    (b"\x80\x80\0\0\0\0", 1002),
    (b"\x83\x80\0\0\0\0", 1002),
    (b"\x81\x81\0\0\0\0\xff", 1007),
    (b"\x81\xff\0\0\0\0\x7f\0\0\0\0\0\0\0", 1009),
    (b"\x88\x82\0\0\0\0\x03\xed", 1002),
    (b"\x88\x82\0\0\0\0\x03\xe8", 1000),
])
def test_broken_frames_are_answered_with_a_close(agent, frame, code):
    raw, _ = upgrade(agent)
    raw.sendall(frame)
    opcode, payload = read_frame(raw)
    assert (opcode, int.from_bytes(payload[:2], "big")) == (8, code)
    assert (len(payload) > 2) == (code != 1000)  # a fault is named
    assert raw.recv(1) == b""
    raw.close()


def mask(opcode, payload):
    assert len(payload) < 126
    return bytes([0x80 | opcode, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def test_frames_behind_the_request_are_not_lost(agent):
    raw = socket.socket(socket.AF_UNIX)
    raw.settimeout(60)
    raw.connect(agent.path)
    head = ("GET /pty HTTP/1.1\r\nHost: agent\r\nX-Orchard-Token: %s\r\nX-Orchard-Sandbox: %s\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            % (rig.TOKEN, rig.UID)).encode()
    raw.sendall(head + mask(1, b'{"type":"init","cmd":["head","-n1"]}') + mask(2, b"early\n") + mask(9, b"x"))
    answer = b""
    while not answer.endswith(b"\x88\x02\x03\xe8"):
        piece = raw.recv(4096)
        assert piece, answer
        answer += piece
    assert answer.count(b"early\r\n") == 2
    assert b"\x8a\x01x" in answer
    raw.close()


@pytest.fixture(scope="module")
def hasty():
    """Pings soon, allows few terminals, keeps ended ones for a moment."""
    agent = rig.Agent(str(AGENT), terminal_ping_ms=200, terminal_max=3, terminal_keep_ms=300, terminal_grace_ms=100)
    yield agent
    agent.close()


def test_b135_idle_peers_are_pinged_and_live(hasty, open_terminal):
    terminal = open_terminal(dict(cmd=["cat"]), on=hasty)
    terminal.message("ready")
    with pytest.raises(TimeoutError):
        terminal.ws.recv(2)
    terminal.type(b"hi\n")
    terminal.read_until(b"hi\r\nhi\r\n")


def test_b135_peers_that_do_not_answer_are_dropped(hasty):
    raw, _ = upgrade(hasty)
    raw.sendall(mask(1, b'{"type":"init","cmd":["sleep","605"]}'))
    kinds = []
    try:
        while True:
            kinds.append(read_frame(raw)[0])
    except IndexError:
        pass
    assert kinds[0] == 1 and 9 in kinds
    eventually(lambda: not sessions(hasty))
    assert alive(hasty, "sleep") == 0
    raw.close()


def test_b135_slow_peers_are_not_dropped(hasty):
    raw, _ = upgrade(hasty)
    raw.sendall(mask(1, b'{"type":"init","cmd":["cat"]}'))
    eventually(lambda: sessions(hasty))
    with pytest.raises(AssertionError):  # nothing is read, not even a ping
        eventually(lambda: not sessions(hasty), timeout=2)
    raw.close()
    eventually(lambda: not sessions(hasty))


def test_too_many_terminals_are_refused(hasty):
    terminals = [Terminal(hasty, dict(cmd=["cat"])) for _ in range(3)]
    for terminal in terminals:
        terminal.message("ready")
    with pytest.raises(Exception, match="503"):
        Terminal(hasty, dict(cmd=["cat"]))
    for terminal in terminals:
        terminal.ws.close()
    eventually(lambda: not sessions(hasty))


def test_ended_session_is_forgotten_in_time(hasty, open_terminal):
    terminal = open_terminal(sh("sleep 0.3", detach=True), on=hasty)
    terminal.message("ready")
    terminal.ws.close()
    eventually(lambda: sessions(hasty)[0]["state"] == "ended")
    eventually(lambda: not sessions(hasty))


def test_end_of_the_agent_ends_terminals():
    agent = rig.Agent(str(AGENT))
    terminal = Terminal(agent, bash("trap '' HUP TERM; echo R; sleep 606"))
    terminal.read_until(b"R\r\n")
    detached = Terminal(agent, dict(cmd=["sleep", "606"], detach=True))
    detached.message("ready")
    detached.ws.close()
    agent.close()
    terminal.finish()
    assert terminal.closed == 1006
