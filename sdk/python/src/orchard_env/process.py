"""A command in a terminal, to talk to."""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import socket
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Union

from ._core import Settings, path_of
from ._drivers import asynchronous, sync
from ._given import is_here, octets, patience, positive, text, variables, words
from ._ops import Command
from .errors import SandboxTimeoutError, TransportError, error_class

if TYPE_CHECKING:
    from .sandbox import AsyncSandboxInstance, SandboxInstance

T = TypeVar("T")
OPEN_SECONDS = 60.0
KEPT = 16 * 1024 * 1024  # bytes of output that wait() keeps for a later read()
KEEPALIVE = 20  # seconds
PIECE = 32 * 1024  # bytes of stdin in one frame


@dataclass
class Hear:
    """Asks for the next frame; None when none came in `timeout` seconds (None: for ever)."""

    timeout: float | None


@dataclass
class Say:
    """Sends a frame."""

    frame: str


Op = Generator[Union[Hear, Say], Any, T]


class BaseProcess:
    """A command in a terminal, whoever carries its frames."""

    def __init__(self) -> None:
        self.pid: int | None = None
        """Its process id in the sandbox."""
        self.session: str | None = None
        self.returncode: int | None = None
        """Its exit code, -N when signal N ended it; None while it runs as far as was heard: `poll` listens."""
        self.truncated = False
        """Output was dropped, because `wait` or `poll` heard more than 16 MiB that nobody read."""
        self._output = bytearray()
        self._problem: Exception | None = None

    # --- frames ---

    def _take_frame(self, frame: str | bytes) -> None:
        message = json.loads(frame)
        kind = message.get("type")
        if kind == "ready":
            self.pid, self.session = message["pid"], message.get("session")
        elif kind == "stdout":
            self._output += base64.b64decode(message["data"])
        elif kind == "exit":
            self.returncode = message["code"]
        elif kind == "error":
            self._problem = TransportError(f"the terminal ended: {message.get('message')}")

    def _take_end(self, why: Exception) -> None:
        if not self._ended:
            self._problem = TransportError(f"the connection to the terminal ended: {why}")

    @property
    def _ended(self) -> bool:
        return self.returncode is not None or self._problem is not None

    def _check(self) -> None:
        if self._problem is not None and self.returncode is None:
            raise self._problem

    def _take_output(self, size: int) -> bytes:
        end = len(self._output) if size < 0 else size
        data = bytes(self._output[:end])
        del self._output[:end]
        return data

    def _drop_surplus(self) -> None:
        if len(self._output) > KEPT:
            self.truncated = True
            del self._output[: len(self._output) - KEPT]

    # --- operations ---

    def _begin(self, init: Mapping[str, Any], timeout: float) -> Op[None]:
        end = time.monotonic() + timeout
        yield Say(json.dumps({"type": "init", **init}))
        while self.pid is None and not self._ended:
            if not (yield Hear(end - time.monotonic())):
                raise SandboxTimeoutError("the terminal did not open in time")
        if self.pid is None:
            self._check()

    def _write_stdin(self, data: str | bytes) -> Op[None]:
        """Types; waits while the program does not read. Raises TransportError when the terminal is gone."""
        self._check()
        raw = octets(data, "data")
        for start in range(0, len(raw), PIECE):
            piece = base64.b64encode(raw[start : start + PIECE]).decode()
            yield Say(json.dumps({"type": "stdin", "data": piece}))

    def _read(self, size: int = -1, timeout: float | None = None) -> Op[bytes]:
        """What it has written and nobody has read, at most `size` bytes; waits for at least one.

        b"" when it has ended and everything was read. Raises SandboxTimeoutError after `timeout` seconds
        without output.
        """
        end = end_of(timeout)
        while not self._output and not self._ended:
            if not (yield Hear(None if end is None else end - time.monotonic())):
                raise SandboxTimeoutError(f"no output in {timeout} s")
        if not self._output:
            self._check()
        return self._take_output(size)

    def _read_all(self, timeout: float | None = None) -> Op[bytes]:
        """Everything up to its end. Raises SandboxTimeoutError when that does not come in time.

        What came until then is kept for the next read, as when the terminal is lost.
        """
        end = end_of(timeout)
        while not self._ended:
            if not (yield Hear(None if end is None else end - time.monotonic())):
                raise SandboxTimeoutError(f"it had not ended after {timeout} s")
        self._check()
        return self._take_output(-1)

    def _resize(self, rows: int, cols: int) -> Op[None]:
        """Tells the program that its terminal has another size."""
        yield Say(json.dumps({"type": "resize", "rows": rows, "cols": cols}))

    def _kill(self, sig: str = "KILL") -> Op[None]:
        """Sends a signal: TERM, KILL, INT, HUP or QUIT."""
        yield Say(json.dumps({"type": "signal", "sig": sig.upper().replace("SIG", "", 1)}))

    def _poll(self) -> Op[int | None]:
        """`returncode` after listening to what has come."""
        while not self._ended and (yield Hear(0)):
            self._drop_surplus()
        return self.returncode

    def _wait(self, timeout: float | None = None) -> Op[int]:
        """Waits for its end; the exit code. Raises TransportError when the terminal was lost, SandboxTimeoutError."""
        end = end_of(timeout)
        while not self._ended:
            if not (yield Hear(None if end is None else end - time.monotonic())):
                raise SandboxTimeoutError(f"it had not ended after {timeout} s")
            self._drop_surplus()
        self._check()
        assert self.returncode is not None
        return self.returncode


