#!/usr/bin/env python3
"""An HTTP/2 server on loopback that does what a test says: http2_server.py CERTIFICATE KEY STEPS...

The n-th request, whatever its connection, gets the n-th STEPS, words with a ';' between them:
head (200), =TEXT (a piece of the body), count (how many requests there were), end, refused (the stream is reset as not begun),
goaway (no streams after this one), goaway-before (nor this one), close, wait=N (until there were N requests).
Prints its port, and ends when its standard input does.
"""

import os
import socket
import ssl
import struct
import sys
import threading

DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY = 0, 1, 3, 4, 6, 7
END_STREAM, END_HEADERS, ACK = 1, 4, 1
STATUS_200 = b"\x88"
REFUSED_STREAM = 7

arrived = threading.Condition()
requests = 0


class Connection:
    def __init__(self, plain):
        self.socket = context.wrap_socket(plain, server_side=True)
        self.source = self.socket.makefile("rb")
        self.sending = threading.Lock()

    def send(self, kind, flags, stream, payload=b""):
        with self.sending:
            self.socket.sendall(struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload)

    def serve(self):
        self.source.read(24)
        self.send(SETTINGS, 0, 0)
        while len(head := self.source.read(9)) == 9:
            kind, flags, stream = head[3], head[4], struct.unpack(">I", head[5:])[0]
            payload = self.source.read(int.from_bytes(head[:3], "big"))
            if kind in (SETTINGS, PING) and not flags & ACK:
                self.send(kind, ACK, 0, payload if kind == PING else b"")
            elif kind in (HEADERS, DATA) and flags & END_STREAM:
                threading.Thread(target=quietly, args=(self.answer, stream), daemon=True).start()

    def answer(self, stream):
        global requests
        with arrived:
            steps = sys.argv[3 + requests].split(";")
            requests += 1
            arrived.notify_all()
        for step in steps:
            self.do(step, stream)

    def do(self, step, stream):
        name, _, text = step.partition("=")
        if name == "head":
            self.send(HEADERS, END_HEADERS, stream, STATUS_200)
        elif name == "":
            self.send(DATA, 0, stream, text.encode() + b"\n")
        elif name == "count":
            self.send(DATA, 0, stream, b'{"requests": %d}' % requests)
        elif name == "end":
            self.send(DATA, END_STREAM, stream)
        elif name == "refused":
            self.send(RESET, 0, stream, struct.pack(">I", REFUSED_STREAM))
        elif name in ("goaway", "goaway-before"):
            self.send(GOAWAY, 0, 0, struct.pack(">II", stream if name == "goaway" else stream - 2 if stream > 2 else 0, 0))
        elif name == "close":
            self.socket.shutdown(socket.SHUT_RDWR)
        elif name == "wait":
            with arrived:
                arrived.wait_for(lambda: requests >= int(text))


def quietly(do, *arguments):
    try:
        do(*arguments)
    except OSError:
        pass


def serve(plain):
    Connection(plain).serve()


def accept(listener):
    while True:
        plain, _ = listener.accept()
        threading.Thread(target=quietly, args=(serve, plain), daemon=True).start()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
context.set_alpn_protocols(["h2"])
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
threading.Thread(target=accept, args=(listener,), daemon=True).start()
sys.stdin.read()
os._exit(0)
