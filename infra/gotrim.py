"""Files of other modules that a Go build leaves out, because nothing runs what they, and the packages that they import, hold.

Go refuses an overlay of its module cache; so the modules are taken from links to their directories there, whose sums `go` has checked.
Standard library only.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Run = Callable[..., str]
"""Runs `go` with arguments and returns what it wrote."""


class NothingToTrim(Exception):
    """No file of a module has the name of one that is left out."""


@dataclass(frozen=True)
class LeftOut:
    """The files of `module` whose names match `pattern`; `instead`, a file beside our go.mod, is compiled in their place."""

    module: str
    pattern: str
    instead: str = ""


def trimmed(go: Run, module: Path, left_out: tuple[LeftOut, ...], directory: Path) -> tuple[str, ...]:
    """Return the flags under which `go` builds `module` without what is left out; what they name is kept in `directory`.

    `directory` stays the same from build to build: go's cache goes by it. Raises NothingToTrim.
    """
    if not left_out:
        return ()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    links = _linked(go, sorted({one.module for one in left_out}), directory)
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(module / name, directory / name)
    go("mod", "edit", *(f"-replace={name}={link}" for name, link in links.items()), str(directory / "go.mod"))
    replaced: dict[str, str] = {}
    for one in left_out:
        replaced.update(_replaced(one, links[one.module], module))
    overlay = directory / "overlay.json"
    overlay.write_text(json.dumps({"Replace": replaced}))
    return f"-modfile={directory / 'go.mod'}", f"-overlay={overlay}"


def _linked(go: Run, modules: list[str], directory: Path) -> dict[str, Path]:
    """Download the modules, and return a link to each."""
    go("mod", "download", *modules)
    links = {}
    for line in go("list", "-m", "-f", "{{.Path}}\t{{.Dir}}", *modules).splitlines():
        name, found = line.split("\t")
        links[name] = directory / name.replace("/", "+")
        links[name].symlink_to(found)
    return links


def _replaced(one: LeftOut, root: Path, ours: Path) -> dict[str, str]:
    """Return an overlay's rows for what is left out: by file the one that is read for it, or nothing."""
    files = sorted(map(str, root.glob(one.pattern)))
    if not files:
        raise NothingToTrim(f"{one.module} has no {one.pattern}: see what has become of it, and of the reason to leave it out")
    given = {str(Path(files[0]).with_name(Path(one.instead).name)): str(ours / one.instead)} if one.instead else {}
    return dict.fromkeys(files, "") | given  # under its own name: go takes `_linux.go` as a condition
