"""apply_patch: the patch as bytes, whole or not at all, with git, with patch, or with a clear error."""

import base64
import shutil

import pytest

from orchard_server import eventually
from patches import apply, diff, files, post_patch, put, take

BEFORE = {
    "a.txt": b"one\ntwo\nthree\n",
    "dir/deep/b.txt": b"".join(b"line %d\n" % i for i in range(100)),
    "gone/only.txt": b"removed\n",
    "old name.txt": b"".join(b"same %d\n" % i for i in range(50)),
    "run.sh": b"#!/bin/sh\necho hi\n",
    "crlf.txt": b"one\r\ntwo\r\nthree\r\n",
    "no-newline": b"a\nb",
    "bin": bytes(range(256)) * 8,
    "link": "a.txt",
}
AFTER = {
    "a.txt": b"one\nTWO\nthree\n",
    "dir/deep/b.txt": BEFORE["dir/deep/b.txt"].replace(b"line 50\n", b"LINE fifty\nPATCH_EOF\ntouch /tmp/pwned\n"),
    "new/sub/c.txt": b"PATCH_EOF\ntouch /tmp/pwned\nEOF\n$(touch /tmp/pwned)\n`touch /tmp/pwned`\n",
    "new name.txt": BEFORE["old name.txt"].replace(b"same 7\n", b"other 7\n"),
    "run.sh": (b"#!/bin/sh\necho ho\n", 0o755),
    "crlf.txt": b"one\r\nTWO\r\nthree\r\n",
    "no-newline": b"a\nB",
    "bin": bytes(reversed(range(256))) * 9,
    "link": "dir/deep",
    "empty": b"",
    "t\u00e4b\tand \"quotes\" \\ and\nline": b"x\n",
}
# What an old-style diff can say.
PLAIN_BEFORE = {name: BEFORE[name] for name in ("a.txt", "dir/deep/b.txt", "gone/only.txt", "crlf.txt", "no-newline")}
PLAIN_AFTER = {name: AFTER[name] for name in ("a.txt", "dir/deep/b.txt", "new/sub/c.txt", "crlf.txt", "no-newline")}
KEEP = "--- a/keep\n+++ b/keep\n@@ -1 +1 @@\n-k\n+K\n"
LEFT = "find / -xdev -name '.orchard-patch*' -not -path '/proc/*' | wc -l"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return diff(tmp_path_factory.mktemp("whole") / "w", BEFORE, AFTER)


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return diff(tmp_path_factory.mktemp("plain") / "w", PLAIN_BEFORE, PLAIN_AFTER, "--no-renames")


@pytest.fixture(scope="module")
def no_git(server, image_dir):
    """A sandbox whose PATH leads to GNU patch alone."""
    sandbox = server.create(env={"PATH": "/opt/only"})
    with open(shutil.which("patch"), "rb") as program:
        data = base64.b64encode(program.read()).decode()
    path = "/usr/bin:/bin"
    sandbox.out("mkdir -p /opt/only && cat >/opt/only/patch && chmod 755 /opt/only/patch", stdin_base64=data,
                env={"PATH": path})
    sandbox.path = {"env": {"PATH": path}}
    plain_out, plain_exec = sandbox.out, sandbox.exec
    sandbox.out = lambda command, **fields: plain_out(command, **(sandbox.path | fields))
    sandbox.exec = lambda command, **fields: plain_exec(command, **(sandbox.path | fields))
    yield sandbox
    sandbox.delete()


def make_repo(box, path):
    box.out(f"cd {path} && git init -q . && git -c user.name=t -c user.email=t@t add -A && "
            "git -c user.name=t -c user.email=t@t commit -qm x")


