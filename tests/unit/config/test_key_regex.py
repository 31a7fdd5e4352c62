"""What a regular expression of a key may be: RE2's, and none that takes long on a key that a user of the cluster has chosen."""

from __future__ import annotations

import pytest

from handler.config.key_regex import regex_fault


@pytest.mark.parametrize(
    "text",
    [
        "(.*)",
        "([a-z0-9]([-a-z0-9]*[a-z0-9])?)/grafana-(.*)",
        r"shop/(?P<name>[^/]+)\.[a-z]{2,5}",
        r"(?:a|b)*/x",
        r"[*+]{3}(\*\+)?",
        r"[]*+]*",
        r"(?i:shop)/.*",
        r"a\\1",
    ],
)
def test_what_may_be_written(text: str) -> None:
    assert regex_fault(text) == ""


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("(", "can't be read: missing ), unterminated subpattern at position 0"),
        ("*", "can't be read: nothing to repeat at position 0"),
        ("(a+)+x", "repeats without a bound what does so itself; write it flat, as [a-z0-9-]*"),
        ("(?:(a|b*)c){2,}", "repeats without a bound what does so itself; write it flat, as [a-z0-9-]*"),
        (".*.*.*.*.*", "repeats without a bound 5 times; 4 times is the most"),
        (r"(a)\1", "has look-around or a back-reference, which RE2 lacks"),
        ("(?=a)a", "has look-around or a back-reference, which RE2 lacks"),
        ("(?<!a)b", "has look-around or a back-reference, which RE2 lacks"),
        ("(?P<n>a)(?P=n)", "has look-around or a back-reference, which RE2 lacks"),
        ("(a)?(?(1)b|c)", "has look-around or a back-reference, which RE2 lacks"),
    ],
)
def test_what_may_not(text: str, seen: str) -> None:
    assert regex_fault(text) == seen
