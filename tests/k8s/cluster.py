"""A control plane of Kubernetes for one test run: etcd, the API server with RBAC, the controllers that matter here."""

import json
import os
import secrets
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

import lab
from orchard_server import eventually

BUILD = Path(__file__).with_name("cluster") / "build"
# Deployments and what they make, clean-up by owner, namespaces, service accounts.
CONTROLLERS = ("garbage-collector-controller", "namespace-controller", "serviceaccount-controller",
               "root-ca-certificate-publisher-controller", "deployment-controller", "replicaset-controller",
               "statefulset-controller", "daemonset-controller", "pod-garbage-collector-controller",
               "endpointslice-controller", "endpoints-controller", "disruption-controller")
# Apart from the others, and only while a test looks at it: a loaded machine's node is taken for lost.
NODE_CONTROLLERS = ("node-lifecycle-controller", "taint-eviction-controller")


def built(script, *programs):
    """Where that script has put what it builds, once for each machine; skips where it can't."""
    done = subprocess.run([script, *programs], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip(f"NO CLUSTER ON THIS MACHINE: {done.stderr.strip()}")
    if done.returncode != 0:
        raise RuntimeError(f"{script}: exit {done.returncode}\n{done.stderr[-3000:]}")
    return Path(done.stdout.strip())


def binaries(*further):
    """Where kube-apiserver, kube-controller-manager, kubectl and further programs of the version in go.mod lie."""
    return built(BUILD, *further)


class Cluster:
    def __init__(self, directory, programs):
        self.directory = Path(directory)
        self.programs = Path(programs)
        self.url = f"https://{lab.HOST}:{lab.PORT}"
        self.ca = self.directory / "pki" / "ca.crt"
        self.admin_token = secrets.token_hex(16)
        self.admin = self.kubeconfig("admin", self.admin_token)
        self.processes = {}
        self.api = None

    # --- life -----------------------------------------------------------
    def start(self):
        self.make_certificates()
        (self.directory / "tokens.csv").write_text(f'{self.admin_token},admin,1,"system:masters"\n')
        self.start_etcd()
        self.start_apiserver()
        self.api = self.client(self.admin_token)
        eventually(self.ready, 120, lambda: f"the API server answers; its log:\n{self.log('kube-apiserver')}")
        self.start_controllers()
        eventually(lambda: self.get("/api/v1/namespaces/default/serviceaccounts/default"), 60,
                   lambda: f"service accounts are made; log:\n{self.log('kube-controller-manager')}")
        return self

    def spawn(self, name, *arguments, called=None):
        program = self.programs / name
        command = [program if program.exists() else name, *arguments]
        self.processes[called or name] = lab.spawn(command, self.directory / f"{called or name}.log")

    def start_etcd(self):
        data = self.directory / "etcd"
        data.mkdir()
        # Its fsyncs would wait for every other test's.
        subprocess.run(["mount", "-t", "tmpfs", "etcd", data], check=True)
        self.spawn("etcd", "--data-dir", data, "--listen-client-urls", "http://127.0.0.1:2379",
                   "--advertise-client-urls", "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380",
                   "--log-level", "warn")

    def start_apiserver(self):
        pki = self.directory / "pki"
        self.spawn(
            "kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--secure-port={lab.PORT}", f"--advertise-address={lab.HOST}",
            f"--tls-cert-file={pki}/apiserver.crt", f"--tls-private-key-file={pki}/apiserver.key", f"--client-ca-file={self.ca}",
            f"--token-auth-file={self.directory}/tokens.csv", "--authorization-mode=RBAC", "--allow-privileged=true",
            f"--service-account-key-file={pki}/sa.pub", f"--service-account-signing-key-file={pki}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16",
            # One connection in fifty requests is on its way out, as behind a load balancer that evens out its servers.
            "--feature-gates=ImageVolume=true", "--goaway-chance=0.02")

    def start_controllers(self):
        pki = self.directory / "pki"
        self.spawn(
            "kube-controller-manager", f"--kubeconfig={self.admin}", f"--controllers={','.join(CONTROLLERS)}",
            f"--service-account-private-key-file={pki}/sa.key", f"--root-ca-file={self.ca}", "--leader-elect=false",
            "--secure-port=0")

    def watch_nodes(self, grace):
        """From now on a node that says nothing for `grace` seconds is taken for lost (usually 50), and what runs on it
        with it. Until stop("node-watch")."""
        self.spawn("kube-controller-manager", f"--kubeconfig={self.admin}", f"--controllers={','.join(NODE_CONTROLLERS)}",
                   "--leader-elect=false", "--secure-port=0", "--node-monitor-period=1s", f"--node-monitor-grace-period={grace}s",
                   "--node-eviction-rate=100", called="node-watch")

    def stop(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait(10)

    def close(self):
        for name in reversed(list(self.processes)):
            self.stop(name)
        subprocess.run(["umount", "--lazy", self.directory / "etcd"], capture_output=True)

    def ready(self):
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise AssertionError(f"{name} ended with {process.returncode}:\n{self.log(name)}")
        try:
            return self.api.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def log(self, name, tail=3000):
        return (self.directory / f"{name}.log").read_text(errors="replace")[-tail:]

    # --- who may do what ------------------------------------------------
    def make_certificates(self):
        pki = self.directory / "pki"
        pki.mkdir()

        def openssl(*words):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=pki)

        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
        openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=test-ca", "-days", "2")
        names = f"IP:{lab.HOST},IP:127.0.0.1,IP:10.96.0.1,DNS:localhost,DNS:kubernetes.default.svc"
        self.sign("apiserver", "/CN=kube-apiserver", f"subjectAltName={names}")
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "sa.key")
        openssl("pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub")

    def sign(self, name, subject, extension="extendedKeyUsage=clientAuth"):
        """A certificate of the cluster's authority: pki/NAME.crt and NAME.key."""
        pki = self.directory / "pki"
        (pki / f"{name}.ext").write_text(extension + "\n")
        subprocess.run(["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        f"{name}.key", "-out", f"{name}.csr", "-subj", subject], check=True, capture_output=True, cwd=pki)
        subprocess.run(["openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                        "-days", "2", "-out", f"{name}.crt", "-extfile", f"{name}.ext"], check=True, capture_output=True, cwd=pki)
        return pki / f"{name}.crt", pki / f"{name}.key"

    def kubeconfig(self, name, token, namespace="default"):
        """A kubeconfig file of that token; everybody may read it, as servers of tests run as another user."""
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority": str(self.ca)}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": name, "context": {"cluster": "test", "user": name, "namespace": namespace}}],
        }))
        path.chmod(0o644)
        return path

    def account_token(self, namespace, account):
        answer = self.api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token",
                               json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        assert answer.status_code == 201, answer.text
        return answer.json()["status"]["token"]

    def allow(self, manifest, namespace):
        """Another namespace of sandboxes, where the account has the rights that the manifest gives it in sandbox-pods."""
        text = self.kubectl("apply", "--dry-run=client", "-o", "json", "-f", manifest)
        objects = json.loads(text.replace('"sandbox-pods"', f'"{namespace}"'))["items"]
        for one in objects:
            if one["kind"].startswith("Cluster"):
                one["metadata"]["name"] = f"orchard-{namespace}"
                if "roleRef" in one:
                    one["roleRef"]["name"] = f"orchard-{namespace}"
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [space, *objects]}))

    def client(self, token):
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {token}"}, timeout=60,
                            verify=ssl.create_default_context(cafile=str(self.ca)))

    # --- using ----------------------------------------------------------
    def kubectl(self, *words, stdin=None, check=True):
        done = subprocess.run([self.programs / "kubectl", "--kubeconfig", self.admin, *map(str, words)],
                              input=stdin, capture_output=True, text=True, timeout=120,
                              env={"PATH": os.environ["PATH"], "HOME": str(self.directory)})
        if check and done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout if check else done

    def get(self, path, **params):
        """The object or list at that path; None when there is none."""
        answer = self.api.get(path, params=params)
        if answer.status_code == 404:
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()

    def items(self, path, **params):
        return (self.get(path, **params) or {"items": []})["items"]

    def patch(self, path, body, kind="merge-patch"):
        answer = self.api.patch(path, content=json.dumps(body), headers={"Content-Type": f"application/{kind}+json"})
        assert answer.status_code == 200, answer.text
        return answer.json()

