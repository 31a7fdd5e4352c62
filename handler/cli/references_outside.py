"""What the kustomizations and charts of a directory name outside of it: `-f DIR` reads that, too, as kustomize and helm would.

Law: texts are searched, never read as YAML. What is found only decides what else of this machine is read; what it means, and what is
refused, the renderer says.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from handler.render.folders import CHART, KUSTOMIZATIONS

_MARKS = (CHART, *KUSTOMIZATIONS)
_WORD = re.compile(r"[^\s\"'\[\]{},=]+")
_MOST = 1 << 20  # bytes of one file that are searched
_MAX_FOUND = 500


def outside(directory: Path) -> tuple[Path, ...]:
    """Return the directories and files of the same checkout that are named, and what those name; of no checkout: wherever they lie."""
    root = directory.resolve()
    if not any((root / mark).is_file() for mark in _MARKS):
        return ()
    top = next((each for each in (root, *root.parents) if (each / ".git").exists()), Path(root.anchor))
    found: list[Path] = []
    waiting = [root]
    while waiting and len(found) < _MAX_FOUND:
        for place in _named(waiting.pop()):
            known = any(place.is_relative_to(each) for each in (root, *found))
            around = root.is_relative_to(place)  # what neither kustomize nor helm builds on
            if not known and not around and place.is_relative_to(top) and place.exists():
                found.append(place)
                waiting += [place] if place.is_dir() else []
    return tuple(found)


def common(directory: Path, others: tuple[Path, ...]) -> tuple[Path, str]:
    """Return the directory around a directory and others, and the first one's path below it; empty: it is the same."""
    root = directory.resolve()
    base = Path(os.path.commonpath([root, *others]))
    return base, "" if base == root else root.relative_to(base).as_posix()


def _named(directory: Path) -> Iterator[Path]:
    for mark in _MARKS:
        for file in directory.rglob(mark):
            if file.is_file() and not file.is_symlink():
                with file.open("rb") as opened:
                    text = opened.read(_MOST).decode("utf-8", "replace")
                for word in _WORD.findall(text):
                    path = word.removeprefix("file://")
                    if ".." in path.split("/"):
                        yield Path(os.path.normpath(file.parent / path))
