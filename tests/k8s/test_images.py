"""What is built for a cluster, as far as it can be tried without a registry."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HOME = tempfile.gettempdir()
TOP = Path(__file__).parents[2]
BUILD = Path(os.environ.get("ORCHARD_BUILD_DIR", "build")).resolve()


def build_images(*arguments, path=os.environ["PATH"]):
    return subprocess.run([TOP / "scripts/build-images", *arguments], capture_output=True, text=True, timeout=150,
                          env={"PATH": path, "HOME": HOME})


def test_a_dry_run_shows_what_would_be_run():
    for tool in ("buildah", "podman", "docker"):
        done = build_images("--dry-run", "--push", "--prefix", "registry.example/a/", "--tag", "7", "--tool", tool)
        assert done.returncode == 0, done.stderr
        for name in ("server", "agent"):
            assert f"+ {tool} build --target {name} --tag registry.example/a/orchard-{name}:7" in done.stdout
            assert re.search(rf"^\+ {tool} push .*registry.example/a/orchard-{name}:7$", done.stdout, re.M)
    assert "server" not in build_images("--dry-run", "--only", "agent", "--tool", "docker").stdout.replace("/", "")


def test_wrong_arguments_are_refused():
    for arguments, words in ((["--only", "nosuch"], "server or agent"), (["--tool", "make"], "buildah, podman or docker"),
                             (["--tag"], "usage:"), (["--nosuch"], "usage:")):
        done = build_images(*arguments)
        assert done.returncode != 0 and words in done.stderr


def test_every_base_is_named_by_its_digest():
    dockerfile = (TOP / "k8s/images/Dockerfile").read_text()
    stages = set(re.findall(r"^FROM \S+ AS (\S+)$", dockerfile, re.M))
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)$", dockerfile, re.M))
    for base in re.findall(r"^FROM (\S+)", dockerfile, re.M):
        base = arguments.get(base.strip("${}"), base)
        assert base == "scratch" or base in stages or re.search(r"@sha256:[0-9a-f]{64}$", base), base


def test_the_servers_root_has_all_that_its_programs_load(tmp_path):
    """Nothing else is there, no shell either, and the user is not root."""
    installed, root = tmp_path / "installed/usr", tmp_path / "root"
    for source, target in (("src/orchardd", "sbin"), ("tools/orchardctl/orchardctl", "bin")):
        (installed / target).mkdir(parents=True)
        shutil.copy2(BUILD / source, installed / target)
    subprocess.run(["sh", TOP / "k8s/images/collect", root, installed.parent], check=True)

    def inside(*command):
        return subprocess.run(["/usr/sbin/chroot", "--userspec=65532:65532", root, *command], capture_output=True, text=True, timeout=60,
                              env={"DRIVER": "kubernetes", "API_KEYS": "key-of-the-images-test"})
    assert inside("/usr/sbin/orchardd", "--version").stdout.startswith("orchard ")
    assert inside("/usr/bin/orchardctl", "--help").returncode == 0
    assert "KUBERNETES_SERVICE_HOST" in inside("/usr/sbin/orchardd", "-t").stderr
    assert inside("/bin/sh", "-c", "true").returncode == 127
    curl = next(root.rglob("libcurl.so.4"))
    inside_root = ["/usr/sbin/chroot", root, "/lib64/ld-linux-x86-64.so.2", "--list", f"/{curl.relative_to(root)}"]
    if Path("/lib64/ld-linux-x86-64.so.2").exists():
        assert "not found" not in subprocess.run(inside_root, capture_output=True, text=True, check=True, timeout=60).stdout
