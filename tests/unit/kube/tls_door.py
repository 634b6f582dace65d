#!/usr/bin/env python3
"""TLS in front of a server on loopback, for tests: tls_door.py CERTIFICATE KEY BACKEND-PORT [CLIENT-CA]

Prints its port, and ends when its standard input does.
"""

import os
import socket
import ssl
import sys
import threading


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(context, plain, backend):
    try:
        inside = context.wrap_socket(plain, server_side=True)
        outside = socket.create_connection(("127.0.0.1", backend))
    except OSError:
        plain.close()
        return
    threading.Thread(target=pump, args=(outside, inside), daemon=True).start()
    pump(inside, outside)


def accept(listener, context, backend):
    while True:
        plain, _ = listener.accept()
        threading.Thread(target=serve, args=(context, plain, backend), daemon=True).start()


context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
if len(sys.argv) > 4:
    context.load_verify_locations(sys.argv[4])
    context.verify_mode = ssl.CERT_REQUIRED
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
threading.Thread(target=accept, args=(listener, context, int(sys.argv[3])), daemon=True).start()
sys.stdin.read()
os._exit(0)
