# SPDX-License-Identifier: MIT
"""A server of a measurement's own, from a build directory: nothing else uses it, and nothing of it stays."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from measure import Api, children, cpu_seconds


class OwnServer:
    def __init__(self, build, image=None, agent="agent/orchard-agent", **settings):
        self.build = os.path.abspath(build)
        # Not /tmp: overlayfs needs a filesystem that can be an upper layer.
        self.directory = tempfile.TemporaryDirectory(prefix="orchard-bench-", dir="/var/tmp")
        self.root = self.directory.name
        self.run_dir = tempfile.mkdtemp(prefix="orchard-bench-", dir="/run")
        self.state_dir = f"{self.root}/state"
        self.key = "bench-key"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        os.chmod(self.root, 0o755)
        os.chmod(self.run_dir, 0o755)
        if image is None:
            image = f"{self.root}/image"
            os.mkdir(image)
        with open(f"{self.root}/conf", "w") as conf:
            conf.write(f'port = {self.port}\nstate_dir = "{self.state_dir}"\nrun_dir = "{self.run_dir}"\n'
                       f'api_keys = {{"{self.key}"}}\nagent_path = "{self.build}/{agent}"\n'
                       f'default_image = "dir:{image}"\nlocal_image_paths = {{"{os.path.dirname(image)}"}}\n')
            for name, value in settings.items():
                conf.write(f'{name} = "{value}"\n')
        self.log = open(f"{self.root}/log", "ab")
        self.process = subprocess.Popen([f"{self.build}/src/orchardd", "-c", f"{self.root}/conf"],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def wait_ready(self):
        deadline = time.monotonic() + 30
        while True:
            try:
                Api(self).call("GET", "/ready")
                return
            except (OSError, SystemExit):
                if time.monotonic() > deadline or self.process.poll() is not None:
                    raise SystemExit(f"no server: {self.read_log()[-1000:]}")
                time.sleep(0.05)

    def read_log(self):
        with open(self.log.name) as log:
            return log.read()

    def pids(self):
        return [self.process.pid] + children(self.process.pid)

    def role(self, name):
        found = []
        for pid in children(self.process.pid):
            with open(f"/proc/{pid}/comm") as comm:
                if name in comm.read():
                    found.append(pid)
        return found

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)

    def __enter__(self):
        try:
            self.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.stop()
        self.log.close()
        shutil.rmtree(self.run_dir, ignore_errors=True)
        self.directory.cleanup()


class NullServer(OwnServer):
    """Its 64 sandboxes hold bench/null_agent.c: what its processes use is its own work alone."""

    def __init__(self, build, workers):
        super().__init__(build, agent="bench/null_agent", workers=workers)
        self.sandboxes = []

    def __enter__(self):
        super().__enter__()
        api = Api(self)
        self.sandboxes = [api.create() for _ in range(64)]
        return self

    def __exit__(self, *reason):
        api = Api(self)
        for sandbox in self.sandboxes:
            api.delete(sandbox)
        super().__exit__(*reason)

    def workers(self):
        return self.role("worker")

    def load(self, seconds):
        """Microseconds of CPU per exec: of the workers, of all processes of the server; and execs a second."""
        pids = self.pids()
        workers = self.workers()
        load = Load(self, self.sandboxes, 64, seconds)
        load.warm()
        before = cpu_seconds(workers), cpu_seconds(pids)
        result = load.end()
        after = cpu_seconds(workers), cpu_seconds(pids)
        cost = [(b - a) / result["answers"] * 1e6 for a, b in zip(before, after)]
        return cost + [result["answers"] / result["seconds"], result["p50_us"] / 1000]


class Load:
    """bench/load.c against one server: so many connections, each with a sandbox, one exec after the other."""

    def __init__(self, server, sandboxes, connections, seconds):
        self.process = subprocess.Popen(
            [f"{server.build}/bench/load", "-k", server.key, "-b", '{"command":"true"}', "-c", str(connections),
             "-s", str(seconds), str(server.port), "POST", "/sandboxes/@/exec"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write("\n".join(sandboxes) + "\n")
        self.process.stdin.close()

    def warm(self):
        """Waits until the part that is measured begins."""
        self.process.stdout.readline()

    def end(self):
        """What it counted: load.c tells."""
        result = json.loads(self.process.stdout.readline())
        self.process.stdout.close()
        self.process.wait()
        if result["failures"]:
            raise SystemExit(f"load: {result['failures']} answers were not 200")
        return result
