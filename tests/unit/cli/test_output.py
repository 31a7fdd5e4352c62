"""What is printed: masked, escaped, wrapped."""

from __future__ import annotations

import pytest

from handler.cli import reports
from handler.cli.output import Output, wrapped
from handler.config.secret_mask import Mask
from handler.model.errors import Problem

SECRET = "canary-0123456789"


def test_output_masks_secrets_and_escapes_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    text, as_json = Output(verbose=True), Output(as_json=True)
    text.mask = as_json.mask = Mask.of([SECRET])
    text.line(f"a {SECRET} \x1b]0;title\x07 \u202e")
    text.detail(SECRET)
    text.note(SECRET)
    text.text(f"{SECRET}\n")
    text.table(["HEAD"], [[f"{SECRET}\nline"]])
    reports.unexpected(text, ValueError(SECRET))
    reports.problems(text, [Problem(SECRET, SECRET, SECRET, SECRET)])
    as_json.document({SECRET: [SECRET, {"key": SECRET}]})
    printed = capsys.readouterr()
    assert SECRET not in printed.out + printed.err
    assert printed.out.splitlines()[0] == "a *** \\x1b]0;title\\x07 \\u202e"


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
