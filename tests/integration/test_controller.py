"""Sandboxes as pods, against an API server that misbehaves when told to: creates, deletes, ends, and what is left."""

import hashlib
import hmac
import json
import os
import secrets
import socket
import time
from pathlib import Path

import httpx
import pytest
from cluster_play import Play
from fake_cluster import EVENTS, PODS, POLICIES, SPACES
from orchard_server import eventually


@pytest.fixture(scope="module")
def play(work_dir):
    one = Play(work_dir)
    one.server.start()
    yield one
    one.close()


@pytest.fixture
def new_play(make_play):
    """One whose watch has had no trouble yet: each makes it wait longer before it asks again."""
    play = make_play()
    play.server.start()
    return play


@pytest.fixture(autouse=True)
def fair_weather(request):
    yield
    if "play" in request.fixturenames:
        cluster = request.getfixturevalue("play").cluster
        cluster.faults.clear()
        cluster.running = True
        cluster.held.set()
        cluster.watch_held.set()


def test_a_pod_is_made_behind_its_policies_and_deleted_by_its_uid(play):
    name = play.create(block_network=False)
    pod, policy = play.cluster.pods[f"sandbox-{name}"], play.cluster.policies[f"sandbox-{name}"]
    assert play.get(name)["namespace"] == "sandbox-pods"
    assert policy["metadata"]["ownerReferences"][0]["uid"] == pod["metadata"]["uid"]
    made = [(method, path) for method, path, _ in play.cluster.calls if method == "POST"]
    assert made[0] == ("POST", SPACES)
    assert made.index(("POST", POLICIES)) < made.index(("POST", PODS))
    play.delete(name)
    body = play.cluster.asked("DELETE", f"{PODS}/sandbox-{name}")[0]
    assert body["preconditions"]["uid"] == pod["metadata"]["uid"]
    eventually(lambda: f"sandbox-{name}" not in play.cluster.policies)


def test_b119_a_sandbox_without_network_gets_no_policy_of_its_own(play):
    name = play.create(block_network=True)
    assert f"sandbox-{name}" not in play.cluster.policies
    play.delete(name)


def test_b105_b118_a_pod_that_is_not_ours_is_a_conflict_and_stays(play):
    play.cluster.add_pod("sandbox-dup", {"app": "other"})
    play.create(sandbox_id="dup", wait=False)
    assert "no sandbox of ours" in play.until("dup", "failed")["status_message"]
    assert play.client.delete("/sandboxes/dup").status_code == 200
    eventually(lambda: play.client.get("/sandboxes/dup").status_code == 404)
    assert "sandbox-dup" in play.cluster.pods
    assert not play.cluster.asked("DELETE", f"{PODS}/sandbox-dup")
    assert play.client.delete("/sandboxes/never-made").status_code == 404
    play.cluster.remove("sandbox-dup")


def test_what_no_node_takes_is_unschedulable_until_one_does(play):
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    play.cluster.unschedulable(f"sandbox-{name}")
    assert "0/3 nodes" in play.until(name, "unschedulable")["status_message"]
    play.cluster.run(f"sandbox-{name}")
    assert play.until(name, "ready")["status_message"] is None
    play.delete(name)


@pytest.mark.parametrize("amount", [{"cpu": "2k"}, {"cpu": "2000000"}, {"memory": "1Pi"}])
def test_b111_what_no_node_has_is_unschedulable(play, amount):
    """Which amounts are too many is the cluster's to say."""
    play.cluster.full = True
    try:
        name = play.create(wait=False, **amount)
        assert "0/3 nodes" in play.until(name, "unschedulable")["status_message"]
        play.delete(name)
    finally:
        play.cluster.full = False


def test_b109_an_image_that_cannot_be_pulled_fails_after_a_while(play):
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    play.cluster.pull_fails(f"sandbox-{name}")
    assert "no such image: gone/away" in play.until(name, "failed")["status_message"]
    eventually(lambda: f"sandbox-{name}" not in play.cluster.pods, what=play.server.log)


