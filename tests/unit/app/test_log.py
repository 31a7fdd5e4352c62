"""Log lines: one JSON object each, nothing in them can break out."""

from __future__ import annotations

import io
import json
import logging
import threading
import warnings
from typing import Any

import pytest

from handler.app import log, run_guard
from handler.feedback.log import EventLog
from handler.model.errors import GitUnavailable, Problem
from handler.model.event import Job
from handler.model.result import Outcome, Result, summed
from handler.model.run_event import RunEnded


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def written(stream: io.StringIO, text: str, fields: dict[str, Any], *, exc_info: bool = False) -> str:
    log.configure(stream)
    logging.getLogger("anneal.test").warning(text, exc_info=exc_info, extra={"fields": fields})
    return stream.getvalue()


def test_a_record_is_one_json_object_on_one_line() -> None:
    text = written(io.StringIO(), "run", {"target": "shop", "seconds": 1.23456, "counts": {"created": 2}, "runs": ("a", "b"), "none": None})
    assert text.count("\n") == 1
    found = json.loads(text)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "warning",
        "logger": "anneal.test",
        "message": "run",
        "target": "shop",
        "seconds": 1.2346,
        "counts": {"created": 2},
        "runs": ["a", "b"],
        "none": None,
    }


@pytest.mark.parametrize("evil", ["main\nlevel=ERROR", "\x1b[31mred", "a\u2028b", "\ud800", "\x00\x7f", "\r\n{}"])
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_what_comes_from_outside_stays_inside_its_line(evil: str, stream: type[io.StringIO]) -> None:
    text = written(stream(), evil, {"ref": evil, evil: evil})
    assert text.endswith("\n")
    assert text[:-1].isprintable()


def test_a_field_cannot_pass_for_the_line_itself() -> None:
    found = json.loads(written(io.StringIO(), "x", {"level": "error", "message": "y"}))
    assert (found["level"], found["message"]) == ("warning", "x")


def test_lengths_depths_and_counts_are_capped() -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = {"a": [deep]}
    text = written(io.StringIO(), "m" * 10_000, {"ref": "r" * 10_000, "many": list(range(10_000)), "deep": deep})
    assert len(text) < 8_000


def test_a_trace_has_classes_and_places_and_of_our_own_errors_the_words() -> None:
    try:
        try:
            raise ValueError("token CANARY")
        except ValueError as error:
            raise GitUnavailable.of("repository", "is away") from error
    except GitUnavailable:
        text = written(io.StringIO(), "saw", {}, exc_info=True)
    assert "CANARY" not in text
    before, after = json.loads(text)["trace"].split("\nwhich led to:\n")
    assert [line.partition(":")[0] for line in before.splitlines()] == ["  tests/unit/app/test_log.py", "ValueError"]
    assert after.endswith("GitUnavailable: repository: is away")


def test_only_what_is_wanted_is_logged() -> None:
    stream = io.StringIO()
    log.configure(stream, logging.ERROR)
    logging.getLogger("anneal.test").warning("a warning")
    logging.getLogger("anneal.test").error("an error")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["an error"]


def test_a_terminal_gets_plain_lines_and_traces() -> None:
    try:
        raise ValueError("\x1b[31m")
    except ValueError:
        text = written(Terminal(), "run", {"target": "shop", "empty": ""}, exc_info=True)
    assert text[9:].startswith('warning run target="shop"\n  tests/unit/app/test_log.py:')
    assert "\x1b" not in text


def said(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_of_what_libraries_say_only_what_stands_in_their_code_is_told() -> None:
    stream = io.StringIO()
    log.configure(stream, logging.DEBUG)
    logging.getLogger("oauthlib.oauth2").debug("token CANARY-debug")
    logging.error("exec: CANARY")
    logging.getLogger("oauthlib.oauth2").warning("token %s of %s", "CANARY", {"CANARY": 1}, exc_info=ValueError("CANARY"))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = log._warned
        warnings.warn("an old CANARY", FutureWarning, stacklevel=1)
    logging.getLogger("anneal.test").debug("ours")
    lines = said(stream)
    assert [(line["logger"], line["message"], line.get("place", "").partition(":")[0]) for line in lines] == [
        ("root", "", "tests/unit/app/test_log.py"),
        ("oauthlib.oauth2", "token %s of %s", "tests/unit/app/test_log.py"),
        ("anneal.library", "a library warns", "tests/unit/app/test_log.py"),
        ("anneal.test", "ours", ""),
    ]
    assert (lines[1]["trace"], lines[2]["warning"]) == ("ValueError", "FutureWarning")
    assert "CANARY" not in stream.getvalue()


def test_a_thread_that_ends_by_an_exception_is_logged_with_its_trace() -> None:
    stream = io.StringIO()
    log.configure(stream)
    thread = threading.Thread(target=lambda: 1 // len(""), name="CANARY")
    thread.start()
    thread.join()
    (line,) = said(stream)
    assert (line["logger"], line["message"]) == ("anneal.library", "a thread ended unexpectedly")
    assert "ZeroDivisionError" in line["trace"]


def test_lines_for_people_are_plain_wherever_they_go() -> None:
    stream = io.StringIO()
    log.configure(stream, plain=True)
    logging.getLogger("anneal.test").warning("seen", extra={"fields": {"cluster": "a"}})
    assert stream.getvalue().endswith('warning seen cluster="a"\n')


def logged(result: Result) -> tuple[str, dict[str, Any]]:
    """Return the line of a run's end, as it is written and read."""
    stream = io.StringIO()
    log.configure(stream)
    EventLog().hear(RunEnded.of(Job("shop", "tick"), result, 0.1))
    text = stream.getvalue()
    return text, json.loads(text)


def test_the_text_of_a_failure_stands_in_its_line_once() -> None:
    problems = (Problem("ConfigMap/shop/a", "is wrong", "a.yaml:1", "mend it"), Problem("ConfigMap/shop/b", "is wrong, too"))
    failed = Result("shop", Outcome.FAILED, message="\n".join(map(str, problems)), problems=problems, who="author", code="plan-refused")
    text, line = logged(failed)
    assert (text.count("is wrong, too"), text.count("mend it")) == (1, 1)
    assert line["problems"] == [str(problem) for problem in problems]
    assert logged(Result("shop", Outcome.UNCHANGED, message="is applied"))[1]["note"] == "is applied"


def test_a_run_of_several_rounds_logs_the_end_of_each() -> None:
    failed = Result("shop", Outcome.FAILED, commit="b" * 40, message="is wrong", code="apply-failed")
    back = Result("shop", Outcome.ROLLED_BACK, commit="a" * 40, message="is back", code="rollout-failed")
    assert logged(summed([failed, back]))[1]["rounds"] == [f"{'b' * 40}: apply-failed", f"{'a' * 40}: rollout-failed"]
    assert "rounds" not in logged(failed)[1]


def test_an_unexpected_exception_is_logged_by_its_trace_alone() -> None:
    stream = io.StringIO()
    log.configure(stream)
    job = Job("shop", "tick")

    def fails(_: Job) -> Result:
        raise ValueError("a riddle")

    EventLog().hear(RunEnded.of(job, run_guard.guarded(fails)(job), 0.1))
    trace, ended = map(json.loads, stream.getvalue().splitlines())
    assert "riddle" not in stream.getvalue()
    assert trace["trace"].endswith(" in fails\nValueError")
    assert ended["code"] == "internal"
