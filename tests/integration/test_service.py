"""The service routes, authentication, and HTTP as hostile clients speak it."""

import json
import re
import socket

import httpx
import pytest

from orchard_server import SANITIZED, eventually


def test_service_routes(server):
    root = server.client.get("/").json()
    assert set(root) >= {"service", "version", "status"} and root["status"] == "running"
    assert server.client.get("/health").json() == {"status": "healthy"}
    assert server.client.get("/ready").json()["status"] == "ready"


def test_resources(server, box):
    body = server.client.get("/resources").json()
    assert body["status"] == "ok"
    assert body["nodes"][0]["capacity"]["cpu"] > 0 and body["nodes"][0]["capacity"]["memory_bytes"] > 1 << 30
    assert {"nodes", "total_capacity", "total_allocatable", "total_requested", "available", "sandbox_pods"} <= set(body)
    pod = next(pod for pod in body["sandbox_pods"] if pod["name"] == f"sandbox-{box.id}")
    assert {"namespace", "phase", "cpu_request", "memory_request_bytes"} <= set(pod)


def test_metrics(server, box):
    box.out("true")
    text = server.client.get("/metrics").text
    assert re.search(r"^# TYPE orchard_requests_total counter$", text, re.M)
    assert re.search(r"^orchard_execs_succeeded_total [1-9]", text, re.M)


def test_authentication(server):
    with httpx.Client(base_url=str(server.client.base_url)) as bare:
        for path in ("/", "/health", "/ready"):
            assert bare.get(path).status_code == 200
        missing = bare.get("/sandboxes")
        assert missing.status_code == 401 and missing.json()["detail"]
        for headers in ({"X-API-Key": "wrong-key-1"}, {"Authorization": "Bearer wrong-key-1"}, {"X-API-Key": ""}):
            assert bare.get("/sandboxes", headers=headers).status_code in (401, 403)
        assert bare.get("/sandboxes", headers={"X-API-Key": "wrong-key-1"}).status_code == 403
        assert bare.get("/sandboxes", headers={"Authorization": f"Bearer {server.key}"}).status_code == 200
        assert bare.get("/metrics").status_code == 401


def test_key_stands_in_no_log_line(server):
    server.client.get("/sandboxes", headers={"X-API-Key": "very-secret-wrong"})
    assert server.key not in server.log(10_000_000) and "very-secret-wrong" not in server.log(10_000_000)


def test_request_ids(server):
    assert server.client.get("/health", headers={"X-Request-ID": "abc.DEF_1-2"}).headers["x-request-id"] == "abc.DEF_1-2"
    for bad in ("a b", "x" * 129, "a;b", "\u00e9".encode()):
        got = server.client.get("/nosuch", headers={"X-Request-ID": bad})
        assert re.fullmatch(r"[0-9a-f-]{36}", got.headers["x-request-id"])
        assert got.json()["request_id"] == got.headers["x-request-id"]


def test_unknown_routes_and_methods(server):
    assert server.client.get("/nosuch").status_code == 404
    answer = server.client.put("/sandboxes")
    assert answer.status_code == 405 and {"GET", "POST"} <= set(answer.headers["allow"].replace(" ", "").split(","))
    assert server.client.head("/health").status_code == 200
    assert server.client.options("/sandboxes").status_code in (200, 204)
    for path in (b"/sandboxes/", b"//sandboxes", b"/jobs/", b"/health/x"):
        head = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % path
        assert raw(server, head + key(server) + b"\r\n").startswith(b"HTTP/1.1 404"), path


