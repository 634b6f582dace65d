"""
An API server on loopback with the faults that a real one does not show on demand, and agents that only tell their
health and what they take. What is asked of it is kept in `calls`; tests/k8s tries the same server against a real control plane.
"""

import contextlib
import hashlib
import http.server
import ipaddress
import itertools
import json
import secrets
import selectors
import socket
import threading
import time
import uuid

PODS = "/api/v1/namespaces/sandbox-pods/pods"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/sandbox-pods/networkpolicies"
SPACES = "/api/v1/namespaces"
NODES = "/api/v1/nodes"
EVENTS = "/api/v1/namespaces/sandbox-pods/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/sandbox-pods/leases"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Quiet(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *words):
        pass

    def answer(self, status, body, headers=()):
        text = json.dumps(body).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, handler, owner):
        self.owner = owner
        self.obeyed = []  # of an agent: what it was asked to do and did
        self.usage = None  # of an agent: its answer to that request, or an event to wait for; None: it is too old for it
        self.looked = 0  # of an agent: how often it was asked for it
        super().__init__(address, handler)

    def handle_error(self, request, client_address):
        pass  # the other side has left


class Agents:
    """One thread for the listeners of all: there may be a thousand, and most have nothing to do."""

    def __init__(self):
        self.selector = selectors.DefaultSelector()
        self.over = False
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while not self.over:
            for key, _ in self.selector.select(1):
                with contextlib.suppress(OSError, ValueError):  # it has just been stopped
                    key.data.handle_request()

    def start(self, ip, config):
        agent = Listener((ip, 9090), AgentHandler, config)
        agent.timeout = 0
        self.selector.register(agent.socket, selectors.EVENT_READ, agent)
        return agent

    def stop(self, agent):
        self.selector.unregister(agent.socket)
        agent.server_close()


class AgentHandler(Quiet):
    def do(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        config = self.server.owner
        token = hashlib.sha256(self.headers.get("X-Orchard-Token", "").encode()).hexdigest()
        if config.get("stranger"):
            self.answer(200, {"status": "ok", "sandbox_id": "other", "sandbox_uid": str(uuid.uuid4())})
            return
        if token != config["token_sha256"] or self.headers.get("X-Orchard-Sandbox") != config["sandbox_uid"]:
            self.answer(403, {"error": "denied", "message": "another sandbox"})
            return
        if self.path == "/usage":
            self.tell_usage()
            return
        self.answer(200, {"status": "ok", "sandbox_id": config["sandbox_id"], "sandbox_uid": config["sandbox_uid"],
                          "epoch": "1", "version": "1", "newest_fence": 0, "running": 0, "journal": 0, "spool": 0})
        if self.command != "GET":
            self.server.obeyed.append(self.path)

    def tell_usage(self):
        self.server.looked += 1
        usage = self.server.usage
        if isinstance(usage, threading.Event):
            usage.wait(30)
        elif usage is None:
            self.answer(404, {"code": "not_found", "detail": "no such route"})
        else:
            self.answer(200, usage)

    do_GET = do_POST = do


class ApiHandler(Quiet):
    def do(self):
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        path, _, query = self.path.partition("?")
        self.server.owner.serve(self, self.command, path, dict(
            part.partition("=")[::2] for part in query.split("&")), body)

    do_GET = do_POST = do_PUT = do_DELETE = do


def status(code, reason, message):
    return code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                  "message": message}


