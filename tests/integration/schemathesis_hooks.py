"""For schemathesis: ids that could exist become ids that do, so that more than 404 is tried.

What is not right on purpose stays as it is. Ids come by environment (FUZZ_SANDBOX...).
"""

import os
import re
import zlib

import schemathesis

schemathesis.serializer.alias("application/x-tar", "application/octet-stream")

SANDBOX = re.compile(r"[a-z0-9]([-a-z0-9]{0,52}[a-z0-9])?")
JOB = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


EXAMPLES = ("x1", "0b0e7a52-6f3c-4c5b-9d0a-6f1f0a5d1c77")


def is_meant(text, pattern):
    """An id of the description's examples, or most of those that are made up."""
    if not isinstance(text, str) or not pattern.fullmatch(text):
        return False
    return text in EXAMPLES or chosen(text, 4) > 0


def chosen(text, of):
    """The same for the same text, so that a failure can be played again."""
    return zlib.crc32(text.encode(errors="surrogatepass")) % of


def real_job(operation, text):
    jobs = [os.environ["FUZZ_ENDED_JOB"], os.environ["FUZZ_BINARY_JOB"]]
    if operation in ("getJob", "getOutput", "writeStdin"):
        jobs.append(os.environ["FUZZ_OPEN_JOB"])
    return jobs[chosen(text, len(jobs))]


@schemathesis.hook
def before_call(context, case, kwargs):
    operation = case.operation.definition.raw.get("operationId")
    ids = case.path_parameters or {}
    sandbox, job = ids.get("sandbox_id"), ids.get("job_id")
    if is_meant(sandbox, SANDBOX) and operation != "deleteSandbox":
        ids["sandbox_id"] = os.environ["FUZZ_SANDBOX"]
    if is_meant(job, JOB):
        ids["job_id"] = real_job(operation, job)
    body = case.body
    if operation == "createSandbox" and isinstance(body, dict) and isinstance(body.get("image"), str) and body["image"]:
        if chosen(body["image"], 2):
            body["image"] = "default"
    if operation == "exec" and isinstance(body, dict):
        seconds = body.get("timeout_seconds")
        if isinstance(seconds, (int, float)) and seconds > 3:
            body["timeout_seconds"] = 3
