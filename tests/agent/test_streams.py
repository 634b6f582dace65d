# SPDX-License-Identifier: MIT
"""Output by offset, spools, and the stdin of running commands, on the real orchard-agent.

usage: test_streams.py BINARY [unittest arguments]
"""

import base64
import concurrent.futures
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import rig
import test_agent
from test_agent import IS_ROOT, memory_kib, until

MIB = 1 << 20


def numbers(count):
    """What `seq COUNT` prints."""
    return b"".join(b"%d\n" % n for n in range(1, count + 1))


class Case(test_agent.Case):
    """One agent per class, with a directory for spools beside it."""

    spooled = True

    @classmethod
    def setUpClass(cls):
        cls.cgroup = None
        cls.spool = tempfile.mkdtemp(prefix="agent-spool-") if cls.spooled else None
        cls.agent = rig.Agent(test_agent.BINARY, with_init=test_agent.CAN_BE_INIT, spool=cls.spool, **cls.settings)
        cls.epoch = cls.agent.call("GET", "/health")[1]["epoch"]
        cls.steady = cls.agent.request("GET", "/health")
        cls.steady.getresponse().read()

    @classmethod
    def tearDownClass(cls):
        cls.steady.close()
        cls.agent.close()
        if cls.spool:
            shutil.rmtree(cls.spool)

    def keep(self, command, **fields):
        """The id and the ended job, not acknowledged."""
        body = self.agent.body(command, **fields)
        status, job = self.agent.call("POST", "/exec", body)
        self.assertEqual(status, 200, job)
        return body["job_id"], rig.decode(job)

    def ack(self, *job_ids):
        self.assertEqual(self.agent.call("POST", "/ack", {"ack": job_ids})[0], 200)

    def start(self, command, **fields):
        """The id of a command that runs, whose answer nobody waits for any more."""
        job_id, connection = self.agent.start(command, **fields)
        until(lambda: self.agent.call("GET", "/jobs/" + job_id)[0] == 200)
        connection.close()
        self.addCleanup(self.cancel, job_id)
        return job_id

    def cancel(self, job_id):
        self.agent.call("POST", "/jobs/%s/cancel" % job_id)
        self.ack(job_id)

    def end(self, job_id, wait_ms=20000):
        status, job = self.agent.call("GET", "/jobs/%s?wait_ms=%d" % (job_id, wait_ms))
        self.assertEqual((status, job["state"]), (200, "ended"))
        return rig.decode(job)

    def follow(self, job_id, name="stdout", limit=65536):
        """All of a stream, read piece by piece until the job has ended; the pieces must join."""
        data = b""
        while True:
            answer = self.agent.output(job_id, wait_ms=10000, limit=limit, **{name + "_offset": len(data)})
            stream = answer[name]
            self.assertEqual(stream["offset"], len(data))
            self.assertLessEqual(len(stream["data"]), limit)
            data += stream["data"]
            if answer["state"] == "ended" and not stream["data"]:
                self.assertEqual(stream["bytes"], len(data))
                return data

    def descriptors(self):
        """How many the agent has; a steady connection makes sure that it has seen who left before."""
        for _ in range(2):
            self.steady.request("GET", "/health", headers={"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID})
            self.steady.getresponse().read()
        return len(os.listdir("/proc/%d/fd" % self.agent.pid))

    def held(self):
        """A shell text that goes on when the returned function is called."""
        gate = tempfile.mktemp(prefix="agent-gate-")
        self.addCleanup(lambda: os.path.exists(gate) and os.unlink(gate))
        return "until [ -e %s ]; do sleep 0.02; done; " % gate, lambda: open(gate, "w").close()

    def spool_of_agent(self):
        return self.agent.call("GET", "/health")[1]["spool"]


class Output(Case):
    """What can be read, when, and what is left of it."""

    def test_a_running_job_is_read_as_it_writes(self):
        job_id = self.start("echo one; read x; echo two $x; echo err >&2", stdin_open=True)
        answer = self.agent.output(job_id, stdout_offset=0, stderr_offset=0, wait_ms=10000)
        self.assertEqual(answer, {"state": "running", "stdout": {"offset": 0, "bytes": 4, "data": b"one\n"},
                                  "stderr": {"offset": 0, "bytes": 0, "data": b""}})
        self.assertEqual(self.agent.output(job_id, stdout_offset=4)["stdout"]["data"], b"")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            later = pool.submit(self.agent.output, job_id, stdout_offset=4, wait_ms=30000)
            self.agent.write(job_id, b"x\n")
            self.assertEqual(later.result()["stdout"]["data"], b"two x\n")
        answer = self.agent.output(job_id, stderr_offset=0, wait_ms=10000)
        self.assertNotIn("stdout", answer)
        self.assertEqual(answer["stderr"]["data"], b"err\n")
        self.end(job_id)
        self.assertEqual(self.agent.output(job_id, stdout_offset=4, wait_ms=60000),
                         {"state": "ended", "stdout": {"offset": 4, "bytes": 10, "data": b"two x\n"}})

    def test_queries(self):
        job_id, _ = self.keep("printf hello")
        self.assertEqual(self.agent.output(job_id), {"state": "ended"})
        self.assertEqual(self.agent.output(job_id, stdout_offset=99)["stdout"], {"offset": 5, "bytes": 5, "data": b""})
        self.assertEqual(self.agent.output(job_id, stdout_offset=1, limit=2)["stdout"]["data"], b"el")
        self.assertEqual(self.agent.output(job_id, stdout_offset=1, limit=0)["stdout"],
                         {"offset": 1, "bytes": 5, "data": b""})
        self.assertEqual(self.agent.output(job_id, stdout_offset=1 << 70)["stdout"]["offset"], 5)
        for query in ("stdout_offset=-1", "stderr_offset=", "limit=x", "wait_ms=1s", "stdout_offset=+1", "limit= 1"):
            path = "/jobs/%s/output?%s" % (job_id, query.replace(" ", "%20"))
            self.assertEqual(self.agent.call("GET", path)[0], 422, query)
        self.assertEqual(self.agent.call("GET", "/jobs/%s/output" % uuid.uuid4())[1]["code"], "unknown_job")
        self.assertEqual(self.agent.call("POST", "/jobs/%s/output" % job_id)[0], 405)
        self.assertEqual(self.agent.call("GET", "/jobs/%s/nowhere" % job_id)[0], 404)
        self.ack(job_id)
        self.assertEqual(self.agent.call("GET", "/jobs/%s/output" % job_id)[1]["code"], "unknown_job")

    def test_answers_when_the_time_is_over(self):
        job_id = self.start("sleep 3600")
        began = time.monotonic()
        answer = self.agent.output(job_id, stdout_offset=0, wait_ms=300)
        self.assertGreaterEqual(time.monotonic() - began, 0.25)  # the loop's clock may be some ms behind
        self.assertEqual((answer["state"], answer["stdout"]["data"]), ("running", b""))

    def test_ten_times_the_cap_is_there_to_the_byte(self):
        wanted = numbers(200000)
        job_id, job = self.keep("seq 200000; seq 200000 | tr 0-9 a-j >&2", max_output_bytes=65536, spool_bytes=64 * MIB)
        self.assertTrue(job["stdout_truncated"] and job["stderr_truncated"])
        self.assertEqual(self.follow(job_id), wanted)
        self.assertEqual(self.follow(job_id, "stderr", limit=MIB), wanted.translate(bytes.maketrans(b"0123456789",
                                                                                                  b"abcdefghij")))
        self.ack(job_id)
        self.assertEqual(self.agent.call("GET", "/jobs/" + job_id)[0], 404)
        self.assertEqual(self.follow(job_id), wanted)
        self.assertEqual(self.agent.write(job_id, b"")[1]["code"], "stdin_closed")
        self.assertEqual(os.listdir(self.spool), [])

    def test_followed_while_it_writes(self):
        job_id = self.start("seq 300000", max_output_bytes=4096, spool_bytes=64 * MIB)
        self.assertEqual(self.follow(job_id, limit=10000), numbers(300000))

    def test_a_small_stream_beside_a_spooled_one_outlives_the_acknowledgement(self):
        job_id, _ = self.keep("seq 100000; echo small >&2", max_output_bytes=4096, spool_bytes=64 * MIB)
        self.ack(job_id)
        self.assertEqual(self.follow(job_id, "stderr"), b"small\n")

    def test_what_exceeds_the_spool_leaves_a_gap(self):
        wanted = numbers(100000)
        job_id, _ = self.keep("seq 100000", max_output_bytes=8192, spool_bytes=100000)
        for acknowledge in (False, True):
            if acknowledge:
                self.ack(job_id)
            answer = self.agent.output(job_id, stdout_offset=0, limit=MIB)["stdout"]
            self.assertEqual((answer["offset"], answer["bytes"], answer["data"]), (0, len(wanted), wanted[:100000]))
            answer = self.agent.output(job_id, stdout_offset=100000, limit=MIB)["stdout"]
            self.assertEqual((answer["offset"], answer["data"]), (len(wanted) - 4096, wanted[-4096:]))

    def test_without_a_spool_there_are_head_and_tail(self):
        wanted = numbers(100000)
        job_id, _ = self.keep("seq 100000", max_output_bytes=8192)
        self.assertEqual(self.agent.output(job_id, stdout_offset=5)["stdout"]["data"], wanted[5:4096])
        answer = self.agent.output(job_id, stdout_offset=4096)["stdout"]
        self.assertEqual((answer["offset"], answer["data"]), (len(wanted) - 4096, wanted[-4096:]))
        self.ack(job_id)
        self.assertEqual(self.agent.call("GET", "/jobs/%s/output" % job_id)[0], 404)

    def test_B003_output_at_the_end_is_complete(self):
        text = bytes(range(256)) * 4096
        with tempfile.NamedTemporaryFile(prefix="agent-b003-") as source:
            source.write(text)
            source.flush()
            os.chmod(source.name, 0o644)
            for turn in range(100):
                job_id, job = self.keep(["cat", source.name], max_output_bytes=65536 if turn % 2 else 2 * MIB,
                                        spool_bytes=2 * MIB)
                self.assertEqual(job["stdout_bytes"], MIB)
                self.assertEqual(hashlib.sha256(self.follow(job_id, limit=MIB)).digest(), hashlib.sha256(text).digest())
                self.ack(job_id)

    def test_many_wait_and_some_leave(self):
        job_id = self.start("read x; echo $x; read x", stdin_open=True)
        before = self.descriptors()
        path = "/jobs/%s/output?stdout_offset=0&wait_ms=60000" % job_id
        waiting = [self.agent.request("GET", path) for _ in range(300)]
        until(lambda: self.descriptors() >= before + 300)
        for connection in waiting[::2]:
            connection.close()
        until(lambda: self.descriptors() <= before + 150)
        began = time.monotonic()
        self.agent.write(job_id, b"go\n")
        for connection in waiting[1::2]:
            answer = connection.getresponse()
            self.assertEqual((answer.status, b'"base64":"Z28K"' in answer.read()), (200, True))
            connection.close()
        self.assertLess(time.monotonic() - began, 10)

    def test_the_end_wakes_who_waits(self):
        job_id = self.start("read x", stdin_open=True)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.agent.output, job_id, stdout_offset=0, wait_ms=60000)
            self.agent.write(job_id, b"", eof=True)
            self.assertEqual(waiting.result(20)["state"], "ended")

    def test_a_torrent_costs_a_bounded_amount(self):
        before = self.spool_of_agent()["bytes"]
        job_id = self.start("yes | head -c %d; yes >&2" % (1 << 30), max_output_bytes=MIB, spool_bytes=8 * MIB,
                            timeout_ms=120000)
        until(lambda: self.agent.output(job_id, stderr_offset=0, limit=0)["stderr"]["bytes"] > 1 << 28, 100)
        began = time.monotonic()
        self.assertEqual(self.out("echo quick", lane="other"), "quick\n")
        self.assertLess(time.monotonic() - began, 5)
        self.assertLess(memory_kib(self.agent.pid, "VmRSS"), 24 << 10)
        self.assertLessEqual(self.spool_of_agent()["bytes"], before + 16 * MIB)
        answer = self.agent.output(job_id, stdout_offset=8 * MIB - 2, stderr_offset=8 * MIB - 2, limit=4)
        self.assertEqual((answer["stdout"]["data"], answer["stdout"]["bytes"]), (b"y\n", 1 << 30))

    def test_bytes_are_not_touched(self):
        job_id, _ = self.keep(["printf", r"\377\376\0\303(\342\202"])
        self.assertEqual(self.follow(job_id), b"\xff\xfe\0\xc3(\xe2\x82")


class Budget(Case):
    """All spools of an agent together are bounded; the oldest give way."""

    settings = {"spool_total_bytes": 4 * MIB}

    def big(self, size=MIB, **fields):
        job_id, job = self.keep("head -c %d /dev/zero" % size, max_output_bytes=4096, spool_bytes=64 * MIB, **fields)
        self.assertEqual((job["exit_code"], job["stdout_bytes"]), (0, size))
        return job_id

    def kept(self, job_id):
        """How many bytes from the start on are there; None: the job is unknown."""
        if self.agent.call("GET", "/jobs/%s/output" % job_id)[0] == 404:
            return None
        count = 0
        while True:
            answer = self.agent.output(job_id, stdout_offset=count, limit=MIB)["stdout"]
            if answer["offset"] > count or not answer["data"]:
                return count
            count += len(answer["data"])

    def test_the_oldest_gives_way(self):
        ids = []
        for turn in range(7):
            ids.append(self.big())
            if turn < 5:
                self.ack(ids[-1])
        self.assertEqual([self.kept(job_id) for job_id in ids], [None] * 3 + [MIB] * 4)
        more = [self.big() for _ in range(4)]
        self.assertEqual([self.kept(job_id) for job_id in ids[3:]], [None, None, 2048, 2048])
        self.assertLessEqual(self.spool_of_agent()["bytes"], 4 * MIB)
        self.ack(*ids[5:])
        self.assertEqual(self.kept(ids[6]), None)
        self.ack(*more)
        huge = self.big(6 * MIB)
        self.assertEqual(self.kept(huge), 4 * MIB)
        self.ack(huge)
        self.assertEqual(self.kept(huge), 4 * MIB)

    def test_what_runs_does_not_give_way(self):
        job_id = self.start("head -c 3000000 /dev/zero; sleep 3600", max_output_bytes=4096, spool_bytes=64 * MIB)
        until(lambda: self.agent.output(job_id, stdout_offset=0, limit=0)["stdout"]["bytes"] == 3000000)
        other = self.big(2 * MIB, lane="other")
        self.assertEqual(self.kept(job_id), 3000000)
        self.assertEqual(self.kept(other), 4 * MIB - 3000000)
        self.ack(other)

    def test_at_most_64_and_no_descriptor_more(self):
        before = self.descriptors()
        ids = []
        for _ in range(100):
            ids.append(self.keep("head -c 5000 /dev/zero; echo >&2", max_output_bytes=4096, spool_bytes=MIB)[0])
            self.ack(ids[-1])
        self.assertEqual([self.kept(job_id) for job_id in ids], [None] * 36 + [5000] * 64)
        self.assertEqual(self.spool_of_agent()["jobs"], 64)
        self.assertLessEqual(self.descriptors(), before + 129)
        self.assertLess(memory_kib(self.agent.pid, "Anonymous"), 4096)


class NoDirectory(Case):
    """Without a directory the files are unnamed ones of the sandbox's own."""

    spooled = False

    def test_nothing_can_be_seen(self):
        before = set(os.listdir("/tmp"))
        job_id, job = self.keep("seq 100000; ls -a /tmp", max_output_bytes=4096, spool_bytes=64 * MIB)
        self.assertNotIn(b"spool-", job["stdout"])
        self.assertEqual(self.follow(job_id)[:100], numbers(100000)[:100])
        self.assertEqual([name for name in set(os.listdir("/tmp")) - before if "spool" in name and
                          not name.startswith("agent-")], [])
        self.ack(job_id)


@unittest.skipUnless(IS_ROOT, "needs root")
class Disks(unittest.TestCase):
    """A disk that takes no more ends the spool, never the command; memory is no disk."""

    def mount(self, *how):
        where = tempfile.mkdtemp(prefix="agent-disk-")
        self.addCleanup(os.rmdir, where)
        if subprocess.run(["mount", *how, where], stderr=subprocess.DEVNULL, check=False).returncode != 0:
            self.skipTest("cannot mount " + " ".join(how))
        self.addCleanup(subprocess.run, ["umount", "-l", where], check=True)
        return where

    def run_there(self, disk, count=1000000):
        """The agent, the id of a job that wrote much, and what it wrote."""
        agent = rig.Agent(test_agent.BINARY, with_init=test_agent.CAN_BE_INIT, spool=disk)
        self.addCleanup(agent.close)
        body = agent.body("seq %d" % count, max_output_bytes=8192, spool_bytes=64 * MIB)
        status, job = agent.call("POST", "/exec", body)
        wanted = numbers(count)
        self.assertEqual((status, job["exit_code"], job["stdout_bytes"]), (200, 0, len(wanted)))
        return agent, body["job_id"], wanted

    def test_disk_full(self):
        with tempfile.NamedTemporaryFile(prefix="agent-disk-image-") as image:
            image.truncate(2 * MIB)
            if subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", image.name], stderr=subprocess.DEVNULL,
                              check=False).returncode != 0:
                self.skipTest("cannot make a filesystem")
            agent, job_id, wanted = self.run_there(self.mount("-o", "loop", image.name))
            data = agent.output(job_id, stdout_offset=0, limit=MIB)["stdout"]["data"]
            data += agent.output(job_id, stdout_offset=len(data), limit=MIB)["stdout"]["data"]
            self.assertEqual(data, wanted[:len(data)])
            self.assertTrue(MIB < len(data) < 2 * MIB, len(data))
            self.assertEqual(agent.output(job_id, stdout_offset=len(data))["stdout"]["data"], wanted[-4096:])
            agent.call("POST", "/ack", {"ack": [job_id]})
            self.assertEqual(agent.output(job_id, stdout_offset=len(data) - 9, limit=MIB)["stdout"]["data"], data[-9:])
            rest = agent.output(job_id, stdout_offset=len(data))["stdout"]
            self.assertIn(rest["offset"], (len(wanted) - 4096, len(wanted)))

    def test_no_spool_in_memory(self):
        agent, job_id, wanted = self.run_there(self.mount("-t", "tmpfs", "none"))
        self.assertEqual(agent.output(job_id, stdout_offset=4096)["stdout"]["data"], wanted[-4096:])
        self.assertEqual(agent.call("GET", "/health")[1]["spool"], {"jobs": 0, "bytes": 0})


