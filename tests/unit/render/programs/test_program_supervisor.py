"""A program's files are written whole, or refused; who asks to start something is heard until all have ended."""

from __future__ import annotations

import contextlib
import os
import resource
import select
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from handler.render.programs import program_supervisor
from handler.render.programs.program_supervisor import ProgramEnded


@contextlib.contextmanager
def little_room(most: int) -> Iterator[None]:
    """Let no file of this process have more bytes than so many: as on a disk that is full, the first write is cut and the next refused.

    Around the calls alone: a file may be what pytest writes its dots to.
    """
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_file_that_does_not_fit_is_refused_and_not_cut(tmp_path: Path) -> None:
    with little_room(1000):
        list(program_supervisor._write(str(tmp_path), {"fits": 0, "b": 1}, iter([b"x" * 1000, b""])))
    assert [(tmp_path / name).stat().st_size for name in ("fits", "b")] == [1000, 0]
    with little_room(1000), pytest.raises(ProgramEnded) as refused:
        list(program_supervisor._write(str(tmp_path), {"c": 0}, iter([b"x" * 1001])))
    assert (refused.value.code, refused.value.note) == (program_supervisor.UNPLACED, "File too large")


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
