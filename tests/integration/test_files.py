"""Files of a sandbox: what goes in comes out, or the old one stays; names are bytes; nothing hangs. Faults by their ids."""

import base64
import json
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from files import (content, encode, get, listing, put, raw_get, raw_put, refused, remove, stat, temporaries)
from orchard_server import eventually

ALL_BYTES = bytes(range(256))
ODD_NAMES = [b"a b", b"line\nfeed", b"q'\"`$(id)", b"100%25", b"a+b", b"#x?y&z=1;", b"\xff\xfe", "é☕".encode(), b"-rf", b"b\\s",
             b"\x01\x1b[m", b"\xed\xa0\x80"]


def name_in_json(name):
    """A name as JSON has it: what is no UTF-8 as lone surrogates."""
    return name.decode("utf-8", "surrogateescape")


# --- the contract -----------------------------------------------------------
def test_upload_download_list(fresh):
    answer = put(fresh, "/tmp/new/dir/f.bin", ALL_BYTES)
    assert answer.status_code == 200
    assert answer.json() == {"success": True, "path": "/tmp/new/dir/f.bin", "size": 256}
    answer = get(fresh, "/tmp/new/dir/f.bin")
    assert answer.json() == {"path": "/tmp/new/dir/f.bin", "content": base64.b64encode(ALL_BYTES).decode(), "size": 256}
    answer = listing(fresh, "/tmp/new")
    [entry] = answer.json()["files"]
    assert answer.json()["path"] == "/tmp/new"
    assert (entry["name"], entry["type"], entry["is_symlink"]) == ("dir", "directory", False)
    [entry] = listing(fresh, "/tmp/new/dir").json()["files"]
    assert (entry["name"], entry["type"], entry["size"], entry["mode"]) == ("f.bin", "file", 256, "0644")
    assert time.strptime(entry["modified"], "%Y-%m-%dT%H:%M:%S")
    refused(get(fresh, "/tmp/nothing"), 404, "not_found")
    refused(get(fresh, "/tmp/new"), 400, "is_directory")
    refused(listing(fresh, "/tmp/nothing"), 404, "not_found")
    refused(listing(fresh, "/tmp/new/dir/f.bin"), 400, "not_directory")


