"""What is printed: escaped, wrapped, and of an unexpected exception no word."""

from __future__ import annotations

import pytest

from handler.cli import reports
from handler.cli.output import Output, wrapped
from handler.model.errors import Problem

SECRET = "canary-0123456789"


EVIL = "\x1b]0;title\x07 \u202e"


def test_output_escapes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    text, as_json = Output(verbose=True), Output(as_json=True)
    text.line(f"a {EVIL}")
    text.detail(EVIL)
    text.note(EVIL)
    text.text(f"{EVIL}\n")
    text.table(["HEAD"], [[f"{EVIL}\nline"]])
    reports.problems(text, [Problem(EVIL, EVIL, EVIL, EVIL)])
    as_json.document({EVIL: [EVIL, {"key": EVIL}]})
    printed = capsys.readouterr()
    assert not set(EVIL) - {*"]0;title "} & set(printed.out + printed.err)
    assert printed.out.splitlines()[0] == "a \\x1b]0;title\\x07 \\u202e"


@pytest.mark.parametrize("as_json", [True, False])
def test_of_an_unexpected_exception_the_class_and_the_place_are_told(capsys: pytest.CaptureFixture[str], as_json: bool) -> None:
    try:
        try:
            raise KeyError(SECRET)
        except KeyError as error:
            raise ValueError(SECRET) from error
    except ValueError as error:
        reports.unexpected(Output(verbose=True, as_json=as_json), error)
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert "ValueError at tests/unit/cli/test_output.py:" in (printed.out if as_json else printed.err)
    assert "KeyError\nwhich led to:\n" in printed.err


LINE = "  unhealthy: Deployment/shop/api: 0 of 1 replica available; pod api-5c9f8d7b6-abcde: container main waits: CrashLoopBackOff"


def test_a_line_is_wrapped_at_the_terminals_width_under_its_own_text() -> None:
    assert wrapped(LINE, None) == LINE
    assert wrapped(LINE, 60, 13).split("\n") == [
        "  unhealthy: Deployment/shop/api: 0 of 1 replica available;",
        "             pod api-5c9f8d7b6-abcde: container main waits:",
        "             CrashLoopBackOff",
    ]
    assert wrapped("short\n" + "a " * 10, 12).split("\n") == ["short", "a a a a a a", "  a a a a"]
    assert wrapped("    " + "x" * 40, 20) == "    " + "x" * 40, "what has no blank is broken by the terminal, so that it can be copied"


def test_a_command_in_a_text_isnt_broken_if_it_fits_on_a_line() -> None:
    assert wrapped("start it with `anneal serve` now", 24).split("\n") == ["start it with", "  `anneal serve` now"]
    assert wrapped("so `anneal apply shop --approve e0` now", 16).split("\n") == ["so `anneal apply", "  shop --approve", "  e0` now"]


def test_a_whole_line_is_not_wrapped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    Output().line(LINE, whole=True)
    Output().line(LINE)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == LINE
    assert max(map(len, shown[1:])) <= 40
