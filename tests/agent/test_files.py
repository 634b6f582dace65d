# SPDX-License-Identifier: MIT
"""File calls of the real orchard-agent: helpers, what they leave behind, what they may.

usage: test_files.py BINARY [unittest arguments]
"""

import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import unittest
import urllib.parse

import rig
import test_agent
from test_agent import IS_ROOT, memory_kib, until

MIB = 1 << 20
HEADERS = {"X-Orchard-Token": rig.TOKEN, "X-Orchard-Sandbox": rig.UID}


def quote(name):
    return urllib.parse.quote(name, safe="/")


class Case(test_agent.Case):
    """One agent per class; its commands and file calls start in self.dir, which belongs to their user."""

    user = ""

    @classmethod
    def setUpClass(cls):
        cls.cgroup = None
        cls.dir = tempfile.mkdtemp(prefix="agent-files-")
        if cls.user:
            os.chown(cls.dir, int(cls.user), int(cls.user))
        cls.agent = rig.Agent(test_agent.BINARY, with_init=test_agent.CAN_BE_INIT, user=cls.user,
                              working_dir=cls.dir, **cls.settings)
        cls.epoch = cls.agent.call("GET", "/health")[1]["epoch"]

    @classmethod
    def tearDownClass(cls):
        cls.agent.close()
        shutil.rmtree(cls.dir)

    def raw(self, method, target, body=None, headers=None):
        """status, bytes, headers"""
        connection = self.agent.request(method, target, body, {**HEADERS, **(headers or {})})
        try:
            answer = connection.getresponse()
            return answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()}
        finally:
            connection.close()

    def put(self, name, body=b"", **query):
        status, text, _ = self.raw("PUT", "/files?" + urllib.parse.urlencode({"path": name, **query}), body)
        return status, json.loads(text)

    def get(self, name, **headers):
        return self.raw("GET", "/files?path=" + quote(name), None, {k.replace("_", "-"): v for k, v in headers.items()})

    def code(self, method, target, body=None):
        status, text, _ = self.raw(method, target, body)
        return status, json.loads(text).get("code")

    def here(self, name):
        return os.path.join(self.dir, name)

    def begin(self, target, length=1000, sent=b"some"):
        """An upload that stands still after `sent`."""
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(self.agent.path)
        head = "PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n" % (target, length)
        head += "".join("%s: %s\r\n" % pair for pair in HEADERS.items())
        sock.sendall(head.encode() + b"\r\n" + sent)
        return sock

    def helpers(self):
        """Pids of the agent's helpers, as this test sees them."""
        found = []
        with open("/proc/%d/task/%d/children" % (self.agent.pid, self.agent.pid)) as children:
            for pid in children.read().split():
                try:
                    with open("/proc/%s/comm" % pid) as comm:
                        if comm.read().strip() == "orchard-files":
                            found.append(int(pid))
                except OSError:
                    pass
        return found


