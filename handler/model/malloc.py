"""How the C library of this process keeps memory, by mallopt(3) and malloc_trim(3). A C library without it is an answer and no error."""

from __future__ import annotations

import ctypes

ENVIRONMENT = {"MALLOC_ARENA_MAX": "2"}
"""The same for a program that is started: mallopt(3), environment variables."""
_ARENA_MAX = -8


def share_arenas() -> bool:
    """Let all threads share two arenas, where each core has eight of its own else. A fork inherits it. Returns whether it is so.

    What a few hundred runs on dozens of threads have freed stays in the arena of each thread, and is of no use to others.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and mallopt(_ARENA_MAX, 2) == 1


def trim() -> bool:
    """Give whole pages that are free back to the system, amid those in use, too. Returns whether there were any.

    Without it, what a burst of runs has freed stays with the process: only the end of an arena shrinks by itself.
    """
    malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return malloc_trim is not None and malloc_trim(0) == 1
