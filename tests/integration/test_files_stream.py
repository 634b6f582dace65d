"""Big files, slow sides, sides that end: bytes pass without being gathered, and a file is there whole or not at all."""

import contextlib
import hashlib
import os
import signal
import socket
import subprocess

import httpx
import pytest

from files import content, encode, put, raw_get, raw_put, stat, temporaries
from orchard_server import SANITIZED, eventually

BIG = 256 << 20
BLOCK = bytes(range(256)) * 1024
HELD = 64 << 20  # more than all the sockets and buffers on the way hold


def resident(pid, peak=False):
    """KiB of memory."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:" if peak else "VmRSS:"))


def reset_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")


@contextlib.contextmanager
def bounded(box, workers=16 << 10, agent=4 << 10):
    """No worker, nor the agent, grows by more than so many KiB at any moment of it."""
    agent_pid, worker_pids = box.agent_pid(), box.server.processes()["worker"]
    before = {pid: resident(pid) for pid in [agent_pid, *worker_pids]}
    for pid in before:
        reset_peak(pid)
    yield
    for pid, kib in before.items():
        growth = resident(pid, peak=True) - kib
        assert SANITIZED or growth < (agent if pid == agent_pid else workers), (pid == agent_pid, growth)


def warm_up(box):
    raw_put(box, "/tmp/warm", BLOCK)
    raw_get(box, "/tmp/warm")


class Raw:
    """A client that is played by hand."""

    def __init__(self, server, method, target, *headers, version="1.1"):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        lines = [f"{method} {target} HTTP/{version}", "Host: x", f"X-API-Key: {server.key}", *headers]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def fill(self, most):
        """Sends until the other side takes no more for a while, or all of it; how much that was."""
        self.socket.settimeout(1)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < most:
                sent += self.socket.send(BLOCK[:most - sent])
        self.socket.settimeout(60)
        return sent

    def answer(self):
        return b"".join(iter(lambda: self.socket.recv(1 << 16), b""))


def raw_path(box, path, **params):
    return f"{box.url}/files/raw?path={encode(path)}" + "".join(f"&{name}={value}" for name, value in params.items())


def helpers(box):
    """Pids, as this side sees them, of the sandbox's file calls."""
    pid = box.agent_pid()
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        found = [int(word) for word in file.read().split()]
    names = {}
    for child in found:
        with contextlib.suppress(OSError), open(f"/proc/{child}/comm") as comm:
            names[child] = comm.read().strip()
    return [child for child, name in names.items() if name == "orchard-files"]


def begun(box):
    """An upload of /tmp/f that has begun, and stands half way."""
    put(box, "/tmp/f", b"old")
    eventually(lambda: not helpers(box), what="the helper of the call before has ended")
    upload = Raw(box.server, "PUT", raw_path(box, "/tmp/f"), f"Content-Length: {HELD}")
    upload.socket.sendall(BLOCK * 8)
    eventually(lambda: helpers(box), what="a helper runs")
    return upload


def nothing_happened(box):
    eventually(lambda: not helpers(box), what="the helper has ended")
    eventually(lambda: temporaries(box, "/tmp") == "", what="no temporary file is left")
    assert content(box, "/tmp/f") == b"old"


def stands_still(pid):
    """A condition: since it was asked the last time the process has read and written nothing."""
    seen = []

    def look():
        with open(f"/proc/{pid}/io") as io:
            seen.append(io.read())
        return len(seen) > 1 and seen[-1] == seen[-2]
    return look


