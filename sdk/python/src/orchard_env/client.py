"""The clients: blocking, and for asyncio."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from types import TracebackType
from typing import Any

from . import _cleanup
from ._core import Settings, log
from ._drivers import AsyncDriver, SyncDriver, asynchronous, sync
from ._ops import BaseClient
from .errors import SandboxError, TransportError
from .models import SandboxInfo
from .sandbox import AsyncSandboxInstance, SandboxInstance

CREATES = 32


class SandboxClient(BaseClient[SandboxInstance]):
    """A server, for code that blocks. Threads may share it; a child made by fork has connections of its own, and
    one that gets it by a pickle (which holds the key) a client of its own, that cleans up what is made by it.

    `base_url` (else SANDBOX_BASE_URL, else http://localhost:8000), `api_key` (else SANDBOX_API_KEY), `prefix` of
    all paths (else SANDBOX_PREFIX). `timeout` is how many seconds of silence end a request, `retry_seconds` how
    long one is tried again that did not come through. With `cleanup` the sandboxes that were made here are deleted
    when the process ends; `with` deletes them at the end of the block.
    """

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str | None = None,
        *,
        timeout: float = 60,
        retry_seconds: float = 60,
        cleanup: bool = True,
    ) -> None:
        self._settings = Settings(base_url, api_key, prefix, timeout, retry_seconds)
        self._driver = SyncDriver(self._settings.base_url, self._settings.headers, self._settings.timeout)
        self._cleanup = cleanup
        self._own: dict[str, SandboxInstance] = {}
        self._left = Left(self._settings)

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self._settings, "cleanup": self._cleanup}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**again(**state))  # type: ignore[misc]

    create_sandbox = sync(BaseClient[SandboxInstance]._create_sandbox)
    get_sandbox = sync(BaseClient[SandboxInstance]._get_sandbox)
    list_sandboxes = sync(BaseClient[SandboxInstance]._list_sandboxes)
    delete_sandbox = sync(BaseClient[SandboxInstance]._delete_sandbox)
    health = sync(BaseClient[SandboxInstance]._health)
    resources = sync(BaseClient[SandboxInstance]._resources)

    def create_many(self, n: int, image: str, *, concurrency: int = CREATES, **fields: Any) -> list[SandboxInstance]:
        """Makes `n` sandboxes, `concurrency` at a time; all or none: when one fails the others are deleted."""
        self._watch()
        creates: list[Future[SandboxInstance]] = []
        with ThreadPoolExecutor(max(1, min(concurrency, n))) as pool:
            try:
                for _ in range(n):
                    creates.append(pool.submit(self.create_sandbox, image, **fields))
                return [one.result() for one in creates]
            except BaseException:
                for one in creates:
                    one.cancel()
                made = [one.result() for one in creates if not one.cancelled() and one.exception() is None]
                list(pool.map(self._try_delete, made))
                raise

    def cleanup_all(self) -> None:
        """Deletes every sandbox that was made by this client. Raises the first problem after trying all."""
        own = [sandbox for sandbox in list(self._own.values()) if sandbox._is_ours]
        with ThreadPoolExecutor(CREATES) as pool:
            problems = [problem for problem in pool.map(self._try_delete, own) if problem is not None]
        if problems:
            raise problems[0]

    def _try_delete(self, sandbox: SandboxInstance) -> Exception | None:
        try:
            sandbox.delete()
        except SandboxError as error:
            log.warning("sandbox %s was not deleted: %s", sandbox.sandbox_id, error)
            return error
        return None

    def delete_own(self) -> None:
        """At the end of the process, or when a signal says so."""
        self._left.delete_own()

    def _adopt(self, info: SandboxInfo, made: bool) -> SandboxInstance:
        sandbox = SandboxInstance(self, info, made)
        if made:
            self._own[info.sandbox_id] = sandbox
            self._left.add(info.sandbox_id)
            self._watch()
        return sandbox

    def _watch(self) -> None:
        if self._cleanup:
            _cleanup.watch(self._left)

    def _drop(self, sandbox_id: str) -> None:
        self._own.pop(sandbox_id, None)
        self._left.ids.pop(sandbox_id, None)

    def close(self) -> None:
        """Closes the connections; sandboxes stay, and are still deleted at the process's end."""
        self._driver.close()

    def __enter__(self) -> SandboxClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.cleanup_all()
        except SandboxError:
            if kind is None:
                raise
        finally:
            self.close()


class Left:
    """The sandboxes that a client has made and nobody has deleted. They outlive the client."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self.ids: dict[str, None] = {}

    def add(self, sandbox_id: str) -> None:
        if self._pid != os.getpid():  # a child made by fork: those are its parent's
            self._pid, self.ids = os.getpid(), {}
        self.ids[sandbox_id] = None

    def delete_own(self) -> None:
        """At the end of the process, or when a signal says so."""
        if self.ids and self._pid == os.getpid():
            _delete_all(self._settings, self.ids)


def again(settings: Settings, cleanup: bool) -> dict[str, Any]:
    """The arguments of a client like another one, which a pickle brought here; the sandboxes stay the other one's."""
    return {
        "base_url": settings.base_url,
        "api_key": settings.api_key or "",
        "prefix": "",
        "timeout": settings.timeout,
        "retry_seconds": settings.retry_seconds,
        "cleanup": cleanup,
    }


def _delete_all(settings: Settings, own: dict[str, None]) -> None:
    """By a connection of its own, one after the other: it may be that no thread can be started any more.

    Nothing is raised, and a server that does not answer is waited for once.
    """
    tried: set[str] = set()
    client = SandboxClient(
        settings.base_url, settings.api_key or "", "", timeout=settings.timeout, retry_seconds=5, cleanup=False
    )
    with closing(client):
        while left := [sandbox_id for sandbox_id in list(own) if sandbox_id not in tried]:
            tried.update(left)
            for sandbox_id in left:
                try:
                    client.delete_sandbox(sandbox_id)
                    own.pop(sandbox_id, None)
                except TransportError as error:
                    log.warning("sandboxes were not deleted: %s: %s", ", ".join(own), error)
                    return
                except SandboxError as error:
                    log.warning("sandbox %s was not deleted: %s", sandbox_id, error)


class Creating(Coroutine[Any, Any, AsyncSandboxInstance]):
    """A sandbox in the making: `await` it, make a task of it, or use it as `async with`, which deletes it."""

    def __init__(self, create: Coroutine[Any, Any, AsyncSandboxInstance]) -> None:
        self._create = create
        self._sandbox: AsyncSandboxInstance | None = None

    def __await__(self) -> Generator[Any, None, AsyncSandboxInstance]:
        return self._create.__await__()

    def send(self, value: Any) -> Any:
        return self._create.send(value)

    def throw(self, *error: Any) -> Any:
        return self._create.throw(*error)

    def close(self) -> None:
        self._create.close()

    async def __aenter__(self) -> AsyncSandboxInstance:
        self._sandbox = await self._create
        return self._sandbox

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._sandbox is not None
        await self._sandbox.__aexit__(kind, error, trace)


class AsyncSandboxClient(BaseClient[AsyncSandboxInstance]):
    """A server, for asyncio; each loop has connections of its own. Arguments as of `SandboxClient`."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str | None = None,
        *,
        timeout: float = 60,
        retry_seconds: float = 60,
        cleanup: bool = True,
    ) -> None:
        self._settings = Settings(base_url, api_key, prefix, timeout, retry_seconds)
        self._driver = AsyncDriver(self._settings.base_url, self._settings.headers, self._settings.timeout)
        self._cleanup = cleanup
        self._own: dict[str, AsyncSandboxInstance] = {}
        self._left = Left(self._settings)

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self._settings, "cleanup": self._cleanup}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**again(**state))  # type: ignore[misc]

    _create = asynchronous(BaseClient[AsyncSandboxInstance]._create_sandbox)
    get_sandbox = asynchronous(BaseClient[AsyncSandboxInstance]._get_sandbox)
    list_sandboxes = asynchronous(BaseClient[AsyncSandboxInstance]._list_sandboxes)
    delete_sandbox = asynchronous(BaseClient[AsyncSandboxInstance]._delete_sandbox)
    health = asynchronous(BaseClient[AsyncSandboxInstance]._health)
    resources = asynchronous(BaseClient[AsyncSandboxInstance]._resources)

    def create_sandbox(
        self,
        image: str,
        block_network: bool = True,
        sandbox_id: str | None = None,
        cpu: str | float | None = None,
        memory: str | int | None = None,
        timeout: float | None = None,
        wait_ready: bool = True,
        poll_interval: float = 1.0,
        **fields: Any,
    ) -> Creating:
        return Creating(
            self._create(image, block_network, sandbox_id, cpu, memory, timeout, wait_ready, poll_interval, **fields)
        )

    create_sandbox.__doc__ = (
        (BaseClient._create_sandbox.__doc__ or "")
        + """
        `await` it, or use it as `async with`, which deletes the sandbox at the end of the block.
        """
    )

    async def create_many(
        self, n: int, image: str, *, concurrency: int = CREATES, **fields: Any
    ) -> list[AsyncSandboxInstance]:
        """Makes `n` sandboxes, `concurrency` at a time; all or none: when one fails the others are deleted."""
        gate = asyncio.Semaphore(max(1, concurrency))

        async def one() -> AsyncSandboxInstance:
            async with gate:
                return await self.create_sandbox(image, **fields)

        creates = [asyncio.ensure_future(one()) for _ in range(n)]
        try:
            return list(await asyncio.gather(*creates))
        except BaseException as error:
            if isinstance(error, Exception):  # else all were cancelled with us, and put away what they began
                for create in creates:
                    create.cancel()
            results = await asyncio.gather(*creates, return_exceptions=True)
            made = [result for result in results if isinstance(result, AsyncSandboxInstance)]
            await asyncio.gather(*map(self._try_delete, made))
            raise

    async def cleanup_all(self) -> None:
        """Deletes every sandbox that was made by this client. Raises the first problem after trying all."""
        gate = asyncio.Semaphore(CREATES)

        async def one(sandbox: AsyncSandboxInstance) -> Exception | None:
            async with gate:
                return await self._try_delete(sandbox)

        problems = await asyncio.gather(*(one(sandbox) for sandbox in list(self._own.values()) if sandbox._is_ours))
        for problem in problems:
            if problem is not None:
                raise problem

    async def _try_delete(self, sandbox: AsyncSandboxInstance) -> Exception | None:
        try:
            await sandbox.delete()
        except SandboxError as error:
            log.warning("sandbox %s was not deleted: %s", sandbox.sandbox_id, error)
            return error
        return None

    def delete_own(self) -> None:
        """At the end of the process, or when a signal says so: no loop is needed."""
        self._left.delete_own()

    def _adopt(self, info: SandboxInfo, made: bool) -> AsyncSandboxInstance:
        sandbox = AsyncSandboxInstance(self, info, made)
        if made:
            self._own[info.sandbox_id] = sandbox
            self._left.add(info.sandbox_id)
            self._watch()
        return sandbox

    def _watch(self) -> None:
        if self._cleanup:
            _cleanup.watch(self._left)

    def _drop(self, sandbox_id: str) -> None:
        self._own.pop(sandbox_id, None)
        self._left.ids.pop(sandbox_id, None)

    async def close(self) -> None:
        """Closes the connections; sandboxes stay, and are still deleted at the process's end."""
        await self._driver.close()

    async def __aenter__(self) -> AsyncSandboxClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self.cleanup_all()
        except SandboxError:
            if kind is None:
                raise
        finally:
            await self.close()
