"""What unpacked images may take, and what never goes (images of fault group R)."""

import os
import subprocess

import httpx
import images
import pytest
from orchard_server import eventually
from registry import make_registry  # noqa: F401

MIB = 1 << 20


def image_of(image_dir, name, mib=4):
    """An OCI layout of two layers: one that all have, and one of that many MiB of its own."""
    root = image_dir / "common-root"
    if not root.exists():
        images.busybox(root)

    def edit(rootfs):
        (rootfs / "own").write_bytes(os.urandom(int(mib * MIB)))
        (rootfs / "name").write_text(name)

    path = image_dir / f"cache-{name}"
    if not path.exists():
        images.oci_layout(path, root, second_layer=edit)
    return f"oci:{path}"


@pytest.fixture(scope="module")
def three(image_dir):
    return [image_of(image_dir, name) for name in ("one", "two", "three")]


def manifests(server):
    return len(os.listdir(server.state_dir / "images/manifests"))


def layers(server):
    return len(os.listdir(server.state_dir / "images/layers"))


def metric(server, name):
    """By a connection of its own: one that idles is closed with its worker when settings are read anew."""
    text = httpx.get(f"{server.client.base_url}/metrics", headers=server.client.headers).text
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def use(server, image):
    box = server.create(image=image)
    box.delete()
    eventually(lambda: not any(box.id in name for name in server.remains()), what="the image is free again")


def works(box, name):
    return box.out("cat /name; wc -c </own; busybox true; echo ok").replace("\n", " ") == f"{name}{4 * MIB} ok "


def test_the_least_recently_used_image_goes(make_server, three):
    server = make_server(image_cache_max_bytes="13Mi").start()
    for image in (three[0], three[1], three[0], three[2]):
        use(server, image)
    eventually(lambda: manifests(server) == 2 and layers(server) == 3, what="one image less")
    left = {line for line in os.listdir(server.state_dir / "images/manifests")}
    use(server, three[0])
    assert {line for line in os.listdir(server.state_dir / "images/manifests")} == left, "the first was used again"
    eventually(lambda: 4 * MIB < metric(server, "orchard_image_cache_bytes") < 13 * MIB, what="the bytes that are left")
    assert metric(server, "orchard_image_cache_layers") == 3


def test_images_in_use_stay_also_after_a_restart(make_server, three):
    server = make_server(image_cache_max_bytes="1Mi").start()
    first = server.create(image=three[0])
    server.kill_all()
    server.start()
    second = server.create(image=three[1])
    use(server, three[2])
    eventually(lambda: manifests(server) == 2 and layers(server) == 3, what="what is not in use goes")
    assert works(first, "one") and works(second, "two")
    first.delete()
    eventually(lambda: manifests(server) == 1 and layers(server) == 2, what="what was in use goes")
    assert works(second, "two")
    second.delete()
    eventually(lambda: manifests(server) == 0 and layers(server) == 0, what="the last one goes")
    eventually(lambda: metric(server, "orchard_image_cache_bytes") == 0, what="nothing is left")


def test_creates_and_sweeps_at_once(make_server, three):
    """Everything goes as soon as it is not in use; whoever needs it again just then gets it."""
    server = make_server(image_cache_max_bytes=1, max_concurrent_creates=16).start()
    for _ in range(4):
        boxes = [server.create(image=three[i % 3], wait=False) for i in range(12)]
        for i, box in enumerate(boxes):
            box.wait_ready()
            if i < 3:
                assert works(box, ("one", "two", "three")[i])
            box.delete()
    eventually(lambda: layers(server) == 0, what="nothing is left")
    eventually(lambda: not [name for name in os.listdir(server.state_dir / "images/tmp") if "gone" in name],
               what="what has gone is deleted")


def test_layers_of_no_image_go_first(make_server, make_registry, image_dir, three):
    """A pull that failed at its second layer leaves the first one."""
    registry = make_registry("halves").start()
    layout = image_dir / "halves"
    root = images.busybox(image_dir / "halves-root")
    images.oci_layout(layout, root)
    (image_dir / "broken.tar").write_bytes(b"this is no tar" * 1000)
    images.run("umoci", "raw", "add-layer", "--image", f"{layout}:latest", image_dir / "broken.tar")
    registry.push(layout, "halves:v1")
    server = make_server(**registry.settings(image_cache_max_bytes="9Mi")).start()
    box = server.create(image=f"{registry.host}/halves:v1", wait=False)
    eventually(lambda: box.client.get(box.url).json()["status"] == "failed", what="failure")
    assert "it is no tar" in box.client.get(box.url).json()["status_message"]
    box.delete()
    assert (layers(server), manifests(server)) == (1, 0)
    assert (metric(server, "orchard_image_pulls_total"), metric(server, "orchard_image_pull_failures_total")) == (1, 1)
    use(server, three[0])
    eventually(lambda: (layers(server), manifests(server)) == (2, 1), what="the layer of no image goes")


def test_a_full_disk_makes_room(make_server, image_dir, three):
    """What is not in use goes before a create fails, and then it fails with words."""
    server = make_server()
    (server.state_dir / "images").mkdir(parents=True, mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=9m", "tmpfs", server.state_dir / "images"], check=True)
    try:
        server.start()
        use(server, three[0])
        use(server, three[1])
        assert manifests(server) == 1
        box = server.create(image=three[2])
        large = server.create(image=image_of(image_dir, "large", 16), wait=False)
        eventually(lambda: large.client.get(large.url).json()["status"] == "failed", what="failure")
        words = large.client.get(large.url).json()["status_message"]
        assert words.startswith("no room for the image, free disk space"), words
        assert works(box, "three")
        box.delete()
        large.delete()
        eventually(lambda: not server.remains(), what="all gone")
        server.stop()
    finally:
        if server.process is not None and server.process.poll() is None:
            server.kill_all()
        subprocess.run(["umount", server.state_dir / "images"], check=True)


def test_prefetched_images_are_here_and_stay(make_server, make_registry, three, image_dir):
    registry = make_registry("prefetch").start()
    registry.push(three[0].removeprefix("oci:"), "one:v1")
    registry.push(three[1].removeprefix("oci:"), "two:v1")
    one, two = f"{registry.host}/one:v1", f"{registry.host}/two:v1"
    server = make_server(**registry.settings(
        image_prefetch=one, image_registries="nowhere.example", image_cache_max_bytes=1,
        cleanup_interval_seconds=1)).start()
    eventually(lambda: (manifests(server), layers(server)) == (1, 2), what="it is there before anybody asks")
    use(server, three[2])
    eventually(lambda: (manifests(server), layers(server)) == (1, 2), what="others go, it stays")
    assert server.client.post("/sandboxes", json={"image": two}).status_code == 403
    box = server.create(image=one)
    assert works(box, "one")
    box.delete()
    server.settings["image_prefetch"] = two
    server.write_conf()
    server.reload()
    eventually(lambda: metric(server, "orchard_image_pulls_total") == 2, what="the other one after a reload")
    use(server, three[2])

    def only_two():
        if manifests(server) == 1:
            return True
        use(server, three[2])
        return False
    eventually(only_two, what="what is not in the list any more goes")
    box = server.create(image=two)
    assert works(box, "two")
    box.delete()
