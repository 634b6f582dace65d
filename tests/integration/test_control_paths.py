# SPDX-License-Identifier: MIT
"""Who may talk to an agent, what a sandbox is told of its host, and what a server outlives that its agents do."""

import os
import signal

import httpx
import pytest


def agent_socket(box):
    (path,) = (box.server.run_dir / "sandboxes" / box.id).glob("*.sock")
    return path


def ask(path, headers):
    """The status of a command that an agent is asked to run."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), base_url="http://agent", timeout=60) as client:
        return client.post("/exec", json={"command": "touch /tmp/taken"}, headers=headers).status_code


@pytest.mark.parametrize("headers", [
    {}, {"X-Orchard-Token": ""}, {"X-Orchard-Token": "0" * 64}, {"Authorization": "Bearer x"}, {"X-API-Key": "KEY"},
])
def test_b157_an_agent_listens_to_its_server_alone(server, box, headers):
    headers = {name: value.replace("KEY", server.key) for name, value in headers.items()}
    assert ask(agent_socket(box), headers) == 403
    assert box.exec("ls /tmp/taken")["exit_code"] != 0


def test_b157_no_agent_can_be_called_from_a_sandbox(box, fresh):
    """Its socket was handed to it, and has no name in any sandbox; there is no port; its memory is closed."""
    seen = box.out("cat /proc/net/unix /proc/net/tcp /proc/net/tcp6; find / -xdev -type s 2>/dev/null; ls /run")
    assert box.server.run_dir.name not in seen and fresh.id not in seen and ".sock" not in seen
    assert "0A" not in [line.split()[3] for line in box.out("cat /proc/net/tcp /proc/net/tcp6").splitlines() if ":" in line[:6]]
    assert box.exec("cat /proc/1/mem /proc/1/environ >/dev/null", user="nobody")["exit_code"] != 0


def test_b158_no_credentials_of_the_host(box):
    assert box.exec("ls /var/run/secrets/kubernetes.io/serviceaccount")["exit_code"] == 2
    assert box.out("env | grep -c -e ^KUBERNETES_ -e ^ORCHARD_ -e API_KEY || true") == "0\n"


def test_b159_there_is_one_tenant(make_server):
    """As docs/rest-api.md says: every key sees every sandbox and job; one that is not known sees none."""
    server = make_server(api_keys="first-key-of-two,second-key-of-two").start()
    server.client.headers["X-API-Key"] = "first-key-of-two"
    second, none = {"X-API-Key": "second-key-of-two"}, {"X-API-Key": "third"}
    box = server.create()
    url, job = box.url, box.exec("echo mine")["job_id"]
    assert server.client.get(f"/jobs/{job}", headers=second).json()["stdout"] == "mine\n"
    for method, path in (("GET", url), ("DELETE", url), ("GET", f"/jobs/{job}"), ("POST", f"{url}/exec")):
        assert server.client.request(method, path, headers=none).status_code == 403
    assert server.client.delete(url, headers=second).status_code == 200


def test_b149_an_agent_that_ends_in_the_middle_of_an_upload(make_server):
    """No SIGPIPE ends a worker; commands have the default of it."""
    server = make_server(workers=1).start()
    box = server.create()
    assert box.out("bash -c 'yes | head -n 1 >/dev/null; echo ${PIPESTATUS[0]}'") == "141\n"
    (agent,) = server.agents()
    before = server.processes()["worker"]

    def body():
        for number in range(400):
            if number == 100:
                os.kill(agent, signal.SIGKILL)
            yield bytes(65536)

    try:
        assert box.client.put(f"{box.url}/files/raw?path=/tmp/big", content=body(), timeout=60).status_code >= 400
    except httpx.TransportError:
        pass  # the answer was there before all had been sent
    assert server.client.get("/health").status_code == 200
    assert server.processes()["worker"] == before
