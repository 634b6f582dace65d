"""One pod on the tests' node, from its binding to its end, and the status that is told of it meanwhile."""

import asyncio
import datetime
import secrets
import shutil
import sys
import traceback

import httpx

import lab
from container import Container
from kubeapi import path_of
from volumes import NotYet, Sources, environment, make_volumes, mounts_of

PULL_RETRY = 0.5  # of a second; kubelet begins with 10


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class State:
    """What is said of one container."""

    def __init__(self, spec):
        self.name = spec["name"]
        self.image = spec["image"]
        self.state = {"waiting": {"reason": "PodInitializing" if "init" in spec else "ContainerCreating"}}
        self.ready = False
        self.restarts = 0
        self.container = ""
        self.last = {}

    def waiting(self, reason, message):
        self.state = {"waiting": {"reason": reason, "message": message}}
        self.ready = False

    def running(self):
        self.state = {"running": {"startedAt": now()}}

    def terminated(self, code, reason, message=""):
        self.ready = False
        self.state = {"terminated": {"exitCode": code, "reason": reason, "startedAt": now(), "finishedAt": now()} |
                      ({"message": message} if message else {})}

    def told(self):
        return {"name": self.name, "image": self.image, "imageID": "", "containerID": self.container, "ready": self.ready,
                "started": "running" in self.state, "restartCount": self.restarts, "state": self.state, "lastState": self.last}


