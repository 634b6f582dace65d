"""The Python SDK's files, patches and terminals against the real server."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdk" / "python" / "src"))

import orchard_env  # noqa: E402
from orchard_env import AsyncSandboxClient, SandboxClient  # noqa: E402

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-hello\n+world\n"


@pytest.fixture(scope="module")
def sandbox(server):
    with SandboxClient(server.url, server.key) as client, client.create_sandbox(server.image) as made:
        yield made


def test_content_both_ways(sandbox):
    data = bytes(range(256)) * 1000
    assert sandbox.upload_content(data, "/up/to here/ü#%+.bin", mode=0o640) == len(data)
    assert sandbox.download_content("/up/to here/ü#%+.bin") == data
    assert sandbox.upload_content("täxt", "/up/t") == 5
    assert sandbox.exec("stat -c %a '/up/to here/ü#%+.bin'").stdout == "640\n"
    assert [(one.name, one.type) for one in sandbox.list_files("/up")] == [("t", "file"), ("to here", "directory")]
    with pytest.raises(orchard_env.NotFoundError):
        sandbox.download_content("/up/nosuch")
    with pytest.raises(orchard_env.NotFoundError):
        sandbox.list_files("/nosuch")


def test_files_both_ways(sandbox, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(os.urandom(3_000_001))
    there.chmod(0o755)
    assert sandbox.upload_file(there, "/files/prog") == 3_000_001
    assert sandbox.exec("test -x /files/prog").succeeded
    sandbox.download_file("/files/prog", back)
    assert back.read_bytes() == there.read_bytes()
    sandbox.download_file("/files/prog", tmp_path)
    assert (tmp_path / "prog").read_bytes() == there.read_bytes()
    with pytest.raises(orchard_env.NotFoundError):
        sandbox.download_file("/files/nosuch", back)
    assert back.read_bytes() == there.read_bytes()
    assert not list(tmp_path.glob("*.part"))


def test_directories_both_ways(sandbox, tmp_path):
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "file").write_text("x" * 5000)
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o755)
    (source / "link").symlink_to("deep/er/file")
    sandbox.upload_dir(source, "/tree/top")
    assert sandbox.exec("cat /tree/top/link | wc -c; test -x /tree/top/run && echo x").stdout == "5000\nx\n"
    sandbox.download_dir("/tree/top", tmp_path / "copy")
    assert (tmp_path / "copy" / "deep" / "er" / "file").read_text() == "x" * 5000
    assert os.readlink(tmp_path / "copy" / "link") == "deep/er/file"
    assert os.access(tmp_path / "copy" / "run", os.X_OK)


def test_patches(sandbox):
    sandbox.upload_content("hello\n", "/patch/a.txt")
    result = sandbox.apply_patch(PATCH, cwd="/patch")
    assert result.success and result.exit_code == 0, result.stderr
    assert sandbox.download_content("/patch/a.txt") == b"world\n"
    again = sandbox.apply_patch(PATCH.encode(), cwd="/patch")
    assert again.error.startswith("the patch does not fit at a.txt:1: ")
    assert not again.success and again.exit_code != 0 and again.stderr
    assert sandbox.download_content("/patch/a.txt") == b"world\n"


def test_what_a_login_shell_finds(sandbox):
    found = sandbox.check_env(["sh", "no-such-program"])
    assert found == {"sh": found["sh"], "no-such-program": None} and found["sh"].endswith("/sh")


def test_a_terminal_to_talk_to(sandbox):
    with sandbox.exec(["sh"], pty=True, rows=33, cols=99, env={"PS1": "> "}) as terminal:
        assert terminal.pid > 1 and terminal.poll() is None
        terminal.write_stdin("stty size\n")
        seen = b""
        while b"33 99" not in seen:
            seen += terminal.read(timeout=30)
        terminal.resize(20, 40)
        terminal.write_stdin(b"stty size; exit 5\n")
        assert b"20 40" in terminal.read_all(timeout=30)
        assert terminal.wait(30) == terminal.poll() == terminal.returncode == 5
        assert terminal.read() == terminal.read() == b""


def test_terminals_that_end_otherwise(sandbox):
    terminal = sandbox.exec("sleep 600", pty=True)
    with pytest.raises(orchard_env.SandboxTimeoutError):
        terminal.read(timeout=0.2)
    terminal.kill("TERM")
    assert terminal.wait(30) == -15
    with pytest.raises(orchard_env.TransportError, match="no-such-program"):
        sandbox.exec(["no-such-program"], pty=True)
    # A program that nobody reads waits; wait() reads on, and keeps the end.
    terminal = sandbox.exec("head -c 20000000 /dev/zero | tr '\\0' x; echo end", pty=True)
    assert terminal.wait(120) == 0 and terminal.truncated
    assert terminal.read_all().endswith(b"end\r\n")
    with sandbox.exec("sleep 987.1", pty=True):
        pass
    assert sandbox.exec("until ! pgrep -f '[9]87.1'; do sleep 0.05; done", timeout=30).succeeded


def test_terminal_refusals(sandbox, server):
    with SandboxClient(server.url, server.key) as client:
        gone = client.create_sandbox(server.image)
        gone.delete()
        with pytest.raises(orchard_env.NotFoundError):
            gone.exec("true", pty=True)
    with SandboxClient(server.url, "wrong") as client, pytest.raises(orchard_env.AuthenticationError):
        orchard_env.SandboxInstance(client, sandbox.info, False).exec("true", pty=True)


def test_async_files_and_terminals(server, tmp_path):
    async def work():
        async with AsyncSandboxClient(server.url, server.key) as client, client.create_sandbox(server.image) as sandbox:
            (tmp_path / "one").write_bytes(b"1" * 1_000_000)
            await sandbox.upload_file(tmp_path / "one", "/d/one")
            await sandbox.download_dir("/d", tmp_path / "down")
            async with await sandbox.exec("read x; echo got $x; exit 3", pty=True) as terminal:
                assert await terminal.poll() is None
                await terminal.write_stdin("word\n")
                assert b"got word" in await terminal.read_all(timeout=30)
                assert await terminal.wait(30) == 3
    asyncio.run(work())
    assert (tmp_path / "down" / "one").stat().st_size == 1_000_000
