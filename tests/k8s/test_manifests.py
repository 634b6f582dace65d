"""What operators deploy, as a real API server takes it."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from orchard_server import ORCHARDD

MANIFESTS = Path(__file__).parents[2] / "k8s"
OVERLAYS = sorted(path.parent.name for path in MANIFESTS.glob("overlays/*/kustomization.yaml"))
COMPONENTS = sorted(path.parent.name for path in MANIFESTS.glob("components/*/kustomization.yaml"))
ACCOUNT = "system:serviceaccount:orchard:orchard"


@pytest.fixture(scope="session")
def render(programs, tmp_path_factory):
    """The objects of an overlay with these components, as YAML and as a list."""
    def render(overlay, components=(), **more):
        tree = tmp_path_factory.mktemp("manifests") / "k8s"
        shutil.copytree(MANIFESTS, tree)
        own = tree / "own"
        own.mkdir()
        (own / "kustomization.yaml").write_text(json.dumps(
            {"resources": [f"../overlays/{overlay}"], "components": [f"../components/{name}" for name in components]} | more))
        return subprocess.run([programs / "kubectl", "kustomize", own], capture_output=True, text=True, check=True).stdout
    return render


def without_warnings(done):
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("components", [()] + [(name,) for name in COMPONENTS] + [tuple(COMPONENTS)], ids="+".join)
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_the_api_server_takes_it(cluster, orchard_account, render, overlay, components):
    text = render(overlay, components)
    # Namespaces must stand for what is in them to be looked at.
    for name in ("orchard-nodes",) if "node-hardening" in components else ():
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
    without_warnings(cluster.kubectl("apply", "--dry-run=server", "-f", "-", stdin=text, check=False))


def test_the_secret_example_is_taken(cluster, orchard_account):
    without_warnings(cluster.kubectl("apply", "--dry-run=server", "-f", MANIFESTS / "secret.example.yaml", check=False))


def pods_of(objects):
    """Pod specs of the workloads, by kind and name."""
    return {f"{one['kind']}/{one['metadata']['name']}": one["spec"]["template"]["spec"] for one in objects
            if "template" in one.get("spec", {})}


@pytest.fixture(scope="session")
def everything(cluster, orchard_account, render):
    found = []
    cluster.kubectl("create", "namespace", "orchard-nodes", check=False)
    for overlay in OVERLAYS:
        text = cluster.kubectl("apply", "--dry-run=client", "-o", "json", "-f", "-", stdin=render(overlay, COMPONENTS))
        found += json.loads(text)["items"]
    return found


def test_images_are_plain_names(everything):
    """Where they come from is the operator's to say."""
    for where, spec in pods_of(everything).items():
        for container in spec["containers"] + spec.get("initContainers", []):
            assert "/" not in container["image"], f"{where}: {container['image']}"
            assert ":" in container["image"], f"{where}: {container['image']} has no tag"


def test_images_are_set_everywhere_at_once(render):
    images = [{"name": name, "newName": f"registry.example/{name}", "newTag": "9"} for name in ("orchard-server", "orchard-agent")]
    text = render("single", ["image-pull"], images=images)
    assert "AGENT_IMAGE: registry.example/orchard-agent:9" in text
    assert text.count("registry.example/orchard-agent:9") == 2 and "image: registry.example/orchard-server:9" in text


def test_only_the_server_gets_a_token(everything):
    for where, spec in pods_of(everything).items():
        assert spec["automountServiceAccountToken"] is (where == "StatefulSet/orchard"), where


def test_nothing_runs_with_more_rights_than_it_needs(everything):
    for where, spec in pods_of(everything).items():
        for container in spec["containers"] + spec.get("initContainers", []):
            security = spec.get("securityContext", {}) | container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False and security["readOnlyRootFilesystem"], where
            assert security["capabilities"]["drop"] == ["ALL"] and not security.get("privileged"), where
            assert security["seccompProfile"]["type"] == "RuntimeDefault", where
            assert security.get("runAsNonRoot") or where == "DaemonSet/node-hardening", where


def may(account, verb, what, namespace, name=""):
    resource, _, sub = what.partition("/")
    resource, _, group = resource.partition(".")
    answer = account.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json={
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {
            "verb": verb, "resource": resource, "subresource": sub, "group": group, "namespace": namespace, "name": name}}})
    assert answer.status_code == 201, answer.text
    return answer.json()["status"]["allowed"]


def test_the_account_may_do_exactly_its_work(orchard_account):
    for verb in ("get", "list", "watch", "create", "delete"):
        assert may(orchard_account, verb, "pods", "sandbox-pods"), verb
        for what, where in (("pods", "orchard"), ("pods", "kube-system"), ("pods", ""), ("secrets", "sandbox-pods"),
                            ("secrets", "orchard")):
            assert not may(orchard_account, verb, what, where), f"{verb} {what} in {where or 'all namespaces'}"
    for what in ("pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "serviceaccounts/token",
                 "rolebindings.rbac.authorization.k8s.io"):
        assert not may(orchard_account, "create", what, "sandbox-pods"), what
    assert may(orchard_account, "list", "events", "sandbox-pods")
    for verb, where in (("get", "sandbox-pods"), ("watch", "sandbox-pods"), ("create", "sandbox-pods"), ("list", "orchard")):
        assert not may(orchard_account, verb, "events", where), f"{verb} events in {where}"
    for verb in ("get", "create", "update"):
        assert may(orchard_account, verb, "leases.coordination.k8s.io", "sandbox-pods", "orchard"), verb
        assert not may(orchard_account, verb, "leases.coordination.k8s.io", "orchard", "orchard"), verb
    for verb in ("get", "update", "delete", "list"):
        assert not may(orchard_account, verb, "leases.coordination.k8s.io", "sandbox-pods", "another"), verb
    assert may(orchard_account, "list", "nodes", "") and not may(orchard_account, "delete", "nodes", "")


def test_the_sandboxes_namespace_refuses_what_would_break_out(cluster, orchard_account):
    for spec in ({"hostNetwork": True}, {"hostPID": True},
                 {"volumes": [{"name": "host", "hostPath": {"path": "/"}}]},
                 {"containers": [{"name": "a", "image": "a", "securityContext": {"privileged": True}}]}):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"},
               "spec": {"containers": [{"name": "a", "image": "a"}]} | spec}
        answer = orchard_account.post("/api/v1/namespaces/sandbox-pods/pods", json=pod)
        assert answer.status_code == 403 and "PodSecurity" in answer.json()["message"], answer.text


def test_settings_of_the_manifests_exist(everything):
    known = subprocess.run([ORCHARDD, "--print-config"],
                           capture_output=True, text=True, check=True, env={"API_KEYS": "print-config"}).stdout
    names = {line.split(" = ")[0].strip("# ") for line in known.splitlines() if " = " in line}
    for one in everything:
        if one["kind"] == "ConfigMap" and one["metadata"]["name"].startswith("orchard-settings"):
            assert {name.lower() for name in one["data"]} <= names
