"""Sandboxes as pods: the real server, a real API server, real agents in real containers."""

import base64
import json
import os
import signal
import time

import pytest

from orchard_on_cluster import NAMESPACE
from orchard_server import Sandbox, eventually
from terminals import Terminal

OUTSIDE = {"app": "something-else"}


def words(sandbox):
    return sandbox.get().json().get("status_message") or ""


def wait_status(sandbox, status, said=""):
    def reached():
        answer = sandbox.get().json()
        return answer["status"] == status and said.lower() in (answer["status_message"] or "").lower()
    eventually(reached, 60, lambda: f"{status}, {said!r}: {sandbox.get().json()}")


def plain_pod(name, labels):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels},
            "spec": {"terminationGracePeriodSeconds": 0, "nodeSelector": {"workload": "nowhere"},
                     "containers": [{"name": "main", "image": "debian", "command": ["sleep", "600"]}]}}


@pytest.fixture
def foreign(cluster):
    """Makes pods that are not the server's."""
    made = []

    def make(server, name, labels):
        answer = cluster.api.post(server.pods_path, json=plain_pod(name, labels))
        assert answer.status_code == 201, answer.text
        made.append(f"{server.pods_path}/{name}")
        return answer.json()["metadata"]["uid"]
    yield make
    for path in made:
        cluster.api.delete(path)


def test_a_whole_life(server, cluster):
    box = server.create(labels={"team": "a"}, env={"COLOUR": "red"})
    pod = server.pod(box.id)
    assert pod["metadata"]["labels"]["app"] == "sandbox" and pod["metadata"]["labels"]["sandbox-id"] == box.id
    assert box.get().json()["pod_name"] == f"sandbox-{box.id}" and box.get().json()["namespace"] == NAMESPACE
    job = box.exec("cat /etc/debian_version >/dev/null && echo $COLOUR && echo err >&2; exit 3")
    assert (job["stdout"], job["stderr"], job["exit_code"]) == ("red\n", "err\n", 3)
    content = bytes(range(256)) * 100
    sent = server.client.post(f"{box.url}/files", json={"path": "/tmp/a/b", "content": base64.b64encode(content).decode()})
    assert sent.status_code == 200, sent.text
    back = server.client.get(f"{box.url}/files", params={"path": "/tmp/a/b"}).json()
    assert base64.b64decode(back["content"]) == content
    with Terminal(box, ["bash", "-c", "read x; echo got $x"]).ready() as terminal:
        terminal.type("words\n")
        terminal.see("got words")
        assert terminal.end() == 0
    box.delete()
    assert box.get().status_code == 404
    eventually(lambda: server.pod(box.id) is None, 30, "the pod is gone")


def test_an_agent_is_reached_before_its_node_says_that_it_runs(server, node):
    node.look(False)
    try:
        box = server.create()
        assert server.pod(box.id)["status"]["phase"] == "Pending"
        assert box.out("echo early") == "early\n"
    finally:
        node.look(True)
    eventually(lambda: server.pod(box.id)["status"]["phase"] == "Running", 30, "the node says that it runs")
    assert box.out("echo late") == "late\n" and box.get().json()["status"] == "ready"
    box.delete()


def test_a_pod_whose_only_address_is_of_ipv6(server, node):
    node.give_out(6)
    try:
        box = server.create()
    finally:
        node.give_out(4)
    assert server.pod(box.id)["status"]["podIP"].startswith("fd88::")
    assert box.out("echo six") == "six\n"
    assert server.client.put(f"{box.url}/files/raw", params={"path": "/tmp/f"}, content=b"six").status_code == 200
    with Terminal(box, ["cat", "/tmp/f"]).ready() as terminal:
        terminal.see("six")
    box.delete()
    eventually(lambda: server.pod(box.id) is None, 30, "the pod is gone")


