# SPDX-License-Identifier: MIT
"""Drives the real orchard-agent as a container runtime starts it: told by one variable, reached by TCP.

usage: test_container.py BINARY [unittest arguments]
"""

import filecmp
import hashlib
import http.client
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import rig

BINARY = ""
IS_ROOT = os.geteuid() == 0
NOBODY = 65534
DIGEST = hashlib.sha256(rig.TOKEN.encode()).hexdigest()
IDENTITY = {"sandbox_id": "sb-test", "sandbox_uid": rig.UID, "token_sha256": DIGEST}


class Container(rig.Agent):
    """One agent. Its address is its own, so that its port may be that of every other."""

    numbers = iter(range(1, 250))

    def __init__(self, environment, cwd="/", preexec=None, **config):
        self.dir = tempfile.mkdtemp(prefix="agent-test-")
        pid = os.getpid()
        self.address = "127.%d.%d.%d" % (100 + (pid >> 8) % 100, pid & 255, next(self.numbers))
        self.fence = 0
        settings = IDENTITY | {"listen": "tcp:%s:9090" % self.address} | config
        self.log = open(self.dir + "/log", "w+")
        self.process = subprocess.Popen([BINARY], cwd=cwd, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        preexec_fn=preexec, env=environment | {"ORCHARD_AGENT_CONFIG": json.dumps(settings)})
        self.pid = self.process.pid
        deadline = time.monotonic() + 30
        while not self.answers():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("agent does not answer: " + self.read_log())
            time.sleep(0.01)

    def answers(self):
        try:
            return self.call("GET", "/health")[0] == 200
        except ConnectionRefusedError:
            return False

    def request(self, method, path, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection(self.address, 9090, timeout=timeout)
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data,
                           {"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID} if headers is None else headers)
        return connection

    def out(self, command, **fields):
        job = self.run(command, **fields)
        if (job["verdict"], job["exit_code"]) != ("exited", 0):
            raise AssertionError(job)
        return job["stdout"].decode().strip()


class Case(unittest.TestCase):
    def start(self, environment=None, **config):
        agent = Container({"PATH": "/usr/bin:/bin"} if environment is None else environment, **config)
        self.addCleanup(agent.close)
        return agent

    def directory(self):
        path = tempfile.mkdtemp(prefix="agent-test-")
        self.addCleanup(shutil.rmtree, path)
        os.chmod(path, 0o755)
        return path


class Surroundings(Case):
    def test_commands_have_the_images_environment_and_the_sandboxs_over_it(self):
        agent = self.start({"PATH": "/usr/bin:/bin", "FROM_IMAGE": "1", "BOTH": "image", "HOSTNAME": "sandbox-a",
                            "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_PORT": "tcp://10.96.0.1:443"},
                           env=["BOTH=sandbox", "OWN=2"])
        seen = dict(line.split("=", 1) for line in agent.out(["env"]).splitlines())
        self.assertEqual((seen["FROM_IMAGE"], seen["BOTH"], seen["OWN"], seen["HOSTNAME"]), ("1", "sandbox", "2", "sandbox-a"))
        self.assertEqual(seen["PATH"], "/usr/bin:/bin")
        self.assertFalse([name for name in seen if name.startswith(("KUBERNETES_", "ORCHARD_AGENT"))], seen)

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_the_configuration_is_in_no_environment(self):
        agent = self.start()
        with open("/proc/%d/environ" % agent.pid, "rb") as environ:
            self.assertNotIn(DIGEST.encode(), environ.read())

    def test_path_gets_the_tools_at_its_end(self):
        tools = self.directory()
        with open(tools + "/only-here", "w") as tool:
            tool.write("#!/bin/sh\necho tool\n")
        os.chmod(tools + "/only-here", 0o755)
        agent = self.start(path_append=tools)
        self.assertEqual(agent.out(["only-here"]), "tool")
        self.assertEqual(agent.out("echo $PATH"), "/usr/bin:/bin:" + tools)
        bare = self.start({}, path_append=tools)
        self.assertEqual(bare.out(["only-here"]), "tool")
        self.assertTrue(bare.out("echo $PATH").endswith("/bin:" + tools))

    def test_the_working_directory_is_the_images_unless_told(self):
        place, told = self.directory(), self.directory() + "/new"
        self.assertEqual(self.start(cwd=place, working_dir="").out("pwd"), place)
        self.assertEqual(self.start(cwd=place).out("pwd"), place)
        self.assertEqual(self.start(cwd=place, working_dir=told).out("pwd"), told)

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_each_user_has_a_home_of_his_own(self):
        agent = self.start({"PATH": "/usr/bin:/bin", "HOME": "/root"})
        self.assertEqual(agent.out("echo $HOME"), "/root")
        self.assertNotEqual(agent.out("echo $HOME", user="nobody", cwd="/"), "/root")
        self.assertEqual(self.start({"PATH": "/usr/bin:/bin", "HOME": "/tmp"}).out("echo $HOME", user="nobody"), "/tmp")


class Identity(Case):
    def test_who_may_ask(self):
        agent = self.start()
        right = {"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID}
        wrong = [{}, {"X-Orchard-Sandbox": rig.UID}, right | {"X-Orchard-Token": ""}, right | {"X-Orchard-Token": DIGEST},
                 right | {"X-Orchard-Token": rig.TOKEN + "x"}, right | {"X-Orchard-Sandbox": "other"}]
        for headers in wrong:
            status, answer = agent.call("GET", "/health", headers=headers)
            self.assertEqual((status, answer["code"]), (403, "denied"), headers)
        self.assertEqual(agent.call("GET", "/health", headers=right)[0], 200)

    def test_configurations_that_are_refused(self):
        for change, words in (({"token_sha256": None}, "token"), ({"token_sha256": "abc"}, "token_sha256"),
                              ({"token": "both"}, "token"), ({"token_sha256": DIGEST.upper()}, "token_sha256"),
                              ({"listen": "unix:/x"}, "listen"), ({"listen": None}, "where to listen"),
                              ({"listen": "tcp:somewhere"}, "somewhere"), ({"sandbox_uid": None}, "sandbox_uid")):
            text = json.dumps(IDENTITY | {"listen": "tcp:127.0.0.1:1"} | change)
            ended = subprocess.run([BINARY], env={"ORCHARD_AGENT_CONFIG": text}, capture_output=True, timeout=60, check=False)
            self.assertEqual(ended.returncode, 1, text)
            self.assertIn(words, ended.stderr.decode())
        ended = subprocess.run([BINARY], env={}, capture_output=True, timeout=60, check=False)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("ORCHARD_AGENT_CONFIG", ended.stderr.decode())


@unittest.skipUnless(IS_ROOT, "needs root")
class Unprivileged(Case):
    """The USER of the image is not root: the agent is what its commands are."""

    def agent(self, **config):
        def become():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return self.start(preexec=become, **config)

    def test_commands_and_files_are_that_users(self):
        agent, place = self.agent(), self.directory()
        os.chown(place, NOBODY, NOBODY)
        self.assertEqual(agent.out("id -u; id -g").split(), [str(NOBODY), str(NOBODY)])
        self.assertEqual(agent.out("id -u", user=str(NOBODY)), str(NOBODY))
        self.assertEqual(agent.call("PUT", "/files?path=%s/f&user=nobody" % place, b"x")[0], 200)
        self.assertEqual(os.stat(place + "/f").st_uid, NOBODY)

    def test_another_user_is_refused_in_words(self):
        agent = self.agent()
        for status, answer in (agent.call("POST", "/exec", agent.body("id", user="root")),
                               agent.call("PUT", "/files?path=/tmp/f&user=0", b"x"),
                               agent.call("GET", "/archive?path=/tmp&user=root")):
            self.assertEqual((status, answer["code"]), (422, "invalid"), answer)
            self.assertIn("runs as user 65534, and only root can act as another", answer["detail"])
        self.assertEqual(agent.out("echo still here"), "still here")


class Install(Case):
    def install(self, *args):
        return subprocess.run([BINARY, "--install", *args], env={}, capture_output=True, timeout=60, check=False)

    def test_the_agent_itself(self):
        place = self.directory()
        for _ in range(2):
            self.assertEqual(self.install(place).returncode, 0)
        self.assertEqual(os.listdir(place), ["orchard-agent"])
        self.assertTrue(filecmp.cmp(BINARY, place + "/orchard-agent", shallow=False))
        self.assertEqual(stat.S_IMODE(os.stat(place + "/orchard-agent").st_mode), 0o755)
        self.assertEqual(subprocess.run([place + "/orchard-agent", "--version"], check=True, capture_output=True).returncode, 0)

    def test_a_tree(self):
        tree = self.directory()
        place = tree + "/target"
        os.makedirs(tree + "/bin/deep")
        os.mkdir(place)
        for name, mode in (("bin/tool", 0o755), ("bin/setuid", 0o4755), ("bin/deep/data", 0o640), ("empty", 0o644)):
            with open("%s/%s" % (tree, name), "wb") as made:
                made.write(b"" if name == "empty" else name.encode() * 100000)
            os.chmod("%s/%s" % (tree, name), mode)
        os.symlink("../nowhere", tree + "/bin/link")
        os.mkfifo(tree + "/fifo")
        os.chmod(tree + "/bin/deep", 0o555)
        for _ in range(2):
            ended = self.install(place, tree)
            self.assertEqual((ended.returncode, ended.stderr), (0, b""))
            os.chmod(place + "/bin/deep", 0o755)
        self.assertEqual(sorted(os.listdir(place)), ["bin", "empty"])
        self.assertEqual(sorted(os.listdir(place + "/bin")), ["deep", "link", "setuid", "tool"])
        self.assertEqual(os.readlink(place + "/bin/link"), "../nowhere")
        self.assertEqual(stat.S_IMODE(os.stat(place + "/bin/setuid").st_mode), 0o755)
        self.assertTrue(filecmp.cmp(tree + "/bin/deep/data", place + "/bin/deep/data", shallow=False))
        os.chmod(tree + "/bin/deep", 0o755)

    def test_faults_are_told(self):
        for args, words in ((("/nonexistent",), "/nonexistent"), ((self.directory(), "/nonexistent"), "/nonexistent"),
                            ((BINARY,), os.path.basename(BINARY))):
            ended = self.install(*args)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(words, ended.stderr.decode())


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
