"""Every operation, once. `client.py` and `sandbox.py` make methods of them, blocking and for asyncio."""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import stat
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Generic, TypeVar, Union

from ._core import HOLD_SECONDS, POLL_SECONDS, Deadline, Retry, Settings, call, log, new_key, path_of
from ._effects import Emit, Op, OpenStream, ReadLine, Request, Response, Sleep, Work
from ._given import octets, positive, text, variables, words
from ._tree import LocalPath, pack, unpack
from .errors import (
    APIError,
    NotFoundError,
    SandboxFailedError,
    SandboxTimeoutError,
    TransportError,
    UnavailableError,
)
from .models import FileEntry, JobResult, OutputEvent, PatchResult, SandboxInfo

S = TypeVar("S", bound="BaseSandbox")
Command = Union[str, Sequence[str]]
SPOOL = 8 * 1024 * 1024  # bytes of an archive that stay in memory


class BaseSandbox:
    """A sandbox of the server, whoever made it."""

    _settings: Settings

    def __init__(self, settings: Settings, info: SandboxInfo) -> None:
        self._settings = settings
        self.info = info
        self.sandbox_id = info.sandbox_id
        self._path = path_of("sandboxes", info.sandbox_id)
        self._pid = os.getpid()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.sandbox_id} {self.info.status}>"

    @property
    def image(self) -> str:
        return self.info.image

    @property
    def status(self) -> str:
        """As of the last answer; `refresh()` asks again."""
        return self.info.status

    @property
    def _is_ours(self) -> bool:
        """False in a child made by fork, which leaves its parent's sandboxes alone."""
        return self._pid == os.getpid()

    # --- its life ---

    def _refresh(self) -> Op[SandboxInfo]:
        """Asks how it is; also in `info` from then on. Raises NotFoundError when it is gone."""
        answer = yield from call(self._settings, "GET", self._path)
        self.info = SandboxInfo.from_json(answer.json())
        return self.info

    def _wait_ready(self, timeout: float | None = None, poll_interval: float = 1.0) -> Op[SandboxInfo]:
        """Waits until commands can run, at most `timeout` seconds (None: as long as the server tries).

        Raises SandboxFailedError with the reason when it never will, SandboxTimeoutError when time is over.
        """
        deadline = Deadline(timeout, f"sandbox {self.sandbox_id} was not ready after {timeout} s")
        while True:
            try:
                piece = deadline.piece()
                answer = yield from call(
                    self._settings,
                    "GET",
                    self._path + "/wait",
                    params={"timeout": piece},
                    read_timeout=piece + self._settings.timeout,
                )
            except APIError as error:
                if error.status != 408:
                    raise
                yield Sleep(min(poll_interval, 0.05))
                continue
            self.info = SandboxInfo.from_json(answer.json())
            if self.info.ready or self.info.status == "ready":
                return self.info
            if self.info.status in ("failed", "deleting", "not_found"):
                raise SandboxFailedError(
                    f"sandbox {self.sandbox_id} is {self.info.status}: {self.info.status_message or 'no reason given'}"
                )
            yield Sleep(poll_interval)

    def _delete(self) -> Op[None]:
        """Deletes it; one that is gone already is fine."""
        try:
            yield from call(self._settings, "DELETE", self._path)
        except NotFoundError:
            log.debug("sandbox %s was gone already", self.sandbox_id)
        self._forget()

    def _forget(self) -> None:
        """It needs no cleaning up any more."""

    def _beat(self) -> Op[None]:
        """One heartbeat."""
        yield from call(self._settings, "POST", self._path + "/heartbeat")

    # --- commands ---

    def _exec(
        self,
        command: Command,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        wait: bool = True,
        poll_interval: float = 0.1,
        login_shell: bool = False,
        **fields: Any,
    ) -> Op[JobResult]:
        """Runs a command: a string by the image's shell, a list as that exact argv.

        `timeout` in seconds counts from when it runs, not from when it stands in the queue (None: the server's
        default). With `wait` the answer is the ended job, however long that takes; a command that fails or
        times out is an answer, not an exception. Without, it is the queued job at once; see `get_job` and
        `wait_job`. Tries that broke off are made again, and still the command runs once. `fields` are other
        members of the request, such as stdin, user, lane, max_output_bytes, encoding.

        Who stops waiting (a cancel, Ctrl-C) stops nothing else: the command runs on, and is among `list_jobs`.

        Raises ValueError for a timeout that is no positive number, TypeError for what is no command, both before
        anything is sent; APIError when the server refuses.
        """
        body = exec_body(command, timeout, cwd, env, login_shell, fields)
        body["wait"] = wait
        if wait:
            body["wait_timeout"] = POLL_SECONDS
        answer = yield from call(
            self._settings,
            "POST",
            self._path + "/exec",
            body=body,
            once=True,
            read_timeout=POLL_SECONDS + self._settings.timeout if wait else None,
        )
        job = JobResult.from_json(answer.json())
        if not wait or job.is_complete:
            return job
        job = yield from self._wait_job(job.job_id, poll_interval=poll_interval)
        return job

    def _exec_stream(
        self,
        command: Command,
        timeout: float | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        login_shell: bool = False,
        **fields: Any,
    ) -> Op[None]:
        """Runs a command and iterates over `OutputEvent`s while it runs; the last one holds the ended job.

        A connection that breaks is made again, and the output goes on where it was. Leaving the loop early
        does not end the command; `cancel_job` does. A loop that takes its time gets all the same: the command
        waits when more was written than is kept (with `hold_output_seconds=0` it does not).
        """
        body = exec_body(command, timeout, cwd, env, login_shell, fields)
        body["wait"] = False
        body.setdefault("hold_output_seconds", HOLD_SECONDS)
        answer = yield from call(self._settings, "POST", self._path + "/exec", body=body, once=True)
        yield from self._follow_job(answer.json()["job_id"])

    def _follow_job(self, job_id: str) -> Op[None]:
        """Iterates over the output of a job from its beginning, and on until it ends, as `exec_stream` does."""
        place = ""
        retry = Retry(self._settings.retry_seconds)
        while True:
            headers = {"Last-Event-ID": place} if place else {}
            try:
                answer = yield OpenStream(
                    Request("GET", path_of("jobs", job_id, "stream"), headers=headers, read_timeout=60.0)
                )
                if answer.status != 200:
                    yield from self._refuse(answer, job_id)
                while (event := (yield from next_event())) is not None:
                    retry = Retry(self._settings.retry_seconds)
                    place = event.place or place
                    if event.name in ("stdout", "stderr"):
                        data = base64.b64decode(event.data["data"])
                        yield Emit(OutputEvent(event.name, data, event.data["offset"]))
                    elif event.name == "exit":
                        job = yield from self._get_job(job_id)
                        yield Emit(OutputEvent("exit", job=job))
                        return
                problem: Exception = TransportError(f"the stream of job {job_id} ended early")
            except (TransportError, UnavailableError) as error:
                problem = error
            pause = retry.next(getattr(problem, "retry_after", None))
            if pause is None:
                raise problem
            log.info("%s; again in %.1f s", problem, pause)
            yield Sleep(pause)

    def _refuse(self, answer: Response, job_id: str) -> Op[None]:
        """Raises what the same request says when it is no stream."""
        yield from self._get_job(job_id)
        raise UnavailableError(answer.status, "unavailable", f"job {job_id} can't be followed now")

    def _get_job(self, job_id: str) -> Op[JobResult]:
        """A job as it stands. Raises NotFoundError for one that never was or is kept no longer."""
        answer = yield from call(self._settings, "GET", path_of("jobs", job_id))
        return JobResult.from_json(answer.json())

    def _wait_job(self, job_id: str, timeout: float | None = None, poll_interval: float = 0.1) -> Op[JobResult]:
        """Waits until a job has ended. Raises SandboxTimeoutError after `timeout` seconds (None: never).

        With 0 it only looks whether the job has ended.
        """
        deadline = Deadline(timeout, f"job {job_id} had not ended after {timeout} s")
        while True:
            piece = deadline.piece()
            answer = yield from call(
                self._settings,
                "GET",
                path_of("jobs", job_id, "wait"),
                params={"timeout": piece},
                read_timeout=piece + self._settings.timeout,
            )
            job = JobResult.from_json(answer.json())
            if job.is_complete:
                return job
            yield Sleep(poll_interval)

    def _cancel_job(self, job_id: str) -> Op[JobResult]:
        """Ends a job with all its processes; the answer is the job."""
        answer = yield from call(self._settings, "POST", path_of("jobs", job_id, "cancel"))
        return JobResult.from_json(answer.json())

    def _list_jobs(self) -> Op[list[JobResult]]:
        """The sandbox's jobs, newest first, the last 100 of them, without their outputs."""
        answer = yield from call(self._settings, "GET", self._path + "/jobs")
        return [JobResult.from_json(job) for job in answer.json()["jobs"]]

    def _write_stdin(self, job_id: str, data: bytes, eof: bool = False) -> Op[int]:
        """Writes to the stdin of a job made with `stdin_open=True`; `eof` closes it. The count of bytes taken.

        A broken connection raises TransportError and leaves open whether the bytes came, as does UnavailableError but
        for a command that does not read (`queue_full`): it is not tried again. To write nothing tells `stdin_bytes`.
        """
        answer = yield from call(
            self._settings,
            "POST",
            path_of("jobs", job_id, "stdin"),
            params={"eof": 1} if eof else {},
            content=octets(data, "data"),
            again=False,
        )
        return int(answer.json()["accepted"])

    def _apply_patch(self, patch: str | bytes, timeout: float = 30, cwd: str | None = None) -> Op[PatchResult]:
        """Applies a patch (unified or git's), all of it or nothing, in `cwd` or the working directory."""
        lines = patch if isinstance(patch, str) else octets(patch, "a patch").decode("utf-8", "surrogateescape")
        wait = positive(timeout, "timeout")
        body: dict[str, Any] = {"patch": lines, "timeout_seconds": wait}
        if cwd is not None:
            body["cwd"] = text(cwd, "cwd")
        answer = yield from call(
            self._settings,
            "POST",
            self._path + "/apply_patch",
            body=body,
            once=True,
            read_timeout=wait + self._settings.timeout,
        )
        known = {key: value for key, value in answer.json().items() if key in PatchResult.__dataclass_fields__}
        return PatchResult(**known)

    # --- files ---

    def _upload_content(self, content: str | bytes, path: str, mode: int | None = None) -> Op[int]:
        """Writes a file whole or not at all; parents are made. The count of bytes written."""
        size = yield from self._put(octets(content, "content"), path, mode)
        return size

    def _upload_file(self, local_path: LocalPath, path: str, mode: int | None = None) -> Op[int]:
        """Uploads a local file of any size, piece by piece; it keeps its mode. The count of bytes written."""
        with open(local_path, "rb") as file:
            if mode is None:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            size = yield from self._put(file, path, mode)
            return size

    def _put(self, content: bytes | BinaryIO, path: str, mode: int | None) -> Op[int]:
        answer = yield from call(
            self._settings,
            "PUT",
            self._path + "/files/raw",
            params={"path": text(path, "path"), "mode": None if mode is None else f"{mode:04o}"},
            content=content,
            headers={"Content-Type": "application/octet-stream"},
        )
        return int(answer.json()["size"])

    def _download_content(self, path: str) -> Op[bytes]:
        """The bytes of a file, in memory. Raises NotFoundError when there is none."""
        answer = yield from call(self._settings, "GET", self._path + "/files/raw", params={"path": text(path, "path")})
        return bytes(answer.body)

    def _download_file(self, path: str, local_path: LocalPath) -> Op[None]:
        """Downloads a file of any size, piece by piece; the local file appears when all of it has come.

        What is there and no file (a device, a pipe) is written to.
        """
        target = Path(local_path)
        if target.is_dir():
            target = target / PurePosixPath(text(path, "path")).name
        if target.exists() and not target.is_file():
            with tempfile.TemporaryFile() as whole:
                yield from self._get(path, whole)
                yield Work(lambda: pour(whole, target))
            return
        part = target.with_name(f".{uuid.uuid4().hex}.part")
        try:
            with open(part, "w+b") as file:
                yield from self._get(path, file)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)

    def _get(self, path: str, sink: BinaryIO) -> Op[None]:
        yield from call(
            self._settings, "GET", self._path + "/files/raw", params={"path": text(path, "path")}, sink=sink
        )

    def _upload_dir(self, local_path: LocalPath, path: str) -> Op[None]:
        """Uploads a directory's content below `path`, which is made when it is not there."""
        with tempfile.SpooledTemporaryFile(SPOOL) as archive:
            yield Work(lambda: pack(archive, local_path))
            yield from call(
                self._settings,
                "PUT",
                self._path + "/archive",
                params={"path": text(path, "path")},
                content=archive,  # type: ignore[arg-type]
                headers={"Content-Type": "application/x-tar"},
            )

    def _download_dir(self, path: str, local_path: LocalPath) -> Op[None]:
        """Downloads a directory's content into a local directory, which is made when it is not there.

        Nothing is written outside of it, whatever the archive says. Devices, fifos, and links that lead out of it
        are left out, which is logged.
        """
        with tempfile.SpooledTemporaryFile(SPOOL) as archive:
            yield from call(
                self._settings,
                "GET",
                self._path + "/archive",
                params={"path": text(path, "path")},
                sink=archive,  # type: ignore[arg-type]
            )
            yield Work(lambda: unpack(archive, local_path))

    def _list_files(self, path: str = "/workspace") -> Op[list[FileEntry]]:
        """The entries of a directory by name. Raises NotFoundError, InvalidRequestError for what is none."""
        answer = yield from call(self._settings, "GET", self._path + "/files/list", params={"path": text(path, "path")})
        entries = answer.json()["files"]
        return [FileEntry(one["name"], one["type"], one["size"], one["modified"], one) for one in entries]

    def _check_env(
        self, programs: Sequence[str] = ("sh", "bash", "git", "python3", "pip", "conda")
    ) -> Op[dict[str, str | None]]:
        """Where a login shell finds programs: a path each, or None."""
        words = "; ".join(f"command -v {shlex.quote(name)} || echo" for name in programs)
        job = yield from self._exec(words, timeout=60, login_shell=True, lane="orchard-env")
        if not job.succeeded and job.exit_code is None:
            raise SandboxTimeoutError(f"sandbox {self.sandbox_id} did not answer: {job.error}")
        found = job.stdout.split("\n")[-len(programs) - 1 : -1]
        return dict(zip(programs, (line or None for line in found)))


