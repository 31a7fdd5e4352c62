"""Where Gitea comes from, the git host of tests: a build of go.mod's tool, kept in a cache of its own with the files that it reads.

Gitea's own go.mod replaces modules, which counts for the main module alone: ours repeats it. Its SQLite, which needs a C compiler, has the
same one in its place, translated to Go. Its web page isn't built. Standard library only.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from infra.gobuild import Build, BuildError, LeftOut, Log, report

MODULE = Path(__file__).resolve().parent
GITEA = "code.gitea.io/gitea"
READ = ("templates", "options", "public")
"""What it reads at run time: mails and pages, names of languages and licences, icons."""


@dataclass(frozen=True)
class Gitea:
    """What was built: the program, and the directory that its settings name STATIC_ROOT_PATH."""

    program: Path
    static: Path


def _finish(go: str, work: Path) -> None:
    """Lay what Gitea reads beside it, out of its module."""
    listed = subprocess.run([go, "list", "-m", "-f", "{{.Dir}}", GITEA], cwd=MODULE, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise BuildError(f"`go list -m {GITEA}` failed:\n  {listed.stderr.strip()}")
    for name in READ:
        copy = shutil.copytree(Path(listed.stdout.strip(), name), work / "static" / name, copy_function=shutil.copyfile)
        for directory in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
            directory.chmod(0o755)  # those of a module may not be written to, nor be removed


def _version() -> str:
    """Return what go.mod asks for: the program says it, as a release does."""
    found = re.search(rf"{re.escape(GITEA)} v(\S+)", (MODULE / "go.mod").read_text())
    return found[1] if found else ""


BUILD = Build(
    name="gitea",
    module=MODULE,
    what="Gitea",
    linker=f"-s -w -X main.Version={_version()}",
    left_out=(LeftOut(GITEA, "modules/setting/database_sqlite.go", instead="sqlite/database_sqlite.go"),),
    flags=("-trimpath",),
    parts=READ,
    finish=_finish,
)


def gitea(*, log: Log = report) -> Gitea:
    """Return Gitea, built first when the cache doesn't hold it. Raises BuildError."""
    built = BUILD.ensure(log)
    return Gitea(built / "bin" / "gitea", built / "static")


if __name__ == "__main__":
    print(gitea().program)
