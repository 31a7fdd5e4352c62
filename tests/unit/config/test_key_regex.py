"""What a regular expression of a key may be: RE2's, and none that takes long on a key that a user of the cluster has chosen."""

from __future__ import annotations

import pytest

from handler.config.key_regex import regex_fault

LACKS = "has look-around, a back-reference or another group that RE2 lacks"
SEVERAL = "repeats what may match in several ways itself; write it flat, as [a-z0-9-]*"


@pytest.mark.parametrize(
    "text",
    [
        "(.*)",
        "([a-z0-9]([-a-z0-9]*[a-z0-9])?)/grafana-(.*)",
        r"shop/(?P<name>[^/]+)\.[a-z]{2,5}",
        r"(?:a|b)*/x",
        r"(?:dev|(?:te|s)st|[0-9]x)/.*",
        r"(?:prod|test-[0-9]){1,3}/(.*)",
        r"[a-z0-9-]{1,63}/[a-z0-9.-]{1,253}",
        r"[(?]|\(\?",
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
        ("(a+)+x", SEVERAL),
        ("(?:(a|b*)c){2,}", SEVERAL),
        ("(a?a?)*b", SEVERAL),
        ("(aa|a)*!", SEVERAL),
        ("([a-z]|[a-z0-9])*!", SEVERAL),
        ("(a|)+", SEVERAL),
        ("(a{1,30}){1,30}b", SEVERAL),
        ("(a?){30}a{30}", SEVERAL),
        ("(?:x(b|ba)){9}", SEVERAL),
        ("a?" * 30 + "a{30}", f"may match in {2**30} ways beside what repeats without a bound; 256 is the most"),
        ("(a|ab)(a|ab)" * 5, "may match in 1024 ways beside what repeats without a bound; 256 is the most"),
        (".{1,300}" * 5, "repeats without a bound 5 times; 4 times is the most"),
        (".*.*.*.*.*", "repeats without a bound 5 times; 4 times is the most"),
        (r"(a)\1", LACKS),
        ("(?=a)a", LACKS),
        ("(?<!a)b", LACKS),
        ("(?P<n>a)(?P=n)", LACKS),
        ("(a)?(?(1)b|c)", LACKS),
        ("(?>a)b", LACKS),
        ("(?#a)b", LACKS),
        ("(?x) a", LACKS),
        ("a++", "repeats with + what RE2 doesn't"),
        ("a{,3}", "repeats with {,3} what RE2 doesn't"),
        ("[[:alpha:]]+/.*", "has a class by its name, [[:alpha:]], which isn't known here"),
        (r"a\Z", r"has \Z, which RE2 lacks"),
        (r"\pL", r"can't be read: bad escape \p at position 0"),
    ],
)
def test_what_may_not(text: str, seen: str) -> None:
    assert regex_fault(text) == seen
