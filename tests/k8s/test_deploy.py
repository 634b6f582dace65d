"""The scripts that bring it to a cluster."""

import os
import subprocess
import tempfile
from pathlib import Path

from orchard_server import eventually

# kubectl keeps a cache at home.
HOME = tempfile.gettempdir()
SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name, *arguments, **environment):
    return subprocess.run([SCRIPTS / name, *arguments], capture_output=True, text=True, timeout=150,
                          env={"PATH": os.environ["PATH"], "HOME": HOME, **environment})


def test_a_dry_run_runs_nothing():
    for name, arguments in (("deploy-k8s", ["--overlay", "redis", "--label-nodes", "--storage-class", "fast"]),
                            ("deploy-aks", ["--registry", "abc", "--", "--overlay", "redis"])):
        done = script(name, "--dry-run", *arguments, KUBECTL="/nonexistent/kubectl", PATH="/usr/bin:/bin")
        assert done.returncode == 0, done.stderr
        assert "apply -k" in done.stdout and "rollout status" in done.stdout


def test_wrong_arguments_are_refused():
    for arguments, words in ((["--overlay", "nosuch"], "there is no k8s/overlays/nosuch"), (["--nosuch"], "usage:"),
                             (["--component", "nosuch"], "there is no k8s/components/nosuch"), (["--overlay"], "usage:"),
                             (["--setting", "WORKERS"], "must be NAME=VALUE"), (["--setting", "workers=2"], "in capitals"),
                             (["--setting", "WORKER=2"], "has no worker"), (["--image", "redis"], "is no NAME=IMAGE"),
                             (["--server-image", 'a"b:1'], "is no NAME=IMAGE"), (["--agent-image", ""], "is no NAME=IMAGE")):
        done = script("deploy-k8s", *arguments)
        assert done.returncode != 0 and words in done.stderr


def test_images_with_ports_tags_and_digests_are_understood():
    done = script("deploy-k8s", "--dry-run", "--server-image", "registry.example:5000/a/server", "--agent-image",
                  "registry.example:5000/a/agent:1", "--image", "redis=redis@sha256:ab")
    for words in ('newName: "registry.example:5000/a/server"}', 'newName: "registry.example:5000/a/agent", newTag: "1"}',
                  'newName: "redis", digest: "sha256:ab"}'):
        assert words in done.stdout


def test_from_nothing_to_a_command_in_a_pod(cluster, server_image, programs):
    """The server as a pod: not root, with the token, the rights and the directories that it has there."""
    reach = {"KUBECTL": str(programs / "kubectl"), "KUBECONFIG": str(cluster.admin)}
    try:
        deploy_and_try(cluster, server_image, reach)
    finally:
        cluster.kubectl("-n", "orchard", "delete", "statefulset/orchard", "secret/orchard-secrets", check=False)


def deploy_and_try(cluster, server_image, reach):
    done = script("deploy-k8s", "--server-image", server_image, "--agent-image", "orchard-agent:1", "--wait", "60", **reach)

    def said():
        return cluster.items("/api/v1/namespaces/orchard/pods")[0].get("status")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}{said()}"
    address = said()["podIP"]
    key = cluster.kubectl("-n", "orchard", "get", "secret", "orchard-secrets", "-o",
                          'go-template={{index .data "api-keys" | base64decode}}')
    done = script("smoke-test", "--url", f"http://{address}:8000", "--image", "debian", "--timeout", "60", "--network",
                  SANDBOX_API_KEY=key.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    eventually(lambda: cluster.items("/api/v1/namespaces/sandbox-pods/pods", labelSelector="app=sandbox") == [], 60, "pods are gone")
    again = script("deploy-k8s", "--server-image", server_image, "--agent-image", "orchard-agent:1", "--wait", "60", **reach)
    assert again.returncode == 0 and "making the secret" not in again.stdout, again.stdout + again.stderr
