"""Trees, the patches between them, and what a sandbox holds; for the tests of apply_patch."""

import base64
import io
import os
import stat
import subprocess
import tarfile


def lay(directory, tree):
    """tree: path -> bytes, (bytes, mode), or str for a symlink's target."""
    for path, what in tree.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(what, str):
            file.symlink_to(what)
            continue
        content, mode = what if isinstance(what, tuple) else (what, 0o644)
        file.write_bytes(content)
        file.chmod(mode)


def diff(directory, before, after, *options):
    """What git says between two trees."""
    def git(*words):
        return subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false", *words],
                              cwd=directory, check=True, capture_output=True,
                              env=os.environ | {"GIT_CONFIG_GLOBAL": "/dev/null"}).stdout
    directory.mkdir(parents=True)
    git("init", "-q", ".")
    lay(directory, before)
    git("add", "-A")
    git("commit", "-qm", "before", "--allow-empty")
    git("rm", "-rqf", "--ignore-unmatch", ".")
    lay(directory, after)
    git("add", "-A")
    return git("diff", "--cached", "--binary", "-M", "HEAD", *options)


def put(box, path, tree, user=None):
    """The tree as a new directory in the sandbox."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, what in tree.items():
            entry = tarfile.TarInfo(name)
            if isinstance(what, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, what
                tar.addfile(entry)
                continue
            content, entry.mode = what if isinstance(what, tuple) else (what, 0o644)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    fields = {"user": user} if user else {}
    box.out(f"rm -rf {path}; mkdir -p {path} && tar -xpf - -C {path}",
            stdin_base64=base64.b64encode(packed.getvalue()).decode(), **fields)


def take(box, path):
    """A directory of the sandbox as such a tree, .git left out."""
    job = box.exec(f"tar --exclude=.git -cf - -C {path} .", encoding="base64")
    tree = {}
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(job["stdout"]))) as tar:
        for entry in tar:
            name = entry.name.removeprefix("./")
            if entry.issym():
                tree[name] = entry.linkname
            elif entry.isfile():
                content = tar.extractfile(entry).read()
                mode = stat.S_IMODE(entry.mode)
                tree[name] = content if mode == 0o644 else (content, mode)
            elif name != ".":
                tree.setdefault("/dirs", set()).add(name)
    return tree


def files(tree):
    return {name: what for name, what in tree.items() if name != "/dirs"}


def post_patch(box, patch, headers=None, **fields):
    if isinstance(patch, bytes):
        try:
            fields["patch"] = patch.decode()
        except UnicodeDecodeError:
            fields["patch_base64"] = base64.b64encode(patch).decode()
    else:
        fields["patch"] = patch
    return box.client.post(f"{box.url}/apply_patch", json=fields, headers=headers or {}, timeout=120)


def apply(box, patch, **fields):
    answer = post_patch(box, patch, **fields)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert {"success", "stdout", "stderr", "exit_code", "error"} <= set(body)
    assert body["success"] == (body["exit_code"] == 0 and body["error"] is None), body
    return body
