"""Which programs render: found once where the operator put them, asked for their version, known by their bytes.

Law: a tool is an input like any other: its digest is in the read set, so that another kustomize or helm renders anew. One that isn't
static is known by its libraries, too: the files that its loader names, and nothing beside them, are what it may read.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from handler.model.errors import ProgramAbsent, RendererUnavailable
from handler.model.tree import OUTSIDE

DIRECTORY = "ANNEAL_TOOLS"
"""The environment variable that names directories of tools, as PATH does; they are looked into before it."""
IN_PACKAGE = "tools"
"""The directory of the functions' package that holds tools, beside the handler."""
_OLDEST = {"kustomize": (5, 8, 1), "helm": (3, 16, 0), "nix": (2, 8, 0), "jsonnet": (0, 20, 0), "sops": (3, 9, 0)}
_VERSION = {
    "kustomize": ("version",),
    "helm": ("version", "--template", "{{.Version}}"),
    "nix": ("--version",),
    "jsonnet": ("--version",),
    "sops": ("--disable-version-check", "--version"),
}
_PROGRAM = {"nix": "nix-instantiate"}
"""What is started of a tool that has many names."""
_LINKED = frozenset({"nix"})
"""The tools that need libraries of the system."""
_BESIDE = "../lib/nix"
"""Where a tool may have libraries of its own, from its directory: so Debian and `infra.renderers.nix` lay it out."""
_LIBRARY = re.compile(r"^\t(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.MULTILINE)
_FOUND = re.compile(r"v?(\d+)\.(\d+)\.(\d+)")
_WITHOUT = {
    "kustomize": "a kustomization can't be rendered without it",
    "helm": "a chart can't be rendered without it",
    "nix": "a NixOS module can't be rendered without it",
    "jsonnet": "Google's slower library in C++ evaluates in its place, but on Linux on ARM, which has none",
    "sops": "an encrypted file can't be rendered without it",
}
LIBRARY = "libjsonnet"
"""Google's jsonnet in C++, which the render child loads: where its program isn't installed, or its walls don't stand."""
_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class RenderTool:
    """A program that renders. `path`: absolute; `version`: as it says itself; `digest`: sha256 of its bytes and its libraries'.

    `libraries`: the files that are loaded with it, by `loader`; none: it is static.
    """

    name: str
    path: str
    version: str
    digest: str
    loader: str = ""
    libraries: tuple[str, ...] = ()

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables with which its libraries are found."""
        places = dict.fromkeys(os.path.dirname(each) for each in self.libraries)  # noqa: PTH120 - as the loader says them
        return {"LD_LIBRARY_PATH": ":".join(places)} if places else {}

    @property
    def read(self) -> str:
        """The name of this input in a read set."""
        return read_name(self.name)


def read_name(tool: str) -> str:
    """Return the name of a tool in a read set."""
    return f"{OUTSIDE}tool/{tool}"


def digest(name: str) -> str:
    """Return the digest of a tool: of a program as `find` does, or of the library; empty: of what another engine or release took.

    Raises RendererUnavailable.
    """
    if name == LIBRARY:
        return _library()
    try:
        return find(name).digest if name in _OLDEST else ""
    except RendererUnavailable:
        if name != "jsonnet":
            raise
        return ""


@cache
def _library() -> str:
    """Hash its code without loading it; empty: it isn't installed."""
    spec = importlib.util.find_spec("_jsonnet")
    return _digest(spec.origin) if spec and spec.origin else ""


def find(name: str) -> RenderTool:
    """Return a program of `_OLDEST` as installed here. Raises ProgramAbsent; RendererUnavailable: it is too old, or doesn't start."""
    directory = os.environ.get(DIRECTORY, "")
    program = _PROGRAM.get(name, name)
    found = shutil.which(program, path=directory) if directory else None
    found = found or shutil.which(program)
    oldest = ".".join(map(str, _OLDEST[name]))
    if not found:
        fix = (
            f"install {name} {oldest} or newer on PATH; in a clone: scripts/renderers; the container image has it, and scripts/package"
            " --renderers packs it for functions"
            if name not in _LINKED
            else f"install {program} {oldest} or newer on PATH, of Debian: apt-get install --no-install-recommends nix-bin; in a clone:"
            " scripts/renderers nix"
        )
        raise ProgramAbsent.of(name, f"isn't installed here, and {_WITHOUT[name]}", fix=fix)
    path = Path(found).resolve()
    facts = path.stat()
    if path.name != program and (called := path.with_name(program)).exists() and called.samefile(path):
        path = called  # a program with many names looks at the one by which it is called
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
    loaded = _loaded(name, path) if name in _LINKED else ()
    loader = next((each for each in loaded if Path(each).name.startswith("ld-")), "")
    digests = [_digest(each) for each in (path, *loaded)]
    digest = hashlib.sha256("".join(digests).encode()).hexdigest() if loaded else digests[0]
    return RenderTool(name, path, numbers.group(), digest, loader, tuple(each for each in loaded if each != loader))


def _digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _loaded(name: str, path: str) -> tuple[str, ...]:
    """Return the files that are loaded with a program, as the system's own loader says; a static one says its version instead."""
    return tuple(_LIBRARY.findall(_asked(name, path, LD_TRACE_LOADED_OBJECTS="1")))


def _version(name: str, path: str) -> str:
    return _asked(name, path).strip()


def _asked(name: str, path: str, **more: str) -> str:
    """Ask the operator's own program for its version: nothing of git is near."""
    command = [path, *_VERSION[name]]
    beside = Path(path).resolve().parent / _BESIDE
    own = {"LD_LIBRARY_PATH": str(beside.resolve())} if name in _LINKED and beside.is_dir() else {}
    environment = {"HOME": "/nonexistent", "PATH": "", **own, **more}
    try:
        done = subprocess.run(  # noqa: S603 - the operator's own program, fixed arguments
            command, capture_output=True, timeout=_SECONDS, env=environment, stdin=subprocess.DEVNULL, check=False, text=True
        )
    except (OSError, subprocess.TimeoutExpired) as failed:
        raise RendererUnavailable.of(name, f"{path} can't be started: {getattr(failed, 'strerror', None) or 'it hangs'}") from None
    return done.stdout
