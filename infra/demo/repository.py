"""The sample shop as git content: a working clone whose pushes go over HTTP."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from infra.demo.cluster import Names
from infra.demo.narration import DemoFailed
from infra.gitwork import Work

_HERE = Path(__file__).resolve().parent
SHOP = _HERE / "shop"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit and what it was before: the content of its push's webhook."""

    sha: str
    before: str
    subject: str

    @property
    def short(self) -> str:
        """The id as people write it."""
        return self.sha[:7]


def declared(under: str = "deploy") -> int:
    """Return how many objects the sample shop declares below a path."""
    paths = [SHOP / under] if (SHOP / under).is_file() else (SHOP / under).rglob("*.yaml")
    return sum(len(re.findall(r"^kind: ", path.read_text(), re.MULTILINE)) for path in paths)


class Repository:
    """The shop's repository on the demo's git host, and a clone of it."""

    def __init__(self, directory: Path, address: str, names: Names) -> None:
        """`directory`: the demo's, with the git host's repositories in `git`; `address`: the host's host:port."""
        self.bare = directory / "git" / "shop.git"
        self.url = f"http://{address}/shop.git"
        self._names = names
        self.work = Work(directory / "work", self.url).init()
        self._pushed = "0" * 40

    def copy(self, paths: Iterable[str] = ()) -> None:
        """Bring files of the sample shop into the clone, all of them when none is named."""
        chosen = [SHOP / path for path in paths] or sorted(SHOP.rglob("*.yaml"))
        for file in chosen:
            self.work.write(str(file.relative_to(SHOP)), self._names.fitted(file.read_text()))

    def add(self, name: str) -> None:
        """Bring a directory beside the sample shop into the clone."""
        for file in sorted(path for path in (_HERE / name).rglob("*") if path.is_file()):
            self.work.write(str(file.relative_to(_HERE)), self._names.fitted(file.read_text()))

    def replace(self, path: str, old: str, new: str) -> None:
        """Change a file in one place; it must be there."""
        text = (self.work.directory / path).read_text()
        if text.count(old) != 1:
            raise DemoFailed(f"{old!r} occurs {text.count(old)} times in {path}")
        self.work.write(path, text.replace(old, new))

    def commit(self, subject: str) -> Commit:
        """Commit everything."""
        return self._made(self.work.commit(subject), subject)

    def revert(self, commit: Commit) -> Commit:
        """Undo a commit by another one."""
        self.work.git("revert", "--no-edit", commit.sha)
        return self._made(self.work.head(), self.work.git("log", "-1", "--format=%s"))

    def offer(self) -> None:
        """Push the clone's commit to a branch that no target deploys, as for a pull request."""
        self.work.git("push", "-q", "--force", "origin", "HEAD:refs/heads/proposal")

    def push(self) -> None:
        """Push to main."""
        self.work.git("push", "-q", "origin", "HEAD:main")
        self._pushed = self.work.head()

    def forget(self) -> None:
        """Go back to what was pushed last."""
        self.work.git("reset", "-q", "--hard", self._pushed)

    def deliver_pushes(self, address: str, secret_file: Path, root: Path) -> None:
        """From now on, the host itself sends a webhook for each push."""
        command = [sys.executable, "-m", "infra.demo.github", self.url, address, str(secret_file)]
        hook = self.bare / "hooks" / "post-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(root))} exec {shlex.join(command)}\n")
        hook.chmod(0o755)

    def _made(self, sha: str, subject: str) -> Commit:
        return Commit(sha, self._pushed, subject)
