import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "integration"))

import cluster as control_plane  # noqa: E402
import images as test_images  # noqa: E402
import lab  # noqa: E402
from ctl import ORCHARDCTL  # noqa: E402
from orchard_on_cluster import PodServer  # noqa: E402
from orchard_server import AGENT, ORCHARDD  # noqa: E402
from worker_node import WorkerNode  # noqa: E402

MANIFESTS = Path(__file__).parents[2] / "k8s"


def why_not():
    """Why no cluster can be made on this machine, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if not ORCHARDD.exists() or not AGENT.exists():
        return f"not built: {ORCHARDD} (set ORCHARD_BUILD_DIR)"
    missing = [name for name in ("etcd", "crun", "openssl", "setpriv", "ip") if shutil.which(name) is None]
    return f"not installed: {', '.join(missing)}" if missing else None


def pytest_collection_modifyitems(items):
    reason = why_not()
    if reason:
        for item in items:
            item.add_marker(pytest.mark.skip(reason="NO CLUSTER ON THIS MACHINE: " + reason))


@pytest.fixture(scope="session")
def programs():
    return control_plane.binaries()


@pytest.fixture(scope="session")
def debian_root():
    return test_images.debian()


@pytest.fixture(scope="session")
def work_dir(programs, debian_root):
    """What is fetched or built has been by now: from here on the run has a network of its own, which leads nowhere."""
    lab.enter()
    path = Path(tempfile.mkdtemp(prefix="orchard-test-", dir="/var/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster(work_dir, programs):
    """A control plane, RBAC on; ends with the run."""
    directory = work_dir / "cluster"
    directory.mkdir()
    one = control_plane.Cluster(directory, programs)
    try:
        yield one.start()
    finally:
        one.close()


@pytest.fixture(scope="session")
def node_images(work_dir, debian_root):
    """What the node can pull, by name: a root, and what an image's configuration says."""
    agent = work_dir / "images" / "agent"
    agent.mkdir(parents=True)
    shutil.copy2(AGENT, agent / "orchard-agent")
    busybox = test_images.busybox(work_dir / "images" / "busybox")
    return {
        "debian": {"root": str(debian_root), "cmd": ["bash"]},
        "busybox": {"root": str(busybox), "cmd": ["sh"]},
        "orchard-agent": {"root": str(agent), "entrypoint": ["/orchard-agent"]},
    }


@pytest.fixture(scope="session")
def node(cluster, node_images, work_dir):
    one = WorkerNode(cluster, work_dir / "node-1", dict(node_images)).start()
    yield one
    one.close()


@pytest.fixture
def server_image(node, node_images, work_dir):
    """This build's server as its image has it, as an image that the node knows."""
    root = Path(tempfile.mkdtemp(dir=work_dir / "images"))
    root.chmod(0o755)
    for program, place in ((ORCHARDD, "usr/sbin"), (ORCHARDCTL, "usr/bin")):
        (root / "installed" / place).mkdir(parents=True)
        shutil.copy2(program, root / "installed" / place)
    subprocess.run(["sh", MANIFESTS / "images/collect", root, root / "installed"], check=True)
    node.add_images(**{"orchard-server:1": {"root": str(root), "entrypoint": ["/usr/sbin/orchardd"]}})
    node.add_images(**{"orchard-agent:1": node_images["orchard-agent"]})
    return "orchard-server:1"


@pytest.fixture(scope="session")
def orchard_account(cluster):
    """A client with exactly the rights that k8s/base ships, and its kubeconfig."""
    for name in ("namespaces.yaml", "rbac.yaml"):
        cluster.kubectl("apply", "-f", MANIFESTS / "base" / name)
    token = cluster.account_token("orchard", "orchard")
    with cluster.client(token) as client:
        client.kubeconfig = cluster.kubeconfig("orchard", token, "orchard")
        yield client


@pytest.fixture(scope="session")
def make_pod_server_session(work_dir, cluster, node, orchard_account):
    count = [0]

    def make(namespace=None, **settings):
        """With a namespace of its own: servers take pods that they do not know for lost ones."""
        count[0] += 1
        directory = work_dir / f"server-{count[0]}"
        directory.mkdir()
        directory.chmod(0o755)
        if namespace is None:
            namespace = f"sandbox-pods-{count[0]}"
            cluster.allow(MANIFESTS / "base" / "rbac.yaml", namespace)
        return PodServer(directory, cluster, orchard_account, namespace, **settings)
    return make


@pytest.fixture(scope="module")
def server(make_pod_server_session):
    """The server most tests share."""
    shared = make_pod_server_session("sandbox-pods").start()
    yield shared
    shared.close()


@pytest.fixture
def make_pod_server(make_pod_server_session):
    """Servers of one test's own."""
    made = []

    def make(**settings):
        made.append(make_pod_server_session(**settings))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture(autouse=True)
def log_on_failure(request):
    yield
    report = getattr(request.node, "rep_call", None)
    if report is not None and report.failed:
        for name in ("server", "node"):
            if name in request.fixturenames:
                print(request.getfixturevalue(name).log())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    setattr(item, "rep_" + call.when, outcome.get_result())