def test_requests_share_connections(server):
    """Of HTTP/2, which the API server offers."""
    box = server.create()

    def spoken():
        told = dict(line.rsplit(" ", 1) for line in server.client.get("/metrics").text.splitlines() if line[0] != "#")
        return int(told["orchard_kubernetes_http2_total"]), int(told["orchard_kubernetes_requests_total"])
    eventually(lambda: spoken()[0] > spoken()[1] // 2, 30, lambda: f"over HTTP/2, of all: {spoken()}")
    box.delete()


def test_it_starts_only_with_its_node_and_its_words(server):
    box = server.create(wait=False, cpu="500")
    wait_status(box, "unschedulable", "Insufficient cpu")
    box.delete()
    eventually(lambda: server.pod(box.id) is None, 30, "the pod is gone")


def test_resources_are_those_that_were_asked(server):
    box = server.create(cpu="250m", memory="300Mi")
    resources = server.pod(box.id)["spec"]["containers"][0]["resources"]
    assert {name: resources["requests"][name] for name in ("cpu", "memory")} == {"cpu": "250m", "memory": "300Mi"}
    assert {name: resources["limits"][name] for name in ("cpu", "memory")} == {"cpu": "250m", "memory": "300Mi"}
    box.delete()


def test_b158_no_token_and_no_variables_of_the_cluster(server):
    box = server.create()
    assert box.out("ls /var/run/secrets /run/secrets 2>/dev/null; env | grep ^KUBERNETES_ | wc -l") == "0\n"
    assert "ORCHARD_AGENT_CONFIG" not in box.out("env")
    spec = server.pod(box.id)["spec"]
    assert spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False
    box.delete()


def test_the_pod_shows_no_secret(server, cluster):
    """Whoever may read pods may not act as the server."""
    box = server.create()
    config = next(item["value"] for container in server.pod(box.id)["spec"]["containers"] for item in container["env"]
                  if item["name"] == "ORCHARD_AGENT_CONFIG")
    assert "token" not in json.loads(config) and len(json.loads(config)["token_sha256"]) == 64
    box.delete()


def test_b157_agents_answer_nobody_else(server):
    """Not without the token, not another sandbox."""
    first, second = server.create(), server.create()
    address = server.pod(second.id)["status"]["podIP"]
    probe = ("import socket; s = socket.create_connection(('%s', 9090), 5); "
             "s.sendall(b'GET /health HTTP/1.1\\r\\nHost: a\\r\\nContent-Length: 0\\r\\n\\r\\n'); print(s.recv(200).split()[1])")
    assert first.out(["python3", "-c", probe % address]).strip() in ("b'401'", "b'403'")
    first.delete()
    second.delete()


def test_b105_an_id_that_is_taken(server):
    box = server.create(sandbox_id="taken")
    uid = server.pod("taken")["metadata"]["uid"]
    second = server.client.post("/sandboxes", json={"image": "busybox", "sandbox_id": "taken"})
    assert second.status_code == 409 and second.json()["code"] == "sandbox_exists", second.text
    assert server.pod("taken")["metadata"]["uid"] == uid
    assert box.out("echo still there") == "still there\n"
    box.delete()


def test_b105_a_pod_of_that_name_is_somebody_elses(server, foreign):
    uid = foreign(server, "sandbox-squatter", OUTSIDE)
    answer = server.client.post("/sandboxes", json={"image": "debian", "sandbox_id": "squatter"})
    if answer.status_code == 200:
        wait_status(Sandbox(server, "squatter"), "failed", "sandbox-squatter")
        Sandbox(server, "squatter").delete()
    else:
        assert answer.status_code == 409, answer.text
    assert server.pod("squatter")["metadata"]["uid"] == uid


def test_b118_what_is_not_ours_stays(server, foreign):
    uid = foreign(server, "sandbox-foreign", OUTSIDE)
    assert server.client.delete("/sandboxes/foreign").status_code == 404
    assert server.client.delete("/sandboxes/nosuch").status_code == 404
    assert server.pod("foreign")["metadata"]["uid"] == uid


def test_b118_a_pod_with_our_label_and_no_record_is_removed(make_pod_server, foreign):
    """Left by a server that is no more; what only bears a like name is not touched."""
    server = make_pod_server(cleanup_interval_seconds=1).start()
    kept = server.create()
    foreign(server, "sandbox-lookalike", OUTSIDE)
    foreign(server, "sandbox-left", {"app": "sandbox", "sandbox-id": "left", "sandbox-uid": "00000000-0000-4000-8000-000000000000"})
    eventually(lambda: server.pod("left") is None, 90, "the pod that nobody knows is removed")
    assert server.pod("lookalike") is not None and server.pod(kept.id) is not None


def test_b119_policies_stand_before_pods_and_go_with_them(server):
    blocked, open_ = server.create(), server.create(block_network=False)
    policies = server.policies()
    default = policies.pop("orchard-default")
    assert default["spec"]["podSelector"] == {} and sorted(default["spec"]["policyTypes"]) == ["Egress", "Ingress"]
    assert default["spec"].get("egress", []) == []
    assert [port["port"] for rule in default["spec"]["ingress"] for port in rule["ports"]] == [9090]
    assert not any(blocked.id in name for name in policies)
    allow = policies[f"sandbox-{open_.id}"]
    owner = allow["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"]) == ("Pod", server.pod(open_.id)["metadata"]["uid"])
    excepted = [one for rule in allow["spec"]["egress"] for peer in rule["to"] for one in peer.get("ipBlock", {}).get("except", [])]
    assert {"169.254.0.0/16", "10.0.0.0/8"} <= set(excepted)
    created = min(pod["metadata"]["creationTimestamp"] for pod in server.pods().values())
    assert default["metadata"]["creationTimestamp"] <= created
    blocked.delete()
    open_.delete()
    eventually(lambda: f"sandbox-{open_.id}" not in server.policies(), 60, "the policy goes with its pod")


