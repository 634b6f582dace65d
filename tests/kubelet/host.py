"""The node's own processes: containerd and kubelet, with directories, kernel settings and control groups that are this host's alone.

Started as the first process of a pid and a mount namespace, so that its death is that of all containers, and of all mounts.
Reads its settings as a line of JSON on stdin; leaves at its end.
"""

import ctypes
import json
import os
import select
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
for directory in (HERE.parent / "k8s", HERE.parent / "integration"):
    sys.path.insert(0, str(directory))

import hostcgroups  # noqa: E402
import lab  # noqa: E402
from orchard_server import eventually  # noqa: E402

CLONE_NEWCGROUP = 0x02000000
SOCKET = "/run/containerd/containerd.sock"
PODS = "10.89.0.0/16"
# kubelet sets these, or ends where it can't.
KERNEL = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
          "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True)


def own_places(directory):
    """What the programs write has fixed names; here these are directories of the test."""
    for name in ("run", "var/lib", "var/log"):
        (directory / name).mkdir(parents=True, exist_ok=True)
        mount("--bind", directory / name, f"/{name}")
    Path("/run/netns").mkdir()
    mount("-t", "tmpfs", "-o", "mode=755", "netns", "/run/netns")


def own_kernel_settings(directory):
    """A file over each: the host keeps its own values."""
    for name, value in KERNEL.items():
        file = directory / name.replace("/", "-")
        file.write_text(f"{value}\n")
        mount("--bind", file, f"/proc/sys/{name}")


def write_network(directory):
    (directory / "net.d").mkdir()
    (directory / "net.d" / "pods.conflist").write_text(json.dumps({
        "cniVersion": "1.0.0", "name": "pods", "plugins": [{
            "type": "bridge", "bridge": "pods", "isGateway": True,
            "ipam": {"type": "host-local", "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}))


def write_containerd(directory, pause):
    path = directory / "containerd.toml"
    path.write_text(f"""
version = 3
[grpc]
address = "{SOCKET}"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
conf_dir = "{directory}/net.d"
[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd-opt"
""")
    return path


def write_kubelet(directory):
    (directory / "resolv.conf").write_text("nameserver 127.0.0.1\n")
    path = directory / "kubelet.json"
    path.write_text(json.dumps({
        "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "containerRuntimeEndpoint": f"unix://{SOCKET}", "cgroupDriver": "cgroupfs", "failCgroupV1": False,
        "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"}, "enforceNodeAllocatable": [], "failSwapOn": False,
        "resolvConf": str(directory / "resolv.conf"), "volumePluginDir": "/var/lib/kubelet-plugins",
        "featureGates": {"ImageVolume": True},
        # The disk and the memory are the host's, with whatever else it does.
        "evictionHard": {name: "0%" for name in (
            "memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available", "imagefs.inodesFree")},
        "imageGCHighThresholdPercent": 100,
        # To lower it takes a right (CAP_SYS_RESOURCE) that not every root has.
        "oomScoreAdj": int(Path("/proc/self/oom_score_adj").read_text())}))
    return path


def import_images(ctr, images):
    for name, archive in images.items():
        subprocess.run([ctr, "-a", SOCKET, "-n", "k8s.io", "images", "import", "--base-name", name, archive], check=True)


def told_to_restart(kubelet):
    """False at the end of orders, or of kubelet."""
    while kubelet.poll() is None:
        if select.select([sys.stdin], [], [], 1)[0]:
            return sys.stdin.buffer.raw.read(100) != b""
    return False


def main():
    settings = json.loads(sys.stdin.buffer.raw.readline())
    directory = Path(settings["directory"])
    containerd = Path(settings["containerd"])
    hostcgroups.enter([Path(group) for group in settings["groups"]])
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWCGROUP) != 0:
        raise OSError(ctypes.get_errno(), "no namespace of control groups")
    hostcgroups.mount()
    own_places(directory)
    own_kernel_settings(directory)
    write_network(directory)
    env = {"PATH": f"{containerd}:{os.environ['PATH']}", "HOME": "/root"}
    runtime = lab.spawn([containerd / "containerd", "--config", write_containerd(directory, settings["pause"])],
                        directory / "containerd.log", env=env)
    eventually(lambda: subprocess.run([containerd / "ctr", "-a", SOCKET, "version"], capture_output=True).returncode == 0
               or runtime.poll() is not None, 60, "containerd answers")
    import_images(containerd / "ctr", settings["images"])
    words = [settings["kubelet"], "--config", write_kubelet(directory), "--kubeconfig", settings["kubeconfig"],
             "--hostname-override", settings["name"], "--node-ip", lab.HOST, "--node-labels", settings["labels"]]
    while runtime.poll() is None:
        kubelet = lab.spawn(words, directory / "kubelet.log", env=env)
        if not told_to_restart(kubelet):
            break
        kubelet.kill()
        kubelet.wait()
    print(f"kubelet: {kubelet.poll()}, containerd: {runtime.poll()}")


if __name__ == "__main__":
    main()
