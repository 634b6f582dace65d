"""The node as a test holds it: started, looked into, lost."""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import hostcgroups
import lab
from orchard_server import children, eventually, is_called


class KubeletNode:
    def __init__(self, cluster, directory, kubelet, containerd, images, pause, name="node-1"):
        self.cluster = cluster
        self.name = name
        self.directory = Path(directory)
        self.containerd = Path(containerd)
        self.groups = []
        self.process = None
        self.settings = {
            "directory": str(directory), "containerd": str(containerd), "kubelet": str(kubelet), "images": images,
            "pause": pause, "kubeconfig": str(cluster.admin), "name": name, "labels": "workload=sandbox"}

    def start(self):
        self.directory.mkdir(exist_ok=True)
        self.groups = hostcgroups.make("orchard-kubelet-" + secrets.token_hex(4))
        self.settings["groups"] = [str(group) for group in self.groups]
        program = Path(__file__).with_name("host.py")
        self.process = lab.spawn(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, program],
            self.directory / "host.log", stdin=subprocess.PIPE)
        self.process.stdin.write(json.dumps(self.settings).encode() + b"\n")
        self.process.stdin.flush()
        eventually(self.ready, 180, lambda: f"the node is ready; its logs:\n{self.log()}")
        # Nobody here watches over nodes, who would take it away.
        self.cluster.patch(f"/api/v1/nodes/{self.name}", {"spec": {"taints": None}})
        return self

    def log(self, tail=3000):
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-tail:]}" for path in self.directory.glob("*.log"))

    def ready(self):
        assert self.process.poll() is None, self.log()
        node = self.cluster.get(f"/api/v1/nodes/{self.name}")
        return node is not None and any(
            one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", []))

    def ctr(self, *words):
        socket = self.directory / "run/containerd/containerd.sock"
        done = subprocess.run([self.containerd / "ctr", "-a", socket, "-n", "k8s.io", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def tasks(self, box):
        """Ids of the containers of a sandbox's pod that run, the one that holds its namespaces among them."""
        running = self.ctr("tasks", "list", "-q").split()
        return [one for one in self.ctr("containers", "list", "-q", f'labels."io.kubernetes.pod.name"==sandbox-{box.id}').split()
                if one in running]

    def kill(self, box):
        """Kills the agent, as nobody inside can."""
        name = 'labels."io.kubernetes.container.name"==sandbox'
        mine, = set(self.tasks(box)) & set(self.ctr("containers", "list", "-q", name).split())
        self.ctr("tasks", "kill", "--signal", "KILL", mine)

    def pod_groups(self, pod):
        """Control groups of a pod, in all hierarchies."""
        return [path for path in hostcgroups.inside(self.groups) if f"pod{pod['metadata']['uid']}" in path]

    def restart_kubelet(self):
        """Killed and started again; what it knew of pods it has to find again. Returns when it has."""
        before = self.beginnings()
        self.process.stdin.write(b"restart\n")
        self.process.stdin.flush()
        eventually(lambda: self.ready() and self.beginnings() > before, 120, lambda: f"kubelet is back; its logs:\n{self.log()}")

    def signal_kubelet(self, number):
        host, = children(self.process.pid)
        for pid in children(host):
            if is_called(pid, "kubelet"):
                os.kill(pid, number)

    def hang(self):
        """The API server hears nothing of it any more; what runs on it goes on."""
        self.signal_kubelet(signal.SIGSTOP)

    def wake(self):
        self.signal_kubelet(signal.SIGCONT)

    def reboot(self):
        """The host loses power, and comes back with what is on its disk."""
        before = self.beginnings()
        self.process.kill()
        self.process.wait(10)
        hostcgroups.remove(self.groups)
        for name in ("net.d", "run"):
            shutil.rmtree(self.directory / name)
        self.start()
        eventually(lambda: self.ready() and self.beginnings() > before, 120, lambda: f"kubelet is back; its logs:\n{self.log()}")

    def beginnings(self):
        """How often kubelet has begun, by its own words."""
        return (self.directory / "kubelet.log").read_text(errors="replace").count("Attempting to register node")

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
        hostcgroups.remove(self.groups)
