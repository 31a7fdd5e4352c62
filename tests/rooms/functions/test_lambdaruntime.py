"""The functions' runtime of tests does to a function what Lambda does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.lambdaruntime import Function, FunctionFailed
from tests.patience import PATIENCE

CODE = """
import threading

calls = 0

def count(event, context):
    global calls
    calls += 1
    return {"calls": calls, "given": event, "in time": 0 < context.get_remaining_time_in_millis() <= event["seconds"] * 1000}

def fail(event, context):
    raise ValueError("what it said")

def hang(event, context):
    if event == "hang":
        threading.Event().wait()
    return event
"""


@pytest.fixture
def function(tmp_path: Path) -> Iterator[Callable[[str], Function]]:
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "sample.py").write_text(CODE)
    made: list[Function] = []

    def make(name: str) -> Function:
        made.append(Function(f"sample.{name}", tmp_path / "task", {"PATH": os.environ["PATH"]}, tmp_path / "log"))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def test_a_process_serves_one_event_after_another(function: Callable[[str], Function]) -> None:
    count = function("count")
    events = [{"number": number, "seconds": PATIENCE} for number in (1, 2)]
    assert [count.invoke(event, PATIENCE) for event in events] == [
        {"calls": 1, "given": events[0], "in time": True},
        {"calls": 2, "given": events[1], "in time": True},
    ]
    assert count.starts == 1
    assert count.peak() > 1_000_000


def test_an_exception_of_a_function_is_reported(function: Callable[[str], Function]) -> None:
    with pytest.raises(FunctionFailed, match="ValueError"):
        function("fail").invoke({})
    with pytest.raises(FunctionFailed, match="missing"):
        function("missing").invoke({})


def test_a_function_over_its_deadline_is_killed_and_started_again(function: Callable[[str], Function]) -> None:
    hang = function("hang")
    assert hang.invoke("there", PATIENCE) == "there"
    with pytest.raises(FunctionFailed, match="was ended after"):
        hang.invoke("hang", 0.2)
    assert hang.invoke("there again", PATIENCE) == "there again"
    assert hang.starts == 2