# --- big ones ---------------------------------------------------------------
def test_a_big_file_costs_no_memory(server):
    box = server.create(memory="1Gi")
    warm_up(box)
    whole = hashlib.sha256()
    for _ in range(BIG // len(BLOCK)):
        whole.update(BLOCK)
    with bounded(box):
        answer = raw_put(box, "/tmp/big", (BLOCK for _ in range(BIG // len(BLOCK))))
        assert answer.json()["size"] == BIG
    came = hashlib.sha256()
    with bounded(box), box.client.stream("GET", raw_path(box, "/tmp/big")) as answer:
        assert answer.headers["content-length"] == str(BIG)
        for piece in answer.iter_raw():
            came.update(piece)
    assert came.digest() == whole.digest()
    box.delete()


def test_a_slow_reader_makes_the_sandbox_wait(server):
    box = server.create()
    warm_up(box)
    box.out(f"truncate -s {1 << 40} /tmp/endless")
    with bounded(box), Raw(server, "GET", raw_path(box, "/tmp/endless")) as slow:
        assert slow.socket.recv(1).startswith(b"H")
        [helper] = eventually(lambda: helpers(box), what="a helper runs")
        eventually(stands_still(helper), what="the helper waits for its reader")
        assert content(box, "/tmp/warm") == BLOCK  # nobody else waits
        slow.socket.recv(1 << 20)
    eventually(lambda: not helpers(box), what="the helper of a reader that left has ended")
    box.delete()


def test_a_slow_writer_into_a_slow_disk_is_held_back(server):
    """The helper is stopped: what the client sends stays with it."""
    box = server.create()
    warm_up(box)
    with bounded(box), begun(box) as upload:
        [helper] = helpers(box)
        os.kill(helper, signal.SIGSTOP)
        assert upload.fill(HELD - 8 * len(BLOCK)) < HELD // 2
        assert content(box, "/tmp/f") == b"old"
        os.kill(helper, signal.SIGCONT)
    nothing_happened(box)
    box.delete()


def test_a_writer_that_comes_in_drops(fresh):
    with Raw(fresh.server, "PUT", raw_path(fresh, "/tmp/drops"), "Content-Length: 40", "Connection: close") as slow:
        for number in range(40):
            slow.socket.sendall(b"%d" % (number % 10))
            if number % 10 == 0:
                assert stat(fresh, "/tmp/drops").status_code == 404
        assert b"200 OK" in slow.answer()
    assert content(fresh, "/tmp/drops") == b"0123456789" * 4


# --- curl, and what it may ask ----------------------------------------------
def curl(box, *args, data=b""):
    """Exit code, status lines and headers, body."""
    done = subprocess.run(["curl", "-sS", "-D", "/dev/stderr", "--max-time", "60", "-H", f"X-API-Key: {box.server.key}",
                           *args], input=data, capture_output=True)
    return done.returncode, done.stderr.decode().lower(), done.stdout


def url(box, path, **params):
    return f"http://127.0.0.1:{box.server.port}{raw_path(box, path, **params)}"


@pytest.mark.parametrize("flags", [
    ["-H", "Expect: 100-continue"], ["-H", "Expect: 100-continue", "-H", "Transfer-Encoding: chunked"],
    ["-H", "Expect:", "-H", "Transfer-Encoding: chunked"], ["--http1.0"]], ids=["expect", "expect-chunked", "chunked", "1.0"])
def test_curl_uploads(box, tmp_path, flags):
    (tmp_path / "f").write_bytes(BLOCK * 5)
    code, head, _ = curl(box, "-T", str(tmp_path / "f"), *flags, url(box, "/tmp/curl"))
    assert code == 0 and " 200 ok" in head, head
    assert (" 100 continue" in head) == ("Expect: 100-continue" in flags)
    assert content(box, "/tmp/curl") == BLOCK * 5
    code, head, body = curl(box, *(["--http1.0"] if "--http1.0" in flags else []), url(box, "/tmp/curl"))
    assert code == 0 and body == BLOCK * 5 and f"content-length: {len(body)}" in head


def test_a_part_of_a_file_never_takes_the_place_of_the_whole(box, tmp_path):
    (tmp_path / "f").write_bytes(b"0123456789")
    raw_put(box, "/tmp/part", b"01234")
    code, head, body = curl(box, "-C", "5", "-T", str(tmp_path / "f"), url(box, "/tmp/part"))
    assert code == 0 and " 422 " in head and b"Content-Range" in body, (head, body)
    assert content(box, "/tmp/part") == b"01234"


def test_a_refused_upload_is_never_sent(box, tmp_path):
    (tmp_path / "f").write_bytes(BLOCK * 40)
    code, head, body = curl(box, "-T", str(tmp_path / "f"), "-H", "Expect: 100-continue", "-w", "%{size_upload}", url(box, "/proc/no/f"))
    assert code == 0 and " 404 " in head and " 100 " not in head
    assert body.endswith(b"}0"), body


def test_a_file_of_the_kernel_for_http_1_0(box):
    with Raw(box.server, "GET", raw_path(box, "/proc/self/status"), version="1.0") as old:
        head, body = old.answer().split(b"\r\n\r\n", 1)
    assert body.startswith(b"Name:") and b"chunked" not in head.lower() and b"content-length" not in head.lower()


def test_head_ranges_and_conditions(fresh):
    raw_put(fresh, "/tmp/r", BLOCK)
    size = len(BLOCK)
    head = raw_get(fresh, "/tmp/r", method="HEAD")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(size))
    assert head.headers["accept-ranges"] == "bytes"
    etag = head.headers["etag"]

    for asked, first, last in (("0-0", 0, 0), ("10-19", 10, 19), (f"{size - 1}-", size - 1, size - 1), ("-7", size - 7, size - 1),
                               (f"5-{size * 9}", 5, size - 1), (f"-{size * 2}", 0, size - 1)):
        answer = raw_get(fresh, "/tmp/r", Range=f"bytes={asked}")
        assert answer.status_code == 206, asked
        assert answer.headers["content-range"] == f"bytes {first}-{last}/{size}"
        assert answer.content == BLOCK[first:last + 1]
        assert answer.headers["etag"] == etag
    for asked in (f"{size}-", "-0", f"{size + 5}-{size + 9}"):
        answer = raw_get(fresh, "/tmp/r", Range=f"bytes={asked}")
        assert answer.status_code == 416 and answer.headers["content-range"] == f"bytes */{size}", asked
        assert answer.json()["code"] == "range_not_satisfiable", asked
        assert answer.json()["detail"] == f"the file has {size} bytes", asked
    for asked in ("bytes=1-2,5-6", "lines=1-2", "bytes=9-1", "bytes=x", "bytes="):
        assert raw_get(fresh, "/tmp/r", Range=asked).content == BLOCK, asked

    part = raw_get(fresh, "/tmp/r", method="HEAD", Range="bytes=1-2")
    assert part.content == b"" and part.status_code in (200, 206)
    assert raw_get(fresh, "/tmp/r", Range="bytes=1-2", If_Range=etag).status_code == 206
    same = raw_get(fresh, "/tmp/r", If_None_Match=f'"x", {etag}')
    assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
    raw_put(fresh, "/tmp/r", BLOCK[1:])
    assert raw_get(fresh, "/tmp/r", Range="bytes=1-2", If_Range=etag).status_code == 200
    changed = raw_get(fresh, "/tmp/r", If_None_Match=etag)
    assert changed.status_code == 200 and changed.headers["etag"] != etag and changed.content == BLOCK[1:]


def test_a_file_that_shrinks_while_it_is_sent_is_cut(server):
    box = server.create()
    box.out(f"truncate -s {HELD} /tmp/shrinks")
    with Raw(server, "GET", raw_path(box, "/tmp/shrinks"), "Connection: close") as reader:
        reader.socket.recv(1)
        box.out("truncate -s 1000 /tmp/shrinks")
        with contextlib.suppress(ConnectionResetError):
            assert len(reader.answer()) < HELD
    box.delete()


# --- sides that end ---------------------------------------------------------
@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_client_that_leaves_an_upload(fresh, how):
    upload = begun(fresh)
    upload.socket.close() if how == "close" else upload.reset()
    nothing_happened(fresh)


def test_a_client_that_resets_a_held_upload(fresh):
    upload = begun(fresh)
    [helper] = helpers(fresh)
    os.kill(helper, signal.SIGSTOP)
    upload.fill(HELD)
    upload.reset()
    eventually(lambda: not helpers(fresh), what="a helper that nobody waits for is ended though it hangs")
    nothing_happened(fresh)


def test_a_client_that_leaves_a_download(fresh):
    fresh.out("truncate -s 1T /tmp/endless")
    for leave in (lambda reader: reader.socket.close(), Raw.reset):
        reader = Raw(fresh.server, "GET", raw_path(fresh, "/tmp/endless"))
        reader.socket.recv(1)
        assert eventually(lambda: helpers(fresh), what="a helper runs")
        leave(reader)
        eventually(lambda: not helpers(fresh), what="the helper has ended")


def test_a_helper_that_is_killed(fresh):
    with begun(fresh) as upload:
        for helper in helpers(fresh):
            os.kill(helper, signal.SIGKILL)
        assert b" 500 " in upload.answer()
    nothing_happened(fresh)


def test_a_worker_that_is_killed(make_server):
    server = make_server(workers=1).start()
    box = server.create()
    with begun(box):
        [worker] = server.processes()["worker"]
        os.kill(worker, signal.SIGKILL)
        server.wait_ready()

        def answers():
            try:
                return content(box, "/tmp/f") == b"old"
            except httpx.TransportError:
                return False
        eventually(answers, what="the next worker answers")
        nothing_happened(box)


def test_an_agent_that_is_killed(server):
    """What is half written has no name, so nothing has to be removed by who is dead."""
    box = server.create()
    with begun(box) as upload:
        [place] = [path.parent for path in (server.state_dir / "sandboxes" / box.id).rglob("tmp/f")]
        names = os.listdir(place)
        os.kill(box.agent_pid(), signal.SIGKILL)
        answer = upload.answer()
        assert answer == b"" or int(answer.split()[1]) >= 500
    assert "f" in names and not [name for name in names if name.startswith(".orchard-")]
    with contextlib.suppress(FileNotFoundError):  # the whole sandbox may be gone by now
        assert (place / "f").read_bytes() == b"old"
    assert raw_get(box, "/tmp/f").status_code in (404, 409, 503)
    box.client.delete(box.url)
