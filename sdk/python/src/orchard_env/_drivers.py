"""Runs operations: one driver that blocks, one for asyncio."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import time
import weakref
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Callable, TypeVar

import httpx

from ._effects import Emit, Op, OpenStream, ReadLine, Request, Response, Sleep, Work
from ._given import is_here
from ._pool import Pool
from .errors import TransportError

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    P = ParamSpec("P")

T = TypeVar("T")
Self = TypeVar("Self")
PIECE = 256 * 1024


def _timeout(request: Request, default: float) -> httpx.Timeout:
    read = default if request.read_timeout is None else request.read_timeout
    return httpx.Timeout(read, connect=min(default, 10.0), write=default, pool=None)


def _routes(base_url: str) -> dict[str, Any]:
    """Proxies of the environment are for other hosts than this."""
    return dict.fromkeys(("http://", "https://", "all://")) if is_here(base_url) else {}


class Lines:
    """Pieces of bytes, cut at the ends of lines: no others than those of a stream of events."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self.found: deque[str] = deque()

    def add(self, piece: bytes) -> None:
        first, *others = piece.split(b"\n")
        self._rest.append(first)
        for other in others:
            self.found.append(b"".join(self._rest).rstrip(b"\r").decode("utf-8", "replace"))
            self._rest = [other]


def _lines(pieces: Iterator[bytes]) -> Iterator[str]:
    lines = Lines()
    for piece in pieces:
        lines.add(piece)
        while lines.found:
            yield lines.found.popleft()


async def _lines_async(pieces: AsyncIterator[bytes]) -> AsyncIterator[str]:
    lines = Lines()
    async for piece in pieces:
        lines.add(piece)
        while lines.found:
            yield lines.found.popleft()


def _pieces(content: BinaryIO) -> Iterator[bytes]:
    content.seek(0)
    while piece := content.read(PIECE):
        yield piece


async def _pieces_async(content: BinaryIO) -> AsyncIterator[bytes]:
    content.seek(0)
    while piece := await asyncio.to_thread(content.read, PIECE):
        yield piece


def _sent(content: Any, pieces: Callable[[BinaryIO], Any]) -> Any:
    return pieces(content) if hasattr(content, "read") else content


def _build(http: httpx.Client | httpx.AsyncClient, request: Request, default: float) -> httpx.Request:
    return http.build_request(
        request.method,
        request.path,
        params=dict(request.params),
        headers=dict(request.headers),
        timeout=_timeout(request, default),
    )


def _wants_sink(request: Request, status: int) -> BinaryIO | None:
    if request.sink is not None and status == 200:
        request.sink.seek(0)
        request.sink.truncate()
        return request.sink
    return None


