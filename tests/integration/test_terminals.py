"""Terminals through the whole server, with a WebSocket client that nobody here wrote."""

import asyncio
import base64
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
from pathlib import Path

import pytest
import websocket
import websockets.asyncio.client
from orchard_server import SANITIZED, eventually
from terminals import Terminal


def rss(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return 0


def gateway(server):
    return server.processes()["gateway"]


def refusal(box, query="", headers=None, subprotocols=None):
    """(status, body) of a handshake that is refused."""
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        Terminal(box, query=query, headers=headers, subprotocols=subprotocols)
    return refused.value.status_code, json.loads(refused.value.resp_body)


# --- programs ------------------------------------------------------------------

def test_b128_all_output_comes_before_the_exit(box):
    for _ in range(5):
        with Terminal(box, ["sh", "-c", "seq 1 20000; echo END"]).ready() as terminal:
            assert terminal.end() == 0
            assert terminal.code == 1000 and not terminal.errors()
            assert terminal.output.endswith(b"END\r\n") and terminal.output.count(b"\r\n") == 20001


def test_a_shell_answers(box):
    with Terminal(box, ["sh"], env={"PS1": "> "}).ready() as terminal:
        terminal.see("> ").type("echo $((6 * 7))\n")
        terminal.see("42\r\n").type("exit 3\n")
        assert terminal.end() == 3 and terminal.code == 1000


def test_b129_a_background_process_does_not_hold_the_end_up(box):
    with Terminal(box, ["bash", "-c", "trap '' HUP; sleep 300 & echo x"]).ready() as terminal:
        assert terminal.end() == 0 and b"x\r\n" in terminal.output


def test_b130_the_program_goes_with_its_client(box):
    terminals = [Terminal(box, ["sleep", "617"]).ready() for _ in range(10)]
    for number, terminal in enumerate(terminals):
        if number % 2:  # a reset, not a close
            terminal.ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            terminal.ws.sock.close()
        else:
            terminal.ws.close()
    eventually(lambda: "sleep 617" not in box.exec("ps ax -o args", lane="watch")["stdout"], 30, "programs are gone")


def test_b132_a_big_paste_arrives_whole(box):
    data = os.urandom(1024 * 1024)
    with Terminal(box, ["bash", "-c", f"stty raw -echo; echo R; head -c {len(data)} | md5sum"]).ready() as terminal, \
            Terminal(box, ["cat"]).ready() as other:
        terminal.see("R")
        terminal.type(data)
        other.type("hello\n")
        other.see("hello\r\nhello\r\n")
        assert terminal.end() == 0
        assert hashlib.md5(data).hexdigest().encode() in terminal.output


def test_b134_b151_a_slow_reader_slows_the_program(server, box):
    processes = gateway(server) + server.processes()["worker"] + [box.agent_pid()]
    with Terminal(box, ["sh", "-c", "stty raw; while :; do seq 1 100000; done"]).ready() as terminal:
        before = [rss(pid) for pid in processes]
        blocked = {}

        def written():  # stands still once every buffer is full
            now = box.exec("cat /proc/$(pgrep -o seq)/io 2>/dev/null | grep wchar; pgrep -o seq", lane="watch")["stdout"]
            same, blocked["last"] = now == blocked.get("last"), now
            return same and "wchar" in now

        eventually(written, 60, "the program is blocked")
        assert all(rss(pid) - start < 16 << 20 for pid, start in zip(processes, before)) or SANITIZED
        while len(terminal.output) < 8 << 20:
            assert terminal.hear() is not None
    lines = bytes(terminal.output).split(b"\n")[:-1]
    assert all(int(line) == number % 100000 + 1 for number, line in enumerate(lines)), "nothing is missing"


def test_b137_the_size(box):
    with Terminal(box, ["stty", "size"], rows=50, cols=132).ready() as terminal:
        assert terminal.end() == 0 and terminal.output == b"50 132\r\n"
    with Terminal(box, ["bash", "-c", "trap 'stty size' WINCH; echo R; while :; do sleep 0.05; done"]).ready() as terminal:
        terminal.see("R").send("resize", rows=33, cols=77)
        terminal.see("33 77\r\n")
        for rows in (0, -1, 70000, "x", None):
            terminal.send("resize", rows=rows, cols=80)
            assert "rows" in terminal.until("error")["message"]
        terminal.send("signal", sig="KILL")
        terminal.end()
    for rows in (0, -1, 70000, "x"):
        with Terminal(box, ["true"], rows=rows) as terminal:
            assert terminal.end() is None and terminal.code == 4400 and "rows" in terminal.errors()[0]


def test_b139_how_programs_end(box):
    for cmd, code in ((["sh", "-c", "kill -9 $$"], -9), (["nosuch"], 127), (["/etc/passwd"], 126)):
        with Terminal(box, cmd) as terminal:
            assert terminal.end() == code, (cmd, terminal.messages, terminal.code)
    with Terminal(box, ["bash", "--norc"], env={"PS1": "> "}).ready() as terminal:
        terminal.see("> ").type("sleep 50\n")
        eventually(lambda: "sleep 50" in box.exec("ps ax -o args", lane="watch")["stdout"], 20, "it sleeps")
        terminal.type(b"\x03")
        terminal.type("echo ne''xt\n")
        terminal.see("next\r\n").send("signal", sig="FOO")
        assert "sig" in terminal.until("error")["message"]
        terminal.type("echo still''here\n")
        terminal.see("stillhere").send("signal", sig="HUP")
        assert terminal.end() is not None


def test_close_ends_the_session(box):
    with Terminal(box, ["sleep", "600"]).ready() as terminal:
        terminal.send("close")
        terminal.end()
        assert terminal.code == 1000


# --- who may ---------------------------------------------------------------------

def test_b140_keys(server, box):
    key, wrong = server.key, "not-the-key"
    assert refusal(box, headers={})[0] == 401
    assert refusal(box, headers={"X-API-Key": wrong})[0] == 403
    assert refusal(box, headers={}, query=f"?api_key={wrong}")[0] == 403
    assert refusal(box, headers={}, subprotocols=["a", f"api_key.{wrong}"])[0] == 403
    for query, subprotocols, answered in ((f"?api_key={key}", None, None),
                                          ("", ["orchard.pty.v1", f"api_key.{key}"], "orchard.pty.v1"),
                                          ("", [f"api_key.{key}"], f"api_key.{key}")):
        with Terminal(box, ["true"], headers={}, query=query, subprotocols=subprotocols) as terminal:
            assert terminal.ws.subprotocol == answered
            assert terminal.end() == 0
    log = server.log_path.read_text()
    assert key not in log and wrong not in log


def test_refused_before_the_upgrade(server, box):
    url = f"{box.url}/exec/pty"
    answer = server.client.get(url)
    assert answer.status_code == 426 and answer.headers["upgrade"] == "websocket"
    assert server.client.head(url).status_code == 426
    assert server.client.post(url).status_code == 405
    assert server.client.get("/sandboxes/nobody/exec/pty").status_code == 404
    assert refusal(box, query="?session=nonsense")[0] == 422
    status, body = refusal(box, headers={"X-API-Key": server.key, "Sec-WebSocket-Version": "8"})
    assert status == 426 and body["code"] == "upgrade_required"


# --- breaking the rules --------------------------------------------------------------

def test_bad_first_messages(box):
    for text in ("", "[]", "{", '{"type":"stdin","data":""}', '{"type":"init","cmd":[]}', '{"type":"init","cmd":"x"}',
                 '{"type":"init","env":{"A=B":"c"}}', '{"type":"init","type":"init"}', '{"type":"init","cwd":1}'):
        with Terminal(box) as terminal:
            terminal.ws.send(text)
            terminal.end()
            assert terminal.code == 4400 and terminal.errors(), text


def test_an_init_that_is_too_long_for_agents(box):
    with Terminal(box, ["echo", "x" * (1536 * 1024)]) as terminal:
        terminal.end()
        assert terminal.code == 4400 and "too long" in terminal.errors()[0]


def test_bad_messages_change_nothing(box):
    with Terminal(box, ["cat"]).ready() as terminal:
        for text in ("", "nonsense", '{"type":"stdin","data":"@@@@"}', '{"type":"stdin"}', '{"type":"none"}',
                     '{"type":"init","cmd":["true"]}', '{"type":"signal","sig":"SIGKILL"}', '{"type":"resize","rows":1}'):
            terminal.ws.send(text)
            terminal.until("error")
        terminal.type("still\n")
        terminal.see("still\r\nstill\r\n")


def frame(opcode, payload=b"", fin=True, rsv=0, mask=b"\x01\x02\x03\x04", length=None):
    head = bytes([(0x80 if fin else 0) | rsv | opcode])
    size = len(payload) if length is None else length
    head += bytes([0x80 | size]) if size < 126 else bytes([0xFE]) + struct.pack(">H", size)
    return head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))


