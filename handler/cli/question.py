"""How a person is asked: a question and the line that is typed as its answer.

Law: Ctrl-C always ends a question. `input()` and a plain read miss a signal that comes just before they wait (its handler runs only between
two of Python's steps), so a line is read only when there is one, and a pipe that signals write to ends the wait as well.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Iterator
from typing import TextIO

import click

_YES = ("y", "yes")
_NO = ("n", "no", "")


def ask(question: str, default: str | None, keys: TextIO, shown: TextIO) -> str:
    """Ask until something is typed, or nothing where there is a default; return it without blanks around it.

    `keys`, `shown`: a terminal, to read from and to print to. Raises click.Abort: Ctrl-C, or the terminal is gone.
    """
    while True:
        typed = _typed(f"{question} [{default}]: " if default else f"{question}: ", keys, shown)
        if typed or default is not None:
            return typed or default or ""


def confirm(question: str, keys: TextIO, shown: TextIO) -> bool:
    """Ask until yes or no is typed; return whether it was yes. No is the default. Raises as `ask`."""
    while True:
        typed = _typed(f"{question} [y/N]: ", keys, shown).lower()
        if typed in (*_YES, *_NO):
            return typed in _YES
        print("please answer y or n", file=shown)


def _typed(prompt: str, keys: TextIO, shown: TextIO) -> str:
    try:
        print(prompt, end="", file=shown, flush=True)
        with _signalled() as signals:
            waited: list[TextIO | int] = [keys, *signals]
            while keys not in select.select(waited, [], [])[0]:
                os.read(signals[0], 4096)  # its handler has run and hasn't ended the question
        line = keys.readline()
    except KeyboardInterrupt:
        raise click.Abort from None
    if not line:
        raise click.Abort
    return line.strip()


@contextlib.contextmanager
def _signalled() -> Iterator[list[int]]:
    """Yield what becomes readable when a signal comes; nothing on another than the main thread, where none is handled."""
    if threading.current_thread() is not threading.main_thread():
        yield []
        return
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    before = signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    try:
        yield [reads]
    finally:
        signal.set_wakeup_fd(before)
        os.close(reads)
        os.close(writes)
