"""orchardctl cp: files and directories both ways, whole or not at all, and nothing that a sandbox could do to who copies."""

import io
import os
import re
import signal
import stat
import subprocess
import tarfile
import threading
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from ctl import ORCHARDCTL, Ctl
from ctl_fake import Fake
from ctl_screen import Screen
from ctl_wire import Wire

MIB = 1 << 20


@pytest.fixture
def ctl(server, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    return Ctl(server, home)


@pytest.fixture
def tree(tmp_path):
    """A directory with all that a directory can hold."""
    top = tmp_path / "tree"
    (top / "sub" / "deep").mkdir(parents=True)
    (top / "empty").mkdir(mode=0o711)
    (top / "a.txt").write_text("hello\n")
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o755)
    (top / "sub" / "big").write_bytes(os.urandom(3 * MIB + 17))
    (top / "sub" / "deep" / "süß \n name").write_text("odd")
    os.link(top / "a.txt", top / "sub" / "hard")
    (top / "sub" / "link").symlink_to("../a.txt")
    with open(top / "sparse", "wb") as sparse:
        sparse.truncate(2 * MIB)
    os.utime(top / "a.txt", (1_600_000_000, 1_600_000_000))
    return top


def listing(top):
    """What is below: type, mode, contents or target."""
    found = {}
    for path in sorted(Path(top).rglob("*")):
        name, mode = str(path.relative_to(top)), stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("dir", mode)
        else:
            found[name] = ("file", mode, path.read_bytes())
    return found


def left_behind(directory):
    return [name for name in os.listdir(directory) if "orchardctl" in name]


def test_directory_there_and_back(ctl, box, tree, tmp_path):
    assert ctl.out("cp", str(tree), f"{box.id}:/srv/t1") == ""
    assert ctl.out("cp", f"{box.id}:/srv/t1", str(tmp_path / "back")) == ""
    assert listing(tmp_path / "back") == listing(tree)
    back = tmp_path / "back"
    assert (back / "a.txt").stat().st_ino == (back / "sub" / "hard").stat().st_ino
    assert (back / "a.txt").stat().st_mtime == 1_600_000_000
    assert not left_behind(tmp_path)


def test_where_things_go(ctl, box, tree, tmp_path):
    """As cp does it: into a directory that is there under its own name, else under the new one."""
    box.out("mkdir -p /srv/w/there")
    ctl.out("cp", str(tree), f"{box.id}:/srv/w/there")
    ctl.out("cp", str(tree) + "/.", f"{box.id}:/srv/w/flat")
    ctl.out("cp", str(tree / "a.txt"), f"{box.id}:/srv/w/there")
    ctl.out("cp", str(tree / "a.txt"), f"{box.id}:/srv/w/made/")
    ctl.out("cp", str(tree / "a.txt"), f"{box.id}:/srv/w/named")
    names = box.out("cd /srv/w; find . -name a.txt -o -name named | sort").split()
    assert names == ["./flat/a.txt", "./made/a.txt", "./named", "./there/a.txt", "./there/tree/a.txt"]
    here = tmp_path / "here"
    here.mkdir()
    ctl.out("cp", f"{box.id}:/srv/w/named", str(here))
    ctl.out("cp", f"{box.id}:/srv/w/there/tree", str(here))
    ctl.out("cp", f"{box.id}:/srv/w/there/tree/.", str(here / "flat"))
    assert (here / "named").read_text() == "hello\n"
    assert listing(here / "tree") == listing(here / "flat") == listing(tree)


def test_relative_paths_count_from_the_sandboxes_directory(ctl, box, tree):
    ctl.out("cp", str(tree / "a.txt"), f"{box.id}:from-here.txt")
    assert box.out("cat from-here.txt") == "hello\n"


def test_modes(ctl, box, tree, tmp_path):
    ctl.out("cp", str(tree / "run.sh"), f"{box.id}:/tmp/run.sh")
    assert box.out("stat -c %a /tmp/run.sh").strip() == "755"
    box.out("printf x >/tmp/odd; chmod 4751 /tmp/odd")
    old = os.umask(0o022)
    try:
        ctl.out("cp", f"{box.id}:/tmp/odd", str(tmp_path / "odd"))
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "odd").stat().st_mode) == 0o751 & ~0o022, "no set-id bits come along"
    (tmp_path / "kept").write_text("old")
    (tmp_path / "kept").chmod(0o600)
    ctl.out("cp", f"{box.id}:/tmp/odd", str(tmp_path / "kept"))
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o600
    assert (tmp_path / "kept").read_text() == "x"


def test_streams(ctl, box, tree):
    data = os.urandom(MIB + 5)
    assert ctl.run("cp", "-", f"{box.id}:/tmp/stream", input=data).returncode == 0
    done = ctl.run("cp", f"{box.id}:/tmp/stream", "-")
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")
    ctl.out("cp", str(tree), f"{box.id}:/srv/s1")
    done = ctl.run("cp", f"{box.id}:/srv/s1", "-")
    assert "./a.txt" in tarfile.open(fileobj=io.BytesIO(done.stdout)).getnames() or \
        "a.txt" in tarfile.open(fileobj=io.BytesIO(done.stdout)).getnames()
    assert ctl.run("cp", "-", f"{box.id}:/srv/s2/", input=done.stdout).returncode == 0
    assert box.out("diff -r /srv/s1 /srv/s2 && echo same") == "same\n"