@pytest.mark.parametrize("repo", [False, True])
def test_all_that_git_can_say(box, whole, repo):
    put(box, "/srv/w", BEFORE)
    if repo:
        make_repo(box, "/srv/w")
    done = apply(box, whole, cwd="/srv/w")
    assert done["success"] and done["exit_code"] == 0, done
    tree = take(box, "/srv/w")
    assert files(tree) == AFTER
    assert "gone" not in tree["/dirs"]
    assert box.out(f"ls /tmp/pwned 2>&1; {LEFT}").endswith("\n0\n")
    job = box.job(done["job_id"])
    assert job["command"] == "apply_patch" and job["status"] == "succeeded"


def test_b067_no_byte_of_it_is_shell(box, tmp_path):
    """A patch line equal to a heredoc's delimiter, and other words a shell would run."""
    evil = {"evil.txt": b"PATCH_EOF\ntouch /tmp/pwned\nEOF\n'; touch /tmp/pwned; '\n$(touch /tmp/pwned)\n\x00\xff\x80\n"}
    put(box, "/srv/evil", {"keep": b""})
    done = apply(box, diff(tmp_path / "w", {}, evil), cwd="/srv/evil")
    assert done["success"], done
    assert take(box, "/srv/evil")["evil.txt"] == evil["evil.txt"]
    latin = b"--- /dev/null\n+++ b/latin\n@@ -0,0 +1 @@\n+caf\xe9 \xff\n"
    assert apply(box, latin, cwd="/srv/evil")["success"]
    assert take(box, "/srv/evil")["latin"] == b"caf\xe9 \xff\n"
    assert box.exec("test -e /tmp/pwned")["exit_code"] == 1


def test_b069_nothing_stays_of_a_patch_that_fails(box, whole):
    """The second of two files does not fit: the first is not changed either, nor any inode replaced."""
    for repo in (False, True):
        put(box, "/srv/w", BEFORE | {"run.sh": b"something else\n"})
        if repo:
            make_repo(box, "/srv/w")
        before = box.out("find /srv/w -not -path '*/.git*' -printf '%p %i %T@ %m %u\n' | grep -v '^/srv/w '")
        done = apply(box, whole, cwd="/srv/w")
        assert not done["success"] and done["exit_code"] == 1
        assert "run.sh" in done["stderr"] and "patch does not apply" in done["stderr"]
        assert box.out("find /srv/w -not -path '*/.git*' -printf '%p %i %T@ %m %u\n' | grep -v '^/srv/w '") == before
        assert box.out(LEFT) == "0\n"


def test_b069_nothing_stays_when_the_disk_says_no(box, whole):
    """git checks first, but writes file by file: a directory that takes no file stops it halfway."""
    put(box, "/srv/w", BEFORE)
    box.out("useradd -m walled 2>/dev/null; chown -R walled /srv/w; mkdir /srv/w/new; touch /srv/w/new/x")
    before = box.out("find /srv/w -type f -printf '%p %i %T@ %m\n' | sort")
    done = apply(box, whole, cwd="/srv/w", user="walled")
    assert not done["success"] and "ermission denied" in done["stderr"], done
    assert box.out("find /srv/w -type f -printf '%p %i %T@ %m\n' | sort") == before
    assert files(take(box, "/srv/w")) == BEFORE | {"new/x": b""}
    assert box.out(LEFT) == "0\n"
    box.out("rm /srv/w/new/x; chown walled /srv/w/new")
    assert apply(box, whole, cwd="/srv/w", user="walled")["success"]
    assert files(take(box, "/srv/w")) == AFTER
    assert box.out("find /srv/w -not -user walled") == ""


def test_b069_a_tree_of_another_owner(box, whole):
    """git would call it dubious; the repository's owner is not who applies."""
    put(box, "/srv/w", BEFORE)
    make_repo(box, "/srv/w")
    box.out("chown -R 4321:4321 /srv/w")
    done = apply(box, whole, cwd="/srv/w")
    assert done["success"] and "dubious" not in done["stderr"], done
    assert files(take(box, "/srv/w")) == AFTER


