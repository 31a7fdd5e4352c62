"""Threads share the C library's memory and give back what is free, where it can be asked for that."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from handler.model.malloc import share_arenas, trim
from tests.patience import PATIENCE

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

HOLED = """\
import ctypes
from pathlib import Path
from handler.model.malloc import trim
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
blocks = [libc.malloc(65_000) for _ in range(1_000)]
for block in blocks:
    ctypes.memset(block, 1, 65_000)
for block in blocks[:-1]:
    libc.free(block)
before = resident()
assert trim()
print(before - resident())
"""


def arenas(*arguments: str) -> int:
    """Count the arenas of a process with 16 threads."""
    done = subprocess.run([sys.executable, "-c", MANY, *arguments], capture_output=True, text=True, check=True, timeout=PATIENCE)
    return done.stderr.count("Arena ")


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_stats"), reason="another C library")
def test_threads_share_two_arenas() -> None:
    assert arenas() > 2
    assert arenas("shared") == 2


@pytest.mark.skipif(not os.access("/proc/self/statm", os.R_OK), reason="the system doesn't say how much is resident")
@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="another C library")
def test_what_is_free_below_a_block_in_use_goes_back() -> None:
    done = subprocess.run([sys.executable, "-c", HOLED], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert int(done.stdout) > 50_000_000


def test_a_c_library_without_it_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not share_arenas()
    assert not trim()
