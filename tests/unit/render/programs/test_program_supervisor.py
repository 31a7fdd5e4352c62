"""A program's files are written whole, or refused."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.render.programs import program_supervisor


@pytest.fixture
def little_room() -> Iterator[int]:
    """Let no file of this process have more bytes than so many: as on a disk that is full, the first write is cut and the next refused."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield 1000
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_does_not_fit_is_refused_and_not_cut(tmp_path: Path, little_room: int) -> None:
    program_supervisor._write(str(tmp_path), {"a/fits": 0, "b": 1}, iter([b"x" * little_room, b""]))
    assert [(tmp_path / name).stat().st_size for name in ("a/fits", "b")] == [little_room, 0]
    with pytest.raises(OSError, match="File too large"):
        program_supervisor._write(str(tmp_path), {"c": 0}, iter([b"x" * (little_room + 1)]))
