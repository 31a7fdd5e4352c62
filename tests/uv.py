"""uv, where `scripts/_env` found it or put it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def uv() -> str:
    """Return the program's path."""
    return shutil.which("uv") or str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anneal" / "uv" / "bin" / "uv")
