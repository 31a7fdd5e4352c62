"""Ctrl-C while a run is under way."""

from __future__ import annotations

import signal

import pytest

from handler.cli.running import stoppable


def test_ctrl_c_stops_at_the_next_write_and_the_second_one_at_once() -> None:
    before, said = signal.getsignal(signal.SIGINT), list[str]()
    with stoppable(said.append) as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert said == ["stopping at the next write; again to stop at once"]
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_is_such_a_request_too() -> None:
    with stoppable(lambda _: None) as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
