"""Images from a registry (fault groups F and N)."""

import json
import os
import signal

import images
import pytest
from orchard_server import eventually
from registry import Registry, make_registry  # noqa: F401


@pytest.fixture(scope="module")
def registry(work_dir):
    one = Registry(work_dir / "registry").start()
    yield one
    one.close()


@pytest.fixture(scope="module")
def layout(image_dir):
    """Two layers; ENV, USER by name, WORKDIR and an ENTRYPOINT that must not count."""
    root = images.busybox(image_dir / "pulled-root")
    (root / "app").mkdir()

    def edit(rootfs):
        (rootfs / "second").write_text("two\n")

    return images.oci_layout(image_dir / "pulled", root, second_layer=edit, env=["FOO=bar", "PATH=/bin"],
                             workingdir="/app", user="user", entrypoint="/bin/false")


def small_layout(image_dir, name, text):
    root = images.busybox(image_dir / f"{name}-root")
    (root / "word").write_text(text)
    return images.oci_layout(image_dir / name, root)


def state_of(box):
    return box.client.get(box.url).json()


def failure(server, image):
    box = server.create(image=image, wait=False)
    state = box.client.get(f"{box.url}/wait", params={"timeout": 60}).json()
    assert state["status"] == "failed", state
    box.delete()
    return state["status_message"]


def layer_names(server):
    return {entry.name for entry in (server.state_dir / "images/layers").iterdir()}


def unfinished(server):
    return [name for name in os.listdir(server.state_dir / "images/tmp") if not name.endswith(".lock")]


def test_b043_pulled_image(make_server, registry, layout):
    registry.push(layout, "team/app:v1")
    server = make_server(**registry.settings()).start()
    box = server.create(image=f"{registry.host}/team/app:v1")
    assert box.out("id -un; echo $FOO; pwd; cat /second") == "user\nbar\n/app\ntwo\n"
    assert len(layer_names(server)) == 2 and not unfinished(server)
    box.delete()


def test_layers_are_shared_between_names_and_pulled_once(make_server, registry, layout):
    digest = registry.push(layout, "shared/one:v1")
    registry.push(layout, "shared/two:latest")
    server = make_server(**registry.settings()).start()
    boxes = [server.create(image=image) for image in (
        f"{registry.host}/shared/one:v1", f"{registry.host}/shared/two", f"{registry.host}/shared/one@{digest}")]
    assert len(layer_names(server)) == 2
    assert registry.requests("/v2/shared/two/blobs/sha256:") == 0, "what is there is not fetched again"
    for box in boxes:
        box.delete()


def test_a_digest_is_never_asked_for_again(make_server, registry, layout):
    digest = registry.push(layout, "fixed/app:v1")
    server = make_server(**registry.settings(image_refresh_seconds=0)).start()
    image = f"{registry.host}/fixed/app:ignored@{digest}"
    server.create(image=image).delete()
    before = registry.requests("/v2/fixed/")
    server.create(image=image).delete()
    assert registry.requests("/v2/fixed/") == before > 0


def test_concurrent_creates_pull_once_and_all_see_it(make_server, registry, layout):
    registry.push(layout, "crowd/app:v1")
    server = make_server(**registry.settings()).start()
    image = f"{registry.host}/crowd/app:v1"
    os.kill(registry.process.pid, signal.SIGSTOP)
    try:
        boxes = [server.create(image=image, wait=False) for _ in range(5)]
        for box in boxes:
            eventually(lambda box=box: state_of(box)["status_message"] == f"pulling {image}", what="progress")
    finally:
        os.kill(registry.process.pid, signal.SIGCONT)
    for box in boxes:
        box.wait_ready()
        box.delete()
    assert registry.requests("/v2/crowd/app/manifests/v1") == 1


def test_a_tag_is_asked_for_again_after_its_time(make_server, registry, image_dir):
    old, new = small_layout(image_dir, "old", "old"), small_layout(image_dir, "new", "new")
    registry.push(old, "moving/app:v1")
    patient = make_server(**registry.settings()).start()
    eager = make_server(**registry.settings(image_refresh_seconds=0)).start()
    image = f"{registry.host}/moving/app:v1"
    for server in (patient, eager):
        box = server.create(image=image)
        assert box.out("cat /word") == "old"
        box.delete()
    registry.push(new, "moving/app:v1")
    for server, word in ((patient, "old"), (eager, "new")):
        box = server.create(image=image)
        assert box.out("cat /word") == word
        box.delete()


def test_what_is_known_outlives_restart_and_registry(make_server, make_registry, layout):
    registry = make_registry("mortal").start()
    registry.push(layout, "app:v1")
    server = make_server(**registry.settings(image_pull_retries=0)).start()
    image = f"{registry.host}/app:v1"
    server.create(image=image).delete()
    registry.close()
    server.stop()
    server.start()
    server.create(image=image).delete()
    server.stop()
    server.settings["image_refresh_seconds"] = 0
    server.start()
    server.create(image=image).delete()
    assert "what it stood for before is used" in server.log(100000)


