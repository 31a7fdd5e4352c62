"""What the worker sends of a program, and which paths it refuses."""

from __future__ import annotations

import select

import pytest

from handler.render.programs.program import MAX_EXPRESSION, Program, ProgramLimits, is_plain_path


@pytest.mark.parametrize("path", ["a", "a/b", "a b/ü", "..a", "a..", "-x", ".hidden/x"])
def test_a_plain_relative_path_stays_inside(path: str) -> None:
    assert is_plain_path(path)


@pytest.mark.parametrize("path", ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/./b", "a\0b"])
def test_a_path_that_leads_elsewhere_or_is_not_plain_does_not(path: str) -> None:
    assert not is_plain_path(path)
    with pytest.raises(ValueError, match="no path for a program"):
        Program("/bin/x", (), {path: 0}).order("/place", weak=False)


def test_an_order_holds_all_of_a_program_as_json_can() -> None:
    program = Program("/opt/kustomize", ("build", "."), {"a/b": 0}, "a", ("/opt/helm",), ProgramLimits(processes=2), {"X": "{home}"})
    order = program.order("/place/run-1", weak=True)
    assert program.name == "kustomize"
    assert (order["place"], order["weak"], order["files"], order["limits"]["processes"]) == ("/place/run-1", True, {"a/b": 0}, 2)
    for wrong in (Program("kustomize", (), {}), Program("/k", (), {}, beside=("helm",)), Program("/k", (), {}, directory="..")):
        with pytest.raises(ValueError, match="no path for a program"):
            wrong.order("/place", weak=False)


def test_an_expression_is_short_enough_to_be_handed_over_at_once() -> None:
    assert MAX_EXPRESSION <= select.PIPE_BUF
    assert Program("/k", (), {}, expression="x" * MAX_EXPRESSION).order("/place", weak=False)["expression"]
    with pytest.raises(ValueError, match="no expression for a program"):
        Program("/k", (), {}, expression="é" * (MAX_EXPRESSION // 2 + 1)).order("/place", weak=False)
