"""The fixtures of tests/k8s with another node below them."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

K8S = Path(__file__).resolve().parents[1] / "k8s"
sys.path.insert(0, str(K8S))
spec = importlib.util.spec_from_file_location("conftest_of_k8s", K8S / "conftest.py")
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])

from conftest_of_k8s import *  # noqa: E402, F403

import cluster as control_plane  # noqa: E402
import hostcgroups  # noqa: E402
import images as test_images  # noqa: E402
from kubelet_node import KubeletNode  # noqa: E402
from orchard_server import AGENT  # noqa: E402

CONTAINERD = Path(__file__).with_name("containerd") / "build"


def pytest_collection_modifyitems(items):
    missing = [name for name in ("runc", "umoci", "skopeo") if shutil.which(name) is None]
    reason = why_not() or (f"not installed: {', '.join(missing)}" if missing else None)  # noqa: F405
    if reason is None and not any("memory" in controllers for controllers, _, _ in hostcgroups.hierarchies()):
        reason = "the controllers of its control groups are not those of version 1"
    if reason:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="NO KUBELET ON THIS MACHINE: " + reason))


@pytest.fixture(scope="session")
def containerd():
    return control_plane.built(CONTAINERD)


@pytest.fixture(scope="session")
def programs(containerd):
    """All that needs the network is there before the run has one of its own."""
    return control_plane.binaries("kubelet", "kube-scheduler")


@pytest.fixture(scope="session")
def node_images(containerd, work_dir, debian_root):
    """Archives of images by the name that the node knows them by."""
    where = work_dir / "images"
    (where / "agent").mkdir(parents=True)
    shutil.copy2(AGENT, where / "agent" / "orchard-agent")
    busybox = test_images.busybox(where / "busybox")
    tools = where / "tools" / "bin"
    tools.mkdir(parents=True)
    shutil.copy2("/bin/busybox", tools / "busybox")
    (tools / "a-tool").write_text('#!/opt/sandbox-tools/bin/busybox sh\nexec "$@"\n')
    (tools / "ls").write_text('#!/opt/sandbox-tools/bin/busybox sh\necho not this\n')
    for script in ("a-tool", "ls"):
        (tools / script).chmod(0o755)
    sources = {"debian": (debian_root, {"cmd": "bash"}), "busybox": (busybox, {"cmd": "sh"}),
               "as-user": (busybox, {"user": "1000:1000", "env": "FROM_IMAGE=yes", "workingdir": "/home/user"}),
               "tools": (where / "tools", {}),
               "orchard-agent": (where / "agent", {"entrypoint": "/orchard-agent"}),
               "pause": (busybox, {"entrypoint": ["/bin/sleep", "infinity"]})}
    archives = {}
    for name, (root, config) in sources.items():
        layout = test_images.oci_layout(where / f"{name}.oci", root, **config)
        archive = where / f"{name}.tar"
        subprocess.run(["tar", "-cf", archive, "-C", layout, "."], check=True)
        archives[f"docker.io/library/{name}"] = str(archive)
    return archives


@pytest.fixture(scope="session")
def node(cluster, containerd, node_images, work_dir, programs):
    one = KubeletNode(cluster, work_dir / "node-1", programs / "kubelet", containerd, node_images,
                      pause="docker.io/library/pause:latest")
    try:
        one.start()
        cluster.spawn("kube-scheduler", "--kubeconfig", cluster.admin, "--leader-elect=false", "--secure-port=0")
        yield one
    finally:
        one.close()
