"""The tests' own node does what the other tests take for granted of one."""

import socket

import pytest

from orchard_server import eventually

SERVER = """
import socket
with socket.create_server(("", 9090)) as listening:
    while True:
        listening.accept()[0].sendall(b"hello")
"""
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def run_pod(cluster, node):
    made = []

    def run(name, *command, **spec):
        containers = [{"name": "main", "image": "debian", "command": list(command)}]
        answer = cluster.api.post(PODS, json={
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": containers, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0} | spec})
        assert answer.status_code == 201, answer.text
        made.append(name)
        return name
    yield run
    for name in made:
        cluster.api.delete(f"{PODS}/{name}")
    eventually(lambda: not any(pod["metadata"]["name"] in made for pod in cluster.items(PODS)), 30, "pods are gone")


def status(cluster, name):
    return cluster.get(f"{PODS}/{name}").get("status", {})


def state(cluster, name, kind):
    return next(iter(status(cluster, name).get("containerStatuses", [])), {}).get("state", {}).get(kind)


def condition(cluster, name, kind):
    return next((one for one in status(cluster, name).get("conditions", []) if one["type"] == kind), {})


def test_a_pod_runs_on_an_address_of_its_own(cluster, run_pod):
    run_pod("web", "python3", "-c", SERVER)
    eventually(lambda: condition(cluster, "web", "Ready").get("status") == "True", 30, lambda: status(cluster, "web"))
    address = status(cluster, "web")["podIP"]

    def answers():
        try:
            with socket.create_connection((address, 9090), timeout=10) as connection:
                return connection.recv(5) == b"hello"
        except OSError:
            return False
    eventually(answers, 30, "the pod answers")


def test_ends_are_told(cluster, run_pod):
    run_pod("good", "true")
    run_pod("bad", "sh", "-c", "exit 7")
    run_pod("absent", "/nosuch")
    for name, phase, code in (("good", "Succeeded", 0), ("bad", "Failed", 7), ("absent", "Failed", 128)):
        eventually(lambda: status(cluster, name)["phase"] == phase, 30, lambda: status(cluster, name))
        assert state(cluster, name, "terminated")["exitCode"] == code
    assert state(cluster, "absent", "terminated")["reason"] == "StartError"


def test_what_cannot_run_says_why(cluster, node, node_images, run_pod):
    run_pod("big", "true", containers=[{"name": "main", "image": "debian", "resources": {"requests": {"cpu": "500"}}}])
    run_pod("elsewhere", "true", nodeSelector={"workload": "other"})
    run_pod("unpulled", "sleep", "600", containers=[{"name": "main", "image": "late", "command": ["sleep", "600"]}])
    for name, words in (("big", "Insufficient cpu"), ("elsewhere", "node affinity/selector")):
        eventually(lambda: words in condition(cluster, name, "PodScheduled").get("message", ""), 30, lambda: status(cluster, name))
    eventually(lambda: (state(cluster, "unpulled", "waiting") or {}).get("reason") == "ImagePullBackOff", 30, "pull fails")
    node.add_images(late=node_images["debian"])
    eventually(lambda: state(cluster, "unpulled", "running"), 30, lambda: status(cluster, "unpulled"))


def test_blows_are_told(cluster, node, run_pod):
    for name, blow in (("evicted", node.evict), ("eaten", node.oom), ("crashed", node.crash)):
        run_pod(name, "sleep", "600")
        eventually(lambda: state(cluster, name, "running"), 30, lambda: status(cluster, name))
        blow(f"default/{name}")
        eventually(lambda: status(cluster, name)["phase"] == "Failed", 30, lambda: status(cluster, name))
    assert status(cluster, "evicted")["reason"] == "Evicted"
    assert state(cluster, "eaten", "terminated") | {"startedAt": 0, "finishedAt": 0} == {
        "exitCode": 137, "reason": "OOMKilled", "startedAt": 0, "finishedAt": 0}


def test_a_deleted_pods_processes_are_gone(cluster, node, run_pod):
    run_pod("stubborn", "sh", "-c", "trap '' TERM; sleep 600", terminationGracePeriodSeconds=1)
    eventually(lambda: state(cluster, "stubborn", "running"), 30, lambda: status(cluster, "stubborn"))
    assert cluster.api.delete(f"{PODS}/stubborn").status_code == 200
    eventually(lambda: cluster.get(f"{PODS}/stubborn") is None, 30, lambda: status(cluster, "stubborn"))
