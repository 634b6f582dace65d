"""What a host may lack (fault group R): it is told in words that name the cure, and nothing is half done."""

import json
import os
import signal
import subprocess
from pathlib import Path

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


@pytest.mark.parametrize("controller", ["cpu", "memory", "pids"])
def test_b152_one_controller_is_missing(make_server, controller):
    """No sandbox without its limits: which one can't be applied is told, not passed over."""
    if not Path(f"/sys/fs/cgroup/{controller}/cgroup.procs").exists():
        pytest.skip(f"NO V1 HIERARCHY FOR {controller} ON THIS HOST: it can't be taken away")
    hide = f"umount -l /sys/fs/cgroup/{controller}; exec \"$@\""
    server = start_wrapped(make_server(), "unshare", "-m", "sh", "-c", hide, "sh")
    assert f"no cgroup controller for: {controller}" in refusal(server)


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


def groups_below(parent):
    """The groups of sandboxes there, in all hierarchies."""
    return sorted(str(path) for root in hierarchies() for path in (root / parent.strip("/")).glob("orchard-*/*/")
                  if path.name != "-rehearsal")


def hierarchies():
    with open("/proc/mounts") as mounts:
        return [Path(words[1]) for words in map(str.split, mounts) if words[2] in ("cgroup", "cgroup2")]


@pytest.fixture
def two_parents():
    tag = os.urandom(4).hex()
    parents = [f"/orchard-test-{tag}-{name}" for name in ("one", "two")]
    yield parents
    for root in hierarchies():
        for parent in parents:
            if (root / parent[1:]).exists():
                (root / parent[1:]).rmdir()  # fails when anything is left in it


def names_below(parent):
    return {Path(path).name for path in groups_below(parent)}


def group_of(box):
    return json.loads((box.server.state_dir / "sandboxes" / box.id / "state.json").read_text()).get("group", box.id)


@pytest.mark.parametrize("blanks", [0, 3])
def test_sandboxes_outlive_a_change_of_cgroup_parent(make_server, busybox, two_parents, blanks):
    one, two = two_parents
    # Its command outlasts any time to finish.
    server = make_server(cgroup_parent=one, cleanup_interval_seconds=1, drain_timeout_seconds=0, default_image=busybox,
                         sandbox_blanks=blanks, **({"local_runtime": "builtin"} if blanks else {})).start()
    eventually(lambda: len(names_below(one)) == blanks, 20, "made ahead")
    boxes = [server.create(memory="64Mi") for _ in range(3)]
    stays, goes, dies = [group_of(box) for box in boxes]
    assert (stays == boxes[0].id) == (blanks == 0)
    assert names_below(one) >= {stays, goes, dies}
    job = boxes[0].start("sleep 1000 & sleep 1000", timeout_seconds=2000)

    doomed = boxes[2].agent_pid()
    server.stop()
    assert names_below(one) == {stays, goes, dies}
    os.kill(doomed, signal.SIGKILL)
    server.settings["cgroup_parent"] = two
    server.start()
    assert boxes[0].job(job)["status"] == "running"
    assert boxes[0].get().json()["usage"]["pids"] >= 3  # its groups are found where they are
    fresh = server.create()
    assert group_of(fresh) in names_below(two)
    eventually(lambda: names_below(one) == {stays, goes}, 20, lambda: groups_below(one))
    boxes[1].delete()
    eventually(lambda: names_below(one) == {stays}, 20, lambda: groups_below(one))
    eventually(lambda: len(names_below(two)) == 1 + blanks, 20, lambda: groups_below(two))

    before = names_below(two)
    server.kill_all()  # the next one knows both places
    server.start()
    assert boxes[0].out("echo on", lane="other") == "on\n" and fresh.out("echo on") == "on\n"
    eventually(lambda: names_below(two) & before == {group_of(fresh)} and len(names_below(two)) == 1 + blanks, 20,
               lambda: groups_below(two))
    boxes[0].delete()  # and what held them goes too, while the server runs
    eventually(lambda: not any(list((root / one[1:]).glob("orchard-*")) for root in hierarchies()), 20, "all is gone")
    fresh.delete()
    server.close()
    assert not groups_below(one) + groups_below(two)