def test_b119_egress_of_both_families(server):
    named = ["10.96.0.0/16", "8.0.0.0/5", "[2001:db8::/32]:443", "64:ff9b::/96", "2001:db8::7"]
    box = server.create(egress={"allow": named})
    assert box.get().json()["egress"] == {"allow": named}
    rules = server.policies()[f"sandbox-{box.id}"]["spec"]["egress"][1:]
    blocks = {rule["to"][0]["ipBlock"]["cidr"]: rule for rule in rules}
    assert set(blocks) == {"8.0.0.0/5", "2001:db8::/32", "64:ff9b::/96", "2001:db8::7/128"}
    assert {port["port"] for port in blocks["2001:db8::/32"]["ports"]} == {443}
    assert "64:ff9b::a9fe:0/112" in blocks["64:ff9b::/96"]["to"][0]["ipBlock"]["except"]
    box.delete()
    for wrong in "::ffff:10.0.0.1", "fe80::1", "fd00:ec2::254":
        assert server.client.post("/sandboxes", json={"image": "default", "egress": {"allow": [wrong]}}).status_code == 422


def test_b110_what_a_node_tells_in_events_alone(make_pod_server, cluster):
    """Of a pod that is bound to a node where nobody works on it, but for the one who writes events."""
    server = make_pod_server(pod_node_selector=["workload=none"]).start()
    box = server.create(wait=False)
    wait_status(box, "unschedulable")
    pod = server.pod(box.id)
    ghost = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "ghost"}}
    assert cluster.api.post("/api/v1/nodes", json=ghost).status_code == 201
    try:
        answer = cluster.api.post(f"{server.pods_path}/sandbox-{box.id}/binding", json={
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": f"sandbox-{box.id}"}, "target": {"kind": "Node", "name": "ghost"}})
        assert answer.status_code == 201, answer.text
        told = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"sandbox-{box.id}.1"}, "type": "Warning",
                "reason": "FailedMount", "message": "no such claim", "lastTimestamp": "2026-01-01T00:00:01Z", "involvedObject": {
                    "kind": "Pod", "namespace": server.namespace, "name": f"sandbox-{box.id}", "uid": pod["metadata"]["uid"]}}
        answer = cluster.api.post(f"/api/v1/namespaces/{server.namespace}/events", json=told)
        assert answer.status_code == 201, answer.text
        wait_status(box, "pending", "its node says: FailedMount: no such claim")
    finally:
        cluster.api.request("DELETE", f"{server.pods_path}/sandbox-{box.id}", json={"gracePeriodSeconds": 0})
        cluster.api.delete("/api/v1/nodes/ghost")
    wait_status(box, "failed")
    box.delete()


