"""What passes between the pipeline and a renderer."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.model.advice import advice
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.outside_inputs import KnownChart, NothingOutside, OutsideInputs
from handler.model.tree import ReadSet

Files = Mapping[tuple[str, str], tuple[Manifest, ...]]
"""(path, blob id) -> the file's documents: what has not changed needn't be read again."""
FILES = "file"
"""The renderer of plain manifests."""
UPGRADED = "0" * 64
"""`RecordedRender.installed` of a release that isn't as it was installed, for good: no install is made of this."""
Where = Callable[[Sequence[str]], Sequence[int]]
"""Paths of fields of a Rollout -> the line of each, or of the nearest parent that is there; 0: none is known."""


def nowhere(fields: Sequence[str]) -> Sequence[int]:
    """Know no line: what answers for a renderer that makes its Rollout, or one that was rendered before."""
    return [0] * len(fields)


def places(where: Where, document: str, fields: Sequence[str]) -> list[str]:
    """Return file:line of each field of a Rollout; that of the `document` where no line of its own is known."""
    path = document.rpartition(":")[0]
    return [f"{path}:{line}" if line else document for line in where(fields)]


@dataclass(frozen=True, slots=True)
class Called:
    """How commands name what is rendered. `namespaces`: the target's, its default first; `directory`: its files'; `in_git`: a commit's."""

    name: str = "app"
    namespaces: tuple[str, ...] = ("default",)
    directory: str = ""
    in_git: bool = False

    @property
    def namespaced(self) -> str:
        """The flag of a program that makes objects of one namespace; empty where every namespace is meant."""
        return advice("{words}", ["--namespace", self.namespaces[0]] if self.namespaces[0] != "*" else [])

    def place(self, path: str) -> str:
        """Return a directory or file of the repository as a command is given it."""
        return posixpath.normpath(posixpath.join(self.directory, path))

    def applying(self, path: str) -> str:
        """Return the command that applies a path; where git has the files, by another name than the configured target's."""
        name = f"{self.name}-built" if self.in_git else self.name
        spaces = [part for each in self.namespaces for part in ("-n", each)]
        return advice("anneal apply -f {path} --name {}{words} -y", path, name, spaces)


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What to render. `path`: directory of the repository; `include`, `exclude`: globs below it; `known`: files rendered before.

    `rollout`: a Rollout's path from the root; empty: none. `older`: render without one that the commit lacks. `called`: for messages.
    `options`: the renderer's, each a typed value; None: its defaults. `configuration`: what a trigger hands to a renderer that takes one.
    `outside`: all that isn't git. `installed`: `Rendered.installs` of what the target's first commit installed while that is what runs,
    `UPGRADED` from then on; empty: nothing is recorded.
    `weak`: programs may run without walls for files and sockets. `post_build`: which variables there are, typed as `options` is.
    `placeholders`: values that aren't git's are placeholders, of the first or the second set: nothing of the cluster is read for them; 0:
    they aren't. What differs between renders with either set depends on such values. `keys_known`: which variables the cluster has is
    asked of `outside` all the same, so that defaults are taken where a run takes them; what they hold isn't.
    `beside`: this render only shows what of another one depends on such values; what is made anew each time isn't looked for. `told`: who
    reads its mistakes may see all values. `compat`: the tool whose label every object carries; `none`: no tool's.
    """

    path: str
    include: tuple[str, ...] = ("**/*.yaml", "**/*.yml", "**/*.json")
    exclude: tuple[str, ...] = ()
    rollout: str = ""
    known: Files = field(default_factory=dict, repr=False)
    older: bool = False
    called: Called = Called()
    options: object = None
    configuration: Mapping[str, object] = field(default_factory=dict, repr=False)
    outside: OutsideInputs = field(default_factory=NothingOutside, repr=False, compare=False)
    installed: str = ""
    weak: bool = False
    post_build: object = None
    placeholders: int = 0
    keys_known: bool = False
    beside: bool = False
    told: bool = False
    compat: str = "none"


@dataclass(frozen=True, slots=True)
class RecordedRender:
    """What a target's record says of its renders. `renderer`: of the recorded commit, empty: none is recorded; `installed`: see below.

    `charts`: those from elsewhere that were used, oldest first.
    """

    renderer: str = ""
    installed: str = ""
    charts: tuple[KnownChart, ...] = ()


@dataclass(frozen=True, slots=True)
class UnstableFields:
    """What of an object is made anew at each render. `paths`: JSON pointers; `why`: the functions and their lines."""

    paths: tuple[str, ...]
    why: str

    def without(self, body: Any) -> Any:
        """Return a document with nothing in the place of these fields: what is the same at each render."""
        for path in self.paths:
            body = _cleared(body, [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]])
        return body


def _cleared(node: Any, steps: Sequence[str]) -> Any:
    if not steps:
        return None
    if isinstance(node, list):
        return [_cleared(each, steps[1:]) if str(index) == steps[0] else each for index, each in enumerate(node)]
    return {**node, steps[0]: _cleared(node.get(steps[0]), steps[1:])} if isinstance(node, dict) else node


@dataclass(frozen=True, slots=True)
class Rendered:
    """The documents, in path order, everything that was read to make them, and the same by file for the next render.

    `keys`: the Rollout's names of objects -> their identities in `manifests`. A file's document is called by the path below the request's,
    those after the first with `!1`, `!2` … behind it; a List is all its items. `where`: called only when the Rollout has mistakes.
    `renderer`: which one made them. `notes`: what a plan should say of the render. `unstable`: objects that a second render of the same
    inputs makes otherwise -> the fields that differ, with why. `installs`: digest of what a first install is made of; empty: no such thing.
    `upgrade`: these are what an upgrade makes, not what that install does.
    `rests`: hooks that had their time at an install: what is left of them stays, and they never run again.
    `renamed`: objects that are others at each render. `encrypted`: ids of the encrypted files that were decrypted.
    `checksum`, `server`: Kubernixos' checksum of the manifests, and the address of the API server that they are for; empty: none is said.
    """

    manifests: tuple[Manifest, ...]
    reads: ReadSet
    files: Files = field(default_factory=dict, repr=False)
    rollout: Manifest | None = None
    keys: Mapping[str, tuple[Identity, ...]] = field(default_factory=dict, repr=False)
    where: Where = field(default=nowhere, repr=False, compare=False)
    renderer: str = FILES
    notes: tuple[str, ...] = ()
    unstable: Mapping[Identity, UnstableFields] = field(default_factory=dict)
    installs: str = ""
    upgrade: bool = False
    rests: tuple[Manifest, ...] = ()
    renamed: tuple[Identity, ...] = ()
    encrypted: tuple[str, ...] = ()
    checksum: str = ""
    server: str = ""

    def fits(self, installed: str) -> bool:
        """Whether a render for a release with this `RecordedRender.installed` would be the same one, of install or upgrade."""
        return not self.installs or self.upgrade == (installed not in ("", self.installs))
