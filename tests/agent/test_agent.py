# SPDX-License-Identifier: MIT
"""Drives the real orchard-agent through the faults it must survive.

usage: test_agent.py BINARY [unittest arguments]
"""

import base64
import concurrent.futures
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

import rig

BINARY = ""
IS_ROOT = os.geteuid() == 0
CAN_BE_INIT = IS_ROOT and subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"],
                                         stderr=subprocess.DEVNULL, check=False).returncode == 0


def has_loopback_of_ipv6():
    try:
        with open("/proc/net/if_inet6") as addresses:
            return any(line.startswith("0" * 31 + "1 ") for line in addresses)
    except FileNotFoundError:
        return False


def until(condition, seconds=10):
    """Waits for what another process will make true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("did not happen in %d s" % seconds)
        time.sleep(0.01)


def names_below(pid):
    """What the children of that process are called."""
    found = []
    with open("/proc/%d/task/%d/children" % (pid, pid)) as children:
        for child in children.read().split():
            with open("/proc/%s/comm" % child) as comm:
                found.append(comm.read().strip())
    return found


def memory_kib(pid, field):
    with open("/proc/%d/%s" % (pid, "status" if field.startswith("Vm") else "smaps_rollup")) as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    raise AssertionError("no " + field)


class Case(unittest.TestCase):
    """One agent per class; it must be alive and the same at the end of each test."""

    use_cgroup = False
    settings = {}

    @classmethod
    def setUpClass(cls):
        cls.cgroup = None
        if cls.use_cgroup:
            root = rig.cgroup_root() if IS_ROOT else None
            if root is None:
                raise unittest.SkipTest("no writable cgroup2")
            cls.cgroup = "%s/agent-test-%d-%s" % (root, os.getpid(), cls.__name__)
            os.makedirs(cls.cgroup + "/jobs")
            os.makedirs(cls.cgroup + "/agent")
        cls.agent = rig.Agent(BINARY, cgroup=cls.cgroup, with_init=CAN_BE_INIT, **cls.settings)
        cls.epoch = cls.agent.call("GET", "/health")[1]["epoch"]

    @classmethod
    def tearDownClass(cls):
        cls.agent.close()
        if cls.cgroup:
            for name in os.listdir(cls.cgroup + "/jobs"):
                if os.path.isdir(cls.cgroup + "/jobs/" + name):
                    until(lambda where=cls.cgroup + "/jobs/" + name: not cls.populated(where))
                    os.rmdir(cls.cgroup + "/jobs/" + name)
            for name in ("jobs", "agent", ""):
                os.rmdir(cls.cgroup + "/" + name)

    @staticmethod
    def populated(cgroup):
        with open(cgroup + "/cgroup.procs") as procs:
            return procs.read() != ""

    def tearDown(self):
        status, health = self.agent.call("GET", "/health")
        self.assertEqual((status, health["epoch"]), (200, self.epoch))

    def run_command(self, command, **fields):
        return self.agent.run(command, **fields)

    def out(self, command, **fields):
        job = self.run_command(command, **fields)
        self.assertEqual((job["verdict"], job["exit_code"], job["error"]), ("exited", 0, None), job)
        return job["stdout"].decode()

    def alive(self, marker):
        """How many processes of the sandbox sleep for that unusual number of seconds."""
        return int(self.out(["sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o '[s]leep %s' "
                             "| wc -l" % marker]))


class Ending(Case):
    """When a command is finished, and what dies with it. Without a cgroup."""

    def test_B001_background_child_does_not_hold_the_answer(self):
        began = time.monotonic()
        job = self.run_command("sleep 3001 & echo started", timeout_ms=20000)
        self.assertLess(time.monotonic() - began, 2)
        self.assertEqual((job["exit_code"], job["stdout"]), (0, b"started\n"))
        self.assertEqual(self.alive(3001), 1)

    def test_B001_background_writer_gets_no_sigpipe(self):
        self.run_command("rm -f /tmp/agent-b001; (trap 'echo pipe >/tmp/agent-b001' PIPE; i=0; "
                         "while [ $i -lt 300 ]; do echo $i; i=$((i+1)); done; echo done >/tmp/agent-b001) & true")
        self.assertEqual(self.out("while ! [ -s /tmp/agent-b001 ]; do sleep 0.01; done; cat /tmp/agent-b001; "
                                  "rm /tmp/agent-b001", timeout_ms=10000), "done\n")

    def test_B001_endless_background_writer_starves_nobody(self):
        began = time.monotonic()
        job = self.run_command("yes & echo $! >&2", timeout_ms=20000)
        self.assertLess(time.monotonic() - began, 5)
        for _ in range(5):
            self.assertEqual(self.out("echo ok"), "ok\n")
        self.out(["kill", job["stderr"].decode().strip()])

    def test_B003_output_at_the_end_is_complete(self):
        for _ in range(30):
            job = self.run_command("head -c 1048576 /dev/zero | tr '\\0' x", max_output_bytes=2 << 20)
            self.assertEqual((len(job["stdout"]), job["stdout_truncated"]), (1 << 20, False))

    def test_B004_escaped_grandchild_does_not_hold_the_end(self):
        began = time.monotonic()
        job = self.run_command("setsid sleep 3004 & sleep 3004", timeout_ms=500)
        self.assertLess(time.monotonic() - began, 3)
        self.assertEqual(job["verdict"], "timed_out")
        self.assertEqual(self.out("echo ok"), "ok\n")
        self.assertEqual(self.alive(3004), 0)

    def test_B005_each_command_has_a_fresh_shell(self):
        job = self.run_command("cat > /tmp/agent-b005 <<'EOF'\nhi $HOME\nEOF\nset -e; false; echo no")
        self.assertEqual((job["exit_code"], job["stdout"]), (1, b""))
        text, flags = self.out("cat /tmp/agent-b005; rm /tmp/agent-b005; echo $-").splitlines()
        self.assertEqual(text, "hi $HOME")
        self.assertNotIn("e", flags)

    def test_B007_timeout_kills_children(self):
        job = self.run_command("bash -c 'sleep 3007 & sleep 3007 & wait'; echo x", timeout_ms=500)
        self.assertEqual((job["verdict"], job["exit_code"]), ("timed_out", 124))
        self.assertEqual(self.alive(3007), 0)

    def test_B007_orphans_of_a_double_fork_die_too(self):
        job = self.run_command("(setsid sh -c 'sleep 3017 & sleep 3017' &) ; sleep 3017", timeout_ms=500)
        self.assertEqual(job["verdict"], "timed_out")
        self.assertEqual(self.alive(3017), 0)

    def test_B007_what_earlier_commands_left_stays(self):
        self.run_command("setsid sleep 3027 >/dev/null 2>&1 &")
        self.run_command("sleep 3037", timeout_ms=300)
        self.assertEqual(self.alive(3027), 1)

    def test_B008_timeout_spares_the_agent(self):
        self.run_command("sleep 3008", timeout_ms=300)
        self.assertEqual(self.out("echo alive"), "alive\n")

    def test_B011_partial_output_is_kept(self):
        job = self.run_command("echo one; echo two >&2; sleep 3011", timeout_ms=500)
        self.assertEqual((job["verdict"], job["exit_code"], job["stdout"], job["stderr"]),
                         ("timed_out", 124, b"one\n", b"two\n"))
        self.assertIn("timed out after 0.5s", job["error"])

    def test_B012_timeout_ends_the_command_itself(self):
        began = time.monotonic()
        self.run_command("sleep 1; touch /tmp/agent-b012", timeout_ms=300)
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual(self.out("sleep 1; ls /tmp/agent-b012 2>/dev/null | wc -l"), "0\n")

    def test_B013_stopped_and_immune_processes_die(self):
        began = time.monotonic()
        job = self.run_command("trap '' TERM INT HUP; (kill -STOP $BASHPID) & sleep 3013", timeout_ms=300,
                               kill_grace_ms=300)
        self.assertEqual(job["verdict"], "timed_out")
        self.assertLess(time.monotonic() - began, 3)
        self.assertEqual(self.out("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') [T] ' || true"), "0\n")

    def test_B013_grace_lets_the_tree_clean_up(self):
        job = self.run_command("trap 'echo bye; exit 0' TERM; while :; do sleep 0.02; done", timeout_ms=300,
                               kill_grace_ms=10000)
        self.assertEqual((job["verdict"], job["exit_code"], job["stdout"]), ("timed_out", 124, b"bye\n"))
        self.assertLess(job["usage"]["wall_s"], 5)

    def test_B014_timeout_values(self):
        for value in (0, -1, 0.5, "5", 1e18, 99999999999999999999, None):
            status, _ = self.agent.call("POST", "/exec", self.agent.body("true", timeout_ms=value))
            self.assertEqual(status, 422, value)

    def test_B048_fork_bomb_ends_at_its_timeout(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        job = self.run_command("ulimit -u 100; :(){ :|:& };:; sleep 3048", timeout_ms=1000, user="54321")
        self.assertEqual((job["verdict"], job["exit_code"]), ("timed_out", 124))
        self.assertEqual(self.out("cat /proc/[0-9]*/status 2>/dev/null | grep -c '^Uid:.54321' || true"), "0\n")

    def test_cancel_ends_the_whole_tree(self):
        job_id, waiting = self.agent.start("sleep 3100 & sleep 3100")
        until(lambda: self.agent.call("GET", "/jobs/" + job_id)[0] == 200)
        status, job = self.agent.call("POST", "/jobs/%s/cancel" % job_id)
        self.assertEqual((status, job["state"], job["verdict"]), (200, "ended", "canceled"))
        self.assertEqual(waiting.getresponse().status, 200)
        waiting.close()
        self.assertEqual(self.alive(3100), 0)
        self.assertEqual(self.agent.call("POST", "/jobs/%s/cancel" % job_id)[1]["verdict"], "canceled")
        self.assertEqual(self.agent.call("POST", "/jobs/%s/cancel" % uuid.uuid4())[0], 404)

    def test_client_that_leaves_does_not_end_the_command(self):
        job_id, waiting = self.agent.start("sleep 0.3; echo end")
        until(lambda: self.agent.call("GET", "/jobs/" + job_id)[0] == 200)
        waiting.close()
        status, job = self.agent.call("GET", "/jobs/%s?wait_ms=10000" % job_id)
        self.assertEqual((status, job["state"], rig.decode(job)["stdout"]), (200, "ended", b"end\n"))

    def test_B021_running_job_has_no_exit_code(self):
        job_id, waiting = self.agent.start("echo early; sleep 0.5; exit 5")
        until(lambda: self.agent.call("GET", "/jobs/" + job_id)[0] == 200)
        job = self.agent.call("GET", "/jobs/%s?wait_ms=10" % job_id)[1]
        self.assertEqual((job["state"], job["exit_code"], job["verdict"]), ("running", None, None))
        job = self.agent.call("GET", "/jobs/%s?wait_ms=10000" % job_id)[1]
        self.assertEqual((job["state"], job["exit_code"]), ("ended", 5))
        waiting.close()


class EndingWithCgroup(Ending):
    """The same, where a cgroup keeps the account."""

    use_cgroup = True

    def test_daemon_without_any_trace_dies_with_its_command(self):
        job = self.run_command("setsid env -i /bin/sh -c '(sleep 3200 &) & sleep 3200' & sleep 3200", timeout_ms=500)
        self.assertEqual((job["verdict"], job["error"]), ("timed_out", "Command timed out after 0.5s"))
        self.assertEqual(self.alive(3200), 0)

    def groups(self):
        """The commands' cgroups by name: does something live there?"""
        jobs = self.cgroup + "/jobs"
        return {name: self.populated(jobs + "/" + name) for name in os.listdir(jobs)
                if os.path.isdir(jobs + "/" + name)}

    def test_cgroup_of_an_ended_command_serves_the_next(self):
        self.out("true")
        before = self.groups()
        for _ in range(20):
            self.out("true")
        self.assertEqual(self.groups(), before)

    def test_cgroup_that_others_have_killed_serves_too(self):
        """Some kernels kill what is born into such a group."""
        self.out("true")
        for name in self.groups():
            path = "%s/jobs/%s/cgroup.kill" % (self.cgroup, name)
            if os.path.exists(path):
                with open(path, "w") as kill:
                    kill.write("1")
        self.assertEqual(self.out("echo alive"), "alive\n")

    def occupied(self):
        return {name for name, populated in self.groups().items() if populated}

    def test_cgroup_with_a_background_process_serves_nobody(self):
        others = self.occupied()
        job = self.run_command("sleep 3201 >/dev/null 2>&1 & echo $!")
        taken = self.occupied()
        self.assertEqual(len(taken - others), 1)
        for _ in range(3):
            self.assertEqual(self.run_command("sleep 3202", timeout_ms=100)["verdict"], "timed_out")
        self.assertEqual(self.alive(3201), 1)
        self.assertEqual(self.occupied(), taken)
        self.out(["kill", job["stdout"].decode().strip()])
        until(lambda: self.occupied() == others)

    def test_idle_cgroups_are_few(self):
        held = [self.agent.start("sleep 0.3", lane="wide-%d" % i)[1] for i in range(12)]
        for connection in held:
            connection.getresponse().read()
            connection.close()
        self.out("true")
        until(lambda: len(self.groups()) <= 4 + len(self.occupied()))

    def test_parallel_lanes_never_share_a_cgroup(self):
        """Kills in one lane while commands come and go in others: nobody else's command may die."""
        def lane(name, count, command, wanted, **fields):
            for _ in range(count):
                body = self.agent.body(command, lane=name, **fields)
                job = self.agent.call("POST", "/exec", body)[1]
                self.agent.call("POST", "/ack", {"ack": [body["job_id"]]})
                results.append((job["verdict"] == wanted, name, job["verdict"]))

        results = []
        threads = [threading.Thread(target=lane, args=("kill", 15, "sleep 3203", "timed_out"),
                                    kwargs={"timeout_ms": 20})]
        threads += [threading.Thread(target=lane, args=("work-%d" % i, 60, "sleep 0.005; (true &); true", "exited"))
                    for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([result for result in results if not result[0]], [])
        self.assertEqual(len(results), 15 + 3 * 60)

    def test_usage_counts_background_processes(self):
        burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
        usage = self.run_command("(setsid sh -c '%s; touch /tmp/agent-burnt' &); "
                                 "until [ -e /tmp/agent-burnt ]; do sleep 0.02; done; rm /tmp/agent-burnt" % burn)["usage"]
        self.assertGreater(usage["cpu_user_s"] + usage["cpu_sys_s"], 0.05)
        idle = self.run_command("sleep 0.1")["usage"]
        self.assertLess(idle["cpu_user_s"] + idle["cpu_sys_s"], 0.05)

    def test_no_marker_in_the_environment(self):
        self.assertNotIn("ORCHARD", self.out("env"))


class Running(Case):
    """What a command gets, and what is told about it."""

    settings = {"env": ["FOO=bar", "LANG=C"], "working_dir": "/tmp/agent-test-%d/work" % os.getpid()}

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(os.path.dirname(cls.settings["working_dir"]))

    def test_B016_stdin_is_empty(self):
        job = self.run_command("cat; read x; echo rc=$?; /usr/bin/env cat", timeout_ms=5000)
        self.assertEqual((job["verdict"], job["stdout"]), ("exited", b"rc=1\n"))

    def test_stdin_arrives_whole(self):
        data = os.urandom(300000)
        job = self.run_command("cat", stdin_base64=base64.b64encode(data).decode())
        self.assertEqual(job["stdout"], data)
        self.assertEqual(self.agent.call("POST", "/exec", self.agent.body("cat", stdin_base64="@@@"))[0], 422)

    def test_B019_signal_deaths(self):
        for command, code, number in (("kill -9 $$", 137, 9), ("bash -c 'kill -9 $$'; exit $?", 137, None),
                                      ("kill -SEGV $$", 139, 11)):
            job = self.run_command(command)
            self.assertEqual((job["exit_code"], job["signal"], job["error"]), (code, number, None), command)

    def test_B023_output_is_bytes(self):
        self.assertEqual(self.run_command("printf '\\377\\376ok\\0\\n'")["stdout"], b"\xff\xfeok\x00\n")

    def test_B026_huge_output_has_bounded_memory(self):
        job = self.run_command("head -c 300000000 /dev/zero | tr '\\0' x; echo END; echo END >&2",
                               max_output_bytes=1 << 20, timeout_ms=120000)
        self.assertEqual((job["exit_code"], job["stdout_bytes"], job["stdout_truncated"]), (0, 300000004, True))
        self.assertEqual(job["stderr"], b"END\n")
        half = 1 << 19
        self.assertEqual(job["stdout"], b"x" * half + b"\n...[%d bytes omitted]...\n" % (300000004 - (1 << 20)) +
                         b"x" * (half - 4) + b"END\n")
        self.assertLess(memory_kib(self.agent.pid, "VmHWM"), 24 << 10)

    def test_B028_login_shell_changes_no_stderr(self):
        home = tempfile.mkdtemp(prefix="agent-home-")
        with open(home + "/.bashrc", "w") as start:
            start.write("case $- in *i*) ;; *) return;; esac\nexport ACTIVE=yes\nfun() { echo fun; }\ncat\n")
        text = ("echo $ACTIVE; fun; cat; printf 'a\\rb\\n' >&2; echo 'bash: no job control in this shell' >&2; "
                "exit 3")
        for profile in ("", ". ~/.bashrc\n"):
            with open(home + "/.profile", "w") as start:
                start.write(profile)
            job = self.run_command(text, login_shell=True, env={"HOME": home},
                                   stdin_base64=base64.b64encode(b"input\n").decode())
            self.assertEqual((job["exit_code"], job["stdout"]), (3, b"yes\nfun\ninput\n"))
            self.assertEqual(job["stderr"], b"a\rb\nbash: no job control in this shell\n")
        shutil.rmtree(home)

    def test_login_shell_dies_by_term(self):
        job = self.run_command("sleep 3300", login_shell=True, timeout_ms=1000, kill_grace_ms=20000,
                               env={"HOME": "/nonexistent"})
        self.assertEqual(job["verdict"], "timed_out")
        self.assertLess(job["usage"]["wall_s"], 10)

    def test_login_shell_tells_what_start_files_did(self):
        with tempfile.TemporaryDirectory() as home:
            def run(text, command, **fields):
                with open(home + "/.bashrc", "w") as rc:
                    rc.write(text)
                return self.run_command(command, login_shell=True, env={"HOME": home}, stdin_base64="aW4K", **fields)

            for text, how in (("exit 3", "exit status 3"), ("exec true", "exit status 0"), ("kill -9 $$", "signal 9")):
                job = run(text, "echo out; cat; echo err >&2; exit 5")
                self.assertEqual((job["verdict"], job["exit_code"], job["stdout"], job["stderr"]),
                                 ("exited", 5, b"out\nin\n", b"err\n"))
                self.assertEqual(job["error"],
                                 "start files ended the login shell (%s): the command ran without them" % how)
            job = run("exec sleep 3301", "echo out", timeout_ms=300)
            self.assertEqual((job["verdict"], job["exit_code"], job["stdout"]), ("timed_out", 124, b""))
            self.assertIn("its start files had not ended", job["error"])
            job = run("exit 3", "sleep 3302", timeout_ms=300)
            self.assertEqual(job["verdict"], "timed_out")
            self.assertNotIn("start files", job["error"])
            job = run("", "sleep 3303", timeout_ms=300)
            self.assertNotIn("start files", job["error"])
        self.assertEqual([self.alive(number) for number in (3301, 3302, 3303)], [0, 0, 0])

    def test_cancel_while_start_files_run(self):
        with tempfile.TemporaryDirectory() as home:
            with open(home + "/.bashrc", "w") as rc:
                rc.write("touch %s/there; exec sleep 3304" % home)
            job_id, waiting = self.agent.start("touch %s/ran" % home, login_shell=True, env={"HOME": home})
            until(lambda: os.path.exists(home + "/there"))
            job = self.agent.call("POST", "/jobs/%s/cancel" % job_id)[1]
            waiting.getresponse().read()
            waiting.close()
            self.assertEqual(job["verdict"], "canceled")
            self.assertFalse(os.path.exists(home + "/ran"))

    def test_B030_sizes_up_to_the_kernels_limits(self):
        largest = "x" * 131071
        self.assertEqual(self.out(["/bin/sh", "-c", "echo ${#1} ${#2}", "sh", largest, largest]), "131071 131071\n")
        self.assertEqual(self.out("echo ${#V}", env={"V": "x" * (131071 - 2)}), "131069\n")
        for command, env, told in (
                (["/bin/echo", "a", largest + "x"], {}, "item 2 of the command has 131072 bytes: the kernel passes at "
                                                        "most 131071 in one argument"),
                (["/bin/echo"], {"VAR": largest}, "environment variable VAR has 131075 bytes with its name: the kernel "
                                                  "passes at most 131071"),
                (["/bin/echo"] + [largest] * 60, {}, "arguments and environment have "),
                ("true", {"V%d" % i: "x" * 100000 for i in range(70)}, "arguments and environment have ")):
            job = self.run_command(command, env=env)
            self.assertEqual((job["verdict"], job["exit_code"]), ("never_started", 126))
            self.assertIn(told, job["error"])
            self.assertEqual(job["stderr"].decode(), job["error"] + "\n")

    def test_B030_text_longer_than_an_argument(self):
        for shell in (None, "sh"):
            command = "echo " + "x" * 200000 + " | wc -c; echo $0 ${o-unset}; ls /proc/self/fd | tr '\\n' ' '; exit 4"
            job = self.run_command(command)
            self.assertEqual((job["exit_code"], job["stdout"], job["stderr"]), (4, b"200001\nbash unset\n0 1 2 3 ", b""))
        job = self.run_command(["echo", "x" * 200000])
        self.assertEqual((job["verdict"], job["exit_code"]), ("never_started", 126))
        self.assertIn("200000 bytes", job["error"])

    def test_B032_environment_values_are_exact(self):
        values = {"A": "l1\nl2", "B": "$HOME `id` $(id)", "C": "x=y 'q'"}
        self.assertEqual(self.out("printf '%s|' \"$A\" \"$B\" \"$C\"", env=values), "|".join(values.values()) + "|")

    def test_B033_environment_names(self):
        for name in ("", "A=B", "A\0"):
            self.assertEqual(self.agent.call("POST", "/exec", self.agent.body("true", env={name: "x"}))[0], 422, name)
        self.out(["env"], env={"1X": "y", "BASH_FUNC_ls%%": "() { echo hacked; }"})
        self.assertNotIn("hacked", self.out("ls -d /; env"))

    def test_nul_is_refused(self):
        for fields in ({"command": "a\0b"}, {"command": ["a\0b"]}, {"cwd": "/\0"}, {"env": {"A": "\0"}}):
            body = dict(self.agent.body("true"), **fields)
            self.assertEqual(self.agent.call("POST", "/exec", body)[0], 422, fields)

    def test_B034_nothing_of_the_agent_leaks(self):
        text = self.out("env; tr '\\0' '\\n' < /proc/$PPID/environ; cat /proc/$PPID/environ; cat /proc/$PPID/cmdline; true")
        self.assertIn("FOO=bar", text)
        for secret in (rig.TOKEN, "leak-me", "AGENT_SECRET"):
            self.assertNotIn(secret, self.out("env"))
        self.assertNotIn(rig.TOKEN, text)

    def test_B034_agent_memory_is_closed_to_its_user(self):
        if not CAN_BE_INIT:
            self.skipTest("needs root")
        job = self.run_command("cat /proc/1/environ /proc/1/mem", user="65534")
        self.assertIn(b"denied", job["stderr"])

    def test_B036_argv_is_exact(self):
        self.assertEqual(self.out(["printf", "%s|", "a  b", "*", "$HOME", ""]), "a  b|*|$HOME||")
        for command in ([], [1], 1, None, {}):
            self.assertEqual(self.agent.call("POST", "/exec", self.agent.body(command))[0], 422, command)

    def test_not_found_and_not_executable(self):
        for command, code in ((["no-such-program"], 127), (["/no/such"], 127), (["/etc/passwd"], 126), ([""], 127),
                              ("no-such-program", 127)):
            job = self.run_command(command)
            self.assertEqual((job["exit_code"], bool(job["stderr"])), (code, True), command)

    def test_script_without_interpreter_is_not_run(self):
        with open(self.settings["working_dir"] + "/script", "w") as script:
            script.write("echo hi\n")
        os.chmod(script.name, 0o755)
        job = self.run_command([script.name])
        self.assertEqual((job["exit_code"], job["verdict"]), (126, "never_started"))

    def test_B038_cwd(self):
        work = self.settings["working_dir"]
        os.makedirs(work + "/sub/dir", exist_ok=True)
        for cwd, reason in (("/no/such", "cwd does not exist: /no/such"), ("/etc/passwd", "cwd is not a directory: /etc/passwd"),
                            ("none", "cwd does not exist: none")):
            job = self.run_command("pwd; touch ran", cwd=cwd)
            self.assertEqual((job["verdict"], job["exit_code"], job["error"]), ("never_started", 126, reason))
            self.assertEqual((job["stdout"], job["stderr"].decode()), (b"", reason + "\n"))
        self.assertFalse(os.path.exists(work + "/ran"))
        self.assertEqual(self.out("pwd", cwd="sub/dir"), work + "/sub/dir\n")
        self.assertEqual(self.out("pwd"), work + "\n")
        self.assertEqual(self.out("pwd", cwd="/usr"), "/usr\n")

    def test_users(self):
        if not IS_ROOT:
            self.skipTest("needs root")
        self.assertEqual(self.out("id -u; id -g; id -G; echo $HOME", user="1234:77"), "1234\n77\n77\n/\n")
        self.assertEqual(self.out("id -u; id -g; echo $HOME", user="0"), "0\n0\n/root\n")
        self.assertEqual(self.run_command("true", user="no-such-user")["verdict"], "never_started")
        self.assertEqual(self.out("echo out > /dev/stdout; umask", user="1234"), "out\n0022\n")
        os.makedirs("/tmp/agent-closed-%d" % os.getpid(), mode=0o700)
        job = self.run_command("true", user="1234", cwd="/tmp/agent-closed-%d" % os.getpid())
        os.rmdir("/tmp/agent-closed-%d" % os.getpid())
        self.assertEqual((job["verdict"], job["exit_code"]), ("never_started", 126))

    def test_B046_orphans_are_reaped(self):
        for _ in range(60):
            self.run_command("(sleep 0.01 &); (setsid sleep 0.01 &); true")
        until(lambda: self.out("cat /proc/[0-9]*/stat 2>/dev/null | grep -c ') [Z] ' || true") == "0\n")

    def test_B049_score_and_limits(self):
        self.assertEqual(self.out("cat /proc/self/oom_score_adj; ulimit -c; ulimit -n"),
                         "0\n0\n%s" % subprocess.check_output(["sh", "-c", "ulimit -n"]).decode())

    def test_B051_only_three_descriptors(self):
        held = [self.agent.start("sleep 1", lane="held-%d" % i)[1] for i in range(10)]
        self.assertEqual(self.out("ls /proc/self/fd | wc -l"), "4\n")
        for connection in held:
            connection.getresponse().read()
            connection.close()

    def test_signals_are_default_and_unblocked(self):
        text = self.out(["grep", "^Sig[BI]", "/proc/self/status"])
        for line in text.splitlines():
            self.assertEqual(int(line.split()[1], 16), 0, text)

    def test_usage_is_told(self):
        usage = self.run_command("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")["usage"]
        self.assertGreater(usage["wall_s"], 0)
        self.assertGreater(usage["cpu_user_s"] + usage["cpu_sys_s"], 0)
        self.assertGreater(usage["max_rss_bytes"], 1 << 19)

    def test_usage_is_not_the_agents_memory(self):
        small = self.run_command(["/bin/true"])["usage"]["max_rss_bytes"]
        for _ in range(4):
            self.run_command("head -c 30000000 /dev/zero", max_output_bytes=32 << 20)
        self.assertLess(self.run_command(["/bin/true"])["usage"]["max_rss_bytes"], small + (4 << 20))
        big = self.run_command("x=$(head -c 20000000 /dev/zero | tr '\\0' x); :")["usage"]["max_rss_bytes"]
        self.assertGreater(big, 20000000)


class Asking(Case):
    """Who may ask; the same job never runs twice; lanes and fences."""

    settings = {"journal_jobs": 50, "journal_bytes": 1 << 20}

    def test_403_without_the_right_headers(self):
        right = {"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID}
        for headers in ({}, {"X-Orchard-Token": rig.TOKEN}, dict(right, **{"X-Orchard-Token": "x"}),
                        dict(right, **{"X-Orchard-Sandbox": str(uuid.uuid4())})):
            for method, path in (("GET", "/health"), ("POST", "/exec"), ("GET", "/nowhere")):
                status, answer = self.agent.call(method, path, headers=headers)
                self.assertEqual((status, answer["code"]), (403, "denied"))

    def test_routes(self):
        self.assertEqual(self.agent.call("GET", "/nowhere")[0], 404)
        self.assertEqual(self.agent.call("GET", "/exec")[0], 405)
        ages = []
        for _ in range(2):
            answer = self.agent.call("GET", "/jobs/%s" % uuid.uuid4())[1]
            self.assertEqual(answer["code"], "unknown_job")
            ages.append(answer["age_ms"])
        self.assertTrue(0 <= ages[0] <= ages[1], ages)
        self.assertEqual(self.agent.call("GET", "/jobs/nonsense")[1]["code"], "unknown_job")
        for body in (b"", b"[]", b"{", b'{"a":1,"a":2}', b"{}"):
            self.assertEqual(self.agent.call("POST", "/exec", body)[0], 422)

    def test_a_barred_job_never_starts(self):
        body = self.agent.body("echo x")
        bar = "/jobs/%s/bar" % body["job_id"]
        self.assertEqual(self.agent.call("POST", bar)[1]["code"], "unknown_job")
        self.assertEqual(self.agent.call("POST", "/exec", body)[1]["code"], "forgotten_job")
        body = self.agent.body("echo y")
        self.assertEqual(self.agent.call("POST", "/exec", body)[0], 200)
        status, job = self.agent.call("POST", "/jobs/%s/bar" % body["job_id"])
        self.assertEqual((status, job["state"], rig.decode(job)["stdout"]), (200, "ended", b"y\n"))
        self.agent.call("POST", "/ack", {"ack": [body["job_id"]]})

    def test_parallel_posts_of_one_job_run_it_once(self):
        mark = tempfile.mktemp(prefix="agent-once-")
        body = self.agent.body("echo x >> %s; sleep 0.3; cat %s" % (mark, mark))
        with concurrent.futures.ThreadPoolExecutor(100) as pool:
            answers = list(pool.map(lambda _: self.agent.call("POST", "/exec", body), range(100)))
        os.unlink(mark)
        self.assertEqual({status for status, _ in answers}, {200})
        self.assertEqual({rig.decode(job)["stdout"] for _, job in answers}, {b"x\n"})
        again = dict(body, fence=body["fence"] + 1000)
        self.assertEqual(rig.decode(self.agent.call("POST", "/exec", again)[1])["stdout"], b"x\n")
        self.agent.call("POST", "/ack", {"ack": [body["job_id"]]})
        status, answer = self.agent.call("POST", "/exec", dict(body, fence=body["fence"] + 1001))
        self.assertEqual((status, answer["code"]), (410, "forgotten_job"))
        self.assertEqual(self.agent.call("GET", "/jobs/" + body["job_id"])[0], 404)
        self.agent.fence += 2000

    def test_busy_and_stale(self):
        self.agent.fence += 10
        job_id, waiting = self.agent.start("sleep 1", lane="l")
        until(lambda: self.agent.call("GET", "/jobs/" + job_id)[0] == 200)
        status, answer = self.agent.call("POST", "/exec", self.agent.body("true", lane="l"))
        self.assertEqual((status, answer["code"], answer["job_id"]), (409, "busy", job_id))
        self.assertEqual(self.agent.run("echo other", lane="m")["stdout"], b"other\n")
        jobs = self.agent.call("GET", "/jobs")[1]["jobs"]
        fence = [job["fence"] for job in jobs if job["job_id"] == job_id][0]
        waiting.getresponse().read()
        waiting.close()
        for old in (fence, fence - 1):
            status, answer = self.agent.call("POST", "/exec", self.agent.body("true", lane="l", fence=old))
            self.assertEqual((status, answer["code"], answer["newest_fence"]), (409, "stale_fence", fence))
        self.assertGreaterEqual(self.agent.call("GET", "/health")[1]["newest_fence"], fence)

    def test_journal_is_bounded_and_forgets_nothing_unacknowledged(self):
        ids = []
        for _ in range(60):
            body = self.agent.body(["true"])
            status, answer = self.agent.call("POST", "/exec", body)
            if status == 503:
                break
            ids.append(body["job_id"])
        self.assertEqual((status, answer["code"]), (503, "journal_full"))
        self.assertEqual(self.agent.call("GET", "/jobs/" + ids[0])[0], 200)
        body = self.agent.body("echo room", ack=[job["job_id"] for job in self.agent.call("GET", "/jobs")[1]["jobs"]])
        status, job = self.agent.call("POST", "/exec", body)
        self.assertEqual((status, rig.decode(job)["stdout"]), (200, b"room\n"))
        self.assertEqual(self.agent.call("GET", "/health")[1]["journal"]["jobs"], 1)
        self.agent.call("POST", "/ack", {"ack": [body["job_id"]]})

    def test_journal_bytes_are_bounded(self):
        ids = []
        for _ in range(10):
            body = self.agent.body("head -c 300000 /dev/zero")
            status, answer = self.agent.call("POST", "/exec", body)
            if status != 200:
                break
            ids.append(body["job_id"])
        self.assertEqual((status, answer["code"], len(ids)), (503, "journal_full", 4))
        self.agent.call("POST", "/ack", {"ack": ids})
        self.assertEqual(self.agent.call("GET", "/health")[1]["journal"]["bytes"], 0)
        self.assertEqual(self.agent.call("POST", "/ack", {"ack": ["x"]})[0], 422)


class Starting(unittest.TestCase):
    """Arguments, the configuration, TCP."""

    @staticmethod
    def write_config(**fields):
        with tempfile.NamedTemporaryFile("w", prefix="agent-config-", delete=False) as config:
            json.dump(dict({"sandbox_id": "sb-test", "sandbox_uid": rig.UID, "token": rig.TOKEN}, **fields), config)
        return config.name

    def test_tcp_and_a_file(self):
        self.listen_at("127.0.0.1:%d", "127.0.0.1")

    def test_every_address_is_of_both_families(self):
        self.listen_at("[::]:%d", "127.0.0.1", *(["::1"] if has_loopback_of_ipv6() else []))

    def listen_at(self, where, *reached):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = self.write_config()
        process = subprocess.Popen([BINARY, "--listen", where % port, "--config", config],
                                   stderr=subprocess.DEVNULL)
        headers = {"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID}

        def answers(address):
            connection = http.client.HTTPConnection(address, port, timeout=10)
            try:
                connection.request("GET", "/health", headers=headers)
                return connection.getresponse().status == 200
            except ConnectionRefusedError:
                return False
            finally:
                connection.close()

        for address in reached:
            until(lambda address=address: answers(address))
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(10), 128 + signal.SIGTERM)
        os.unlink(config)

    def test_wrong_configurations_are_refused(self):
        for fields in ({"token": ""}, {"token": None}, {"working_dir": "x"}, {"cgroup_fd": 77}, {"env": [1]}):
            config = self.write_config(**fields)
            done = subprocess.run([BINARY, "--listen", "127.0.0.1:1", "--config", config], stderr=subprocess.PIPE,
                                  timeout=10, check=False)
            os.unlink(config)
            self.assertEqual(done.returncode, 1, fields)
            self.assertIn(b"configuration", done.stderr)

    def test_arguments(self):
        self.assertEqual(subprocess.run([BINARY, "--version"], stdout=subprocess.PIPE, check=True).stdout[:14],
                         b"orchard-agent ")
        self.assertIn(b"usage", subprocess.run([BINARY, "--help"], stdout=subprocess.PIPE, check=True).stdout)
        for argv in ([], ["--listen-fd", "3"], ["--nonsense"]):
            self.assertEqual(subprocess.run([BINARY] + argv, stderr=subprocess.DEVNULL, check=False).returncode, 2)


@unittest.skipUnless(CAN_BE_INIT, "needs root")
class Init(unittest.TestCase):
    """PID 1, other roots, and what the program costs."""

    def test_signals_from_inside_do_not_end_it(self):
        agent = rig.Agent(BINARY)
        for name in ("TERM", "INT", "KILL", "HUP", "USR1", "STOP", "QUIT", "SEGV"):
            agent.run("kill -%s 1" % name)
        self.assertEqual(agent.run("echo alive")["stdout"], b"alive\n")
        agent.close()

    def test_nothing_begins_while_it_ends(self):
        with tempfile.TemporaryDirectory() as home:
            with open(home + "/.bashrc", "w") as rc:
                rc.write("touch %s/there; exec sleep 3306" % home)
            agent = rig.Agent(BINARY)
            waiting = agent.start("touch %s/ran" % home, login_shell=True, env={"HOME": home})[1]
            until(lambda: os.path.exists(home + "/there"))
            until(lambda: "sleep" in names_below(agent.pid))
            agent.close()
            waiting.close()
            self.assertFalse(os.path.exists(home + "/ran"))

    def test_B053_term_from_outside_ends_all_quickly(self):
        agent = rig.Agent(BINARY)
        agent.run("trap '' TERM; sleep 3400 >/dev/null 2>&1 & sleep 3400 >/dev/null 2>&1 &")
        began = time.monotonic()
        os.kill(agent.pid, signal.SIGTERM)
        self.assertEqual(agent.process.wait(10), 128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - began, 3)
        agent.close()

    def test_B037_images_without_bash_and_without_shell(self):
        root = tempfile.mkdtemp(prefix="agent-root-")
        os.makedirs(root + "/bin")
        os.makedirs(root + "/proc")
        shutil.copy(BINARY, root + "/agent")
        agent = rig.Agent("/agent", root=root)
        began = time.monotonic()
        job = agent.run("echo hi")
        self.assertEqual((job["verdict"], job["exit_code"], job["error"]), ("never_started", 127, "no shell in image"))
        self.assertLess(time.monotonic() - began, 1)
        self.assertEqual(agent.run(["/agent", "--version"])["exit_code"], 0)
        if os.path.exists("/bin/busybox"):
            shutil.copy("/bin/busybox", root + "/bin/sh")
            shutil.copy("/bin/busybox", root + "/bin/cat")
            shutil.copy("/bin/busybox", root + "/bin/wc")
            for login in (False, True):
                job = agent.run("echo hi; cat", login_shell=login, stdin_base64="YQo=")
                self.assertEqual((job["exit_code"], job["stdout"], job["stderr"]), (0, b"hi\na\n", b""))
            job = agent.run("echo " + "x" * 200000 + " | wc -c; exit 6")
            self.assertEqual((job["exit_code"], job["stdout"]), (6, b"200001\n"))
        agent.close()
        shutil.rmtree(root)

    def test_B049_protection_is_not_inherited(self):
        def lower():
            with open("/proc/self/oom_score_adj", "w", buffering=1) as score:
                score.write("-500\n")

        try:
            agent = rig.Agent(BINARY, preexec=lower)
        except subprocess.SubprocessError:
            self.skipTest("may not lower the score")
        self.assertEqual(agent.run("cat /proc/self/oom_score_adj")["stdout"], b"0\n")
        agent.close()

    def test_oom_needs_evidence(self):
        with tempfile.TemporaryFile("w+") as events:
            events.write("low 0\noom 0\noom_kill 4\n")
            events.flush()
            os.set_inheritable(events.fileno(), True)
            agent = rig.Agent(BINARY, oom_file=events)
            self.assertEqual(agent.run("kill -9 $$")["verdict"], "signaled")
            job_id, waiting = agent.start("sleep 3500; exit 137")
            until(lambda: agent.call("GET", "/jobs/" + job_id)[0] == 200)
            events.seek(0)
            events.write("low 0\noom 1\noom_kill 5\n")
            events.flush()
            agent.run("until [ -n \"$p\" ]; do p=$(cat /proc/[0-9]*/stat 2>/dev/null | grep '(sleep)' | cut -d' ' -f4); "
                      "done; kill -9 $p", lane="b")
            waiting.getresponse().read()
            waiting.close()
            job = agent.call("GET", "/jobs/" + job_id)[1]
            self.assertEqual((job["verdict"], job["exit_code"]), ("oom_killed", 137))
            self.assertIn("memory limit", job["error"])
            agent.close()

    def test_cost(self):
        starts = []
        for _ in range(10):
            began = time.monotonic()
            agent = rig.Agent(BINARY, with_init=False)
            starts.append(time.monotonic() - began)
            dirty = memory_kib(agent.pid, "Anonymous")
            rss = memory_kib(agent.pid, "VmRSS")
            agent.close()
        stripped = tempfile.mktemp(prefix="agent-stripped-")
        subprocess.run(["strip", "-o", stripped, BINARY], check=True)
        size = os.path.getsize(stripped)
        os.unlink(stripped)
        print("agent: start to first answer %.1f ms, private dirty %d KiB, rss %d KiB, stripped %d bytes"
              % (min(starts) * 1000, dirty, rss, size))
        self.assertLess(min(starts), 0.1)
        self.assertLess(dirty, 512)
        self.assertLess(size, 1500000)


if __name__ == "__main__":
    BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