def test_b109_an_image_that_comes_in_the_end_is_no_failure(make_play):
    play = make_play(image_pull_failure_seconds=3600)
    play.server.start()
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    play.cluster.pull_fails(f"sandbox-{name}")
    eventually(lambda: "no such image" in (play.get(name)["status_message"] or ""))
    play.cluster.run(f"sandbox-{name}")
    play.until(name, "ready")


def test_an_answer_that_was_lost_makes_no_second_pod(play):
    play.cluster.fail("POST", PODS, "lost")
    name = play.create()
    assert [body["metadata"]["name"] for body in play.cluster.asked("POST", PODS)].count(f"sandbox-{name}") == 1
    play.delete(name)


def test_a_pod_that_goes_before_its_creation_is_answered_has_failed(play):
    play.cluster.fail("POST", PODS, "gone")
    name = play.create(wait=False)
    play.until(name, "failed")
    play.delete_record(name)


@pytest.mark.parametrize("labels", [{"app": "web"}, {"sandbox-id": "another"}, {"sandbox-uid": ""}, {
    "app": None, "sandbox-id": None, "sandbox-uid": None}])
def test_a_pod_that_a_webhook_makes_unknowable_does_not_stay(play, labels):
    play.cluster.fail("POST", PODS, lambda pod: pod["metadata"]["labels"].update(labels))
    name = play.create(wait=False)
    assert "has it a webhook that does?" in play.until(name, "failed")["status_message"]
    assert f"sandbox-{name}" not in play.cluster.pods
    play.delete_record(name)


@pytest.mark.parametrize("answer", [
    {}, {"kind": "Status", "status": "Success"}, {"kind": "Pod", "metadata": {"name": "another", "uid": "1"}}])
def test_an_answer_without_the_pod_in_it_is_looked_into_after_a_pause(play, answer):
    before, name = len(play.cluster.calls), "odd-" + secrets.token_hex(4)
    play.cluster.fail("POST", PODS, answer, answer)
    play.cluster.fail("GET", f"{PODS}/sandbox-{name}", answer)
    play.create(sandbox_id=name)
    calls = [method for method, path, _ in play.cluster.calls[before:]
             if (method, path) == ("POST", PODS) or path == f"{PODS}/sandbox-{name}"]
    assert calls[:6] == ["POST", "GET", "GET", "POST", "GET", "POST"]
    play.delete(name)


def test_trouble_of_the_api_server_delays_a_create(play):
    play.cluster.fail("POST", PODS, 500, 503)
    play.cluster.fail("POST", POLICIES, 500)
    name = play.create(block_network=False)
    assert f"sandbox-{name}" in play.cluster.policies
    play.delete(name)


@pytest.mark.parametrize("code", [429, 503])
def test_b125_a_create_waits_as_long_as_the_api_server_wants(play, code):
    """Also when the request's own tries are used up."""
    asked = []
    play.cluster.fail("POST", PODS, (code, {"Retry-After": "2"}), lambda pod: asked.append(time.monotonic()))
    before = time.monotonic()
    play.delete(play.create())
    assert asked[0] - before > 1.9  # clocks of timers are coarse


@pytest.mark.parametrize("retry_after", [
    "-5", "soon", "", "99999999999999999999", "Wed, 21 Oct 2015 07:28:00 GMT", "1, 2", "0x7fffffff"])
def test_a_pause_that_makes_no_sense_is_not_taken(play, retry_after):
    play.cluster.fail("POST", PODS, (429, {"Retry-After": retry_after}))
    play.delete(play.create())


def test_a_policy_left_by_an_earlier_sandbox_is_replaced(play):
    old = {"metadata": {"name": "sandbox-again", "ownerReferences": [{"uid": "gone"}]}, "spec": {}}
    play.cluster.make(POLICIES, old)
    play.create(sandbox_id="again", block_network=False)
    owner = play.cluster.policies["sandbox-again"]["metadata"]["ownerReferences"][0]
    assert owner["uid"] == play.cluster.pods["sandbox-again"]["metadata"]["uid"]
    play.delete("again")


