import faulthandler
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import images
from cluster_play import Play
from orchard_server import AGENT, ORCHARDD, Server
from redis_server import Redis, RedisPair


def why_not():
    """Why no sandbox can be made on this machine, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not ORCHARDD.exists() or not AGENT.exists():
        return f"not built: {ORCHARDD} (set ORCHARD_BUILD_DIR)"
    probe = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--fork", "true"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        return "namespaces are not allowed here: " + probe.stderr.strip()
    return None


def pytest_collection_modifyitems(items):
    reason = why_not()
    if reason:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="NO SANDBOXES ON THIS MACHINE: " + reason))


@pytest.fixture(scope="session")
def work_dir():
    # Not /tmp: overlayfs needs a filesystem that can be an upper layer.
    path = Path(tempfile.mkdtemp(prefix="orchard-test-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def image_dir(work_dir):
    path = work_dir / "images"
    path.mkdir()
    return path


@pytest.fixture(scope="session")
def debian():
    return f"dir:{images.debian()}"


@pytest.fixture(scope="session")
def busybox(image_dir):
    return f"dir:{images.busybox(image_dir / 'busybox')}"


@pytest.fixture(scope="session")
def no_shell(image_dir):
    return f"dir:{images.no_shell(image_dir / 'no-shell')}"


@pytest.fixture(scope="session")
def make_server_session(work_dir, image_dir, debian):
    count = [0]

    def make(**settings):
        count[0] += 1
        directory = work_dir / f"server-{count[0]}"
        directory.mkdir()
        directory.chmod(0o755)
        return Server(directory, debian, [images.CACHE, image_dir], **settings)
    return make


@pytest.fixture(scope="session")
def server(make_server_session):
    """The server most tests share."""
    shared = make_server_session().start()
    yield shared
    shared.close()


@pytest.fixture
def make_server(make_server_session):
    """Servers of one test's own: make_server(setting=value).start()."""
    made = []

    def make(**settings):
        made.append(make_server_session(**settings))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def make_redis():
    """redis-servers of the test's own; named before make_server, so that servers go first."""
    made = []

    def make(*arguments):
        made.append(Redis(*arguments))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def redis_pair():
    """A Redis that loses nothing when it is killed, and its copy; named before make_server."""
    pair = RedisPair("--appendonly", "yes", "--appendfsync", "always").start()
    yield pair
    pair.close()


@pytest.fixture
def redis(make_redis):
    return make_redis().start()


@pytest.fixture(scope="module")
def box(server):
    """A Debian sandbox that the tests of a module share."""
    sandbox = server.create()
    yield sandbox
    sandbox.delete()


@pytest.fixture
def fresh(server):
    """A Debian sandbox of the test's own."""
    sandbox = server.create()
    yield sandbox
    sandbox.client.delete(sandbox.url)


@pytest.fixture(autouse=True)
def log_on_failure(request):
    yield
    report = getattr(request.node, "rep_call", None)
    if report is not None and report.failed:
        for name in ("server",):
            if name in request.fixturenames:
                print(request.getfixturevalue(name).log())


def pytest_terminal_summary(terminalreporter):
    """What was run again (--reruns) keeps its failure."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.section(f"unstable: {report.nodeid}")
        terminalreporter.line(report.longreprtext)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    """A child or a thread that a test has left must not keep the finished run from ending."""
    faulthandler.dump_traceback_later(300, exit=True, file=sys.__stderr__)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    setattr(item, "rep_" + call.when, outcome.get_result())


@pytest.fixture
def make_play(work_dir):
    """Servers whose sandboxes are pods of a fake cluster; not started."""
    made = []

    def make(**settings):
        made.append(Play(work_dir, **settings))
        return made[-1]
    yield make
    for one in made:
        one.close()
