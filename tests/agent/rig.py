# SPDX-License-Identifier: MIT
"""Starts a real orchard-agent, as PID 1 where that is possible, and talks to it."""

import base64
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid

TOKEN = "secret-token-of-the-test"
UID = "11111111-2222-3333-4444-555555555555"


class Connection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path, timeout):
        super().__init__("agent", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def cgroup_root():
    """A cgroup2 directory below which we may make our own, or None."""
    for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        if os.access(root + "/cgroup.procs", os.W_OK) and os.path.exists(root + "/cgroup.subtree_control"):
            return root
    return None


class Agent:
    """One agent. with_init: in a PID namespace of its own (needs root)."""

    def __init__(self, binary, cgroup=None, root=None, with_init=True, oom_file=None, preexec=None, spool=None,
                 **config):
        self.dir = tempfile.mkdtemp(prefix="agent-test-")
        self.path = self.dir + "/sock"
        self.cgroup = cgroup
        self.fence = 0
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.path)
        listener.listen(1024)
        settings = {"sandbox_id": "sb-test", "sandbox_uid": UID, "token": TOKEN, "env": ["LANG=C"],
                    "user": "", "working_dir": "/", "cgroup_fd": -1, "oom_fd": -1}
        settings.update(config)
        passed = [listener.fileno()]
        if cgroup:
            self.cgroup_fd = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY)
            settings["cgroup_fd"] = self.cgroup_fd
            passed.append(self.cgroup_fd)
        if spool:
            spool_fd = os.open(spool, os.O_RDONLY | os.O_DIRECTORY)
            settings["spool_fd"] = spool_fd
            passed.append(spool_fd)
        if oom_file:
            settings["oom_fd"] = oom_file.fileno()
            passed.append(oom_file.fileno())
        read_end, write_end = os.pipe()
        passed.append(read_end)
        argv = [binary, "--listen-fd", str(listener.fileno()), "--config-fd", str(read_end)]
        if with_init:
            argv = ["unshare", "--pid", "--fork"] + (["--root", root] if root else ["--mount-proc"]) + argv
        self.log = open(self.dir + "/log", "w+")
        try:
            self.process = subprocess.Popen(argv, pass_fds=passed, stdin=subprocess.DEVNULL, stdout=self.log,
                                            stderr=self.log, preexec_fn=preexec,
                                            env={"AGENT_SECRET": "leak-me", "PATH": os.environ["PATH"]})
        except subprocess.SubprocessError:
            listener.close()
            self.log.close()
            shutil.rmtree(self.dir)
            raise
        finally:
            os.close(read_end)
        os.write(write_end, json.dumps(settings).encode())
        os.close(write_end)
        listener.close()
        if cgroup:
            os.close(self.cgroup_fd)
        if spool:
            os.close(spool_fd)
        self.pid = self.process.pid
        deadline = time.monotonic() + 10
        while self.call("GET", "/health", timeout=10)[0] != 200:
            if time.monotonic() > deadline:
                raise RuntimeError("agent does not answer: " + self.read_log())
        if with_init:
            with open("/proc/%d/task/%d/children" % (self.pid, self.pid)) as children:
                self.pid = int(children.read().split()[0])

    def read_log(self):
        self.log.flush()
        self.log.seek(0)
        return self.log.read()

    def close(self):
        if self.process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.kill(self.pid, signal.SIGKILL)
                self.process.wait(10)
        self.log.close()
        shutil.rmtree(self.dir)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """Sends, and returns the connection, whose getresponse() is still to be called."""
        connection = Connection(self.path, timeout)
        sent = {"X-Orchard-Token": TOKEN, "X-Orchard-Sandbox": UID}
        if headers is not None:
            sent = headers
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, sent)
        return connection

    def call(self, method, path, body=None, headers=None, timeout=60):
        connection = self.request(method, path, body, headers, timeout)
        try:
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def body(self, command, **fields):
        self.fence += 1
        body = {"job_id": str(uuid.uuid4()), "fence": self.fence, "command": command, "timeout_ms": 30000}
        body.update(fields)
        return body

    def run(self, command, **fields):
        """The ended job, its streams decoded as `stdout` and `stderr` bytes; acknowledged."""
        body = self.body(command, **fields)
        status, job = self.call("POST", "/exec", body)
        if status != 200:
            raise AssertionError("exec answered %d: %s" % (status, job))
        self.call("POST", "/ack", {"ack": [body["job_id"]]})
        return decode(job)

    def output(self, job_id, timeout=70, **query):
        """The answer of /output, its streams decoded as `data`."""
        path = "/jobs/%s/output?%s" % (job_id, "&".join("%s=%s" % item for item in query.items()))
        status, answer = self.call("GET", path, timeout=timeout)
        if status != 200:
            raise AssertionError("output answered %d: %s" % (status, answer))
        for name in ("stdout", "stderr"):
            if name in answer:
                answer[name]["data"] = base64.b64decode(answer[name].pop("base64"))
        return answer

    def write(self, job_id, data, eof=False, write_id=None, timeout=60):
        """Status and answer of one write to stdin."""
        path = "/jobs/%s/stdin?write_id=%s%s" % (job_id, write_id or uuid.uuid4(), "&eof=1" if eof else "")
        return self.call("POST", path, data, timeout=timeout)

    def start(self, command, **fields):
        """Starts it and does not wait: (job id, connection)."""
        body = self.body(command, **fields)
        return body["job_id"], self.request("POST", "/exec", body)


def decode(job):
    for name in ("stdout", "stderr"):
        job[name] = base64.b64decode(job[name + "_base64"])
    return job