def test_b109_missing_images_and_tags(make_server, registry, layout):
    registry.push(layout, "there:v1")
    server = make_server(**registry.settings()).start()
    for name in ("nosuch/app:v1", "there:v9", "there@sha256:" + "0" * 64):
        words = failure(server, f"{registry.host}/{name}")
        assert name in words and "no such image" in words, words
    # The words of a failure in a name are no failure of that kind.
    assert "no such image" in failure(server, f"{registry.host}/timeout/unauthorized:eof")
    assert not unfinished(server)


def test_b109_credentials(make_server, make_registry, layout):
    registry = make_registry("locked", locked=True).start()
    registry.push(layout, "app:v1")
    for auth in ("", registry.auth_file("wrong")):
        server = make_server(**registry.settings(image_auth_file=auth)).start()
        words = failure(server, f"{registry.host}/app:v1")
        assert "credentials" in words and "image_auth_file" in words, words
    server = make_server(**registry.settings(image_auth_file=registry.auth_file())).start()
    server.create(image=f"{registry.host}/app:v1").delete()


def test_b109_unreachable_registry(make_server, make_registry):
    registry = make_registry("absent")
    server = make_server(**registry.settings(image_pull_retries=1)).start()
    words = failure(server, f"{registry.host}/app:v1")
    assert "can't be reached" in words and "refused" in words, words


def test_b109_a_failure_that_passes(make_server, make_registry, layout):
    registry = make_registry("late").start()
    registry.push(layout, "app:v1")
    registry.close()
    server = make_server(**registry.settings(image_pull_retries=20)).start()
    box = server.create(image=f"{registry.host}/app:v1", wait=False)
    eventually(lambda: "trying again" in (state_of(box)["status_message"] or ""), what="another try")
    registry.start()
    box.wait_ready()
    box.delete()


def test_plain_http_is_said(make_server, registry, layout):
    registry.push(layout, "plain:v1")
    words = failure(make_server().start(), f"{registry.host}/plain:v1")
    assert "registries.conf" in words, words


def test_b110_wrong_architecture_is_told_before_anything_is_fetched(make_server, registry, image_dir):
    root = images.busybox(image_dir / "foreign-root")
    foreign = images.oci_layout(image_dir / "foreign", root)
    images.run("umoci", "config", "--image", f"{foreign}:latest", "--architecture", "arm64")
    registry.push(foreign, "foreign:v1")
    server = make_server(**registry.settings()).start()
    words = failure(server, f"{registry.host}/foreign:v1")
    assert "linux/arm64" in words and "linux/amd64" in words, words
    assert not layer_names(server)


def test_an_index_is_read_for_this_machine(make_server, registry, layout):
    digest = registry.push(layout, "multi:amd64")
    size = registry.blob(digest).stat().st_size
    kind = "application/vnd.oci.image.manifest.v1+json"
    entry = {"mediaType": kind, "digest": digest, "size": size}
    registry.put_manifest("multi:v1", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry | {"platform": {"os": "linux", "architecture": machine}}
                      for machine in ("s390x", "amd64")]}, "application/vnd.oci.image.index.v1+json")
    server = make_server(**registry.settings()).start()
    image = f"{registry.host}/multi@{registry.digest('multi:v1')}"
    for name in (f"{registry.host}/multi:v1", image):
        server.create(image=name).delete()
    registry.put_manifest("multi:v2", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry | {"platform": {"os": "linux", "architecture": machine}}
                      for machine in ("s390x", "arm64")]}, "application/vnd.oci.image.index.v1+json")
    assert "linux/s390x, linux/arm64" in failure(server, f"{registry.host}/multi:v2")


def test_docker_manifests_keep_their_digest(make_server, registry, layout):
    digest = registry.push(layout, "docker/app:v1", "--format", "v2s2")
    server = make_server(**registry.settings()).start()
    server.create(image=f"{registry.host}/docker/app@{digest}").delete()
    assert os.listdir(server.state_dir / "images/manifests") == [digest.removeprefix("sha256:") + ".json"]


def test_corrupt_and_missing_blobs(make_server, registry, image_dir):
    layout = small_layout(image_dir, "hurt", "hurt")
    digest = registry.push(layout, "hurt:v1")
    layer = json.loads(registry.blob(digest).read_text())["layers"][0]["digest"]
    whole = registry.blob(layer).read_bytes()
    server = make_server(**registry.settings()).start()
    registry.blob(layer).write_bytes(whole[:1000] + b"XXXX" + whole[1004:])
    assert "corrupt" in failure(server, f"{registry.host}/hurt:v1")
    registry.blob(layer).unlink()
    assert "lacks a part" in failure(server, f"{registry.host}/hurt:v1")
    assert not layer_names(server) and not unfinished(server)
    registry.blob(layer).write_bytes(whole)
    server.create(image=f"{registry.host}/hurt:v1").delete()


