"""Sandboxes as pods of a real kubelet: what the small node of the tests of the cluster only plays."""

import base64

import pytest

from orchard_server import eventually
from terminals import Terminal

SMALL = {"cpu": "200m", "memory": "128Mi"}  # the node has no more than this machine


@pytest.fixture(scope="module", params=["initcontainer", "image"])
def server(make_pod_server_session, request):
    one = make_pod_server_session(
        agent_volume_mode=request.param, enable_sandbox_tools=True, sandbox_tools_image="tools",
        sandbox_tools_volume_mode=request.param).start()
    yield one
    one.close()


@pytest.fixture
def make_box(server):
    made = []

    def make(image="busybox", **fields):
        made.append(server.create(image, **(SMALL | fields)))
        return made[-1]
    yield make
    for box in made:
        if box.get().status_code == 200:
            box.delete()


def wait_failed(box, said):
    def failed():
        answer = box.get().json()
        return answer.get("status") == "failed" and said in answer["status_message"]
    eventually(failed, 90, lambda: f"failed, {said!r}: {box.get().json()}")


def test_a_whole_life(server, node, make_box):
    box = make_box("debian", env={"COLOUR": "red"})
    pod = server.pod(box.id)
    assert pod["status"]["qosClass"] == "Guaranteed"
    job = box.exec("echo $COLOUR; echo err >&2; exit 3")
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
    assert node.tasks(box) and node.pod_groups(pod)
    box.delete()
    eventually(lambda: server.pod(box.id) is None, 30, "the pod is gone")
    eventually(lambda: not node.tasks(box) and not node.pod_groups(pod), 90,
               lambda: f"nothing of it runs: {node.tasks(box)}, {node.pod_groups(pod)}")


def test_what_the_image_says_holds_for_commands(make_box):
    box = make_box("as-user")
    assert box.out("id -u; id -g; pwd; echo $FROM_IMAGE") == "1000\n1000\n/home/user\nyes\n"
    assert "only root can act as another" in box.exec("true", user="root")["error"]


def test_tools_are_found_after_the_images_own(make_box):
    box = make_box()
    assert box.out("a-tool echo of the tools") == "of the tools\n"
    assert "etc" in box.out("ls /")
    assert box.exec("touch /opt/sandbox-tools/bin/x")["exit_code"] != 0


def test_the_kernel_holds_what_was_promised(make_box):
    box = make_box(memory="100Mi")
    status = dict(line.split(":\t", 1) for line in box.out("cat /proc/self/status").splitlines())
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert box.out("cat /sys/fs/cgroup/memory/memory.limit_in_bytes") == f"{100 << 20}\n"
    assert box.out("hostname") == f"sandbox-{box.id}\n"
    assert box.out("ls /var/run/secrets 2>/dev/null; env | grep -c KUBERNETES; true") == "0\n"


def test_what_a_pod_takes_is_told(make_box):
    box = make_box(memory="100Mi")
    usage = eventually(lambda: box.get().json()["usage"], what="its agent tells")
    assert usage["cpu_s"] > 0 and usage["pids"] >= 1 and usage["disk_bytes"] is None
    assert 0 < usage["memory_bytes"] <= usage["memory_peak_bytes"] <= 100 << 20


def test_a_command_that_takes_all_memory_dies_alone(make_box):
    box = make_box()
    job = box.exec("tail /dev/zero")
    assert job["verdict"] == "oom_killed" and "memory" in job["error"], job
    assert box.out("echo still here") == "still here\n"


def test_a_pod_that_others_delete(server, cluster, make_box):
    box = make_box()
    cluster.kubectl("delete", "pod", "-n", server.namespace, f"sandbox-{box.id}", "--wait=false")
    wait_failed(box, "deleted")
    assert box.post_exec("true").status_code in (409, 410, 503)


def test_an_agent_that_is_killed(node, make_box):
    box = make_box()
    node.kill(box)
    wait_failed(box, "killed by signal 9")


def test_a_disk_that_is_full_by_kubelets_count(make_box):
    box = make_box(disk="20Mi")
    box.out("dd if=/dev/zero of=/tmp/large bs=1M count=60 2>/dev/null")
    wait_failed(box, "evicted")


def test_an_image_that_cannot_be_fetched(server):
    box = server.create("no.such.registry.invalid/image:1", wait=False, **SMALL)
    eventually(lambda: "no.such.registry.invalid" in (box.get().json()["status_message"] or ""), 60, lambda: box.get().text)
    assert box.get().json()["status"] == "pending"
    box.delete()


def test_a_sandbox_outlives_kubelet(server, node, make_box):
    box = make_box()
    job = box.start("cat /proc/sys/kernel/random/uuid; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo done")
    node.restart_kubelet()
    assert make_box().out("echo new") == "new\n"
    box.out("touch /tmp/go", lane="another")
    assert box.wait_job(job)["stdout"].endswith("done\n")
    assert server.pod(box.id)["status"]["containerStatuses"][0]["restartCount"] == 0


def is_ready(thing):
    return any(one["type"] == "Ready" and one["status"] == "True" for one in thing["status"]["conditions"])


def test_a_node_that_the_cluster_misses_for_a_while(server, node, cluster, make_box):
    """Only the cluster does: the sandbox serves on, and when the node is heard again it puts right what was said of its pods."""
    box = make_box()
    eventually(lambda: is_ready(server.pod(box.id)), 60, "the node says that it is ready")
    cluster.watch_nodes(grace=20)
    node.hang()
    try:
        eventually(lambda: not is_ready(server.pod(box.id)), 120, "the cluster takes the pod for lost")
        assert box.out("echo on") == "on\n" and box.get().json()["ready"] is True
    finally:
        node.wake()
        eventually(lambda: is_ready(server.pod(box.id)), 120, lambda: server.pod(box.id)["status"])
        eventually(lambda: not cluster.get(f"/api/v1/nodes/{node.name}")["spec"].get("taints"), 60, "the node takes pods again")
        cluster.stop("node-watch")
    assert make_box().out("echo new") == "new\n"


def test_a_node_that_is_started_anew(server, node, make_box):
    box = make_box()
    job = box.start("sleep 600")
    box.wait_running(job)
    node.reboot()
    wait_failed(box, "the agent has ended, and its node does not know how")
    assert box.wait_job(job)["verdict"] == "agent_lost"
    assert make_box().out("echo new") == "new\n"


def test_nothing_is_left(server, node):
    """kubelet looks once a minute for what holds the namespaces of pods that are no more."""
    assert server.list_ids() == []
    eventually(lambda: not node.ctr("containers", "list", "-q"), 180, lambda: node.ctr("containers", "list"))
