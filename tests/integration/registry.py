"""A registry on loopback for the tests, and images that are put into it."""

import base64
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from orchard_server import eventually, free_port

USER, PASSWORD = "puller", "a secret"
# "a secret" for the user "puller", as "htpasswd -B" writes it.
HTPASSWD = "puller:$2y$05$KiL3XrZKRgaPQ.apg.F/ruTj4K.a4kjqSudJRXyfsaYoqcDCkli3i"


class Registry:
    """One docker-registry process; close() ends it. locked: it wants USER and PASSWORD."""

    def __init__(self, directory, locked=False):
        self.directory = Path(directory)
        shutil.rmtree(self.directory, ignore_errors=True)  # of a test that is run again
        self.directory.mkdir(parents=True)
        self.port = free_port()
        self.host = f"127.0.0.1:{self.port}"
        self.locked = locked
        self.process = None
        config = {
            "version": "0.1",
            "log": {"level": "info"},
            "storage": {"filesystem": {"rootdirectory": str(self.directory / "data")}, "delete": {"enabled": True}},
            "http": {"addr": self.host},
        }
        if locked:
            (self.directory / "htpasswd").write_text(HTPASSWD + "\n")
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(self.directory / "htpasswd")}}
        (self.directory / "config.yml").write_text(json.dumps(config))
        (self.directory / "registries.conf").write_text(f'[[registry]]\nlocation = "{self.host}"\ninsecure = true\n')

    def start(self):
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(["docker-registry", "serve", self.directory / "config.yml"],
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def answers():
            try:
                return httpx.get(f"http://{self.host}/v2/").status_code in (200, 401)
            except httpx.TransportError:
                return False
        eventually(answers, what="the registry answers")
        return self

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait(10)
            self.process = None

    def settings(self, **more):
        """Of a server that is to use it."""
        return {"image_skopeo_args": f"--registries-conf={self.directory}/registries.conf"} | more

    def auth_file(self, password=PASSWORD):
        path = self.directory / f"auth-{hashlib.sha256(password.encode()).hexdigest()[:8]}.json"
        word = base64.b64encode(f"{USER}:{password}".encode()).decode()
        path.write_text(json.dumps({"auths": {self.host: {"auth": word}}}))
        path.chmod(0o600)
        return path

    def push(self, layout, name, *options):
        """Copies an OCI layout into it; returns the digest of what is there then."""
        command = ["skopeo", "copy", "--quiet", "--dest-tls-verify=false", *options]
        if self.locked:
            command.append(f"--dest-creds={USER}:{PASSWORD}")
        subprocess.run([*command, f"oci:{layout}", f"docker://{self.host}/{name}"], check=True,
                       capture_output=True)
        return self.digest(name)

    def digest(self, name):
        path, tag = name.rsplit(":", 1)
        answer = httpx.head(f"http://{self.host}/v2/{path}/manifests/{tag}", headers={"Accept": ", ".join((
            "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json",
            "application/vnd.docker.distribution.manifest.v2+json"))},
            auth=(USER, PASSWORD) if self.locked else None)
        assert answer.status_code == 200, answer.text
        return answer.headers["Docker-Content-Digest"]

    def put_manifest(self, name, manifest, media_type):
        path, tag = name.rsplit(":", 1)
        answer = httpx.put(f"http://{self.host}/v2/{path}/manifests/{tag}", content=json.dumps(manifest),
                           headers={"Content-Type": media_type})
        assert answer.status_code == 201, answer.text

    def blob(self, digest):
        """The file that a blob is kept in."""
        word = digest.removeprefix("sha256:")
        return self.directory / "data/docker/registry/v2/blobs/sha256" / word[:2] / word / "data"

    def requests(self, part):
        """How many GET requests with that in their line it has answered."""
        return sum(part in line and "http.request.method=GET" in line
                   for line in (self.directory / "log").read_text().splitlines() if "response completed" in line)


@pytest.fixture
def make_registry(work_dir):
    """Registries of one test's own, not started: make_registry(name, locked=False)."""
    made = []

    def make(name, **options):
        made.append(Registry(work_dir / name, **options))
        return made[-1]
    yield make
    for one in made:
        one.close()
