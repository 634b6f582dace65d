"""The tests' node as a test holds it: started, given orders, lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import lab
from orchard_server import children, eventually


class WorkerNode:
    def __init__(self, cluster, directory, images, name="node-1", workload="sandbox", scheduler="default-scheduler", first_address=2):
        self.cluster = cluster
        self.name = name
        self.directory = Path(directory)
        self.settings = {
            "name": name, "url": cluster.url, "token": cluster.admin_token, "ca": str(cluster.ca),
            "directory": str(directory), "images": images, "labels": {"workload": workload},
            "scheduler": scheduler, "first_address": first_address,
            "allocatable": {"cpu": "64", "memory": "64Gi", "ephemeral-storage": "1Ti", "pods": "10000"}}
        self.process = None

    def start(self):
        self.directory.mkdir(exist_ok=True)
        program = Path(__file__).with_name("node.py")
        self.process = lab.spawn(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, program],
            self.log_path, stdin=subprocess.PIPE)
        self.order(self.settings)
        eventually(self.registered, 60, lambda: f"the node registers; its log:\n{self.log()}")
        return self

    @property
    def log_path(self):
        return self.directory.parent / f"{self.name}.log"

    def log(self, tail=3000):
        return self.log_path.read_text(errors="replace")[-tail:]

    def registered(self):
        assert self.process.poll() is None, self.log()
        node = self.cluster.get(f"/api/v1/nodes/{self.name}")
        return node is not None and "allocatable" in node["status"]

    def order(self, words):
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def add_images(self, **images):
        self.order({"do": "images", "images": images})

    def give_out(self, family):
        """Pods get one address of IPv4 (4) or IPv6 (6) from now on."""
        self.order({"do": "family", "family": family})

    def look(self, looks):
        """While it does not, it tells of no pod's container that it runs."""
        self.order({"do": "look", "looks": looks})

    def evict(self, pod):
        self.order({"do": "evict", "pod": pod})

    def oom(self, pod):
        self.order({"do": "oom", "pod": pod})

    def crash(self, pod):
        self.order({"do": "crash", "pod": pod})

    def still(self, pod, still=True):
        """Nothing of the pod moves, as when its node cannot be reached; or it does again."""
        word = "stop" if still else "cont"
        self.order({"do": word, "pod": pod})
        eventually(lambda: f"{word} {pod}\n" in self.log(1_000_000), 30, f"{word} {pod}")

    def hang(self):
        """Says nothing and does nothing any more, as one that the API server cannot reach; what runs on it goes on."""
        for pid in children(self.process.pid):
            os.kill(pid, signal.SIGSTOP)

    def wake(self):
        """Of kubelet's own accord: that the control plane took its pods for lost is put right."""
        for pid in children(self.process.pid):
            os.kill(pid, signal.SIGCONT)
        self.order({"do": "tell"})

    def lose(self):
        """As when the host loses power: all its pods end at once, and nobody tells the API server."""
        self.process.kill()
        self.process.wait(10)

    def close(self):
        if self.process is not None and self.process.poll() is None:
            self.lose()
