"""Directories of the operator that Nix programs may read: nixpkgs, and whatever else a target's `nixPath` names. In the worker.

Law: each is known by its content, so that another nixpkgs renders anew. It is read through once in a process, and again when its path leads
to another directory or its root has changed: replace it as a whole (a link to the next one), not file by file. A directory of the Nix
store never changes: its name is its digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from handler.config.settings_shape import Json
from handler.model.errors import RendererUnavailable
from handler.model.tree import OUTSIDE

NIXPKGS = "nixpkgs"
READ = f"{OUTSIDE}directory/"
_STORE = re.compile(r"/nix/store/[0-9a-z]{32}-[^/]+(?:/.*)?")
_LEFT_OUT = frozenset({".git"})


@dataclass(frozen=True, slots=True)
class OperatorDirectory:
    """`name`: what it is called in `<…>`; `path`: as it is written; `real`: absolute, without links; `digest`: of its content."""

    name: str
    path: str
    real: str
    digest: str

    @property
    def read(self) -> str:
        """The name of this input in a read set."""
        return read_name(self.path)


def read_name(path: str) -> str:
    """Return the name of a directory in a read set."""
    return f"{READ}{path}"


def paths(nix_path: Json) -> dict[str, str]:
    """Return the directories that a target's settings name, by name."""
    return {str(name): str(path) for name, path in json.loads(nix_path or "{}").items()}


def find(name: str, path: str) -> OperatorDirectory:
    """Return a directory with its digest. Raises RendererUnavailable: it isn't there, or can't be read."""
    real = locate(name, path)
    try:
        facts = real.stat()
        return OperatorDirectory(name, path, str(real), _digest(str(real), facts.st_dev, facts.st_ino, facts.st_mtime_ns))
    except OSError as refused:
        raise _unavailable(name, path, str(refused.strerror)) from None


def locate(name: str, path: str) -> Path:
    """Return where a directory is; nothing in it is read. Raises RendererUnavailable: it isn't there."""
    real = Path(path).resolve()
    if not real.is_dir():
        raise _unavailable(name, path, "is no directory here")
    return real


def _unavailable(name: str, path: str, seen: str) -> RendererUnavailable:
    fix = "correct nixPath of the target's renderer, or put the directory there, readable for every user"
    return RendererUnavailable.of(f"nixPath.{name}", f"{path}: {seen}", fix=fix)


@lru_cache(maxsize=16)
def _digest(real: str, _device: int, _inode: int, _changed: int) -> str:
    if _STORE.fullmatch(real):
        return hashlib.sha256(real.encode()).hexdigest()
    total = hashlib.sha256()
    for line in _lines(real):
        total.update(line)
    return total.hexdigest()


def _lines(root: str) -> Iterator[bytes]:
    """Yield what each file and link below a directory is, in order."""
    for folder, folders, files in os.walk(root, onerror=_fail):
        folders[:] = sorted(each for each in folders if each not in _LEFT_OUT)
        for name in sorted((*files, *(each for each in folders if os.path.islink(f"{folder}/{each}")))):  # noqa: PTH114 - thousands of files
            path = f"{folder}/{name}"
            yield os.fsencode(f"{path[len(root) :]}\0{_content(path)}\n")


def _content(path: str) -> str:
    if os.path.islink(path):  # noqa: PTH114 - as above
        return f"-> {os.readlink(path)}"  # noqa: PTH115 - as above
    with open(path, "rb") as file:  # noqa: PTH123 - as above
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fail(refused: OSError) -> None:
    raise refused
