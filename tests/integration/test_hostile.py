"""What strict and hostile clients send, and agents that fall silent."""

import os
import random
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from orchard_server import SANITIZED, eventually


@pytest.mark.parametrize("login_shell", [False, True])
def test_b005_text_that_looks_like_an_option_is_text(box, login_shell):
    job = box.exec("--help", login_shell=login_shell)
    assert (job["exit_code"], job["verdict"], job["stdout"]) == (127, "exited", "")
    assert "Usage" not in job["stderr"]
    assert box.out("+x 2>/dev/null; echo $0", login_shell=login_shell) == "bash\n"


def test_b005_text_that_looks_like_an_option_in_a_plain_sh(server, busybox):
    small = server.create(image=busybox)
    assert small.out("-x 2>/dev/null; echo $?") == "127\n"
    small.delete()


def test_b054_agent_that_falls_silent_unasked(server):
    """Nobody talks to it: the check of all agents finds it, and finds it again when it is back."""
    box = server.create()
    agent = box.agent_pid()
    os.kill(agent, signal.SIGSTOP)
    try:
        eventually(lambda: not box.get().json()["ready"], 32, "not ready")
        assert box.get().json()["status"] == "ready"
        answer = box.post_exec("true")
        assert (answer.status_code, answer.json()["code"]) == (503, "agent_unreachable"), answer.text
        assert int(answer.headers["retry-after"]) >= 1
    finally:
        os.kill(agent, signal.SIGCONT)
    eventually(lambda: box.get().json()["ready"], 15, "ready again")
    assert box.out("echo back") == "back\n"
    box.delete()


def test_b054_delete_of_a_stopped_agent_is_quick(server):
    box = server.create()
    os.kill(box.agent_pid(), signal.SIGSTOP)
    box.delete()
    eventually(lambda: not (server.state_dir / "sandboxes" / box.id).exists(), 20, "removed")


def test_times_of_a_sandbox_read_the_same_each_time(fresh):
    fresh.client.post(f"{fresh.url}/heartbeat")
    first = fresh.get().json()
    for _ in range(20):
        again = fresh.get().json()
        assert (again["expires_at"], again["last_heartbeat"]) == (first["expires_at"], first["last_heartbeat"])


def test_labels_are_found_whatever_they_are(server):
    labels = {"a=b": "c=d", "x": "", "\u65e5\u672c": "\u00fc \n", "q&": "1+1"}
    box = server.create(labels=labels, wait=False)
    for name, value in labels.items():
        page = server.client.get("/sandboxes", params={"label": f"{name}={value}"}).json()
        assert [item["sandbox_id"] for item in page["sandboxes"]] == [box.id], (name, value)
    assert server.client.get("/sandboxes", params={"label": "a=b=c"}).json()["sandboxes"] == []
    box.delete()


@pytest.mark.parametrize("query", ["limit=1&limit=2", "label=a%3Db&label=a%3Dc", "status=ready&status=failed"])
def test_b150_parameter_given_twice(server, query):
    answer = server.client.get(f"/sandboxes?{query}")
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"][0] == "query"


def test_b115_created_and_deleted_faster_than_made(server):
    """A creation may reach the spawner after the deletion of the same sandbox: the next one of that id still comes."""
    def lives(number):
        name, fates = f"again-{number}", []
        for turn in range(60):
            answer = eventually(lambda: (lambda got: got if got.status_code == 200 else None)(
                server.client.post("/sandboxes", json={"image": "default", "sandbox_id": name})), 20, "created")
            assert answer.json()["status"] == "pending"
            if random.random() < 0.5:
                time.sleep(random.random() * 0.03)
            elif random.random() < 0.5:
                fates.append(server.client.get(f"/sandboxes/{name}/wait?timeout=30").json())
            assert server.client.delete(f"/sandboxes/{name}").status_code == 200
        return fates
    with ThreadPoolExecutor(8) as pool:
        fates = [fate for part in pool.map(lives, range(8)) for fate in part]
    assert {(fate["status"], fate["status_message"]) for fate in fates} == {("ready", None)}


@pytest.mark.skipif(SANITIZED, reason="a sanitized agent starts programs by vfork, and stands still with them")
def test_b013_who_stops_everything_stops_no_agent(server):
    """Commands are stopped on the way to their program, too, where the agent waits for them."""
    box = server.create()
    stopper = box.start("while :; do kill -STOP -1; done 2>/dev/null", lane="stopper")
    box.wait_running(stopper)
    agent = box.agent_pid()
    with ThreadPoolExecutor(4) as pool:
        jobs = list(pool.map(lambda n: box.exec(["/bin/true"], lane=f"l{n % 4}", timeout_seconds=0.2), range(12)))
    assert {job["verdict"] for job in jobs} <= {"exited", "timed_out", "signaled"}, jobs
    assert box.client.post(f"/jobs/{stopper}/cancel").json()["verdict"] == "canceled"
    assert box.out("echo back") == "back\n"
    assert box.agent_pid() == agent
    box.delete()
