"""What passes between the pipeline and a renderer."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.tree import ReadSet

Files = Mapping[tuple[str, str], tuple[Manifest, ...]]
"""(path, blob id) -> the file's documents: what has not changed needn't be read again."""
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
        return f" --namespace {self.namespaces[0]}" if self.namespaces[0] != "*" else ""

    @property
    def command(self) -> str:
        """The command that applies what another program prints; where git has the files, by another name than the configured target's."""
        name = f"{self.name}-built" if self.in_git else self.name
        return f"anneal apply -f - --name {name} {' '.join(f'-n {shlex.quote(each)}' for each in self.namespaces)} -y"


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What to render. `path`: directory of the repository; `include`, `exclude`: globs below it; `known`: files rendered before.

    `rollout`: a Rollout's path from the root; empty: none. `older`: render without one that the commit lacks. `called`: for messages.
    """

    path: str
    include: tuple[str, ...] = ("**/*.yaml", "**/*.yml", "**/*.json")
    exclude: tuple[str, ...] = ()
    rollout: str = ""
    known: Files = field(default_factory=dict, repr=False)
    older: bool = False
    called: Called = Called()


@dataclass(frozen=True, slots=True)
class Rendered:
    """The documents, in path order, everything that was read to make them, and the same by file for the next render.

    `keys`: the Rollout's names of objects -> their identities in `manifests`. A file's document is called by the path below the request's,
    those after the first with `!1`, `!2` … behind it; a List is all its items. `where`: called only when the Rollout has mistakes.
    """

    manifests: tuple[Manifest, ...]
    reads: ReadSet
    files: Files = field(default_factory=dict, repr=False)
    rollout: Manifest | None = None
    keys: Mapping[str, tuple[Identity, ...]] = field(default_factory=dict, repr=False)
    where: Where = field(default=nowhere, repr=False, compare=False)
