"""Three servers as k8s/overlays/redis deploys them, with its Redis: they start, share, and are updated one by one."""

import json
import shutil
import subprocess
import threading

import httpx
import pytest

from conftest import MANIFESTS
from orchard_server import eventually

PASSWORD, KEY = "redis-password-of-a-test", "key-of-a-test-0123456789"
PODS = "/api/v1/namespaces/orchard/pods"
SANDBOXES = "/api/v1/namespaces/sandbox-pods/pods"


@pytest.fixture
def redis_image(node, work_dir):
    """Debian's redis-server with its libraries, as an image that the node knows."""
    root = work_dir / "images" / "redis"
    program = shutil.which("redis-server")
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    files = {program: "/usr/bin/redis-server"} | {word: word for word in said.split() if word.startswith("/")}
    for source, place in files.items():
        (root / place[1:]).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, root / place[1:])
    for name in ("data", "etc/redis", "tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    node.add_images(**{"redis:7": {"root": str(root)}})


@pytest.fixture
def deployed(cluster, server_image, redis_image, orchard_account, programs, tmp_path):
    """Applied as it is; the URL of Redis has its address, since nothing resolves the names of services here."""
    shutil.copytree(MANIFESTS, tmp_path / "k8s")
    own = tmp_path / "k8s" / "own"
    own.mkdir()
    (own / "kustomization.yaml").write_text(json.dumps({
        "resources": ["../overlays/redis"],
        "images": [{"name": name, "newTag": "1"} for name in ("orchard-server", "orchard-agent")],
        "configMapGenerator": [{"name": "orchard-settings", "namespace": "orchard", "behavior": "merge",
                                "literals": ["REDIS_REPLICA_SECONDS=3", "CLEANUP_INTERVAL_SECONDS=2", "WORKERS=1"]}]}))
    text = subprocess.run([programs / "kubectl", "kustomize", own], capture_output=True, text=True, check=True).stdout
    items = json.loads(cluster.kubectl("apply", "--dry-run=client", "-o", "json", "-f", "-", stdin=text))["items"]

    def apply(items):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))

    def secret(name, **data):
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "orchard"}, "stringData": data}

    apply([secret("orchard-secrets", **{"api-keys": KEY, "agent-secret": "0123456789abcdef" * 4}),
           secret("orchard-redis", password=PASSWORD)])
    try:
        apply([item for item in items if item["metadata"]["name"].startswith("orchard-redis")])
        redis = eventually(lambda: ready_addresses(cluster, "orchard-redis"), 60, "Redis is ready")
        apply([secret("orchard-redis", password=PASSWORD, url=f"redis://:{PASSWORD}@{redis[0]}:6379/0"), *items])
        yield
    finally:
        cluster.api.delete(SANDBOXES)
        cluster.kubectl("-n", "orchard", "delete", "statefulset/orchard", "statefulset/orchard-redis", "secret/orchard-secrets",
                        "secret/orchard-redis", "hpa/orchard", "--cascade=foreground", check=False)


def ready_addresses(cluster, app):
    return [pod["status"]["podIP"] for pod in cluster.items(PODS, labelSelector=f"app={app}")
            if "deletionTimestamp" not in pod["metadata"]
            and any(one["type"] == "Ready" and one["status"] == "True" for one in pod.get("status", {}).get("conditions", []))]


def uids_of(cluster, app):
    return {pod["metadata"]["uid"] for pod in cluster.items(PODS, labelSelector=f"app={app}")
            if "deletionTimestamp" not in pod["metadata"]}


def told(cluster):
    """How the servers' pods fare, in their own words."""
    words = []
    for pod in cluster.items(PODS, labelSelector="app=orchard"):
        status = pod.get("status", {})
        try:
            words.append(httpx.get(f"http://{status.get('podIP', 'nowhere')}:8000/ready", timeout=10).text)
        except httpx.TransportError as fault:
            words.append(f"{fault}: {status.get('containerStatuses')}")
    return "\n".join(words)


class Clients:
    """What the Service does: to any server that is ready; one that is just leaving is tried once."""

    def __init__(self, cluster):
        self.cluster = cluster

    def ask(self, method, path, **more):
        answers = []
        for address in ready_addresses(self.cluster, "orchard"):
            try:
                answers.append(httpx.request(method, f"http://{address}:8000{path}", headers={"X-API-Key": KEY}, timeout=60, **more))
            except httpx.TransportError:
                continue
            if answers[-1].status_code == 200:
                return answers[-1].json()
        raise AssertionError(f"{method} {path}: {[answer.text for answer in answers]}")


def test_they_start_share_and_are_updated_one_by_one(cluster, deployed):
    addresses = eventually(lambda: len(found := ready_addresses(cluster, "orchard")) == 3 and found, 120,
                           lambda: f"three servers are ready: {told(cluster)}")
    first, second, third = (httpx.Client(base_url=f"http://{address}:8000", headers={"X-API-Key": KEY}, timeout=60)
                            for address in addresses)
    made = first.post("/sandboxes", json={"image": "debian"})
    assert made.status_code == 200, made.text
    url = f"/sandboxes/{made.json()['sandbox_id']}"
    assert second.get(f"{url}/wait", params={"timeout": 60}).json()["status"] == "ready"
    run = {"command": "echo on", "wait": True}
    assert [one.post(f"{url}/exec", json=run).json()["stdout"] for one in (first, second, third)] == ["on\n"] * 3
    servers, pod = uids_of(cluster, "orchard"), cluster.items(SANDBOXES, labelSelector="app=sandbox")[0]["metadata"]["uid"]

    clients, over, faults = Clients(cluster), threading.Event(), []

    def work():
        while not over.is_set():
            try:
                assert clients.ask("POST", f"{url}/exec", json=run)["stdout"] == "on\n"
            except AssertionError as fault:
                faults.append(fault)
    worker = threading.Thread(target=work)
    worker.start()
    try:
        cluster.kubectl("-n", "orchard", "rollout", "restart", "statefulset/orchard")
        cluster.kubectl("-n", "orchard", "rollout", "status", "statefulset/orchard", "--timeout", "110s")
    finally:
        over.set()
        worker.join()
    assert not faults, faults[:3]
    assert not servers & uids_of(cluster, "orchard")
    assert cluster.items(SANDBOXES, labelSelector="app=sandbox")[0]["metadata"]["uid"] == pod
    clients.ask("DELETE", url)
    eventually(lambda: cluster.items(SANDBOXES, labelSelector="app=sandbox") == [], 60, "the pod is gone, whoever was its home")
