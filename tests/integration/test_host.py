"""What a host may lack (fault group R): it is told in words that name the cure, and nothing is half done."""

import subprocess

import pytest

from orchard_server import ORCHARDD, eventually


def start_wrapped(server, *wrapper):
    """Starts the server through a wrapper that takes something of the host away."""
    server.write_conf()
    with open(server.log_path, "ab") as log:
        server.process = subprocess.Popen([*wrapper, ORCHARDD, "-c", server.conf_path], env=server.environment(),
                                          stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    eventually(lambda: "ready: " in server.log() or server.process.poll() is not None, 30, "server is up")
    assert server.process.poll() is None, server.log()
    return server


def refusal(server):
    """What /ready and a create say on a host that can't make sandboxes."""
    ready = server.client.get("/ready")
    assert ready.status_code == 503 and ready.json()["problems"]
    answer = server.client.post("/sandboxes", json={"image": "default"})
    if answer.status_code == 200:
        url = f"/sandboxes/{answer.json()['sandbox_id']}"
        state = server.client.get(f"{url}/wait", params={"timeout": 20}).json()
        assert state["status"] == "failed"
        server.client.delete(url)
        said = state["status_message"]
    else:
        assert answer.status_code in (501, 503)
        said = answer.text
    assert server.client.get("/health").status_code == 200
    return said + " " + " ".join(ready.json()["problems"])


def test_b152_no_cgroups(make_server):
    hide = "for m in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/mounts); do umount -l $m; done; exec \"$@\""
    server = start_wrapped(make_server(), "unshare", "-m", "sh", "-c", hide, "sh")
    assert "cgroup" in refusal(server)


def test_no_namespaces_allowed(make_server):
    server = start_wrapped(make_server(), "setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")
    said = refusal(server)
    assert "CAP_SYS_ADMIN" in said or "not permitted" in said.lower(), said


def test_b153_state_on_an_overlay(make_server, work_dir):
    base = work_dir / "overlaid"
    for name in ("lower", "upper", "work", "merged"):
        (base / name).mkdir(parents=True)
    merged = base / "merged"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                    f"lowerdir={base}/lower,upperdir={base}/upper,workdir={base}/work", merged], check=True)
    server = make_server(state_dir=merged / "state")
    try:
        said = refusal(start_wrapped(server, "env"))
        assert "overlay" in said and "state_dir" in said
        server.close()
    finally:
        subprocess.run(["umount", "-l", merged], check=False)


def test_a_million_slots(make_server, busybox):
    server = make_server(max_sandboxes=1_000_000).start()
    box = server.create(image=busybox)
    assert box.out("echo ok") == "ok\n"
    assert len(server.list_ids()) == 1


@pytest.mark.parametrize("missing", ["default_image"])
def test_no_default_image(make_server, missing):
    server = make_server(**{missing: ""}).start()
    answer = server.client.post("/sandboxes", json={"image": "default"})
    assert answer.status_code == 422 and missing in answer.text