class SyncDriver:
    """Thread-safe; a child made by fork gets connections of its own."""

    def __init__(self, base_url: str, headers: Mapping[str, str], timeout: float) -> None:
        self._base_url, self._headers = base_url, dict(headers)
        self._timeout = timeout
        self._tls = httpx.create_ssl_context()
        self._pool = Pool(self._connect)

    def _connect(self) -> httpx.Client:
        return httpx.Client(
            base_url=self._base_url, headers=self._headers, verify=self._tls, mounts=_routes(self._base_url)
        )

    @contextmanager
    def _connection(self) -> Iterator[httpx.Client]:
        if self._pool.pid != os.getpid():
            self._pool = Pool(self._connect)
        pool = self._pool
        http = pool.take()
        try:
            yield http
        finally:
            if not pool.give(http):
                http.close()

    def _send(self, request: Request) -> Response:
        try:
            with (
                self._connection() as http,
                http.stream(
                    request.method,
                    request.path,
                    params=dict(request.params),
                    headers=dict(request.headers),
                    content=_sent(request.content, _pieces),
                    timeout=_timeout(request, self._timeout),
                ) as answer,
            ):
                sink = _wants_sink(request, answer.status_code)
                if sink is None:
                    return Response(answer.status_code, answer.headers, answer.read())
                for piece in answer.iter_bytes(PIECE):
                    sink.write(piece)
                return Response(answer.status_code, answer.headers)
        except httpx.TransportError as error:
            raise TransportError(f"{request.method} {request.path}: {error or type(error).__name__}") from error

    def run(self, op: Op[T]) -> T:
        """Carries an operation out and returns its value."""
        send: Any = op.send
        value: Any = None
        while True:
            try:
                effect = send(value)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            send, value = op.send, None
            try:
                if isinstance(effect, Sleep):
                    time.sleep(effect.seconds)
                elif isinstance(effect, Request):
                    value = self._send(effect)
                elif isinstance(effect, Work):
                    value = effect.do()
            except BaseException as error:  # also an interrupt: an operation puts away what it began
                send, value = op.throw, error

    def iterate(self, op: Op[None]) -> Iterator[Any]:
        """Carries an operation out that emits values."""
        lines: Iterator[str] = iter(())
        stream = ExitStack()
        send: Any = op.send
        value: Any = None
        try:
            while True:
                try:
                    effect = send(value)
                except StopIteration:
                    return
                send, value = op.send, None
                try:
                    if isinstance(effect, Sleep):
                        time.sleep(effect.seconds)
                    elif isinstance(effect, Emit):
                        yield effect.value
                    elif isinstance(effect, Request):
                        value = self._send(effect)
                    elif isinstance(effect, OpenStream):
                        stream.close()
                        http = stream.enter_context(self._connection())
                        answer = http.send(_build(http, effect.request, self._timeout), stream=True)
                        stream.callback(answer.close)
                        body = b"" if answer.status_code == 200 else answer.read()
                        lines = _lines(answer.iter_bytes())
                        value = Response(answer.status_code, answer.headers, body)
                    elif isinstance(effect, ReadLine):
                        value = next(lines, None)
                except (httpx.TransportError, httpx.StreamError) as error:
                    send, value = op.throw, TransportError(str(error) or type(error).__name__)
                except TransportError as error:
                    send, value = op.throw, error
        finally:
            op.close()
            stream.close()

    def close(self) -> None:
        if self._pool.pid == os.getpid():
            for http in self._pool.drain():
                http.close()


