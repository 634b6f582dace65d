"""A small node of the tests' own: registers itself, runs the pods that are given to it, tells how they fare.

Started as the first process of a pid namespace, so that its death is that of all its pods, as with a host that
loses power. Reads orders as lines of JSON on stdin: {"do": "images" | "family" | "look" | "tell" | "evict" | "oom" | "crash" | "stop" |
"cont", ...};
leaves at its end.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import lab
from container import Network
from kubeapi import Api, name_of
from podrun import PodRun, now
from scheduler import Scheduler

CONDITIONS = (("Ready", "True", "KubeletReady"), ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
              ("DiskPressure", "False", "KubeletHasNoDiskPressure"), ("PIDPressure", "False", "KubeletHasSufficientPID"))

BEAT = 1  # of seconds, between two words that it lives; kubelet's is 10


class Node:
    def __init__(self, settings):
        self.name = settings["name"]
        self.labels = settings["labels"] | {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux"}
        self.allocatable = settings["allocatable"]
        self.images = settings["images"]
        self.directory = Path(settings["directory"])
        self.api = Api(settings["url"], settings["token"], settings["ca"])
        self.network = Network(settings["first_address"])
        self.scheduler = Scheduler(self.api, self, settings["scheduler"])
        self.runs = {}
        self.looks = True  # kubelet sees what runs when it looks, once a second; this one can be told not to

    async def register(self):
        await self.api.call("POST", "/api/v1/nodes", {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": self.labels}, "spec": {}})
        await self.api.patch(f"/api/v1/nodes/{self.name}", {"spec": {"taints": None}})
        await self.api.patch(f"/api/v1/nodes/{self.name}/status", {"status": {
            "capacity": self.allocatable, "allocatable": self.allocatable,
            "addresses": [{"type": "InternalIP", "address": lab.HOST}],
            "conditions": self.conditions()}})

    def conditions(self):
        return [{"type": kind, "status": value, "reason": reason, "lastHeartbeatTime": now()} for kind, value, reason in CONDITIONS]

    async def beat(self):
        while True:
            await asyncio.sleep(BEAT)
            await self.api.patch(f"/api/v1/nodes/{self.name}/status", {"status": {"conditions": self.conditions()}})

    def on_event(self, kind, thing):
        if kind == "LISTED":
            there = {pod["metadata"]["uid"] for pod in thing}
            for uid in set(self.runs) - there:
                self.runs[uid].vanish()
            for pod in thing:
                self.see(pod)
        elif kind == "DELETED":
            if thing["metadata"]["uid"] in self.runs:
                self.runs[thing["metadata"]["uid"]].vanish()
        else:
            self.see(thing)

    def see(self, pod):
        uid = pod["metadata"]["uid"]
        if uid in self.runs:
            self.runs[uid].pod = pod
        elif pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") or "deletionTimestamp" in pod["metadata"]:
            self.runs[uid] = PodRun(self, pod)
            self.runs[uid].start()
        if "deletionTimestamp" in pod["metadata"] and uid in self.runs:
            self.runs[uid].stop(pod["metadata"].get("deletionGracePeriodSeconds", 30))

    def of(self, name):
        return next(run for run in self.runs.values() if name_of(run.pod) == name)

    def obey(self, order):
        if order["do"] == "images":
            self.images.update(order["images"])
        elif order["do"] == "family":
            self.network.family = order["family"]
        elif order["do"] == "look":
            self.looks = order["looks"]
            self.tell_all()
        elif order["do"] == "tell":
            self.tell_all()
        elif order["do"] == "evict":
            self.of(order["pod"]).evict("The node was low on resource: memory. Threshold quantity: 100Mi, available: 3Mi.")
        elif order["do"] == "oom":
            self.of(order["pod"]).kill("OOMKilled")
        elif order["do"] in ("stop", "cont"):
            self.of(order["pod"]).signal(order["do"].upper())
            print(order["do"], order["pod"], file=sys.stderr, flush=True)
        elif order["do"] == "crash":
            self.of(order["pod"]).kill("Error")

    def tell_all(self):
        for run in self.runs.values():
            asyncio.ensure_future(run.tell())

    async def orders(self):
        reader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        while line := await reader.readline():
            self.obey(json.loads(line))
        raise SystemExit(0)

    async def run(self):
        await self.register()
        await asyncio.gather(
            self.orders(), self.beat(), self.scheduler.run(),
            self.api.follow("/api/v1/pods", self.on_event, fieldSelector=f"spec.nodeName={self.name}"))


def main():
    settings = json.loads(sys.stdin.buffer.raw.readline())
    directory = Path(settings["directory"])
    Path("/run/netns").mkdir(exist_ok=True)
    # crun needs no cgroups here, and refuses hosts that have both kinds.
    for target in (directory, "/run/netns", "/sys/fs/cgroup"):
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "node", target], check=True)
    asyncio.run(Node(settings).run())


if __name__ == "__main__":
    main()
