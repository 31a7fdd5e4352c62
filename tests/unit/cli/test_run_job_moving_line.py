"""What a run waits for stands above the moving line of a terminal, whole, and stays there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from tests.patience import PATIENCE
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

_SCRIPT = """
import threading
from handler.cli.output import Output
from handler.cli.run_job import _shown
from handler.cli.session import Session
from handler.engine.run.transitions import phase
from handler.feedback import cli
from tests.patience import PATIENCE
from tests.unit.feedback.recorded_waits import API, waiting

cli._LOOK, said = 0.01, threading.Event()
output = Output()
note = output.note
output.note = lambda text: (note(text), said.set())
session = Session(output, {})
with _shown(session, "applying shop"):
    session.events.announce(phase(waiting(API), "shop.1"))
    assert said.wait(PATIENCE)
"""


@each_row("term", ["xterm", "dumb"])
def test_what_is_waited_for_stands_above_the_moving_line(term: str) -> None:
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": term, "COLUMNS": "200"}
    with subprocess.Popen([sys.executable, "-c", _SCRIPT], stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: _read(ours), b"")).decode()
        assert process.wait(PATIENCE) == 0, shown
    os.close(ours)
    assert "shop waits for everything: Deployment/shop/api: 0 of 1 replica available\r\n" in shown
    assert ("applying shop" in shown) is (term == "xterm")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # the other side is closed
        return b""
