"""Each program in examples/ runs as its README says, and leaves nothing behind."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
EXAMPLES = REPO / "examples"


def run(server, name, *arguments, status=0):
    env = os.environ | {"PYTHONPATH": str(REPO / "sdk" / "python" / "src"), "SANDBOX_BASE_URL": server.url,
                        "SANDBOX_API_KEY": server.key}
    program = subprocess.run([sys.executable, EXAMPLES / name, *arguments], env=env, capture_output=True, text=True, timeout=170)
    assert program.returncode == status, program.stdout + program.stderr
    return program


@pytest.fixture(autouse=True)
def nothing_is_left(server):
    def ids():
        return {box["sandbox_id"] for box in server.client.get("/sandboxes").json()["sandboxes"]}
    before = ids()
    yield
    assert ids() == before


def test_every_program_is_in_the_readme_and_run_here():
    readme, here = (EXAMPLES / "README.md").read_text(), Path(__file__).read_text()
    for program in EXAMPLES.glob("*.py"):
        assert f"`{program.name}`" in readme and f'"{program.name}"' in here


@pytest.mark.parametrize("program", ["getting_started.py", "agent_harness.py", "swe_task.py"])
def test_what_is_wrong_is_told_in_one_line(server, program):
    told = run(server, program, "--image", "no-such-image", status=1).stderr
    assert told.count("\n") == 1 and "no-such-image" in told, told


def test_getting_started(server):
    out = run(server, "getting_started.py", "--image", server.image).stdout
    assert "exit code 1, exited" in out and "step 3\nended with 0" in out
    assert "3 lines\nfile lines.txt, 14 bytes" in out and "the terminal says: True" in out


def test_two_hundred_rollouts_at_once(server, busybox):
    program = run(server, "rollouts.py", "--image", busybox)
    results = [json.loads(line) for line in program.stdout.splitlines()]
    assert sorted(result["seed"] for result in results) == list(range(200))
    # Ten guesses find any number up to 1023.
    assert all(result.get("reward") == 1 for result in results)
    assert "200 won, 0 failed" in program.stderr


def test_a_rollout_that_fails_is_a_result(server, no_shell):
    program = run(server, "rollouts.py", "--image", no_shell, "--rollouts", "2", status=1)
    assert all("error" in json.loads(line) for line in program.stdout.splitlines())
    assert "0 won, 2 failed" in program.stderr


def test_agent_harness(server, busybox, tmp_path):
    run(server, "agent_harness.py", "--image", busybox, "--transcript", tmp_path / "transcript")
    messages = [json.loads(line) for line in (tmp_path / "transcript").read_text().splitlines()]
    assert [message["role"] for message in messages] == ["user"] + ["assistant", "tool"] * 3 + ["assistant"]
    run(server, "agent_harness.py", "--image", busybox, "--max-steps", "2", status=1)


def test_software_task(server, debian):
    out = run(server, "swe_task.py", "--image", debian).stdout
    assert out.startswith("before: exit code 1\nafter: exit code 0\ndiff --git a/calc.py b/calc.py\n")
    assert "\n+    return a + b\n" in out


def test_software_task_of_a_given_repository(server, debian, tmp_path):
    for command in (["init", "-q"], ["-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    (tmp_path / "patch").write_text("--- /dev/null\n+++ b/done\n@@ -0,0 +1 @@\n+yes\n")
    arguments = ("--image", debian, "--repo", tmp_path, "--tests", "test -e done", "--patch", tmp_path / "patch")
    assert run(server, "swe_task.py", *arguments).stdout.startswith("before: exit code 1\nafter: exit code 0\n")
    (tmp_path / "patch").write_text("--- a/gone\n+++ b/gone\n@@ -1 +1 @@\n-yes\n+no\n")
    assert "does not apply" in run(server, "swe_task.py", *arguments, status=1).stderr
