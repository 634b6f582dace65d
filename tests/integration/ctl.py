"""orchardctl as a shell would start it."""

import os
import subprocess

from orchard_server import BUILD

ORCHARDCTL = BUILD / "tools" / "orchardctl" / "orchardctl"


class Ctl:
    """Runs orchardctl against one server, with a home directory of its own."""

    def __init__(self, server, home):
        self.env = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8",
                    "SANDBOX_BASE_URL": server.url, "SANDBOX_API_KEY": server.key}
        for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
            if name in os.environ:
                self.env[name] = os.environ[name]

    def start(self, *words, env=None, **fields):
        """The running process, with pipes."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | fields
        return subprocess.Popen([ORCHARDCTL, *words], env=self.env | (env or {}), **pipes)

    def run(self, *words, input=None, env=None, timeout=120):
        """The ended process; stdout and stderr as bytes."""
        pipe = subprocess.DEVNULL if input is None else subprocess.PIPE
        process = self.start(*words, env=env, stdin=pipe)
        out, err = process.communicate(input, timeout)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def out(self, *words, **fields):
        """stdout as text, of a run that must go well and say nothing else."""
        done = self.run(*words, **fields)
        assert (done.returncode, done.stderr) == (0, b""), done
        return done.stdout.decode()
