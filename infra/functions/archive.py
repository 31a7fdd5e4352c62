"""A zip whose bytes follow from what is in it: names sorted, one time, one mode."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can tell
_MODE = 0o100644 << 16  # readable by all users: a function runs as another user than the packer
_UNIX = 3


def write(place: Path, files: Mapping[str, Path]) -> int:
    """Write files by their names inside; what stood there is replaced at the end, at once. Returns the bytes they have unpacked."""
    place.parent.mkdir(parents=True, exist_ok=True)
    total = 0
    handle, temporary = tempfile.mkstemp(dir=place.parent, suffix=".zip")
    try:
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(out, "w") as archive:
            for name in sorted(files):
                total += _add(archive, name, files[name].read_bytes())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(place)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return total


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> int:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.create_system, entry.external_attr, entry.compress_type = _UNIX, _MODE, zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=6)
    return len(content)