INIT = json.dumps({"type": "init", "cmd": ["cat"]}).encode()


def stdin(data):
    return frame(1, json.dumps({"type": "stdin", "data": base64.b64encode(data).decode()}).encode())


@pytest.mark.parametrize("cut", [None, 1, -1], ids=["one piece", "its first byte", "all but its last byte"])
def test_what_comes_together_with_init_is_typed(box, cut):
    """What the first message waits for must neither lose nor double what was read together with it."""
    count = 200
    typed = b"".join(b"line %d\n" % number for number in range(count))
    with Terminal(box) as terminal:
        rest = b"".join(stdin(line) for line in typed.splitlines(keepends=True))
        cmd = ["sh", "-c", f"head -n {count} > /tmp/typed"]
        terminal.ws.sock.sendall(frame(1, json.dumps({"type": "init", "cmd": cmd}).encode()) + rest[:cut])
        if cut is not None:
            terminal.ready().ws.sock.sendall(rest[cut:])
        assert terminal.end() == 0 and terminal.code == 1000
        assert terminal.output == typed.replace(b"\n", b"\r\n")  # its echo
    assert box.exec("cat /tmp/typed")["stdout"].encode() == typed


@pytest.mark.parametrize("name, sent, codes", [
    ("reserved bit", frame(1, b"x", rsv=0x40), {1002}),
    ("all reserved bits", frame(1, b"x", rsv=0x70), {1002}),
    ("reserved opcode", frame(3, b"x"), {1002}),
    ("reserved control opcode", frame(11), {1002}),
    ("fragmented ping", frame(9, b"x", fin=False), {1002}),
    ("long ping", frame(9, b"x" * 126), {1002, None}),
    ("continuation of nothing", frame(0, b"x"), {1002}),
    ("text inside a text", frame(1, b"x", fin=False) + frame(1, b"y"), {1002}),
    ("not UTF-8", frame(1, b'{"type":"\xff"}'), {1007}),
    ("half a character", frame(1, b"\xe2\x82"), {1007}),
    ("binary", frame(2, b"x"), {1003}),
    ("close with one byte", frame(8, b"x"), {1002, None}),
    ("close with 999", frame(8, struct.pack(">H", 999)), {1002, None}),
    ("close with 1005", frame(8, struct.pack(">H", 1005)), {1002, None}),
    ("close with 5000", frame(8, struct.pack(">H", 5000)), {1002, None}),
    ("close with bad UTF-8", frame(8, struct.pack(">H", 1000) + b"\xff"), {1002, 1007, None}),
])
def test_broken_frames(box, name, sent, codes):
    with Terminal(box, ["cat"]).ready() as terminal:
        terminal.ws.sock.sendall(sent)
        try:
            terminal.end()
        except (websocket.WebSocketException, ConnectionError):
            pass  # dropped without a word
        assert terminal.code in codes, (name, terminal.code, terminal.reason)


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1011, 3000, 3999, 4000, 4999])
def test_close_codes_come_back(box, code):
    with Terminal(box, ["cat"]).ready() as terminal:
        terminal.ws.sock.sendall(frame(8, struct.pack(">H", code) + b"bye"))
        terminal.end()
        assert terminal.code == code


