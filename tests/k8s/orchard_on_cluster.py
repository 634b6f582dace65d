"""An orchardd of a test whose sandboxes are pods."""

import secrets
from pathlib import Path

import lab
from orchard_server import Server, children

NAMESPACE = "sandbox-pods"


class PodServer(Server):
    """Runs outside of the cluster with the rights of the account that is deployed."""

    def __init__(self, directory, cluster, account, namespace=NAMESPACE, **settings):
        secret = Path(directory) / "agent-secret"
        secret.write_text(secrets.token_hex(32) + "\n")
        super().__init__(directory, "debian", [], **{
            "driver": "kubernetes", "in_cluster": "off", "kubeconfig": account.kubeconfig, "sandbox_namespace": namespace,
            "agent_image": "orchard-agent", "agent_secret_file": secret, "agent_ingress_cidrs": [f"{lab.HOST}/32"],
            "pod_node_selector": ["workload=sandbox"], "pod_grace_seconds": 0, "failed_keep_seconds": 60,
        } | settings)
        self.cluster = cluster
        self.namespace = namespace
        self.pods_path = f"/api/v1/namespaces/{namespace}/pods"

    def pods(self):
        """Name -> pod, of those that bear our label."""
        return {pod["metadata"]["name"]: pod for pod in self.cluster.items(self.pods_path, labelSelector="app=sandbox")}

    def pod(self, sandbox_id):
        return self.cluster.get(f"{self.pods_path}/sandbox-{sandbox_id}")

    def policies(self):
        path = f"/apis/networking.k8s.io/v1/namespaces/{self.namespace}/networkpolicies"
        return {policy["metadata"]["name"]: policy for policy in self.cluster.items(path)}

    def remains(self, ahead=False):
        return [f"pod {name}" for name in self.pods()] + super().remains(ahead)

    def pids(self, role):
        return [pid for pid in children(self.process.pid) if role[:5] in Path(f"/proc/{pid}/comm").read_text()]