@pytest.mark.parametrize("reason, code, words", [("OOMKilled", 137, "memory"), ("Error", 3, "exit code 3")])
def test_b113_the_end_of_a_pod_is_told_in_words(play, reason, code, words):
    name = play.create()
    play.cluster.ends(f"sandbox-{name}", reason, code)
    assert words in play.until(name, "failed")["status_message"]
    eventually(lambda: f"sandbox-{name}" not in play.cluster.pods, what=play.server.log)


def test_b113_a_pod_that_somebody_deletes_has_failed(play):
    name = play.create()
    play.cluster.remove(f"sandbox-{name}")
    assert "deleted by somebody else" in play.until(name, "failed")["status_message"]


@pytest.mark.parametrize("told", [True, False])
def test_a_pod_whose_labels_somebody_takes_away_does_not_stay(new_play, told):
    name = new_play.create()
    if told:
        new_play.cluster.relabel(f"sandbox-{name}", app="web")
    else:
        new_play.cluster.pods[f"sandbox-{name}"]["metadata"]["labels"].update({"app": "web"})
        new_play.cluster.forget_events()
    assert "somebody changed the labels" in new_play.until(name, "failed")["status_message"]
    eventually(lambda: f"sandbox-{name}" not in new_play.cluster.pods, what=new_play.server.log)


def test_b119_the_policy_is_there_again_when_the_namespace_is_made_anew(play):
    name = play.create()
    with play.cluster.changed:
        play.cluster.policies.clear()
    play.cluster.remove(f"sandbox-{name}")
    play.until(name, "failed")
    eventually(lambda: play.cluster.policies, 14)
    play.delete_record(name)


def test_b110_a_pod_that_ends_before_its_agent_answers_has_failed(play):
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    play.cluster.ends(f"sandbox-{name}", "StartError", 128)
    assert "could not be started" in play.until(name, "failed")["status_message"]


def test_b110_what_a_node_tells_in_events_alone_is_told(play):
    """While nothing else comes of the pod; it may still end well."""
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    play.cluster.stuck(f"sandbox-{name}", "FailedCreatePodSandBox", "no runtime for \"gvisor\" is configured")
    words = "the pod's network and volumes are being made; its node says: FailedCreatePodSandBox: no runtime for \"gvisor\" is configured"
    eventually(lambda: play.get(name)["status_message"] == words, 40, lambda: f"{play.get(name)}\n{play.server.log()}")
    assert play.get(name)["status"] == "pending"
    play.cluster.run(f"sandbox-{name}")
    assert play.until(name, "ready")["status_message"] is None
    play.delete(name)


def test_b110_without_the_right_to_events_a_pod_goes_its_way(play):
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    asked = len(play.cluster.asked("GET", EVENTS))
    play.cluster.fail("GET", EVENTS, 403)
    play.cluster.stuck(f"sandbox-{name}", "FailedMount", "no such claim")
    eventually(lambda: len(play.cluster.asked("GET", EVENTS)) > asked, 40, play.server.log)
    assert play.get(name)["status_message"] == "the pod's network and volumes are being made"
    play.cluster.run(f"sandbox-{name}")
    play.until(name, "ready")
    play.delete(name)


def test_b110_an_agent_that_stays_silent_is_told_and_then_the_sandbox_has_failed(make_play):
    play = make_play(pod_agent_timeout_seconds=3)
    play.server.start()
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    play.cluster.run(f"sandbox-{name}", silent=True)
    words = "its container runs, but its agent does not answer at tcp:127."
    eventually(lambda: words in (play.get(name)["status_message"] or ""), 30, play.server.log)
    assert words in play.until(name, "failed")["status_message"]
    eventually(lambda: f"sandbox-{name}" not in play.cluster.pods, what=play.server.log)


def test_b113_an_agent_is_asked_before_its_pod_counts_as_ready(play):
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    play.cluster.run(f"sandbox-{name}", ready=False)
    assert play.until(name, "ready")["ready"]
    play.delete(name)