class BaseClient(Generic[S]):
    """What the two clients share; `S` is the sandbox class."""

    _settings: Settings

    def _adopt(self, info: SandboxInfo, made: bool) -> S:
        raise NotImplementedError

    def _create_sandbox(
        self,
        /,
        image: str,
        block_network: bool = True,
        sandbox_id: str | None = None,
        cpu: str | float | None = None,
        memory: str | int | None = None,
        timeout: float | None = None,
        wait_ready: bool = True,
        poll_interval: float = 1.0,
        **fields: Any,
    ) -> Op[S]:
        """Makes a sandbox from an image and waits until commands can run in it.

        `cpu` in cores ("2", "500m", 0.5), `memory` with a unit ("512Mi", "4G") or in bytes, `timeout` in
        seconds to become ready (None: the server's default). `fields` are other members of the request:
        labels, env, working_dir, ttl_seconds, idle_timeout_seconds, egress.

        Raises SandboxFailedError with the server's reason when it can't become ready and SandboxTimeoutError
        when it did not in time; in both cases, as in any other, a cancel and Ctrl-C too, nothing of it is left behind.
        """
        body: dict[str, Any] = {"image": image, "block_network": block_network, **fields}
        optional = {"sandbox_id": sandbox_id, "cpu": cpu, "memory": memory, "timeout": timeout}
        body.update({name: value for name, value in optional.items() if value is not None})
        key = new_key()
        try:
            answer = yield from call(self._settings, "POST", "/sandboxes", body=body, once=key)
        except (Exception, GeneratorExit):
            raise
        except BaseException:
            yield from self._take_back(body, key)
            raise
        sandbox = self._adopt(SandboxInfo.from_json(answer.json()), made=True)
        if wait_ready:
            try:
                yield from sandbox._wait_ready(timeout, poll_interval)
            except GeneratorExit:
                raise
            except BaseException as error:
                yield from self._give_up(sandbox, self._settings if isinstance(error, Exception) else None)
                raise
        return sandbox

    def _take_back(self, body: dict[str, Any], key: str) -> Op[None]:
        """After a cancel or Ctrl-C nobody knows whether it came to be; the same request answers it by its key."""
        hurried = self._settings.hurried()
        try:
            answer = yield from call(hurried, "POST", "/sandboxes", body=body, once=key, read_timeout=hurried.timeout)
        except (APIError, TransportError) as error:
            log.warning("whether an interrupted create made a sandbox is not known: %s", error)
            return
        yield from self._give_up(BaseSandbox(hurried, SandboxInfo.from_json(answer.json())))

    def _give_up(self, sandbox: BaseSandbox, settings: Settings | None = None) -> Op[None]:
        """Deletes it because of an error that is the one to be told; without settings in a hurry."""
        info = sandbox.info
        try:
            yield from BaseSandbox(settings or self._settings.hurried(), info)._delete()
            self._drop(info.sandbox_id)
        except (APIError, TransportError) as error:
            log.warning("sandbox %s was not deleted: %s", info.sandbox_id, error)

    def _get_sandbox(self, sandbox_id: str) -> Op[S]:
        """A sandbox that is there, whoever made it; it is not cleaned up by this client. Raises NotFoundError."""
        answer = yield from call(self._settings, "GET", path_of("sandboxes", sandbox_id))
        return self._adopt(SandboxInfo.from_json(answer.json()), made=False)

    def _list_sandboxes(
        self, label: str | Mapping[str, str] | None = None, status: str | None = None
    ) -> Op[list[SandboxInfo]]:
        """All sandboxes of this key, newest first; by label ("k=v" or a mapping) and status."""
        labels = [label] if isinstance(label, str) else [f"{k}={v}" for k, v in (label or {}).items()]
        found: list[SandboxInfo] = []
        cursor: str | None = None
        while True:
            params: dict[str, Any] = {"label": labels, "status": status, "cursor": cursor, "limit": 1000}
            answer = yield from call(self._settings, "GET", "/sandboxes", params=params)
            page = answer.json()
            found += [SandboxInfo.from_json(one) for one in page["sandboxes"]]
            cursor = page.get("next_cursor") or page.get("cursor")
            if not cursor:
                return found

    def _delete_sandbox(self, sandbox_id: str) -> Op[None]:
        """Deletes a sandbox by its id; one that is gone already is fine. Raises when it could not be deleted."""
        yield from BaseSandbox(self._settings, SandboxInfo(sandbox_id))._delete()
        self._drop(sandbox_id)

    def _drop(self, sandbox_id: str) -> None:
        """It needs no cleaning up any more."""

    def _health(self) -> Op[dict[str, Any]]:
        """The server's own word that it lives."""
        answer = yield from call(self._settings, "GET", "/health")
        return dict(answer.json())

    def _resources(self) -> Op[dict[str, Any]]:
        """Nodes, their capacity, and what is free: cpu in cores, memory in bytes."""
        answer = yield from call(self._settings, "GET", "/resources")
        return dict(answer.json())


