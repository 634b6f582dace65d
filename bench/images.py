#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A large image from a registry to a ready sandbox, and tar doing the same with the same layer, in one run.

    ORCHARD_BUILD_DIR=build bench/images.py [--mib 2048] [--files 100000]

Needs root, docker-registry, skopeo and python3-httpx; writes about three times the image below /var/tmp.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/integration"))
from orchard_server import Server, eventually  # noqa: E402
from registry import Registry  # noqa: E402


def write_layer(path, mib, files):
    """busybox and that many files in directories of a hundred; their content does not compress."""
    size = mib * (1 << 20) // files
    noise = random.Random(1).randbytes(max(64 << 20, 2 * size))
    with tarfile.open(path, "w") as tar:
        tar.add("/bin/busybox", "bin/busybox")
        link = tarfile.TarInfo("bin/sh")
        link.type, link.linkname = tarfile.SYMTYPE, "busybox"
        tar.addfile(link)
        for number in range(files):
            member = tarfile.TarInfo(f"data/{number // 100}/{number}")
            member.size = size
            start = number * 40503 * 4096 % (len(noise) - size)
            tar.addfile(member, BytesIO(noise[start:start + size]))


def push(registry, layer):
    """As it is: skopeo would compress it."""
    def blob(data, digest):
        place = httpx.post(f"http://{registry.host}/v2/large/blobs/uploads/").headers["Location"]
        answer = httpx.put(f"{place}&digest=sha256:{digest}", content=data, timeout=600)
        assert answer.status_code == 201, answer.text
        return f"sha256:{digest}"

    with open(layer, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        layer_digest = blob(file, digest)
    config = json.dumps({"os": "linux", "architecture": "amd64",
                         "rootfs": {"type": "layers", "diff_ids": [layer_digest]}}).encode()
    kind = "application/vnd.oci.image."
    registry.put_manifest("large:v1", {
        "schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
        "config": {"mediaType": kind + "config.v1+json", "size": len(config),
                   "digest": blob(config, hashlib.sha256(config).hexdigest())},
        "layers": [{"mediaType": kind + "layer.v1.tar", "digest": layer_digest, "size": layer.stat().st_size}],
    }, kind + "manifest.v1+json")


class Timed:
    def __init__(self, what):
        self.what = what

    def __enter__(self):
        os.sync()
        self.start = time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds = time.monotonic() - self.start
        print(f"{self.what:46} {self.seconds:8.2f} s", flush=True)


def until_ready(box):
    """Returns when the unpacking began."""
    seen = []

    def ready():
        state = box.client.get(box.url).json()
        if (state["status_message"] or "").startswith("unpacking") and not seen:
            seen.append(time.monotonic())
        assert state["status"] != "failed", state
        return state["status"] == "ready"
    eventually(ready, 3000, "ready")
    return seen[0] if seen else time.monotonic()


def measure(directory, registry, mib, files):
    layer = directory / "layer.tar"
    write_layer(layer, mib, files)
    push(registry, layer)
    with Timed("tar -x of the layer, and sync") as tar:
        (directory / "by-tar").mkdir()
        subprocess.run(["tar", "-xf", layer, "-C", directory / "by-tar"], check=True)
        os.sync()
    shutil.rmtree(directory / "by-tar")
    with Timed("skopeo copy to a layout, and sync") as copy:
        subprocess.run(["skopeo", f"--registries-conf={registry.directory}/registries.conf", "copy", "--quiet",
                        "--dest-oci-accept-uncompressed-layers", f"docker://{registry.host}/large:v1",
                        f"oci:{directory}/by-skopeo:v1"], check=True)
        os.sync()
    shutil.rmtree(directory / "by-skopeo")
    server = Server(directory, f"{registry.host}/large:v1", [], **registry.settings()).start()
    try:
        with Timed("registry to ready sandbox") as pulled:
            first = server.create(wait=False)
            fetched = until_ready(first)
        print(f"{'':46} {fetched - pulled.start:8.2f} s of it until it was fetched")
        print(f"{'':46} {pulled.seconds / (tar.seconds + copy.seconds):8.2f} of both")
        with Timed("the next sandbox of the image"):
            second = server.create()
        count = second.out("busybox find /data -type f | busybox wc -l")
        assert int(count) == files, count
        for box in (first, second):
            box.delete()
    finally:
        server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=2048)
    parser.add_argument("--files", type=int, default=100000)
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="orchard-images-", dir="/var/tmp"))
    directory.chmod(0o755)
    registry = Registry(directory / "registry").start()
    try:
        measure(directory, registry, arguments.mib, arguments.files)
    finally:
        registry.close()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
