"""A terminal of a test: a client of the WebSocket, and what it has heard."""

import base64
import json

import websocket


class Terminal:
    """Opens one; init=None says nothing first (to attach, or to break rules)."""

    def __init__(self, box, cmd=None, timeout=60, query="", headers=None, subprotocols=None, port=None, **init):
        self.output = bytearray()
        self.messages = []
        self.code = self.reason = None
        key = {"X-API-Key": box.server.key} if headers is None else headers
        self.ws = websocket.create_connection(
            f"ws://127.0.0.1:{port or box.server.port}{box.url}/exec/pty{query}", timeout=timeout, header=key,
            subprotocols=subprotocols)
        if cmd is not None or init:
            self.send("init", cmd=cmd, **init)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.ws.shutdown()

    def send(self, kind, **members):
        self.ws.send(json.dumps({"type": kind} | members))

    def type(self, data):
        self.send("stdin", data=base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode())

    def hear(self):
        """One frame: a message, or None when it was the end."""
        opcode, data = self.ws.recv_data()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            self.code = int.from_bytes(data[:2], "big") if len(data) >= 2 else 1005
            self.reason = data[2:].decode()
            return None
        message = json.loads(data)
        if message["type"] == "stdout":
            self.output += base64.b64decode(message["data"], validate=True)
        else:
            self.messages.append(message)
        return message

    def until(self, kind):
        """The next message of this kind; what comes before it is kept."""
        while (message := self.hear()) is not None:
            if message["type"] == kind:
                return message
        raise AssertionError(f"ended with {self.code} {self.reason} and no {kind}: {self.messages} {self.output[-300:]}")

    def ready(self):
        self.started = self.until("ready")
        return self

    def see(self, words):
        """Waits until the words stand in the output."""
        words = words if isinstance(words, bytes) else words.encode()
        while words not in self.output:
            assert self.hear() is not None, (self.code, self.reason, self.messages, bytes(self.output[-300:]))
        return self

    def end(self):
        """Everything until the close frame; the exit code, or None when none was told."""
        while self.hear() is not None:
            pass
        codes = [message["code"] for message in self.messages if message["type"] == "exit"]
        return codes[0] if codes else None

    def errors(self):
        return [message["message"] for message in self.messages if message["type"] == "error"]
