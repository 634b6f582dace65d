"""What callers give, looked at before anything is sent."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from numbers import Real
from typing import Any
from urllib.parse import urlsplit


def positive(seconds: Any, what: str) -> float:
    """A number of seconds, also one of numpy; whole ones stay whole."""
    value = _number(seconds)
    if value is None or not 0 < value < math.inf:
        raise ValueError(f"{what} must be a positive number of seconds, not {seconds!r}")
    return value


def patience(seconds: Any, what: str) -> float | None:
    """How long somebody waits: None, as is infinity, for ever; 0 and less for what is there already."""
    if seconds is None:
        return None
    value = _number(seconds)
    if value is None or math.isnan(value):
        raise ValueError(f"{what} must be a number of seconds or None, not {seconds!r}")
    return None if value == math.inf else max(value, 0)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        return value if isinstance(value, int) and float(value) >= 0 else float(value)
    except OverflowError:
        return math.inf


def octets(data: Any, what: str) -> bytes:
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"{what} must be text or bytes, not {type(data).__name__}")


def text(value: Any, what: str) -> str:
    """A string, or a path of this kind."""
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise TypeError(f"{what} must be a string, not {type(value).__name__}")
    return found


def words(command: Any) -> str | list[str]:
    """A command: one string for the shell, or the words of an argv."""
    if isinstance(command, str):
        return command
    if isinstance(command, (bytes, bytearray, Mapping, set, frozenset)) or not isinstance(command, Iterable):
        raise TypeError(f"a command must be a string or a list of strings, not {type(command).__name__}")
    return [text(word, f"word {place} of the command") for place, word in enumerate(command)]


def variables(env: Any) -> dict[str, str]:
    if not isinstance(env, Mapping):
        raise TypeError(f"env must be a mapping of strings to strings, not {type(env).__name__}")
    return {text(name, "a name in env"): text(value, f"env[{name!r}]") for name, value in env.items()}


def address(url: str) -> str:
    """The URL of a server, without a slash at its end."""
    parts = urlsplit(text(url, "base_url").strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"base_url must be like http://host:8000, not {url!r}")
    return parts.geturl().rstrip("/")


def key(api_key: str | None) -> str | None:
    """An API key; the end of line of a file that it was read from is none of it."""
    found = None if api_key is None else text(api_key, "api_key").strip()
    if found and not (found.isascii() and found.isprintable()):
        raise ValueError("api_key has characters that no key can have")
    return found


def is_here(url: str) -> bool:
    """It is an address of this very host, which no proxy of the environment can reach."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
