"""One orchardd of a test: its settings, its life, and what it must not leave behind."""

import hashlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx

REPO = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("ORCHARD_BUILD_DIR", REPO / "build")).resolve()
# A sanitizer keeps freed memory back to find its later use: growth says nothing there.
SANITIZED = "ASAN_OPTIONS" in os.environ
ORCHARDD = BUILD / "src" / "orchardd"
AGENT = BUILD / "agent" / "orchard-agent"

LISTS = ("api_keys", "local_image_paths", "image_registries", "image_skopeo_args", "image_prefetch",
         "sandbox_seccomp_allow", "sandbox_capabilities_add", "sandbox_capabilities_drop")


def eventually(condition, timeout=15.0, what="condition"):
    """Returns the first true value of condition(); asks again until the deadline."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s: {what() if callable(what) else what}")
        time.sleep(0.02)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """Settings are given by name, as in orchard.conf; they travel as environment variables."""

    def __init__(self, directory, image, image_paths, **settings):
        tag = secrets.token_hex(4)
        self.directory = Path(directory)
        self.key = "test-key-" + tag
        self.port = free_port()
        self.run_dir = Path(f"/run/orchard-test-{tag}")
        self.state_dir = self.directory / "state"
        self.log_path = self.directory / "orchardd.log"
        self.conf_path = self.directory / "orchard.conf"
        self.process = None
        self.arguments = []
        self.launcher = []  # words before its own: a program that becomes it
        self.settings = {
            "port": self.port,
            "state_dir": self.state_dir,
            "run_dir": self.run_dir,
            "api_keys": self.key,
            "agent_path": AGENT,
            "default_image": image,
            "local_image_paths": ",".join(str(p) for p in image_paths),
            "workers": 2,
            "default_memory": "512Mi",
            "log_level": "info",
            # the whole suite with an OCI runtime: ORCHARD_LOCAL_RUNTIME=crun pytest ...
            "local_runtime": os.environ.get("ORCHARD_LOCAL_RUNTIME", "builtin"),
        }
        self.settings.update(settings)
        self.image = image
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx.Client(
            base_url=self.url,
            headers={"X-API-Key": self.key},
            timeout=60,
            limits=httpx.Limits(max_connections=256, max_keepalive_connections=64),
        )

    # --- life -----------------------------------------------------------
    def write_conf(self):
        lines = []
        for name, value in self.settings.items():
            if name in LISTS and not isinstance(value, list):
                value = [item for item in str(value).split(",") if item]
            if isinstance(value, list):
                items = ", ".join(f'"{item}"' for item in value)
                lines.append(f"{name} = {{{items}}}")
            elif isinstance(value, bool):
                lines.append(f"{name} = {'on' if value else 'off'}")
            else:
                lines.append(f'{name} = "{value}"')
        self.conf_path.write_text("\n".join(lines) + "\n")

    def environment(self):
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"):
            if name in os.environ:
                env[name] = os.environ[name]
        return env

    def spawn(self):
        """Starts the process and returns at once."""
        self.write_conf()
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                [*self.launcher, ORCHARDD, "-c", self.conf_path, *self.arguments],
                env=self.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True)
        return self.process

    def start(self):
        self.spawn()
        self.wait_ready()
        return self

    def wait_ready(self, timeout=30):
        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"orchardd exited with {self.process.returncode}:\n{self.log()}")
            try:
                return self.client.get("/ready").status_code == 200
            except httpx.TransportError:
                return False
        eventually(ready, timeout, f"server ready; log:\n{self.log()}")

    def stop(self, timeout=40):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill_all()
                raise AssertionError(f"orchardd did not stop:\n{self.log()}")
        return self.process.returncode if self.process else None

    def kill_all(self):
        """SIGKILL to every process of the server at once; the sandboxes stay."""
        pids = [self.process.pid] + [pid for role in self.processes().values() for pid in role]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait(10)

        def gone():
            return not any(os.path.exists(f"/proc/{pid}") and not is_zombie(pid) for pid in pids)
        eventually(gone, 10, "killed processes are gone")

    def kill_master(self):
        """SIGKILL to the master alone; its children see that and leave."""
        pids = [pid for role in self.processes().values() for pid in role]
        self.process.kill()
        self.process.wait(10)

        def left():  # what was just being made is an agent by now, and stays
            return [pid for pid in pids if not is_zombie(pid) and not is_agent(pid)]
        eventually(lambda: not left(), 20, lambda: "the dead master's children have left: " + ", ".join(
            Path(f"/proc/{pid}/status").read_text()[:200].replace("\n", " ") for pid in left()))

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def close(self):
        """Deletes what is left, stops, removes the directories."""
        try:
            if self.process is not None and self.process.poll() is None:
                for item in self.list_ids():
                    self.client.delete(f"/sandboxes/{item}")
                eventually(lambda: not self.remains(), 30, f"everything removed: {self.remains()}")
                assert self.stop() == 0, self.log()
                assert not self.cgroups() and not self.remains(ahead=True)
        finally:
            self.client.close()
            if self.process is not None and self.process.poll() is None:
                self.kill_all()
            for pid in self.agents():
                os.kill(pid, signal.SIGKILL)
            if (self.run_dir / "network").exists():  # the gateway of a server that was killed
                subprocess.run(["umount", "--lazy", self.run_dir / "network"], capture_output=True)
            shutil.rmtree(self.run_dir, ignore_errors=True)
            self.remove_cgroups()

    # --- looking --------------------------------------------------------
    def log(self, tail=6000):
        try:
            return self.log_path.read_text(errors="replace")[-tail:]
        except FileNotFoundError:
            return ""

    def log_lines(self):
        lines = []
        for line in self.log(10_000_000).splitlines():
            try:
                lines.append(json.loads(line))
            except ValueError:
                lines.append({"raw": line})
        return lines

    def processes(self):
        """Role name -> pids, from the server's own process tree."""
        roles = {}
        for pid in children(self.process.pid):
            try:
                name = Path(f"/proc/{pid}/comm").read_text().strip()
            except (FileNotFoundError, ProcessLookupError):
                continue
            for role in ("worker", "gateway", "reaper", "spawner", "controller"):
                if role[:7] in name:  # the kernel keeps 15 characters
                    roles.setdefault(role, []).append(pid)
                    if role == "spawner":
                        roles.setdefault("helper", []).extend(
                            child for child in children(pid) if is_called(child, "orchard-helper"))
                        roles.setdefault("blank", []).extend(child for child in children(pid) if is_blank(child))
        return roles

    def replace(self, role):
        """Kills every process of a role; returns when each has a successor. One that dies is still listed for a while."""
        old = set(self.processes()[role])
        for pid in old:
            os.kill(pid, signal.SIGKILL)

        def are_replaced():
            now = set(self.processes().get(role, []))
            # What a helper makes has its name for a moment, and nobody makes that anew.
            lost = {pid for pid in old if f"helper {pid} has died" in self.log(1_000_000)} if role == "helper" else old
            return not old & now and lost and len(now - old) >= len(lost)
        eventually(are_replaced, 40, lambda: f"{role} came back: {old}, {self.processes()}\n{self.log()}")

    def agents(self):
        """Pids of live agents that belong to this server (by its run directory's sockets)."""
        found = []
        for path in (self.state_dir / "sandboxes").glob("*/state.json"):
            try:
                state = json.loads(path.read_text())
            except (OSError, ValueError):
                continue
            pid = int(state.get("pid") or 0)
            if pid > 0 and is_agent(pid):
                found.append(pid)
        return found

    def cgroups(self):
        """Where its sandboxes' groups lie; nowhere after a stop that left no sandbox."""
        name = "orchard-" + hashlib.sha256(os.fsencode(self.state_dir)).hexdigest()[:12]
        return [path for depth in ("", "*/", "*/*/") for path in Path("/sys/fs/cgroup").glob(depth + name)]

    def remove_cgroups(self):
        """Those of a server that was killed."""
        def removed():
            for top in self.cgroups():
                for path, _, _ in os.walk(top, topdown=False):
                    try:
                        os.rmdir(path)
                    except OSError:  # who was killed is still ending
                        pass
            return not self.cgroups()
        eventually(removed, 10, lambda: f"no cgroup is left: {self.cgroups()}")

    def list_ids(self):
        ids, cursor = [], None
        while True:
            params = {"limit": 1000} | ({"cursor": cursor} if cursor else {})
            page = self.client.get("/sandboxes", params=params).json()
            ids += [item["sandbox_id"] for item in page["sandboxes"]]
            cursor = page.get("next_cursor")
            if not cursor:
                return ids

    def remains(self, ahead=False):
        """What sandboxes have left behind, as words; empty when there is nothing. ahead: also what is made ahead."""
        left = []
        for name in ("sandboxes", "trash"):
            directory = self.state_dir / name
            if directory.is_dir():
                left += [f"{name}/{entry.name}" for entry in directory.iterdir() if ahead or not entry.name.startswith("-")]
        for name in ("sandboxes", "runtime"):
            directory = self.run_dir / name
            if directory.is_dir():
                left += [f"run/{name}/{entry.name}" for entry in directory.iterdir() if ahead or not entry.name.startswith("-")]
        return left

    # --- using ----------------------------------------------------------
    def create(self, image="default", wait=True, **fields):
        answer = self.client.post("/sandboxes", json={"image": image} | fields)
        assert answer.status_code == 200, answer.text
        box = Sandbox(self, answer.json()["sandbox_id"])
        if wait:
            box.wait_ready()
        return box


