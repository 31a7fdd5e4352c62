"""One text with its variables written out: Flux' own answers, and what no text may do."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.render.variables.expression import MAX_NESTED, Value, Variables, expanded
from handler.render.variables.expression_budget import ExpressionBudget, ExpressionRefused
from tests.unit.render.variables.flux_golden import TEXTS
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow


def made(text: str, unknown: str | None = None, **values: str) -> str:
    return expanded(text, Variables(values, unknown), ExpressionBudget()).text


@each_row(("text", "values", "flux"), TEXTS)
def test_an_expression_is_what_flux_makes_of_it(text: str, values: dict[str, str], flux: str | None) -> None:
    if flux is None:
        with pytest.raises(ExpressionRefused):
            made(text, **values)
    else:
        assert made(text, **values) == flux


def test_what_a_variable_holds_is_never_read_again() -> None:
    assert made("${a}${b}", a="${b}$${b}", b="$$") == "${b}$${b}$$"


@pytest.mark.parametrize("operator", ["", "^", ",,", ":1", "/a/b", "#a", "%%a"])
def test_a_name_that_isnt_known_is_refused_whatever_is_done_with_it(operator: str) -> None:
    with pytest.raises(ExpressionRefused, match="names the variable a, which isn't known"):
        made(f"${{a{operator}}}")
    assert made(f"x${{a{operator}}}", unknown="") == "x"


def test_it_says_whose_values_are_in_it_and_a_default_that_isnt_used_has_none() -> None:
    found = expanded("${a:-${b}}${c:-${b}}${d:-x}-${e/${a}/${b}}", Variables({"a": "1", "b": "2", "c": "", "e": "31"}), ExpressionBudget())
    assert found.text == "12x-32"
    assert [each.names for each in found.values] == [{"a"}, {"b", "c"}, set(), {"a", "b", "e"}]
    assert found.values[0] == Value("1", frozenset({"a"}))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("${e:1}", "cuts a character in two"),
        ("${a", "isn't closed"),
        ("${a!}", "can't be read"),
        ("${a/x}", "has no second /"),
        ("${a#" + "?" * 1001 + "}", "pattern of 1,001 characters; at most 1,000"),
        ("${a:-" * (MAX_NESTED + 2) + "}" * (MAX_NESTED + 2), "has more than 20 expressions in each other"),
        ("${\x00}", "can't be read"),
    ],
)
def test_what_flux_would_crash_at_or_nobody_can_read_is_refused(text: str, says: str) -> None:
    with pytest.raises(ExpressionRefused, match="expression|" + says) as refused:
        made(text, unknown="", a="abcdef", e="é")
    assert says in refused.value.message


def test_no_refusal_says_what_a_variable_holds() -> None:
    for text in ("${a:1:-1}", "${a/x}", "${b:1}", "${a", "${a#" + "x" * 2000 + "}"):
        with pytest.raises(ExpressionRefused) as refused:
            made(text, a="hunter2é", b="éhunter2")
        assert "hunter2" not in f"{refused.value.message} {refused.value.fix}"


def test_what_grows_is_stopped_before_it_is_made() -> None:
    with pytest.raises(ExpressionRefused, match="makes or needs a text of"):
        made("${a//x/${a}}", a="x" * 1_000_000)
    with pytest.raises(ExpressionRefused, match="all expressions together make more than"):
        expanded("${a}", Variables({"a": "x" * 1_000_000}), ExpressionBudget(made=900_000))


def test_patterns_take_time_for_each_character_once() -> None:
    long = "a" * 1_000_000
    assert made("${a##" + "*a" * 30 + "b}", a=long) == long
    with pytest.raises(ExpressionRefused, match="take too long"):
        expanded("${a%%*b*c}", Variables({"a": long}), ExpressionBudget(left=100_000))


@settings(max_examples=300, deadline=None)
@given(st.text("${}ab:-=/#%*?[]\\^,1 é\0", max_size=40), st.text("ab*${}/é", max_size=8))
def test_any_text_is_written_out_or_refused(text: str, value: str) -> None:
    with contextlib.suppress(ExpressionRefused):
        assert isinstance(made(text, unknown="", a=value, b=""), str)


@pytest.mark.parametrize(
    ("text", "value"),
    [("${a^^}", "é" * 1_000), ("${a,}", "É" * 1_000), ("${a##*" + "b" * 60 + "}", "".join(map(chr, range(0x4E00, 0x4E00 + 100))))],
    ids=["upper", "lower", "pattern"],
)
def test_what_is_done_for_each_character_is_counted(text: str, value: str) -> None:
    with pytest.raises(ExpressionRefused, match="take too long"):
        expanded(text, Variables({"a": value}), ExpressionBudget(left=500))
