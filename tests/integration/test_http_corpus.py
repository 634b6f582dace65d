"""What strict, odd and hostile HTTP clients send, byte by byte: the right status, nothing smuggled, nothing grown.

tests/unit/http holds the codec to it at every cut; this is the whole server, with its workers and its limits.
"""

import json
import re
import socket
import time

import pytest

from orchard_server import SANITIZED, eventually

NEXT = b"GET /next-in-line HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.fixture(scope="module")
def hosts(make_server_session):
    """A server whose workers must all be there at the end."""
    server = make_server_session(header_timeout_seconds=2, body_timeout_seconds=2, max_connections=400).start()
    before = server.processes()["worker"]
    yield server
    try:
        assert server.processes()["worker"] == before, "a worker died:\n" + server.log()
    finally:
        server.close()


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), 20)


def read_all(one):
    got = b""
    try:
        while chunk := one.recv(65536):
            got += chunk
    except (TimeoutError, ConnectionResetError):
        pass
    return got


def send(server, data):
    """All that comes back until the server closes; what is sent must make it close."""
    with connect(server) as one:
        try:
            one.sendall(data.replace(b"KEY", server.key.encode()))
        except (BrokenPipeError, ConnectionResetError):
            pass
        return read_all(one)


def statuses(answer):
    return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


def post(*lines, body=b""):
    return b"POST /jobs/0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77/stdin HTTP/1.1\r\nHost: x\r\nX-API-Key: KEY\r\n" + \
        b"".join(line + b"\r\n" for line in lines) + b"\r\n" + body


def get(target, *lines, version=b"HTTP/1.1"):
    return b"GET %s %s\r\nHost: x\r\n" % (target, version) + b"".join(line + b"\r\n" for line in lines) + b"\r\n"


CHUNKED = b"Transfer-Encoding: chunked"
CHUNKS = b"5\r\nhello\r\n0\r\n\r\n"