class Sandbox:
    def __init__(self, server, sandbox_id):
        self.server = server
        self.client = server.client
        self.id = sandbox_id

    @property
    def url(self):
        return f"/sandboxes/{self.id}"

    def get(self):
        return self.client.get(self.url)

    def wait_ready(self, timeout=60):
        answer = self.client.get(f"{self.url}/wait", params={"timeout": timeout}, timeout=timeout + 60)
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "ready", answer.json()
        return answer.json()

    def post_exec(self, command, **fields):
        return self.client.post(f"{self.url}/exec", json={"command": command, "wait": True} | fields, timeout=200)

    def exec(self, command, **fields):
        """The job of a waited command."""
        answer = self.post_exec(command, **fields)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def out(self, command, **fields):
        """stdout of a command that must succeed."""
        job = self.exec(command, **fields)
        assert job["status"] == "succeeded", job
        return job["stdout"]

    def start(self, command, **fields):
        """The job id of a command that nobody waits for."""
        answer = self.client.post(f"{self.url}/exec", json={"command": command, "wait": False} | fields)
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "queued"
        return answer.json()["job_id"]

    def job(self, job_id):
        answer = self.client.get(f"/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_job(self, job_id, timeout=60):
        answer = self.client.get(f"/jobs/{job_id}/wait", params={"timeout": timeout})
        assert answer.status_code == 200, answer.text
        return answer.json()

    def wait_running(self, job_id):
        return eventually(lambda: (self.job(job_id)["status"] == "running") or None, 20, "job runs")

    def delete(self):
        answer = self.client.delete(self.url)
        assert answer.status_code == 200, answer.text

    def agent_pid(self):
        state = json.loads((self.server.state_dir / "sandboxes" / self.id / "state.json").read_text())
        return int(state["pid"])


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def is_zombie(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def is_called(pid, name):
    try:
        return Path(f"/proc/{pid}/comm").read_text().startswith(name)
    except (FileNotFoundError, ProcessLookupError):
        return False


def is_agent(pid):
    return is_called(pid, "orchard-agent")


def is_blank(pid):
    """An init that was made ahead, and is of no sandbox yet."""
    return is_called(pid, "orchard-blank")