def test_b110_a_first_question_that_is_lost_does_not_use_up_the_patience(make_play):
    play = make_play(pod_agent_timeout_seconds=3)
    play.server.start()
    play.cluster.running = False
    name, ip = play.create(wait=False), play.cluster.new_ip()
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    with socket.create_server((ip, 9090)) as deaf:
        play.cluster.run(f"sandbox-{name}", ip, silent=True)
        lost, _ = deaf.accept()
    with lost:
        play.cluster.run(f"sandbox-{name}", ip)
        play.until(name, "ready")
    play.delete(name)


def test_b107_an_agent_that_says_to_be_anothers_is_none(make_play):
    play = make_play(pod_agent_timeout_seconds=3)
    play.server.start()
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    play.cluster.run(f"sandbox-{name}", stranger=True)
    assert "another sandbox's agent answered" in play.until(name, "failed")["status_message"]
    eventually(lambda: f"sandbox-{name}" not in play.cluster.pods, what=play.server.log)


def test_b107_an_address_that_another_pod_has_by_now_reaches_no_stranger(play):
    first = play.create()
    ip = play.cluster.pods[f"sandbox-{first}"]["status"]["podIP"]
    play.cluster.remove(f"sandbox-{first}", silently=True)
    play.cluster.running = False
    second = play.create(wait=False)
    eventually(lambda: f"sandbox-{second}" in play.cluster.pods)
    play.cluster.run(f"sandbox-{second}", ip)
    play.until(second, "ready")
    answer = play.client.post(f"/sandboxes/{first}/exec", json={"command": "touch /tmp/wrong", "wait": True})
    assert answer.status_code in (409, 410, 503) or answer.json()["verdict"] == "agent_lost", answer.text
    assert play.cluster.agents[f"sandbox-{second}"].obeyed == []
    assert play.get(second)["status"] == "ready"
    play.delete(second)
    play.cluster.forget_events()
    play.until(first, "failed")
    play.delete_record(first)


def test_a_conflict_of_a_delete_is_looked_into_after_a_pause(play):
    name = play.create()
    play.cluster.fail("DELETE", f"{PODS}/sandbox-{name}", 409, 409, 409)
    play.delete(name)
    assert len(play.cluster.asked("DELETE", f"{PODS}/sandbox-{name}")) == 4


def test_b117_an_empty_list_by_mistake_loses_nothing(new_play):
    name = new_play.create()
    before = len(new_play.cluster.asked("GET", f"{PODS}/sandbox-{name}"))
    new_play.cluster.fail("GET", PODS, 500, "empty")
    new_play.cluster.forget_events()
    eventually(lambda: len(new_play.cluster.asked("GET", f"{PODS}/sandbox-{name}")) > before, 40, new_play.server.log)
    assert new_play.get(name)["status"] == "ready"
    new_play.delete(name)


def test_b122_what_went_while_nobody_watched_has_failed(new_play):
    name = new_play.create()
    new_play.cluster.remove(f"sandbox-{name}", silently=True)
    new_play.cluster.forget_events()
    assert "deleted by somebody else" in new_play.until(name, "failed")["status_message"]


def test_b122_a_question_without_an_answer_is_asked_again(new_play):
    name = new_play.create()
    new_play.cluster.fail("GET", f"{PODS}/sandbox-{name}", 500, 500)
    new_play.cluster.remove(f"sandbox-{name}", silently=True)
    new_play.cluster.forget_events()
    assert "deleted by somebody else" in new_play.until(name, "failed")["status_message"]


def test_b104_a_pod_without_a_record_goes_and_one_in_the_making_stays(play):
    play.cluster.running = False
    labels = {"app": "sandbox", "sandbox-id": "orphan", "sandbox-uid": "01234567-89ab-4def-8123-456789abcdef"}
    name = play.create(wait=False)
    play.cluster.add_pod("sandbox-orphan", labels)
    play.cluster.add_pod("sandbox-strange", labels | {"sandbox-id": "another"})
    eventually(lambda: "sandbox-orphan" not in play.cluster.pods, 40, play.server.log)
    assert f"sandbox-{name}" in play.cluster.pods and "sandbox-strange" in play.cluster.pods
    play.cluster.run(f"sandbox-{name}")
    play.until(name, "ready")
    play.delete(name)
    play.cluster.remove("sandbox-strange")


