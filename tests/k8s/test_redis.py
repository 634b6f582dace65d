"""Three servers at one Redis and one cluster: any of them does anything with any pod, and pods outlive all of them."""

import base64
import os
import shutil
import signal

import pytest

from orchard_server import Sandbox, eventually
from redis_server import Redis
from terminals import Terminal


@pytest.fixture
def redis():
    """Named before make_pod_server, so that servers go first."""
    one = Redis().start()
    yield one
    one.close()


@pytest.fixture
def servers(redis, make_pod_server):
    """Each with directories of its own; namespace and secret in common."""
    def start(count, url=None, **settings):
        made = []
        for _ in range(count):
            common = {"namespace": made[0].namespace, "agent_secret_file": made[0].settings["agent_secret_file"]} if made else {}
            made.append(make_pod_server(use_redis=True, redis_url=url or redis.url, workers=1, redis_replica_seconds=3,
                                        cleanup_interval_seconds=1, **common, **settings).start())
        return made
    return start


def at(server, box):
    return Sandbox(server, box.id)


def pod_uid(server, box):
    return server.pod(box.id)["metadata"]["uid"]


def plain_pod(sandbox_id):
    """With our labels, and no record."""
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": f"sandbox-{sandbox_id}",
                         "labels": {"app": "sandbox", "sandbox-id": sandbox_id, "sandbox-uid": "00000000-0000-4000-8000-000000000000"}},
            "spec": {"terminationGracePeriodSeconds": 0, "nodeSelector": {"workload": "nowhere"},
                     "containers": [{"name": "main", "image": "debian", "command": ["sleep", "600"]}]}}


def leave(cluster, server, sandbox_id):
    answer = cluster.api.post(server.pods_path, json=plain_pod(sandbox_id))
    assert answer.status_code == 201, answer.text


def test_any_server_does_anything_with_any_pod(servers):
    first, second, third = servers(3)
    made = first.client.post("/sandboxes", json={"image": "debian", "labels": {"a": "b"}, "block_network": False})
    box = Sandbox(first, made.json()["sandbox_id"])
    there = at(second, box)
    there.wait_ready()
    assert there.get().json()["pod_name"] == f"sandbox-{box.id}" and box.id in third.list_ids()
    job = there.exec("echo out; echo err >&2; exit 3")
    assert (job["stdout"], job["stderr"], job["exit_code"]) == ("out\n", "err\n", 3)
    assert third.client.put(f"{box.url}/files/raw", params={"path": "/tmp/f"}, content=b"third").status_code == 200
    assert base64.b64decode(second.client.get(f"{box.url}/files", params={"path": "/tmp/f"}).json()["content"]) == b"third"
    with Terminal(there, ["cat", "/tmp/f"]) as terminal:
        terminal.ready().see("third")
    started = there.start("echo begun; read x; echo got $x", stdin_open=True)
    assert third.client.patch(box.url, json={"labels": {"c": "d"}}).status_code == 200
    assert eventually(lambda: first.client.get(f"/jobs/{started}").json()["status"] == "running", 20, "the job runs")
    assert third.client.post(f"/jobs/{started}/stdin", content=b"words\n").status_code == 200
    assert at(third, box).wait_job(started)["stdout"] == "begun\ngot words\n"
    assert at(first, box).job(started)["exit_code"] == 0
    assert at(third, box).get().json()["labels"] == {"c": "d"}
    assert f"sandbox-{box.id}" in first.policies()
    at(third, box).delete()
    for server in (first, second, third):
        eventually(lambda: server.client.get(box.url).status_code == 404, 10, "it is gone at each of them")
    eventually(lambda: first.pod(box.id) is None and f"sandbox-{box.id}" not in first.policies(), 60, "pod and policy are gone")


def test_pods_of_others_are_no_orphans(servers, make_pod_server, cluster, redis):
    """What no record knows goes, once; what another server knows stays. While Redis is away nothing goes."""
    first, second = servers(2)
    alone = make_pod_server(cleanup_interval_seconds=1).start()
    boxes = [first.create(), second.create()]
    uids = [pod_uid(first, box) for box in boxes]
    redis.freeze()
    eventually(lambda: all(server.client.get("/ready").status_code == 503 for server in (first, second)), 30, "Redis is away")
    leave(cluster, first, "left")
    leave(cluster, alone, "left")
    eventually(lambda: alone.pod("left") is None, 90, "a server of its own has removed its orphan")
    assert first.pod("left") is not None
    redis.thaw()
    eventually(lambda: first.pod("left") is None, 90, "what nobody knows is removed once Redis is back")
    assert [pod_uid(first, box) for box in boxes] == uids
    removals = [line for server in (first, second) for line in server.log(1_000_000).splitlines() if 'the rule \\"orphan\\"' in line]
    assert len(removals) == 1, removals


