"""Which programs render: found once where the operator put them, asked for their version, known by their bytes.

Law: a tool is an input like any other: its digest is in the read set, so that another kustomize or helm renders anew.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from handler.model.errors import RendererUnavailable
from handler.model.tree import OUTSIDE

DIRECTORY = "ANNEAL_TOOLS"
"""The environment variable that names a directory of tools; it is looked into before PATH."""
IN_PACKAGE = "tools"
"""The directory of the functions' package that holds tools, beside the handler."""
_OLDEST = {"kustomize": (5, 8, 1), "helm": (3, 16, 0), "jsonnet": (0, 20, 0)}
_VERSION = {"kustomize": ("version",), "helm": ("version", "--template", "{{.Version}}"), "jsonnet": ("--version",)}
_FOUND = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_RENDERS = {"kustomize": "a kustomization", "helm": "a chart", "jsonnet": "a program of engine gojsonnet"}
RJSONNET = "rjsonnet"
"""The engine of jsonnet that is a library, loaded by the render child."""
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class RenderTool:
    """A program that renders. `path`: absolute, no link; `version`: as it says itself; `digest`: sha256 of its bytes."""

    name: str
    path: str
    version: str
    digest: str

    @property
    def read(self) -> str:
        """The name of this input in a read set."""
        return read_name(self.name)


def read_name(tool: str) -> str:
    """Return the name of a tool in a read set."""
    return f"{OUTSIDE}tool/{tool}"


def digest(name: str) -> str:
    """Return the digest of a tool: of a program as `find` does, or of a library. Raises RendererUnavailable."""
    return _library() if name == RJSONNET else find(name).digest


@cache
def _library() -> str:
    """Hash jrsonnet's own code without loading it."""
    spec = importlib.util.find_spec(RJSONNET)
    parts = sorted(part for place in (spec and spec.submodule_search_locations) or () for part in Path(place).glob("*.so"))
    if not parts:
        raise RendererUnavailable.of(
            RJSONNET, "isn't installed here, and no jsonnet can be rendered without it", fix="pip install rjsonnet"
        )
    return hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()


def find(name: str) -> RenderTool:
    """Return a program of `_OLDEST` as installed here. Raises RendererUnavailable: there is none, it is too old, or doesn't start."""
    directory = os.environ.get(DIRECTORY, "")
    found = shutil.which(name, path=directory) if directory else None
    found = found or shutil.which(name)
    oldest = ".".join(map(str, _OLDEST[name]))
    if not found:
        fix = (
            f"install {name} {oldest} or newer on PATH; in a clone: scripts/renderers; the container image has it, and scripts/package"
            " --renderers packs it for functions"
        )
        raise RendererUnavailable.of(name, f"isn't installed here, and {_RENDERS[name]} can't be rendered without it", fix=fix)
    path = Path(found).resolve()
    facts = path.stat()
    return _known(name, str(path), facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=8)
def _known(name: str, path: str, _changed: int, _size: int) -> RenderTool:
    version = _version(name, path)
    numbers = _FOUND.search(version)
    oldest = _OLDEST[name]
    if not numbers or tuple(map(int, numbers.groups())) < oldest:
        least = ".".join(map(str, oldest))
        raise RendererUnavailable.of(
            name, f"{path} is version {version[:40] or 'unknown'}; {least} or newer is needed", fix=f"install {name} {least}"
        )
    with Path(path).open("rb") as program:
        return RenderTool(name, path, numbers.group(), hashlib.file_digest(program, "sha256").hexdigest())


def _version(name: str, path: str) -> str:
    """Ask the operator's own program for its version: nothing of git is near."""
    command = [path, *_VERSION[name]]
    environment = {"HOME": "/nonexistent", "PATH": ""}
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own program, fixed arguments
            command, capture_output=True, timeout=_SECONDS, env=environment, stdin=subprocess.DEVNULL, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise RendererUnavailable.of(name, f"{path} can't be started: {getattr(failed, 'strerror', None) or 'it hangs'}") from None
    return done.stdout.strip()
