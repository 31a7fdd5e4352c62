"""The unit of systemd: its tool knows each directive and finds little open; it starts what the command line takes and the page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from handler.cli.group import USAGE
from handler.worker.supervisor import STOP_SECONDS
from infra.debian import unpacked
from tests.repository.command_lines import parsed

ROOT = Path(__file__).resolve().parents[3]
UNIT = ROOT / "infra" / "systemd" / "anneal.service"
PAGE = (ROOT / "docs" / "deploy" / "process.md").read_text()
EXPOSED = 20
"""Of 100, at most: systemd's own measure of what a unit leaves open."""
USED = (  # what `strace -f` has seen of `anneal serve` and of a render, of those that other sets than @default and @file-system hold
    *("accept4", "bind", "clone", "connect", "dup3", "epoll_wait", "fork", "ioctl", "kill", "listen", "madvise", "pipe2", "poll", "prctl"),
    *("prlimit64", "recvfrom", "rt_sigaction", "sendto", "setsid", "setsockopt", "shutdown", "socket", "socketpair", "vfork", "wait4"),
)


@cache
def analyze() -> list[str]:
    """Return the command: this machine's, else the one out of Debian's package."""
    if found := shutil.which("systemd-analyze"):
        return [found]
    if not sys.platform.startswith("linux"):
        pytest.skip("systemd is Linux'")
    root = unpacked("systemd", ("systemd",))
    (shared,) = root.rglob("libsystemd-shared-*.so")
    return [
        "env",
        f"LD_LIBRARY_PATH={shared.parent}",
        f"SYSTEMD_UNIT_PATH={root / 'lib' / 'systemd' / 'system'}",
        str(root / "usr/bin/systemd-analyze"),
    ]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*analyze(), *arguments], capture_output=True, text=True, check=False, env={**os.environ, "SYSTEMD_COLORS": "0"})


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """The unit, with a program that this machine has."""
    place = tmp_path / UNIT.name
    place.write_text(UNIT.read_text().replace("/usr/local/bin/anneal ", "/bin/true "))
    return place


def values(name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)


def value(name: str) -> str:
    (found,) = values(name)
    return found


def test_systemd_knows_every_directive(unit: Path) -> None:
    done = run("verify", str(unit))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_little_is_left_open(unit: Path) -> None:
    done = run("security", "--offline=true", "--no-pager", f"--threshold={EXPOSED}", str(unit))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"less than {EXPOSED // 10} of 10" in PAGE


def members(*sets: str) -> set[str]:
    """Return the system calls of some of systemd's sets, those of the sets in them, too."""
    found: set[str] = set()
    for each in sets:
        lines = [line.strip() for line in run("syscall-filter", each).stdout.splitlines()[1:]]
        names = {line for line in lines if line and not line.startswith("#")}
        found |= {name for name in names if not name.startswith("@")} | members(*(name for name in names if name.startswith("@")))
    return found


def test_the_calls_that_anneal_makes_are_allowed_those_of_its_sandbox_included() -> None:
    allowing, denying = (filters.split() for filters in values("SystemCallFilter"))
    assert denying[0].startswith("~")
    assert set(USED) <= members(*allowing) - members(denying[0].removeprefix("~"), *denying[1:])


def test_it_starts_what_the_command_line_takes() -> None:
    program, *_ = value("ExecStart").split()
    assert program == "/usr/local/bin/anneal"
    assert "PIPX_BIN_DIR=/usr/local/bin" in PAGE
    assert parsed(value("ExecStart").removeprefix(f"{program} ")).info_name == "serve"


def test_it_is_stopped_as_the_supervisor_asks_and_a_wrong_configuration_starts_no_loop() -> None:
    assert value("KillSignal") == "SIGTERM"
    assert value("KillMode") == "mixed"  # the supervisor alone is asked; it passes the signal on
    assert float(value("TimeoutStopSec")) >= STOP_SECONDS + 5
    assert value("RestartPreventExitStatus") == str(USAGE)
