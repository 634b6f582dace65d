"""What lies between orchardctl and the server, and can break."""

import socket
import threading


class Wire:
    """Carries connections to the server, until it is cut; with a limit only so many bytes of answers, and then stalls."""

    def __init__(self, port, limit=None):
        self.target = port
        self.limit = limit
        self.stalled = threading.Event()
        self.pairs = []
        self.closed = False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            if self.closed:
                near.close()
                continue
            far = socket.create_connection(("127.0.0.1", self.target))
            self.pairs.append((near, far))
            for a, b, limit in ((near, far, None), (far, near, self.limit)):
                threading.Thread(target=self.carry, args=(a, b, limit), daemon=True).start()

    def carry(self, source, target, limit):
        carried = 0
        try:
            while data := source.recv(65536):
                target.sendall(data)
                carried += len(data)
                if limit is not None and carried > limit:
                    self.stalled.set()
                    return
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for pair in self.pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs.clear()

    def close(self):
        self.listener.close()
        self.cut()
