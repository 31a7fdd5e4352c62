"""Between two events Lambda freezes a process with all its children, for minutes or hours; the next event finds them as they were."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the children to freeze are found in /proc, as on Lambda")
ROOT = Path(__file__).resolve().parents[3]
DONE = "[] True"


class Process:
    """A function's process."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.unit.functions.frozen_batch"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.read() == "ready"

    def read(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()

    def event(self, value: str) -> str:
        """Push a commit and let the function run it."""
        assert self._process.stdin
        self._process.stdin.write(f"{value}\n")
        self._process.stdin.flush()
        return self.read()

    @property
    def children(self) -> list[int]:
        pid = self._process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

    def freeze(self) -> None:
        """Stop all of them at once, and let them go on."""
        everyone = [self._process.pid, *self.children]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in everyone:
                os.kill(pid, number)

    def end(self) -> int:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(PATIENCE)


@pytest.fixture
def process() -> Iterator[Process]:
    made = Process()
    yield made
    assert made.end() == 0


@pytest.mark.slow
def test_the_render_child_is_started_by_the_first_event_and_outlives_the_frost(process: Process) -> None:
    assert process.children == []
    assert process.event("1") == DONE
    (server,) = process.children
    process.freeze()
    assert process.event("2") == DONE
    assert process.children == [server]


@pytest.mark.slow
def test_a_render_child_that_was_killed_in_the_frost_is_started_again(process: Process) -> None:
    assert process.event("1") == DONE
    (server,) = process.children
    os.kill(server, signal.SIGKILL)
    process.freeze()
    assert process.event("2") == DONE
    assert process.children != [server]
