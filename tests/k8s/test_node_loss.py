"""Nodes that are lost, as the real controllers see it: node lifecycle, eviction by taints, and the collectors of what is left."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchard_server import Sandbox, eventually
from worker_node import WorkerNode

NAME = "node-2"
GRACE = 15  # of seconds, in which the node is waited for
EVICTION = 3  # seconds later its pods are taken away
NODE = f"/api/v1/nodes/{NAME}"
SILENT = ("ready", False, f"the pod's node does not answer: {NAME}")
READY = ("ready", True, None)


@pytest.fixture(scope="module")
def watched(cluster, node):
    cluster.watch_nodes(GRACE)
    yield
    eventually(lambda: is_ready(cluster, node.name), 60, "the other tests' node is ready")
    cluster.stop("node-watch")


@pytest.fixture
def second(cluster, watched, node_images, work_dir):
    """A node that is a test's own to lose."""
    one = WorkerNode(cluster, work_dir / NAME, dict(node_images), name=NAME, workload="lost", scheduler="of-node-2",
                     first_address=30000).start()
    eventually(lambda: is_ready(cluster, NAME), 60, "the node is ready")
    yield one
    one.close()
    cluster.api.delete(NODE)


@pytest.fixture
def make_server(second, make_pod_server, work_dir):  # the node outlives the servers
    def make(**spec):
        """Its pods go to that node, and have this in their spec."""
        template = work_dir / "node-2.json"
        template.write_text(json.dumps({"spec": {"schedulerName": "of-node-2"} | spec}))
        template.chmod(0o644)
        return make_pod_server(pod_node_selector=["workload=lost"], pod_template_file=template, pod_grace_seconds=2).start()
    return make


@pytest.fixture
def patient(make_server):
    """What the cluster does with pods by itself."""
    return make_server()


