"""What is printed: masked, escaped, wrapped; the same facts as JSON."""

from __future__ import annotations

import pytest

from handler.cli import reports
from handler.cli.output import Output, wrapped
from handler.config.secret_mask import Mask
from handler.model.errors import Problem
from handler.model.field_masking import masked
from handler.model.names import GroupKind
from handler.model.plan import Action, Change
from handler.model.result import Outcome
from handler.model.to_json import plain
from tests.unit.cli.shop_plan import ONE

SECRET = "canary-0123456789"


# --- masks
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


# --- values
def test_values_become_json_as_kubernetes_spells_it() -> None:
    assert plain({"a": ONE, "b": frozenset({GroupKind("apps", "Deployment"), GroupKind("", "Pod")}), "c": Outcome.HELD}) == {
        "a": "Deployment/shop/api",
        "b": ["Deployment.apps", "Pod"],
        "c": "held",
    }
    assert plain(Change(Action.CREATE, ONE, resource_version="7"))["resourceVersion"] == "7"


def test_a_whole_object_is_masked_in_its_shape() -> None:
    metadata = {"name": "login", "labels": {"app": "shop"}, "annotations": {"note": SECRET}}
    shown = masked({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"password": SECRET}})
    assert shown["metadata"] == {"name": "login", "labels": {"app": "shop"}, "annotations": {"note": "***"}}
    assert (shown["kind"], shown["type"], shown["data"]) == ("Secret", "Opaque", {"password": "***"})
    other = masked({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"api_token": SECRET, "colour": "red"}})
    assert other["data"] == {"api_token": "***", "colour": "red"}


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
