"""A zip whose bytes follow from what is in it: names sorted, one time, one mode for files and one for programs."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path

_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can tell
_MODE, _PROGRAM = 0o100644 << 16, 0o100755 << 16  # for all users: a function runs as another user than the packer
_UNIX = 3


def write(place: Path, files: Mapping[str, Path], programs: Collection[str] = ()) -> int:
    """Write files by their names inside; what stood there is replaced at the end, at once. Returns the bytes they have unpacked.

    `programs`: the names of those that are executed.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    total = 0
    handle, temporary = tempfile.mkstemp(dir=place.parent, suffix=".zip")
    try:
        with os.fdopen(handle, "wb") as out, zipfile.ZipFile(out, "w") as archive:
            for name in sorted(files):
                total += _add(archive, name, files[name].read_bytes(), _PROGRAM if name in programs else _MODE)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(place)
    finally:
        Path(temporary).unlink(missing_ok=True)
    return total


def _add(archive: zipfile.ZipFile, name: str, content: bytes, mode: int) -> int:
    entry = zipfile.ZipInfo(name, _TIME)
    entry.create_system, entry.external_attr, entry.compress_type = _UNIX, mode, zipfile.ZIP_DEFLATED
    archive.writestr(entry, content, compresslevel=6)
    return len(content)
