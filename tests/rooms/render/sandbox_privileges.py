"""Where a sandbox stands: as root or as an ordinary user, where the kernel takes filters or, as in AWS Lambda, refuses every prctl."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import yaml

from infra.gobuild import Build, report
from tests.rooms.render.sandbox_worker import PRCTL_AND_SECCOMP

ROOT = Path(__file__).resolve().parents[3]
ORDINARY = 65_532
HOSTILE = Build(name="hostile", module=Path(__file__).with_name("hostile_program"), what="a hostile program", packages=(".",))
"""What tests run in place of kustomize."""


@dataclass(frozen=True, slots=True)
class Ground:
    """`uid`: of the worker; `filters`: whether its children may install one; `landlock`: whether the kernel has it."""

    name: str
    uid: int
    filters: bool
    landlock: bool = True

    def missing(self) -> str:
        """Say why it can't be had here; empty: it can."""
        if sys.platform != "linux" or platform.machine() not in PRCTL_AND_SECCOMP:
            return f"{platform.system()} {platform.machine()} has no such filters"
        if os.geteuid() != 0:
            return "only root can become somebody else"
        return "" if _interpreter() else f"no Python {sys.version_info.major}.{sys.version_info.minor} here that all users may run"


GROUNDS = (
    Ground("root", 0, filters=True),
    Ground("ordinary", ORDINARY, filters=True),
    Ground("root without filters", 0, filters=False),
    Ground("ordinary without filters", ORDINARY, filters=False),
)


WITHOUT_LANDLOCK = (Ground("root without Landlock", 0, True, False), Ground("ordinary without Landlock", ORDINARY, True, False))


class Stage:
    """A worker process on a ground, with copies that its user may read. `place`: a directory in which every user may write."""

    def __init__(self, ground: Ground, table: str = "hostile_child:FUNCTIONS", limits: dict[str, Any] | None = None, *, temporary: Path | None = None) -> None:
        """`temporary`: of another stage; by default one of its own."""
        self._held = tempfile.TemporaryDirectory(prefix="anneal-stage-")  # pytest's own is closed to other users
        root = Path(self._held.name)
        root.chmod(0o755)
        for package in (ROOT / "handler", Path(yaml.__file__).parent):
            shutil.copytree(package, root / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("hostile_child.py", "sandbox_worker.py"):
            shutil.copy(Path(__file__).with_name(name), root / name)
        self.program = root / "hostile"
        shutil.copy(HOSTILE.ensure(report) / "bin" / "hostile", self.program)
        self.place = root / "place"
        self.place.mkdir()
        self.place.chmod(0o777)
        (self.place / "there").write_text("there")
        (self.place / "there").chmod(0o666)
        self.temporary = temporary or root / "tmp"
        self.temporary.mkdir(exist_ok=True)
        self.temporary.chmod(0o1777)
        program = str(root / "sandbox_worker.py")
        lacking = "" if ground.filters and ground.landlock else "landlock" if ground.filters else "filters"
        command = [str(_interpreter()), program, str(ground.uid), lacking, table, json.dumps(limits or {})]
        environ = {"CANARY": "canary", "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(self.temporary)}
        self._process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._held.cleanup()

    def call(self, function: str, **options: Any) -> list[str]:
        """Return what the child said, or the failure's reason and message."""
        self.ask(function, {"word": "still here", "place": str(self.place), "worker": self.pid, **options})
        return self.hear()

    def run(self, *arguments: str, **about: Any) -> list[str]:
        """Run the program; return its exit code, its directory, its streams and the walls it lacked, or a failure's reason and message."""
        self.begin(*arguments, **about)
        return self.hear()

    def begin(self, *arguments: str, files: dict[str, str] | None = None, weak: bool = False, **about: Any) -> None:
        """Begin the same; `hear` ends it. `files`: path -> content; `about`: of the Program."""
        given = files or {}
        program = {"path": str(self.program), "arguments": arguments, "files": {path: at for at, path in enumerate(given)}, **about}
        self.ask("said", {}, program=program, parts=list(given.values()), weak=weak)

    def ask(self, function: str, options: dict[str, Any], **more: Any) -> None:
        """Send a call."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"function": function, "options": options, **more}) + "\n")
        self._process.stdin.flush()

    def hear(self) -> list[str]:
        """Return the answer of the call that was sent."""
        assert self._process.stdout
        said = json.loads(self._process.stdout.readline())
        assert isinstance(said, list)
        return said


def _interpreter() -> Path | None:
    """Return this Python, or the system's of the same version, whichever every user may run."""
    here = Path(sys.executable).resolve()
    candidates = (here, Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"))
    return next((each for each in candidates if each.exists() and all(above.stat().st_mode & 0o001 for above in each.parents)), None)
