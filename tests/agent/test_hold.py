# SPDX-License-Identifier: MIT
"""Commands that wait for the reader of their output, on the real orchard-agent.

usage: test_hold.py BINARY [unittest arguments]
"""

import os
import sys
import unittest

import test_agent
import test_streams
from test_agent import until
from test_streams import numbers

LONG_MS = 600 * 1000  # longer than any test
TAIL = 512 << 10  # what memory keeps of the end for a reader that is waited for


class Hold(test_streams.Case):
    settings = {}

    def hold(self, command, **fields):
        return self.start(command, **{"hold_ms": LONG_MS, "max_output_bytes": 1000, "spool_bytes": 100000, **fields})

    def written(self, job_id):
        """Counts without being the reader."""
        answer = self.agent.output(job_id, stdout_offset=0, stderr_offset=0, limit=0)
        return answer["stdout"]["bytes"], answer["stderr"]["bytes"]

    def until_held(self, job_id, stdout=100000 + TAIL):
        until(lambda: self.written(job_id)[0] == stdout)

    def follow(self, job_id, name="stdout", limit=65536):
        """As above, as the reader."""
        data, state = b"", ""
        while state != "ended" or stream["data"]:
            answer = self.agent.output(job_id, wait_ms=10000, limit=limit, reader=1, **{name + "_offset": len(data)})
            stream, state = answer[name], answer["state"]
            self.assertEqual(stream["offset"], len(data))
            data += stream["data"]
        self.assertEqual(stream["bytes"], len(data))
        return data

    def test_a_reader_that_takes_its_time_gets_all(self):
        job_id = self.hold("seq 1 300000; echo end >&2; exit 3")
        self.until_held(job_id)
        self.assertEqual(self.follow(job_id), numbers(300000))
        job = self.end(job_id)
        self.assertEqual((job["exit_code"], job["stdout_bytes"]), (3, len(numbers(300000))))
        self.assertTrue(job["stdout"].startswith(numbers(300000)[:500] + b"\n...["))
        self.assertTrue(job["stdout"].endswith(b"]...\n" + numbers(300000)[-500:]))
        self.assertEqual(job["stderr"], b"end\n")

    def test_both_streams_are_held(self):
        job_id = self.hold("seq 1 200000 & seq 1 200000 >&2; wait")
        out, err = b"", b""
        until(lambda: self.written(job_id) == (100000 + TAIL,) * 2)
        while True:
            answer = self.agent.output(job_id, wait_ms=10000, reader=1, stdout_offset=len(out), stderr_offset=len(err))
            out, err = out + answer["stdout"]["data"], err + answer["stderr"]["data"]
            if answer["state"] == "ended" and not answer["stdout"]["data"] and not answer["stderr"]["data"]:
                break
        self.assertEqual((out, err), (numbers(200000),) * 2)

    def test_without_a_spool_too(self):
        job_id = self.hold("seq 1 300000", spool_bytes=0)
        self.until_held(job_id, 500 + TAIL)
        self.assertEqual(self.follow(job_id), numbers(300000))

    def test_the_end_waits_for_what_only_memory_has(self):
        job_id = self.hold("head -c %d /dev/zero" % (100000 + TAIL))
        self.until_held(job_id)
        until(lambda: not test_agent.names_below(self.agent.pid))
        self.assertEqual(self.agent.call("GET", "/jobs/" + job_id)[1]["state"], "running")
        self.assertEqual(len(self.follow(job_id)), 100000 + TAIL)

    def test_what_fits_waits_for_nobody(self):
        _, job = self.keep("seq 1 10000", hold_ms=LONG_MS, max_output_bytes=1000, spool_bytes=100000)
        self.assertEqual(job["stdout_bytes"], len(numbers(10000)))

    def test_without_a_reader_it_runs_on(self):
        _, job = self.keep("seq 1 300000", hold_ms=50, max_output_bytes=1000, spool_bytes=100000)
        self.assertEqual((job["exit_code"], job["stdout_bytes"]), (0, len(numbers(300000))))

    def test_a_reader_that_leaves_is_not_waited_for(self):
        job_id = self.hold("seq 1 300000", hold_ms=200)
        self.agent.output(job_id, wait_ms=10000, reader=1, stdout_offset=0)
        self.assertEqual(self.end(job_id)["stdout_bytes"], len(numbers(300000)))

    def test_who_only_looks_holds_nothing(self):
        job_id = self.hold("seq 1 300000", hold_ms=200)
        until(lambda: self.written(job_id)[0] == len(numbers(300000)))
        answer = self.agent.output(job_id, stdout_offset=0)
        self.assertNotIn("hold_ms", answer)
        answer = self.agent.output(job_id, stdout_offset=0, reader=1)
        self.assertEqual(answer["hold_ms"], 200)

    def test_cancel_and_timeout_end_what_is_held(self):
        job_id = self.hold("seq 1 300000")
        self.until_held(job_id)
        self.assertEqual(self.agent.call("POST", "/jobs/%s/cancel" % job_id)[1]["verdict"], "canceled")
        job_id = self.hold("seq 1 300000", timeout_ms=500)
        self.assertEqual(self.end(job_id)["verdict"], "timed_out")

    def test_the_timeout_ends_the_wait_for_a_reader(self):
        job_id = self.hold("head -c %d /dev/zero; exit 7" % (100000 + TAIL), timeout_ms=500)
        job = self.end(job_id)
        self.assertIn((job["verdict"], job["exit_code"]), [("exited", 7), ("timed_out", 124)])

    def test_cancel_ends_the_wait_for_a_reader(self):
        job_id = self.hold("head -c %d /dev/zero; exit 7" % (100000 + TAIL))
        self.until_held(job_id)
        until(lambda: not test_agent.names_below(self.agent.pid))
        job = self.agent.call("POST", "/jobs/%s/cancel" % job_id)[1]
        self.assertEqual((job["verdict"], job["exit_code"]), ("exited", 7))

    def test_what_is_left_behind_does_not_keep_the_end(self):
        until_gone, release = self.held()
        job_id = self.hold("(%s seq 1 100000) & seq 1 200000; exit 5" % until_gone)
        self.until_held(job_id)
        self.assertEqual(self.follow(job_id), numbers(200000))
        self.assertEqual(self.end(job_id)["exit_code"], 5)
        release()


if __name__ == "__main__":
    test_agent.BINARY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