def test_b069_a_missing_cwd_runs_nothing_elsewhere(box, whole):
    for cwd, word in (("/srv/nowhere", "does not exist"), ("/etc/passwd", "not a directory")):
        done = apply(box, whole, cwd=cwd)
        assert not done["success"] and done["exit_code"] == 126
        assert word in done["error"] and word in done["stderr"]


def test_b069_no_git_but_patch(no_git, plain):
    put(no_git, "/srv/w", PLAIN_BEFORE)
    done = apply(no_git, plain, cwd="/srv/w")
    assert done["success"], done
    assert "patching file" in done["stdout"]
    tree = take(no_git, "/srv/w")
    assert files(tree) == PLAIN_AFTER and "gone" not in tree["/dirs"]
    put(no_git, "/srv/w", PLAIN_BEFORE | {"no-newline": b"else\n"})
    before = no_git.out("find /srv/w -type f -printf '%p %i %T@ %m\n'")
    done = apply(no_git, plain, cwd="/srv/w")
    assert not done["success"] and done["exit_code"] == 1 and "FAILED" in done["stdout"]
    assert no_git.out("find /srv/w -type f -printf '%p %i %T@ %m\n'") == before, "no .rej, no .orig, nothing changed"
    assert no_git.out(LEFT) == "0\n"
    for nothing in ("", "words\n"):
        assert not apply(no_git, nothing, cwd="/srv/w")["success"]


def test_b069_neither_git_nor_patch(server, plain):
    box = server.create(env={"PATH": "/opt/nothing"})
    done = apply(box, plain)
    assert not done["success"] and done["exit_code"] == 127
    assert "git not found" in done["error"] and "git not found" in done["stderr"]
    box.delete()


def test_busybox_patch_and_no_bash(server, busybox, plain):
    box = server.create(image=busybox)
    simple = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
    second = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-x\n+y\n"
    put(box, "/srv/w", {"a.txt": b"one\ntwo\nthree\n", "b.txt": b"z\n"})
    before = box.out("stat -c '%i %Y' /srv/w/*")
    done = apply(box, simple + second, cwd="/srv/w")
    assert not done["success"] and box.out("stat -c '%i %Y' /srv/w/*") == before
    assert apply(box, simple, cwd="/srv/w")["success"]
    assert box.out("cat /srv/w/a.txt") == "one\nTWO\nthree\n"
    assert box.out("ls -A /srv/w") == "a.txt\nb.txt\n"
    box.delete()


BINARY = "diff --git a/a b/a\nindex 1..2 100644\nBinary files a/a and b/a differ\n"


@pytest.mark.parametrize(("patch", "line"), [
    ("diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n", 3),
    ("diff --git a/a b/a\nold mode 100644\nnew mode 100755\n", 2),
    ("diff --git a/n b/n\nnew file mode 120000\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+y\n", 2),
    ("diff --git a/n b/n\nnew file mode 100644\nindex 0000000..e69de29\n", 1),
    (BINARY, 3)], ids=["rename", "mode", "link", "empty", "binary"])
def test_what_busybox_would_pass_over_is_refused(server, busybox, patch, line):
    """It answers 0 to them, and does nothing. What stands in the same patch is not done either."""
    box = server.create(image=busybox)
    put(box, "/srv/w", {"a": b"x\n", "keep": b"k\n"})
    done = apply(box, KEEP + patch, cwd="/srv/w")
    assert not done["success"] and done["error"].startswith(f"line {line + 5} of the patch asks for a rename"), done
    assert box.out("cd /srv/w && ls -A && cat a keep") == "a\nkeep\nx\nk\n"
    box.delete()


def test_gnu_patch_is_not_asked_for_binary_files(no_git):
    put(no_git, "/srv/w", {"a": b"x\n", "keep": b"k\n"})
    done = apply(no_git, KEEP + BINARY, cwd="/srv/w")
    assert not done["success"] and done["error"].startswith("line 8 of the patch"), done
    done = apply(no_git, KEEP + "diff --git a/a b/b\nsimilarity index 100%\nrename from a\nrename to b\n", cwd="/srv/w")
    assert done["success"] and files(take(no_git, "/srv/w")) == {"b": b"x\n", "keep": b"K\n"}


