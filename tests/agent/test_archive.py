# SPDX-License-Identifier: MIT
"""Archives of the real orchard-agent, against GNU tar, bsdtar and Python's tarfile.

usage: test_archive.py BINARY [unittest arguments]
"""

import gzip
import io
import json
import os
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest
import urllib.parse

import test_agent
import test_files
from test_agent import IS_ROOT, memory_kib, until

MIB = 1 << 20
LONG = "/".join(["d" * 100] * 5)


class Case(test_files.Case):
    def pack(self, path=".", **query):
        status, body, headers = self.raw("GET", "/archive?" + urllib.parse.urlencode({"path": path, **query}))
        self.assertEqual(status, 200, body[:500])
        self.assertEqual(headers["content-type"], "application/x-tar")
        return body

    def unpack(self, body, path="out", **query):
        status, text, _ = self.raw("PUT", "/archive?" + urllib.parse.urlencode({"path": path, **query}), body)
        return status, json.loads(text)

    def unpacked(self, body, path="out", **query):
        status, answer = self.unpack(body, path, **query)
        self.assertEqual(status, 200, answer)
        return answer

    def setUp(self):
        self.clear()

    def clear(self):
        for name in os.listdir(os.fsencode(self.dir)):
            path = os.path.join(os.fsencode(self.dir), name)
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)

    def make_tree(self, name="in"):
        """One of each kind, with names and times that are hard to keep."""
        root = os.fsencode(self.here(name))
        os.makedirs(os.path.join(root, LONG.encode()))
        for path, content, mode in [
                (b"plain", b"plain\n", 0o644), (b"empty", b"", 0o600), (b"run", b"#!/bin/sh\n", 0o755),
                (b"sp ace\nnew\tline\"q'%+#\\", b"x", 0o640), ("täb".encode(), b"utf", 0o644), (b"l\xe4tin", b"raw", 0o644),
                (LONG.encode() + b"/" + b"n" * 120, b"deep", 0o444), (b"block", b"b" * 512, 0o644),
                (b"big", os.urandom(300_000), 0o644)]:
            with open(os.path.join(root, path), "wb") as file:
                file.write(content)
            os.chmod(os.path.join(root, path), mode)
            os.utime(os.path.join(root, path), ns=(1, 1_234_567_890_123_456_789))
        os.link(os.path.join(root, b"plain"), os.path.join(root, b"second name"))
        os.link(os.path.join(root, b"plain"), os.path.join(root, LONG.encode(), b"third"))
        os.symlink("plain", os.path.join(root, b"link"))
        os.symlink("../" * 5 + "plain", os.path.join(root, LONG.encode(), b"up"))
        os.symlink("x" * 300, os.path.join(root, b"long link"))
        os.symlink("nowhere", os.path.join(root, b"dangling"))
        os.mkfifo(os.path.join(root, b"fifo"), 0o620)
        os.mkdir(os.path.join(root, b"closed"), 0o700)
        os.mkdir(os.path.join(root, b"sticky"))
        os.chmod(os.path.join(root, b"sticky"), 0o1777)
        for directory in (b"closed", LONG.encode()):
            os.utime(os.path.join(root, directory), ns=(1, 987_654_321_000_000_001))
        return self.here(name)

    def look(self, root, times=True):
        """Everything that should survive the way."""
        seen, inodes = {}, {}
        root = os.fsencode(root)
        for where, dirs, files in os.walk(root):
            for name in dirs + files:
                path = os.path.join(where, name)
                st = os.lstat(path)
                key = os.path.relpath(path, root)
                what = [stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode)]
                if stat.S_ISREG(st.st_mode):
                    with open(path, "rb") as file:
                        what.append(file.read())
                if stat.S_ISLNK(st.st_mode):
                    what = [stat.S_IFLNK, os.readlink(path)]
                if times and not stat.S_ISDIR(st.st_mode):
                    what.append(st.st_mtime_ns)
                if times and name in (b"closed", b"d" * 100) and key.count(b"/") in (0, 4):
                    what.append(st.st_mtime_ns)
                seen[key] = what
                if stat.S_ISREG(st.st_mode):
                    inodes.setdefault(st.st_ino, set()).add(key)
        return seen, sorted(sorted(names) for names in inodes.values() if len(names) > 1)

    def same(self, one, other, times=True):
        left, right = self.look(one, times), self.look(other, times)
        self.assertEqual(sorted(left[0]), sorted(right[0]))
        for name, what in left[0].items():
            self.assertEqual(what, right[0][name], name)
        self.assertEqual(left[1], right[1])