def test_b109_an_image_that_comes_late(server, node, node_images):
    box = server.create("later:1", wait=False)
    eventually(lambda: "pull" in words(box).lower() and box.get().json()["status"] == "pending", 60, lambda: box.get().text)
    node.add_images(**{"later:1": node_images["debian"]})
    box.wait_ready()
    box.delete()


def test_b109_an_image_that_never_comes(make_pod_server):
    server = make_pod_server(image_pull_failure_seconds=2).start()
    box = server.create("never:1", wait=False)
    wait_status(box, "failed", "pull access denied")
    eventually(lambda: server.pod(box.id) is None, 60, "the pod of a failed sandbox is removed")


def tell_of(server, box, **condition):
    """As the control plane does, in its node's place."""
    condition["lastTransitionTime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    server.cluster.patch(f"{server.pods_path}/sandbox-{box.id}/status", {"status": {"conditions": [condition]}},
                         kind="strategic-merge-patch")


def stands(box):
    told = box.get().json()
    return told["status"], told["ready"], told["status_message"]


def test_b113_a_node_that_is_not_heard_of(server, node):
    """Its sandboxes are not ready, and say which node it is, until they are heard again."""
    box = server.create()
    name = f"sandbox-{box.id}"
    node.still(f"{NAMESPACE}/{name}")
    try:
        tell_of(server, box, type="Ready", status="False")
        eventually(lambda: stands(box) == ("ready", False, "the pod's node does not answer: node-1"), 30, lambda: stands(box))
        answer = box.post_exec("true")
        assert answer.status_code == 503 and "(the pod's node does not answer: node-1)" in answer.text, answer.text
    finally:
        node.still(f"{NAMESPACE}/{name}", False)
    eventually(lambda: stands(box) == ("ready", True, None), 30, lambda: stands(box))
    tell_of(server, box, type="Ready", status="True")
    assert box.out("echo back") == "back\n"
    tell_of(server, box, type="DisruptionTarget", status="True", reason="DeletionByTaintManager",
            message="Taint manager: deleting due to NoExecute taint")
    assert server.cluster.api.delete(f"{server.pods_path}/{name}").status_code in (200, 202)
    wait_status(box, "failed", "the pod's node was lost or took no pods any more")
    box.delete()


@pytest.mark.parametrize("blow, said", [("evict", "low on resource"), ("oom", "memory"), ("crash", "killed by signal 9")])
def test_b113_ends_of_pods_have_words(server, node, blow, said):
    box = server.create()
    getattr(node, blow)(f"{NAMESPACE}/sandbox-{box.id}")
    wait_status(box, "failed", said)
    assert box.get().json()["ready"] is False
    assert box.post_exec("true").status_code in (409, 410, 503)
    box.delete()


def test_b113_a_pod_that_others_delete(server, cluster):
    box = server.create()
    assert cluster.api.delete(f"{server.pods_path}/sandbox-{box.id}").status_code == 200
    wait_status(box, "failed")
    assert words(box) != ""
    box.delete()


def test_a_pod_whose_labels_somebody_takes_away(server, cluster):
    """The watch calls it deleted, and no list has it."""
    box = server.create()
    answer = cluster.api.patch(f"{server.pods_path}/sandbox-{box.id}", json={"metadata": {"labels": {"app": None}}},
                               headers={"Content-Type": "application/merge-patch+json"})
    assert answer.status_code == 200, answer.text
    wait_status(box, "failed", "somebody changed the labels")
    eventually(lambda: server.pod(box.id) is None, 60, "the pod is removed")
    box.delete()


def test_a_template_with_a_field_that_is_misspelt_is_told(make_pod_server, work_dir):
    template = work_dir / "misspelt.yaml"
    template.write_text("spec: {nodeSelecter: {disk: fast}}")
    template.chmod(0o644)
    server = make_pod_server(pod_template_file=template).start()
    box = server.create(wait=False)
    wait_status(box, "failed", "spec.nodeSelecter")


