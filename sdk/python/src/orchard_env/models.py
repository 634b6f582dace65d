"""What the server says, as plain values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

COMPLETE = frozenset({"succeeded", "failed"})


@dataclass(frozen=True)
class JobResult:
    """A command as it stands: ended, or still queued or running.

    Times are Unix seconds. `exit_code` is 124 after a timeout and 128+N after signal N; `verdict` tells
    which it was: exited, signaled, timed_out, oom_killed, disk_full, canceled, never_started, agent_lost,
    sandbox_deleted. `stdout` and `stderr` hold the head and the tail of what was written, `stdout_bytes`
    and `stderr_bytes` count all of it. `raw` is the whole answer.
    """

    job_id: str
    sandbox_id: str = ""
    command: Any = None
    status: str = "queued"
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    created_at: float | None = None
    started_at: float | None = None
    completed_at: float | None = None
    error: str | None = None
    verdict: str | None = None
    signal: int | None = None
    stdout_bytes: int = 0
    stderr_bytes: int = 0
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    usage: dict[str, Any] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def succeeded(self) -> bool:
        """It ended with exit code 0."""
        return self.status == "succeeded"

    @property
    def failed(self) -> bool:
        """It ended otherwise."""
        return self.status == "failed"

    @property
    def is_complete(self) -> bool:
        """It has ended. False for the answer of a wait that ran out."""
        return self.status in COMPLETE

    @property
    def timed_out(self) -> bool:
        """It ran into its own timeout."""
        return self.verdict == "timed_out"

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> JobResult:
        known = {name: data[name] for name in cls.__dataclass_fields__ if data.get(name) is not None}
        known.pop("raw", None)
        return cls(**known, raw=data)


@dataclass(frozen=True)
class SandboxInfo:
    """A sandbox as the server sees it. `raw` is the whole answer.

    `usage` (cpu_s, memory_bytes, memory_peak_bytes, pids, disk_bytes, each None where it is not known) comes with an
    answer about one sandbox that runs.
    """

    sandbox_id: str
    status: str = "pending"
    status_message: str = ""
    ready: bool = False
    image: str = ""
    block_network: bool = True
    cpu: Any = None
    memory: Any = None
    created_at: float | None = None
    labels: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> SandboxInfo:
        known = {name: data[name] for name in cls.__dataclass_fields__ if data.get(name) is not None}
        known.pop("raw", None)
        return cls(**known, raw=data)


@dataclass(frozen=True)
class FileEntry:
    """One entry of a directory: `type` is "file" or "directory" (of what a link points to), `size` in bytes."""

    name: str
    type: str
    size: int
    modified: str
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class PatchResult:
    """What came of a patch: applied whole, or not at all.

    `error` says what is wrong and what to do; `stdout` and `stderr` are the words of git, or of patch.
    """

    success: bool
    stdout: str = ""
    stderr: str = ""
    exit_code: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class OutputEvent:
    """A piece of a command's output while it runs, or its end.

    `stream` is "stdout" or "stderr" with `data` as it was written from byte `offset` on, or "exit" with the
    ended `job`. An offset that jumps means that the bytes between were not kept.
    """

    stream: str
    data: bytes = b""
    offset: int = 0
    job: JobResult | None = None

    @property
    def text(self) -> str:
        """The data as text; what is not UTF-8 becomes U+FFFD, also characters that two events share."""
        return self.data.decode("utf-8", "replace")