class Stdin(Case):
    """Bytes for a command that runs."""

    def test_a_conversation(self):
        job_id = self.start("while read x; do echo \"<$x>\"; done; echo end", stdin_open=True,
                            stdin_base64=base64.b64encode(b"first\n").decode())
        self.assertEqual(self.agent.output(job_id, stdout_offset=0, wait_ms=9000)["stdout"]["data"], b"<first>\n")
        self.assertEqual(self.agent.write(job_id, b"a\0b\xff\n"),
                         (200, {"accepted": 5, "stdin_bytes": 11, "closed": False}))
        self.assertEqual(self.agent.output(job_id, stdout_offset=8, wait_ms=9000)["stdout"]["data"], b"<ab\xff>\n")
        self.assertEqual(self.agent.write(job_id, b"", eof=True), (200, {"accepted": 0, "stdin_bytes": 11, "closed": True}))
        self.assertEqual(self.end(job_id)["stdout"], b"<first>\n<ab\xff>\nend\n")

    def test_all_kinds_of_programs(self):
        for fields in ({"command": ["cat"]}, {"command": "cat"}, {"command": "cat", "login_shell": True},
                       {"command": "cat /dev/stdin"}, {"command": "cat #" + "x" * 200000}):
            job_id = self.start(fields.pop("command"), stdin_open=True, env={"HOME": "/nonexistent"}, **fields)
            self.assertEqual(self.agent.write(job_id, b"hello", eof=True)[0], 200)
            self.assertEqual(self.end(job_id)["stdout"], b"hello")
        if IS_ROOT:
            job_id = self.start("cat < /dev/stdin", stdin_open=True, user="1234")
            self.agent.write(job_id, b"mine", eof=True)
            self.assertEqual(self.end(job_id)["stdout"], b"mine")

    def test_it_is_closed(self):
        closed = "stdin_closed"
        job_id = self.start("sleep 3600")
        self.assertEqual(self.agent.write(job_id, b"x")[1]["code"], closed)
        job_id = self.start("sleep 3600", stdin_open=True, lane="b")
        self.assertEqual(self.agent.write(job_id, b"x", eof=True)[0], 200)
        status, answer = self.agent.write(job_id, b"x")
        self.assertEqual((status, answer["code"]), (409, closed))
        job_id = self.start("exec <&-; echo closed; exec sleep 3600", stdin_open=True, lane="c")
        self.agent.output(job_id, stdout_offset=0, wait_ms=10000)
        self.assertEqual(self.agent.write(job_id, b"x")[1]["code"], closed)
        self.assertEqual(self.agent.write(job_id, b"")[1]["code"], closed)
        job_id, _ = self.keep("true", stdin_open=True, lane="d")
        self.assertEqual(self.agent.write(job_id, b"x")[1]["code"], closed)
        self.ack(job_id)
        self.assertEqual(self.agent.write(job_id, b"x")[1]["code"], "unknown_job")
        job_id, job = self.keep(["/no/such"], stdin_open=True, lane="d")
        self.assertEqual((job["verdict"], self.agent.write(job_id, b"x")[1]["code"]), ("never_started", closed))
        self.ack(job_id)

    def test_requests(self):
        job_id = self.start("cat > /dev/null", stdin_open=True)
        for query in ("", "?write_id=x", "?write_id=%s&eof=yes" % uuid.uuid4()):
            self.assertEqual(self.agent.call("POST", "/jobs/%s/stdin%s" % (job_id, query), b"x")[0], 422, query)
        self.assertEqual(self.agent.write(job_id, b"x" * (MIB + 1))[0], 413)
        self.assertEqual(self.agent.write(job_id, b"x" * MIB)[1], {"accepted": MIB, "stdin_bytes": MIB, "closed": False})
        self.assertEqual(self.agent.call("GET", "/jobs/%s/stdin" % job_id)[0], 405)

    def test_a_repeated_write_changes_nothing(self):
        job_id = self.start("cat", stdin_open=True)
        ids = [str(uuid.uuid4()) for _ in range(65)]
        answers = [self.agent.write(job_id, b"%02d " % turn, write_id=ids[turn]) for turn in range(65)]
        self.assertEqual([self.agent.write(job_id, b"other", write_id=write_id) for write_id in ids[1:]], answers[1:])
        last = str(uuid.uuid4())
        closing = self.agent.write(job_id, b"end", eof=True, write_id=last)
        job = self.end(job_id)
        self.assertEqual(job["stdout"], b"".join(b"%02d " % turn for turn in range(65)) + b"end")
        self.assertEqual(self.agent.write(job_id, b"end", eof=True, write_id=last), closing)
        self.assertEqual(self.agent.write(job_id, b"", write_id=str(uuid.uuid4()))[0], 409)

    def test_the_same_write_at_the_same_time_is_taken_once(self):
        job_id = self.start("cat", stdin_open=True)
        write_id = str(uuid.uuid4())
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda _: self.agent.write(job_id, b"once", eof=True, write_id=write_id), range(20)))
        self.assertEqual(set(map(str, answers)), {str((200, {"accepted": 4, "stdin_bytes": 4, "closed": True}))})
        self.assertEqual(self.end(job_id)["stdout"], b"once")

    def test_who_never_reads_holds_others_up_and_nothing_else(self):
        hold, go_on = self.held()
        job_id = self.start(hold + "exec sha256sum", stdin_open=True)
        rss = memory_kib(self.agent.pid, "VmRSS")
        first = os.urandom(MIB)
        self.assertEqual(self.agent.write(job_id, first)[0], 200)
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            pieces = [bytes([n]) * 300000 for n in range(30)]
            before = self.descriptors()
            waiting = [pool.submit(self.agent.write, job_id, piece) for piece in pieces]
            until(lambda: self.descriptors() >= before + 30)
            self.assertEqual(self.out("echo free", lane="other"), "free\n")
            self.assertFalse(all(answer.done() for answer in waiting))
            self.assertLess(memory_kib(self.agent.pid, "VmRSS") - rss, 10 << 10)
            go_on()
            answers = [answer.result(30) for answer in waiting]
        self.assertEqual({status for status, _ in answers}, {200})
        self.agent.write(job_id, b"", eof=True)
        order = sorted(range(30), key=lambda n: answers[n][1]["stdin_bytes"])
        wanted = first + b"".join(pieces[n] for n in order)
        self.assertEqual(self.end(job_id)["stdout"].split()[0].decode(), hashlib.sha256(wanted).hexdigest())

    def test_who_leaves_while_waiting_has_written_nothing(self):
        hold, go_on = self.held()
        job_id = self.start(hold + "exec sha256sum", stdin_open=True)
        self.agent.write(job_id, b"b" * MIB)
        before = self.descriptors()
        gone = []
        for sent in (0, 1000, 200000):
            connection = self.agent.request("POST", "/jobs/%s/stdin?write_id=%s" % (job_id, uuid.uuid4()), b"",
                                            {"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID,
                                             "Content-Length": "900000"})
            connection.send(b"c" * sent)
            gone.append(connection)
        until(lambda: self.descriptors() >= before + 3)
        for connection in gone:
            connection.close()
        until(lambda: self.descriptors() <= before)
        go_on()
        status, answer = self.agent.write(job_id, b"a" * MIB, eof=True)
        self.assertEqual((status, answer["stdin_bytes"]), (200, 2 * MIB))
        self.assertEqual(self.end(job_id)["stdout"].split()[0].decode(),
                         hashlib.sha256(b"b" * MIB + b"a" * MIB).hexdigest())

    def test_who_waits_is_bounded(self):
        job_id = self.start("exec sleep 3600", stdin_open=True)
        self.agent.write(job_id, b"x" * MIB)
        before = self.descriptors()
        path = "/jobs/%s/stdin?write_id=" % job_id
        waiting = [self.agent.request("POST", path + str(uuid.uuid4()), b"y" * 70000) for _ in range(64)]
        until(lambda: self.descriptors() >= before + 64)
        status, answer = self.agent.write(job_id, b"y" * 70000)
        self.assertEqual((status, answer["code"]), (503, "stdin_busy"))
        self.cancel(job_id)
        self.assertEqual({connection.getresponse().status for connection in waiting}, {409})
        for connection in waiting:
            connection.close()

    def test_the_end_frees_who_waits(self):
        for how in ("cancel", "timeout", "exit", "close", "background"):
            hold, go_on = self.held()
            command = {"exit": hold, "close": hold + "exec <&-; exec sleep 3600",
                       "background": "exec 3<&0; (exec sleep 3603 <&3) >/dev/null 2>&1 & " + hold}.get(how, "exec sleep 3600")
            job_id = self.start(command, stdin_open=True, timeout_ms=1500 if how == "timeout" else 60000)
            self.agent.write(job_id, b"x" * MIB)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                before = self.descriptors()
                waiting = [pool.submit(self.agent.write, job_id, b"y" * MIB) for _ in range(2)]
                until(lambda before=before: self.descriptors() >= before + 2 or all(w.done() for w in waiting))
                if how == "cancel":
                    self.agent.call("POST", "/jobs/%s/cancel" % job_id)
                go_on()
                for answer in waiting:
                    self.assertEqual(answer.result(20)[0], 409, how)
            self.cancel(job_id)

    def test_a_background_child_that_holds_the_pipe_does_no_harm(self):
        before = self.descriptors()
        job_id = self.start("exec 3<&0; (exec sleep 3601 <&3) >/dev/null 2>&1 & echo $!", stdin_open=True)
        child = self.end(job_id)["stdout"].decode()
        self.assertEqual(self.agent.write(job_id, b"x")[1]["code"], "stdin_closed")
        self.ack(job_id)
        until(lambda: self.descriptors() <= before)
        self.out("kill " + child)

    def test_long_stdin_at_the_start(self):
        text = os.urandom(3 * MIB)
        job_id = self.start("sha256sum", stdin_open=True, stdin_base64=base64.b64encode(text).decode())
        status, answer = self.agent.write(job_id, b"more", eof=True)
        self.assertEqual((status, answer["stdin_bytes"]), (200, 3 * MIB + 4))
        self.assertEqual(self.end(job_id)["stdout"].split()[0].decode(), hashlib.sha256(text + b"more").hexdigest())

    def test_nothing_is_left(self):
        until(lambda: self.agent.call("GET", "/health")[1]["running"] == 0)
        before = self.descriptors()
        for _ in range(20):
            job_id = self.start("cat", stdin_open=True)
            self.agent.write(job_id, b"x" * 100000, eof=True)
            self.end(job_id)
            self.ack(job_id)
        self.assertLessEqual(self.descriptors(), before + 1)


if __name__ == "__main__":
    test_agent.BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
