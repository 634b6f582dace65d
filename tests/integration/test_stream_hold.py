"""A command that waits for the reader of its output, with spools that are too small for it."""

import hashlib
import http.client
import os
import signal

import pytest

from ctl import Ctl
from orchard_server import eventually
from streams import Follower, Stream

LINES = 30
LINE = 100_000
WRITER = f"i=0; while [ $i -lt {LINES} ]; do head -c {LINE} /dev/urandom; i=$((i+1)); echo $i >/tmp/at; done" \
         " | tee /tmp/out; sha256sum /tmp/out >/tmp/sum"


@pytest.fixture(scope="module")
def small(make_server_session):
    server = make_server_session(spool_limit_bytes=200_000, max_output_bytes=2_000).start()
    yield server
    server.close()


@pytest.fixture
def box(small):
    return small.create()


def written(box):
    return int(box.out("stat -c %s /tmp/out 2>/dev/null || echo 0", lane="look"))


def test_a_slow_reader_gets_every_byte(box, small):
    job_id = box.start(WRITER, hold_output_seconds=600)
    eventually(lambda: written(box) >= 300_000, 60, "it writes")
    follower = Follower()
    follower.follow(small, job_id)  # which finds a gap, if there is one
    assert len(follower.bytes["stdout"]) == LINES * LINE
    assert hashlib.sha256(follower.bytes["stdout"]).hexdigest() == box.out("cat /tmp/sum").split()[0]
    assert follower.exit["status"] == "succeeded"


def test_a_reader_that_stops_in_the_middle_holds_it(box, small):
    count = 200 * LINE
    job_id = box.start(WRITER.replace(f"-lt {LINES}", "-lt 200"), hold_output_seconds=1)
    follower = Follower()
    with Stream(small, job_id) as stream:
        # The server's and the kernel's buffers are full, too; all that is alive is the connection.
        follower.take(*stream.next_of("stdout"))
        seen = [-2, -1]
        eventually(lambda: seen.append(written(box)) or seen[-1] == seen[-2] > 0, 60, "it stands still")
        assert seen[-1] < count
        while not follower.take(*stream.next_of("stdout", "exit", "status")):
            pass
    assert len(follower.bytes["stdout"]) == count
    assert hashlib.sha256(follower.bytes["stdout"]).hexdigest() == box.out("cat /tmp/sum").split()[0]


def test_without_a_reader_it_runs_on(box):
    job_id = box.start(WRITER, hold_output_seconds=0.2)
    job = box.wait_job(job_id)
    assert (job["status"], job["stdout_bytes"]) == ("succeeded", LINES * LINE)


def test_a_reader_that_leaves_is_not_waited_for(box, small):
    job_id = box.start(WRITER, hold_output_seconds=1)
    with Stream(small, job_id) as stream:
        stream.next_of("stdout")
    job = box.wait_job(job_id)
    assert (job["status"], job["stdout_bytes"]) == ("succeeded", LINES * LINE)


def test_a_killed_worker_costs_no_byte(box, small):
    job_id = box.start(WRITER, hold_output_seconds=600)
    follower = Follower()
    with Stream(small, job_id, follower.headers()) as stream:
        while len(follower.bytes["stdout"]) < LINE:
            follower.take(*stream.next_of("stdout", "status"))
        os.kill(stream.worker(), signal.SIGKILL)
        try:
            for event in stream:  # what is on its way comes
                follower.take(*event)
        except (ConnectionError, http.client.HTTPException, ValueError):
            pass
    follower.follow(small, job_id)
    assert hashlib.sha256(follower.bytes["stdout"]).hexdigest() == box.out("cat /tmp/sum").split()[0]


def test_orchardctl_gives_a_slow_pipe_all(box, small, tmp_path):
    ctl = Ctl(small, tmp_path)
    process = ctl.start("exec", box.id, "--", "sh", "-c", WRITER)
    digest = hashlib.sha256(process.stdout.read(1))
    eventually(lambda: written(box) >= 300_000, 60, "it writes")
    digest.update(process.stdout.read())
    assert process.wait(60) == 0 and process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()
    assert digest.hexdigest() == box.out("cat /tmp/sum").split()[0]


@pytest.mark.parametrize("seconds", [-1, 3601, "1"])
def test_what_is_no_time_is_refused(box, seconds):
    answer = box.post_exec("true", hold_output_seconds=seconds)
    assert answer.status_code == 422 and "hold_output_seconds" in answer.text
