"""A proxy between server and agent that forwards a request and loses its answer: the command runs once all the same."""

import os
import random
import select
import socket
import threading
import time

import httpx
import pytest


class CuttingProxy:
    """Takes the place of an agent's socket. The first `cuts` commands reach the agent, their answers reach nobody."""

    def __init__(self, path, cuts):
        self.path, self.aside, self.left = path, path.with_name("aside"), cuts
        self.cut = 0
        os.rename(path, self.aside)
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        os.chmod(path, 0o777)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        agent.connect(str(self.aside))
        state = {"cut": False}

        def back():
            while data := agent.recv(65536):
                if state["cut"]:
                    break
                client.sendall(data)
            for one in (client, agent):
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        threading.Thread(target=back, daemon=True).start()
        try:
            while data := client.recv(65536):
                if b"POST /exec " in data and self.left > 0:
                    self.left -= 1
                    self.cut += 1
                    state["cut"] = True
                agent.sendall(data)
        except OSError:
            pass

    def close(self):
        self.listener.close()
        os.rename(self.aside, self.path)


@pytest.mark.parametrize("keyed", [False, True])
def test_b071_lost_answers_of_the_agent_run_nothing_twice(make_server, keyed):
    server = make_server(workers=1).start()
    box = server.create()
    (path,) = (server.run_dir / "sandboxes" / box.id).glob("*.sock")
    proxy = CuttingProxy(path, cuts=3)
    try:
        for pid in server.processes()["worker"]:
            os.kill(pid, 9)  # the new one has no connection of before
        server.wait_ready()
        for number in range(1, 6):
            headers = {"Idempotency-Key": f"lost {number}"} if keyed else {}
            job = box.client.post(f"{box.url}/exec", json={"command": "echo x >> /tmp/n; sleep 0.3; wc -l < /tmp/n"},
                                  headers=headers, timeout=60).json()
            assert (job["status"], job["stdout"]) == ("succeeded", f"{number}\n")
        assert proxy.cut == 3
    finally:
        proxy.close()


def test_b074_connection_closed_while_idle_runs_nothing_twice(make_server):
    """Asked again on a connection that the server is closing just now: refused or answered, run once by its key."""
    server = make_server(keepalive_timeout_seconds=1).start()
    box = server.create()
    with httpx.Client(base_url=str(server.client.base_url), headers=server.client.headers, verify=False) as client:
        for number in range(1, 11):
            for _ in range(5):
                try:
                    answer = client.post(f"{box.url}/exec", json={"command": "echo x >> /tmp/n; wc -l < /tmp/n"},
                                         headers={"Idempotency-Key": f"idle {number}"}, timeout=30)
                    break
                except httpx.TransportError:
                    continue
            assert answer.json()["stdout"] == f"{number}\n"
            time.sleep(0.95 + number / 100)  # the idle gap is what is tried, not what is waited for


def read_message(sock, data=b""):
    """One HTTP message with a Content-Length; b"" at the end of the connection."""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    while lengths and len(body) < lengths[0]:
        body += sock.recv(65536)
    return head + b"\r\n\r\n" + body


class IdleClosingProxy(CuttingProxy):
    """Like an agent whose patience with idle connections ends at random, also just when the next command comes."""

    def __init__(self, path):
        self.idle_closes, self.closed_on_command = 0, 0
        super().__init__(path, 0)

    def serve(self, client):
        agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        agent.connect(str(self.aside))
        try:
            while request := read_message(client):
                agent.sendall(request)
                client.sendall(read_message(agent))
                came = select.select([client], [], [], random.random() * 0.03)[0]
                if not came or random.random() < 0.5:
                    self.idle_closes += 1
                    self.closed_on_command += bool(came and client.recv(9, socket.MSG_PEEK) == b"POST /exe")
                    break
        except OSError:
            pass
        for one in (client, agent):
            one.close()


def test_b074_agent_closes_its_idle_connection_just_when_a_command_comes(make_server):
    server = make_server(workers=1).start()
    box = server.create()
    (path,) = (server.run_dir / "sandboxes" / box.id).glob("*.sock")
    proxy = IdleClosingProxy(path)
    try:
        for pid in server.processes()["worker"]:
            os.kill(pid, 9)  # the new one has no connection of before
        server.wait_ready()
        for number in range(1, 201):
            job = box.client.post(f"{box.url}/exec", json={"command": "echo x >> /tmp/n; wc -l < /tmp/n"}, timeout=60)
            assert job.status_code == 200, job.text
            assert (job.json()["status"], job.json()["stdout"]) == ("succeeded", f"{number}\n"), job.text
        assert proxy.closed_on_command > 10 and proxy.idle_closes > 50
    finally:
        proxy.close()


class AnswerDroppingProxy:
    """In front of the server: the first answer reaches nobody."""

    def __init__(self, host, port):
        self.server, self.dropped = (host, port), 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with client, socket.create_connection(self.server) as server:
                server.sendall(read_message(client))
                answer = read_message(server)
                if self.dropped:
                    client.sendall(answer)
                self.dropped += 1

    def close(self):
        self.listener.close()


@pytest.mark.parametrize("body, headers", [({}, {"Idempotency-Key": "made once"}), ({"sandbox_id": "mine"}, {})])
def test_b075_lost_answer_to_a_create_leaves_one_sandbox(make_server, body, headers):
    server = make_server().start()
    url = httpx.URL(str(server.client.base_url))
    proxy = AnswerDroppingProxy(url.host, url.port)
    ask = {"json": {"image": "default"} | body, "headers": dict(server.client.headers) | headers | {"Connection": "close"},
           "timeout": 60}
    try:
        with pytest.raises(httpx.TransportError):
            httpx.post(f"http://127.0.0.1:{proxy.port}/sandboxes", **ask)
        (made,) = server.list_ids()
        answer = httpx.post(f"http://127.0.0.1:{proxy.port}/sandboxes", **ask)
        assert answer.status_code == 200 and answer.json()["sandbox_id"] == made
        assert server.list_ids() == [made]
    finally:
        proxy.close()
