"""A render that is killed by the deadline of its run isn't its author's fault."""

from __future__ import annotations

import time

import pytest

from handler.model import deadline
from handler.model.errors import Problem, RenderFailed, Stopping
from handler.render import Sandbox


def test_a_render_cut_short_by_the_deadline_is_stopping_and_not_render_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, **_weak: bool) -> None:
        raise RenderFailed(Problem("render", "took longer than 1 s"), reason="timeout")

    sandbox = Sandbox()
    monkeypatch.setattr(sandbox, "_run", slow)
    with pytest.raises(RenderFailed):
        sandbox.run("f", {}, (), bytes.decode)
    with deadline.until(time.monotonic() - 1.0), pytest.raises(Stopping):
        sandbox.run("f", {}, (), bytes.decode)


def test_a_render_over_its_processor_time_fails_however_near_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(*_: object, **_weak: bool) -> None:
        raise RenderFailed(Problem("render", "needed more processor time than it may have"), reason="cpu")

    sandbox = Sandbox()
    monkeypatch.setattr(sandbox, "_run", busy)
    with deadline.until(time.monotonic() - 1.0), pytest.raises(RenderFailed):
        sandbox.run("f", {}, (), bytes.decode)
