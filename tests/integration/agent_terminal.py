# SPDX-License-Identifier: MIT
"""A WebSocket to an agent's /pty, and a reader of what a session says."""

import json
import os
import sys
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import unix_connect

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "agent"))

import rig  # noqa: E402

HEADERS = {"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID}


class Terminal:
    """One connection. Output is gathered in `output`, messages in `messages`, as they are read."""

    def __init__(self, agent, init=None, query="", **options):
        options = {"max_size": None, "compression": None, "open_timeout": 60, "close_timeout": 10,
                   "additional_headers": HEADERS, **options}
        self.context = unix_connect(agent.path, uri="ws://agent/pty" + query, **options)
        self.ws = self.context.__enter__()
        self.output = b""
        self.messages = []
        self.closed = None
        if init is not None:
            self.say(**{"type": "init", **init})

    def say(self, **message):
        self.ws.send(json.dumps(message))

    def type(self, data):
        self.ws.send(data)

    def step(self, timeout=60):
        """Reads one message; False at the end of the connection."""
        try:
            message = self.ws.recv(timeout)
        except ConnectionClosed as end:
            self.closed = end.rcvd.code if end.rcvd else 1006
            return False
        if isinstance(message, bytes):
            self.output += message
        else:
            self.messages.append(json.loads(message))
        return True

    def read_until(self, text):
        """Everything up to the output that holds text; what follows stays in `output`."""
        while text not in self.output:
            assert self.step(), (self.output[-300:], self.messages, self.closed)
        at = self.output.index(text) + len(text)
        taken, self.output = self.output[:at], self.output[at:]
        return taken

    def message(self, kind):
        """The next message of that type; earlier ones are dropped."""
        while True:
            while self.messages:
                message = self.messages.pop(0)
                if message["type"] == kind:
                    return message
            assert self.step(), (kind, self.output[-300:], self.closed)

    def finish(self):
        """Reads to the end of the connection: (code of the exit or None, all messages)."""
        while self.step():
            pass
        codes = [message["code"] for message in self.messages if message["type"] == "exit"]
        return codes[0] if codes else None


def alive(agent, name):
    """How many processes with that name live in the agent's PID namespace."""
    count = 0
    space = os.readlink("/proc/%d/ns/pid" % agent.pid)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as stat:
                text = stat.read()
            named = text[text.index("(") + 1:text.rindex(")")] == name and text[text.rindex(")") + 2] != "Z"
            count += named and os.readlink("/proc/%s/ns/pid" % pid) == space
        except OSError:
            pass
    return count


def descriptors(agent):
    return len(os.listdir("/proc/%d/fd" % agent.pid))