def test_sizes_around_the_groups_of_base64(box):
    for size in (0, 1, 2, 3, 4, 65535, 65536, 65537, 300001):
        data = (ALL_BYTES * (size // 256 + 1))[:size]
        assert put(box, "/tmp/size", data).json()["size"] == size
        assert content(box, "/tmp/size") == data


def test_relative_paths_count_from_the_working_directory(server):
    sandbox = server.create(working_dir="/srv/work")
    put(sandbox, "in/f", b"x")
    assert sandbox.out("cat /srv/work/in/f") == "x"
    assert listing(sandbox, ".").json()["files"][0]["name"] == "in"
    assert sandbox.client.get(f"{sandbox.url}/files/list").json()["path"] == "."
    sandbox.delete()


def test_stat_mkdir_move_delete(fresh):
    def post(verb, **fields):
        return fresh.client.post(f"{fresh.url}/files/{verb}", json=fields)

    refused(post("mkdir", path="/tmp/a/b"), 404, "not_found")
    assert post("mkdir", path="/tmp/a/b", parents=True, mode="0750").json() == {"success": True, "path": "/tmp/a/b"}
    refused(post("mkdir", path="/tmp/a/b"), 409, "exists")
    entry = stat(fresh, "/tmp/a/b").json()
    assert (entry["path"], entry["type"], entry["kind"], entry["mode"]) == ("/tmp/a/b", "directory", "directory", "0750")
    put(fresh, "/tmp/a/f", b"1")
    put(fresh, "/tmp/a/g", b"2")
    refused(post("move", **{"from": "/tmp/a/f", "to": "/tmp/a/g"}), 409, "exists")
    moved = post("move", **{"from": "/tmp/a/f", "to": "/tmp/a/g", "overwrite": True})
    assert moved.json() == {"success": True, "from": "/tmp/a/f", "to": "/tmp/a/g"}
    assert content(fresh, "/tmp/a/g") == b"1"
    refused(remove(fresh, "/tmp/a"), 409, "not_empty")
    assert remove(fresh, "/tmp/a", recursive=1).json() == {"success": True, "path": "/tmp/a"}
    refused(stat(fresh, "/tmp/a"), 404, "not_found")
    refused(remove(fresh, "/tmp/a", recursive=1), 404, "not_found")


@pytest.mark.parametrize("path", ["/tmp/d/.", "/tmp/d/..", "/tmp/d/../", "/tmp/d/.//"])
def test_what_is_removed_is_named(fresh, path):
    fresh.out("mkdir /tmp/d; touch /tmp/d/kept")
    refused(remove(fresh, path, recursive="1"), 400, "invalid")
    assert fresh.out("ls /tmp/d") == "kept\n"


@pytest.mark.parametrize("recursive", ["0", "1"])
def test_a_slash_behind_a_link_removes_nothing(fresh, recursive):
    fresh.out("mkdir /tmp/d; touch /tmp/d/kept /tmp/f; ln -s d /tmp/l; ln -s nowhere /tmp/n")
    refused(remove(fresh, "/tmp/l/", recursive=recursive), 400, "not_directory")
    refused(remove(fresh, "/tmp/f/", recursive=recursive), 400, "not_directory")
    refused(remove(fresh, "/tmp/n//", recursive=recursive), 404, "not_found")
    assert fresh.out("ls /tmp /tmp/d") == "/tmp:\nd\nf\nl\nn\n\n/tmp/d:\nkept\n"
    fresh.out("rm /tmp/d/kept")
    assert remove(fresh, "/tmp/d//", recursive=recursive).status_code == 200
    assert remove(fresh, "/tmp/l", recursive=recursive).status_code == 200
    assert fresh.out("ls /tmp") == "f\nn\n"


@pytest.mark.parametrize("user", ["65536:0", "0:65536"])
def test_a_user_whom_the_sandbox_does_not_have(box, user):
    def fault(answer, where):
        assert answer.status_code == 422, answer.text
        assert [(entry["loc"], entry["msg"]) for entry in answer.json()["detail"]] == [
            ([where, "user"], f"user {user}: the sandbox has no such ids")]

    fault(put(box, "/tmp/strange", b"x", user=user), "body")
    fault(raw_put(box, "/tmp/strange", b"x", user=user), "query")
    fault(listing(box, "/tmp", user=user), "query")
    fault(box.client.get(f"{box.url}/archive", params={"path": "/etc", "user": user}), "query")
    refused(stat(box, "/tmp/strange"), 404, "not_found")


def test_wrong_requests_are_told_before_anything_is_done(box):
    def fault(answer, where):
        assert answer.status_code == 422, answer.text
        assert answer.json()["detail"][0]["loc"] == where

    url = f"{box.url}/files"
    fault(box.client.post(url, json={"content": ""}), ["body", "path"])
    fault(box.client.post(url, json={"path": "/tmp/x"}), ["body", "content"])
    fault(box.client.post(url, json={"path": "", "content": ""}), ["body", "path"])
    fault(box.client.post(url, json={"path": "/tmp/x\0y", "content": ""}), ["body", "path"])
    fault(box.client.post(url, json={"path": 5, "content": ""}), ["body", "path"])
    fault(box.client.get(url), ["query", "path"])
    fault(box.client.get(f"{url}/raw?path="), ["query", "path"])
    fault(box.client.get(f"{url}/raw?path=a%00b"), ["query", "path"])
    fault(box.client.get(f"{url}/list?path=/&limit=0"), ["query", "limit"])
    fault(box.client.delete(f"{url}?path=/tmp&recursive=yes"), ["query", "recursive"])
    refused(raw_get(box, "/tmp/" + "x" * 256), 400, "name_too_long")
    refused(box.client.post(url, json={"path": "é" * 2047, "content": ""}), 400, "name_too_long")


def test_a_sandbox_that_is_not_there(server, box):
    for path in ("files?path=/x", "files/raw?path=/x", "files/list?path=/", "files/stat?path=/"):
        assert server.client.get(f"/sandboxes/nobody/{path}").status_code == 404
    gone = server.create()
    gone.delete()
    refused(put(gone, "/tmp/x", b"x"), 404, "not_found")


def test_a_pending_sandbox_is_waited_for(server):
    sandbox = server.create(wait=False)
    assert put(sandbox, "/tmp/early", b"x").status_code == 200
    assert content(sandbox, "/tmp/early") == b"x"
    sandbox.delete()


# --- faults -----------------------------------------------------------------
def test_B040_what_is_uploaded_belongs_to_the_user_of_commands(fresh):
    fresh.out("mkdir /workspace && chown 1000:1000 /workspace && useradd -u 1000 worker")
    assert put(fresh, "/workspace/d/b", b"x", user="1000").status_code == 200
    assert fresh.out("stat -c %u:%g /workspace/d /workspace/d/b") == "1000:1000\n1000:1000\n"
    assert fresh.exec("rm -r /workspace/d", user="worker")["exit_code"] == 0


def test_B055_paths_are_the_sandboxs_own(fresh):
    fresh.out("mkdir /workspace; cd /workspace; ln -s /proc/1/root/etc l; ln -s /../../../../etc m; ln -s /run r; echo inside > /etc/mark")
    assert content(fresh, "/workspace/m/mark") == b"inside\n"
    assert content(fresh, "/workspace/../etc/mark") == b"inside\n"
    through = get(fresh, "/workspace/l/mark")  # another process's root is not everybody's to look through
    assert through.status_code == 403 or base64.b64decode(through.json()["content"]) == b"inside\n"
    assert put(fresh, "/workspace/r/x", b"1").status_code == 200
    assert fresh.out("cat /run/x") == "1"


def test_B057_dangling_links_are_listed(fresh):
    fresh.out("mkdir /workspace; cd /workspace; ln -s /nope d; ln -s d2 d2; touch ok; ln -s / root")
    files = {entry["name"]: entry for entry in listing(fresh, "/workspace").json()["files"]}
    assert list(files) == ["d", "d2", "ok", "root"]
    assert [files[n]["is_symlink"] for n in files] == [True, True, False, True]
    assert files["d"]["target"] == "/nope" and files["d"]["kind"] == "symlink"
    assert files["root"]["type"] == "directory" and files["d"]["type"] == "file"
    refused(stat(fresh, "/workspace/d"), 404, "not_found")
    assert stat(fresh, "/workspace/d", follow=0).json()["target"] == "/nope"
    refused(get(fresh, "/workspace/d2"), 400, "too_many_links")
    assert put(fresh, "/workspace/d", b"made").status_code == 200
    assert fresh.out("cat /nope") == "made"


def test_B059_special_files_hang_nothing(fresh):
    fresh.out("mkdir /workspace; cd /workspace; mkfifo p; python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('s')\" || perl -e "
              "'use Socket; socket(S,PF_UNIX,SOCK_STREAM,0); bind(S,sockaddr_un(\"s\"))'")
    for path in ("/workspace/p", "/workspace/s", "/dev/zero", "/dev/full"):
        refused(get(fresh, path), 400, "not_regular")
        refused(raw_get(fresh, path), 400, "not_regular")
        refused(put(fresh, path, b"x"), 400, "not_regular")
    refused(get(fresh, "/workspace"), 400, "is_directory")
    refused(put(fresh, "/workspace", b"x"), 400, "is_directory")
    assert b"Name:" in content(fresh, "/proc/self/status")
    assert content(fresh, "/proc/1/limits").startswith(b"Limit")
    assert b"Name:" in raw_get(fresh, "/proc/self/status").content
    assert get(fresh, "/proc/self/mem").status_code >= 400
    assert fresh.out("echo alive") == "alive\n"


def test_B060_a_full_disk_leaves_the_old_file(server):
    sandbox = server.create(memory="64Mi")  # /dev/shm has half of it
    put(sandbox, "/dev/shm/a", b"old")
    big = bytes(40_000_000)
    for body in (big, iter([big[:1 << 20]] * 40)):  # of a known length: refused before it is sent; else when it is full
        answer = raw_put(sandbox, "/dev/shm/a", body)
        refused(answer, 507, "no_space")
        assert "remove files" in answer.json()["detail"]
        assert content(sandbox, "/dev/shm/a") == b"old"
        assert temporaries(sandbox, "/dev/shm") == ""
    sandbox.delete()


def test_B060_a_broken_upload_leaves_the_old_file(fresh):
    put(fresh, "/tmp/a", b"old")

    def half():
        yield bytes(3_000_000)
        raise ConnectionAbortedError("on purpose")
    with pytest.raises(ConnectionAbortedError):
        raw_put(fresh, "/tmp/a", half(), headers={"Content-Length": "10000000"})
    eventually(lambda: temporaries(fresh, "/tmp") == "", what="the temporary file is gone")
    assert content(fresh, "/tmp/a") == b"old"


def test_B061_base64_is_strict(box):
    put(box, "/tmp/b64", b"old")
    for text in ("aGVs\nbG8=", "aGVsbG8", "@@@@", "aGVsbG8=garbage", "-_8=", "aGVsbG9=", "=", "aGVsbG8=\n"):
        answer = box.client.post(f"{box.url}/files", json={"path": "/tmp/b64", "content": text})
        assert answer.status_code == 422, text
        assert answer.json()["detail"][0]["loc"] == ["body", "content"]
    assert content(box, "/tmp/b64") == b"old"
    assert box.client.post(f"{box.url}/files", json={"path": "/tmp/b64", "content": ""}).json()["size"] == 0
    assert content(box, "/tmp/b64") == b""


def test_B062_bytes_modes_and_owners_stay(fresh):
    assert put(fresh, "/tmp/x", ALL_BYTES, mode="0755").status_code == 200
    assert content(fresh, "/tmp/x") == ALL_BYTES
    assert fresh.out("stat -c %a /tmp/x") == "755\n"
    put(fresh, "/tmp/x", b"again")
    assert fresh.out("stat -c %a /tmp/x; cat /tmp/x") == "755\nagain"
    fresh.out("chown 1234:4321 /tmp/x")
    assert raw_put(fresh, "/tmp/x", b"raw").status_code == 200
    assert fresh.out("stat -c %u:%g:%a /tmp/x") == "1234:4321:755\n"
    assert raw_put(fresh, "/tmp/x", b"raw", mode="0600").status_code == 200
    assert fresh.out("stat -c %a /tmp/x") == "600\n"
    for mode in ("9z", "77777", "", "-1", "0x1ff", 493):
        assert put(fresh, "/tmp/x", b"no", mode=mode).status_code == 422, mode
    for mode in ("9z", "77777", "", "-1"):
        assert raw_put(fresh, "/tmp/x", b"no", mode=mode).status_code == 422, mode
    assert content(fresh, "/tmp/x") == b"raw"


def test_B063_json_has_a_limit_and_raw_has_none(make_server):
    server = make_server(max_body_bytes="1Mi").start()
    box = server.create()
    put(box, "/tmp/x", b"old")
    big = ALL_BYTES * 8192
    refused(put(box, "/tmp/x", big), 413, "payload_too_large")
    chunked = box.client.post(f"{box.url}/files", content=iter([b'{"path":"/tmp/x","content":"'] + [b"QUJD" * 16384] * 40))
    refused(chunked, 413, "payload_too_large")
    assert content(box, "/tmp/x") == b"old"
    assert raw_put(box, "/tmp/x", big).json()["size"] == len(big)
    assert content(box, "/tmp/x") == big


def test_B065_a_huge_directory_that_changes(fresh):
    stays = [f"f{n:06}" for n in range(100000)]
    fresh.out("mkdir /dev/shm/big; cd /dev/shm/big; perl -e 'for (0..99999) { open(F, \">\", sprintf(\"f%06d\", $_)) or die }'")
    churn = fresh.start("cd /dev/shm/big; while :; do z=z$RANDOM; : > $z; rm $z; done", lane="churn")
    fresh.wait_running(churn)
    told, page = [], {"next": None, "truncated": True}
    while page["truncated"]:
        assert len(told) < 100000
        page = listing(fresh, "/dev/shm/big", limit=40011, **({"after": page["next"]} if told else {})).json()
        assert len(page["files"]) == 40011 or not page["truncated"]
        told += [entry["name"] for entry in page["files"] if entry["name"][0] == "f"]
    assert told == stays
    fresh.client.post(f"/jobs/{churn}/cancel")


def test_B065_a_directory_that_may_not_be_read(fresh):
    fresh.out("mkdir -m 700 /closed; useradd -u 1000 worker")
    refused(listing(fresh, "/closed", user="worker"), 403, "permission_denied")
    assert listing(fresh, "/closed").json()["files"] == []


def test_B066_file_calls_wait_for_no_command(fresh):
    running = fresh.start("sleep 600")
    fresh.wait_running(running)
    assert put(fresh, "/tmp/x", b"x").status_code == 200
    assert content(fresh, "/tmp/x") == b"x"
    assert listing(fresh, "/tmp").status_code == 200
    assert fresh.client.post(f"{fresh.url}/heartbeat").status_code == 200
    assert fresh.job(running)["status"] == "running"
    fresh.client.post(f"/jobs/{running}/cancel")


def test_B042_a_read_only_place_says_so(fresh):
    fresh.out("mkdir /ro")
    subprocess.run(["nsenter", "-t", str(fresh.agent_pid()), "-U", "-m", "mount", "-t", "tmpfs", "-o", "ro", "none", "/ro"], check=True)
    refused(put(fresh, "/ro/x", b"x"), 403, "read_only")
    refused(raw_put(fresh, "/ro/new/x", b"x"), 403, "read_only")
    refused(remove(fresh, "/ro/x"), 404, "not_found")
    refused(fresh.client.post(f"{fresh.url}/files/mkdir", json={"path": "/ro/d"}), 403, "read_only")
    assert listing(fresh, "/ro").json()["files"] == []


# --- names, rights, many ----------------------------------------------------
def test_names_are_bytes_on_every_way(fresh):
    for name in ODD_NAMES:
        path = b"/tmp/names/" + name
        assert put(fresh, name_in_json(path), name).status_code == 200, name
        answer = get(fresh, path)
        assert base64.b64decode(answer.json()["content"]) == name
        assert answer.json()["path"] == name_in_json(path)
        assert raw_get(fresh, path).content == name
        assert raw_put(fresh, path, name + b"2").json()["path"] == name_in_json(path)
    told = [entry["name"] for entry in listing(fresh, "/tmp/names").json()["files"]]
    assert [name.encode("utf-8", "surrogateescape") for name in told] == sorted(ODD_NAMES)
    for name in told:
        body = json.dumps({"from": "/tmp/names/" + name, "to": "/tmp/moved/" + name, "parents": True})
        assert fresh.client.post(f"{fresh.url}/files/move", content=body).status_code == 200, name
        assert fresh.client.delete(
            f"{fresh.url}/files?path={encode(('/tmp/moved/' + name).encode('utf-8', 'surrogateescape'))}").status_code == 200
    assert listing(fresh, "/tmp/moved").json()["files"] == []
    refused_escape = fresh.client.post(f"{fresh.url}/files", content=b'{"path":"/tmp/\\ud800","content":""}')
    assert refused_escape.status_code == 422


def test_the_user_may_no_more_than_his_commands(fresh):
    fresh.out("useradd -u 1000 worker; mkdir -m 777 /shared; echo root > /shared/f; chmod 666 /shared/f; mkdir -m 700 /own")
    refused(put(fresh, "/shared/f", b"x", user="worker"), 403, "permission_denied")
    refused(put(fresh, "/etc/passwd", b"x", user="worker"), 403, "permission_denied")
    refused(put(fresh, "/own/x", b"x", user="worker"), 403, "permission_denied")
    refused(remove(fresh, "/own", recursive=1, user="worker"), 403, "permission_denied")
    assert fresh.out("cat /shared/f") == "root\n"
    assert put(fresh, "/shared/new", b"x", user="worker").status_code == 200
    answer = put(fresh, "/x", b"x", user="no-such-user")
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "user"]


def test_many_calls_at_once(fresh):
    def one(n):
        data = str(n).encode() * 1000
        assert put(fresh, f"/tmp/many/{n}", data).status_code == 200
        return content(fresh, f"/tmp/many/{n}") == data
    with ThreadPoolExecutor(64) as pool:
        assert all(pool.map(one, range(128)))
    assert len(listing(fresh, "/tmp/many").json()["files"]) == 128


def test_files_while_all_processes_are_taken(server):
    sandbox = server.create()
    bomb = sandbox.start("for i in $(seq 100000); do sleep 600 & done 2>/dev/null; sleep 600")
    sandbox.wait_running(bomb)
    for n in range(5):
        assert put(sandbox, f"/tmp/{n}", b"x").status_code == 200
    assert content(sandbox, "/tmp/0") == b"x"
    sandbox.delete()


def test_openapi_and_metrics_know_them(server, box):
    put(box, "/tmp/metric", b"12345")
    content(box, "/tmp/metric")
    text = server.client.get("/metrics").text
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("orchard_file"))
    assert int(values["orchard_file_calls_total"]) >= 2
    assert int(values['orchard_file_bytes_total{direction="in"}']) >= 5
    assert int(values['orchard_file_bytes_total{direction="out"}']) >= 5
