"""The life of sandboxes through the API (fault group N)."""

import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchard_server import Sandbox, eventually


def test_create_and_get_shapes(server):
    answer = server.client.post("/sandboxes", json={
        "image": "default", "cpu": "500m", "memory": "256Mi", "timeout": 120, "labels": {"run": "7"}})
    assert answer.status_code == 200
    made = answer.json()
    assert {"sandbox_id", "namespace", "image", "block_network", "cpu", "memory", "timeout", "status"} <= set(made)
    assert (made["image"], made["block_network"], made["cpu"], made["memory"], made["timeout"]) == (
        "default", True, "500m", "256Mi", 120)
    box = Sandbox(server, made["sandbox_id"])
    state = box.wait_ready()
    assert {"sandbox_id", "namespace", "image", "pod_name", "block_network", "cpu", "memory", "created_at", "ready",
            "status", "status_message"} <= set(state)
    assert state["ready"] is True and state["labels"] == {"run": "7"}
    assert abs(state["created_at"] - time.time()) < 120
    box.delete()


def test_env_and_working_dir_of_a_sandbox(server):
    box = server.create(env={"A": "1", "B": "x y"}, working_dir="/work")
    assert box.out("echo $A $B; pwd") == "1 x y\n/work\n"
    assert box.out("echo $A", env={"A": "2"}) == "2\n"
    box.delete()


@pytest.mark.parametrize("body", [
    {}, {"image": 5}, {"image": None}, {"image": "default", "cpu": "0"}, {"image": "default", "cpu": "-1"},
    {"image": "default", "cpu": "abc"}, {"image": "default", "cpu": "2k0"}, {"image": "default", "memory": "16G b"},
    {"image": "default", "memory": "0"}, {"image": "default", "memory": "123456789012345678901"},
    {"image": "default", "memory": "8191Ki"}, {"image": "default", "memory": 1},
    {"image": "default", "timeout": -1}, {"image": "default", "timeout": 0}, {"image": "default", "timeout": "x"},
    {"image": "default", "block_network": "yes"}, {"image": "default", "labels": {"a": 1}},
    {"image": "default", "labels": []}, {"image": "default", "env": {"A=B": "x"}}, {"image": "default", "env": {"": "x"}},
    {"image": "default", "ttl_seconds": 0}, {"image": "default", "ttl_seconds": -5},
    {"image": "default", "working_dir": "relative"}, {"image": "default", "working_dir": "/a\0b"},
])
def test_b111_bad_create_bodies(server, body):
    before = server.list_ids()
    answer = server.client.post("/sandboxes", json=body)
    assert answer.status_code == 422, answer.text
    detail = answer.json()["detail"]
    assert isinstance(detail, list) and detail[0]["loc"][0] == "body" and detail[0]["msg"] and detail[0]["type"]
    assert server.list_ids() == before


@pytest.mark.parametrize("cpu,memory", [("1e-1", "1e8"), (0.5, 134217728), ("500m", "128Mi"), (1, "0.25Gi"), ("1", "200M")])
def test_b111_quantities(server, cpu, memory):
    box = server.create(cpu=cpu, memory=memory)
    assert box.out("echo ok") == "ok\n"
    box.delete()


def test_too_big_for_this_host_is_told_at_once(server):
    answer = server.client.post("/sandboxes", json={"image": "default", "memory": "900Ti"})
    assert answer.status_code == 503 and answer.json()["code"] == "no_capacity"
    answer = server.client.post("/sandboxes", json={"image": "default", "cpu": "100000"})
    assert answer.status_code == 503 and answer.json()["code"] == "no_capacity"
    assert answer.json()["detail"].startswith("100000 cores were asked for, this host has ")


@pytest.mark.parametrize("name", ["Foo_Bar", "lock:x", "", "-a", "a-", "a" * 55, "../x", "a/b", "\u00e9", "a\nb", "a b", "A"])
def test_b112_bad_sandbox_ids(server, name):
    assert server.client.post("/sandboxes", json={"image": "default", "sandbox_id": name}).status_code == 422
    assert isinstance(server.list_ids(), list)


@pytest.mark.parametrize("path", ["/sandboxes/Foo_Bar", "/sandboxes/..%2Fx", "/sandboxes/a%2Fb", "/sandboxes/%00",
                                  "/sandboxes/%ff%fe", "/sandboxes/" + "a" * 5000, "/sandboxes/nosuch", "/sandboxes/a%zz"])
