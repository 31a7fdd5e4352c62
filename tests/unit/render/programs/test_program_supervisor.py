"""A program's files are written whole, or refused; who asks to start something is heard until all have ended."""

from __future__ import annotations

import os
import resource
import select
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

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


@pytest.mark.parametrize(("events", "open_after"), [([], True), ([select.POLLERR], True), ([select.POLLHUP], False)])
def test_a_listener_closes_when_all_have_ended_and_not_when_the_one_that_asked_has(
    monkeypatch: pytest.MonkeyPatch, events: list[int], open_after: bool
) -> None:
    """Between the two looks a helper that asked for a thread may end: the next one still asks."""
    watch = program_supervisor._Watch({"memory": 1, "cpu": 1, "processes": 1}, alone=False, place="")
    listener, other = os.pipe()
    watch.sources.register(listener, select.EPOLLIN)
    monkeypatch.setattr(select, "poll", lambda: Mock(poll=lambda _: [(listener, event) for event in events]))
    watch._judge_start(listener)
    assert (listener in watch.sources.get_map()) is open_after
    if open_after:
        os.close(listener)
    os.close(other)
    watch.sources.close()
