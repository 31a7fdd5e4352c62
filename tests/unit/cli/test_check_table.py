"""Findings of `check` and `doctor`: a row each, or JSON."""

from __future__ import annotations

import json

import pytest

from handler.cli.check_table import Findings
from handler.cli.output import Output
from handler.model.errors import AnnealError, ConfigInvalid, Problem


def test_findings_as_json_leave_no_other_line_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    output = Output(as_json=True)
    output.line("text")
    findings = Findings(output)
    findings.good("one", "well")
    findings.bad("two", [Problem("a", "b", fix="c")])
    findings.skip("three", "why")
    findings.document()
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], [row["verdict"] for row in found["checks"]]) == (False, ["ok", "failed", "skipped"])
    assert found["checks"][1]["problems"] == [{"subject": "a", "message": "b", "place": "", "fix": "c"}]


def test_findings_are_a_row_each_with_the_fix_below(capsys: pytest.CaptureFixture[str]) -> None:
    findings = Findings(Output())
    assert findings.step("one", lambda: "well")
    assert not findings.step("two", lambda: _raise(ConfigInvalid.of("file", "is wrong", place="a:1", fix="do this")))
    findings.warn("three", "is slow", "do that")
    assert capsys.readouterr().out.splitlines() == [
        "SUBJECT        VERDICT  SEEN",
        "one            ok       well",
        "two            failed   a:1: file: is wrong",
        "    → do this",
        "three          warning  is slow",
        "    → do that",
    ]


def _raise(error: AnnealError) -> str:
    raise error