def test_fragments_with_pings_between(box):
    text = json.dumps({"type": "stdin", "data": base64.b64encode("füü\n".encode()).decode()}).encode()
    with Terminal(box, ["cat"]).ready() as terminal:
        terminal.ws.sock.sendall(frame(1, text[:5], fin=False) + frame(9, b"p") + frame(0, text[5:9], fin=False)
                                 + frame(0, b"", fin=False) + frame(10, b"unasked") + frame(0, text[9:]))
        terminal.see("füü\r\n" * 2)
        for size in (0, 1, 125, 126, 127, 128, 65535):
            data = b"x" * (size - 1) + b"\n" if size else b""
            terminal.ws.sock.sendall(frame(1, json.dumps(
                {"type": "stdin", "data": base64.b64encode(data[:4000]).decode()}).encode()))
        terminal.send("signal", sig="INT")
        terminal.end()


def test_frames_come_with_the_handshake(server, box):
    head = (f"GET {box.url}/exec/pty HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nX-API-Key: {server.key}\r\n"
            "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n").encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(head + frame(1, json.dumps({"type": "init", "cmd": ["echo", "early"]}).encode()))
        heard = b""
        while b"exit" not in heard:
            heard += (part := connection.recv(65536))
            assert part, heard
    assert b" 101 " in heard and b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in heard and b"deflate" not in heard
    assert base64.b64encode(b"early\r\n") in heard