def test_a_subdirectory_of_a_repository_skips_nothing(box, tmp_path):
    """git itself ignores, with exit code 0, what lies outside the directory it runs in."""
    put(box, "/srv/top", {"sub/f": b"x\n", "g": b"x\n", "f": b"top\n"})
    make_repo(box, "/srv/top")
    here = diff(tmp_path / "here", {"f": b"x\n"}, {"f": b"y\n", "new": b"n\n"})
    done = apply(box, here, cwd="/srv/top/sub")
    assert done["success"], done
    assert files(take(box, "/srv/top")) == {"sub/f": b"y\n", "sub/new": b"n\n", "g": b"x\n", "f": b"top\n"}
    from_top = diff(tmp_path / "top", {"sub/f": b"y\n", "g": b"x\n"}, {"sub/f": b"z\n", "g": b"z\n"})
    done = apply(box, from_top, cwd="/srv/top/sub")
    assert done["success"] and done["stderr"] == "", done
    assert files(take(box, "/srv/top")) == {"sub/f": b"z\n", "sub/new": b"n\n", "g": b"z\n", "f": b"top\n"}
    done = apply(box, from_top, cwd="/srv/top/sub")
    assert not done["success"] and done["stderr"].count("error:") >= 2
    assert "from the top of the repository, /srv/top" in done["stderr"]
    assert box.out(LEFT) == "0\n"


def test_a_file_becomes_a_directory_and_a_directory_a_file(box, tmp_path):
    before, after = {"a": b"1\n", "d/x": b"2\n"}, {"a/b": b"3\n", "d": b"4\n"}
    put(box, "/srv/w", before)
    assert apply(box, diff(tmp_path / "w", before, after, "--no-renames"), cwd="/srv/w")["success"]
    assert files(take(box, "/srv/w")) == after


