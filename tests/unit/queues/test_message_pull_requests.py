"""A message that asks for the plan of a pull request: what it may say beside that, and by what a queue knows it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.event import Delivery, Job
from handler.queues import message
from handler.queues.pending import Work

SHA = "4f1b0c7e2d9a5836be0174c2f6a98d3e5b7c1a20"
RUN = "shop~12.0123456789ab"
BODY: dict[str, Any] = {"v": 2, "run": RUN, "target": "shop~12", "trigger": "pull-request"}


def test_the_least_that_asks_for_a_plan_is_read() -> None:
    assert message.decode(json.dumps(BODY)) == Work(Job("shop~12", "pull-request"), (RUN,))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"unpin": True}, "asks for something else"),
        ({"rollback": True}, "asks for something else"),
        ({"noPrune": True}, "asks for something else"),
        ({"dryRun": True}, "asks for something else"),
        ({"force": True}, "asks for something else"),
        ({"approve": "h1"}, "asks for something else"),
        ({"commit": SHA}, "asks for something else"),
        ({"hint": SHA}, "asks for something else"),
        ({"changed": True}, "a comment on something else"),
        ({"run": "shop~13.0123456789ab"}, "the run isn't the target's"),
        ({"run": "shop.0123456789ab"}, "the run isn't the target's"),
        ({"target": "shop", "run": "shop.0123456789ab"}, "target is 'shop'"),
        ({"target": "shop~-1", "run": "shop~-1.0123456789ab"}, "target is 'shop~-1'"),
        ({"target": "shop~١٢", "run": "shop~١٢.0123456789ab"}, "target is"),
        ({"target": "shop~12\n", "run": "shop~12\n.0123456789ab"}, "target is"),
        ({"target": "shop_~12", "run": "shop_~12.0123456789ab"}, "target is 'shop_~12'"),
        ({"comments": ["6\n"]}, "comments aren't ids"),
        ({"comments": "6"}, "comments aren't ids"),
        ({"comments": [6]}, "comments aren't ids"),
        ({"changed": 1, "comments": ["6"]}, "changed is neither true nor false"),
        ({"v": 1}, "version 1; this is 2"),
        ({"v": 2.0}, "version 2.0; this is 2"),
        ({"v": True}, "version True; this is 2"),
        ({"trigger": "push"}, "version 2; this is 1"),
        ({"trigger": ["pull-request"]}, "version 2; this is 1"),
    ],
    ids=str,
)
def test_a_message_for_a_plan_says_nothing_else(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        message.decode(json.dumps(BODY | more))


def test_a_comment_on_a_target_asks_for_no_plan() -> None:
    body = {"v": 1, "run": "shop.0123456789ab", "target": "shop", "trigger": "push", "comments": ["6"]}
    with pytest.raises(ValueError, match="a comment on something else than a plan"):
        message.decode(json.dumps(body))


def test_the_longest_name_of_a_plan_is_whole() -> None:
    name = f"{'a' * 56}~999999999"
    work = Work(Job(name, "pull-request", comments=(f"{'x' * 64}/{'y' * 64}",), actor="ada" * 999), (f"{name}.{'0' * 12}",))
    body = message.encode(work)
    found = message.decode(body)
    assert (found.job.target, found.job.comments, found.runs) == (name, work.job.comments, work.runs)
    assert len(body) <= message.MOST


def test_a_wish_for_a_plan_is_known_by_its_run_alone() -> None:
    """The same event may be sent again after a lost answer; a second `/anneal plan` is another wish."""
    heard = Delivery("d1", "github", "", "", "ada", "")
    plan = Job("shop~12", "pull-request", comments=("6",), deliveries=(heard,))
    first, second = message.identified(plan), message.identified(plan)
    assert first != second
    assert message.deduplication(plan, first) == message.deduplication(plan, first) != message.deduplication(plan, second)


def test_a_look_again_at_a_host_that_failed_keeps_who_asked() -> None:
    again = Work(Job("shop~12", "pull-request", comments=("6",), changed=True, actor="ada", looks=3), (RUN,))
    assert message.decode(message.encode(again)) == again
