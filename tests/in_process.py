"""`anneal` in this process, with what a process of its own would print where no terminal is: to start one takes most of a second.

A process is for what is about the process itself: signals, a terminal, descriptors, what is loaded, a command beside another.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shlex
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from click.testing import CliRunner

from handler.cli.group import anneal
from handler.cli.session import Session
from handler.render.sandbox import Sandbox
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
STAYS = {"serve", "work"}
"""Commands that end by a signal, and become other programs before."""


@pytest.fixture(autouse=True)
def one_render_child(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands in this process share the session's render child, which each would start anew. For a conftest to import."""
    monkeypatch.setattr(Session, "sandbox", sandbox)


def ran(arguments: Sequence[str], environ: Mapping[str, str] | None = None, cwd: Path = ROOT) -> CompletedProcess[str]:
    """Run a command of ours to its end. `environ`: all that it has; None: this process's."""
    assert threading.current_thread() is threading.main_thread(), "two commands at once would share one standard output"
    wanted = os.environ if environ is None else environ
    changed = {name: wanted.get(name) for name in {*os.environ, *wanted} if os.environ.get(name) != wanted.get(name)}
    with contextlib.chdir(cwd), log_kept():
        done = CliRunner(env=changed).invoke(anneal, arguments, catch_exceptions=False)
    return CompletedProcess(["anneal", *arguments], done.exit_code, done.stdout, done.stderr)


def typed_in(line: str, environ: Mapping[str, str], cwd: Path, shell: str = "bash") -> CompletedProcess[str]:
    """Run a line by a shell that no terminal is at; in this process, if it is one command of ours and every shell reads the same in it."""
    if words := _plain(line):
        return ran(words[1:], environ, cwd)
    command, nothing = [shell, "-c", line], subprocess.DEVNULL
    return subprocess.run(command, env=environ, cwd=cwd, stdin=nothing, capture_output=True, text=True, timeout=5 * PATIENCE, check=False)


def _plain(line: str) -> list[str]:
    """Return the words of a command of ours that is quoted as Python quotes for a shell; empty: a shell has more to do, or it stays."""
    try:
        words = shlex.split(line)
    except ValueError:  # a quotation that doesn't end, to Python
        return []
    return words if words[:1] == ["anneal"] and shlex.join(words) == line and not STAYS.intersection(words) else []


@contextlib.contextmanager
def log_kept() -> Iterator[None]:
    """Undo what is done meanwhile with the process's log."""
    loggers, hooks = (logging.getLogger(), logging.getLogger("anneal")), (warnings.showwarning, threading.excepthook, sys.excepthook)
    before = [(logger.handlers[:], logger.level) for logger in loggers]
    try:
        yield
    finally:
        for logger, (handlers, level) in zip(loggers, before, strict=True):
            logger.handlers[:] = handlers
            logger.setLevel(level)
        warnings.showwarning, threading.excepthook, sys.excepthook = hooks
