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

from tests.rooms.render.sandbox_worker import PRCTL_AND_SECCOMP

ROOT = Path(__file__).resolve().parents[3]
ORDINARY = 65_532


@dataclass(frozen=True, slots=True)
class Ground:
    """`uid`: of the worker; `filters`: whether its children may install one."""

    name: str
    uid: int
    filters: bool

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


class Stage:
    """A worker process on a ground, with copies that its user may read. `place`: a directory in which every user may write."""

    def __init__(self, ground: Ground, table: str = "hostile_child:FUNCTIONS", limits: dict[str, Any] | None = None) -> None:
        self._held = tempfile.TemporaryDirectory()  # pytest's own is closed to other users
        root = Path(self._held.name)
        root.chmod(0o755)
        for package in (ROOT / "handler", Path(yaml.__file__).parent):
            shutil.copytree(package, root / package.name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("hostile_child.py", "sandbox_worker.py"):
            shutil.copy(Path(__file__).with_name(name), root / name)
        self.place = root / "place"
        self.place.mkdir()
        self.place.chmod(0o777)
        (self.place / "there").write_text("there")
        (self.place / "there").chmod(0o666)
        program = str(root / "sandbox_worker.py")
        command = [str(_interpreter()), program, str(ground.uid), str(ground.filters), table, json.dumps(limits or {})]
        environ = {"CANARY": "canary", "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environ)
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        self._held.cleanup()

    def call(self, function: str, **options: Any) -> list[str]:
        """Return what the child said, or the failure's reason and message."""
        about = {"word": "still here", "place": str(self.place), "worker": self.pid, **options}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"function": function, "options": about}) + "\n")
        self._process.stdin.flush()
        said = json.loads(self._process.stdout.readline())
        assert isinstance(said, list)
        return said


def _interpreter() -> Path | None:
    """Return this Python, or the system's of the same version, whichever every user may run."""
    here = Path(sys.executable).resolve()
    candidates = (here, Path(f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"))
    return next((each for each in candidates if each.exists() and all(above.stat().st_mode & 0o001 for above in each.parents)), None)
