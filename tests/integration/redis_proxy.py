"""A TCP proxy between servers and Redis that makes the network bad: cut, mute, slow, halved."""

import selectors
import socket
import threading
import time

PIECE = 65536


class RedisProxy:
    """Passes bytes from 127.0.0.1:port to a unix socket. Its faults hold for all connections, until the next call."""

    def __init__(self, target):
        self.target = str(target)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.lock = threading.Lock()
        self.pairs = set()
        self.refusing = False
        self.mute = False  # bytes are taken and go nowhere; such a connection is cut when it could go on, as TCP loses none
        self.delay = 0.0  # seconds on each answer
        self.delay_there = 0.0  # seconds on what is sent to Redis
        self.cut_in_answer = 0  # so many connections end in the middle of their next answer
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    # --- faults ---------------------------------------------------------
    def cut(self):
        """Ends all connections now; new ones are taken."""
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def down(self):
        """Ends all connections and refuses new ones."""
        self.refusing = True
        self.cut()

    def up(self):
        """Everything passes again."""
        self.refusing = self.mute = False
        self.delay = self.delay_there = 0.0
        self.cut_in_answer = 0

    def close(self):
        self.closed = self.refusing = True
        self.listener.close()
        self.cut()

    # --- passing --------------------------------------------------------
    def _accept(self):
        while not self.closed:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            if self.refusing:
                client.close()
                continue
            redis = socket.socket(socket.AF_UNIX)
            try:
                redis.connect(self.target)
            except OSError:
                client.close()
                redis.close()
                continue
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(client, redis), daemon=True).start()

    def _serve(self, client, redis):
        pair = (client, redis)
        lossy = []
        with self.lock:
            self.pairs.add(pair)
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(client, selectors.EVENT_READ, redis)
                selector.register(redis, selectors.EVENT_READ, client)
                while all(self._pass(key.fileobj, key.data, redis, lossy) for key, _ in selector.select()):
                    pass
        except OSError:
            pass
        finally:
            with self.lock:
                self.pairs.discard(pair)
            client.close()
            redis.close()

    def _pass(self, source, sink, redis, lossy):
        data = source.recv(PIECE)
        if not data:
            return False
        if self.mute:
            lossy.append(len(data))
            return True
        if lossy:
            return False
        if source is not redis and self.delay_there:
            time.sleep(self.delay_there)
        if source is redis:
            if self.delay:
                time.sleep(self.delay)
            with self.lock:
                cuts = self.cut_in_answer > 0
                self.cut_in_answer -= cuts
            if cuts:
                sink.sendall(data[:max(1, len(data) // 2)])
                return False
        sink.sendall(data)
        return True
