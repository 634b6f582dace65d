"""Directories as tar archives, here. What comes from a sandbox is not trusted."""

from __future__ import annotations

import copy
import os
import stat
import tarfile
from typing import Any, Union

from ._core import log

LocalPath = Union[str, "os.PathLike[str]"]
CHECKED: dict[str, Any] = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}


def pack(archive: Any, directory: LocalPath) -> None:
    os.listdir(directory)  # tells what is no directory
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(os.path.realpath(directory), arcname=".")


def unpack(archive: Any, directory: LocalPath) -> None:
    archive.seek(0)
    os.makedirs(directory, exist_ok=True)
    with tarfile.open(fileobj=archive, mode="r:") as tar:
        _Tree(os.path.realpath(directory)).fill(tar)


class _Tree:
    """Each member is looked at when those before it are there, since what a name means is up to the links among them.

    Files belong to who unpacks, without set-id bits and writable by nobody else.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._links: list[str] = []
        self._modes: dict[str, int] = {}

    def fill(self, tar: tarfile.TarFile) -> None:
        for member in tar:
            name = os.path.normpath(member.name)
            if name == ".":
                continue
            if not self._may_be(member, name):
                self._leave_out(name)
                continue
            tar.extract(self._as_ours(member, name), self._root, **CHECKED)
        for name in self._links:  # one that was in order may lead out by what came behind it
            if os.path.islink(self._place(name)) and self._leads_out(self._place(name)):
                os.unlink(self._place(name))
                self._leave_out(name)
        for name, mode in reversed(self._modes.items()):
            os.chmod(self._place(name), mode)

    def _place(self, name: str) -> str:
        return os.path.join(self._root, name)

    def _leads_out(self, path: str) -> bool:
        return os.path.commonpath([self._root, os.path.realpath(path)]) != self._root

    def _may_be(self, member: tarfile.TarInfo, name: str) -> bool:
        place = self._place(name)
        above = os.path.dirname(place)
        if os.path.isabs(name) or ".." in member.name.split("/") or self._leads_out(above):
            return False
        if member.isdir():
            return not self._leads_out(place)
        if member.issym():
            return not os.path.isabs(member.linkname) and not self._leads_out(os.path.join(above, member.linkname))
        if member.islnk():
            return self._is_file(member.linkname) and os.path.normpath(member.linkname) != name
        return member.isreg()

    def _is_file(self, name: str) -> bool:
        place = self._place(name)
        if os.path.isabs(name) or ".." in name.split("/") or self._leads_out(os.path.dirname(place)):
            return False
        return os.path.lexists(place) and stat.S_ISREG(os.lstat(place).st_mode)

    def _as_ours(self, member: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
        ours = copy.copy(member)
        ours.name, ours.uname, ours.gname = name, "", ""
        ours.uid, ours.gid = os.geteuid(), os.getegid()
        place = self._place(name)
        if member.isdir():
            self._modes[name] = member.mode & 0o755 | 0o700
            ours.mode = 0o700
            return ours
        if os.path.lexists(place):
            os.unlink(place)  # nothing is written into what has other names
        if member.issym():
            self._links.append(name)
        ours.mode = member.mode & 0o755 | 0o600
        return ours

    def _leave_out(self, name: str) -> None:
        log.warning("%r was left out: it is a device or a fifo, or leads out of the directory", name)