def test_b115_the_same_id_again_and_again(server):
    uids = set()
    for _ in range(5):
        deadline = time.monotonic() + 60
        while (answer := server.client.post("/sandboxes", json={"image": "debian", "sandbox_id": "again"})).status_code != 200:
            assert answer.status_code in (409, 503) and time.monotonic() < deadline, answer.text
        box = Sandbox(server, "again")
        box.wait_ready()
        uids.add(server.pod("again")["metadata"]["uid"])
        assert box.out("echo fresh") == "fresh\n"
        box.delete()
    assert len(uids) == 5


def test_b107_a_reused_address_is_no_way_into_another_sandbox(server, cluster):
    """The node gives out the lowest free address: the second pod has that of the first."""
    first = server.create()
    address = server.pod(first.id)["status"]["podIP"]
    assert cluster.api.delete(f"{server.pods_path}/sandbox-{first.id}?gracePeriodSeconds=0").status_code == 200
    for _ in range(10):
        second = server.create()
        if server.pod(second.id)["status"]["podIP"] == address:
            break
        second.delete()  # the node was not yet done with the first
    else:
        raise AssertionError(f"{address} was not given out again")
    assert first.post_exec("touch /tmp/wrong").status_code in (404, 409, 410, 503)
    assert second.exec("test -e /tmp/wrong")["exit_code"] == 1
    first.delete()
    second.delete()


def test_sandboxes_outlive_the_server(make_pod_server):
    server = make_pod_server().start()
    box = server.create()
    job = box.start("sleep 2; echo done")
    box.wait_running(job)
    uid = server.pod(box.id)["metadata"]["uid"]
    server.kill_all()
    server.start()
    assert box.wait_job(job)["stdout"] == "done\n"
    assert server.pod(box.id)["metadata"]["uid"] == uid
    assert box.out("echo again") == "again\n"


def test_a_controller_that_dies_is_started_again(make_pod_server):
    server = make_pod_server().start()
    box = server.create()
    before = server.pids("controller")
    os.kill(before[0], signal.SIGKILL)
    assert box.out("echo on") == "on\n"
    eventually(lambda: server.pids("controller") not in ([], before), 30, "a new controller")
    other = server.create()
    other.delete()
    box.delete()


def test_missing_rights_are_named(make_pod_server, cluster):
    server = make_pod_server().start()
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{server.namespace}/roles/orchard"
    role = cluster.get(path)
    without = [rule | {"verbs": [verb for verb in rule["verbs"] if verb != "create"]} for rule in role["rules"]]
    cluster.patch(path, {"rules": [rule for rule in without if rule["verbs"]]})
    answer = server.client.post("/sandboxes", json={"image": "debian", "sandbox_id": "refused"})
    if answer.status_code == 200:
        wait_status(Sandbox(server, "refused"), "failed", "forbidden")
    else:
        assert "forbidden" in answer.text
    cluster.patch(path, {"rules": role["rules"]})
    server.create().delete()


def test_many_at_once(server):
    boxes = [server.create(wait=False, cpu="100m", memory="64Mi") for _ in range(20)]
    for box in boxes:
        box.wait_ready()
    assert {box.out("hostname").strip() for box in boxes} == {f"sandbox-{box.id}" for box in boxes}
    for box in boxes:
        box.delete()
    names = {f"sandbox-{box.id}" for box in boxes}
    eventually(lambda: not names & set(server.pods()), 60, lambda: f"their pods are gone: {list(server.pods())}")


def test_what_the_cluster_has(server):
    box = server.create(cpu="2", memory="1Gi")
    answer = server.client.get("/resources").json()
    assert answer["status"] == "ok", answer
    node = next(node for node in answer["nodes"] if node["name"] == "node-1")
    assert node["capacity"] == {"cpu": 64, "memory_bytes": 64 << 30}
    mine = next(pod for pod in answer["sandbox_pods"] if pod["name"] == f"sandbox-{box.id}")
    assert (mine["cpu_request"], mine["memory_request_bytes"], mine["namespace"]) == (2, 1 << 30, NAMESPACE)
    box.delete()