def test_files_that_the_kernel_makes_up(ctl, box):
    assert re.fullmatch(r"[\d.]+ [\d.]+\n", ctl.out("cp", f"{box.id}:/proc/uptime", "-"))


def test_as_another_user(ctl, box, tree):
    box.out("mkdir -p /srv/u && chown nobody /srv/u")
    ctl.out("cp", "-u", "nobody", str(tree / "a.txt"), f"{box.id}:/srv/u/a")
    assert box.out("stat -c %U /srv/u/a").strip() == "nobody"
    done = ctl.run("cp", "-u", "nobody", f"{box.id}:/etc/shadow", "-")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"permission" in done.stderr


def test_unreadable_is_said_or_skipped(ctl, box, tmp_path):
    box.out("mkdir -p /srv/un && echo a >/srv/un/a && echo b >/srv/un/b && chmod 600 /srv/un/b && chmod 755 /srv/un")
    done = ctl.run("cp", "-u", "nobody", f"{box.id}:/srv/un", str(tmp_path / "un"))
    assert done.returncode == 1
    assert not (tmp_path / "un").exists()
    ctl.out("cp", "-u", "nobody", "--skip-unreadable", f"{box.id}:/srv/un", str(tmp_path / "un"))
    assert os.listdir(tmp_path / "un") == ["a"]
    assert not left_behind(tmp_path)


def test_links_that_lead_out_are_refused_or_wanted(ctl, box, tmp_path):
    top = tmp_path / "links"
    top.mkdir()
    (top / "out").symlink_to("/etc/passwd")
    done = ctl.run("cp", str(top), f"{box.id}:/srv/links")
    assert done.returncode == 1
    assert b"--any-links" in done.stderr and b"links=any" not in done.stderr
    assert box.out("test -e /srv/links || echo nothing") == "nothing\n"
    for number, (target, inside) in enumerate([("../x", False), ("a/../b", False), ("./b", True), ("/srv/in-4/b", True),
                                               ("/srv/in-40", False), ("sub", True)]):
        (top / "out").unlink()
        (top / "out").symlink_to(target.replace("/in-4/", f"/in-{number}/"))
        assert ctl.run("cp", str(top), f"{box.id}:/srv/in-{number}").returncode == (0 if inside else 1), target
    (top / "out").unlink()
    (top / "out").symlink_to("/etc/passwd")
    ctl.out("cp", "--any-links", str(top), f"{box.id}:/srv/any-links")
    assert box.out("readlink /srv/any-links/out").strip() == "/etc/passwd"


def test_a_sandbox_can_not_write_elsewhere(ctl, box, tmp_path):
    """A link in the sandbox that is followed here would let it write where it wants; devices would be worse."""
    outside = tmp_path / "outside"
    outside.mkdir()
    here = tmp_path / "here"
    here.mkdir()
    (here / "way").symlink_to(outside)
    box.out("rm -rf /srv/evil; mkdir -p /srv/evil/way && echo bad >/srv/evil/way/file")
    done = ctl.run("cp", f"{box.id}:/srv/evil/.", str(here))
    assert os.listdir(outside) == []
    assert done.returncode == 1
    assert os.listdir(here) == ["way"]
    box.out("rm -rf /srv/evil; mkdir /srv/evil; ln -s /etc /srv/evil/way; mkfifo /srv/evil/fifo; echo ok >/srv/evil/file")
    done = ctl.run("cp", f"{box.id}:/srv/evil", str(tmp_path / "evil"))
    assert done.returncode == 0
    assert b"left out" in done.stderr
    assert sorted(os.listdir(tmp_path / "evil")) == ["file", "way"]
    assert os.readlink(tmp_path / "evil" / "way") == "/etc"