def test_b112_odd_ids_are_not_found(server, path):
    for method in ("GET", "DELETE"):
        answer = server.client.request(method, path)
        assert answer.status_code in (400, 404), (method, path, answer.text)
        assert answer.json()["detail"]


def test_b105_the_same_id_again(server, busybox):
    first = server.client.post("/sandboxes", json={"image": "default", "sandbox_id": "dup"})
    assert first.status_code == 200
    again = server.client.post("/sandboxes", json={"image": "default", "sandbox_id": "dup"})
    assert again.status_code == 200 and again.json()["sandbox_id"] == "dup"
    other = server.client.post("/sandboxes", json={"image": busybox, "sandbox_id": "dup"})
    assert other.status_code == 409 and other.json()["code"] == "sandbox_exists"
    box = Sandbox(server, "dup")
    assert box.wait_ready()["image"] == "default"
    box.delete()


def test_b115_recreate_right_after_delete(server):
    for round_number in range(10):
        def create():
            answer = server.client.post("/sandboxes", json={"image": "default", "sandbox_id": "again"})
            if answer.status_code == 409:
                assert answer.headers.get("retry-after")
                return None
            assert answer.status_code == 200, answer.text
            return answer
        eventually(create, 20, "id free again")
        box = Sandbox(server, "again")
        box.wait_ready()
        assert box.out(f"cat /mark 2>/dev/null; echo {round_number} > /mark; cat /mark") == f"{round_number}\n"
        box.delete()


def test_b118_delete_of_unknown_and_deleted(server):
    assert server.client.delete("/sandboxes/nosuch").status_code == 404
    box = server.create()
    for _ in range(3):
        answer = server.client.delete(box.url)
        assert answer.status_code == 200
        assert answer.json() == {"status": "deleted", "sandbox_id": box.id}
    assert box.get().status_code == 404
    assert box.post_exec("true").status_code == 404
    assert box.id not in server.list_ids()