def test_names_that_leave_are_refused(box):
    for name in ("../out", "/srv/out", "a/../../out"):
        done = apply(box, f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n", cwd="/srv")
        assert not done["success"] or name == "/srv/out", done
    assert box.exec("test -e /out -o -e /srv/../out")["exit_code"] == 1


def test_the_users_configuration_does_no_harm(box, whole):
    put(box, "/srv/w", BEFORE)
    make_repo(box, "/srv/w")
    box.out("git config --global apply.whitespace error; git config --global core.autocrlf true; "
            "git config --system core.autocrlf input; cd /srv/w; git config apply.whitespace fix; "
            "git config apply.ignoreWhitespace change; git config core.fsmonitor 'touch /tmp/pwned'")
    done = apply(box, whole, cwd="/srv/w")
    box.out("rm -f ~/.gitconfig /etc/gitconfig")
    assert done["success"], done
    assert files(take(box, "/srv/w")) == AFTER


def test_variables_of_the_sandbox_do_no_harm(server, whole):
    box = server.create(env={"GIT_DIR": "/nowhere", "GIT_WORK_TREE": "/tmp", "GIT_INDEX_FILE": "/x", "GIT_TRACE": "1"})
    box.out("true")
    put(box, "/srv/w", BEFORE)
    done = apply(box, whole, cwd="/srv/w")
    assert done["success"] and "trace" not in done["stderr"], done
    assert files(take(box, "/srv/w")) == AFTER
    box.delete()


def test_line_ends_that_the_repository_asks_for(box):
    """What the repository itself says of line ends counts, as for git."""
    put(box, "/srv/eol", {".gitattributes": b"*.txt text eol=crlf\n", "a.txt": b"one\r\ntwo\r\n"})
    make_repo(box, "/srv/eol")
    done = apply(box, "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n", cwd="/srv/eol")
    assert done["success"], done
    assert take(box, "/srv/eol")["a.txt"] == b"one\r\nTWO\r\n"


def test_a_lost_last_newline_and_nonsense(box):
    put(box, "/srv/w", {"a": b"x\n"})
    cut = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y"
    assert apply(box, cut, cwd="/srv/w")["success"]
    assert take(box, "/srv/w")["a"] == b"y\n"
    for nonsense in ("", "\n", "no patch\n", "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-q\n", "\u0000\u0001"):
        done = apply(box, nonsense, cwd="/srv/w")
        assert not done["success"] and done["stderr"], nonsense
    assert take(box, "/srv/w")["a"] == b"y\n"


@pytest.mark.parametrize(("patch", "error"), [
    ("no patch\n", "there is no change in the patch"), ("", "there is no change in the patch"),
    ("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-q\n+y\n", "the patch does not fit at a:1: "),
    ("--- a/sub/b\n+++ b/sub/b\n@@ -1 +1 @@\n-q\n+y\n", "the patch changes sub/b, which is not there: "),
    ("--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+y\n", "the patch makes a, which is there already"),
    ("--- a/a\n+++ b/a\n@@ -1,3 +1 @@\n-x\n+y\n", "line 6 of the patch is not what"),
    ("@@ -1 +1 @@\n-x\n+y\n", "line 1 of the patch begins a change of no file"),
    ("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n", "line 1 of the patch names no file")])
def test_what_is_wrong_is_told_in_words(box, patch, error):
    put(box, "/srv/words", {"a": b"x\n"})
    done = apply(box, patch, cwd="/srv/words")
    assert not done["success"] and done["error"].startswith(error) and done["stderr"].startswith("error: ")
    assert take(box, "/srv/words")["a"] == b"x\n"


IS_DIRECTORY = "which is a directory or a submodule: only files can be patched"


def submodule(head, old=None, new=None):
    """What `git diff` says of a submodule s."""
    lines = "".join(f"{sign}Subproject commit {commit * 40}\n" for sign, commit in (("-", old), ("+", new)) if commit)
    return (f"diff --git a/s b/s\n{head}--- {'a/s' if old else '/dev/null'}\n+++ {'b/s' if new else '/dev/null'}\n"
            f"@@ {'-1' if old else '-0,0'} {'+1' if new else '+0,0'} @@\n{lines}")


@pytest.mark.parametrize(("tree", "patch"), [
    ({}, submodule("new file mode 160000\nindex 0000000..1111111\n", new="1")),
    ({"s/f": b"x\n"}, submodule("index 1111111..2222222 160000\n", "1", "2")),
    ({"s/f": b"x\n"}, submodule("deleted file mode 160000\nindex 1111111..0000000\n", "1")),
    ({"s/": None}, submodule("deleted file mode 160000\nindex 1111111..0000000\n", "1")),
    ({"s/f": b"x\n"}, "--- a/s\n+++ b/s\n@@ -1 +1 @@\n-x\n+y\n"),
    ({"s/f": b"x\n"}, "--- a/s\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"),
    ({"s/": None}, "--- a/s\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"),
    ({"s/f": b"x\n"}, "diff --git a/s b/b\nsimilarity index 100%\nrename from s\nrename to b\n"),
    ({"s/f": b"x\n"}, "diff --git a/s b/b\nsimilarity index 100%\ncopy from s\ncopy to b\n")],
    ids=["new", "changed", "deleted", "empty-deleted", "directory", "directory-deleted", "empty-directory-deleted",
         "renamed", "copied"])
@pytest.mark.parametrize("repo", [False, True])
def test_what_git_takes_for_a_submodule_is_refused(box, tree, patch, repo):
    """git says that all is well, and does nothing or makes an empty directory. A file beside it is not changed either."""
    put(box, "/srv/sub", {"keep": b"k\n"} | {name: what for name, what in tree.items() if what is not None})
    box.out("cd /srv/sub; " + "".join(f"mkdir {name}; " for name, what in tree.items() if what is None) + "true")
    if repo:
        make_repo(box, "/srv/sub")
    listing = "find /srv/sub/* -not -path '*/.git*' -printf '%p %y %m %u'; stat -c '%i %Y' /srv/sub/keep; ls -i /srv/sub/s/f"
    before = box.exec(listing)["stdout"]
    done = apply(box, KEEP + patch, cwd="/srv/sub")
    assert not done["success"] and IS_DIRECTORY in done["error"], done
    assert "is a directory or a submodule" in done["stderr"] and done["stdout"] == ""
    assert box.exec(listing)["stdout"] == before
    assert box.out(LEFT) == "0\n"


@pytest.mark.parametrize("patch", [
    "--- a/d/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
    "diff --git a/d/x b/y\nsimilarity index 100%\nrename from d/x\nrename to y\n"], ids=["deleted", "renamed"])
def test_a_file_that_cannot_be_removed(box, patch):
    """git warns of it, and says that all is well."""
    put(box, "/srv/stuck", {"d/x": b"x\n", "keep": b"k\n"})
    box.out("useradd -m walled 2>/dev/null; chown walled /srv/stuck /srv/stuck/keep")
    done = apply(box, KEEP + patch, cwd="/srv/stuck", user="walled")
    assert not done["success"] and "cannot be removed: 'd/x': Permission denied" in done["error"], done
    assert files(take(box, "/srv/stuck")) == {"d/x": b"x\n", "keep": b"k\n"}
    assert box.out(LEFT) == "0\n"


def test_the_words_of_gnu_patch_too(no_git):
    put(no_git, "/srv/words", {"a": b"x\n"})
    for patch, error in (("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-q\n+y\n", "the patch does not fit at a:1: "),
                         ("no patch\n", "there is no change in the patch"),
                         ("--- a/b\n+++ b/b\n@@ -1 +1 @@\n-q\n+y\n", "the file that line 3 of the patch speaks of")):
        done = apply(no_git, patch, cwd="/srv/words")
        assert not done["success"] and done["error"].startswith(error), done


def test_the_default_directory_and_user_are_the_sandboxes(server):
    box = server.create(working_dir="/srv/home")
    box.out("useradd -m someone; chown someone /srv/home")
    new = "--- /dev/null\n+++ b/d/new\n@@ -0,0 +1 @@\n+x\n"
    assert apply(box, new, user="someone")["success"]
    assert box.out("cd /srv/home/d && stat -c '%U %n' . new") == "someone .\nsomeone new\n"
    assert apply(box, new.replace("new", "newer"), cwd="d")["success"]
    assert box.out("ls /srv/home/d/d") == "newer\n"
    box.delete()


def test_b042_no_room_beside_the_directory(server, whole):
    """/tmp is of no use, and neither is the user's home."""
    box = server.create()
    put(box, "/srv/w", BEFORE)
    box.out("rm -rf /tmp; useradd -m bound; chown -R bound /srv/w; rm -rf /home/bound")
    assert apply(box, whole, cwd="/srv/w", user="bound")["success"]
    assert files(take(box, "/srv/w")) == AFTER
    box.delete()


HANGING = """#!/bin/sh
if [ "$1" = --hang ]; then exec sleep 300; fi
for word; do case $word in apply) hang=1; esac; done
printf half >a.txt.new && mv a.txt.new a.txt && printf x >new-file
sh -c 'exec -a patch-child sleep 300' &
sleep 300
"""


def hanging_box(server):
    box = server.create(env={"PATH": "/opt/slow:/usr/bin:/bin"})
    put(box, "/opt/slow", {"git": (HANGING.encode(), 0o755)})
    put(box, "/srv/w", {"a.txt": b"one\n"})
    return box


SLOW = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n--- /dev/null\n+++ b/new-file\n@@ -0,0 +1 @@\n+x\n"


def test_a_timeout_puts_back_what_was_half_done(server):
    box = hanging_box(server)
    before = box.out("stat -c '%i %y %n' /srv/w/*")
    done = apply(box, SLOW, cwd="/srv/w", timeout_seconds=1)
    assert not done["success"] and done["exit_code"] == 124
    assert done["error"] == "Command timed out after 1s"
    assert box.out("stat -c '%i %y %n' /srv/w/*") == before and box.out("cat /srv/w/a.txt") == "one\n"
    assert box.out("pgrep -c sleep || true") == "0\n", "the whole tree is dead"
    assert box.out(LEFT) == "0\n"
    box.delete()


def test_a_canceled_one_is_put_back_and_commands_wait_for_it(server):
    box = hanging_box(server)
    answer = box.client.post(f"{box.url}/exec", json={"command": "sleep 300", "wait": False, "timeout_seconds": 1}).json()
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor() as pool:
        patch = pool.submit(apply, box, SLOW, cwd="/srv/w", timeout_seconds=600)

        def running():
            jobs = box.client.get(f"{box.url}/jobs").json()["jobs"]
            return next((j["job_id"] for j in jobs if j["command"] == "apply_patch" and j["status"] == "running"), None)
        job_id = eventually(running, 30, "the patch runs once the command has ended")
        assert box.job(answer["job_id"])["status"] == "failed"
        eventually(lambda: box.out("cat /srv/w/a.txt", lane="look") == "half", 30, "it is half done")
        box.client.post(f"/jobs/{job_id}/cancel")
        done = patch.result()
    assert not done["success"] and "canceled" in done["error"]
    assert box.out("cat /srv/w/a.txt; ls -A /srv/w") == "one\na.txt\n"
    box.delete()


def test_the_same_key_applies_once(box):
    put(box, "/srv/w", {"a": b"x\n"})
    once = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+y\n"
    headers = {"Idempotency-Key": "patch-1"}
    first = post_patch(box, once, headers, cwd="/srv/w").json()
    second = post_patch(box, once, headers, cwd="/srv/w").json()
    assert first["success"] and first == second
    assert not apply(box, once, cwd="/srv/w")["success"], "without the key it is applied again, and fails"
    other = post_patch(box, once + "\n", headers, cwd="/srv/w")
    assert other.status_code == 409 and other.json()["code"] == "idempotency_conflict"


@pytest.mark.parametrize("body", [
    {}, {"patch": None}, {"patch": 1}, {"patch": "x", "patch_base64": "eA=="}, {"patch_base64": "%"},
    {"patch": "x", "timeout_seconds": -1}, {"patch": "x", "timeout_seconds": "1"}, {"patch": "x", "cwd": 1},
    {"patch": "x", "cwd": "a\0b"}, {"patch": "x", "lane": "\n"}])
def test_wrong_fields(box, body):
    answer = box.client.post(f"{box.url}/apply_patch", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"][0]["loc"][0] == "body"


def test_no_such_sandbox(server):
    assert server.client.post("/sandboxes/nowhere/apply_patch", json={"patch": "x"}).status_code == 404


def test_a_large_patch(box):
    """8 MiB in one new file, and 500 files at once."""
    line = b"+" + b"x" * 1023 + b"\n"
    put(box, "/srv/large", {"keep": b""})
    big = b"--- /dev/null\n+++ b/big\n@@ -0,0 +1,8192 @@\n" + line * 8192
    assert apply(box, big, cwd="/srv/large")["success"]
    assert box.out("stat -c %s /srv/large/big") == f"{8 << 20}\n"
    many = b"".join(b"--- /dev/null\n+++ b/d%d/f%d\n@@ -0,0 +1 @@\n+%d\n" % (i % 9, i, i) for i in range(500))
    assert apply(box, many, cwd="/srv/large")["success"]
    assert box.out("find /srv/large -name 'f*' | wc -l; cat /srv/large/d4/f499") == "500\n499\n"
