"""The overview: search, filter, sort and pages, over what a visitor sees."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from handler.config.load import parse
from handler.model.errors import ConfigInvalid
from handler.state.record import Run, RunStatus, TargetHealth
from handler.web.page import overview as module
from handler.web.page.overview import OVERVIEW, PAGE, Choice, choice, link, overview
from handler.web.page.rendering import render
from handler.web.page.target_view import STANDINGS
from tests.unit.rows import each_row
from tests.unit.state.samples import NOON, blank, full, sha
from tests.unit.web.page.records import row_of

LATER = "2999-01-01T00:00:00Z"
APPLIED = Run("r", "push", "applied", "2026-02-01T12:00:00Z", sha("b"), "Fix the basket", "Grace", duration=3)
WELL = blank(commit=sha("b"), status=RunStatus("applied"), health=TargetHealth("healthy", NOON, LATER), history=(APPLIED,))


def rows() -> list[dict[str, Any]]:
    failed, well = row_of(replace(full(), suspend=None)), row_of(WELL)
    return [
        {**well, "target": "shop-b", "cluster": "east"},
        {**failed, "target": "shop-a", "cluster": "west"},
        {**well, "target": "infra", "cluster": "east", "repository": "https://git.example.com/acme/infra.git", "applied": NOON},
    ]


def names(asked: Choice) -> list[str]:
    return [view.row["target"] for view in overview(rows(), asked).rows]


@each_row(
    ("asked", "found"),
    [
        (Choice(), ["shop-a", "infra", "shop-b"]),
        (Choice(order="name"), ["infra", "shop-a", "shop-b"]),
        (Choice(order="cluster"), ["infra", "shop-b", "shop-a"]),
        (Choice(order="newest"), ["infra", "shop-a", "shop-b"]),
        (Choice(state="healthy"), ["infra", "shop-b"]),
        (Choice(words="INFRA"), ["infra"]),
        (Choice(words="grace basket"), ["infra", "shop-b"]),
        (Choice(words="failed"), ["shop-a"]),
        (Choice(words=sha("b")[:8]), ["infra", "shop-b"]),
        (Choice(words="nothing like that"), []),
    ],
)
def test_targets_are_found_and_ordered(asked: Choice, found: list[str]) -> None:
    assert names(asked) == found


def test_counts_are_of_what_the_search_found_whatever_the_filter() -> None:
    found = overview(rows(), Choice(words="shop", state="healthy"))
    assert {each.key: number for each, number in found.counts} == {each.key: 0 for each in STANDINGS} | {"failed": 1, "healthy": 1}
    assert (found.found, found.matching, found.total) == (1, 2, 3)


def test_pages_hold_so_many_rows_and_a_page_too_far_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE", 2)
    assert names(Choice(order="name", page=2)) == names(Choice(order="name", page=9)) == ["shop-b"]
    assert overview(rows(), Choice()).pages == 2
    assert overview([], Choice()).pages == 1


@each_row(
    ("query", "asked"),
    [
        ({}, Choice()),
        ({"q": "x y", "state": "held", "sort": "name", "page": "3"}, Choice("x y", "held", "name", 3)),
        ({"state": "<script>", "sort": "drop", "page": "-1"}, Choice()),
        ({"page": "0"}, Choice()),
        ({"page": "²"}, Choice()),
        ({"page": "9" * 50}, Choice()),
        ({"q": "x" * 5000}, Choice("x" * 200)),
    ],
)
def test_what_makes_no_sense_counts_as_not_written(query: dict[str, str], asked: Choice) -> None:
    assert choice(query) == asked


def test_no_target_has_the_name_of_all() -> None:
    target = "{{name: {}, repository: {{url: 'https://a/b.git'}}, namespaces: [a]}}"
    configuration = f"apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets:\n  - {target}"
    assert parse(configuration.format("overview")).target("overview")
    with pytest.raises(ConfigInvalid):
        parse(configuration.format(OVERVIEW))


def test_links_keep_the_rest_of_a_choice() -> None:
    asked = Choice("a&b", "held", "name", 3)
    assert link(asked, state="") == "/?q=a%26b&sort=name"
    assert link(asked, page=2) == "/?q=a%26b&state=held&sort=name&page=2"
    assert link(Choice(), state="") == "/"


def test_beyond_the_last_page_is_the_last_page() -> None:
    found = overview([row_of(None)] * (PAGE + 1), Choice(page=9))
    assert (found.page, found.pages, len(found.rows)) == (2, 2, 1)
    frame = {"visitor": None, "csrf": "", "topic": OVERVIEW, "streams": ""}
    drawn = render(
        "overview.html", **frame, asked=Choice(page=9), overview=found, retired=(), orders=(), link=partial(link, Choice(page=9))
    )
    assert 'href="/?page=2" aria-current="page"' in drawn