class AsyncDriver:
    """Each event loop has connections of its own, and so has a child made by fork."""

    def __init__(self, base_url: str, headers: Mapping[str, str], timeout: float) -> None:
        self._base_url, self._headers = base_url, dict(headers)
        self._timeout = timeout
        self._tls = httpx.create_ssl_context()
        self._pools: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pool[httpx.AsyncClient]]
        self._pools = weakref.WeakKeyDictionary()
        self._closed = False

    def _connect(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self._base_url, headers=self._headers, verify=self._tls, mounts=_routes(self._base_url)
        )

    def _pool(self) -> Pool[httpx.AsyncClient]:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None or pool.pid != os.getpid():
            for other in [one for one in list(self._pools) if one.is_closed()]:
                self._pools.pop(other, None)
            pool = self._pools[loop] = Pool(self._connect)
            if self._closed:
                pool.drain()
        return pool

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[httpx.AsyncClient]:
        pool = self._pool()
        http = pool.take()
        try:
            yield http
        finally:
            if not pool.give(http):
                await http.aclose()

    async def _send(self, request: Request) -> Response:
        try:
            async with (
                self._connection() as http,
                http.stream(
                    request.method,
                    request.path,
                    params=dict(request.params),
                    headers=dict(request.headers),
                    content=_sent(request.content, _pieces_async),
                    timeout=_timeout(request, self._timeout),
                ) as answer,
            ):
                sink = _wants_sink(request, answer.status_code)
                if sink is None:
                    return Response(answer.status_code, answer.headers, await answer.aread())
                async for piece in answer.aiter_bytes(PIECE):
                    await asyncio.to_thread(sink.write, piece)
                return Response(answer.status_code, answer.headers)
        except httpx.TransportError as error:
            raise TransportError(f"{request.method} {request.path}: {error or type(error).__name__}") from error

    async def run(self, op: Op[T]) -> T:
        """Carries an operation out and returns its value."""
        send: Any = op.send
        value: Any = None
        while True:
            try:
                effect = send(value)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            send, value = op.send, None
            try:
                if isinstance(effect, Sleep):
                    await asyncio.sleep(effect.seconds)
                elif isinstance(effect, Request):
                    value = await self._send(effect)
                elif isinstance(effect, Work):
                    value = await _in_thread(effect.do)
            except GeneratorExit:
                raise
            except BaseException as error:  # also a cancel: an operation puts away what it began
                send, value = op.throw, error

    async def iterate(self, op: Op[None]) -> AsyncIterator[Any]:
        """Carries an operation out that emits values."""
        lines: AsyncIterator[str] | None = None
        stream = AsyncExitStack()
        send: Any = op.send
        value: Any = None
        try:
            while True:
                try:
                    effect = send(value)
                except StopIteration:
                    return
                send, value = op.send, None
                try:
                    if isinstance(effect, Sleep):
                        await asyncio.sleep(effect.seconds)
                    elif isinstance(effect, Emit):
                        yield effect.value
                    elif isinstance(effect, Request):
                        value = await self._send(effect)
                    elif isinstance(effect, OpenStream):
                        await stream.aclose()
                        http = await stream.enter_async_context(self._connection())
                        answer = await http.send(_build(http, effect.request, self._timeout), stream=True)
                        stream.push_async_callback(answer.aclose)
                        body = b"" if answer.status_code == 200 else await answer.aread()
                        lines = _lines_async(answer.aiter_bytes())
                        value = Response(answer.status_code, answer.headers, body)
                    elif isinstance(effect, ReadLine) and lines is not None:
                        value = await anext_or_none(lines)
                except (httpx.TransportError, httpx.StreamError) as error:
                    send, value = op.throw, TransportError(str(error) or type(error).__name__)
                except TransportError as error:
                    send, value = op.throw, error
        finally:
            op.close()
            await stream.aclose()

    async def close(self) -> None:
        self._closed = True
        mine = self._pool()
        for pool in list(self._pools.values()):
            if pool is not mine:
                pool.drain()  # another loop's, which alone could close them
        for http in mine.drain():
            await http.aclose()


async def _in_thread(do: Callable[[], T]) -> T:
    """Also when it is cancelled it is waited for: it uses files that are closed behind it."""
    work = asyncio.ensure_future(asyncio.to_thread(do))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # nobody else asks for it
        raise


async def anext_or_none(lines: AsyncIterator[str]) -> str | None:
    try:
        return await lines.__anext__()
    except StopAsyncIteration:
        return None


def _dress(method: Any, op: Callable[..., Any]) -> Any:
    """Help and signature of the operation, with what the caller gets in place of the generator."""
    functools.update_wrapper(method, op)
    signature = inspect.signature(op)
    returns = str(signature.return_annotation)
    if returns.startswith("Op[") and returns.endswith("]"):
        signature = signature.replace(return_annotation=returns[3:-1])
    method.__signature__ = signature
    return method


def sync(op: Callable[Concatenate[Self, P], Generator[Any, Any, T]]) -> Callable[Concatenate[Self, P], T]:
    """The operation as a method that blocks."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._driver.run(op(self, *args, **kwargs))

    return _dress(method, op)  # type: ignore[no-any-return]


def asynchronous(
    op: Callable[Concatenate[Self, P], Generator[Any, Any, T]],
) -> Callable[Concatenate[Self, P], Coroutine[Any, Any, T]]:
    """The operation as a coroutine method."""

    async def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await self._driver.run(op(self, *args, **kwargs))

    return _dress(method, op)  # type: ignore[no-any-return]