def test_b115_an_id_is_free_again_when_its_pod_is_gone(play):
    uids = set()

    def made():  # until the record is gone as well, the id is refused
        answer = play.client.post("/sandboxes", json={"image": "default", "sandbox_id": "twice"})
        assert answer.status_code in (200, 409), answer.text
        return answer.status_code == 200
    for _ in range(5):
        eventually(made)
        play.until("twice", "ready")
        uids.add(play.cluster.pods["sandbox-twice"]["metadata"]["uid"])
        play.delete("twice")
    assert len(uids) == 5


def test_b115_what_a_late_watch_tells_of_an_earlier_pod_ends_no_new_one(play):
    play.create(sandbox_id="late")
    play.cluster.watch_held.clear()
    play.cluster.set_status("sandbox-late", **play.cluster.pods["sandbox-late"]["status"])
    play.delete("late")
    play.cluster.running = False
    eventually(lambda: play.client.post("/sandboxes", json={"image": "default", "sandbox_id": "late"}).status_code == 200)
    eventually(lambda: "sandbox-late" in play.cluster.pods)
    play.cluster.running = True
    play.cluster.watch_held.set()
    play.cluster.run("sandbox-late")
    play.until("late", "ready")
    play.delete("late")


def test_b120_a_delete_while_the_pod_is_being_made_leaves_none(play):
    play.cluster.held.clear()
    name = play.create(wait=False)
    eventually(lambda: any(body["metadata"]["name"] == f"sandbox-{name}" for body in play.cluster.asked("POST", PODS)))
    assert play.client.delete(f"/sandboxes/{name}").status_code == 200
    play.cluster.held.set()
    eventually(lambda: play.cluster.asked("DELETE", f"{PODS}/sandbox-{name}"), 30, play.server.log)
    eventually(lambda: f"sandbox-{name}" not in play.cluster.pods)


def test_a_killed_controller_is_replaced_and_goes_on(play):
    play.cluster.running = False
    ready, name = play.cluster.pods, play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in ready)
    play.server.replace("controller")
    play.cluster.run(f"sandbox-{name}")
    play.until(name, "ready")
    assert [body["metadata"]["name"] for body in play.cluster.asked("POST", PODS)].count(f"sandbox-{name}") <= 2
    play.delete(name)


def test_only_the_process_that_speaks_with_the_cluster_loads_what_that_takes(play):
    for role, pids in (play.server.processes() | {"master": [play.server.process.pid]}).items():
        for pid in pids:
            assert ("libcurl" in Path(f"/proc/{pid}/maps").read_text()) == (role == "controller"), role


def place_of(play, name):
    words = play.get(name).get("status_message") or ""
    return int(words.rpartition(" ")[2]) if words.startswith("waits for its turn: place ") else None


def test_creates_beyond_the_places_wait_in_line(make_play):
    play = make_play(max_concurrent_creates=2)
    play.server.start()
    play.cluster.held.clear()
    names = [play.create(wait=False) for _ in range(6)]
    eventually(lambda: len(play.cluster.asked("POST", PODS)) == 2)
    for place, name in enumerate(names[2:], 1):
        eventually(lambda name=name, place=place: place_of(play, name) == place, what=name)
    left = names.pop(3)
    assert play.client.delete(f"/sandboxes/{left}").status_code == 200
    eventually(lambda: play.client.get(f"/sandboxes/{left}").status_code == 404)
    eventually(lambda: place_of(play, names[-1]) == 3)
    assert len(play.cluster.asked("POST", PODS)) == 2
    play.cluster.held.set()
    for name in names:
        play.until(name, "ready")
        assert "turn" not in (play.get(name).get("status_message") or "")
    assert f"sandbox-{left}" not in [body["metadata"]["name"] for body in play.cluster.asked("POST", PODS)]


