# SPDX-License-Identifier: MIT
"""The Autobahn test suite's cases by their numbers, against an agent and the gateway.

Neither is an echo: a whole text message that makes no sense is answered with one `error`, binary is a stream (agent) or refused
(gateway). Groups 12 and 13 are about compression, which is never agreed on.
"""

import base64
import json
import os
import socket
import struct

import agent_terminal  # noqa: F401  (finds rig)
import pytest
import rig
from agent_terminal import HEADERS
from orchard_server import AGENT

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
WORD = b"Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!"


def frame(opcode, payload=b"", fin=True, rsv=0):
    head = bytes([(0x80 if fin else 0) | rsv << 4 | opcode])
    size = len(payload)
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 65536:
        head += b"\xfe" + struct.pack(">H", size)
    else:
        head += b"\xff" + struct.pack(">Q", size)
    mask = b"\x37\xfa\x21\x3d"
    # One long XOR: payloads have a MiB.
    masked = int.from_bytes(payload, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return head + mask + masked.to_bytes(size, "big")


def close(code=None, reason=b""):
    return frame(CLOSE, b"" if code is None else struct.pack(">H", code) + reason)


def pieces(opcode, parts):
    """A message in fragments."""
    last = len(parts) - 1
    return b"".join(frame(opcode if i == 0 else 0, part, i == last) for i, part in enumerate(parts))


class Raw:
    """A connection behind the handshake, byte by byte."""

    def __init__(self, connection, path, headers):
        self.socket = connection
        self.socket.settimeout(60)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall("\r\n".join([
            f"GET {path} HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]).encode())
        self.read = self.socket.makefile("rb")
        assert b" 101 " in self.read.readline()
        while self.read.readline() != b"\r\n":
            pass

    def send(self, data, chop=None):
        for at in range(0, len(data), chop or len(data) or 1):
            self.socket.sendall(data[at:at + (chop or len(data))])

    def next(self):
        """(opcode, payload), or None at the end."""
        try:
            head = self.read.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 127
            if size > 125:
                size = int.from_bytes(self.read.read(2 if size == 126 else 8), "big")
            return head[0] & 15, self.read.read(size)
        except ConnectionError:
            return None

    def last(self):
        """The code that it is closed with: 1005 when the frame has none, None without a frame."""
        while (heard := self.next()) is not None:
            if heard[0] == CLOSE:
                return int.from_bytes(heard[1][:2], "big") if heard[1] else 1005
        return None

    def end(self):
        self.read.close()
        self.socket.close()


class Agent:
    binary_is_input = answers_each_ping = True
    drops = ()
    longest = 1 << 20

    def __init__(self):
        self.agent = rig.Agent(str(AGENT))

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self.agent.path)
        return Raw(connection, "/pty", HEADERS)


class Gateway:
    binary_is_input = False
    answers_each_ping = False  # libwebsockets: not those that come while one waits for its answer
    drops = ("2.5", "7.3.6", "7.5.1")  # and fails these without a close frame, as a server may

    def __init__(self, server, box):
        self.server, self.box = server, box

    def connect(self):
        return Raw(socket.create_connection(("127.0.0.1", self.server.port)), f"{self.box.url}/exec/pty",
                   {"X-API-Key": self.server.key})


@pytest.fixture(scope="module", params=["agent", "gateway"])
def side(request):
    if request.param == "agent":
        side = Agent()
        yield side
        side.agent.close()
        return
    server = request.getfixturevalue("make_server_session")().start()
    yield Gateway(server, server.create())
    server.close()


@pytest.fixture(scope="module")
def live(side):
    """A program that says nothing, and reads all."""
    raw = side.connect()
    init = {"type": "init", "cmd": ["bash", "-c", "stty raw -echo; exec cat >/dev/null"]}
    raw.send(frame(TEXT, json.dumps(init).encode()))
    while json.loads(raw.next()[1])["type"] != "ready":
        pass
    yield raw
    raw.end()


TEN = [b"payload-%d" % number for number in range(10)]
BYTES = b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff"
PARTS = [b"fragment1", b"fragment2"]
UTF8 = [b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5", b"\x00", b"\xc2\x80", b"\xe0\xa0\x80", b"\xf0\x90\x80\x80", b"\x7f",
        b"\xdf\xbf", b"\xef\xbf\xbf", b"\xf4\x8f\xbf\xbf", b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xef\xbf\xbd", b"\xef\xbf\xbe"]

# number: (bytes, texts that are whole in them, pings that are answered[, bytes in one send])
FINE = {f"1.1.{n}": (frame(TEXT, b"*" * size), 1, []) for n, size in enumerate((0, 125, 126, 127, 128, 65535, 65536), 1)}
FINE |= {
    "1.1.8": (frame(TEXT, b"*" * 65536), 1, [], 997),
    "2.1": (frame(PING), 0, [b""]),
    "2.2": (frame(PING, b"Hello, world!"), 0, [b"Hello, world!"]),
    "2.3": (frame(PING, BYTES), 0, [BYTES]),
    "2.4": (frame(PING, b"\xfe" * 125), 0, [b"\xfe" * 125]),
    "2.6": (frame(PING, b"\xfe" * 125), 0, [b"\xfe" * 125], 1),
    "2.7": (frame(PONG), 0, []),
    "2.8": (frame(PONG, b"unsolicited"), 0, []),
    "2.9": (frame(PONG, b"unsolicited") + frame(PING, b"ping"), 0, [b"ping"]),
    "2.10": (b"".join(frame(PING, one) for one in TEN), 0, TEN),
    "2.11": (b"".join(frame(PING, one) for one in TEN), 0, TEN, 1),
    "5.3": (pieces(TEXT, PARTS), 1, []),
    "5.5": (pieces(TEXT, PARTS), 1, [], 1),
    "5.6": (frame(TEXT, PARTS[0], False) + frame(PING, b"p") + frame(0, PARTS[1]), 1, [b"p"]),
    "5.8": (frame(TEXT, PARTS[0], False) + frame(PING, b"p") + frame(0, PARTS[1]), 1, [b"p"], 1),
    "5.19": (frame(TEXT, b"1", False) + frame(0, b"2", False) + frame(PING, b"one") + frame(0, b"3", False)
             + frame(0, b"4", False) + frame(PING, b"two") + frame(0, b"5"), 1, [b"one", b"two"]),
    "6.1.1": (frame(TEXT), 1, []),
    "6.1.2": (pieces(TEXT, [b"", b"", b""]), 1, []),
    "6.1.3": (pieces(TEXT, [b"", b"middle", b""]), 1, []),
    "6.2.1": (frame(TEXT, WORD), 1, []),
    "6.2.2": (pieces(TEXT, [WORD[:12], WORD[12:]]), 1, []),
    "6.2.3": (pieces(TEXT, [WORD[i:i + 1] for i in range(len(WORD))]), 1, []),
    "6.2.4": (pieces(TEXT, [bytes([byte]) for byte in UTF8[0]]), 1, []),
    "9.1.3": (frame(TEXT, b"*" * 1000000), 1, []),
    "9.3.2": (pieces(TEXT, [b"*" * 256] * 1024), 1, []),
    "9.5.1": (frame(TEXT, b"*" * 65536), 1, [], 64),
    "10.1.1": (pieces(TEXT, [b"*" * 1300] * 50 + [b"*" * 536]), 1, []),
} | {f"6.5-22 {text.hex()}": (frame(TEXT, text), 1, []) for text in UTF8}


@pytest.mark.parametrize("number", FINE)
def test_what_is_right_is_taken(side, live, number):
    sent, texts, pings, *chop = FINE[number]
    live.send(sent + frame(TEXT, b"and that was all"), *chop)
    pongs, errors = [], 0
    while errors <= texts or len(pongs) < (len(pings) if side.answers_each_ping else min(len(pings), 1)):
        opcode, payload = live.next()
        if opcode == PONG and (side.answers_each_ping or payload in pings):
            pongs.append(payload)
        elif opcode == TEXT:
            assert json.loads(payload)["type"] == "error"
            errors += 1
    assert errors == texts + 1
    assert pongs == pings or not side.answers_each_ping


BAD_UTF8 = ["cebae1bdb9cf83cebcceb5eda080656469746564", "80", "bf", "80bf", "c0", "e0", "f0", "f8", "fc", "fe", "ff", "c0af",
            "e080af", "f08080af", "f8888080af", "fc80808080af", "c1bf", "f48fbfbff4908080", "f8bfbfbfbf", "eda080", "edafbf",
            "edb080", "edbfbf", "eda080edb080", "f4908080", "fffe"]
WRONG = {
    "2.5": (frame(PING, b"\xfe" * 126), 1002),
    "3.1": (frame(TEXT, b"x", rsv=1), 1002),
    "3.2": (frame(PING, b"x") + frame(TEXT, b"x", rsv=2), 1002),
    "3.3": (frame(PING, b"x") + frame(TEXT, b"x", rsv=3), 1002),
    "3.4": (frame(PING, b"x") + frame(TEXT, b"x", rsv=4), 1002),
    "3.5": (frame(BINARY, b"x", rsv=5), 1002),
    "3.6": (frame(PING, b"x", rsv=6), 1002),
    "3.7": (frame(CLOSE, rsv=7), 1002),
    "5.1": (frame(PING, b"x", False) + frame(0, b"y"), 1002),
    "5.2": (frame(PONG, b"x", False) + frame(0, b"y"), 1002),
    "5.9": (frame(0, b"x") + frame(TEXT, b"y"), 1002),
    "5.12": (frame(0, b"x", False) + frame(TEXT, b"y"), 1002),
    "5.18": (frame(TEXT, b"x", False) + frame(TEXT, b"y"), 1002),
    "6.4.1": (frame(TEXT, bytes.fromhex("cebae1bdb9cf83cebcceb5"), False) + frame(0, b"\xf4\x90\x80\x80", False), 1007),
    "6.4.2": (frame(TEXT, bytes.fromhex("cebae1bdb9cf83cebcceb5f4"), False) + frame(0, b"\x90", False), 1007),
    "7.3.1": (close(), 1005),
    "7.3.2": (frame(CLOSE, b"a"), 1002),
    "7.3.3": (close(1000), 1000),
    "7.3.4": (close(1000, b"Hello, world!"), 1000),
    "7.3.5": (close(1000, b"*" * 123), 1000),
    "7.3.6": (close(1000, b"*" * 124), 1002),
    "7.5.1": (close(1000, bytes.fromhex(BAD_UTF8[0])), 1007),
    "7.1.2": (close(1000) + close(1000), 1000),
    "7.1.3": (close(1000) + frame(PING, b"x"), 1000),
    "7.1.4": (close(1000) + frame(TEXT, b"x"), 1000),
    "7.1.5": (frame(TEXT, PARTS[0], False) + close(1000) + frame(0, PARTS[1]), 1000),
}
WRONG |= {f"4.1.{opcode - 2}": (frame(opcode, b"x"), 1002) for opcode in range(3, 8)}
WRONG |= {f"4.2.{opcode - 10}": (frame(opcode, b"x"), 1002) for opcode in range(11, 16)}
WRONG |= {f"6.3-22 {text}": (frame(TEXT, bytes.fromhex(text)), 1007) for text in BAD_UTF8}
WRONG |= {f"7.7 {code}": (close(code), code) for code in (
    1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999)}
WRONG |= {f"7.9 {code}": (close(code), 1002) for code in (0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999)}
WRONG |= {f"7.13 {code}": (close(code), 1002) for code in (5000, 65535)}


@pytest.mark.parametrize("number", WRONG)
def test_what_is_wrong_ends_it(side, number):
    sent, code = WRONG[number]
    raw = side.connect()
    raw.send(sent)
    assert raw.last() == (None if number in side.drops else code)
    raw.end()


def test_9_a_message_over_the_bound(side):
    """An agent says so as soon as it is announced; for the gateway test_terminals.py has it."""
    if side.binary_is_input:
        raw = side.connect()
        raw.send(frame(TEXT, b"*" * (side.longest + 1))[:4096])
        assert raw.last() == 1009
        raw.end()


@pytest.mark.parametrize("number, size", [("1.2.1", 0), ("1.2.2", 125), ("1.2.6", 65535)])
def test_1_2_binary(side, live, number, size):
    if side.binary_is_input:
        live.send(frame(BINARY, b"*" * size) + frame(PING, b"then"))
        assert live.next() == (PONG, b"then")
    else:
        raw = side.connect()
        raw.send(frame(BINARY, b"*" * size))
        assert raw.last() == 1003
        raw.end()
