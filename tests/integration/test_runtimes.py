"""Sandboxes made by an OCI runtime: the same to whoever uses them, and nothing of the runtime is left.

The whole suite runs with one as well: ORCHARD_LOCAL_RUNTIME=crun pytest tests/integration.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from netlab import Lab
from orchard_server import ORCHARDD, eventually, is_zombie
from test_crash import kill_role
from test_escapes import ESCAPES, answers, cgroup_of, prober  # noqa: F401
from test_network import METADATA, PRIVATE, PUBLIC, reached

RUNTIMES = ["crun", "runc"]
PIDS_MAX = 250  # of a sandbox


def installed(name):
    if shutil.which(name) is None:
        pytest.skip(f"NOT INSTALLED: {name}")
    return name


@pytest.fixture(scope="module", params=RUNTIMES)
def runtime(request):
    return installed(request.param)


@pytest.fixture(scope="module")
def lab(work_dir):
    with Lab(work_dir) as made:
        yield made


@pytest.fixture(scope="module")
def made_by(runtime, lab, make_server_session):
    shared = make_server_session(local_runtime=runtime, network_dns=["1.2.3.53"], sandbox_pids_max=PIDS_MAX,
                                 network_subnet=f"10.{240 + RUNTIMES.index(runtime)}.0.0/16").start()
    yield shared
    shared.close()


@pytest.fixture(scope="module")
def ours(lab, make_server_session):
    """A sandbox that no runtime has made. Not the server that all tests share: that one can't be reached from the lab."""
    server = make_server_session(local_runtime="builtin").start()
    yield server.create()
    server.close()


@pytest.fixture(scope="module")
def box(made_by):
    sandbox = made_by.create()
    yield sandbox
    sandbox.delete()


def homes(server):
    return list((server.run_dir / "runtime").iterdir())


# --- what it is like ------------------------------------------------------------------------------------
def test_commands_run_and_the_runtime_made_it(made_by, runtime, box):
    assert runtime in made_by.log(100_000)
    assert list(homes(made_by)[0].glob("state/*/*")), "the runtime has written what it made"
    assert box.out("echo hello; hostname; pwd; cat") == f"hello\n{box.id}\n/\n"
    assert box.exec("exit 7")["exit_code"] == 7
    assert box.exec("sleep 60", timeout_seconds=0.3)["verdict"] == "timed_out"
    assert not made_by.processes()["blank"]  # nothing is made ahead
    assert box.out("yes | head -c 3000000 | wc -c") == "3000000\n"


def test_it_looks_as_if_made_by_us(ours, box):
    """Ids, rights, limits, devices, mounts' places, cgroups, files that the image lacks."""
    looks = ("id; umask; ulimit -n; ulimit -Hn; ulimit -c; ls -l /dev | sed 's/.*[0-9][0-9]:[0-9][0-9]//'; "
             "grep -E 'Cap|NoNew|Seccomp:' /proc/self/status; sed 's,jobs/.*,jobs/N,' /proc/self/cgroup; "
             "cut -d' ' -f5 /proc/self/mountinfo | grep -v '^/proc/1/' | sort; cat /etc/resolv.conf; ls -A / /etc; env | sort; "
             "cat /proc/1/oom_score_adj; ls /proc/self/fd | wc -l; cat /sys/class/net/lo/operstate")
    assert box.out(looks).replace(box.id, ours.id) == ours.out(looks)


def test_no_call_is_denied_less(ours, box, prober):  # noqa: F811
    for one in (ours, box):
        one.out("base64 -d > /tmp/prober && chmod 755 /tmp/prober", stdin=prober)
    found = answers(box)
    assert len(found) > 70 and found == answers(ours)


@pytest.mark.parametrize("name", ["core-pattern", "sysrq", "sysctl", "sys", "fresh-proc", "uncover", "disk", "kernel-addresses",
                                  "agent-root", "agent-descriptors", "agent-memory", "agent-program", "descriptors",
                                  "host-paths", "host-cgroups", "host-processes", "shared-mounts", "device-directory"])
def test_no_way_out(box, name):
    job = box.exec(ESCAPES[name], timeout_seconds=60)
    assert job["verdict"] == "exited" and job["exit_code"] not in (0, 126, 127), (job["stdout"], job["stderr"])


def test_limits_are_the_sandboxes_own(made_by):
    """They are wider while the runtime works; a small sandbox is small all the same."""
    small = made_by.create(memory="32Mi", cpu="0.2")
    job = small.exec("python3 -c 'x = b\"x\" * (64 << 20)'")
    assert job["verdict"] == "oom_killed" or job["exit_code"] != 0, job
    assert small.out("echo ok") == "ok\n"
    small.delete()
    few = made_by.create()
    job = few.exec(f"for i in $(seq {2 * PIDS_MAX}); do sleep 60 & done")
    assert job["exit_code"] != 0 and "ork" in job["stderr"], job  # "Cannot fork"
    few.delete()


def test_a_network_and_its_walls(made_by):
    netted = made_by.create(block_network=False)
    assert reached(netted, *PUBLIC, *list(PRIVATE)[:1], *METADATA) == PUBLIC
    assert "nameserver 1.2.3.53\n" in netted.out("cat /etc/resolv.conf")
    assert netted.exec("echo x >> /etc/resolv.conf")["exit_code"] != 0
    netted.delete()


