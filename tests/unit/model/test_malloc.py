"""Threads share the C library's memory, where it can be asked for that."""

from __future__ import annotations

import ctypes
import subprocess
import sys

import pytest

from handler.model.malloc import share_arenas

MANY = """\
import ctypes, re, sys, threading
from handler.model.malloc import share_arenas
if sys.argv[1:]:
    assert share_arenas()
begun = threading.Barrier(17)
def hold():
    ctypes.CDLL(None).malloc(100)
    begun.wait()
    begun.wait()
for _ in range(16):
    threading.Thread(target=hold).start()
begun.wait()
ctypes.CDLL(None).malloc_stats()
begun.wait()
"""


def arenas(*arguments: str) -> int:
    """Count the arenas of a process with 16 threads."""
    done = subprocess.run([sys.executable, "-c", MANY, *arguments], capture_output=True, text=True, check=True, timeout=60)
    return done.stderr.count("Arena ")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_stats"), reason="another C library")
def test_threads_share_two_arenas() -> None:
    assert arenas() > 2
    assert arenas("shared") == 2


def test_a_c_library_without_it_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not share_arenas()
