"""scripts/smoke-test, which operators run against whatever they have set up."""

import subprocess

from orchard_server import REPO

PROGRAM = REPO / "scripts" / "smoke-test"


def smoke(server, *arguments, key=None):
    return subprocess.run([PROGRAM, "--url", server.url, "--timeout", "60", *arguments], capture_output=True, text=True, timeout=150,
                          env={"PATH": "/usr/bin:/bin", "SANDBOX_API_KEY": key or server.key})


def test_it_says_that_all_is_well_and_leaves_nothing(server):
    before = server.list_ids()
    done = smoke(server)
    assert done.returncode == 0, done.stdout + done.stderr
    for step in ("create", "ready", "exec", "file", "terminal", "delete"):
        assert f"\n{step} " in done.stdout
    assert server.list_ids() == before


def test_it_names_what_does_not_work(server):
    done = smoke(server, key="a-key-that-nobody-knows")
    assert done.returncode == 1 and "POST /sandboxes: 403" in done.stderr
    before = server.list_ids()
    done = smoke(server, "--image", "dir:/nosuch")
    assert done.returncode == 1 and "smoke-test: " in done.stderr
    assert server.list_ids() == before
