"""Of each record its newest summary is kept, read, and of one that is gone none."""

from __future__ import annotations

from typing import Any

import pytest

from handler.state import known_summaries
from handler.state.configmap import SUMMARY, summary_of
from handler.state.known_summaries import forget_summary, summary_in
from handler.state.record import State
from handler.state.summary import LONGEST


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_summaries, "_known", {})


def metadata(target: str, commit: str) -> dict[str, Any]:
    text = summary_of(State(target, "default", "c", commit=commit * 40))
    return {"namespace": "ns", "name": f"anneal-{target}", "annotations": {SUMMARY: text}}


def test_a_summary_is_read_once_until_it_changes() -> None:
    first = summary_in(metadata("shop", "a"))
    assert first is not None
    assert summary_in(metadata("shop", "a")) is first
    later = summary_in(metadata("shop", "b"))
    assert later is not None
    assert (first.commit, later.commit) == ("a" * 40, "b" * 40)
    assert len(known_summaries._known) == 1


def test_what_carries_none_has_none() -> None:
    assert summary_in({"name": "anneal-shop"}) is None
    assert summary_in({"name": "anneal-shop", "annotations": {SUMMARY: "{"}}) is None


def test_of_what_is_gone_or_too_many_nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_summaries, "MOST", 2)
    for name in "abc":
        summary_in(metadata(name, "a"))
    assert [name for _, name in known_summaries._known] == ["anneal-b", "anneal-c"]
    forget_summary("ns", "b")
    forget_summary("ns", "never")
    assert [name for _, name in known_summaries._known] == ["anneal-c"]


def test_what_is_too_long_to_be_read_is_not_kept() -> None:
    assert summary_in({"namespace": "ns", "name": "anneal-shop", "annotations": {SUMMARY: "x" * (LONGEST + 1)}}) is None
    assert not known_summaries._known
