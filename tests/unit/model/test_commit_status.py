"""What a git host shows of a commit: one short line that shows what it holds."""

from __future__ import annotations

import pytest

from handler.model.commit_status import TEXT, fitting


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("3 created\n  1 configured", "3 created 1 configured"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("a\x1b[31mred\x00\x7f", "a\\x1b[31mred\\x00\\x7f"),
        ("a\u2028b\u2029c\x85d", "a b c d"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("\ud800", "\\ud800"),
        ("a \U0001f600", "a \ufffd"),
        ("Überraschung — 日本語", "Überraschung — 日本語"),
        ("no”\n    kubectl delete ns prod", "no” kubectl delete ns prod"),
        ("", ""),
    ],
)
def test_a_text_is_one_line_without_what_turns_or_hides_in_it(text: str, line: str) -> None:
    assert fitting(text) == line
    assert fitting(fitting(text)) == line


def test_what_is_escaped_fits_as_well() -> None:
    said = fitting("\u202e" * TEXT)
    assert len(said) == TEXT
    assert said.endswith("…")
    assert fitting("a" * TEXT) == "a" * TEXT