def test_a_tenant_does_not_wait_behind_all_of_anothers_creates(make_play):
    play = make_play(max_concurrent_creates=1, max_waiting_creates=30)
    play.server.start()
    play.cluster.held.clear()
    many = [play.create(wait=False, labels={"tenant": "many"}) for _ in range(30)]
    few = play.create(wait=False, labels={"tenant": "few"})
    eventually(lambda: (place_of(play, few) or 9) <= 2)
    full = eventually(lambda: (answer := play.client.post("/sandboxes", json={"image": "default"})).status_code == 503 and answer)
    assert full.json()["code"] == "queue_full" and "max_waiting_creates" in full.text and full.headers["Retry-After"]
    assert play.client.post("/sandboxes", json={"image": "default", "sandbox_id": few, "labels": {"tenant": "few"}}).is_success
    play.cluster.held.set()
    for name in (few, *many):
        play.until(name, "ready")
    made = [body["metadata"]["name"] for body in play.cluster.asked("POST", PODS)]
    assert made.index(f"sandbox-{few}") <= 2, made


def test_without_rights_it_is_not_ready_and_says_why(make_play):
    play = make_play()
    play.cluster.things[SPACES]["sandbox-pods"] = {"metadata": {"name": "sandbox-pods", "uid": "1"}}
    play.cluster.fail("GET", f"{POLICIES}/orchard-default", *[403] * 20)
    play.server.spawn()

    def words():
        try:
            return "the tests want 403" in play.client.get("/ready").text
        except httpx.TransportError:
            return False
    eventually(words, 30, play.server.log)
    play.create(wait=False, sandbox_id="no")
    assert "the tests want 403" in play.until("no", "failed")["status_message"]
    play.cluster.faults.clear()
    eventually(lambda: play.client.get("/ready").status_code == 200, 40, play.server.log)
    play.create()


def test_the_default_policy_is_put_right(make_play):
    play = make_play()
    play.cluster.make(POLICIES, {"metadata": {"name": "orchard-default"}, "spec": {"podSelector": {}, "egress": [{}]}})
    play.server.start()
    play.create()
    assert play.cluster.asked("PUT", f"{POLICIES}/orchard-default")
    assert play.cluster.policies["orchard-default"]["spec"].get("egress", []) != [{}]


def test_a_server_that_is_not_root_serves_pods(make_play):
    play = make_play()
    for path in (play.server.state_dir, play.server.run_dir):
        path.mkdir()
        os.chown(path, 65532, 65532)
    play.server.launcher = ["setpriv", "--reuid", "65532", "--regid", "65532", "--clear-groups", "--bounding-set=-all"]
    play.server.start()
    play.delete(play.create())


def test_files_of_this_host_are_no_images_in_a_cluster(play):
    answer = play.client.post("/sandboxes", json={"image": "dir:/etc"})
    assert answer.status_code == 422 and "[registry/]name" in answer.text and "oci" not in answer.text, answer.text


def test_agents_tokens_come_from_the_secret(play, make_play, work_dir):
    assert "agent_secret_file is not set" in play.server.log(1_000_000)
    secret = work_dir / "agent-secret"
    secret.write_text("0123456789abcdef0123456789abcdef\n")
    secret.chmod(0o600)
    play = make_play(agent_secret_file=secret)
    play.server.start()
    assert "agent_secret_file" not in play.server.log(1_000_000)
    name = play.create()
    pod = play.cluster.pods[f"sandbox-{name}"]
    config = json.loads(next(one["value"] for one in pod["spec"]["containers"][0]["env"]
                             if one["name"] == "ORCHARD_AGENT_CONFIG"))
    token = hmac.new(b"0123456789abcdef0123456789abcdef", config["sandbox_uid"].encode(), hashlib.sha256).hexdigest()
    assert config["token_sha256"] == hashlib.sha256(token.encode()).hexdigest()
    assert token not in json.dumps(pod)
