"""What can go wrong, as a small tree: catch `SandboxError` for all of it."""

from __future__ import annotations

from typing import Any


class SandboxError(Exception):
    """The root of everything this package raises by itself, wrong arguments (ValueError) aside."""


class TransportError(SandboxError, ConnectionError):
    """The server could not be reached, or the connection broke and trying again did not help."""


class SandboxTimeoutError(SandboxError, TimeoutError):
    """What was waited for did not come in time. It may still come: waiting ended, not the work."""


class SandboxFailedError(SandboxError, RuntimeError):
    """A sandbox did not become ready and never will; the message is the server's reason."""


class APIError(SandboxError):
    """The server refused. `status` is the HTTP status, `code` the stable name of the reason.

    `detail` is the server's sentence (for 422 a list of what is wrong where), `request_id` finds the
    request in its log, `retry_after` (seconds) says when another try may help, or is None.
    """

    def __init__(
        self, status: int, code: str, detail: Any, request_id: str = "", retry_after: float | None = None
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.request_id = request_id
        self.retry_after = retry_after
        super().__init__(f"{describe(detail)} (HTTP {status}, {code}, request {request_id or 'unknown'})")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.status, self.code, self.detail, self.request_id, self.retry_after)


class AuthenticationError(APIError):
    """401 or 403: no key, or one that the server does not know."""


class NotFoundError(APIError):
    """404: there is no such sandbox, job or file, or it is another tenant's."""


class ConflictError(APIError):
    """409: the state does not allow it, such as an id that is taken or a sandbox that is not ready."""


class InvalidRequestError(APIError, ValueError):
    """400, 413 or 422: the request itself is wrong; `detail` says where."""


class UnavailableError(APIError):
    """429, 502, 503 or 504 after all tries: a limit is reached or a part of the service does not answer."""


def describe(detail: Any) -> str:
    """The server's `detail` as one line for people."""
    if isinstance(detail, list):
        parts = []
        for item in detail:
            where = ".".join(str(step) for step in item.get("loc", [])) if isinstance(item, dict) else ""
            words = item.get("msg", item) if isinstance(item, dict) else item
            parts.append(f"{where}: {words}" if where else str(words))
        return "; ".join(parts)
    return str(detail)


def error_class(status: int) -> type[APIError]:
    if status in (401, 403):
        return AuthenticationError
    if status == 404:
        return NotFoundError
    if status == 409:
        return ConflictError
    if status in (400, 413, 422):
        return InvalidRequestError
    if status in (429, 502, 503, 504):
        return UnavailableError
    return APIError
