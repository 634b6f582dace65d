"""What an operation asks of the outside: requests and pauses.

Every call of this package is written once, as a generator that yields effects and is sent what came of
them. `_drivers` runs the same generator with or without asyncio. So the two faces of the package can't
differ in what they do.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Callable, TypeVar, Union

from .errors import TransportError

T = TypeVar("T")


@dataclass
class Request:
    """One HTTP request; the answer is a `Response`, or a TransportError is thrown into the generator."""

    method: str
    path: str
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | BinaryIO | None = None  # a file is sent from where it stands, to its end
    sink: BinaryIO | None = None  # a good answer's body goes there, not into memory
    read_timeout: float | None = None  # seconds of silence; None: the client's


@dataclass
class Response:
    status: int
    headers: Mapping[str, str]
    body: bytes = b""

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError as error:
            start = self.body[:80].decode("utf-8", "replace")
            raise TransportError(f"the answer is none of an Orchard server: {start!r}") from error


@dataclass
class Sleep:
    seconds: float


@dataclass
class Work:
    """Something long that waits for no server, such as packing a directory; the answer is what it returns."""

    do: Callable[[], Any]


@dataclass
class OpenStream:
    """Opens an answer that comes in lines; the answer is a `Response` without a body."""

    request: Request


@dataclass
class ReadLine:
    """The next line of the open stream without its end, or None when the stream has ended."""


@dataclass
class Emit:
    """Hands a value to whoever iterates."""

    value: Any


Effect = Union[Request, Sleep, Work, OpenStream, ReadLine, Emit]
Op = Generator[Effect, Any, T]