def test_pull_survives_the_spawner(make_server, registry, layout):
    """kill -9 in the middle of a pull: what fetched dies with it, and the next one starts clean."""
    registry.push(layout, "killed:v1")
    server = make_server(**registry.settings()).start()
    spawner = server.processes()["spawner"][0]
    os.kill(registry.process.pid, signal.SIGSTOP)
    try:
        box = server.create(image=f"{registry.host}/killed:v1", wait=False)
        skopeo = eventually(lambda: next((pid for pid in descendants(spawner) if name_of(pid) == "skopeo"), None),
                            what="skopeo")
        os.kill(spawner, signal.SIGKILL)
        eventually(lambda: name_of(skopeo) != "skopeo", what="the end of skopeo")
    finally:
        os.kill(registry.process.pid, signal.SIGCONT)
    box.wait_ready()
    assert not unfinished(server)
    box.delete()


def test_a_pull_ends_in_time(make_server, registry, layout):
    registry.push(layout, "slow:v1")
    server = make_server(**registry.settings(image_pull_timeout_seconds=1)).start()
    os.kill(registry.process.pid, signal.SIGSTOP)
    try:
        words = failure(server, f"{registry.host}/slow:v1")
    finally:
        os.kill(registry.process.pid, signal.SIGCONT)
    assert "image_pull_timeout_seconds" in words, words


def test_images_larger_than_allowed_are_not_fetched(make_server, registry, image_dir):
    """A layer of 64 MiB of zeros is small on its way; both sizes count."""
    root = images.busybox(image_dir / "bomb-root")
    with open(root / "zeros", "wb") as zeros:
        zeros.write(bytes(64 << 20))
    registry.push(images.oci_layout(image_dir / "bomb", root), "bomb:v1")
    server = make_server(**registry.settings(image_max_bytes="8Mi")).start()
    assert "image_max_bytes" in failure(server, f"{registry.host}/bomb:v1")
    assert not layer_names(server) and not unfinished(server)
    before = registry.requests("/v2/bomb/blobs/")
    server = make_server(**registry.settings(image_max_bytes="1Mi")).start()
    assert "image_max_bytes" in failure(server, f"{registry.host}/bomb:v1")
    assert registry.requests("/v2/bomb/blobs/") == before + 1, "of what is announced as too large only the configuration"


@pytest.mark.parametrize("image,status,words", [
    ("python:3.11 slim", 422, "no name of an image"),
    ("Python:3.11", 422, "small letters"),
    ("python@sha256:123", 422, "no name of an image"),
    ("evil.example/x:v1", 403, "image_registries"),
    ("127.0.0.1:5000/other/x:v1", 403, "image_registries"),
    ("--help/x", 422, "no name of an image"),
])
def test_names_are_judged_at_once(make_server_session, judge, image, status, words):
    answer = judge.client.post("/sandboxes", json={"image": image})
    assert answer.status_code == status and words in answer.text, answer.text


@pytest.fixture(scope="module")
def judge(make_server_session):
    server = make_server_session(image_registries="docker.io,127.0.0.1:5000/team").start()
    yield server
    server.close()


def test_without_skopeo(make_server):
    words = failure(make_server(image_skopeo_path="/no/such/skopeo").start(), "127.0.0.1:1/app:v1")
    assert "install the package skopeo" in words, words


def test_who_fetches_has_no_rights(make_server, image_dir):
    """A program in skopeo's place looks around and says what it sees."""
    spy = image_dir / "spy"
    spy.write_text("""#!/bin/sh
caps=$(grep -h CapBnd /proc/self/status | cut -f2)$(grep -h CapEff /proc/self/status | cut -f2)
touch /etc/x /var/tmp/x /tmp/x "$PWD/../x" 2>/dev/null && caps=wrote
touch mine || caps=stuck
echo "level=fatal msg=\\"$(id -u) $caps $(ls /proc | grep -c '^[0-9]') $(ls "$STATE" | wc -l)\
 $(ls "$PWD/.." | wc -l) $(ls /proc/self/fd | wc -l) $(grep -h NoNewPrivs /proc/self/status | cut -f2)\\"" >&2
exit 1
""")
    spy.chmod(0o755)
    server = make_server(image_skopeo_path=spy)
    spy.write_text(spy.read_text().replace("$STATE", str(server.state_dir)))
    words = failure(server.start(), "127.0.0.1:1/app:v1")
    assert "65534 " + "0" * 32 in words, words
    seen = words[words.index("65534"):].rstrip(")").split()
    # Few processes; nothing in state_dir; run_dir has but its own directory; 0, 1, 2 and the listing's own; no new rights.
    assert int(seen[2]) < 8 and seen[3:] == ["0", "1", "4", "1"], words


def descendants(pid):
    found = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as listing:
            found = [int(word) for word in listing.read().split()]
    except FileNotFoundError:
        pass
    return found + [one for child in found for one in descendants(child)]


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm") as comm:
            return comm.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