def address(settings: Settings, sandbox_id: str) -> str:
    return "ws" + settings.base_url[4:] + path_of("sandboxes", sandbox_id, "exec", "pty")


def init_of(
    command: Command,
    cwd: str | None,
    env: Mapping[str, str] | None,
    login_shell: bool,
    rows: int,
    cols: int,
) -> dict[str, Any]:
    given = words(command)
    return {
        "cmd": ["sh", "-c", given] if isinstance(given, str) else given,
        "env": None if env is None else variables(env),
        "cwd": None if cwd is None else text(cwd, "cwd"),
        "rows": rows,
        "cols": cols,
        "login_shell": login_shell,
    }


def end_of(timeout: float | None) -> float | None:
    wait = patience(timeout, "timeout")
    return None if wait is None else time.monotonic() + wait


def options(settings: Settings, connect: Any) -> dict[str, Any]:
    """Those that not every version of the library knows.

    Proxies of the environment are for other hosts than this. Nobody pings from here: the answer would wait behind
    output that is not read, and who thinks for a minute before the next read would lose the terminal by that. The
    server pings, and the kernel finds out that a host is gone (`stay_awake`).
    """
    wanted: dict[str, Any] = {"ping_interval": None}
    if is_here(settings.base_url):
        wanted["proxy"] = None
    known = inspect.signature(connect).parameters
    return {name: value for name, value in wanted.items() if name in known}


def stay_awake(connection: socket.socket | None) -> None:
    if connection is None or connection.family not in (socket.AF_INET, socket.AF_INET6):
        return
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", KEEPALIVE), ("TCP_KEEPINTVL", KEEPALIVE), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def refusal(error: Exception) -> Exception:
    """Why a connection was not made, as this package says it."""
    response = getattr(error, "response", None)
    if response is None:
        return TransportError(f"no terminal: {error}")
    try:
        body = json.loads(response.body or b"{}")
    except ValueError:
        body = {}
    code, detail = body.get("code", "unknown"), body.get("detail", str(error))
    return error_class(response.status_code)(response.status_code, code, detail, body.get("request_id", ""))


class _Talk:
    """Carries operations out on a connection that blocks."""

    def __init__(self, connection: Any, process: BaseProcess) -> None:
        self.connection, self._process = connection, process

    def run(self, op: Op[T]) -> T:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

        value = None
        while True:
            try:
                effect = op.send(value)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            value = None
            try:
                if isinstance(effect, Say):
                    self.connection.send(effect.frame)
                else:
                    timeout = None if effect.timeout is None else max(effect.timeout, 0)
                    self._process._take_frame(self.connection.recv(timeout))
                    value = True
            except TimeoutError:
                value = False
            except ConnectionClosed as error:
                value = _closed(self._process, effect, error)


class _AsyncTalk:
    """Carries operations out on a connection of asyncio."""

    def __init__(self, connection: Any, process: BaseProcess) -> None:
        self.connection, self._process = connection, process

    async def run(self, op: Op[T]) -> T:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415

        value = None
        while True:
            try:
                effect = op.send(value)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            value = None
            try:
                if isinstance(effect, Say):
                    await self.connection.send(effect.frame)
                else:
                    timeout = None if effect.timeout is None else max(effect.timeout, 0.001)
                    self._process._take_frame(await asyncio.wait_for(self.connection.recv(), timeout))
                    value = True
            except (TimeoutError, asyncio.TimeoutError):
                value = False
            except ConnectionClosed as error:
                value = _closed(self._process, effect, error)


