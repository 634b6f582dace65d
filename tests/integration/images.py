"""Images for the tests, made from Debian packages; expensive ones are cached across runs."""

import fcntl
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

CACHE = Path(os.environ.get("ORCHARD_TEST_CACHE", "/var/cache/orchard-tests"))
PACKAGES = "python3-minimal,git,procps"


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: exit {done.returncode}\n{done.stdout[-3000:]}")
    return done.stdout


def debian_mirror():
    sites = run("apt-get", "indextargets", "--format", "$(SITE)").split()
    return sites[0] if sites else None


def made_once(name, make):
    """The root of that name in the cache; make(root) fills it, if nobody has, or whoever began has not finished."""
    root = CACHE / name
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / (name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # other runs of the tests share the cache
        if not (root / ".complete").exists():
            shutil.rmtree(root, ignore_errors=True)
            root.mkdir()
            make(root)
            (root / ".complete").touch()
    return root


def debian():
    """A Debian root with python3, git and procps, made once by debootstrap."""
    def make(root):
        run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", root,
            *([debian_mirror()] if debian_mirror() else []))
        shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
    return made_once("debian", make)


def busybox(root):
    """An Alpine-like root: one static busybox and its links, sh but no bash."""
    for name in ("bin", "etc", "tmp", "root", "usr/bin", "proc", "dev", "sys"):
        (root / name).mkdir(parents=True, exist_ok=True)
    shutil.copy2("/bin/busybox", root / "bin/busybox")
    for applet in run("/bin/busybox", "--list").split():
        link = root / "bin" / applet
        if applet != "busybox" and not link.exists():
            link.symlink_to("busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\nuser:x:1000:\n")
    (root / "home/user").mkdir(parents=True, exist_ok=True)
    os.chown(root / "home/user", 1000, 1000)
    return root


MUSL_PROGRAM = """
#include <pwd.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *say(void *arg) { return puts(arg) < 0 ? arg : NULL; }
int main(void)
{
	struct passwd *pw = getpwuid(getuid());
	pthread_t thread;
	if (pw == NULL || pthread_create(&thread, NULL, say, pw->pw_name) != 0)
		return 1;
	return pthread_join(thread, NULL);
}
"""


def musl(root):
    """A root with musl as its only C library: busybox, the loader, and a program that needs it."""
    busybox(root)
    (root / "lib").mkdir(exist_ok=True)
    loader = next(Path("/lib").glob("ld-musl-*.so.1"))
    shutil.copy2(loader.resolve(), root / "lib" / loader.name)
    run("musl-gcc", "-O1", "-o", root / "bin/whoami-by-musl", "-x", "c", "-", input=MUSL_PROGRAM)
    return root


OLD_RELEASE = "bullseye"  # the oldest that the mirrors have: glibc 2.31, which knows neither clone3 nor faccessat2
OLD_PACKAGES = ("libc6 libcrypt1 libgcc-s1 bash dash coreutils libtinfo6 libacl1 libattr1 libselinux1 libpcre2-8-0 "
                "libgmp10 perl-base").split()