REFUSED = {
    "length with a sign": post(b"Content-Length: +5", body=b"hello"),
    "length in hexadecimal": post(b"Content-Length: 0x5", body=b"hello"),
    "length with spaces inside": post(b"Content-Length: 5 5", body=b"hello"),
    "length as a list": post(b"Content-Length: 5, 6", body=b"hello!"),
    "length of nothing": post(b"Content-Length:", body=b"hello"),
    "length beyond 64 bits": post(b"Content-Length: 18446744073709551621", body=b"hello"),
    "two lengths": post(b"Content-Length: 5", b"Content-Length: 6", body=b"hello!"),
    "length, then chunked": post(b"Content-Length: 5", CHUNKED, body=CHUNKS),
    "chunked, then length": post(CHUNKED, b"Content-Length: 5", body=CHUNKS),
    "chunked twice": post(CHUNKED, CHUNKED, body=CHUNKS),
    "chunked after identity": post(b"Transfer-Encoding: identity, chunked", body=CHUNKS),
    "chunked but not last": post(b"Transfer-Encoding: chunked, gzip", body=CHUNKS),
    "chunked with a tab before the colon": post(b"Transfer-Encoding\t: chunked", body=CHUNKS),
    "chunked with a vertical tab": post(b"Transfer-Encoding: \x0bchunked", body=CHUNKS),
    "chunked in quotes": post(b'Transfer-Encoding: "chunked"', body=CHUNKS),
    "chunked in HTTP/1.0": post(CHUNKED, body=CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "chunk size with 0x": post(CHUNKED, body=b"0x5\r\nhello\r\n0\r\n\r\n"),
    "chunk size with a sign": post(CHUNKED, body=b"+5\r\nhello\r\n0\r\n\r\n"),
    "chunk size with a space": post(CHUNKED, body=b" 5\r\nhello\r\n0\r\n\r\n"),
    "chunk size of nothing": post(CHUNKED, body=b"\r\nhello\r\n0\r\n\r\n"),
    "chunk size beyond 64 bits": post(CHUNKED, body=b"10000000000000005\r\nhello\r\n0\r\n\r\n"),
    "chunk longer than it says": post(CHUNKED, body=b"4\r\nhello\r\n0\r\n\r\n"),
    "chunk size line with bare LF": post(CHUNKED, body=b"5\nhello\n0\n\n"),
    "chunk extension without end": post(CHUNKED, body=b"5;" + b"e" * 200_000),
    "trailers without end": post(CHUNKED, body=b"0\r\n" + b"X-T: 1\r\n" * 40_000),
    "trailer with bare LF": post(CHUNKED, body=b"0\r\nX-T: 1\n\r\n\r\n"),
    "header folded": get(b"/health", b"A: b", b" c"),
    "header folded at once": get(b"/health", b" A: b"),
    "header of no name": get(b"/health", b": b"),
    "header of no colon": get(b"/health", b"A"),
    "header with NUL": get(b"/health", b"A: b\0c"),
    "header with CR": get(b"/health", b"A: b\rc"),
    "header name with a space": get(b"/health", b"A b: c"),
    "bare LF in the head": b"GET /health HTTP/1.1\nHost: x\r\n\r\n",
    "bare LF before the end": b"GET /health HTTP/1.1\r\nHost: x\n\r\n",
    "two hosts": get(b"/health", b"Host: y"),
    "no target": b"GET HTTP/1.1\r\nHost: x\r\n\r\n",
    "no version": b"GET /health\r\nHost: x\r\n\r\n",
    "version of one digit": get(b"/health", version=b"HTTP/1"),
    "version 2": get(b"/health", version=b"HTTP/2.0"),
    "version in small letters": get(b"/health", version=b"http/1.1"),
    "tab for a space": b"GET\t/health HTTP/1.1\r\nHost: x\r\n\r\n",
    "target with a space": get(b"/hea lth"),
    "target with NUL": get(b"/health\0"),
    "target with DEL": get(b"/health\x7f"),
    "preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "expectation unknown": post(b"Expect: 200-ok", b"Content-Length: 5", body=b"hello"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_http_is_refused_and_nothing_behind_it_read(hosts, name):
    answer = send(hosts, REFUSED[name] + NEXT)
    codes = statuses(answer)
    assert len(codes) == 1 and codes[0] in (400, 408, 413, 414, 417, 431, 501, 505), (name, codes, answer[:300])
    head, body = answer.split(b"\r\n\r\n", 1)
    assert b"connection: close" in head.lower()
    assert json.loads(body)["code"] and b"next-in-line" not in body


TAKEN = {
    "chunks": (post(CHUNKED, body=CHUNKS), [404, 404]),
    "chunks with extensions": (post(CHUNKED, body=b'5;a=b;c="d"\r\nhello\r\n0;e\r\n\r\n'), [404, 404]),
    "chunks with trailers": (post(CHUNKED, body=b"5\r\nhello\r\n0\r\nX-T: 1\r\nContent-Length: 99\r\n\r\n"), [404, 404]),
    "chunks with zeros in front": (post(CHUNKED, body=b"00005\r\nhello\r\n000\r\n\r\n"), [404, 404]),
    "coding in capitals": (post(b"transfer-encoding: CHUNKED", body=CHUNKS), [404, 404]),
    "head that has a body": (b"HEAD /health HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(NEXT) + NEXT, [200, 404]),
    "get that has a body": (get(b"/health", b"Content-Length: %d" % len(NEXT)) + NEXT, [200, 404]),
    "absolute form": (get(b"http://other/health"), [200, 404]),
    "empty lines in front": (b"\r\n\r\n" + get(b"/health"), [200, 404]),
    "header of 8 KB": (get(b"/health", b"A: " + b"a" * 8000), [200, 404]),
    "bytes over 127 in a header": (get(b"/health", b"A: \xff\xfe"), [200, 404]),
    "keep-alive of HTTP/1.0": (get(b"/health", b"Connection: keep-alive", version=b"HTTP/1.0"), [200, 404]),
    "pipeline": (get(b"/health") * 50, [200] * 50 + [404]),
    "options": (b"OPTIONS /health HTTP/1.1\r\nHost: x\r\n\r\n", [204, 404]),
    "trace": (b"TRACE /health HTTP/1.1\r\nHost: x\r\n\r\n", [405, 404]),
    "method of 300 letters": (b"G" * 300 + b" /health HTTP/1.1\r\nHost: x\r\n\r\n", [405, 404]),
    "a method nobody knows": (b"FOO /health HTTP/1.1\r\nHost: x\r\n\r\n", [405, 404]),
    "upgrade that is not wanted": (get(b"/health", b"Upgrade: h2c", b"Connection: upgrade"), [200, 404]),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_odd_but_right_ends_where_it_ends(hosts, name):
    data, expected = TAKEN[name]
    answer = send(hosts, data + NEXT)
    assert statuses(answer) == expected, (name, answer[:500])
    assert answer.rstrip().endswith(b"}")


@pytest.mark.parametrize("target,code", [
    (b"*", 400), (b"x:1", 400), (b"http://", 400), (b"http:///health", 400), (b"//health", 404), (b"/health/", 404),
    (b"/health%00", 404), (b"/%2fhealth", 404), (b"/he%61lth", 200), (b"/health%", 404), (b"/health%zz", 404),
    (b"/sandboxes/%2e%2e/health", 404), (b"/../health", 404), (b"/./health", 404), (b"/health#x", 400), (b"/health;x", 404),
    (b"/health?" + b"a" * 5000, 200), (b"/\xff", 400), (b"/health?\xff", 400), (b"/health?%00", 200),
])
def test_targets_mean_one_thing(hosts, target, code):
    answer = send(hosts, get(target, b"X-API-Key: KEY", b"Connection: close"))
    assert statuses(answer)[0] == code or (code == 400 and statuses(answer)[0] == 404), answer[:300]


def test_options_of_everything_and_connect_are_answered(hosts):
    connect_head = b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert statuses(send(hosts, connect_head))[0] in (400, 404, 405, 501)
    for target in (b"*", b"http://example.org"):
        answer = send(hosts, b"OPTIONS " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert statuses(answer) == [204] and b"\r\nAllow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n" in answer, answer


def test_lines_over_the_limit_tell_which(hosts):
    assert statuses(send(hosts, get(b"/" + b"a" * 200_000)))[0] in (414, 431)
    assert statuses(send(hosts, get(b"/health", b"A: " + b"a" * 200_000))) == [431]
    assert statuses(send(hosts, get(b"/health", *[b"A%d: b" % i for i in range(3000)]))) == [431]


def test_continue_is_asked_once_and_only_if_the_body_is_wanted(hosts):
    with connect(hosts) as one:
        one.sendall(post(b"Content-Length: 5", b"Expect: 100-continue", b"Connection: close").replace(
            b"KEY", hosts.key.encode()))
        assert one.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        one.sendall(b"hello")
        assert statuses(read_all(one)) == [404]
    wrong = post(b"Content-Length: 5", b"Expect: 100-continue").replace(b"KEY", b"wrong-key-1")
    assert statuses(send(hosts, wrong)) == [403]


def rss(server):
    total = 0
    for pid in server.processes()["worker"]:
        with open(f"/proc/{pid}/status") as status:
            total += next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
    return total


def test_endless_lines_grow_nothing(hosts):
    before = rss(hosts)
    for start, more in ((get(b"/health")[:-2] + b"A: ", b"a" * 65536), (b"GET /", b"a" * 65536),
                        (post(CHUNKED, body=b"1"), b"1" * 65536), (post(CHUNKED, body=b"1;"), b"x" * 65536),
                        (post(CHUNKED, body=b"0\r\nX: "), b"x" * 65536)):
        with connect(hosts) as one:
            try:
                one.sendall(start.replace(b"KEY", hosts.key.encode()))
                for _ in range(512):
                    one.sendall(more)
            except (BrokenPipeError, ConnectionResetError, TimeoutError):
                pass
    assert SANITIZED or rss(hosts) - before < 16 * 1024


def test_slow_clients_hold_up_nobody_and_are_sent_away(hosts):
    slow = [connect(hosts) for _ in range(100)]
    try:
        for i, one in enumerate(slow):
            one.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nX: "[:1 + i % 30])
        assert hosts.client.get("/health").status_code == 200
        # A byte now and then buys no time: the deadline is that of the whole head.
        ended, deadline = set(), time.monotonic() + 60
        while len(ended) < len(slow) and time.monotonic() < deadline:
            for i, one in enumerate(slow):
                if i not in ended:
                    try:
                        one.sendall(b"a")
                        one.setblocking(False)
                        if statuses(one.recv(1000)) in ([408], [400], []):
                            ended.add(i)
                    except BlockingIOError:
                        pass
                    except OSError:
                        ended.add(i)
                    one.setblocking(True)
        assert len(ended) == len(slow)
    finally:
        for one in slow:
            one.close()


def test_a_flood_of_connections_leaves_room_again(hosts):
    held = []
    try:
        for _ in range(600):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", hosts.port))
            held.append(one)
    finally:
        for one in held:
            one.close()

    def served():
        with connect(hosts) as one:
            one.sendall(get(b"/health", b"Connection: close"))
            return statuses(read_all(one)) == [200]
    eventually(served, 30, "served after the flood")


def half_closed(server, data):
    """What a client gets that has no more to send."""
    with connect(server) as one:
        one.sendall(data.replace(b"KEY", server.key.encode()))
        one.shutdown(socket.SHUT_WR)
        return read_all(one)


def test_half_closed_clients_get_their_answer(hosts):
    assert statuses(half_closed(hosts, get(b"/health"))) == [200]
    assert statuses(half_closed(hosts, get(b"/health") * 20 + NEXT)) == [200] * 20 + [404]
    patch = post(CHUNKED, body=b"2\r\n{}\r\n0\r\n\r\n").replace(b"POST /jobs/", b"PATCH /sandboxes/").replace(b"/stdin", b"")
    assert statuses(half_closed(hosts, patch)) == [404]
    # What is not whole will never be.
    for cut in (get(b"/health")[:-2], post(b"Content-Length: 50", body=b"hello"), post(CHUNKED, body=CHUNKS[:-4])):
        assert statuses(half_closed(hosts, cut)) == []


def test_half_closed_clients_get_what_takes_a_while(hosts):
    box = hosts.create()
    path = box.url.encode()

    def ask(method, target, body=b""):
        return half_closed(hosts, b"%s %s HTTP/1.1\r\nHost: x\r\nX-API-Key: KEY\r\nContent-Length: %d\r\n\r\n%s" % (
            method, path + target, len(body), body))
    answer = ask(b"POST", b"/exec", b'{"command": "sleep 0.3; echo hello"}')
    assert statuses(answer) == [200] and b'"stdout":"hello\\n"' in answer
    content = bytes(range(256)) * 8192  # more than is read while the sandbox has not taken it
    assert statuses(ask(b"PUT", b"/files/raw?path=/tmp/a", content)) == [200]
    assert ask(b"GET", b"/files/raw?path=/tmp/a").endswith(b"\r\n\r\n" + content)
    # Who waits on has left.
    with connect(hosts) as one:
        one.sendall(b"POST %s/exec HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: 24\r\n\r\n"
                    b'{"command": "sleep 100"}' % (path, hosts.key.encode()))
        one.shutdown(socket.SHUT_WR)
        assert read_all(one) == b""
    box.delete()