def test_a_message_that_is_too_long(make_server):
    server = make_server(terminal_message_bytes=65536).start()
    box = server.create()
    with Terminal(box, ["cat"]).ready() as terminal:
        terminal.type(b"x" * 65536)
        terminal.end()
        assert terminal.code == 1009


# --- many, and other clients ------------------------------------------------------------

def test_many_at_once_with_another_client(server, box):
    async def one(number):
        async with websockets.asyncio.client.connect(
                f"ws://127.0.0.1:{server.port}{box.url}/exec/pty",
                additional_headers={"X-API-Key": server.key}, open_timeout=60) as ws:
            await ws.send(json.dumps({"type": "init", "cmd": ["sh", "-c", f"read x; echo $x-{number}"]}))
            heard = b""
            async for text in ws:
                message = json.loads(text)
                if message["type"] == "ready":
                    await ws.send(json.dumps({"type": "stdin", "data": base64.b64encode(b"hello\n").decode()}))
                elif message["type"] == "stdout":
                    heard += base64.b64decode(message["data"])
            return ws.close_code, f"hello-{number}\r\n".encode() in heard

    async def all_of_them():
        return await asyncio.gather(*(one(number) for number in range(60)))

    assert asyncio.run(all_of_them()) == [(1000, True)] * 60
    text = server.client.get("/metrics").text
    assert "# HELP orchard_terminals " in text and "# HELP orchard_terminal_output_bytes_total " in text


NODE = """
const WebSocket = require(process.argv[1]);
const ws = new WebSocket(process.argv[2], ["orchard.pty.v1", "api_key." + process.argv[3]]);
const say = (type, more) => ws.send(JSON.stringify({ type, ...more }));
ws.on("open", () => {
    say("init", { cmd: ["sh", "-c", "read x; echo got-$x"] });
    say("stdin", { data: Buffer.from("node\\n").toString("base64") });
});
let output = "";
ws.on("message", (text) => {
    const message = JSON.parse(text);
    if (message.type === "stdout") output += Buffer.from(message.data, "base64").toString();
});
ws.on("error", (error) => console.log(error.message));
ws.on("close", (code) => console.log(ws.protocol, code, output.includes("got-node")));
"""


