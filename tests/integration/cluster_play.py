"""A server whose pods are those of a FakeCluster."""

import secrets

from fake_cluster import FakeCluster
from orchard_server import Server, eventually


class Play:
    def __init__(self, work_dir, **settings):
        self.directory = work_dir / ("cluster-" + secrets.token_hex(4))
        self.directory.mkdir(mode=0o755)
        self.cluster = FakeCluster(self.directory)
        self.settings = {"driver": "kubernetes", "in_cluster": False, "kubeconfig": self.cluster.kubeconfig,
                         "pod_node_selector": [], "agent_ingress_cidrs": ["127.0.0.0/8"], "workers": 1,
                         "image_pull_failure_seconds": 1, "cleanup_interval_seconds": 1, "k8s_api_retries": 0} | settings
        self.server = Server(self.directory, "test-image", [], **self.settings)
        self.client = self.server.client

    def close(self):
        try:
            if self.server.process is not None and self.server.process.poll() is None:
                assert self.server.stop() == 0, self.server.log()
        finally:
            self.server.close()
            self.cluster.close()

    def create(self, wait=True, **body):
        name = body.setdefault("sandbox_id", "s-" + secrets.token_hex(4))
        answer = self.client.post("/sandboxes", json={"image": "default"} | body)
        assert answer.status_code == 200, answer.text
        if wait:
            self.until(name, "ready")
        return name

    def get(self, name):
        return self.client.get(f"/sandboxes/{name}").json()

    def until(self, name, status):
        def there():
            found = self.get(name)
            return found if found.get("status") == status else None
        return eventually(there, 30, lambda: f"{name} is {status}: {self.get(name)}\n{self.server.log()}")

    def delete_record(self, name):
        assert self.client.delete(f"/sandboxes/{name}").status_code == 200
        eventually(lambda: self.client.get(f"/sandboxes/{name}").status_code == 404, 30)

    def delete(self, name):
        self.delete_record(name)
        eventually(lambda: f"sandbox-{name}" not in self.cluster.pods, 30, self.server.log)
