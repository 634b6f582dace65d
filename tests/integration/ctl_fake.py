"""A server that answers as a test says: broken connections, busy, nonsense."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Request:
    def __init__(self, handler, body):
        self.method, self.path, self.headers, self.body = handler.command, handler.path, handler.headers, body
        self.caller = handler.client_address
        self._handler = handler

    def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self._handler.send_response(status)
        for name, value in headers:
            self._handler.send_header(name, value)
        self._handler.send_header("Content-Length", str(len(data)))
        self._handler.end_headers()
        self._handler.wfile.write(data)

    def stream(self, *events):
        """Events as given, then the end of the connection."""
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", "text/event-stream")
        self._handler.send_header("Connection", "close")
        self._handler.end_headers()
        for name, data in events:
            self._handler.wfile.write(f"event: {name}\ndata: {json.dumps(data)}\n\n".encode())
        self._handler.close_connection = True

    def pour(self, piece, enough):
        """The same piece again and again until somebody has enough; then the connection ends before the answer does."""
        self._handler.send_response(200)
        self._handler.send_header("Content-Length", str(1 << 40))
        self._handler.end_headers()
        while not enough.wait(0.02):
            self._handler.wfile.write(piece)
        self._handler.close_connection = True

    def drop(self):
        """No answer at all."""
        self._handler.close_connection = True


class Fake:
    """answer(request) is called for each request; all of them are in `requests`."""

    def __init__(self, answer):
        self.requests = []
        self.key = "fake"
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one(self):
                request = Request(self, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                fake.requests.append(request)
                try:
                    answer(request)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST = do_DELETE = handle_one

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def callers(self):
        """The address of the other end, of each request: one connection has one."""
        return [request.caller for request in self.requests]

    def close(self):
        self._server.shutdown()
        self._server.server_close()
