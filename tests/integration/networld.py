"""The outside world of the network tests, in a namespace of its own: servers on every address it is given.

TCP on the given ports says who is calling; UDP port 53 answers any name with 1.2.3.4;
UDP port 7000 writes down who has sent something.
"""

import selectors
import socket
import sys
from pathlib import Path

TCP_PORTS = (53, 80, 443, 5432)
NOTED_PORT = 7000


def answer_name(query):
    """Any A question: 1.2.3.4."""
    end = query.index(b"\0", 12) + 5
    record = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton("1.2.3.4")
    return query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + query[12:end] + record


def main(noted):
    selector = selectors.DefaultSelector()
    for port in TCP_PORTS:
        listener = socket.create_server(("0.0.0.0", port), backlog=512)
        selector.register(listener, selectors.EVENT_READ, "tcp")
    for port in (53, NOTED_PORT):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # the answer must come from the address that was asked
        sock.setsockopt(socket.IPPROTO_IP, 8, 1)  # IP_PKTINFO
        sock.bind(("0.0.0.0", port))
        selector.register(sock, selectors.EVENT_READ, "dns" if port == 53 else "noted")
    print("ready", flush=True)
    while True:
        for key, _ in selector.select():
            if key.data == "tcp":
                caller, address = key.fileobj.accept()
                caller.sendall(f"{address[0]}\n".encode())
                caller.close()
                continue
            data, control, _, sender = key.fileobj.recvmsg(1500, 100)
            if key.data == "dns":
                info = [(socket.IPPROTO_IP, 8, b"\0\0\0\0" + item[2][4:8] + b"\0\0\0\0") for item in control]
                key.fileobj.sendmsg([answer_name(data)], info, 0, sender)
            else:
                with Path(noted).open("a") as out:
                    out.write(f"{sender[0]} {data.decode()}\n")


if __name__ == "__main__":
    main(sys.argv[1])
