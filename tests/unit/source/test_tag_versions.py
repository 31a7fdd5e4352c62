"""The highest tag in a range: npm's rules, and the cases where the library that reads ranges errs."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semantic_version import NpmSpec, Version

from handler.model.errors import ConfigInvalid
from handler.source.tag_versions import HighestTag, VersionRange, order_of, overtakes

pytestmark = pytest.mark.slow

TAGS = (
    *("v0.9.0", "v1.0.0", "1.1.0", "v1.1.1-rc.1", "v1.2.0-rc.1", "v1.2.0-rc.2", "v1.2.0-rc.10", "v2.0.0-beta", "v2.0.0", "v10.0.0"),
    *("release-99", "latest", "v1", "v1.9", "v01.9.0"),
)


def highest(text: str, *tags: str) -> str:
    wanted = HighestTag(text)
    for tag in tags:
        wanted.better(f"refs/tags/{tag}".encode())
    return wanted.name.removeprefix("refs/tags/")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*", "v10.0.0"),
        (">=1.2 <2", ""),
        ("^1", "1.1.0"),
        ("^1.0", "1.1.0"),
        ("~1.0.0", "v1.0.0"),
        ("0.x", "v0.9.0"),
        ("1.x || 2.x", "v2.0.0"),
        ("1 - 2", "v2.0.0"),
        ("<1", "v0.9.0"),
        (">2.0.0", "v10.0.0"),
        ("<=1.0.0", "v1.0.0"),
        ("=1.1.0", "1.1.0"),
        (">=1.2.0-rc.1 <2", "v1.2.0-rc.10"),
        (">=1.2.0-rc.1 <1.2.0-rc.10", "v1.2.0-rc.2"),
        ("^1.2.0-rc.1", "v1.2.0-rc.10"),
        ("1.2.0-rc.2", "v1.2.0-rc.2"),
        (">=1.2.0-rc.1", "v10.0.0"),
        ("<2.0.0-beta.9 >=2.0.0-alpha", "v2.0.0-beta"),
        ("3.x", ""),
    ],
)
def test_the_highest_tag_whatever_the_order_they_come_in(text: str, expected: str) -> None:
    for seed in range(5):
        tags = list(TAGS)
        random.Random(seed).shuffle(tags)
        assert highest(text, *tags) == expected


def test_an_upper_bound_holds_beside_a_pre_release_in_the_range() -> None:
    """The library alone would give 1.2.0 for this range."""
    assert Version("1.2.0") in NpmSpec(">=1.2.0-rc.1 <1.2.0")
    assert highest(">=1.2.0-rc.1 <1.2.0", "v1.2.0", "v1.2.0-rc.2") == "v1.2.0-rc.2"


def test_of_tags_of_one_version_the_last_by_name_wins() -> None:
    assert highest("*", "1.0.0", "v1.0.0", "1.0.0+b", "v1.0.0+a") == highest("*", "v1.0.0+a", "1.0.0+b", "v1.0.0", "1.0.0") == "v1.0.0+a"


@pytest.mark.parametrize(
    "tag",
    ["1.2", "v1", "1.2.3.4", "x1.2.3", "v1.2.3-", "v1.2.3-01", "v1.2.3-a..b", "01.2.3", "V1.2.3", "v1.2.3 ", "a/v1.2.3", f"{'9' * 19}.0.0"],
)
def test_tags_that_are_no_semver(tag: str) -> None:
    assert order_of(f"refs/tags/{tag}".encode()) is None
    assert order_of(f"refs/heads/{tag}".encode()) is None


@pytest.mark.parametrize("text", ["", "nonsense", "1.2.3.4", "1 ||", "~x"])
def test_a_semver_range_that_isnt_one_is_refused(text: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"revision\.semver"):
        VersionRange(text)


def test_a_pushed_tag_overtakes_the_head_only_within_the_semver_range() -> None:
    def pushed(tag: str, head: str = "v1.1.0") -> bool:
        return overtakes("^1", f"refs/tags/{tag}", f"refs/tags/{head}")

    assert pushed("v1.2.0")
    assert not pushed("v1.0.9")
    assert not pushed("v2.0.0")
    assert not pushed("v1.1.0")
    assert not pushed("nightly")
    assert not overtakes("^1", "refs/heads/v1.2.0", "refs/tags/v1.1.0")


NUMBERS = st.integers(0, 4)
VERSIONS = st.tuples(NUMBERS, NUMBERS, NUMBERS)
BLOCKS = st.tuples(st.sampled_from(["", "=", "<", "<=", ">", ">=", "^", "~"]), VERSIONS, st.integers(1, 3)).map(
    lambda block: block[0] + ".".join(map(str, block[1][: block[2]]))
)
RANGES = st.lists(st.lists(BLOCKS, min_size=1, max_size=3).map(" ".join), min_size=1, max_size=3).map(" || ".join)


@given(RANGES, VERSIONS)
def test_releases_are_judged_as_the_library_judges_them(text: str, version: tuple[int, int, int]) -> None:
    written = ".".join(map(str, version))
    assert VersionRange(text).holds((*version, (1,))) == (Version(written) in NpmSpec(text))


PARTS = st.lists(st.integers(0, 20).map(str) | st.text("abz-", min_size=1, max_size=3), max_size=3)


@given(VERSIONS, PARTS, VERSIONS, PARTS)
def test_versions_are_ordered_as_the_library_orders_them(
    a: tuple[int, int, int], pre: list[str], b: tuple[int, int, int], post: list[str]
) -> None:
    first, second = (".".join(map(str, each)) + ("-" + ".".join(parts) if parts else "") for each, parts in ((a, pre), (b, post)))
    ours = [order_of(f"refs/tags/{each}".encode()) for each in (first, second)]
    assert ours[0] is not None
    assert ours[1] is not None
    assert (ours[0] < ours[1]) == (Version(first) < Version(second))


def test_a_long_list_of_tags_is_not_kept() -> None:
    wanted = HighestTag("*")
    wanted.better(b"refs/tags/v0.0.0")
    tracemalloc.start()
    for number in range(50_000):
        wanted.better(b"refs/tags/v0.%d.%d" % divmod(number, 1000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert wanted.name == "refs/tags/v0.49.999"
    assert peak < 1_000_000  # kept, the names alone would be three million
