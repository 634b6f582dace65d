"""Sandboxes for AI agents: client of an Orchard server.

    from orchard_env import SandboxClient

    with SandboxClient() as client, client.create_sandbox("python:3.11-slim") as sandbox:
        print(sandbox.exec("echo hello").stdout)

`AsyncSandboxClient` is the same for asyncio.
"""

from .client import AsyncSandboxClient, SandboxClient
from .errors import (
    APIError,
    AuthenticationError,
    ConflictError,
    InvalidRequestError,
    NotFoundError,
    SandboxError,
    SandboxFailedError,
    SandboxTimeoutError,
    TransportError,
    UnavailableError,
)
from .models import FileEntry, JobResult, OutputEvent, PatchResult, SandboxInfo
from .process import AsyncContainerProcess, ContainerProcess
from .sandbox import AsyncSandboxInstance, SandboxInstance

__version__ = "0.1.0"

__all__ = [
    "APIError",
    "AsyncContainerProcess",
    "AsyncSandboxClient",
    "AsyncSandboxInstance",
    "AuthenticationError",
    "ConflictError",
    "ContainerProcess",
    "FileEntry",
    "InvalidRequestError",
    "JobResult",
    "NotFoundError",
    "OutputEvent",
    "PatchResult",
    "SandboxClient",
    "SandboxError",
    "SandboxFailedError",
    "SandboxInfo",
    "SandboxInstance",
    "SandboxTimeoutError",
    "TransportError",
    "UnavailableError",
]
