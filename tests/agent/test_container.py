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
CAN_MOUNT = IS_ROOT and subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0
NOBODY = 65534
DIGEST = hashlib.sha256(rig.TOKEN.encode()).hexdigest()
IDENTITY = {"sandbox_id": "sb-test", "sandbox_uid": rig.UID, "token_sha256": DIGEST}


class Container(rig.Agent):
    """One agent. Its address is its own, so that its port may be that of every other."""

    numbers = iter(range(1, 250))

    def __init__(self, environment, cwd="/", preexec=None, wrap=(), **config):
        self.dir = tempfile.mkdtemp(prefix="agent-test-")
        pid = os.getpid()
        self.address = "127.%d.%d.%d" % (100 + (pid >> 8) % 100, pid & 255, next(self.numbers))
        self.fence = 0
        settings = IDENTITY | {"listen": "tcp:%s:9090" % self.address} | config
        self.log = open(self.dir + "/log", "w+")
        self.process = subprocess.Popen([*wrap, BINARY], cwd=cwd, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
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


@unittest.skipUnless(CAN_MOUNT, "needs root, and a mount namespace")
class Usage(Case):
    """Real groups of the test's own, mounted for the agent as a container runtime does it."""

    SHOW = """
        groups=$1
        for one in $groups; do echo $$ >"${one%=*}/cgroup.procs" || exit 1; done
        shift
        exec unshare --mount sh -c '
            mount -t tmpfs none /mnt || exit 1
            for one in $1; do
                mkdir -p "/mnt/${one#*=}" && mount --bind "${one%=*}" "/mnt/${one#*=}" || exit 1
            done
            mount --rbind /mnt /sys/fs/cgroup && exec "$2"' sh "${SHOWN:-$groups}" "$1"
    """

    def group(self, parent):
        """A new group, removed when what was in it has ended."""
        path = "%s/agent-test-%d-%s" % (parent, os.getpid(), os.urandom(4).hex())
        os.mkdir(path)

        def remove():
            deadline = time.monotonic() + 10
            while os.path.isdir(path):
                try:
                    os.rmdir(path)
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(0.01)
        self.addCleanup(remove)
        return path

    def usage(self, groups, shown=None):
        """Starts an agent in these groups, which sees them, or others, at /sys/fs/cgroup; {directory: place below that}."""
        words = [" ".join("%s=%s" % item for item in places.items()) for places in (groups, shown or groups)]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "SHOWN": words[1]}
        agent = self.start(environment, wrap=["sh", "-c", self.SHOW, "sh", words[0]])
        status, usage = agent.call("GET", "/usage")
        self.assertEqual(status, 200, usage)
        return agent, usage

    def controllers(self):
        """Of version 1: {controller: directory}."""
        found = {}
        with open("/proc/self/mountinfo") as mounts:
            for line in mounts:
                fields, _, kind = line.partition(" - ")
                place = fields.split()[4]
                named = os.path.basename(place) in ("memory", "pids", "cpuacct", "cpu,cpuacct")
                if kind.startswith("cgroup ") and named and os.access(place, os.W_OK):
                    found[os.path.basename(place)] = place
        return found

    def test_groups_of_version_1(self):
        controllers = self.controllers()
        if len(controllers) < 3:
            self.skipTest("no cgroups of version 1")
        groups = {self.group(place): name for name, place in controllers.items()}
        agent, before = self.usage(groups)
        self.assertEqual(set(before), {"cpu_us", "memory_bytes", "memory_peak_bytes", "pids"})
        self.assertEqual(before["pids"], 1)
        self.assertGreater(before["memory_bytes"], 0)
        self.assertGreaterEqual(before["memory_peak_bytes"], before["memory_bytes"])
        self.follows(agent, before)

    def test_groups_of_version_2(self):
        root = rig.cgroup_root()
        if root is None:
            self.skipTest("no writable cgroup2")
        group = self.group(root)
        counted = {name for name, file in (("cpu_us", "cpu.stat"), ("memory_bytes", "memory.current"),
                                           ("memory_peak_bytes", "memory.peak"), ("pids", "pids.current"))
                   if os.path.exists(group + "/" + file)}
        self.assertIn("cpu_us", counted)
        agent, before = self.usage({group: "."})
        self.assertEqual(set(before), counted)
        self.follows(agent, before)

    def follows(self, agent, before):
        agent.run("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
        self.assertGreater(agent.call("GET", "/usage")[1]["cpu_us"], before["cpu_us"])
        if "pids" not in before:
            return
        job, connection = agent.start("sleep 600 & sleep 600", timeout_ms=600000)
        deadline = time.monotonic() + 30
        while agent.call("GET", "/usage")[1]["pids"] < before["pids"] + 2:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.assertEqual(agent.call("POST", "/jobs/%s/cancel" % job)[0], 200)
        connection.close()

    def test_groups_of_others_or_of_the_machine_are_not_told(self):
        root = rig.cgroup_root()
        versions = [self.controllers(), {".": root} if root is not None else {}]
        for places in filter(None, versions):
            own = {self.group(place): name for name, place in places.items()}
            _, usage = self.usage(own, {self.group(place): name for name, place in places.items()})
            self.assertEqual(usage, {})
            _, usage = self.usage(own, {place: name for name, place in places.items()})
            self.assertEqual(usage, {})
        if not any(versions):
            self.skipTest("no writable cgroups")

    def test_without_cgroups_there_is_nothing_to_tell(self):
        _, usage = self.usage({}, {})
        self.assertEqual(usage, {})

    def test_others_may_not_ask_and_nothing_is_changed_by_it(self):
        agent, _ = self.usage({}, {})
        self.assertEqual(agent.call("GET", "/usage", headers={})[0], 403)
        self.assertEqual(agent.call("POST", "/usage", {})[0], 405)


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
