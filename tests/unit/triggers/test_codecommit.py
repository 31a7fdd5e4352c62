"""CodeCommit's events: what they are read as, which targets they concern, and that no other value becomes one."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.errors import BadPayload
from handler.model.event import RefChange
from handler.model.target_matching import TargetIndex, WatchedRevision, decide, repository_key
from handler.triggers import TRIGGERS, codecommit
from tests.fakes.host_webhooks import CART, MAIN, MAIN_GONE, TAG, TAG_GONE
from tests.unit.triggers.codecommit_events import EVENTS, HTTPS, sample
from tests.unit.triggers.odd_payloads import with_odd

READ = {
    "branch-updated": MAIN,
    "branch-created": CART,
    "branch-deleted": MAIN_GONE,
    "branch-merged": MAIN,
    "tag-created": TAG,
    "tag-deleted": TAG_GONE,
}


def test_all_samples_are_read() -> None:
    assert {path.stem for path in EVENTS.glob("*.json")} == {*READ, "pull-request"}


@pytest.mark.parametrize(("name", "change"), READ.items())
def test_a_branch_or_tag_is_a_push(name: str, change: RefChange) -> None:
    event = codecommit.read(sample(name))
    assert (event.provider, event.kind, event.changes, event.actor) == ("codecommit", "push", (change,), "user/ann")
    assert event.delivery == "0f6b4a8e-9a11-4c58-b6c5-2f6c1f4e7d10"


def test_other_eventbridge_events_ask_for_nothing() -> None:
    event = codecommit.read(sample("pull-request"))
    assert (event.kind, event.note) == ("other", "aws.codecommit CodeCommit Pull Request State Change events ask for nothing")
    assert codecommit.read({}).note == "unnamed events ask for nothing"
    assert codecommit.read(sample() | {"source": "acme.codecommit"}).kind == "other"
    document = sample()
    document["detail"]["event"] = "referenceRenamed"
    assert codecommit.read(document).note == "referenceRenamed events ask for nothing"


@pytest.mark.parametrize(
    "url",
    [
        HTTPS,
        "ssh://git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop",
        "ssh://APKAEIBAERJR2EXAMPLE@git-codecommit.eu-central-1.amazonaws.com/v1/repos/shop",
        "codecommit::eu-central-1://shop",
        "codecommit::eu-central-1://deployer@shop",
    ],
)
def test_a_target_is_found_by_every_spelling_of_its_repository(url: str) -> None:
    watched = TargetIndex([WatchedRevision("shop", (url,), ref="refs/heads/main")])
    (decision,) = decide(codecommit.read(sample()), watched)
    assert (decision.target, decision.matched, decision.change) == ("shop", True, MAIN)


def test_the_region_is_part_of_the_name() -> None:
    other = TargetIndex([WatchedRevision("shop", (HTTPS.replace("eu-central-1", "eu-west-1"),), ref="refs/heads/main")])
    (decision,) = decide(codecommit.read(sample()), other)
    assert not decision.target
    china = codecommit.read(sample() | {"region": "cn-north-1"})
    assert china.urls[0] == "https://git-codecommit.cn-north-1.amazonaws.com.cn/v1/repos/shop"
    assert {repository_key(url) for url in china.urls} == {"git-codecommit.cn-north-1.amazonaws.com.cn/v1/repos/shop"}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("region",), "eu central"),
        (("region",), "evil.example.com/x"),
        (("region",), ""),
        (("detail", "repositoryName"), "../shop"),
        (("detail", "repositoryName"), ""),
        (("detail", "referenceFullName"), "main"),
        (("detail", "commitId"), "main"),
        (("detail",), []),
    ],
)
def test_a_codecommit_event_without_a_name_or_ref_is_refused(place: tuple[str, ...], value: object) -> None:
    with pytest.raises(BadPayload):
        codecommit.read(with_odd(sample(), place, value))


@pytest.mark.parametrize("value", [None, [], "x", 1, b"bytes", {1, 2}, {"a": {1}}, float("nan"), {"a": float("inf")}, {"a": "\ud800"}])
def test_a_value_that_is_no_json_object_is_refused(value: object) -> None:
    with pytest.raises(BadPayload):
        codecommit.read(value)


@pytest.mark.slow
def test_nesting_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(BadPayload):
        codecommit.read(deep)


def test_no_path_over_http_leads_to_it() -> None:
    assert "codecommit" not in TRIGGERS
