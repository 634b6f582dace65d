"""Images for the tests, made from Debian packages; expensive ones are cached across runs."""

import json
import os
import shutil
import subprocess
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


def debian():
    """A Debian root with python3, git and procps, made once by debootstrap."""
    root = CACHE / "debian"
    if not (root / ".complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", root,
            *([debian_mirror()] if debian_mirror() else []))
        shutil.rmtree(root / "var/cache/apt/archives", ignore_errors=True)
        (root / ".complete").touch()
    return root


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