class RoundTrip(Case):
    def test_there_and_back(self):
        tree = self.make_tree()
        self.unpacked(self.pack("in"))
        self.same(tree, self.here("out"))

    def test_a_second_time_over_the_first(self):
        tree = self.make_tree()
        body = self.pack("in")
        self.unpacked(body)
        os.unlink(self.here("out/plain"))
        os.mkdir(self.here("out/plain"))
        os.unlink(self.here("out/link"))
        os.mkdir(self.here("out/link"))
        self.unpacked(body)
        self.same(tree, self.here("out"))

    def test_times_before_1970_and_long_names_of_any_bytes(self):
        os.mkdir(self.here("in"))
        for name, ns in ((b"old", -1_500_000_000), (b"older", -3 * 10**18), (b"\xff" * 200, 10**18 + 1)):
            with open(os.fsencode(self.here("in/")) + name, "w"):
                pass
            os.utime(os.fsencode(self.here("in/")) + name, ns=(1, ns))
        body = self.pack("in")
        self.unpacked(body)
        self.same(self.here("in"), self.here("out"))
        with tarfile.open(fileobj=io.BytesIO(body), errors="surrogateescape") as tar:
            self.assertIn(b"\xff" * 200, [os.fsencode(name) for name in tar.getnames()])

    def test_an_empty_directory(self):
        os.mkdir(self.here("in"))
        body = self.pack("in")
        self.assertEqual(body, bytes(1024))
        self.assertEqual(self.unpacked(body)["entries"], 0)
        self.assertTrue(os.path.isdir(self.here("out")))

    def test_a_head_alone(self):
        os.mkdir(self.here("in"))
        status, body, headers = self.raw("HEAD", "/archive?path=in")
        self.assertEqual((status, body, headers["content-type"]), (200, b"", "application/x-tar"))

    def test_sockets_are_left_out(self):
        import socket
        os.mkdir(self.here("in"))
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(self.here("in/sock"))
            self.assertEqual(tarfile.open(fileobj=io.BytesIO(self.pack("in"))).getnames(), [])

    def test_proc_is_an_empty_directory(self):
        with tarfile.open(fileobj=io.BytesIO(self.pack("/proc"))) as tar:
            self.assertEqual(tar.getnames(), [])

    def test_what_cannot_be_packed(self):
        with open(self.here("file"), "w"):
            pass
        self.assertEqual(self.code("GET", "/archive?path=nowhere"), (404, "not_found"))
        self.assertEqual(self.code("GET", "/archive?path=file"), (400, "not_directory"))
        self.assertEqual(self.code("GET", "/archive"), (422, "invalid"))
        self.assertEqual(self.code("GET", "/archive?path=in&unreadable=x"), (422, "invalid"))
        self.assertEqual(self.code("DELETE", "/archive?path=in"), (405, "method_not_allowed"))


