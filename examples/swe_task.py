#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A software task: clone a repository into a sandbox, see its tests fail, apply a patch, see them pass, take the diff.

Without --repo a small repository with a fault is made, and with it the patch that mends it.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from orchard_env import SandboxClient, SandboxError

CALC = "def add(a, b):\n    return a - b\n"
TESTS = """from calc import add

assert add(2, 3) == 5, f"2 + 3 is not {add(2, 3)}"
"""
PATCH = """--- a/calc.py
+++ b/calc.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""


def git(repo, *arguments):
    subprocess.run(
        ["git", "-C", repo, "-c", "user.name=Example", "-c", "user.email=example@example.org", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def make_repository(directory):
    """A repository of one commit, with a test that fails."""
    git(directory, "init", "--quiet")
    (directory / "calc.py").write_text(CALC)
    (directory / "test_calc.py").write_text(TESTS)
    git(directory, "add", ".")
    git(directory, "commit", "--quiet", "--message", "Add numbers")


def clone_into(sandbox, repo, commit):
    """The history travels as one file, a bundle; the sandbox needs no network for it."""
    with tempfile.TemporaryDirectory() as scratch:
        bundle = Path(scratch) / "repo.bundle"
        git(repo, "bundle", "create", "--quiet", bundle, "HEAD", "--branches")
        sandbox.upload_file(bundle, "/tmp/repo.bundle")
    must(sandbox.exec("git clone --quiet /tmp/repo.bundle /tmp/repo", timeout=300))
    must(sandbox.exec(["git", "checkout", "--quiet", "--detach", commit], cwd="/tmp/repo"))


def must(job):
    if not job.succeeded:
        raise SystemExit(f"{job.command}: {job.verdict}, exit code {job.exit_code}\n{job.stderr}")
    return job


def solve(sandbox, options, patch):
    clone_into(sandbox, options.repo, options.commit)
    before = sandbox.exec(options.tests, cwd="/tmp/repo", timeout=options.timeout)
    print(f"before: exit code {before.exit_code}")

    result = sandbox.apply_patch(patch, cwd="/tmp/repo")
    if not result.success:  # nothing of it was applied
        raise SystemExit(f"the patch does not apply: {result.stderr}")
    after = sandbox.exec(options.tests, cwd="/tmp/repo", timeout=options.timeout)
    print(f"after: exit code {after.exit_code}")
    if not after.succeeded:
        print(after.stdout + after.stderr, file=sys.stderr)
    print(must(sandbox.exec("git diff", cwd="/tmp/repo")).stdout, end="")
    return not before.succeeded and after.succeeded


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--image", default="python:3.11", help="image with git and what the tests need (default %(default)s)"
    )
    parser.add_argument("--repo", type=Path, help="a local repository (default: one made for this)")
    parser.add_argument("--commit", default="HEAD", help="what to check out (default %(default)s)")
    parser.add_argument("--patch", type=Path, help="the patch to try; needed with --repo")
    # -B: bytecode of the first run would hide a change of the same size within the same second.
    parser.add_argument(
        "--tests", default="python3 -B test_calc.py", help="the command that tests (default %(default)s)"
    )
    parser.add_argument(
        "--timeout", type=float, default=600, help="seconds that the tests may take (default %(default)s)"
    )
    options = parser.parse_args()
    if bool(options.repo) != bool(options.patch):
        parser.error("--repo and --patch go together")
    with tempfile.TemporaryDirectory() as directory, SandboxClient() as client:
        if options.repo is None:
            options.repo = Path(directory)
            make_repository(options.repo)
        patch = options.patch.read_bytes() if options.patch else PATCH
        with client.create_sandbox(options.image, memory="1Gi") as sandbox:
            return 0 if solve(sandbox, options, patch) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SandboxError as error:
        sys.exit(f"{sys.argv[0]}: {error}")