def raw(server, data, timeout=5, half_close=False):
    """Sends bytes, returns all that comes until the server closes or is silent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout) as one:
        one.sendall(data)
        if half_close:
            one.shutdown(socket.SHUT_WR)
        got = b""
        try:
            while chunk := one.recv(65536):
                got += chunk
        except (TimeoutError, ConnectionResetError):
            pass
        return got


def key(server):
    return f"X-API-Key: {server.key}\r\n".encode()


@pytest.mark.parametrize("head", [
    b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 1e30\r\n\r\n",
    b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
    b"GET /health HTTP/1.1\nHost: x\n\n",
    b"GET /health HTTP/1.1\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n",
    b"GET  /health HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: KEY\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(40) + b"\r\n\r\n",
])
def test_malformed_requests_are_refused_and_closed(server, head):
    answer = raw(server, head.replace(b"KEY", server.key.encode()) + b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
    assert re.match(rb"HTTP/1.1 (400|413|501|505) ", answer), answer[:200]
    assert answer.count(b"Content-Length: ") == 1 and b"smuggled" not in answer


def test_b144_bodies(server):
    big = b"x" * 1000
    answer = raw(server, b"POST /sandboxes HTTP/1.1\r\nHost: x\r\n" + key(server) +
                 b"Content-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413") and b"100 Continue" not in answer
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["code"] == "payload_too_large"
    body = b'{"image":5}'
    with socket.create_connection(("127.0.0.1", server.port), 5) as one:
        one.sendall(b"POST /sandboxes HTTP/1.1\r\nHost: x\r\n" + key(server) +
                    b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(body))
        assert one.recv(100).startswith(b"HTTP/1.1 100 ")
        one.sendall(body)
        assert one.recv(4000).startswith(b"HTTP/1.1 422")
    chunked = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (b'{"image"', b":5}", )) + b"0\r\n\r\n"
    answer = raw(server, b"POST /sandboxes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + key(server) +
                 b"Transfer-Encoding: chunked\r\n\r\n" + chunked)
    assert answer.startswith(b"HTTP/1.1 422"), answer
    assert len(big) == 1000


def test_pipelining_and_http10(server):
    answer = raw(server, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 9 +
                 b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert answer.count(b'{"status":"healthy"}') == 10
    assert raw(server, b"GET /health HTTP/1.0\r\n\r\n").count(b"healthy") == 1


def test_huge_heads_are_refused(server):
    answer = raw(server, b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000 + b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 431") or answer == b""
    answer = raw(server, b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 5000 + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 431") or answer == b""


def test_slow_clients_are_cut_off(make_server):
    server = make_server(header_timeout_seconds=1, body_timeout_seconds=1).start()
    with socket.create_connection(("127.0.0.1", server.port), 60) as one:
        one.sendall(b"GET /health HTTP/1.1\r\nHo")
        assert one.recv(100).startswith(b"HTTP/1.1 408")
    with socket.create_connection(("127.0.0.1", server.port), 60) as one:
        one.sendall(b"POST /sandboxes HTTP/1.1\r\nHost: x\r\n" + key(server) + b"Content-Length: 100\r\n\r\n{")
        assert one.recv(100).startswith(b"HTTP/1.1 408")


def test_flood_of_a_client_that_never_reads_is_bounded(server):
    def rss():
        total = 0
        for pid in server.processes()["worker"]:
            with open(f"/proc/{pid}/status") as status:
                total += next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        return total
    before = rss()
    with socket.create_connection(("127.0.0.1", server.port), 2) as one:
        one.settimeout(2)
        try:
            for _ in range(4000):
                one.sendall(b"GET /resources HTTP/1.1\r\nHost: x\r\n" + key(server) + b"\r\n" + b"GET /nosuch HTTP/1.1\r\nHost: x\r\n\r\n" * 200)
        except (TimeoutError, ConnectionError, OSError):
            pass
        assert SANITIZED or rss() - before < 32 * 1024


def test_connections_over_the_limit_wait(make_server):
    server = make_server(max_connections=10, workers=1).start()
    held = [socket.create_connection(("127.0.0.1", server.port), 5) for _ in range(10)]
    for one in held:
        one.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        if one is not held[-1]:
            assert one.recv(1000).startswith(b"HTTP/1.1 200")
    for one in held:
        one.close()
    eventually(lambda: server.client.get("/health").status_code == 200, 10)
