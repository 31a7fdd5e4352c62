"""A question and its answer; Ctrl-C ends it whenever it comes."""

from __future__ import annotations

import ctypes
import functools
import gc
import io
import operator
import os
import select
import signal
import threading
from collections.abc import Iterator
from typing import Any, TextIO

import click
import pytest

from handler.cli.question import ask, confirm
from tests.patience import PATIENCE


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No collection, whose callbacks (hypothesis has one) would be steps of Python, and would swallow what a signal raises."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def keys() -> Iterator[tuple[TextIO, TextIO]]:
    """What is read from, and what is typed into it."""
    reads, writes = os.pipe()
    with open(reads) as read, open(writes, "w") as typed:  # noqa: PTH123 - descriptors
        yield read, typed


@pytest.mark.parametrize(
    ("typed", "yes", "asked"), [("y\n", True, 1), ("YES\n", True, 1), ("n\n", False, 1), ("\n", False, 1), ("q\ny\n", True, 2)]
)
def test_a_question_takes_yes_or_no_and_asks_again_for_anything_else(
    keys: tuple[TextIO, TextIO], typed: str, yes: bool, asked: int
) -> None:
    shown = io.StringIO()
    keys[1].write(typed)
    keys[1].close()
    assert confirm("Go on?", keys[0], shown) is yes
    assert shown.getvalue().count("Go on? [y/N]: ") == asked


@pytest.mark.parametrize(
    ("default", "typed", "answer", "prompt"),
    [(None, "\n a b \n", "a b", "Name: Name: "), ("x", "\n", "x", "Name [x]: "), ("x", "y\n", "y", "Name [x]: "), ("", "\n", "", "Name: ")],
)
def test_a_question_with_a_default_takes_an_empty_line_for_it_and_one_without_asks_again(
    keys: tuple[TextIO, TextIO], default: str | None, typed: str, answer: str, prompt: str
) -> None:
    shown = io.StringIO()
    keys[1].write(typed)
    keys[1].close()
    assert ask("Name", default, keys[0], shown) == answer
    assert shown.getvalue() == prompt


def test_the_end_of_what_is_typed_aborts_a_question(keys: tuple[TextIO, TextIO]) -> None:
    keys[1].close()
    with pytest.raises(click.Abort):
        confirm("Go on?", keys[0], io.StringIO())


def test_a_question_is_answered_on_another_thread(keys: tuple[TextIO, TextIO]) -> None:
    keys[1].write("y\n")
    keys[1].flush()
    said: list[bool] = []
    asking = threading.Thread(target=lambda: said.append(confirm("Go on?", keys[0], io.StringIO())))
    asking.start()
    asking.join(PATIENCE)
    assert said == [True]


@pytest.mark.usefixtures("uncollected")
def test_a_signal_that_comes_just_before_a_question_waits_ends_it(keys: tuple[TextIO, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    ready: Any = select.select
    interrupt = functools.partial(ctypes.CDLL(None)["raise"], int(signal.SIGINT))
    ends: list[Any] = []

    def late(*descriptors: Any) -> None:
        """The signal comes after Python's last look for one: no step of Python lies between it and the wait."""
        ends.extend(map(operator.call, (interrupt, functools.partial(ready, *descriptors, PATIENCE))))

    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    monkeypatch.setattr(select, "select", late)
    with pytest.raises(click.Abort):
        confirm("Go on?", keys[0], io.StringIO())
    assert ends[1][0], "the wait ended by itself, not by the signal"
    assert signal.set_wakeup_fd(before) == before, "the descriptor that signals write to is given back"


def test_a_signal_whose_handler_raises_nothing_leaves_a_question_open(keys: tuple[TextIO, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is typed only once the question waits again; a read before that finds nothing, and doesn't block."""
    ready: Any = select.select
    seen: list[int] = []
    waits = iter([functools.partial(signal.raise_signal, signal.SIGUSR1), functools.partial(print, "y", file=keys[1], flush=True)])

    def interrupted(*descriptors: Any) -> Any:
        next(waits)()
        return ready(*descriptors, PATIENCE)

    os.set_blocking(keys[0].fileno(), False)
    monkeypatch.setattr(select, "select", interrupted)
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: seen.append(number))
    try:
        assert confirm("Go on?", keys[0], io.StringIO())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [signal.SIGUSR1]
    assert not list(waits)