def test_delete_leaves_nothing(server):
    box = server.create()
    box.out("setsid sleep 1000 >/dev/null 2>&1 & touch /x")
    agent = box.agent_pid()
    cgroups = open(f"/proc/{agent}/cgroup").read()
    box.delete()
    import os
    eventually(lambda: not os.path.exists(f"/proc/{agent}"), 10, "agent gone")
    eventually(lambda: not (server.state_dir / "sandboxes" / box.id).exists(), 10)
    eventually(lambda: not (server.run_dir / "sandboxes" / box.id).exists(), 10)
    for line in cgroups.splitlines():
        number, controllers, path = line.split(":", 2)
        for root in ("/sys/fs/cgroup/" + controllers.replace("name=", ""), "/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
            own = root + path
            if box.id in own:
                eventually(lambda own=own: not os.path.exists(own), 10, own)


def test_wait_times_out_with_408(make_server):
    server = make_server().start()
    box = server.create()
    box.delete()
    assert server.client.get("/sandboxes/nosuch/wait?timeout=1").status_code == 404
    assert server.client.get(f"{box.url}/wait?timeout=0.1").status_code == 404


def test_wait_answers_failed_with_200(server, image_dir):
    box = server.create(image=f"dir:{image_dir}/nothing-here", wait=False)
    answer = server.client.get(f"{box.url}/wait?timeout=30")
    assert answer.status_code == 200 and answer.json()["status"] == "failed"
    assert box.post_exec("true").status_code == 409
    box.delete()


def test_a_failure_that_quotes_half_a_character_spoils_no_list(server, image_dir):
    for shift in range(2):
        name = f"dir:{image_dir}/" + "x" * shift + "\u00e9" * 100 + "/" + "\u00e9" * 50
        box = server.create(image=name, wait=False)
        failed = server.client.get(f"{box.url}/wait?timeout=30").json()
        assert failed["status"] == "failed" and "\u00e9" in failed["status_message"]
        assert box.id in [item["sandbox_id"] for item in server.client.get("/sandboxes").json()["sandboxes"]]
        box.delete()


def test_list_pages_and_filters(server):
    boxes = [server.create(wait=False, labels={"page": "yes", "n": str(n)}) for n in range(5)]
    got, cursor = [], None
    while True:
        params = {"label": "page=yes", "limit": 2} | ({"cursor": cursor} if cursor else {})
        page = server.client.get("/sandboxes", params=params).json()
        assert len(page["sandboxes"]) <= 2
        got += [item["sandbox_id"] for item in page["sandboxes"]]
        cursor = page["next_cursor"]
        if not cursor:
            break
    assert got == [box.id for box in boxes][::-1]
    for box in boxes:
        box.wait_ready()
    ready = server.client.get("/sandboxes", params={"label": "page=yes", "status": "ready"}).json()
    assert len(ready["sandboxes"]) == 5
    assert server.client.get("/sandboxes", params={"status": "bogus"}).status_code == 422
    assert server.client.get("/sandboxes", params={"limit": "-1"}).status_code == 422
    for box in boxes:
        box.delete()


def test_patch(server):
    box = server.create(labels={"a": "1"})
    began = time.time()
    answer = server.client.patch(box.url, json={"labels": {"b": "2"}, "ttl_seconds": 500})
    assert answer.status_code == 200 and answer.json()["labels"] == {"b": "2"}
    assert began + 499 < answer.json()["expires_at"] < time.time() + 501
    assert server.client.patch(box.url, json={"ttl_seconds": "x"}).status_code == 422
    assert server.client.patch("/sandboxes/nosuch", json={}).status_code == 404
    box.delete()


def test_ttl_takes_it(make_server):
    server = make_server().start()
    box = server.create(ttl_seconds=2)
    eventually(lambda: box.get().status_code == 404, 15, "ttl")
    assert box.client.delete(box.url).status_code == 200  # a clean-up after a TTL never fails
    eventually(lambda: not server.remains(), 15, "gone")


def test_heartbeat_silence_takes_it_only_after_the_first(make_server):
    server = make_server(heartbeat_timeout_seconds=2).start()
    silent, beating = server.create(), server.create()
    assert beating.client.post(f"{beating.url}/heartbeat").status_code == 200
    eventually(lambda: beating.get().status_code == 404, 15, "heartbeat rule")
    assert silent.get().json()["status"] == "ready"


def test_b095_used_but_never_polled_is_not_pending(make_server):
    server = make_server(pending_timeout_buffer_seconds=0).start()
    box = server.create(wait=False, timeout=3)
    assert box.out("echo used") == "used\n"
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 5, 10)
    assert box.get().json()["status"] == "ready"


def test_b104_reconciliation_spares_creates_in_flight(make_server, busybox):
    server = make_server(cleanup_interval_seconds=1).start()
    boxes = [server.create(image=busybox, wait=False) for _ in range(60)]
    for box in boxes:
        box.wait_ready()
    began = time.monotonic()
    eventually(lambda: time.monotonic() - began > 3, 10)
    assert len(server.list_ids()) == 60


def test_b120_client_leaves_during_create(make_server, busybox):
    server = make_server().start()
    body = ('{"image":"%s"}' % busybox).encode()
    request = (f"POST /sandboxes HTTP/1.1\r\nHost: x\r\nX-API-Key: {server.key}\r\nContent-Length: {len(body)}\r\n\r\n"
               ).encode() + body
    for _ in range(40):
        one = socket.create_connection(("127.0.0.1", server.port))
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.sendall(request)
        one.close()

    def settled():
        ids = set(server.list_ids())
        states = {item["sandbox_id"]: item["status"] for item in
                  server.client.get("/sandboxes", params={"limit": 1000}).json()["sandboxes"]}
        dirs = {entry.name for entry in (server.state_dir / "sandboxes").iterdir() if not entry.name.startswith("-")}
        return ids == dirs and all(status == "ready" for status in states.values())
    eventually(settled, 30, "records and sandboxes agree")


def test_many_creates_and_deletes_at_once(server, busybox):
    def life(number):
        box = server.create(image=busybox)
        assert box.out(f"echo {number}") == f"{number}\n"
        box.delete()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(life, range(64)))


def test_no_capacity_is_told(make_server, busybox):
    server = make_server(max_sandboxes=3).start()
    for _ in range(3):
        server.create(image=busybox, wait=False)
    answer = server.client.post("/sandboxes", json={"image": busybox})
    assert answer.status_code == 503 and answer.json()["code"] == "no_capacity"
    assert answer.headers["retry-after"]