def test_an_interrupted_download_leaves_nothing(ctl, box, server, tmp_path):
    box.out("head -c 8M /dev/zero >/tmp/huge; mkdir -p /srv/huge; ln -f /tmp/huge /srv/huge/huge")
    for source, target in ((f"{box.id}:/tmp/huge", "huge"), (f"{box.id}:/srv/huge", "dir")):
        wire = Wire(server.port, limit=MIB)
        process = ctl.start("cp", source, str(tmp_path / target), env={"SANDBOX_BASE_URL": f"http://127.0.0.1:{wire.port}"})
        assert wire.stalled.wait(60)
        assert left_behind(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
        wire.close()
        assert not left_behind(tmp_path)
        assert not (tmp_path / target).exists()


def test_a_broken_download_goes_on_where_it_was(ctl, box, server, tmp_path):
    box.out("seq 1 2000000 >/tmp/long")
    wire = Wire(server.port, limit=3 * MIB)
    process = ctl.start("cp", f"{box.id}:/tmp/long", str(tmp_path / "long"), env={"SANDBOX_BASE_URL": f"http://127.0.0.1:{wire.port}"})
    assert wire.stalled.wait(60)
    wire.limit = None
    wire.cut()
    assert process.wait(60) == 0
    assert b"trying again" in process.stderr.read()
    wire.close()
    assert (tmp_path / "long").read_text() == "".join(f"{n}\n" for n in range(1, 2000001))


def test_into_a_directory_that_is_there(ctl, box, tree, tmp_path):
    """Files take the place of those of their name when all has come; the others stay."""
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    (here / "sub" / "big").write_text("old")
    (here / "sub" / "mine").write_text("mine")
    ctl.out("cp", str(tree) + "/.", f"{box.id}:/srv/merge")
    ctl.out("cp", f"{box.id}:/srv/merge/.", str(here))
    assert listing(here) == listing(tree) | {"sub/mine": ("file", stat.S_IMODE((here / "sub" / "mine").stat().st_mode), b"mine")}
    assert not left_behind(here)


def test_an_interrupted_upload_leaves_the_old_file(ctl, box):
    box.out("echo old >/tmp/target")
    process = ctl.start("cp", "-", f"{box.id}:/tmp/target", stdin=subprocess.PIPE)
    process.stdin.write(b"x" * MIB)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 128 + signal.SIGINT
    process.stdin.close()
    assert box.out("cat /tmp/target; ls -A /tmp | grep -c target") == "old\n1\n"


def test_closed_pipe_is_quiet(ctl, box):
    box.out("head -c 5M /dev/zero >/tmp/five")
    process = ctl.start("cp", f"{box.id}:/tmp/five", "-")
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(30) == 128 + signal.SIGPIPE
    assert process.stderr.read() == b""


def test_progress_on_a_terminal_only(ctl, box, tmp_path):
    box.out("head -c 64M /dev/zero >/tmp/slow")
    with Screen([ORCHARDCTL, "cp", f"{box.id}:/tmp/slow", str(tmp_path / "slow")], ctl.env, cols=70) as screen:
        assert screen.end() == 0
        lines = [re.sub(r"\x1b\[K", "", line) for line in re.split(r"[\r\n]+", screen.text) if line]
        assert all(len(line) < 70 for line in lines)
        if lines:  # it may be over before anybody could look
            assert re.match(r"/tmp/slow +100%  64Mi of 64Mi  [\d.]+\wi/s  in [\d.]+s", lines[-1]), lines
    with Screen([ORCHARDCTL, "-q", "cp", f"{box.id}:/tmp/slow", str(tmp_path / "slow")], ctl.env) as screen:
        assert screen.end() == 0
        assert screen.text == ""


@pytest.mark.parametrize("directories, shown", [(2, True), (300, False)])
def test_a_directory_that_comes_out_shows_what_is_left(tmp_path, directories, shown):
    """A tar has no length; what the listings say is one, but for a tree that it is not worth to look at all of."""
    names = [f"sub{number}" for number in range(directories)]
    enough = threading.Event()

    def answer(request):
        url = urlsplit(request.path)
        if url.path.endswith("/stat"):
            request.answer(200, {"type": "directory", "kind": "directory", "mode": "0755", "size": 0})
        elif not url.path.endswith("/list"):
            request.pour(b"\0" * 512, enough)
        elif parse_qs(url.query)["path"] == ["/d"]:
            request.answer(200, {"files": [{"kind": "directory", "name": name, "mtime": 1} for name in names]})
        else:
            request.answer(200, {"files": [{"kind": "regular", "name": "a", "size": 1 << 29, "mtime": 1.5}]})
    fake = Fake(answer)
    try:
        with Screen([ORCHARDCTL, "cp", "x1:/d", str(tmp_path / "to")], Ctl(fake, tmp_path).env) as screen:
            screen.see("i/s")
            if shown:
                screen.see(" of 1.0Gi  ").see(" left")
            enough.set()
            screen.end()
            assert (" left" in screen.text) == ("%" in screen.text) == shown
    finally:
        enough.set()
        fake.close()


@pytest.mark.parametrize("words, code, says", [
    (["a", "b"], 2, "neither"),
    (["x:a", "y:b"], 2, "orchardctl cp x:a - | orchardctl cp - y:b"),
    (["a"], 2, "from where"),
    (["a", "b", "c"], 2, "one source"),
    (["no-such-file", "BOX:/tmp/"], 1, "no-such-file: No such file"),
    (["BOX:/no/such", "."], 4, "/no/such"),
    (["no-such-box:/etc/passwd", "."], 4, "no-such-box"),
    (["BOX:/etc/passwd", "/no/such/dir/file"], 1, "/no/such/dir/file"),
    (["BOX:/etc/passwd", "/no/such/"], 1, "/no/such/"),
])
def test_refusals_say_what_to_do(ctl, box, words, code, says):
    done = ctl.run("cp", *[word.replace("BOX", box.id) for word in words])
    assert done.returncode == code, done
    assert says in done.stderr.decode()
    assert done.stdout == b""
