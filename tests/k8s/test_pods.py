"""Pods and policies as the server makes them, looked at by a real API server."""

import json
import os
import subprocess

import pytest

from orchard_server import BUILD, eventually
from test_manifests import without_warnings

VARIANTS = {
    "default": {},
    "mounted": {"AGENT_VOLUME_MODE": "image", "ENABLE_SANDBOX_TOOLS": "on", "SANDBOX_TOOLS_IMAGE": "tools:1",
                "SANDBOX_TOOLS_VOLUME_MODE": "image"},
    "copied": {"ENABLE_SANDBOX_TOOLS": "on", "SANDBOX_TOOLS_IMAGE": "tools:1"},
    "everything": {"POD_TOLERATIONS": "workload=sandbox:NoSchedule, spot, *", "POD_RUNTIME_CLASS": "gvisor",
                   "POD_IMAGE_PULL_SECRETS": "one, two", "POD_IMAGE_PULL_POLICY": "Always",
                   "POD_PRIORITY_CLASS": "system-node-critical", "POD_USER_NAMESPACE": "on", "POD_GRACE_SECONDS": "0"},
}
TEMPLATE = """
metadata:
  annotations: {example.com/owner: team-red}
spec:
  containers:
  - name: sandbox
    resources: {limits: {example.com/gpu: 1}}
    volumeMounts: [{name: data, mountPath: /data, readOnly: true}]
    env: [{name: HTTP_PROXY, value: 'http://proxy:3128'}]
  - name: logs
    image: logger:1
  volumes:
  - {name: data, persistentVolumeClaim: {claimName: shared}}
  topologySpreadConstraints:
  - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: sandbox}}}
"""


# Where servers of other tests have policies of the same names, none could be made.
NAMESPACE = "pods-as-printed"


@pytest.fixture(scope="session")
def podprint():
    program = BUILD / "tests/k8s/podprint"
    if not program.exists():
        subprocess.run(["make", "-C", BUILD, "tests/k8s/podprint"], check=True, capture_output=True)

    def run(*arguments, **settings):
        return subprocess.run([program, *arguments], capture_output=True, text=True, check=True, timeout=60, env={
            "PATH": os.environ["PATH"], "API_KEYS": "key-of-the-pods-test", "SANDBOX_NAMESPACE": NAMESPACE, **settings}).stdout

    def equal(one, other, tmp_path):
        (tmp_path / "one").write_text(json.dumps(one))
        (tmp_path / "other").write_text(json.dumps(other))
        return subprocess.run([program, "equal", tmp_path / "one", tmp_path / "other"], check=False).returncode == 0
    run.equal = equal
    return run


@pytest.fixture(scope="session")
def namespace(cluster, orchard_account):
    cluster.kubectl("create", "namespace", NAMESPACE)
    eventually(lambda: cluster.kubectl("-n", NAMESPACE, "get", "serviceaccount", "default", check=False).returncode == 0, 60,
               "pods may be made there")
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "gvisor"}, "handler": "runsc"}))
    return cluster


def made_of(cluster, text):
    """The object as it would be made, defaults and all; a member that Kubernetes does not know is an error."""
    made = without_warnings(cluster.kubectl("create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-",
                                            stdin=text, check=False))
    return json.loads(made)


@pytest.mark.parametrize("variant", VARIANTS)
def test_pods_are_taken_as_they_are(namespace, podprint, variant):
    text = podprint("pod", **VARIANTS[variant])
    wanted, made = json.loads(text)["spec"], made_of(namespace, text)["spec"]
    assert made["containers"][0]["env"] == wanted["containers"][0]["env"]
    assert made["containers"][0]["command"] == wanted["containers"][0]["command"]
    assert made.get("hostUsers") == wanted.get("hostUsers")
    assert not [volume for volume in made["volumes"] if "projected" in volume], "a token of the service account"


def test_a_pods_requests_are_its_limits(namespace, podprint):
    made = made_of(namespace, podprint("pod"))
    assert made["status"]["qosClass"] == "Guaranteed"


def test_a_template_makes_a_pod_that_is_taken(namespace, podprint, tmp_path):
    (tmp_path / "pod.yaml").write_text(TEMPLATE)
    made = made_of(namespace, podprint("pod", POD_TEMPLATE_FILE=str(tmp_path / "pod.yaml")))
    assert [one["name"] for one in made["spec"]["containers"]] == ["sandbox", "logs"]
    assert made["spec"]["containers"][0]["resources"]["limits"]["example.com/gpu"] == "1"


@pytest.mark.parametrize("arguments, settings", [
    (["default"], {}), (["default"], {"AGENT_INGRESS_CIDRS": "192.0.2.0/24", "ORCHESTRATOR_POD_LABELS": ""}),
    (["allow", "11111111-2222-3333-4444-555555555555"], {}),
    (["allow", "11111111-2222-3333-4444-555555555555"], {"EGRESS_EXCEPT_CIDRS": "2001:db8::/32, 10.0.0.0/8", "POD_DNS_CIDRS": "fd00:10::a"}),
    (["allow", "11111111-2222-3333-4444-555555555555"], {"LIMITED": "192.0.2.0/24:443 8.0.0.0/5"}),
    (["allow", "11111111-2222-3333-4444-555555555555"],
     {"LIMITED": "::/0 fd00::/8 [2001:db8:1::/48]:443 2001:db8::7 64:ff9b::/96 ::/64 8.0.0.0/5 2001:db8::7",
      "EGRESS_EXCEPT_CIDRS": "10.0.0.0/8, fd12::/16"}),
], ids=["default", "from-outside", "internet", "ipv6", "limited", "limited-ipv6"])
def test_B119_a_policy_that_stands_is_known_again(namespace, podprint, tmp_path, arguments, settings):
    wanted = json.loads(podprint(*arguments, **settings))
    standing = made_of(namespace, json.dumps(wanted))
    assert podprint.equal(standing, wanted, tmp_path)
    standing["spec"]["ingress" if arguments == ["default"] else "egress"].append({})
    assert not podprint.equal(standing, wanted, tmp_path)