@pytest.fixture
def hasty(make_server):
    return make_server(tolerations=[
        {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": EVICTION}
        for state in ("unreachable", "not-ready")])


def condition(thing, kind):
    return next((one["status"] for one in thing["status"].get("conditions", []) if one["type"] == kind), None)


def is_ready(cluster, name):
    node = cluster.get(f"/api/v1/nodes/{name}")
    return condition(node, "Ready") == "True" and not node["spec"].get("taints")


def stands(box):
    told = box.get().json()
    return told["status"], told["ready"], told["status_message"]


def wait_stands(box, wanted):
    eventually(lambda: stands(box) == wanted, 60, lambda: stands(box))


def wait_failed(box, said):
    def failed():
        status, ready, words = stands(box)
        return status == "failed" and not ready and said in words
    eventually(failed, 120, lambda: f"failed, {said!r}: {stands(box)}")


def offered(server):
    """What the node has for pods, of cpu; what all of them have."""
    told = server.client.get("/resources").json()
    return next(one["allocatable"]["cpu"] for one in told["nodes"] if one["name"] == NAME), told["total_allocatable"]["cpu"]


def uid(server, box):
    return server.pod(box.id)["metadata"]["uid"]


def create_again(box):
    """Another sandbox of that id, as soon as the first is gone."""
    asked = {"image": "debian", "sandbox_id": box.id}
    eventually(lambda: box.client.post("/sandboxes", json=asked).status_code == 200, 60, lambda: f"the id is free: {box.get().text}")
    box.wait_ready()
    return box


def jobs_of(box):
    return box.client.get(f"{box.url}/jobs").json()["jobs"]


def test_b113_a_node_that_is_silent_for_a_while(patient, second):
    """Its sandboxes are not ready, and say which node it is; then they are what they were."""
    box = patient.create()
    tolerated = {one["key"]: one.get("tolerationSeconds") for one in patient.pod(box.id)["spec"]["tolerations"]}
    assert tolerated == {"node.kubernetes.io/unreachable": 300, "node.kubernetes.io/not-ready": 300}
    before = uid(patient, box)
    job = box.start("echo begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo done")
    box.wait_running(job)
    pod = f"{patient.namespace}/sandbox-{box.id}"
    second.still(pod)
    second.hang()
    try:
        wait_stands(box, SILENT)
        eventually(lambda: offered(patient) == (0, 0), 30, lambda: offered(patient))
        answer = box.post_exec("true")
        assert answer.status_code == 503 and SILENT[2] in answer.text, answer.text
        assert box.job(job)["status"] == "running"
    finally:
        second.wake()
        second.still(pod, False)
    wait_stands(box, READY)
    eventually(lambda: condition(patient.pod(box.id), "Ready") == "True", 60, lambda: patient.pod(box.id)["status"])
    eventually(lambda: offered(patient) == (64, 64), 30, lambda: offered(patient))
    box.out("touch /tmp/go", lane="another")
    assert box.wait_job(job)["stdout"] == "begun\ndone\n"
    assert uid(patient, box) == before


def test_b113_a_node_that_only_the_cluster_misses(hasty, second):
    """The sandbox serves as long as the cluster lets it, and its end says why."""
    box = hasty.create()
    eventually(lambda: condition(hasty.pod(box.id), "Ready") == "True", 30, "the node says that it is ready")
    second.hang()
    try:
        eventually(lambda: condition(hasty.pod(box.id), "Ready") == "False", 60, "the cluster takes the pod for lost")
        assert box.out("echo on") == "on\n"
        wait_failed(box, "the pod's node was lost or took no pods any more")
    finally:
        second.wake()
    eventually(lambda: hasty.pod(box.id) is None, 60, "the node ends it when it is back")


def test_b113_a_node_that_is_emptied(patient, second, cluster):
    """By an operator: a taint that pods do not tolerate."""
    box = patient.create()
    cluster.kubectl("taint", "node", NAME, "maintenance=now:NoExecute")
    wait_failed(box, "the pod's node was lost or took no pods any more")
    eventually(lambda: patient.pod(box.id) is None, 60, "the pod is gone")
    cluster.kubectl("taint", "node", NAME, "maintenance-")
    assert patient.create().out("echo new") == "new\n"


def test_b113_a_node_that_comes_back_empty(patient, second):
    """And runs the pod, by its old name and uid, anew, which kubelet leaves: that is no life of the sandbox."""
    box = patient.create()
    job = box.start("touch /tmp/mine; sleep 600")
    box.wait_running(job)
    second.lose()
    second.start()
    wait_failed(box, f"the agent was started anew, and what was in the pod is lost: {NAME}")
    assert box.wait_job(job)["verdict"] == "agent_lost", box.job(job)
    eventually(lambda: patient.pod(box.id) is None, 60, "the pod is gone")
    box.delete()
    assert create_again(box).exec("test -e /tmp/mine")["exit_code"] == 1


def test_b113_a_node_that_is_dead(hasty, second):
    """Calls in flight are answered, no command is run again, and the id is free for a sandbox on another node."""
    box, late = hasty.create(), hasty.create("late:1", wait=False)
    eventually(lambda: "late:1" in (stands(late)[2] or ""), 60, lambda: stands(late))
    with ThreadPoolExecutor(1) as other:
        flying = other.submit(box.post_exec, "touch /tmp/runs; sleep 600")
        job = eventually(lambda: jobs_of(box), 30, "it has a job")[0]["job_id"]
        box.wait_running(job)
        second.lose()
        wait_failed(box, "the pod's node was lost or took no pods any more")
        wait_failed(late, "the pod's node was lost or took no pods any more")
        answer = flying.result(60)
    assert answer.json()["verdict"] == "agent_lost", answer.text
    second.start()
    eventually(lambda: not hasty.pods(), 60, "the node ends what was taken away while it was dead")
    box.delete()
    assert create_again(box).out("test ! -e /tmp/runs; echo new") == "new\n"


def test_b113_a_node_that_is_taken_out(patient, second, cluster):
    """Its pods and what they own are collected by the cluster, a minute later."""
    box = patient.create(block_network=False)
    assert f"sandbox-{box.id}" in patient.policies()
    second.lose()
    assert cluster.api.delete(NODE).status_code == 200
    wait_failed(box, "the pod's node is gone")
    eventually(lambda: patient.pod(box.id) is None, 60, "the pod is gone")
    eventually(lambda: f"sandbox-{box.id}" not in patient.policies(), 60, "the policy goes with its pod")
    assert patient.client.get("/resources").json()["total_requested"]["cpu"] == 0
    second.start()
    box.delete()
    assert create_again(box).out("echo new") == "new\n"