def _closed(process: BaseProcess, effect: Hear | Say, error: Exception) -> bool:
    process._take_end(error)
    if isinstance(effect, Say):
        process._check()
        raise TransportError("the program has ended") from error
    return True


class ContainerProcess(BaseProcess):
    """A command in a terminal. `with` hangs it up at the end of the block.

    Output waits in the connection until it is read, and a program that writes faster than it is read is slowed
    down. `wait` reads on and keeps the last 16 MiB for a later `read`; `truncated` says whether more came.
    """

    _driver: _Talk
    _stack: ExitStack

    @classmethod
    def open(
        cls,
        sandbox: SandboxInstance,
        command: Command,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        login_shell: bool = False,
        rows: int = 24,
        cols: int = 80,
    ) -> ContainerProcess:
        """Opens a terminal, in `timeout` seconds at most."""
        from websockets.sync.client import connect  # noqa: PLC0415 (slow to import, seldom needed)

        wait = OPEN_SECONDS if timeout is None else positive(timeout, "timeout")
        init = init_of(command, cwd, env, login_shell, rows, cols)
        settings = sandbox._settings
        stack = ExitStack()
        try:
            connection = stack.enter_context(
                connect(
                    address(settings, sandbox.sandbox_id),
                    additional_headers=settings.headers,
                    max_size=None,
                    open_timeout=wait,
                    compression=None,
                    **options(settings, connect),
                )
            )
        except Exception as error:
            raise refusal(error) from error
        stay_awake(connection.socket)
        process = cls()
        process._driver = _Talk(connection, process)
        process._stack = stack
        try:
            process._driver.run(process._begin(init, wait))
        except BaseException:
            process.close()
            raise
        return process

    write_stdin = sync(BaseProcess._write_stdin)
    read = sync(BaseProcess._read)
    read_all = sync(BaseProcess._read_all)
    resize = sync(BaseProcess._resize)
    kill = sync(BaseProcess._kill)
    poll = sync(BaseProcess._poll)
    wait = sync(BaseProcess._wait)

    def close(self) -> None:
        """Hangs up: what still runs in it gets HUP, and soon KILL."""
        self._stack.close()

    def __enter__(self) -> ContainerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncContainerProcess(BaseProcess):
    """A command in a terminal. `async with` hangs it up at the end of the block; see `ContainerProcess`."""

    _driver: _AsyncTalk

    @classmethod
    async def open(
        cls,
        sandbox: AsyncSandboxInstance,
        command: Command,
        *,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        login_shell: bool = False,
        rows: int = 24,
        cols: int = 80,
    ) -> AsyncContainerProcess:
        """Opens a terminal, in `timeout` seconds at most."""
        from websockets.asyncio.client import connect  # noqa: PLC0415 (slow to import, seldom needed)

        wait = OPEN_SECONDS if timeout is None else positive(timeout, "timeout")
        init = init_of(command, cwd, env, login_shell, rows, cols)
        settings = sandbox._settings
        try:
            connection = await connect(
                address(settings, sandbox.sandbox_id),
                additional_headers=settings.headers,
                max_size=None,
                open_timeout=wait,
                compression=None,
                **options(settings, connect),
            )
        except Exception as error:
            raise refusal(error) from error
        stay_awake(connection.transport.get_extra_info("socket"))
        process = cls()
        process._driver = _AsyncTalk(connection, process)
        try:
            await process._driver.run(process._begin(init, wait))
        except BaseException:
            await process.close()
            raise
        return process

    write_stdin = asynchronous(BaseProcess._write_stdin)
    read = asynchronous(BaseProcess._read)
    read_all = asynchronous(BaseProcess._read_all)
    resize = asynchronous(BaseProcess._resize)
    kill = asynchronous(BaseProcess._kill)
    poll = asynchronous(BaseProcess._poll)
    wait = asynchronous(BaseProcess._wait)

    async def close(self) -> None:
        """Hangs up: what still runs in it gets HUP, and soon KILL."""
        await self._driver.connection.close()

    async def __aenter__(self) -> AsyncContainerProcess:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