class Files(Case):
    def test_a_file_in_and_out(self):
        data = bytes(range(256)) * 1000
        self.assertEqual(self.put("in/new dirs/f", data)[1], {"success": True, "path": "in/new dirs/f", "size": 256000})
        status, body, headers = self.get("in/new dirs/f")
        self.assertEqual((status, body == data, headers["content-length"]), (200, True, "256000"))
        self.assertEqual(os.listdir(self.here("in/new dirs")), ["f"])

    def test_modes_and_owners_are_kept(self):
        self.put("mode", b"1")
        self.assertEqual(os.stat(self.here("mode")).st_mode & 0o7777, 0o644)
        self.put("mode", b"22", mode="0751")
        self.put("mode", b"333")
        self.assertEqual(os.stat(self.here("mode")).st_mode & 0o7777, 0o751)
        if IS_ROOT:
            os.chown(self.here("mode"), 1234, 4321)
            self.put("mode", b"4444", fsync="1")
            st = os.stat(self.here("mode"))
            self.assertEqual((st.st_uid, st.st_gid, st.st_mode & 0o7777, st.st_size), (1234, 4321, 0o751, 4))
            os.chmod(self.here("mode"), 0o7751)
            self.put("mode", b"5")
            self.assertEqual(os.stat(self.here("mode")).st_mode & 0o7777, 0o1751)
        for mode in ("9z", "77777", "", "-1", "0x7"):
            self.assertEqual(self.put("mode", b"x", mode=mode)[0], 422, mode)

    def test_links_are_followed_as_open_would(self):
        os.mkdir(self.here("real"))
        os.symlink("real/target", self.here("link"))
        os.symlink("link", self.here("link2"))
        self.put("link2", b"through")
        self.assertTrue(os.path.islink(self.here("link2")))
        with open(self.here("real/target"), "rb") as target:
            self.assertEqual(target.read(), b"through")
        os.symlink("loop", self.here("loop"))
        self.assertEqual(self.put("loop")[1]["code"], "too_many_links")

    def test_what_is_no_file_is_refused_at_once(self):
        os.mkfifo(self.here("fifo"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.here("sock"))
        os.mkdir(self.here("dir"))
        for name, code in (("fifo", "not_regular"), ("sock", "not_regular"), ("/dev/zero", "not_regular"),
                           ("dir", "is_directory"), ("dir/", "is_directory"), ("/", "is_directory"),
                           (".", "is_directory")):
            target = "/files?path=" + quote(name)
            self.assertEqual(self.code("PUT", target, b"x"), (400, code), name)
            self.assertEqual(self.code("GET", target), (400, code), name)
        self.assertEqual(self.code("PUT", "/files?path=fifo/x", b"x"), (400, "not_directory"))
        self.assertEqual(self.code("GET", "/files?path=" + "x" * 256), (400, "name_too_long"))
        self.assertEqual(self.code("GET", "/files?path=nowhere"), (404, "not_found"))
        self.assertEqual(self.code("GET", "/files/list?path=fifo"), (400, "not_directory"))
        for bad in ("/files", "/files?path=", "/files?path=a%00b", "/files?path=a&path=b", "/files?path=%zz"):
            self.assertEqual(self.code("GET", bad), (422, "invalid"), bad)

    def test_files_that_the_kernel_makes_up(self):
        status, body, headers = self.get("/proc/self/status")
        self.assertEqual(status, 200)
        self.assertIn(b"orchard-files", body)
        self.assertNotIn("content-length", headers)
        self.assertEqual(self.raw("HEAD", "/files?path=/proc/self/status")[:2], (200, b""))
        self.assertNotIn(rig.TOKEN.encode(), self.get("/proc/self/environ")[1])
        self.assertEqual(self.code("GET", "/files?path=/proc/self/mem"), (400, "invalid"))

    def test_ranges(self):
        self.put("range", b"0123456789")
        etag = self.get("range")[2]["etag"]
        self.assertEqual(self.get("range", Range="bytes=2-4")[:2], (206, b"234"))
        self.assertEqual(self.get("range", Range="bytes=2-4")[2]["content-range"], "bytes 2-4/10")
        self.assertEqual(self.get("range", Range="bytes=-2", If_Range=etag)[1], b"89")
        self.assertEqual(self.get("range", If_None_Match=etag)[:2], (304, b""))
        status, body, headers = self.get("range", Range="bytes=10-")
        self.assertEqual((status, headers["content-range"]), (416, "bytes */10"))
        self.assertEqual(json.loads(body), {"code": "range_not_satisfiable", "detail": "the file has 10 bytes"})
        self.assertEqual(self.raw("HEAD", "/files?path=range", None, {"Range": "bytes=10-"})[:2], (416, b""))
        self.put("range", b"abcdefghij")
        self.assertEqual(self.get("range", Range="bytes=2-4", If_Range=etag)[:2], (200, b"abcdefghij"))

    def test_a_broken_upload_leaves_the_old_file_alone(self):
        os.mkdir(self.here("cut"))
        self.put("cut/f", b"old")
        self.begin("/files?path=cut/f").close()
        until(lambda: not self.helpers())
        self.assertEqual(os.listdir(self.here("cut")), ["f"])
        self.assertEqual(self.get("cut/f")[1], b"old")

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_a_killed_helper_leaves_the_old_file_alone(self):
        os.mkdir(self.here("kill"))
        self.put("kill/f", b"old")
        until(lambda: not self.helpers())
        sock = self.begin("/files?path=kill/f")
        until(self.helpers)
        for pid in self.helpers():
            os.kill(pid, signal.SIGKILL)
        answer = sock.recv(4096)
        sock.close()
        self.assertIn(b" 500 ", answer)
        self.assertIn(b"ended by signal 9", answer)
        until(lambda: not self.helpers())
        self.assertEqual(os.listdir(self.here("kill")), ["f"])
        self.assertEqual(self.get("kill/f")[1], b"old")

    def test_a_helper_that_hangs_ends_with_its_client(self):
        self.put("slow", b"x" * 8 * MIB)
        until(lambda: not self.helpers())
        connection = self.agent.request("GET", "/files?path=slow", None, HEADERS)
        until(self.helpers)
        self.assertEqual(self.put("meanwhile", b"y")[0], 200)
        connection.close()
        until(lambda: not self.helpers())

    def test_more_calls_than_may_run_wait_for_their_turn(self):
        stuck = [self.begin("/files?path=stuck%d" % n) for n in range(64)]
        until(lambda: len(self.helpers()) == 64)
        done = threading.Event()
        results = []

        def small():
            results.append(self.put("waits", b"x")[0])
            done.set()
        thread = threading.Thread(target=small)
        thread.start()
        self.assertEqual(self.agent.call("GET", "/health")[0], 200)
        self.assertEqual(len(self.helpers()), 64)
        stuck.pop().close()
        self.assertTrue(done.wait(30))
        thread.join()
        self.assertEqual(results, [200])
        for sock in stuck:
            sock.close()
        until(lambda: not self.helpers())
        self.assertEqual([n for n in os.listdir(self.dir) if n.startswith((".orchard", "stuck"))], [])

    def test_memory_does_not_grow_with_the_file(self):
        before = memory_kib(self.agent.pid, "VmRSS")
        body = b"z" * (64 * MIB)
        self.assertEqual(self.put("big", body)[1]["size"], len(body))
        connection = self.agent.request("GET", "/files?path=big", None, HEADERS)
        answer = connection.getresponse()
        total = 0
        while piece := answer.read(MIB):
            total += len(piece)
        connection.close()
        self.assertEqual(total, len(body))
        self.assertLess(memory_kib(self.agent.pid, "VmRSS") - before, 4096)

    def test_names_are_bytes(self):
        os.mkdir(self.here("names"))
        names = [b"a b", b"line\nfeed", b"q'\"", b"100%", b"a+b", b"#x?y&z=1", b"\xff\xfe", b"caf\xc3\xa9", b"-rf", b"\\"]
        for name in names:
            target = "/files?path=" + quote(b"names/" + name)
            self.assertEqual(self.raw("PUT", target, name)[0], 200, name)
            self.assertEqual(self.raw("GET", target)[1], name)
        text = self.raw("GET", "/files/list?path=names")[1]
        told = [entry["name"].encode("utf-8", "surrogateescape") for entry in json.loads(text)["files"]]
        self.assertEqual(told, sorted(names))

    def test_lists_come_in_pages_and_whole(self):
        os.mkdir(self.here("many"))
        names = sorted("n%05d" % (n * 7919 % 20000) for n in range(20000))
        for name in names:
            os.close(os.open(self.here("many/" + name), os.O_CREAT))
        whole = json.loads(self.raw("GET", "/files/list?path=many")[1])
        self.assertEqual([entry["name"] for entry in whole["files"]], names)
        self.assertEqual((whole["truncated"], whole["next"]), (False, None))
        page = json.loads(self.raw("GET", "/files/list?path=many&limit=5&after=n00009")[1])
        self.assertEqual([entry["name"] for entry in page["files"]], names[10:15])
        self.assertEqual((page["truncated"], page["next"]), (True, names[14]))
        last = json.loads(self.raw("GET", "/files/list?path=many&limit=5&after=n19994")[1])
        self.assertEqual((len(last["files"]), last["truncated"], last["next"]), (5, False, None))

    def test_a_dangling_link_is_listed(self):
        os.mkdir(self.here("links"))
        os.symlink("/nope", self.here("links/d"))
        os.symlink("d2", self.here("links/d2"))
        os.symlink("..", self.here("links/up"))
        files = json.loads(self.raw("GET", "/files/list?path=links")[1])["files"]
        self.assertEqual([(f["name"], f["type"], f["kind"], f["target"]) for f in files],
                         [("d", "file", "symlink", "/nope"), ("d2", "file", "symlink", "d2"),
                          ("up", "directory", "symlink", "..")])
        self.assertEqual(self.code("GET", "/files/stat?path=links/d"), (404, "not_found"))
        self.assertEqual(json.loads(self.raw("GET", "/files/stat?path=links/d&follow=0")[1])["target"], "/nope")

    def test_making_moving_removing(self):
        self.assertEqual(self.code("POST", "/files/mkdir?path=m/n"), (404, "not_found"))
        self.assertEqual(self.code("POST", "/files/mkdir?path=m/n&parents=1&mode=700"), (200, None))
        self.assertEqual(os.stat(self.here("m/n")).st_mode & 0o7777, 0o700)
        self.assertEqual(self.code("POST", "/files/mkdir?path=m/n"), (409, "exists"))
        self.assertEqual(self.code("POST", "/files/mkdir?path=m/n&parents=1"), (200, None))
        self.put("m/n/f", b"1")
        self.put("m/g", b"2")
        self.assertEqual(self.code("POST", "/files/move?from=m/n/f&to=m/g"), (409, "exists"))
        self.assertEqual(self.get("m/g")[1], b"2")
        self.assertEqual(self.code("POST", "/files/move?from=m/n/f&to=m/g&overwrite=1"), (200, None))
        self.assertEqual(self.get("m/g")[1], b"1")
        self.assertEqual(self.code("POST", "/files/move?from=m/none&to=m/x"), (404, "not_found"))
        self.assertEqual(self.code("DELETE", "/files?path=m"), (409, "not_empty"))
        os.symlink("/etc", self.here("m/etc"))
        self.assertEqual(self.code("DELETE", "/files?path=m&recursive=1"), (200, None))
        self.assertFalse(os.path.lexists(self.here("m")))
        self.assertTrue(os.path.exists("/etc/passwd"))
        self.assertEqual(self.code("DELETE", "/files?path=m"), (404, "not_found"))

    def test_an_early_refusal_does_not_take_the_body(self):
        sock = self.begin("/files?path=/", length=1 << 40, sent=b"")
        self.assertIn(b" 400 ", sock.recv(4096))
        sock.close()

    def test_expect_100_is_answered_when_the_body_is_wanted(self):
        sock = self.begin("/files?path=hundred", length=2, sent=b"")
        sock.close()
        for path, first in (("hundred", b"HTTP/1.1 100 "), ("/", b"HTTP/1.1 400 ")):
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(self.agent.path)
            head = "PUT /files?path=%s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n" % path
            head += "".join("%s: %s\r\n" % pair for pair in HEADERS.items())
            sock.sendall(head.encode() + b"\r\n")
            self.assertTrue(sock.recv(4096).startswith(first), path)
            sock.close()


@unittest.skipUnless(IS_ROOT, "needs root")
class Rights(Case):
    """The user of file calls is not root."""

    user = "1234"

    def test_new_files_and_directories_are_the_users(self):
        self.put("a/b/c", b"x")
        for name in ("a", "a/b", "a/b/c"):
            st = os.stat(self.here(name))
            self.assertEqual(st.st_uid, 1234, name)

    def test_what_the_user_may_not(self):
        os.mkdir(self.here("theirs"), 0o777)
        os.chmod(self.here("theirs"), 0o777)
        with open(self.here("theirs/f"), "w") as theirs:
            theirs.write("root's")
        self.assertEqual(self.put("theirs/f", b"x")[1]["code"], "permission_denied")
        os.chmod(self.here("theirs/f"), 0o666)
        answer = self.put("theirs/f", b"x")[1]
        self.assertEqual(answer["code"], "permission_denied")
        self.assertIn("belongs to another user", answer["detail"])
        os.mkdir(self.here("closed"), 0o700)
        self.assertEqual(self.code("GET", "/files/list?path=closed"), (403, "permission_denied"))
        self.assertEqual(self.code("GET", "/files?path=closed/x"), (403, "permission_denied"))
        self.assertEqual(self.put("closed/x", b"x")[0], 403)
        self.assertEqual(self.put("/new-in-root", b"x")[0], 403)
        with open(self.here("theirs/f")) as theirs:
            self.assertEqual(theirs.read(), "root's")

    def test_what_may_not_be_looked_at_is_listed(self):
        os.makedirs(self.here("shut/d"))
        os.mkfifo(self.here("shut/p"))
        os.chmod(self.here("shut"), 0o744)
        files = json.loads(self.raw("GET", "/files/list?path=shut")[1])["files"]
        same = {"size": 0, "modified": "1970-01-01T00:00:00"}
        self.assertEqual(files, [{"name": "d", "type": "directory", "kind": "directory", **same},
                                 {"name": "p", "type": "file", "kind": "fifo", **same}])

    def test_the_helper_is_nothing_but_the_user(self):
        status = dict(line.split(":\t", 1) for line in self.get("/proc/self/status")[1].decode().splitlines())
        self.assertEqual(status["Uid"].split(), ["1234"] * 4)
        self.assertEqual(status["Groups"].split(), [])
        for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"):
            self.assertEqual(int(status[name], 16), 0, name)
        self.assertEqual(int(status["SigBlk"], 16), 0)
        fds = json.loads(self.raw("GET", "/files/list?path=/proc/self/fd")[1])["files"]
        self.assertLessEqual({f["name"] for f in fds}, {"0", "1", "2", "3", "4", "5"})

    def test_another_user_by_name(self):
        self.assertEqual(self.put("nobody-here", b"x", user="no-such-user")[0], 422)
        self.assertEqual(self.put("by-root", b"x", user="0")[0], 200)
        self.assertEqual(os.stat(self.here("by-root")).st_uid, 0)


if __name__ == "__main__":
    test_agent.BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