def apt_of(release, directory):
    """apt-get for another release's packages, with nothing of this system's lists."""
    for name in ("lists/partial", "cache/archives/partial"):
        (directory / name).mkdir(parents=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (directory / "sources").write_text(f"deb [signed-by={keys}] {debian_mirror()} {release} main\n")
    command = ["apt-get"]
    for option in (f"Dir::Etc::SourceList={directory}/sources", "Dir::Etc::SourceParts=/dev/null",
                   f"Dir::State::Lists={directory}/lists", f"Dir::Cache={directory}/cache", "Dir::State::status=/dev/null",
                   "Acquire::Languages=none", "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
                   "APT::Sandbox::User=root"):
        command += ["-o", option]
    return command


def old_glibc():
    """A root whose programs were linked to an older glibc, put together from that release's packages, once."""
    def make(root):
        with tempfile.TemporaryDirectory(prefix="orchard-apt-") as name:
            directory = Path(name)
            apt = apt_of(OLD_RELEASE, directory)
            run(*apt, "update", cwd=directory)
            run(*apt, "download", *OLD_PACKAGES, cwd=directory)
            for package in directory.glob("*.deb"):
                run("dpkg-deb", "-x", package, root)
        for name in ("etc", "tmp", "root", "home/user"):
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "tmp").chmod(0o1777)
        (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n")
        (root / "etc/group").write_text("root:x:0:\nuser:x:1000:\n")
        os.chown(root / "home/user", 1000, 1000)
    return made_once(OLD_RELEASE, make)


def big_layout(path, files=100_000, large=2 << 30):
    """An OCI layout of one layer: many small files, and a large one, streamed through zstd."""
    blobs = path / "blobs/sha256"
    blobs.mkdir(parents=True)
    layer = path / "layer"
    with open(layer, "wb") as out, subprocess.Popen(["zstd", "-q", "-1"], stdin=subprocess.PIPE, stdout=out) as packer:
        plain = hashlib.sha256()

        class Stream:
            @staticmethod
            def write(data):
                plain.update(data)
                return packer.stdin.write(data)

        with tarfile.open(fileobj=Stream, mode="w|") as tar:
            for number in range(files):
                item = tarfile.TarInfo(f"many/{number // 1000}/{number}")
                item.size = len(str(number))
                tar.addfile(item, io.BytesIO(str(number).encode()))
            item = tarfile.TarInfo("large")
            item.size = large
            with open("/dev/zero", "rb") as zeros:
                tar.addfile(item, zeros)
            tar.add("/bin/busybox", "bin/busybox")
            for applet in ("sh", "find", "wc", "ls", "cat", "stat", "rm", "echo"):
                item = tarfile.TarInfo(f"bin/{applet}")
                item.type, item.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(item)
        packer.stdin.close()
    assert packer.returncode == 0
    size = layer.stat().st_size
    with open(layer, "rb") as packed:
        digest = hashlib.file_digest(packed, "sha256").hexdigest()
    layer.rename(blobs / digest)

    def blob(value):
        text = json.dumps(value).encode()
        name = hashlib.sha256(text).hexdigest()
        (blobs / name).write_bytes(text)
        return {"digest": "sha256:" + name, "size": len(text)}

    kind = "application/vnd.oci.image."
    config = blob({"architecture": "amd64", "os": "linux", "config": {},
                   "rootfs": {"type": "layers", "diff_ids": ["sha256:" + plain.hexdigest()]}})
    manifest = blob({"schemaVersion": 2, "config": {"mediaType": kind + "config.v1+json"} | config,
                     "layers": [{"mediaType": kind + "layer.v1.tar+zstd", "digest": "sha256:" + digest, "size": size}]})
    (path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (path / "index.json").write_text(json.dumps(
        {"schemaVersion": 2, "manifests": [{"mediaType": kind + "manifest.v1+json"} | manifest]}))
    return path


def no_shell(root):
    """One static binary and nothing else."""
    (root / "app").mkdir(parents=True)
    shutil.copy2("/bin/busybox", root / "app/busybox")
    return root


def oci_layout(path, root, tag="latest", second_layer=None, **config):
    """An OCI layout made by umoci from a directory; second_layer(bundle_rootfs) edits it into a layer of its own."""
    bundle = path.parent / (path.name + ".bundle")
    run("umoci", "init", "--layout", path)
    run("umoci", "new", "--image", f"{path}:{tag}")
    run("umoci", "insert", "--image", f"{path}:{tag}", root, "/")
    if second_layer:
        run("umoci", "unpack", "--image", f"{path}:{tag}", bundle)
        second_layer(bundle / "rootfs")
        run("umoci", "repack", "--image", f"{path}:{tag}", bundle)
        shutil.rmtree(bundle)
    options = []
    for name, value in config.items():
        option = "--config." + name.replace("_", "")
        for item in value if isinstance(value, list) else [value]:
            options += [option, item]
    if options:
        run("umoci", "config", "--image", f"{path}:{tag}", *options)
    return path


def oci_digests(path):
    index = json.loads((path / "index.json").read_text())
    return [manifest["digest"] for manifest in index["manifests"]]
