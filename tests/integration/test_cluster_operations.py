"""What operators of a server on a cluster see: resources, counters, the doctor, the smoke test, `orchardd -t`."""

import concurrent.futures
import json
import os
import signal
import subprocess
import threading

import pytest
from ctl import Ctl
from fake_cluster import NODES, PODS, POLICIES, SPACES
from orchard_server import BUILD, REPO, eventually
from pod_agent import PodAgent


def node(name, cpu, memory):
    has = {"cpu": cpu, "memory": memory}
    return {"metadata": {"name": name, "labels": {"workload": "sandbox"}},
            "status": {"capacity": has, "allocatable": has, "conditions": [{"type": "Ready", "status": "True"}]}}


def test_resources_are_the_nodes_and_pods_of_the_cluster(make_play):
    play = make_play()
    for i in range(3):
        play.cluster.make(NODES, node(f"node-{i}", "3900m", "8Gi"))
    play.cluster.make(NODES, node("other", "3900m", "8Gi") | {"metadata": {"name": "for-others"}})
    play.server.start()
    name = play.create(cpu="1500m", memory="1Gi")
    listed = len(play.cluster.asked("GET", NODES))
    answers = [play.client.get("/resources").json() for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert len(play.cluster.asked("GET", NODES)) <= listed + 2, "lists are kept for a moment"
    told = answers[0]
    assert [one["name"] for one in told["nodes"]] == ["node-0", "node-1", "node-2"]
    assert told["total_allocatable"] == {"cpu": 11.7, "memory_bytes": 24 << 30}
    assert told["available"] == {"cpu": 10.2, "memory_bytes": 23 << 30}
    assert told["sandbox_pods"] == [{"name": f"sandbox-{name}", "namespace": "sandbox-pods", "phase": "Running",
                                     "cpu_request": 1.5, "memory_request_bytes": 1 << 30}]


def test_b111_odd_quantities_are_no_failure_of_resources(make_play):
    """More of them than one piece of an answer takes."""
    play = make_play()
    odd = ["0", "-1", "abc", "1e3", "0.5", "500m", "2k", "", "16G b", "1Pi", "123456789012345678901", "9" * 400, None, 7, {}, []]
    for i, cpu in enumerate(odd):
        play.cluster.make(NODES, node(f"node-{i}", cpu, odd[-i]))
        for j, memory in enumerate(odd):
            pod = play.cluster.add_pod(f"sandbox-odd-{i}-{j}", {"app": "sandbox"})
            pod["spec"] = {"containers": [{"resources": {"requests": {"cpu": cpu, "memory": memory}}}]}
    for i, broken in enumerate(({}, {"spec": []}, {"spec": {"containers": [None, 7, {"resources": 3}]}, "status": "x"})):
        play.cluster.make(PODS, {"metadata": {"name": f"sandbox-broken-{i}", "labels": {"app": "sandbox"}}} | broken)
        play.cluster.make(NODES, {"metadata": {"name": f"broken-{i}", "labels": {"workload": "sandbox"}}} | broken)
    play.server.start()
    answer = play.client.get("/resources")
    assert answer.status_code == 200, answer.text
    told = answer.json()
    assert len(told["sandbox_pods"]) == len(odd) ** 2 + 3 and len(told["nodes"]) == len(odd) + 3
    asked = {pod["name"]: pod["cpu_request"] for pod in told["sandbox_pods"]}
    assert [asked[f"sandbox-odd-{i}-0"] for i in (0, 1, 2, 3, 4, 5, 6)] == [0, 0, 0, 1000, 0.5, 0.5, 2000]


def test_resources_that_cannot_be_listed_are_unavailable_and_say_why(make_play):
    play = make_play()
    play.server.start()
    for kind, words in ((NODES, "nodes of the cluster cannot be listed"), (PODS, "pods of sandboxes cannot be listed")):
        play.cluster.fail("GET", kind, 403)
        answer = play.client.get("/resources")
        assert answer.status_code == 503 and answer.json()["code"] == "unavailable", answer.text
        assert words in answer.text and "the tests want 403" in answer.text
    assert play.client.get("/resources").status_code == 200


def test_resources_of_a_controller_that_dies_are_unavailable(make_play):
    play = make_play()
    play.server.start()
    play.cluster.nodes_held.clear()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answer = pool.submit(play.client.get, "/resources")
        eventually(lambda: play.cluster.asked("GET", NODES))
        play.server.replace("controller")
        assert answer.result().status_code == 503, answer.result().text
    play.cluster.nodes_held.set()
    eventually(lambda: play.client.get("/resources").status_code == 200, 30, play.server.log)


def counted(play, name, labels=""):
    text = play.client.get("/metrics").text
    return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{name}{labels} ")), None)


def test_what_the_controller_counts(make_play):
    play = make_play(max_concurrent_creates=2)
    play.server.start()
    failed = {why: counted(play, "orchard_kubernetes_requests_failed_total", f'{{why="{why}"}}') or 0
              for why in ("refused", "throttled", "lost")}
    eventually(lambda: counted(play, "orchard_kubernetes_usable") == 1)
    assert counted(play, "orchard_pods") == 0
    play.cluster.held.clear()
    names = [play.create(wait=False) for _ in range(5)]
    eventually(lambda: (counted(play, "orchard_pod_creates"), counted(play, "orchard_creates_waiting")) == (5, 3))
    play.cluster.held.set()
    for name in names:
        play.until(name, "ready")
    eventually(lambda: (counted(play, "orchard_pod_creates"), counted(play, "orchard_pods")) == (0, 5))
    assert counted(play, "orchard_kubernetes_requests_total") >= 5
    play.cluster.fail("GET", NODES, 403)
    assert play.client.get("/resources").status_code == 503
    play.cluster.fail("POST", PODS, 429, "lost")
    play.create()
    for why, before in failed.items():
        eventually(lambda why=why, before=before: counted(
            play, "orchard_kubernetes_requests_failed_total", f'{{why="{why}"}}') > before, what=why)
    restarts = counted(play, "orchard_kubernetes_watch_restarts_total")
    play.cluster.forget_events()
    eventually(lambda: counted(play, "orchard_kubernetes_watch_restarts_total") > restarts)
    play.server.replace("controller")
    eventually(lambda: counted(play, "orchard_pods") == 6, 30, play.server.log)


def test_without_a_cluster_nothing_of_it_is_counted(server):
    assert "kubernetes" not in server.client.get("/metrics").text


def usage(play, name):
    answer = play.client.get(f"/sandboxes/{name}")
    assert answer.status_code == 200 and answer.json()["status"] == "ready", answer.text
    return answer.json()["usage"]


def test_what_a_pod_takes_its_agent_is_asked_when_somebody_looks(make_play):
    play = make_play()
    play.server.start()
    name, old = play.create(), play.create()
    agent = play.cluster.agents[f"sandbox-{name}"]
    agent.usage = {"cpu_us": 1250000, "memory_bytes": 7 << 20, "memory_peak_bytes": 8 << 20, "pids": 3}
    told = {"cpu_s": 1.25, "memory_bytes": 7 << 20, "memory_peak_bytes": 8 << 20, "pids": 3, "disk_bytes": None}
    eventually(lambda: usage(play, name) == told, what=play.server.log)
    looked = agent.looked
    assert len(play.client.get("/sandboxes").json()["sandboxes"]) == 2
    assert play.client.get(f"/sandboxes/{name}/wait").json()["ready"]
    assert agent.looked == looked, "a list and a wait ask nobody"
    assert usage(play, old) is None and play.cluster.agents[f"sandbox-{old}"].looked, "its agent is of an older version"


def test_a_look_does_not_hang_on_an_agent(make_play):
    play = make_play()
    play.server.start()
    names = [play.create() for _ in range(3)]
    agents = [play.cluster.agents[f"sandbox-{name}"] for name in names]
    held = threading.Event()
    for agent in agents:
        agent.usage = held
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        looks = list(pool.map(lambda name: usage(play, name), names * 10))
    assert looks == [None] * 30 and not held.is_set()
    held.set()
    for agent in agents:
        agent.usage = {"pids": 2}
    for name in names:
        eventually(lambda name=name: (usage(play, name) or {}).get("pids") == 2, what=play.server.log)


def test_what_a_real_agent_tells(make_play, tmp_path):
    play = make_play()
    play.server.start()
    play.cluster.running = False
    name = play.create(wait=False)
    eventually(lambda: f"sandbox-{name}" in play.cluster.pods)
    agent = PodAgent(play.cluster, f"sandbox-{name}")
    try:
        play.until(name, "ready")
        before = eventually(lambda: usage(play, name), what=play.server.log)
        assert {member for member, value in before.items() if value is not None} == agent.counts()
        body = {"command": "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", "wait": True}
        assert play.client.post(f"/sandboxes/{name}/exec", json=body).json()["exit_code"] == 0
        eventually(lambda: (usage(play, name) or before)["cpu_s"] > before["cpu_s"], what=play.server.log)
        top = Ctl(play.server, tmp_path)
        eventually(lambda: json.loads(top.out("top", "-n", "1", "-o", "json"))[0]["cpu_percent"] is not None, 30)
        agent.process.send_signal(signal.SIGSTOP)
        assert usage(play, name) is None
        agent.process.send_signal(signal.SIGCONT)
        eventually(lambda: usage(play, name), 30, play.server.log)
    finally:
        agent.close()


@pytest.fixture
def doctor(tmp_path):
    def examine(play, *words):
        path = f"{BUILD / 'src'}:{os.environ['PATH']}"
        done = Ctl(play.server, tmp_path).run("doctor", "-o", "json", "--retry", "0", *words, env={"PATH": path})
        return done.returncode, {one["check"]: one for one in json.loads(done.stdout)}
    return examine


def test_doctor_of_a_server_on_a_cluster(make_play, doctor):
    play = make_play()
    for i in range(2):
        play.cluster.make(NODES, node(f"node-{i}", "4", "8Gi"))
    play.cluster.things[NODES]["node-0"]["spec"] = {"unschedulable": True}
    play.server.start()
    play.create()
    eventually(lambda: counted(play, "orchard_pods") == 1 and counted(play, "orchard_kubernetes_usable") == 1)
    code, found = doctor(play)
    assert code == 0, found
    for name, words in {"ready": "can be made", "driver": "kubernetes", "cluster": "namespace sandbox-pods; 1 ",
                        "processes": "none"}.items():
        assert found[name]["result"] == "ok" and words in found[name]["message"], found[name]
    assert "kernel" not in found and "overlayfs" not in found
    assert "settings" in doctor(play, "--conf", str(play.server.conf_path))[1]
    assert found["nodes"]["result"] == "warn" and "1 of 2 " in found["nodes"]["message"], found
    play.cluster.things[NODES].clear()
    eventually(lambda: doctor(play)[1]["nodes"]["result"] == "fail")
    assert "pod_node_selector" in doctor(play)[1]["nodes"]["message"]


def test_doctor_names_rights_that_are_missing(make_play, doctor):
    play = make_play()
    play.cluster.things[SPACES]["sandbox-pods"] = {"metadata": {"name": "sandbox-pods", "uid": "1"}}
    play.cluster.fail("GET", f"{POLICIES}/orchard-default", *[403] * 50)
    play.cluster.fail("GET", NODES, *[403] * 50)
    play.server.spawn()
    eventually(lambda: "tests want 403" in doctor(play)[1].get("ready", {}).get("message", ""), 30, play.server.log)
    code, found = doctor(play)
    assert code == 1
    assert "kubectl auth can-i --list -n sandbox-pods" in found["ready"]["cure"], found["ready"]
    assert found["driver"]["result"] == "fail" and "can-i list nodes" in found["driver"]["cure"], found["driver"]
    assert found["cluster"]["result"] == "fail"


def test_smoke_test_says_what_a_sandbox_waits_for(make_play):
    play = make_play()
    play.cluster.full = True
    play.server.start()

    def words():
        done = subprocess.run(
            [REPO / "scripts" / "smoke-test", "--url", play.server.url, "--timeout", "1"], capture_output=True, text=True,
            timeout=100, check=False, env={"PATH": "/usr/bin:/bin", "SANDBOX_API_KEY": play.server.key})
        assert done.returncode == 1
        return done.stderr
    eventually(lambda: "the sandbox is unschedulable: no node takes the pod: 0/3 nodes" in words(), 30)


@pytest.mark.parametrize("url, key, words", [
    ("http://127.0.0.1:1", None, "/nosuch/key holds no key"), ("http://127.0.0.1:1", "k\xff", "holds no key"),
    ("nowhere", "k", "GET nowhere/ready: unknown url type"), ("http://[::1", "k", "Invalid IPv6 URL"),
    ("http://127.0.0.1:1", "k", "Connection refused")])
def test_smoke_test_says_what_it_cannot_use(tmp_path, url, key, words):
    file = tmp_path / "key"
    if key is not None:
        file.write_text(key, encoding="latin-1")
    done = subprocess.run(
        [REPO / "scripts" / "smoke-test", "--url", url, "--key-file", file if key is not None else "/nosuch/key"],
        capture_output=True, text=True, timeout=100, check=False, env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("setting", ["kubeconfig", "pod_template_file"])
def test_a_file_that_the_service_user_cannot_read_is_told_by_the_check(make_play, setting):
    play = make_play()
    path = play.directory / "closed"
    path.write_text(play.cluster.kubeconfig.read_text() if setting == "kubeconfig" else "spec: {}\n")
    path.chmod(0o600)
    play.server.settings[setting] = path
    play.server.write_conf()

    def check():
        return subprocess.run([BUILD / "src" / "orchardd", "-t", "-c", play.server.conf_path], capture_output=True, text=True, timeout=60,
                              check=False)
    closed = check()
    assert closed.returncode != 0
    assert "as the service user orchard" in closed.stderr and str(path) in closed.stderr, closed.stderr
    path.chmod(0o644)
    assert check().returncode == 0, check().stderr


def test_the_check_tells_that_libcurl_is_not_there(make_play):
    play = make_play()
    play.server.write_conf()
    hidden = 'for file in $(ldconfig -p | sed -n "s/.*libcurl.so.4 .*=> //p"); do mount --bind /dev/null "$file"; done; exec "$@"'
    check = [BUILD / "src" / "orchardd", "-t", "-c", play.server.conf_path]

    def run(*words):
        return subprocess.run([*words, *check], capture_output=True, text=True, timeout=60, check=False)
    done = run("unshare", "--mount", "sh", "-c", hidden, "sh")
    assert done.returncode != 0 and "install the package libcurl4" in done.stderr, done.stderr
    assert run().returncode == 0
