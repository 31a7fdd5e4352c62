"""What a late, early, doubled or forged delivery comes to, before anything is read but the head."""

from __future__ import annotations

import pytest

from handler.config.git import Revision
from handler.model.event import Delivery, Job
from handler.model.refs import Head
from handler.model.result import Outcome
from handler.run.arriving import WAITS, is_missed, verdict

HEAD, PUSHED, TAG_OBJECT = "a" * 40, "b" * 40, "c" * 40
BRANCH, TAG, RANGE = Revision(branch="main"), Revision(tag="stable"), Revision(semver="^1")


def pushed(ref: str, hint: str = PUSHED) -> Job:
    return Job("shop", "push", hint=hint, deliveries=(Delivery("1", "github", ref, hint, "ann", ""),))


@pytest.mark.parametrize(
    ("job", "head", "revision", "missed"),
    [
        (Job("shop", "tick"), Head(HEAD), BRANCH, False),
        (Job("shop", "push", hint=HEAD), Head(HEAD), BRANCH, False),
        (Job("shop", "push", hint=PUSHED), Head(HEAD), BRANCH, True),
        (pushed("refs/tags/stable", TAG_OBJECT), Head(HEAD, "refs/tags/stable", TAG_OBJECT), TAG, False),
        (pushed("refs/tags/stable"), Head(HEAD, "refs/tags/stable", TAG_OBJECT), TAG, True),
        (pushed("refs/tags/v1.3.0"), Head(HEAD, "refs/tags/v1.2.0"), RANGE, True),
        (pushed("refs/tags/v1.1.9"), Head(HEAD, "refs/tags/v1.2.0"), RANGE, False),
        (pushed("refs/tags/v2.0.0"), Head(HEAD, "refs/tags/v1.2.0"), RANGE, False),
        (pushed("refs/tags/nightly"), Head(HEAD, "refs/tags/v1.2.0"), RANGE, False),
        (pushed("refs/tags/v1.2.0", TAG_OBJECT), Head(HEAD, "refs/tags/v1.2.0", TAG_OBJECT), RANGE, False),
        (pushed("refs/tags/v1.2.0"), Head(HEAD, "refs/tags/v1.2.0", TAG_OBJECT), RANGE, True),
        (Job("shop", "push", hint=PUSHED), Head(HEAD, "refs/tags/v1.2.0"), RANGE, False),
    ],
)
def test_whether_a_push_is_missed(job: Job, head: Head, revision: Revision, missed: bool) -> None:
    assert is_missed(job, head, revision) is missed


def test_a_missed_push_comes_back_four_times_and_then_never() -> None:
    ends = [verdict(Job("shop", "push", hint=PUSHED, looks=looks), Head(HEAD), ()) for looks in range(6)]
    assert [(outcome, seconds) for outcome, _, seconds in ends] == [
        *((Outcome.LAGGING, seconds) for seconds in WAITS),
        (Outcome.SUPERSEDED, 0.0),
        (Outcome.SUPERSEDED, 0.0),
    ]
    assert ends[0][1] == "the host's head is aaaaaaaaaaaa, not bbbbbbbbbbbb; looked at again in 1 s"


def test_what_was_deployed_earlier_is_looked_for_once_more_for_the_branch_may_be_forced_back() -> None:
    ends = [verdict(Job("shop", "push", hint=PUSHED, looks=looks), Head(HEAD), {PUSHED}) for looks in range(2)]
    assert [(outcome, seconds) for outcome, _, seconds in ends] == [(Outcome.LAGGING, WAITS[0]), (Outcome.SUPERSEDED, 0.0)]
    assert all("which was deployed earlier" in message for _, message, _ in ends)