# --- parts ---


def exec_body(
    command: Command,
    timeout: float | None,
    cwd: str | None,
    env: Mapping[str, str] | None,
    login_shell: bool,
    fields: Mapping[str, Any],
) -> dict[str, Any]:
    body: dict[str, Any] = {"command": words(command), **fields}
    if timeout is not None:
        body["timeout_seconds"] = positive(timeout, "timeout")
    if cwd is not None:
        body["cwd"] = text(cwd, "cwd")
    if env is not None:
        body["env"] = variables(env)
    if login_shell:
        body["login_shell"] = True
    return body


class Event:
    """One Server-Sent Event."""

    def __init__(self) -> None:
        self.name = "message"
        self.place = ""
        self.data: Any = None


def next_event() -> Op[Event | None]:
    """Reads the next event of the open stream; None at its end."""
    event = Event()
    parts: list[str] = []
    while (line := (yield ReadLine())) is not None:
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if line == "":
            if parts:
                event.data = json.loads("\n".join(parts))
                return event
            event = Event()
        elif name == "event":
            event.name = value
        elif name == "id":
            event.place = value
        elif name == "data":
            parts.append(value)
    return None


def pour(whole: BinaryIO, target: Path) -> None:
    whole.seek(0)
    with open(target, "wb") as there:
        shutil.copyfileobj(whole, there)