class PodRun:
    def __init__(self, node, pod):
        self.node = node
        self.pod = pod
        self.uid = pod["metadata"]["uid"]
        self.directory = node.directory / "pods" / self.uid
        self.started_at = now()
        self.inits = [State(spec) for spec in pod["spec"].get("initContainers", [])]
        self.states = [State(spec) for spec in pod["spec"]["containers"]]
        self.containers = {}
        self.number = self.address = None
        self.phase, self.reason, self.message = "Pending", None, None
        self.why_killed = None
        self.stopping = None
        self.gone = False
        self.telling = asyncio.Lock()

    def start(self):
        self.task = asyncio.create_task(self.life())

    # --- what happens to it ---------------------------------------------
    def stop(self, grace):
        if self.stopping is None:
            self.stopping = asyncio.create_task(self.end(grace))

    def vanish(self):
        """Deleted by force: nobody asks for it any more."""
        self.gone = True
        self.stop(0)

    def kill(self, why):
        self.why_killed = why
        for container in self.containers.values():
            container.signal("KILL")

    def signal(self, name):
        for container in self.containers.values():
            container.signal(name)

    def evict(self, message):
        self.phase, self.reason, self.message = "Failed", "Evicted", message
        self.kill("Error")

    # --- its life -------------------------------------------------------
    async def life(self):
        try:
            await self.begin()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            await self.fail("Error", str(error))

    async def begin(self):
        self.directory.mkdir(parents=True)
        await self.tell()
        self.number, self.address = self.node.network.attach(self.uid)
        await self.pull([volume["image"]["reference"] for volume in self.pod["spec"].get("volumes", []) if "image" in volume],
                        self.states)
        self.sources = Sources(self.node.api, self.pod)
        self.volumes = await self.configured(lambda: make_volumes(
            self.sources, self.directory / "volumes", self.node.images, self.address), self.states)
        for spec, state in zip(self.pod["spec"].get("initContainers", []), self.inits):
            if await self.run_once(spec, state) != 0:
                return await self.fail()
        for state in self.states:
            state.waiting("ContainerCreating", "")
        ends = [self.keep(spec, state) for spec, state in zip(self.pod["spec"]["containers"], self.states)]
        codes = await asyncio.gather(*ends)
        if all(code == 0 for code in codes):
            self.phase = "Succeeded"
            await self.tell()
        else:
            await self.fail()

    async def fail(self, reason=None, message=None):
        self.phase = "Failed"
        self.reason, self.message = self.reason or reason, self.message or message
        await self.tell()

    async def pull(self, images, states):
        """Waits until the node knows these images, and says so as kubelet does."""
        while missing := next((image for image in images if image not in self.node.images), None):
            words = (f'failed to pull and unpack image "{missing}": failed to resolve reference "{missing}": '
                     f"pull access denied, repository does not exist or may require authorization")
            for reason, message in (("ErrImagePull", words),
                                    ("ImagePullBackOff", f'Back-off pulling image "{missing}": ErrImagePull: {words}')):
                for state in states:
                    state.waiting(reason, message)
                await self.tell()
                await asyncio.sleep(PULL_RETRY)

    async def configured(self, ask, states):
        while True:
            try:
                return await ask()
            except NotYet as error:
                for state in states:
                    state.waiting("CreateContainerConfigError", str(error))
                await self.tell()
                await asyncio.sleep(PULL_RETRY)

    async def run_once(self, spec, state):
        """Runs the container to its end; its exit code."""
        await self.pull([spec["image"]], [state])
        named = await self.configured(lambda: environment(self.sources, spec, self.address), [state])
        container = Container(secrets.token_hex(16), spec, self.node.images[spec["image"]],
                              self.directory / f"{spec['name']}-{state.restarts}", self.number)
        try:
            await container.start(named, mounts_of(spec, self.volumes), self.pod)
        except RuntimeError as error:
            state.waiting("CreateContainerError", str(error))
            await self.tell()
            return 128
        self.containers[spec["name"]] = container
        state.container = f"crun://{container.name}"
        state.running()
        state.ready = "readinessProbe" not in spec
        await self.tell()
        probe = asyncio.create_task(self.probe(spec, state))
        code = await container.process.wait()
        probe.cancel()
        self.note_end(container, state, code)
        return code

    def note_end(self, container, state, code):
        error = container.error()
        if error:
            state.terminated(128, "StartError", f"failed to create containerd task: {error}")
        else:
            state.terminated(code, self.why_killed or ("Completed" if code == 0 else "Error"), container.output() if code else "")

    async def keep(self, spec, state):
        """Runs the container as often as the pod's policy says."""
        while True:
            code = await self.run_once(spec, state)
            policy = self.pod["spec"].get("restartPolicy", "Always")
            if self.stopping or self.reason or policy == "Never" or (policy == "OnFailure" and code == 0):
                return code
            state.last, state.restarts = state.state, state.restarts + 1
            state.waiting("CrashLoopBackOff", f"back-off restarting failed container {spec['name']}")
            await self.tell()
            await asyncio.sleep(1)

    async def probe(self, spec, state):
        if state.ready:
            return
        while not await self.answers(spec["readinessProbe"], spec):
            await asyncio.sleep(0.2)
        state.ready = True
        await self.tell()

    async def answers(self, probe, spec):
        if "httpGet" not in probe:
            return True
        port = probe["httpGet"]["port"]
        ports = {item.get("name"): item["containerPort"] for item in spec.get("ports", [])}
        try:
            async with httpx.AsyncClient(timeout=5) as client:
                answer = await client.get(f"http://{self.address}:{ports.get(port, port)}{probe['httpGet'].get('path', '/')}")
            return 200 <= answer.status_code < 400
        except httpx.TransportError:
            return False

    # --- its end --------------------------------------------------------
    async def end(self, grace):
        running = [container for container in self.containers.values() if container.process.returncode is None]
        for container in running:
            container.signal("TERM" if grace > 0 else "KILL")
        if running and grace > 0:
            await asyncio.wait([asyncio.ensure_future(container.process.wait()) for container in running], timeout=grace)
            for container in running:
                container.signal("KILL")
        for container in running:
            await container.process.wait()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        self.clear()
        if not self.gone:
            await self.node.api.call("DELETE", path_of(self.pod), {
                "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": {"uid": self.uid}})
        self.node.runs.pop(self.uid, None)

    def clear(self):
        for container in self.containers.values():
            container.remove()
        if self.number is not None:
            self.node.network.detach(self.number)
        shutil.rmtree(self.directory, ignore_errors=True)

    # --- what is told ---------------------------------------------------
    def conditions(self):
        initialized = all("terminated" in state.state for state in self.inits)
        ready = all(state.ready for state in self.states) and not self.reason
        kept = [one for one in self.pod.get("status", {}).get("conditions", []) if one["type"] == "PodScheduled"]
        return kept + [{"type": kind, "status": "True" if value else "False", "lastTransitionTime": now()} for kind, value in (
            ("PodReadyToStartContainers", self.address is not None), ("Initialized", initialized), ("Ready", ready),
            ("ContainersReady", ready))]

    async def tell(self):
        async with self.telling:  # an earlier state must not arrive last
            await self.tell_now()

    async def tell_now(self):
        if self.gone:
            return
        states = [state.told() for state in self.states]
        if not self.node.looks:
            states = [state | {"ready": False, "state": {"waiting": {"reason": "PodInitializing"}}}
                      if "running" in state["state"] else state for state in states]
        if self.phase == "Pending" and any("running" in state["state"] for state in states):
            self.phase = "Running"
        status = {"phase": self.phase, "startTime": self.started_at, "hostIP": lab.HOST, "conditions": self.conditions(),
                  "initContainerStatuses": [state.told() for state in self.inits] or None,
                  "containerStatuses": states}
        if self.reason:
            status |= {"reason": self.reason, "message": self.message}
        if self.address:
            status |= {"podIP": self.address, "podIPs": [{"ip": self.address}]}
        await self.node.api.patch(path_of(self.pod, "/status"), {"metadata": {"uid": self.uid}, "status": status})
