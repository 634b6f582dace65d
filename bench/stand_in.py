# SPDX-License-Identifier: MIT
"""A stand-in for a cluster in C, `fakek8s`, with an agent that runs nothing for each pod, and a look at when pods ran and were ready."""

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

PODS = "/api/v1/pods?labelSelector=app%3Dsandbox&watch=true&resourceVersion=0"
NAME = re.compile(rb'"name":"sandbox-([^"]+)"')
# What the cluster says of a pod, first the first.
STEPS = {"runs": b'"running":{', "ready": b'{"type":"Ready","status":"True"}'}


class StandIn:
    """programs: the directory of fakek8s and nullagent."""

    def __init__(self, programs, directory):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        programs = os.path.abspath(programs)
        self.processes = [subprocess.Popen([
            f"{programs}/fakek8s", "--port", self.url.rpartition(":")[2], "--agent-cmd", f"{programs}/nullagent {{ip}} {{port}}",
            "--work-dir", f"{directory}/pods"])]
        self.kubeconfig = directory / "kubeconfig"
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "bench",
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "clusters": [{"name": "bench", "cluster": {"server": self.url}}],
            "users": [{"name": "bench", "user": {"token": "token"}}]}))
        self.wait_up()
        self.processes.append(subprocess.Popen([sys.executable, __file__, self.url], stdout=subprocess.PIPE, text=True))
        self.processes[-1].stdout.readline()

    def wait_up(self):
        deadline = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(self.url + "/readyz"):
                return
            if time.monotonic() > deadline or self.processes[0].poll() is not None:
                raise SystemExit("no stand-in for a cluster")
            time.sleep(0.02)

    def times(self, count):
        """For each of STEPS, by the names of the sandboxes: time.monotonic()."""
        told, watcher = {step: {} for step in STEPS}, self.processes[1]
        patience = threading.Timer(30, watcher.kill)
        patience.start()
        while len(told["ready"]) < count:
            line = watcher.stdout.readline().split()
            if not line:
                raise SystemExit(f"the stand-in says of {len(told['ready'])} pods alone that they are ready")
            told[line[0]][line[1]] = float(line[2])
        patience.cancel()
        return told

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()
            if process.stdout:
                process.stdout.close()


def tell(url):
    """A process of its own, so that nothing else holds it up: a line for each pod and step, when the cluster says so."""
    told = {step: set() for step in STEPS}
    with urllib.request.urlopen(url + PODS) as stream:
        print("watching", flush=True)
        for line in stream:
            now = time.monotonic()
            for step, words in STEPS.items():
                if words in line and (name := NAME.search(line)[1]) not in told[step]:
                    told[step].add(name)
                    print(step, name.decode(), now, flush=True)


if __name__ == "__main__":
    tell(sys.argv[1])