class FakeCluster:
    def __init__(self, directory):
        self.changed = threading.Condition()
        self.version = 100
        self.things = {PODS: {}, POLICIES: {}, SPACES: {}, NODES: {}, EVENTS: {}, LEASES: {}}
        self.events = []  # (version, type, pod)
        self.calls = []  # (method, path, body)
        self.faults = []  # (method, path, how): the first that fits is used up
        self.held = threading.Event()
        self.held.set()  # cleared: POSTs of pods wait
        self.nodes_held = threading.Event()
        self.nodes_held.set()  # cleared: lists of nodes wait
        self.watch_held = threading.Event()
        self.watch_held.set()  # cleared: watches are silent, and tell later
        self.told = 0  # the last version that a watch has sent
        self.epoch = 0  # a watch of an earlier one ends
        self.running = True  # new pods run at once
        self.full = False  # no node takes new pods
        self.user = "system:serviceaccount:orchard:orchard"
        self.denied = set()  # (verb, resource), as reviews tell it
        self.agents = {}
        self.serving = Agents()
        self.net = itertools.count(1)
        self.subnet = 127 << 24 | secrets.randbelow(200) + 10 << 16 | secrets.randbelow(200) << 8
        self.listener = Listener(("127.0.0.1", 0), ApiHandler, self)
        threading.Thread(target=self.listener.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {
                "server": f"http://127.0.0.1:{self.listener.server_address[1]}"}}],
            "users": [{"name": "test", "user": {"token": "token"}}]}))

    def close(self):
        with self.changed:
            self.epoch += 1
            self.changed.notify_all()
        for name in list(self.agents):
            self.stop_agent(name)
        self.serving.over = True
        self.listener.shutdown()
        self.listener.server_close()

    # --- what tests say ---------------------------------------------------
    @property
    def pods(self):
        return self.things[PODS]

    @property
    def policies(self):
        return self.things[POLICIES]

    def fail(self, method, path, *hows):
        """The next calls that fit end so: a number is a status, "lost" is carried out without an answer, "empty" a list,
        "gone" a POST whose pod is made and deleted, and told of, before the answer comes, a dictionary an answer that says
        that, a tuple a status with headers, a function is given the pod that is to be made, and may change it."""
        self.faults += [(method, path, how) for how in hows]

    def add_pod(self, name, labels, phase="Running"):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": {}}
        with self.changed:
            self.make(PODS, pod)
            pod["status"] = {"phase": phase}
            self.tell("ADDED", pod)
        return pod

    def set_status(self, name, **pod_status):
        with self.changed:
            pod = self.pods[name]
            pod["status"] = pod_status
            self.tell("MODIFIED", pod)

    def new_ip(self):
        return str(ipaddress.IPv4Address(self.subnet + next(self.net)))

    def run(self, name, ip=None, silent=False, ready=True, stranger=False):
        """Its container runs, and its agent answers unless it is silent. Not ready: its node says no more than that.
        A stranger is another sandbox's agent, which takes any token."""
        with self.changed:
            pod = self.pods[name]
            config = next(one["value"] for one in pod["spec"]["containers"][0]["env"]
                          if one["name"] == "ORCHARD_AGENT_CONFIG")
            ip = ip or self.new_ip()
            if not silent:
                self.agents[name] = self.serving.start(ip, json.loads(config) | {"stranger": stranger})
            pod["status"] = {
                "phase": "Running", "podIP": ip,
                "conditions": [{"type": one, "status": str(ready)} for one in ("ContainersReady", "Ready")],
                "containerStatuses": [{"name": "sandbox", "ready": ready, "state": {"running": {"startedAt": None}}}]}
            self.tell("MODIFIED", pod)

    def pull_fails(self, name):
        waiting = {"reason": "ErrImagePull", "message": "no such image: gone/away"}
        self.set_status(name, phase="Pending", containerStatuses=[{"name": "sandbox", "state": {"waiting": waiting}}])

    def stuck(self, name, reason, message):
        """It has a node, which does not get as far as its containers, and says why in an event."""
        with self.changed:
            self.pods[name]["spec"]["nodeName"] = "node-1"
            self.make(EVENTS, {
                "metadata": {"name": f"{name}.{self.version}"}, "type": "Warning", "reason": reason, "message": message,
                "involvedObject": {"uid": self.pods[name]["metadata"]["uid"]},
                "lastTimestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        self.set_status(name, phase="Pending", conditions=[{"type": "PodReadyToStartContainers", "status": "False"}])

    def unschedulable(self, name):
        self.set_status(name, phase="Pending", conditions=[{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available"}])

    def ends(self, name, reason, code):
        state = {"terminated": {"exitCode": code, "reason": reason}}
        self.set_status(name, phase="Failed", containerStatuses=[{"name": "sandbox", "state": state}])

    def remove(self, name, silently=False):
        with self.changed:
            pod = self.pods.pop(name)
            self.stop_agent(name)
            if not silently:
                self.tell("DELETED", pod)
            for policy in list(self.policies.values()):  # as the garbage collector does
                if any(owner["uid"] == pod["metadata"]["uid"]
                       for owner in policy["metadata"].get("ownerReferences", [])):
                    del self.policies[policy["metadata"]["name"]]

    def relabel(self, name, **labels):
        """By whoever may: it leaves the watch of those that have the labels, and lives on."""
        with self.changed:
            before = json.loads(json.dumps(self.pods[name]))
            self.pods[name]["metadata"]["labels"].update(labels)
            self.tell("DELETED", before)

    def forget_events(self):
        """Watches end, and the server remembers nothing of before: a fresh list is needed."""
        with self.changed:
            self.version += 100
            self.events.clear()
            self.epoch += 1
            self.changed.notify_all()

    def asked(self, method, path):
        return [body for one, where, body in list(self.calls) if one == method and where == path]

    # --- what it does -----------------------------------------------------
    def stop_agent(self, name):
        agent = self.agents.pop(name, None)
        if agent is not None:
            self.serving.stop(agent)

    def tell(self, kind, pod):
        self.version += 1
        pod["metadata"]["resourceVersion"] = str(self.version)
        self.events.append((self.version, kind, json.loads(json.dumps(pod))))
        self.changed.notify_all()

    def make(self, kind, thing):
        thing["metadata"] |= {"uid": str(uuid.uuid4()), "resourceVersion": str(self.version)}
        self.things[kind][thing["metadata"]["name"]] = thing

    def serve(self, request, method, path, query, body):
        self.calls.append((method, path, body))
        if method == "GET" and query.get("watch") == "true":
            self.watch(request, int(query["resourceVersion"]))
            return
        if method == "POST" and path == PODS:
            self.held.wait(30)
        if path == NODES:
            self.nodes_held.wait(30)
        how = self.fault(method, path)
        if isinstance(how, int | tuple):
            code, headers = how if isinstance(how, tuple) else (how, {})
            request.answer(*status(code, "Forbidden" if code == 403 else "", f"the tests want {code}"), headers)
            return
        if how == "empty":
            request.answer(200, {"kind": "PodList", "metadata": {"resourceVersion": str(self.version)}, "items": []})
            return
        if isinstance(how, dict):
            request.answer(200, how)
            return
        if callable(how):
            how(body)
        with self.changed:
            code, answer = self.act(method, path, body)
            answer = json.loads(json.dumps(answer))
            if how == "gone":
                self.remove(body["metadata"]["name"])
                self.changed.wait_for(lambda: self.told >= self.version, 10)
        if how == "lost":
            request.close_connection = True
            with contextlib.suppress(OSError):
                request.connection.shutdown(socket.SHUT_RDWR)
            return
        request.answer(code, answer)

    def fault(self, method, path):
        with self.changed:
            for one in self.faults:
                if one[0] == method and one[1] == path:
                    self.faults.remove(one)
                    return one[2]
        return None

    def act(self, method, path, body):
        if path == WHOAMI:
            return 201, body | {"status": {"userInfo": {"username": self.user}}}
        if path == REVIEWS:
            what = body["spec"]["resourceAttributes"]
            return 201, body | {"status": {"allowed": (what["verb"], what["resource"]) not in self.denied}}
        if path in self.things:
            if method == "POST":
                return self.post(path, body)
            return 200, {"kind": "List", "metadata": {"resourceVersion": str(self.version)}, "items": [
                thing for thing in self.things[path].values()
                if path != PODS or thing["metadata"].get("labels", {}).get("app") == "sandbox"]}
        kind, _, name = path.rpartition("/")
        thing = self.things[kind].get(name)
        if thing is None:
            return status(404, "NotFound", f"{name} not found")
        if method == "PUT":
            if body["metadata"].get("resourceVersion") not in (None, thing["metadata"]["resourceVersion"]):
                return status(409, "Conflict", "the object has been modified")
            self.version += kind == LEASES
            self.make(kind, body)
            return 200, body
        if method == "DELETE":
            wanted = (body or {}).get("preconditions", {}).get("uid")
            if wanted not in (None, thing["metadata"]["uid"]):
                return status(409, "Conflict", "the UID in the precondition is another")
            self.remove(name)
        return 200, thing

    def post(self, kind, body):
        name = body["metadata"]["name"]
        if name in self.things[kind]:
            return status(409, "AlreadyExists", f"{name} already exists")
        self.make(kind, body)
        if kind == PODS:
            body["status"] = {"phase": "Pending"}
            self.tell("ADDED", body)
            answer = json.loads(json.dumps(body))
            if self.full:
                self.unschedulable(name)
            elif self.running:
                self.run(name)
            return 201, answer
        return 201, body

    def watch(self, request, version):
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.send_header("Connection", "close")
        request.end_headers()
        request.close_connection = True
        with self.changed:
            epoch = self.epoch
            gone = version < self.version - len(self.events) - 1
        if gone:
            line = {"type": "ERROR", "object": status(410, "Expired", "too old resource version")[1]}
            request.wfile.write(json.dumps(line).encode() + b"\n")
            return
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with self.changed:
                if epoch != self.epoch:
                    return
                news = [one for one in self.events if one[0] > version]
                if not news:
                    self.changed.wait(1)
                    continue
            self.watch_held.wait(30)
            for number, kind, pod in news:
                request.wfile.write(json.dumps({"type": kind, "object": pod}).encode() + b"\n")
                version = number
            request.wfile.flush()
            with self.changed:
                self.told = version
                self.changed.notify_all()