@pytest.mark.skipif(not Path("/usr/share/nodejs/ws").exists() or not shutil.which("node"), reason="NO node-ws HERE")
def test_the_client_of_node(server, box):
    ran = subprocess.run(["node", "-e", NODE, "/usr/share/nodejs/ws", f"ws://127.0.0.1:{server.port}{box.url}/exec/pty",
                          server.key], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "orchard.pty.v1 1000 true\n", ran


# --- coming back ------------------------------------------------------------------------------

def test_detach_and_attach(box):
    with Terminal(box, ["sh"], env={"PS1": "> "}, detach=True).ready() as terminal:
        session = terminal.started["session"]
        terminal.see("> ").type("X=kept\n")
        terminal.see("X=kept\r\n> ")
        seen = bytes(terminal.output)
    again = eventually(lambda: attach(box, f"?session={session}&offset=0"), 20, "it can be attached to")
    with again:
        again.see(seen).type("echo $X-indeed\n")
        again.see("kept-indeed")
        with Terminal(box, query=f"?session={session}").ready() as third:
            again.end()
            assert again.code == 4409
            third.see("kept-indeed").send("close")
            third.end()
    with Terminal(box, query="?session=0b0e7a52-6f3c-4c5b-9d0a-0123456789ab") as terminal:
        terminal.end()
        assert terminal.code == 4400 and "no such session" in terminal.errors()[0]


def attach(box, query):
    terminal = Terminal(box, query=query)
    message = terminal.hear()
    if message is not None and message["type"] == "ready":
        return terminal
    terminal.ws.shutdown()
    return None


# --- life and death ------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def own(make_server_session):
    server = make_server_session(terminal_ping_seconds=1).start()
    yield server
    server.close()


@pytest.fixture
def own_box(own):
    sandbox = own.create()
    yield sandbox
    sandbox.client.delete(sandbox.url)


@pytest.mark.parametrize("reset", [False, True])
def test_b130_a_program_that_reads_nothing_goes_with_its_client(own_box, reset):
    terminal = Terminal(own_box, ["sh", "-c", "stty raw -echo; echo R; exec sleep 618"]).ready().see("R")
    terminal.ws.settimeout(1)
    with pytest.raises(websocket.WebSocketTimeoutException):
        for _ in range(400):
            terminal.type(b"x" * 48000)
    assert "sleep 618" in own_box.exec("ps ax -o args", lane="watch")["stdout"]
    if reset:
        terminal.ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    terminal.ws.sock.close()
    eventually(lambda: "sleep 618" not in own_box.exec("ps ax -o args", lane="watch")["stdout"], 30, "it is gone")


DEAF = """stty raw -echo; trap 'stty size' WINCH; trap 'echo one' TERM; trap 'echo bye; exit 7' HUP; echo R
while :; do sleep 0.05; done"""


def test_what_is_no_input_goes_past_input_that_nobody_reads(box):
    with Terminal(box, ["bash", "-c", DEAF]).ready().see("R") as terminal:
        for _ in range(60):
            terminal.type(b"x" * 48000)
        terminal.send("resize", rows=33, cols=99)
        terminal.see("33 99").send("signal", sig="TERM")
        terminal.see("one").send("close")
        assert terminal.end() == 7 and b"bye" in terminal.output


def test_what_is_no_input_goes_past_output_that_nobody_reads(server, box):
    told = []

    def stalled():
        told.append(re.search(r"^orchard_terminal_output_bytes_total (\d+)", server.client.get("/metrics").text, re.M)[1])
        return len(told) > 1 and told[-1] == told[-2]

    with Terminal(box, ["yes", "619"]).ready() as terminal:
        eventually(stalled, 60, "the program waits for its reader")
        terminal.send("close")
        eventually(lambda: "yes 619" not in box.exec("ps ax -o args", lane="watch")["stdout"], 30, "it is gone")


def serves_terminals(box):
    """A process that stops, or is being started, says so and is asked again."""
    try:
        with Terminal(box, ["true"]) as terminal:
            return terminal.end() == 0
    except websocket.WebSocketBadStatusException as refused:
        assert refused.status_code == 503 and refused.resp_headers["retry-after"]
        return False


def test_a_reload_leaves_it_alone(own, own_box):
    with Terminal(own_box, ["cat"]).ready() as terminal:
        old = gateway(own)
        own.reload()
        eventually(lambda: len(gateway(own)) == 2 and set(gateway(own)) > set(old), 40, own.log)
        terminal.type("over\n")
        terminal.see("over\r\nover\r\n")
        eventually(lambda: serves_terminals(own_box), 40, "a terminal of the new one")
        assert set(gateway(own)) > set(old)
    eventually(lambda: not set(gateway(own)) & set(old), 40, "the old one leaves with its last terminal")


def test_a_killed_gateway_is_replaced(own, own_box):
    with Terminal(own_box, ["cat"]).ready() as terminal:
        old = gateway(own)
        os.kill(old[0], signal.SIGKILL)
        with pytest.raises((websocket.WebSocketException, ConnectionError)):
            terminal.end()
            raise ConnectionError

    eventually(lambda: serves_terminals(own_box), 40, "terminals are served again")


def test_a_killed_worker_takes_none_along(own, own_box):
    with Terminal(own_box, ["cat"]).ready() as terminal:
        for pid in own.processes()["worker"]:
            os.kill(pid, signal.SIGKILL)
        terminal.type("still\n")
        terminal.see("still\r\nstill\r\n")
    own.wait_ready()


def test_b141_the_agent_dies(own):
    box = own.create()
    with Terminal(box, ["cat"]).ready() as terminal:
        os.kill(box.agent_pid(), signal.SIGKILL)
        assert terminal.end() is None
        assert terminal.code == 4503 and terminal.errors()
    box.delete()


def test_b141_the_sandbox_is_deleted(own):
    box = own.create()
    with Terminal(box, ["cat"]).ready() as terminal:
        box.delete()
        assert terminal.end() is None
        assert terminal.code == 4503 and terminal.reason == "sandbox deleted" and terminal.errors() == ["sandbox deleted"]


def test_b135_pings_keep_it_open_and_find_who_is_gone(own, own_box):
    with Terminal(own_box, ["cat"]).ready() as quiet, Terminal(own_box, ["sleep", "619"]).ready() as gone:
        pings = 0
        while pings < 3:  # answered by the client library when they are read
            opcode, _ = quiet.ws.recv_data(control_frame=True)
            pings += opcode == websocket.ABNF.OPCODE_PING
        def given_up():  # the other one reads nothing, so it answers none; its program is hung up
            quiet.ws.recv_data(control_frame=True)
            return "sleep 619" not in own_box.exec("ps ax -o args", lane="watch")["stdout"]
        eventually(given_up, 40, "given up")
        quiet.type("there\n")
        quiet.see("there\r\nthere\r\n")
        assert gone.ws.sock is not None


def test_b094_an_open_terminal_is_use(make_server):
    server = make_server(cleanup_interval_seconds=1).start()
    box, unused = (server.create(idle_timeout_seconds=3) for _ in range(2))
    with Terminal(box, ["cat"]).ready() as terminal:
        eventually(lambda: unused.get().status_code == 404, 60, "an unused one goes")
        terminal.type("here\n")
        terminal.see("here\r\nhere\r\n")
    eventually(lambda: box.get().status_code == 404, 60, "and this one, when it is not used any more")


def test_stopping_says_1012(make_server):
    server = make_server().start()
    box = server.create()
    with Terminal(box, ["cat"]).ready() as terminal:
        server.process.send_signal(signal.SIGTERM)
        assert terminal.end() is None
        assert terminal.code == 1012
    assert server.process.wait(40) == 0
    server.start()


def test_after_a_reload_not_for_ever(make_server):
    server = make_server(terminal_drain_seconds=0).start()
    box = server.create()
    with Terminal(box, ["cat"]).ready() as terminal:
        server.reload()
        assert terminal.end() is None
        assert terminal.code == 1012
    eventually(lambda: attach_new(box), 20, "the new one serves")


def test_garbage_that_nobody_reads_the_answers_of(box, server):
    """Each message is answered; who does not read is not read either, and nothing grows."""
    with Terminal(box, ["cat"]).ready() as terminal:
        before = [rss(pid) for pid in gateway(server)]
        terminal.ws.sock.settimeout(1)
        with pytest.raises(TimeoutError):
            for _ in range(4096):
                terminal.ws.sock.sendall(frame(1, b'{"type":"%s"}' % (b"x" * 50)) * 1000)
        assert SANITIZED or all(rss(pid) - start < 16 << 20 for pid, start in zip(gateway(server), before))
    with Terminal(box, ["true"]) as terminal:
        assert terminal.end() == 0


def test_no_more_than_allowed(make_server):
    server = make_server(max_terminals=2).start()
    box = server.create()
    with Terminal(box, ["cat"]).ready(), Terminal(box, ["cat"]).ready():
        status, body = refusal(box)
        assert status == 503 and body["code"] == "unavailable"
    eventually(lambda: attach_new(box), 20, "room again")


def attach_new(box):
    try:
        with Terminal(box, ["true"]) as terminal:
            return terminal.end() == 0
    except websocket.WebSocketBadStatusException:
        return False
