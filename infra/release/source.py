"""What is released: the files that git has, with one mode and one time, whatever the checkout they lie in."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OLDEST = 315_532_800
"""1980-01-01: zip archives know no earlier time."""


def files(root: Path = ROOT) -> list[str]:
    """Return what git has of a checkout, or would have after its next commit."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(name for name in names if name and (root / name).is_file())


def exported(place: Path, epoch: int, root: Path = ROOT) -> Path:
    """Copy those files to `place`, readable by all and of one time; return it."""
    for name in files(root):
        there = place / name
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, there)
        there.chmod(0o755 if os.access(root / name, os.X_OK) else 0o644)
        os.utime(there, (epoch, epoch))
    return place


def committed(root: Path = ROOT) -> int:
    """Return SOURCE_DATE_EPOCH, else the time of the commit that is checked out."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        given = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=root, check=True, capture_output=True, text=True).stdout
    return max(int(given), OLDEST)


def repacked(archive: Path, to: Path, epoch: int) -> None:
    """Write a .tar.gz anew: the same files in the order of their names, without owner, time and settings of this machine."""
    made = io.BytesIO()
    with tarfile.open(archive) as source, tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as target:
        for member in sorted((each for each in source if each.isfile()), key=lambda each: each.name):
            plain = tarfile.TarInfo(member.name)
            plain.size, plain.mtime, plain.mode = member.size, epoch, 0o755 if member.mode & 0o100 else 0o644
            target.addfile(plain, source.extractfile(member))
    with to.open("wb") as out, gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=epoch) as packed:
        packed.write(made.getvalue())
