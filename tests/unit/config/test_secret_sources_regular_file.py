"""What stands where a file was named: a file is read, anything else is refused, and nothing is waited for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest

from handler.config.secret_sources import read_regular
from handler.model.errors import ConfigInvalid
from handler.source.ssh.known_hosts import pinned


def test_a_file_is_read_as_far_as_wanted_through_links(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to(place)
    assert read_regular(tmp_path / "link", 4) == b"0123"
    assert read_regular(place, 100) == b"0123456789"


@pytest.mark.parametrize("kind", ["pipe", "directory", "device", "loop", "nothing"])
def test_anything_else_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    place = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    elif kind != "nothing":
        place.symlink_to("/dev/zero" if kind == "device" else place)
    with pytest.raises(OSError, match=r"."):
        read_regular(place, 10)
    with pytest.raises(ConfigInvalid, match="can't be read"):
        pinned(str(place), "git.example.com", 22)
    assert not [each for each in opened() if each in (str(place), "/dev/zero")], "a descriptor is left open"


def opened() -> list[str]:
    """What this process's descriptors stand for: other tests' leftovers may go meanwhile, so a count says nothing."""
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own is gone by now
            found.append(str(each.readlink()))
    return found
