"""One sandbox: blocking, and for asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from ._core import log
from ._drivers import asynchronous, sync
from ._given import positive
from ._ops import BaseSandbox, Command
from .errors import NotFoundError, SandboxError
from .models import JobResult, OutputEvent, SandboxInfo
from .process import AsyncContainerProcess, ContainerProcess

if TYPE_CHECKING:
    from .client import AsyncSandboxClient, SandboxClient


class SandboxInstance(BaseSandbox):
    """A sandbox. `with` deletes it at the end of the block, whatever happened in there."""

    def __init__(self, client: SandboxClient, info: SandboxInfo, made: bool) -> None:
        super().__init__(client._settings, info)
        self.client = client
        self._made = made
        self._heart: _Heart | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"client": self.client, "info": self.info}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["client"], state["info"], False)  # type: ignore[misc]

    @property
    def _driver(self) -> Any:
        return self.client._driver

    refresh = sync(BaseSandbox._refresh)
    wait_ready = sync(BaseSandbox._wait_ready)
    get_job = sync(BaseSandbox._get_job)
    wait_job = sync(BaseSandbox._wait_job)
    cancel_job = sync(BaseSandbox._cancel_job)
    list_jobs = sync(BaseSandbox._list_jobs)
    write_stdin = sync(BaseSandbox._write_stdin)
    apply_patch = sync(BaseSandbox._apply_patch)
    upload_content = sync(BaseSandbox._upload_content)
    upload_file = sync(BaseSandbox._upload_file)
    upload_dir = sync(BaseSandbox._upload_dir)
    download_content = sync(BaseSandbox._download_content)
    download_file = sync(BaseSandbox._download_file)
    download_dir = sync(BaseSandbox._download_dir)
    list_files = sync(BaseSandbox._list_files)
    check_env = sync(BaseSandbox._check_env)
    heartbeat = sync(BaseSandbox._beat)

    @overload
    def exec(
        self,
        command: Command,
        timeout: float | None = ...,
        cwd: str | None = ...,
        env: Mapping[str, str] | None = ...,
        wait: bool = ...,
        poll_interval: float = ...,
        login_shell: bool = ...,
        pty: Literal[False] = ...,
        **fields: Any,
    ) -> JobResult: ...

    @overload
    def exec(
        self,
        command: Command,
        timeout: float | None = ...,
        cwd: str | None = ...,
        env: Mapping[str, str] | None = ...,
        wait: bool = ...,
        poll_interval: float = ...,
        login_shell: bool = ...,
        *,
        pty: Literal[True],
        rows: int = ...,
        cols: int = ...,
    ) -> ContainerProcess: ...

    def exec(
        self,
        command: Command,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        wait: bool = True,
        poll_interval: float = 0.1,
        login_shell: bool = False,
        pty: bool = False,
        rows: int = 24,
        cols: int = 80,
        **fields: Any,
    ) -> JobResult | ContainerProcess:
        if pty:
            return ContainerProcess.open(
                self,
                command,
                timeout=timeout,
                cwd=cwd,
                env=env,
                login_shell=login_shell,
                rows=rows,
                cols=cols,
            )
        return self._driver.run(  # type: ignore[no-any-return]
            self._exec(command, timeout, cwd, env, wait, poll_interval, login_shell, **fields)
        )

    exec.__doc__ = (
        (BaseSandbox._exec.__doc__ or "")
        + """
        With `pty` it runs in a terminal of `rows` by `cols`, and the answer is a `ContainerProcess` to talk to;
        then `timeout` is how long the terminal may take to open.
        """
    )

    def exec_stream(
        self,
        command: Command,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        login_shell: bool = False,
        **fields: Any,
    ) -> Iterator[OutputEvent]:
        return self._driver.iterate(  # type: ignore[no-any-return]
            self._exec_stream(command, timeout, cwd, env, login_shell, **fields)
        )

    exec_stream.__doc__ = BaseSandbox._exec_stream.__doc__

    def follow_job(self, job_id: str) -> Iterator[OutputEvent]:
        return self._driver.iterate(self._follow_job(job_id))  # type: ignore[no-any-return]

    follow_job.__doc__ = BaseSandbox._follow_job.__doc__

    def delete(self) -> None:
        """Deletes it; one that is gone already is fine."""
        self.stop_heartbeat()
        self._driver.run(self._delete())

    def start_heartbeat(self, interval: float = 60) -> None:
        """Tells the server every `interval` seconds, from now on, that somebody still needs this sandbox.

        In a thread that ends with `stop_heartbeat`, `delete`, the process, or the sandbox. What goes wrong is
        logged, and the latest of it is in `heartbeat_error`.
        """
        self.stop_heartbeat()
        self._heart = _Heart(self, positive(interval, "interval"))
        self._heart.start()

    def stop_heartbeat(self) -> None:
        """No more heartbeats; the server takes the sandbox when its time is over."""
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.stop()

    @property
    def heartbeat_error(self) -> Exception | None:
        """Why the latest heartbeat did not come through, if it did not."""
        return self._heart.error if self._heart is not None else None

    def _forget(self) -> None:
        self.client._drop(self.sandbox_id)

    def __enter__(self) -> SandboxInstance:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_ours:
            return
        try:
            self.delete()
        except SandboxError as problem:
            if kind is None:
                raise
            log.warning("sandbox %s was not deleted: %s", self.sandbox_id, problem)


class _Heart(threading.Thread):
    def __init__(self, sandbox: SandboxInstance, interval: float) -> None:
        super().__init__(name=f"heartbeat-{sandbox.sandbox_id}", daemon=True)
        self._sandbox, self._interval = sandbox, interval
        self._stopped = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._sandbox.heartbeat()
                self.error = None
            except NotFoundError as error:
                self.error = error
                log.warning("no more heartbeats: %s", error)
                return
            except SandboxError as error:
                self.error = error
                log.warning("heartbeat of sandbox %s: %s", self._sandbox.sandbox_id, error)
            self._stopped.wait(self._interval)

    def stop(self) -> None:
        self._stopped.set()
        if self.is_alive() and threading.current_thread() is not self:
            self.join(5)


def _done() -> Awaitable[None]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    done.set_result(None)
    return done


class AsyncSandboxInstance(BaseSandbox):
    """A sandbox. `async with` deletes it at the end of the block, whatever happened in there."""

    def __init__(self, client: AsyncSandboxClient, info: SandboxInfo, made: bool) -> None:
        super().__init__(client._settings, info)
        self.client = client
        self._made = made
        self._heart: asyncio.Task[None] | None = None
        self.heartbeat_error: Exception | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"client": self.client, "info": self.info}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["client"], state["info"], False)  # type: ignore[misc]

    @property
    def _driver(self) -> Any:
        return self.client._driver

    refresh = asynchronous(BaseSandbox._refresh)
    wait_ready = asynchronous(BaseSandbox._wait_ready)
    get_job = asynchronous(BaseSandbox._get_job)
    wait_job = asynchronous(BaseSandbox._wait_job)
    cancel_job = asynchronous(BaseSandbox._cancel_job)
    list_jobs = asynchronous(BaseSandbox._list_jobs)
    write_stdin = asynchronous(BaseSandbox._write_stdin)
    apply_patch = asynchronous(BaseSandbox._apply_patch)
    upload_content = asynchronous(BaseSandbox._upload_content)
    upload_file = asynchronous(BaseSandbox._upload_file)
    upload_dir = asynchronous(BaseSandbox._upload_dir)
    download_content = asynchronous(BaseSandbox._download_content)
    download_file = asynchronous(BaseSandbox._download_file)
    download_dir = asynchronous(BaseSandbox._download_dir)
    list_files = asynchronous(BaseSandbox._list_files)
    check_env = asynchronous(BaseSandbox._check_env)
    heartbeat = asynchronous(BaseSandbox._beat)

    @overload
    async def exec(
        self,
        command: Command,
        timeout: float | None = ...,
        cwd: str | None = ...,
        env: Mapping[str, str] | None = ...,
        wait: bool = ...,
        poll_interval: float = ...,
        login_shell: bool = ...,
        pty: Literal[False] = ...,
        **fields: Any,
    ) -> JobResult: ...

    @overload
    async def exec(
        self,
        command: Command,
        timeout: float | None = ...,
        cwd: str | None = ...,
        env: Mapping[str, str] | None = ...,
        wait: bool = ...,
        poll_interval: float = ...,
        login_shell: bool = ...,
        *,
        pty: Literal[True],
        rows: int = ...,
        cols: int = ...,
    ) -> AsyncContainerProcess: ...

    async def exec(
        self,
        command: Command,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        wait: bool = True,
        poll_interval: float = 0.1,
        login_shell: bool = False,
        pty: bool = False,
        rows: int = 24,
        cols: int = 80,
        **fields: Any,
    ) -> JobResult | AsyncContainerProcess:
        if pty:
            return await AsyncContainerProcess.open(
                self,
                command,
                timeout=timeout,
                cwd=cwd,
                env=env,
                login_shell=login_shell,
                rows=rows,
                cols=cols,
            )
        return await self._driver.run(  # type: ignore[no-any-return]
            self._exec(command, timeout, cwd, env, wait, poll_interval, login_shell, **fields)
        )

    exec.__doc__ = SandboxInstance.exec.__doc__

    def exec_stream(
        self,
        command: Command,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        login_shell: bool = False,
        **fields: Any,
    ) -> AsyncIterator[OutputEvent]:
        return self._driver.iterate(  # type: ignore[no-any-return]
            self._exec_stream(command, timeout, cwd, env, login_shell, **fields)
        )

    exec_stream.__doc__ = BaseSandbox._exec_stream.__doc__

    def follow_job(self, job_id: str) -> AsyncIterator[OutputEvent]:
        return self._driver.iterate(self._follow_job(job_id))  # type: ignore[no-any-return]

    follow_job.__doc__ = BaseSandbox._follow_job.__doc__

    async def delete(self) -> None:
        """Deletes it; one that is gone already is fine."""
        await self.stop_heartbeat()
        await self._driver.run(self._delete())

    def start_heartbeat(self, interval: float = 60) -> Awaitable[None]:
        """Tells the server every `interval` seconds, from now on, that somebody still needs this sandbox.

        In a task that ends with `stop_heartbeat`, `delete`, the loop, or the sandbox. What goes wrong is
        logged, and the latest of it is in `heartbeat_error`. Awaiting it is not needed.
        """
        self.stop_heartbeat()
        self._heart = asyncio.create_task(self._beat_on(positive(interval, "interval")))
        return _done()

    def stop_heartbeat(self) -> Awaitable[None]:
        """No more heartbeats; the server takes the sandbox when its time is over. Awaiting it is not needed."""
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.cancel()
        return _done()

    async def _beat_on(self, interval: float) -> None:
        while True:
            try:
                await self.heartbeat()
                self.heartbeat_error = None
            except NotFoundError as error:
                self.heartbeat_error = error
                log.warning("no more heartbeats: %s", error)
                return
            except SandboxError as error:
                self.heartbeat_error = error
                log.warning("heartbeat of sandbox %s: %s", self.sandbox_id, error)
            await asyncio.sleep(interval)

    def _forget(self) -> None:
        self.client._drop(self.sandbox_id)

    async def __aenter__(self) -> AsyncSandboxInstance:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_ours:
            return
        try:
            await self.delete()
        except SandboxError as problem:
            if kind is None:
                raise
            log.warning("sandbox %s was not deleted: %s", self.sandbox_id, problem)
