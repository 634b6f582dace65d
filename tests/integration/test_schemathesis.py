"""The real server under a fuzzer that reads its description: right and wrong requests of every operation.

No 5xx but 503 and 507, no status, header, type or body that is not described, nothing wrong accepted, no method or
key ignored. The seed is fixed; what fails is printed with the curl command that does it again.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("schemathesis", reason="NOT FUZZED: needs schemathesis")

HERE = Path(__file__).parent
EXAMPLES = int(os.environ.get("SCHEMATHESIS_EXAMPLES", "10"))


@pytest.fixture
def fuzzed(make_server):
    # What waits, waits shortly; nobody's registry is asked.
    return make_server(image_registries=[], max_wait_seconds=1, default_exec_timeout_seconds=2, readiness_wait_seconds=5,
                       default_memory="64Mi").start()


def environment(server):
    box = server.create()
    return os.environ | {
        "FUZZ_SANDBOX": box.id,
        "FUZZ_ENDED_JOB": box.exec("echo hi; seq 1000")["job_id"],
        "FUZZ_BINARY_JOB": box.exec("head -c 50000 /dev/urandom; exit 3")["job_id"],
        "FUZZ_OPEN_JOB": box.start("cat", stdin_open=True, lane="open", timeout_seconds=3600),
        "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
        "PYTHONPATH": str(HERE),
    }


def fuzz(server, directory, seed):
    return subprocess.run(
        [Path(sys.executable).parent / "schemathesis", "--config-file", HERE / "schemathesis.toml",
         "run", f"http://127.0.0.1:{server.port}/openapi.json", "--header", f"X-API-Key: {server.key}",
         # Not: what settings bound, how quantities are written, whether an output has a byte, is beyond a schema.
         "--checks", "all", "--exclude-checks", "positive_data_acceptance", "--max-examples", str(EXAMPLES), "--seed", seed,
         # CPython 3.11 counts the depth of its parser, which the fuzzer uses, for all threads together: one of them.
         "--workers", "1", "--request-timeout", "60", "--continue-on-failure", "--no-color", "--warnings", "off"],
        env=environment(server), cwd=directory, capture_output=True, text=True, timeout=600)


@pytest.mark.timeout(900)
def test_nothing_but_what_is_described(fuzzed, tmp_path):
    before = fuzzed.processes()
    seed = os.environ.get("SCHEMATHESIS_SEED", "1")
    run = fuzz(fuzzed, tmp_path, seed)
    assert run.returncode == 0, run.stdout[-20000:] + run.stderr[-2000:]
    assert fuzzed.processes()["worker"] == before["worker"], "a worker died:\n" + fuzzed.log()
    faults = [line for line in fuzzed.log_lines() if " 500 " in line.get("msg", "")]
    assert not faults, faults[:5]
