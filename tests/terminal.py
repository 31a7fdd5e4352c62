"""A command on a pseudo-terminal of 80 columns: what a person sees, and what is typed when it asks."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path

from tests.patience import PATIENCE

COLUMNS = 80
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_WRITTEN = re.compile(r"\x1b\[\??([0-9;]*)([A-Za-z])|([\r\n]|[^\r\n\x1b]+)")
_OWN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
"""Makes the terminal the process's own, so that Ctrl-C reaches it."""
EOF, INTERRUPT = "\x04", "\x03"
"""What Ctrl-D and Ctrl-C send."""


def typed(
    command: Sequence[str],
    dialogue: Iterable[tuple[str, str]] = (),
    *,
    environ: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
    styled: bool = False,
) -> tuple[int, str]:
    """Run a command; each time that it asks, and what is shown since the last answer holds the next text, type its answer.

    Return the exit code (-n: ended by signal n) and all that was shown; `styled`: with its colours and movements.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    wanted = {**os.environ, "TERM": "xterm", "COLUMNS": None, "LINES": None, **(environ or {})}
    env = {name: value for name, value in wanted.items() if value is not None}
    left, written, shown, since = list(dialogue), "", "", 0
    own = [sys.executable, "-c", _OWN, *command]
    with subprocess.Popen(own, stdin=theirs, stdout=theirs, stderr=theirs, env=env, cwd=cwd, start_new_session=True) as process:
        os.close(theirs)
        try:
            while True:
                assert wait([ours], PATIENCE), f"waits for ever, after {shown!r}"  # `select` takes no descriptor from 1,024 on
                try:
                    part = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                written += part.decode(errors="replace").replace("\r\n", "\n")
                shown = _STYLE.sub("", written)
                if left and left[0][0] in shown[since:] and shown.endswith(": "):
                    answer = left.pop(0)[1]
                    since = len(shown)
                    os.write(ours, (answer if answer in (EOF, INTERRUPT) else f"{answer}\n").encode())
            code = process.wait(PATIENCE)
        finally:
            os.close(ours)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
    assert not left, f"never asked: {left[0][0]!r}\n{shown}"
    return code, written if styled else shown


def screen(written: str) -> list[str]:
    """Return the lines that stand on a terminal in the end: what is drawn in the place of earlier lines takes them away."""
    lines, row, column = [""], 0, 0
    for number, move, text in _WRITTEN.findall(written):
        if move == "A":
            row = max(0, row - int(number or 1))
        elif move == "K":
            lines[row] = ""
        elif text == "\r":
            column = 0
        elif text == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif text:
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
    return [line.rstrip() for line in lines]


def too_wide(shown: str) -> list[str]:
    """Return the lines that the terminal has had to break."""
    return [line for line in shown.splitlines() if len(line) > COLUMNS]
