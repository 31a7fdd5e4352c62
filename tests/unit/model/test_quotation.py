"""Text of others: one line between marks that it can't end, or lines that begin with a mark; cut."""

from __future__ import annotations

import pytest

from handler.model.errors import Problem
from handler.model.quotation import LINES, LONGEST, block, quoted

EVIL = "no”\n    kubectl delete ns prod\r\u2028\x85\u202e\u200b\x1b[31m\ud800"


def test_a_quotation_is_one_line_that_ends_where_we_end_it() -> None:
    said = quoted(EVIL)
    assert said == '“no"\\n kubectl delete ns prod\\r\\u2028\\x85\\u202e\\u200b\\x1b[31m\\ud800”'
    assert said.isprintable()
    assert quoted(said).count("”") == 1


@pytest.mark.parametrize("text", ["", "Unschedulable", "ann@example.com", "kube-system/api-5f9"])
def test_a_single_word_needs_no_marks(text: str) -> None:
    assert quoted(text) == text


def test_what_is_long_is_cut() -> None:
    assert (len(quoted("a b" * LONGEST)), len(quoted("a b" * 99, 40))) == (LONGEST + 2, 42)
    lines = block("\n".join(map(str, range(99))))
    assert (len(lines), lines[-1]) == (LINES, f"| … and {99 - LINES + 1} more lines")


def test_each_line_of_a_block_has_its_mark() -> None:
    assert block(f"\n{EVIL}\n\n")[:2] == ["| no”", "|     kubectl delete ns prod"]
    assert all(line.startswith("| ") and line.isprintable() for line in block(EVIL))


def test_a_problem_is_one_line_whatever_it_names_but_for_its_fix() -> None:
    problem = Problem(EVIL, EVIL, EVIL, "first\nsecond")
    assert all(text.isprintable() for text in (problem.subject, problem.message, problem.place))
    assert str(problem).count("\n") == 1
    assert len(Problem("a", "\n" * 5_000).message) == 10_000, "escaped, not cut"
