"""A directory as tar, both ways, through the server. What archives can hold is tried in tests/agent/test_archive.py."""

import gzip
import io
import tarfile

import pytest

from orchard_server import eventually


def packed(tree, **options):
    body = io.BytesIO()
    with tarfile.open(fileobj=body, mode="w", **options) as tar:
        for name, content in tree.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), 1234567890.25, 0o640
            tar.addfile(entry, io.BytesIO(content))
    return body.getvalue()


def put(box, path, body, **params):
    return box.client.put(f"{box.url}/archive", params={"path": path} | params, content=body)


def get(box, path, **params):
    return box.client.get(f"{box.url}/archive", params={"path": path} | params)


def tree_of(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as tar:
        return {entry.name: tar.extractfile(entry).read() if entry.isfile() else entry.type for entry in tar}


def test_there_and_back(box):
    tree = {"a": b"1", "d/e/f": b"x" * 100_000, "t\u00e4b\nline": b"", "n" * 200: b"long"}
    for body in (packed(tree), gzip.compress(packed(tree)), packed(tree, format=tarfile.GNU_FORMAT)):
        answer = put(box, "/srv/back", body)
        assert answer.status_code == 200, answer.text
        assert answer.json() == {"success": True, "path": "/srv/back", "entries": 4, "bytes": 100_005, "skipped": 0}
        assert tree_of(get(box, "/srv/back")) == tree | {"d": tarfile.DIRTYPE, "d/e": tarfile.DIRTYPE}
        assert box.out("stat -c '%a %.2Y' /srv/back/a").startswith("640 1234567890")
        box.out("rm -r /srv/back")


def test_the_users_own(server):
    box = server.create()
    box.out("useradd -m someone; mkdir -p /srv/own && chown someone /srv/own; mkdir -m 755 /srv/root; "
            "touch /srv/own/secret && chmod 600 /srv/own/secret && chown root /srv/own/secret")
    assert put(box, "/srv/own/new", packed({"d/f": b"1"}), user="someone").status_code == 200
    assert box.out("find /srv/own/new -not -user someone") == ""
    answer = put(box, "/srv/root/new", packed({"f": b"1"}), user="someone")
    assert answer.status_code == 403 and answer.json()["code"] == "permission_denied"
    answer = get(box, "/srv/own", user="someone")
    assert answer.status_code == 403 and "/srv/own/secret" in answer.json()["detail"]
    assert set(tree_of(get(box, "/srv/own", user="someone", unreadable="skip"))) == {"new", "new/d", "new/d/f"}
    box.delete()


def test_what_leaves_is_refused(box):
    for name in ("/etc/evil", "../evil", "a/../../evil"):
        answer = put(box, "/srv/walls", packed({"good": b"1", name: b"2"}))
        assert answer.status_code == 400 and answer.json()["code"] == "invalid", answer.text
        assert "1 entries" in answer.json()["detail"]
    assert box.out("ls -A /srv/walls; ls /etc/evil /srv/evil 2>/dev/null | wc -l") == "good\n0\n"


def test_wrong_calls(server, box):
    for path in ("", "?path=", "?path=/tmp&owners=x", "?path=/tmp&links=x", "?path=/tmp&path=/"):
        answer = box.client.put(f"{box.url}/archive{path}", content=packed({}))
        assert answer.status_code == 422 and answer.json()["detail"][0]["loc"][0] == "query", answer.text
    assert get(box, "/tmp", unreadable="x").status_code == 422
    assert get(box, "/nowhere").status_code == 404
    assert get(box, "/etc/passwd").status_code == 400
    assert put(box, "/srv/x", b"").status_code == 400
    assert put(box, "/srv/x", b"\x28\xb5\x2f\xfd" + bytes(1000)).status_code == 400
    assert server.client.get("/sandboxes/nowhere/archive?path=/").status_code == 404


def test_it_waits_for_no_command(box):
    job_id = box.start("sleep 300", timeout_seconds=300)
    box.wait_running(job_id)
    assert put(box, "/srv/beside", packed({"a": b"1"})).status_code == 200
    assert tree_of(get(box, "/srv/beside")) == {"a": b"1"}
    assert box.job(job_id)["status"] == "running"
    box.client.post(f"/jobs/{job_id}/cancel")


@pytest.fixture
def small(server):
    box = server.create(disk="16Mi")
    yield box
    box.delete()


def test_a_full_disk_leaves_no_half_file(small):
    small.out("mkdir /srv/full")
    answer = put(small, "/srv/full", packed({"a": b"1", "b": bytes(64 << 20)}))
    if answer.status_code == 200:
        pytest.skip("NOT CHECKED: this filesystem limits no sandbox's disk")
    assert answer.status_code == 507 and answer.json()["code"] in ("no_space", "quota"), answer.text
    eventually(lambda: small.out("ls -A /srv/full") == "a\n", what="the rest is gone")