class OthersReadOurs(Case):
    def check(self, *command):
        tree = self.make_tree()
        body = self.pack("in")
        os.mkdir(self.here("out"))
        done = subprocess.run([*command, "-C", self.here("out")], input=body, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.same(tree, self.here("out"))

    def test_gnu_tar(self):
        self.check("tar", "-xpf", "-")

    @unittest.skipUnless(shutil.which("bsdtar"), "no bsdtar")
    def test_bsdtar(self):
        self.check("bsdtar", "-xpf", "-")

    def test_tarfile(self):
        tree = self.make_tree()
        with tarfile.open(fileobj=io.BytesIO(self.pack("in"))) as tar:
            tar.extractall(self.here("out"))
        self.same(tree, self.here("out"), times=False)

    def test_a_size_beyond_octal(self):
        """Only its header: 9 GiB of a hole."""
        os.mkdir(self.here("in"))
        with open(self.here("in/huge"), "wb") as file:
            file.truncate(9 << 30)
        connection = self.agent.request("GET", "/archive?path=in", None, test_files.HEADERS)
        answer = connection.getresponse()
        with tarfile.open(fileobj=answer, mode="r|") as tar:
            self.assertEqual(tar.next().size, 9 << 30)
            break_off = answer
        break_off.close()
        connection.close()


class WeReadOthers(Case):
    def check(self, *command, times=True):
        tree = self.make_tree()
        body = subprocess.run([*command, "-C", tree, "."], check=True, capture_output=True).stdout
        self.unpacked(body)
        self.same(tree, self.here("out"), times)

    def test_gnu_tar(self):
        self.check("tar", "--format=gnu", "-cf", "-", times=False)

    def test_gnu_tar_posix(self):
        self.check("tar", "--format=posix", "-cf", "-")

    def test_gnu_tar_gzip(self):
        self.check("tar", "--format=posix", "-czf", "-")

    @unittest.skipUnless(shutil.which("bsdtar"), "no bsdtar")
    def test_bsdtar(self):
        self.check("bsdtar", "--format=pax", "-cf", "-")

    def test_tarfile(self):
        for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            tree = self.make_tree()
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w", format=kind) as tar:
                for name in sorted(os.listdir(tree)):
                    tar.add(os.path.join(tree, name), name)
            self.unpacked(packed.getvalue())
            self.same(tree, self.here("out"), times=False)
            self.clear()

    def test_ustar_prefix_and_v7(self):
        os.makedirs(self.here("in/" + "p" * 90 + "/" + "q" * 40))
        for name, content in (("a", b"1"), ("p" * 90 + "/" + "q" * 40 + "/" + "n" * 60, b"2")):
            with open(self.here("in/" + name), "wb") as file:
                file.write(content)
        body = subprocess.run(["tar", "--format=ustar", "-cf", "-", "-C", self.here("in"), "."], check=True,
                              capture_output=True).stdout
        self.unpacked(body)
        self.same(self.here("in"), self.here("out"), times=False)
        body = subprocess.run(["tar", "--format=v7", "-cf", "-", "-C", self.here("in"), "a"], check=True,
                              capture_output=True).stdout
        self.unpacked(body, "v7")
        self.assertEqual(os.listdir(self.here("v7")), ["a"])

    def test_sparse_files(self):
        os.mkdir(self.here("in"))
        for name, holes in (("one", 1), ("many", 60), ("hole", 0)):
            with open(self.here("in/" + name), "wb") as file:
                for i in range(holes):
                    file.seek(i * MIB)
                    file.write(b"data %d" % i * 1000)
                file.truncate(holes * MIB + 70 * MIB)
        for form in (["gnu"], ["posix", "--sparse-version=0.0"], ["posix", "--sparse-version=0.1"],
                     ["posix", "--sparse-version=1.0"]):
            body = subprocess.run(["tar", "--sparse", "--format=" + form[0], *form[1:], "-cf", "-", "-C",
                                   self.here("in"), "."], check=True, capture_output=True).stdout
            self.assertLess(len(body), 4 * MIB)
            self.unpacked(body)
            for name in os.listdir(self.here("in")):
                done = subprocess.run(["cmp", self.here("in/" + name), self.here("out/" + name)], capture_output=True)
                self.assertEqual((done.returncode, form, name), (0, form, name))
            self.assertLess(os.stat(self.here("out/hole")).st_blocks * 512, MIB)
            shutil.rmtree(self.here("out"))


def archive(*entries, **options):
    """entries: (name, content or None, fields of TarInfo)"""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", **options) as tar:
        for name, content, fields in entries:
            entry = tarfile.TarInfo(name)
            for field, value in fields.items():
                setattr(entry, field, value)
            entry.size = len(content) if content is not None else 0
            tar.addfile(entry, io.BytesIO(content) if content is not None else None)
    return packed.getvalue()


class Walls(Case):
    """Nothing outside is touched, whatever the archive says and whatever lies there."""

    def refused(self, body, words, code=(400, "invalid"), **query):
        status, answer = self.unpack(body, **query)
        self.assertEqual((status, answer["code"]), code, answer)
        self.assertIn(words, answer["detail"])

    def test_names_that_leave(self):
        good = ("good", b"1", {})
        for name in ("/etc/x", "../x", "a/../../x", "a/..", "..", "/"):
            self.refused(archive(good, (name, b"2", {})), "1 entries were written")
        self.assertEqual(sorted(os.listdir(self.dir)), ["out"])
        self.assertEqual(os.listdir(self.here("out")), ["good"])
        self.refused(archive(("", b"2", {})), "empty")

    def test_links_that_leave(self):
        for target in ("/etc/passwd", "../x", "a/../../x", "../../" + "out/x"):
            link = archive(("l", None, {"type": tarfile.SYMTYPE, "linkname": target}))
            self.refused(link, "leads out")
            self.assertEqual(os.listdir(self.here("out")), [])
        for target in ("/etc/passwd", "../secret"):
            self.refused(archive(("l", None, {"type": tarfile.LNKTYPE, "linkname": target})), "leads out")
        inside = archive(("d/l", None, {"type": tarfile.SYMTYPE, "linkname": "../x"}),
                         ("e", None, {"type": tarfile.SYMTYPE, "linkname": "./a/b"}),
                         ("f", None, {"type": tarfile.SYMTYPE, "linkname": self.here("out") + "/x"}))
        self.unpacked(inside, self.here("out"))
        self.unpacked(archive(("l", None, {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"})), links="any")
        self.assertEqual(os.readlink(self.here("out/l")), "/etc/passwd")

    def test_links_that_leave_by_other_links(self):
        up = ("d1/d2", None, {"type": tarfile.SYMTYPE, "linkname": "../."})
        deep = ("a/b/l", None, {"type": tarfile.SYMTYPE, "linkname": "../../x"})
        for first, name, kind, target in ((up, "esc", tarfile.SYMTYPE, "d1/d2/../secret"),
                                          (up, "esc", tarfile.SYMTYPE, self.here("out") + "/d1/d2/../secret"),
                                          (up, "d1/d2/esc", tarfile.SYMTYPE, "../../secret"),
                                          (deep, "esc", tarfile.LNKTYPE, "a/b/l")):
            body = archive(first, (name, None, {"type": kind, "linkname": target}))
            self.refused(body, "leads out", path=self.here("out"))
            self.assertFalse(os.path.lexists(self.here("out/esc")), target)
        self.unpacked(archive(up, ("d1/d2/same", None, {"type": tarfile.SYMTYPE, "linkname": "d1"})))
        self.assertEqual(os.readlink(self.here("out/same")), "d1")

    def test_links_are_not_followed_out(self):
        """Through a link that was there, or that the archive made."""
        os.mkdir(self.here("secret"))
        os.mkdir(self.here("out"))
        os.symlink(self.here("secret"), self.here("out/there"))
        self.refused(archive(("there/x", b"1", {})), "a link on the way leads out")
        self.refused(archive(("there", None, {"type": tarfile.DIRTYPE})), "a link on the way leads out")
        made = archive(("way", None, {"type": tarfile.SYMTYPE, "linkname": "../secret"}), ("way/x", b"1", {}))
        self.assertNotEqual(self.unpack(made, links="any")[0], 200)
        self.assertEqual(os.listdir(self.here("secret")), [])
        os.symlink(self.here("secret") + "/y", self.here("out/file"))
        self.unpacked(archive(("file", b"new", {})))
        self.assertEqual(os.listdir(self.here("secret")), [])
        self.assertFalse(os.path.islink(self.here("out/file")))
        stolen = archive(("h", None, {"type": tarfile.LNKTYPE, "linkname": "there/x"}))
        with open(self.here("secret/x"), "w"):
            pass
        self.assertNotEqual(self.unpack(stolen)[0], 200)

    def test_links_that_stay_are_followed(self):
        os.makedirs(self.here("out/usr/bin"))
        os.symlink("usr/bin", self.here("out/bin"))
        self.unpacked(archive(("bin/tool", b"1", {}), ("bin", None, {"type": tarfile.DIRTYPE, "mode": 0o755})))
        self.assertTrue(os.path.islink(self.here("out/bin")))
        self.assertEqual(os.listdir(self.here("out/usr/bin")), ["tool"])

    def test_the_root_keeps_what_it_is(self):
        os.mkdir(self.here("out"), 0o755)
        self.unpacked(archive(("./", None, {"type": tarfile.DIRTYPE, "mode": 0o700}), ("./a", b"", {"mode": 0o600})))
        self.assertEqual(stat.S_IMODE(os.stat(self.here("out")).st_mode), 0o755)

    def test_set_ids_come_only_with_owners(self):
        body = archive(("a", b"", {"mode": 0o6755}))
        self.unpacked(body)
        self.assertEqual(stat.S_IMODE(os.stat(self.here("out/a")).st_mode), 0o755)

    def test_no_archive(self):
        for body, words in ((b"", "empty"), (b"hello", "middle"), (b"x" * 4096, "no tar"), (b"\x1f\x8b", "gzip"),
                            (b"\x28\xb5\x2f\xfd" + bytes(600), "zstd"), (b"BZh9" + bytes(600), "bzip2"),
                            (gzip.compress(b"x" * 4096), "no tar"), (gzip.compress(b"no"), "middle")):
            self.refused(body, words)
        self.assertEqual(os.listdir(self.here("out")), [])

    def test_a_cut_archive_leaves_no_half_file(self):
        body = archive(("a", b"1" * 2000, {}), ("b", b"2" * 200_000, {}))
        self.refused(body[:100_000], "middle of an entry; 1 entries")
        self.assertEqual(os.listdir(self.here("out")), ["a"])
        packed = gzip.compress(body)
        self.refused(packed[:-4], "gzip")
        self.refused(packed[:-6] + b"xx" + packed[-4:], "gzip")
        self.unpacked(packed + gzip.compress(b""))
        status, answer = self.unpack(body[:-1024])
        self.assertEqual((status, answer["entries"]), (200, 2), "only the end mark is missing")

    def test_a_client_that_leaves(self):
        sock = self.begin("/archive?path=out", 300_000, archive(("a", b"1", {}), ("b", b"2" * 200_000, {}))[:100_000])
        until(lambda: os.path.exists(self.here("out")) and len(os.listdir(self.here("out"))) == 2)
        sock.close()
        until(lambda: os.listdir(self.here("out")) == ["a"])

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_a_killed_helper_leaves_no_half_file(self):
        body = archive(("d", None, {"type": tarfile.DIRTYPE, "mode": 0o755}), ("d/b", b"2" * 200_000, {}))
        until(lambda: not self.helpers())
        with self.begin("/archive?path=out", 300_000, body[:100_000]):
            until(lambda: os.path.exists(self.here("out")) and len(os.listdir(self.here("out"))) == 2)
            for pid in self.helpers():
                os.kill(pid, signal.SIGKILL)
            until(lambda: os.listdir(self.here("out")) == ["d"])
        self.assertEqual(os.listdir(self.here("out/d")), [])

    def test_broken_headers(self):
        body = bytearray(archive(("a", b"1" * 600, {"mtime": 5}), ("b", b"2", {})))
        body[1536 + 3] ^= 1
        self.refused(bytes(body), "broken")
        for seed in range(200):
            chaos = random.Random(seed)
            body = bytearray(archive(("a" * 200, b"1" * 700, {"mtime": 1.5}), ("b", b"2", {})))
            for _ in range(chaos.randrange(1, 8)):
                body[chaos.randrange(len(body))] = chaos.randrange(256)
            status, answer = self.unpack(bytes(body))
            self.assertIn(status, (200, 400, 404), answer)

    def test_lies_about_size(self):
        def header(size, kind=b"0", name=b"f"):
            block = bytearray(512)
            block[0:len(name)] = name
            block[100:108], block[108:116], block[116:124] = b"0000644\0", b"0000000\0", b"0000000\0"
            block[124:136], block[136:148] = size, b"00000000000\0"
            block[148:156], block[156:157] = b" " * 8, kind
            block[257:265] = b"ustar\x0000"
            block[148:156] = b"%06o\0 " % sum(block)
            return bytes(block)
        huge = b"\x80" + bytes(3) + struct.pack(">Q", 1 << 62)
        self.refused(header(huge) + bytes(5000), "middle")
        self.refused(header(b"\xff" * 12), "size")
        self.refused(header(b"77777777777\0", b"x") + bytes(5000), "more than")
        self.refused(header(b"77777777777\0", b"L") + bytes(5000), "more than")
        self.refused(header(b"00000000000\0", b"Q"), "0x51")
        for text in (b"11 path=../x\n", b"7 uid=x\n", b"99 path=x\n", b"9 mtime=\n", b"16 path=a\0bcdefg\n",
                     b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n", b"27 GNU.sparse.map=0,1,1,1,1\n",
                     b"9999999999999999999999 a=b\n", b"5 a=\n", b"0 \n", b"21 size=888888888888\n"):
            body = header(b"%011o\0" % len(text), b"x") + text + bytes(-len(text) % 512) + header(b"00000000002\0")
            status, answer = self.unpack(body + b"hi" + bytes(510 + 1024))
            self.assertIn(status, (200, 400), text)
        self.assertEqual([name for name in os.listdir(self.dir) if name != "out"], [])


@unittest.skipUnless(IS_ROOT, "needs root")
class Owners(Case):
    def test_they_are_kept_only_when_asked(self):
        os.mkdir(self.here("in"))
        with open(self.here("in/a"), "w"):
            pass
        os.chown(self.here("in/a"), 1234, 2345)
        os.chmod(self.here("in/a"), 0o4755)
        body = self.pack("in")
        with tarfile.open(fileobj=io.BytesIO(body)) as tar:
            self.assertEqual((tar.getmember("a").uid, tar.getmember("a").gid), (1234, 2345))
        self.unpacked(body)
        st = os.stat(self.here("out/a"))
        self.assertEqual((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (os.geteuid(), os.getegid(), 0o755))
        self.unpacked(body, owners="keep")
        st = os.stat(self.here("out/a"))
        self.assertEqual((st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)), (1234, 2345, 0o4755))


@unittest.skipUnless(IS_ROOT, "needs root")
class AsUser(Case):
    user = "4242"

    def test_owners_only_as_far_as_the_user_may(self):
        body = archive(("d", None, {"type": tarfile.DIRTYPE, "mode": 0o755}), ("d/a", b"1", {"uid": 1, "gid": 1, "mode": 0o4755}))
        self.unpacked(body, owners="keep")
        st = os.stat(self.here("out/d/a"))
        self.assertEqual((st.st_uid, stat.S_IMODE(st.st_mode)), (4242, 0o755))

    def test_what_may_not_be_read_is_said_before_the_first_byte(self):
        os.makedirs(self.here("in/dir"))
        for name in ("ok", "secret", "dir/x"):
            with open(self.here("in/" + name), "w") as file:
                file.write(name)
        os.chmod(self.here("in/secret"), 0o600)
        status, body, _ = self.raw("GET", "/archive?path=in")
        answer = json.loads(body)
        self.assertEqual((status, answer["code"]), (403, "permission_denied"))
        self.assertIn("in/secret", answer["detail"])
        os.chmod(self.here("in/dir"), 0o700)
        with tarfile.open(fileobj=io.BytesIO(self.pack("in", unreadable="skip"))) as tar:
            self.assertEqual(sorted(tar.getnames()), ["dir", "ok"])

    def test_a_directory_that_takes_no_files(self):
        os.makedirs(self.here("out/own"))
        os.chown(self.here("out"), 0, 0)
        os.chown(self.here("out/own"), 4242, 4242)
        self.unpacked(archive(("own/a", b"1", {}), ("own/b", b"2", {})))
        self.assertEqual(sorted(os.listdir(self.here("out/own"))), ["a", "b"])
        status, answer = self.unpack(archive(("own/c", b"3", {}), ("top", b"4", {})))
        self.assertEqual((status, answer["code"]), (403, "permission_denied"))
        self.assertEqual(os.listdir(self.here("out")), ["own"])


class Many(Case):
    def test_many_files_take_no_memory(self):
        """A smaller one of what docs/benchmarks.md measures with 50,000."""
        body = archive(*[("d%d/f%d" % (i % 50, i), b"%d" % i, {}) for i in range(5000)], format=tarfile.USTAR_FORMAT)
        before = memory_kib(self.agent.pid, "Pss")
        self.assertEqual(self.unpacked(body)["entries"], 5000)
        with tarfile.open(fileobj=io.BytesIO(self.pack("out"))) as tar:
            names = tar.getnames()
        self.assertEqual(len(names), 5050)
        self.assertLess(memory_kib(self.agent.pid, "Pss") - before, 4096)


if __name__ == "__main__":
    test_agent.BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
