"""What passes between the pipeline and a renderer."""

from __future__ import annotations

from dataclasses import dataclass

from handler.model.manifest import Manifest
from handler.model.tree import ReadSet


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """What to render. `path`: directory of the repository; `include`, `exclude`: globs below it."""

    path: str
    include: tuple[str, ...] = ("**/*.yaml", "**/*.yml", "**/*.json")
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rendered:
    """The documents, in path order, and everything that was read to make them."""

    manifests: tuple[Manifest, ...]
    reads: ReadSet
