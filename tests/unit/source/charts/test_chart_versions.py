"""Ranges of chart versions: the rules of Masterminds' semver, its quirks with them."""

from __future__ import annotations

import pytest

from handler.model.errors import ChartUnavailable, ConfigInvalid
from handler.source.charts.chart_versions import ChartRange, is_exact, order_of_version, pick
from tests.unit.rows import each_row

VERSIONS = (
    *("0.0.0", "0.0.3", "0.1.0", "0.2.3", "0.2.9", "1.0.0-alpha", "1.0.0-rc.2", "1.0.0-rc.10", "1.0.0", "1.2.0", "1.2.3", "1.2.4-beta"),
    *("1.3.0", "1.10.0", "2.0.0-alpha", "2.0.0", "2.1.0+build.7", "v3.0.0"),
)


@each_row(
    ("text", "expected"),
    [
        ("", "v3.0.0"),
        ("*", "v3.0.0"),
        ("^1.2", "1.10.0"),
        ("^1.2.3", "1.10.0"),
        ("^0.2.3", "0.2.9"),
        ("^0.0.3", "0.0.3"),
        ("^0.0", "0.0.3"),
        ("^0", "0.2.9"),
        ("~1.2.0", "1.2.3"),
        ("~1.2", "1.2.3"),
        ("~1", "1.10.0"),
        ("~>1.2", "1.2.3"),
        ("1.2", "1.2.3"),
        ("1", "1.10.0"),
        ("1.x", "1.10.0"),
        ("1.2.X", "1.2.3"),
        ("1.2.*", "1.2.3"),
        ("=1.2.0", "1.2.0"),
        ("v1.2.0", "1.2.0"),
        ("3.0.0", "v3.0.0"),
        (">1", "v3.0.0"),
        (">1 <2", None),
        (">1.2 <2", "1.10.0"),
        (">=1.2,<1.3", "1.2.3"),
        (">= 1.2, < 1.3", "1.2.3"),
        ("=>1.2 =<1.2", "1.2.3"),
        ("<=1", "1.10.0"),
        ("<1", "0.2.9"),
        ("<0.0.0", None),
        ("1.0 - 1.2", "1.2.3"),
        ("1.0.0 - 1.2.0", "1.2.0"),
        ("!=3.x", "2.1.0+build.7"),
        ("!=3.0.0", "2.1.0+build.7"),
        ("!=1.10.x ^1", "1.3.0"),
        ("<1 || ~1.2", "1.2.3"),
        ("~1.2 || <1", "1.2.3"),
        (">=1.0.0-0 <2", "2.0.0-alpha"),
        ("^1.0.0-0", "1.10.0"),
        ("~1.2.0-0", "1.2.4-beta"),
        ("1.0.0-rc.10", "1.0.0-rc.10"),
        (">=1.0.0-rc.2 <1.0.0", "1.0.0-rc.10"),
        (">=2.0.0-0, <2.0.0", "2.0.0-alpha"),
        ("9", None),
    ],
)
def test_the_highest_version_in_a_range(text: str, expected: str | None) -> None:
    for versions in (VERSIONS, VERSIONS[::-1]):
        assert ChartRange(text).highest(versions) == expected


def test_what_is_no_version_is_passed() -> None:
    assert ChartRange("*").highest(("latest", "1.0.x", "01.0.0-01", "", "sha256-abc", "1.0", "v1.0.0")) == "1.0"
    assert order_of_version("1.0") == order_of_version("v1.0.0+anything")


def test_exactly_what_is_asked_for_goes_before_a_higher_one_in_the_range() -> None:
    assert pick(("1.2.3", "1.2"), "1.2", "chart web", "at h") == "1.2"
    assert pick(("1.2.3", "1.1"), "1.2", "chart web", "at h") == "1.2.3"
    assert pick(("latest", "2.0.0"), "latest", "chart web", "at h") == "latest"
    with pytest.raises(ChartUnavailable, match=r"chart web: none of its 1,001 versions at h is in \^2; publish one"):
        pick(["1.0.0"] * 1001, "^2", "chart web", "at h")


def test_without_a_version_what_has_none_is_never_taken() -> None:
    assert pick(("", "1.0.0", "1.2.0"), "", "chart web", "at h") == "1.2.0"
    with pytest.raises(ChartUnavailable, match=r"chart web: none of its 1 versions at h is in \*"):
        pick(("",), "", "chart web", "at h")


@pytest.mark.parametrize("text", ["nonsense", "1.2.3.4", ">", "1 ||| 2", "^^1", "1 - ", ">=1 <", "1.2.3-", "1" * 600, "x.y", "1 and 2"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match="is not a range of versions"):
        ChartRange(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1.2.3", True), ("v1.2.3-rc.1+b", True), ("1.2", False), ("1.2.x", False), ("=1.2.3", False), ("^1.2.3", False), ("", False)],
)
def test_which_text_names_one_version(text: str, expected: bool) -> None:
    assert is_exact(text) is expected
