"""What a regular expression of a key may be: RE2's, whatever a user of the cluster names objects."""

from __future__ import annotations

import re
import sys

import pytest

from handler.config.key_regex import key_regex
from handler.model.errors import ConfigInvalid
from tests.unit.rows import each_row


@each_row(
    ("text", "seen"),
    [
        ("(", "missing ): ("),
        ("*", "no argument for repetition operator: *"),
        (r"(a)\1", r"invalid escape sequence: \1"),
        ("(?=a)a", "invalid perl operator: (?="),
        ("(?>a)b", "invalid perl operator: (?>"),
        ("(?x) a", "invalid perl operator: (?x"),
        ("a++", "bad repetition operator: ++"),
        (r"a\Z", r"invalid escape sequence: \Z"),
        ("(a{1,1000}){1,1000}", "invalid repetition size: {1,1000}"),
        ("[[:none:]]", "invalid character class range: [:none:]"),
    ],
)
def test_what_isnt_re2s_says_why(text: str, seen: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(seen)}$"):
        key_regex(text)


def test_text_that_no_key_can_be_is_no_expression() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        key_regex("\ud800")


@each_row("text", ["(a?a?)*b", "(.*)-(.*)-(.*)-(.*)-(.*)x", "(a{1,30}){1,30}b", "((a+)+)+b"])
def test_what_would_try_each_way_to_match_answers_at_once(text: str) -> None:
    """By an engine that tries each way some of these would outlive the test."""
    assert key_regex(text).fullmatch("-" * 300) is None
    assert key_regex(text).fullmatch("a" * 300) is None


def test_whole_keys_match_and_classes_are_ascii() -> None:
    assert key_regex("a|ab").fullmatch("ab")
    assert not key_regex("a").fullmatch("ab")
    assert not key_regex(r"\d").fullmatch("\u0663")
    assert key_regex("[[:alpha:]]+/.*").fullmatch("shop/main")


def test_where_the_library_isnt_its_distribution_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyPI's `re2` is another project."""
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(ConfigInvalid, match=r"keyTransformations: needs the library re2.*pip install google-re2$"):
        key_regex("a-text-that-was-never-compiled")