# --- life -----------------------------------------------------------------------------------------------
def test_restart_adopts_it_and_any_maker_removes_it(make_server, runtime):
    """Also one that knows no runtime any more."""
    server = make_server(local_runtime=runtime).start()
    kept = server.create()
    job = kept.start("sleep 1; echo on > /mark")
    kept.wait_running(job)
    kill_role(server, "spawner")
    assert kept.wait_job(job)["status"] == "succeeded"
    server.kill_all()
    server.settings["local_runtime"] = "builtin"
    server.start()
    assert kept.get().json()["status"] == "ready" and kept.out("cat /mark") == "on\n"
    agent = kept.agent_pid()
    os.kill(agent, signal.SIGKILL)
    eventually(lambda: kept.get().json()["status"] == "failed", 20, "the dead agent is noticed")
    kept.delete()
    eventually(lambda: not homes(server) and not server.remains(), 20, "all of it is gone")


def test_an_agent_that_dies_is_told_with_its_signal(made_by):
    doomed = made_by.create()
    os.kill(doomed.agent_pid(), signal.SIGKILL)
    status = eventually(lambda: (got := doomed.get().json())["status"] == "failed" and got, 20, "failed")
    assert "signal 9" in status["status_message"], status
    doomed.delete()


def test_nothing_is_left(made_by):
    before = set(homes(made_by))
    boxes = [made_by.create(wait=False) for _ in range(4)]
    for one in boxes:
        one.wait_ready()
    agents = [one.agent_pid() for one in boxes]
    groups = [cgroup_of(agent) for agent in agents]
    mounts = Path(f"/proc/{made_by.processes()['spawner'][0]}/mountinfo").read_text().count("\n")
    for one in boxes:
        one.delete()
    for agent, group in zip(agents, groups, strict=True):
        eventually(lambda agent=agent: not Path(f"/proc/{agent}").exists() or is_zombie(agent), 20, "the process")
        eventually(lambda group=group: not group.exists(), 20, "the cgroup")
    # Those of earlier sandboxes may still have been going.
    eventually(lambda: set(homes(made_by)) <= before, 20, "what the runtime has written")
    assert Path(f"/proc/{made_by.processes()['spawner'][0]}/mountinfo").read_text().count("\n") == mounts


# --- when it does not work ------------------------------------------------------------------------------
def wrapper(work_dir, name, lines):
    path = work_dir / f"{name}-{len(list(work_dir.glob('*-wrapper')))}-wrapper"
    path.write_text(f"#!/bin/sh\n{lines}\nexec {shutil.which(name)} \"$@\"\n")
    path.chmod(0o755)
    return path


def test_its_words_are_the_sandboxes_words(make_server, runtime, work_dir):
    """A runtime that refuses a bundle, here one that was spoilt on the way."""
    spoil = work_dir / f"spoil-{runtime}"
    path = wrapper(work_dir, runtime, f"[ -e {spoil} ] && for word; do case $word in --bundle=*) "
                   "sed -i s/devpts/nosuchfs/ ${word#--bundle=}/config.json;; esac; done")
    server = make_server(local_runtime=runtime, local_runtime_path=path).start()
    spoil.touch()
    failed = server.create(wait=False)
    got = eventually(lambda: (now := failed.get().json())["status"] == "failed" and now, 20, "failed")
    assert f"{runtime}: " in got["status_message"] and "dev/pts" in got["status_message"], got
    spoil.unlink()
    assert server.create().out("echo ok") == "ok\n"
    failed.delete()
    eventually(lambda: len(homes(server)) == 1, 20, "nothing of the failed one")


def test_a_spawner_that_dies_takes_the_runtime_along(make_server, runtime, work_dir):
    stuck, mark = work_dir / f"stuck-{runtime}", work_dir / f"stuck-{runtime}.pid"
    path = wrapper(work_dir, runtime, f"[ -e {stuck} ] && case $* in *--bundle*) echo $$ > {mark}; exec sleep 1000;; esac")
    server = make_server(local_runtime=runtime, local_runtime_path=path).start()
    stuck.touch()
    box = server.create(wait=False)
    program = int(eventually(lambda: mark.exists() and mark.read_text().strip(), 20, "the runtime is at it"))
    stuck.unlink()
    kill_role(server, "spawner")
    eventually(lambda: not Path(f"/proc/{program}").exists() or is_zombie(program), 20, "it died too")
    box.wait_ready()
    assert box.out("echo ok") == "ok\n"
    assert len(homes(server)) == 1


@pytest.mark.parametrize("settings,words", [
    ({"local_runtime": "docker"}, "allowed: builtin, crun, runc"),
    ({"local_runtime": "crun", "local_runtime_path": "crun"}, "must begin with /"),
    ({"local_runtime": "runc", "local_runtime_path": "/no/such/runc"}, "/no/such/runc"),
    ({"local_runtime": "runc", "local_runtime_path": "/bin/true"}, "does not say that it is runc"),
    ({"local_runtime": "crun", "local_runtime_path": "OLD"}, "apt-get install crun"),
])
def test_what_cannot_work_is_refused_at_the_start(make_server, work_dir, settings, words):
    if settings.get("local_runtime_path") == "OLD":
        old = work_dir / "old-crun"
        old.write_text("#!/bin/sh\necho crun version 0.17\n")
        old.chmod(0o755)
        settings = settings | {"local_runtime_path": old}
    server = make_server(**settings)
    assert server.spawn().wait(20) != 0 and words in server.log()
    check = subprocess.run([ORCHARDD, "-t", "-c", server.conf_path], env=server.environment(), capture_output=True, text=True)
    assert check.returncode != 0 and words in check.stderr


def test_one_that_is_not_installed_is_named(make_server, tmp_path):
    server = make_server(local_runtime="crun")
    server.write_conf()
    check = subprocess.run([ORCHARDD, "-t", "-c", server.conf_path], env=server.environment() | {"PATH": str(tmp_path)},
                           capture_output=True, text=True)
    assert check.returncode != 0 and "there is no such program: apt-get install crun" in check.stderr
