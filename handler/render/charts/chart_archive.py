"""A chart's archive -> its files, in memory: what helm will unpack is looked at before. Runs in the render child.

Law: an archive holds regular files below one directory. Links, devices, absolute paths, `..` and what grows beyond a limit are refused by
name, whatever helm would do with them; nothing is written.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml

from handler.model.errors import ManifestInvalid
from handler.model.quotation import quoted
from handler.model.tree import printable
from handler.render.folders import CHART
from handler.render.frames import encode

MAX_UNPACKED = 100 << 20
MAX_FILE = 5 << 20  # helm's own (loader.MaxDecompressedFileSize)
MAX_ENTRIES = 20_000
_LONGEST = 1000  # characters of a name or version


class _Bounded(gzip.GzipFile):
    """Unpacks up to a limit: headers that declare gigabytes cost nothing."""

    def __init__(self, data: bytes) -> None:
        super().__init__(fileobj=io.BytesIO(data))
        self._left = MAX_UNPACKED

    def read(self, size: int | None = -1) -> bytes:
        most = self._left + 1
        data = super().read(most if size is None or size < 0 else min(size, most))
        self._left -= len(data)
        if self._left < 0:
            raise tarfile.ReadError(f"unpacks to more than {MAX_UNPACKED:,} bytes")
        return data


def chart_name(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the name and version that an archive's Chart.yaml says, as helm reads it: the last of a key counts. Or mistakes.

    What can't be read says nothing: helm names it. Options: `place`: of the archive.
    """
    try:
        data = unpacked(parts[0], options["place"]).get(CHART, b"")
    except ManifestInvalid as refused:
        yield from map(encode, refused.problems)
        return
    try:
        about = next(yaml.load_all(data, Loader=yaml.CSafeLoader), None)
        said = [about.get(key) if isinstance(about, dict) else None for key in ("name", "version")]
        yield json.dumps(["" if each is None else printable(str(each), _LONGEST) for each in said]).encode()
    except (yaml.YAMLError, ValueError, RecursionError):
        yield json.dumps(["", ""]).encode()


def unpacked(data: bytes, place: str) -> dict[str, bytes]:
    """Return the files of a chart's .tgz by their path below its directory. Raises ManifestInvalid: it is none, or an entry is refused."""
    try:
        with _Bounded(data) as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
            return dict(_files(archive, place))
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as broken:
        said = quoted(str(broken), 120)
        raise ManifestInvalid.of("chart archive", f"can't be unpacked: {said}", place=place) from None


def _files(archive: tarfile.TarFile, place: str) -> Iterator[tuple[str, bytes]]:
    for number, entry in enumerate(archive):
        path = entry.name.removeprefix("./")
        why = _refusal(entry, path, number)
        if why:
            raise ManifestInvalid.of("chart archive", f"{printable(entry.name, 120)} {why}", place=place, fix="pack it by `helm package`")
        content = archive.extractfile(entry) if entry.isreg() else None
        if content:
            yield path.partition("/")[2], content.read()


def _refusal(entry: tarfile.TarInfo, path: str, number: int) -> str:
    if entry.issym() or entry.islnk():
        return "is a link; a chart holds regular files"
    if not (entry.isreg() or entry.isdir()):
        return "is neither a file nor a directory"
    if path.startswith("/") or ".." in path.replace("\\", "/").split("/"):
        return "leads out of the archive"
    if entry.isreg() and "/" not in path:
        return "lies outside the chart's directory"
    if entry.size > MAX_FILE:
        return f"has {entry.size:,} bytes; at most {MAX_FILE:,} are read of a file"
    return f"is one of more than {MAX_ENTRIES:,} entries" if number >= MAX_ENTRIES else ""
