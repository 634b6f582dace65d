"""A small scheduler: gives the pods that name it to its one node where selector and resources fit, else says so as the real one does."""

import asyncio
from decimal import Decimal

from kubeapi import name_of, path_of

SUFFIXES = {"m": Decimal("0.001"), "": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18,
            "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}


def quantity(text):
    text = str(text)
    digits = text.rstrip("mkMGTPEi")
    return Decimal(digits) * SUFFIXES[text[len(digits):]]


def request_of(pod, resource):
    return sum(quantity(container.get("resources", {}).get("requests", {}).get(resource, 0))
               for container in pod["spec"]["containers"])


def over(pod):
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


class Scheduler:
    """`node` has name, labels and allocatable."""

    def __init__(self, api, node, name):
        self.api = api
        self.name = name
        self.node = node
        self.pods = {}
        self.told = {}
        self.changed = asyncio.Event()

    async def run(self):
        await asyncio.gather(self.api.follow("/api/v1/pods", self.on_event), self.place_all())

    def on_event(self, kind, thing):
        if kind == "LISTED":
            self.pods = {name_of(pod): pod for pod in thing}
        elif kind == "DELETED":
            self.pods.pop(name_of(thing), None)
            self.told.pop(thing["metadata"]["uid"], None)
        else:
            self.pods[name_of(thing)] = thing
        self.changed.set()

    async def place_all(self):
        while True:
            await self.changed.wait()
            self.changed.clear()
            for pod in list(self.pods.values()):
                if self.is_mine(pod):
                    await self.place(pod)

    def is_mine(self, pod):
        return (pod["spec"]["schedulerName"] == self.name and "nodeName" not in pod["spec"]
                and "deletionTimestamp" not in pod["metadata"])

    def why_not(self, pod):
        wanted = pod["spec"].get("nodeSelector", {})
        if any(self.node.labels.get(name) != value for name, value in wanted.items()):
            return "node(s) didn't match Pod's node affinity/selector"
        for resource in ("cpu", "memory", "ephemeral-storage"):
            taken = sum(request_of(other, resource) for other in self.pods.values()
                        if other["spec"].get("nodeName") == self.node.name and not over(other))
            if taken + request_of(pod, resource) > quantity(self.node.allocatable[resource]):
                return f"Insufficient {resource}"
        return None

    async def place(self, pod):
        reason = self.why_not(pod)
        if reason is None:
            pod["spec"]["nodeName"] = self.node.name
            await self.api.call("POST", path_of(pod, "/binding"), {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]},
                "target": {"apiVersion": "v1", "kind": "Node", "name": self.node.name}})
        elif self.told.get(pod["metadata"]["uid"]) != reason:
            self.told[pod["metadata"]["uid"]] = reason
            await self.api.patch(path_of(pod, "/status"), {"status": {"conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": f"0/1 nodes are available: 1 {reason}. preemption: 0/1 nodes are available: "
                           "1 Preemption is not helpful for scheduling."}]}})
