"""A working clone for tests, demo and bench: write, commit, push, with the git program. The handler itself never runs git."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

IDENTITY = {"NAME": "anneal", "EMAIL": "anneal@example.invalid"}


class Remote(Protocol):
    """Where repositories are made: `infra.githost.Host`."""

    root: Path

    def create(self, name: str) -> Path:
        """Make a bare repository."""


def git_environment(home: Path) -> dict[str, str]:
    """Return an environment in which git reads no configuration of this machine."""
    names = {f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in IDENTITY.items()}
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", **names}


def run_git(directory: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Run git and return what it printed, without the last newline; its complaint is in the error."""
    done = subprocess.run(["git", *arguments], cwd=directory, env=git_environment(directory), input=stdin, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="replace").rstrip("\n")


def init_repository(directory: Path, branch: str, config: str, *, bare: bool) -> None:
    """Make a repository as `git init` does without templates, with a configuration appended to its own: a copy of one that git made."""
    if (directory / "HEAD").exists():
        return
    for name, content in _initialised(branch, bare=bare).items():
        if content is None:
            (directory / name).mkdir(parents=True, exist_ok=True)
        else:
            (directory / name).write_bytes(content)
    with (directory / "config").open("a", encoding="utf-8") as file:
        file.write(config)


@cache
def _initialised(branch: str, *, bare: bool) -> dict[str, bytes | None]:
    """Return the files that `git init` makes, and its directories, parents first."""
    with tempfile.TemporaryDirectory() as made:
        run_git(Path(made), "init", "-q", "--template=", f"--initial-branch={branch}", *(["--bare"] if bare else []))
        root = Path(made) if bare else Path(made) / ".git"
        return {str(path.relative_to(root)): None if path.is_dir() else path.read_bytes() for path in (root, *sorted(root.rglob("*")))}


@dataclass
class Work:
    """A working clone: write, commit, push. `remote` is a URL or a path of a bare repository."""

    directory: Path
    remote: str
    branch: str = "main"
    _made: bool = field(default=False, repr=False)

    @classmethod
    def of(cls, host: Remote, name: str, directory: Path | None = None) -> Work:
        """Create a repository on a host and a working clone of it (pushes go straight to the bare repository)."""
        bare = host.create(name)
        work = cls(directory or host.root / "work" / name, str(bare))
        return work.init()

    def init(self) -> Work:
        """Make the working clone."""
        origin = (
            f'[remote "origin"]\n\turl = {json.dumps(self.remote, ensure_ascii=False)}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n'
        )
        init_repository(self.directory / ".git", self.branch, f"{origin}[maintenance]\n\tauto = false\n", bare=False)  # a process a commit
        return self

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Run git in the clone."""
        return run_git(self.directory, *arguments, stdin=stdin)

    def write(self, path: str, text: str | bytes) -> Work:
        """Write a file; parents are made."""
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return self

    def link(self, path: str, target: str) -> Work:
        """Make a symbolic link with this text."""
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.symlink_to(target)
        return self

    def remove(self, path: str) -> Work:
        """Remove a file or a directory."""
        self.git("rm", "-q", "-r", "--ignore-unmatch", "--", path)
        return self

    def commit(self, message: str) -> str:
        """Commit everything and return the id."""
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "--no-gpg-sign", "-m", message)
        return self.head()

    def head(self) -> str:
        """Return the id of the current commit."""
        _, found, ref = (self.directory / ".git" / "HEAD").read_text().rstrip().partition("ref: ")
        branch = self.directory / ".git" / ref
        return branch.read_text().rstrip() if found and branch.is_file() else self.git("rev-parse", "HEAD")

    def push(self, force: bool = False, ref: str = "") -> None:
        """Push the branch, or a ref spec."""
        self.git("push", "-q", *(["--force"] if force else []), "origin", ref or f"HEAD:refs/heads/{self.branch}")