def home_of(redis, box):
    return redis.call("HGET", f"orchard:sandbox:{box.id}", "home")


def replica_id(server):
    return (server.state_dir / "replica-id").read_text().strip()


def test_pods_outlive_the_server_that_made_them(servers, redis):
    """It dies for good: others take its pods over, with what runs in them, and do what it has left undone."""
    first, second, third = servers(3)
    box, other = first.create(env={"A": "b"}), first.create(block_network=False)
    uid = pod_uid(first, box)
    job = box.start("while [ ! -e /tmp/go ]; do sleep 0.05; done; echo $A")
    box.wait_running(job)
    first.kill_all()
    assert at(second, other).out("echo on") == "on\n"
    at(third, other).delete()
    eventually(lambda: home_of(redis, box) in (replica_id(second), replica_id(third)), 60, "another server has it")
    eventually(lambda: first.pod(other.id) is None and f"sandbox-{other.id}" not in first.policies(), 60,
               "what was deleted while nobody had it is gone")
    at(second, box).exec("touch /tmp/go", lane="other")
    assert eventually(lambda: (told := second.client.get(f"/jobs/{job}").json())["status"] == "succeeded" and told, 60,
                      "its command is seen to")["stdout"] == "b\n"
    assert pod_uid(first, box) == uid
    first.start()
    assert at(first, box).out("echo back") == "back\n"
    at(first, box).delete()
    eventually(lambda: first.pod(box.id) is None, 60, "the pod is gone")
    assert not any("cannot be removed" in server.log(1_000_000) for server in (second, third))


def test_a_create_under_way_is_finished_by_another(servers, node, node_images, redis):
    first, second = servers(2)
    box = first.create("slow:1", wait=False, env={"COLOUR": "red"})
    eventually(lambda: first.pod(box.id) is not None, 30, "the pod is asked for")
    uid = pod_uid(first, box)
    first.kill_all()
    node.add_images(**{"slow:1": node_images["debian"]})
    there = at(second, box)
    there.wait_ready(90)
    assert there.out("echo $COLOUR") == "red\n" and pod_uid(second, box) == uid
    assert len(second.pods()) == 1
    eventually(lambda: home_of(redis, box) == replica_id(second), 30, "it is the other's now")
    assert redis.call("HGET", f"orchard:sandbox:{box.id}", "env") is None
    there.delete()
    eventually(lambda: second.pod(box.id) is None, 60, "the pod is gone")


def test_a_create_that_had_no_pod_yet_is_made_by_another(servers, redis, cluster):
    """The one that died had only written it down: the other makes the pod, with the environment that was asked for."""
    first, second = servers(2)
    for pid in first.pids("controller"):
        os.kill(pid, signal.SIGSTOP)
    box = first.create(wait=False, env={"COLOUR": "red"})
    first.kill_all()
    assert second.pod(box.id) is None
    there = at(second, box)
    there.wait_ready(90)
    assert there.out("echo $COLOUR") == "red\n" and len(second.pods()) == 1
    there.delete()


def test_a_server_that_lost_its_memory(servers, redis):
    """Its pod was moved to another node, say: it keeps its name, and nothing else."""
    first, second = servers(2)
    box = first.create()
    uid = pod_uid(first, box)
    first.kill_all()
    shutil.rmtree(first.run_dir)
    first.start()
    assert box.out("echo known") == "known\n"
    assert pod_uid(first, box) == uid
    box.delete()
    eventually(lambda: first.pod(box.id) is None and first.client.get(box.url).status_code == 404, 90, "the pod is gone")


def test_a_slow_server_finds_its_pods_taken(servers, redis):
    first, second = servers(2)
    box = first.create()
    uid = pod_uid(first, box)
    pids = [pid for role in first.processes().values() for pid in role]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    eventually(lambda: home_of(redis, box) == replica_id(second), 60, "the other has it")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    eventually(lambda: first.client.get("/ready").status_code == 200, 60, "it goes on")
    assert box.out("echo both") == at(second, box).out("echo both") == "both\n"
    assert pod_uid(first, box) == uid
    at(second, box).delete()
    eventually(lambda: second.pod(box.id) is None, 60, "the pod is gone")
    first.kill_all()  # whose master may yet replace workers that were still for so long
