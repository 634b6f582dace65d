"""Requests with retries: what every operation is made of."""

from __future__ import annotations

import copy
import json
import logging
import math
import os
import random
import time
import uuid
from collections.abc import Mapping
from typing import Any, BinaryIO
from urllib.parse import quote

from . import _given
from ._effects import Op, Request, Response, Sleep
from .errors import APIError, SandboxTimeoutError, TransportError, error_class

log = logging.getLogger("orchard_env")

DEFAULT_URL = "http://localhost:8000"
TRY_AGAIN = frozenset({429, 502, 503, 504})
POLL_SECONDS = 50.0  # of one waiting request: below the idle limit of usual load balancers
HOLD_SECONDS = 60.0  # that a command waits for the way back to its reader
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
HURRY = 5.0  # seconds for what is done on the way out
IN_QUEUE = 10  # times as long as anything else is a place waited for, at a server that works and is full


class Settings:
    """Where the server is: argument, else environment, else http://localhost:8000."""

    def __init__(
        self,
        base_url: str | None,
        api_key: str | None,
        prefix: str | None,
        timeout: float,
        retry_seconds: float,
    ) -> None:
        url = base_url or os.environ.get("SANDBOX_BASE_URL") or DEFAULT_URL
        path = prefix if prefix is not None else os.environ.get("SANDBOX_PREFIX", "")
        self.base_url = _given.address(url) + ("/" + path.strip("/") if path.strip("/") else "")
        self.api_key = _given.key(api_key if api_key is not None else os.environ.get("SANDBOX_API_KEY"))
        self.timeout = _given.positive(timeout, "timeout")
        retry = _given.patience(retry_seconds, "retry_seconds")
        self.retry_seconds = math.inf if retry is None else retry

    def hurried(self) -> Settings:
        """For what is done on the way out."""
        other = copy.copy(self)
        other.timeout, other.retry_seconds = min(self.timeout, HURRY), min(self.retry_seconds, HURRY)
        return other

    @property
    def headers(self) -> dict[str, str]:
        return {"X-API-Key": self.api_key} if self.api_key else {}


def path_of(*steps: str) -> str:
    for step in steps:
        if _given.text(step, "an id") in ("", ".", ".."):  # they would make another path of it
            raise ValueError(f"{step!r} is no id")
    return "".join("/" + quote(step, safe="") for step in steps)


def _error(answer: Response) -> APIError:
    try:
        body = answer.json()
    except TransportError:
        body = None
    if not isinstance(body, dict):
        body = {"detail": answer.body[:200].decode("utf-8", "replace") or "an answer without words"}
    return error_class(answer.status)(
        answer.status,
        str(body.get("code", "unknown")),
        body.get("detail", ""),
        str(body.get("request_id") or answer.headers.get("x-request-id", "")),
        _seconds(answer.headers.get("retry-after")),
    )


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None


class Retry:
    """How long to pause before the next try; gives up when its time is over."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._queue_end = self._end + seconds * (IN_QUEUE - 1)
        self._pause = FIRST_PAUSE

    def next(self, asked: float | None = None, *, full: bool = False) -> float | None:
        """Seconds to pause, or None: no more tries. `full`: the server works, and has no place at the moment."""
        end = self._queue_end if full else self._end
        pause = max(self._pause * random.uniform(0.5, 1.0), asked or 0.0)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)
        return pause if time.monotonic() + pause < end else None


def send(settings: Settings, request: Request, *, again: bool = True) -> Op[Response]:
    """Sends it, again after what passes by; raises what is left. `again` False: only what was never taken."""
    retry = Retry(settings.retry_seconds)
    while True:
        try:
            answer = yield request
        except TransportError as error:
            pause = retry.next() if again else None
            if pause is None:
                raise
            log.info("%s; again in %.1f s", error, pause)
            yield Sleep(pause)
            continue
        if answer.status < 300 or answer.status == 304:
            return answer  # type: ignore[no-any-return]
        problem = _error(answer)
        full = problem.code == "queue_full"
        pause = retry.next(problem.retry_after, full=full) if answer.status in TRY_AGAIN else None
        if pause is None or not (again or answer.status == 429 or full):
            raise problem
        log.info("%s; again in %.1f s", problem, pause)
        yield Sleep(pause)


def new_key() -> str:
    return str(uuid.uuid4())


def call(
    settings: Settings,
    method: str,
    path: str,
    *,
    params: Mapping[str, Any] | None = None,
    body: Any = None,
    content: bytes | BinaryIO | None = None,
    sink: BinaryIO | None = None,
    once: bool | str = False,
    headers: Mapping[str, str] | None = None,
    read_timeout: float | None = None,
    again: bool = True,
) -> Op[Response]:
    """One call. `once`: with an Idempotency-Key, new or this one, so that all tries together do it once."""
    sent = dict(headers or {})
    if body is not None:
        content = json.dumps(body).encode()
        sent["Content-Type"] = "application/json"
    if once:
        sent["Idempotency-Key"] = once if isinstance(once, str) else new_key()
    shown = {name: value for name, value in (params or {}).items() if value is not None}
    request = Request(method, path, shown, sent, content, sink, read_timeout)
    answer = yield from send(settings, request, again=again)
    return answer


class Deadline:
    """A wait that may take long, in pieces that pass load balancers."""

    def __init__(self, seconds: float | None, what: str) -> None:
        wait = _given.patience(seconds, "timeout")
        self._end = None if wait is None else time.monotonic() + wait
        self._what = what
        self._asked = False

    def piece(self) -> float:
        """Seconds that the next request may wait; raises SandboxTimeoutError when none are left.

        The first may ask in any case, since what is waited for may be there already.
        """
        if self._end is None:
            return POLL_SECONDS
        left = max(self._end - time.monotonic(), 0.0)
        if left == 0 and self._asked:
            raise SandboxTimeoutError(self._what)
        self._asked = True
        return min(POLL_SECONDS, left)
