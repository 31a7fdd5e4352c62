"""What a late, early, doubled or forged delivery comes to, before anything is read but the head."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.git_settings import Revision
from handler.engine.run.push_lag import WAITS, is_missed, later, missed, verdict
from handler.model.event import Delivery, Job
from handler.model.refs import Head
from handler.model.result import Outcome, Result

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
def test_a_push_is_missed_while_the_host_shows_another_head(job: Job, head: Head, revision: Revision, missed: bool) -> None:
    assert is_missed(job, head, revision) is missed


def test_a_missed_push_comes_back_four_times_and_then_never() -> None:
    ends = [verdict(Job("shop", "push", hint=PUSHED, looks=looks), Head(HEAD), ()) for looks in range(6)]
    assert [(outcome, seconds) for outcome, _, seconds in ends] == [
        *((Outcome.LAGGING, seconds) for seconds in WAITS),
        (Outcome.SUPERSEDED, 0.0),
        (Outcome.SUPERSEDED, 0.0),
    ]
    assert ends[0][1] == "the host's head is aaaaaaaaaaaa, not bbbbbbbbbbbb; looked at again in 1 s"


def test_an_earlier_deployed_push_is_looked_for_once_as_after_a_force_push() -> None:
    ends = [verdict(Job("shop", "push", hint=PUSHED, looks=looks), Head(HEAD), {PUSHED}) for looks in range(2)]
    assert [(outcome, seconds) for outcome, _, seconds in ends] == [(Outcome.LAGGING, WAITS[0]), (Outcome.SUPERSEDED, 0.0)]
    assert all("which was deployed earlier" in message for _, message, _ in ends)


OLD, OTHER = "d" * 40, "e" * 40


def heard(*hints: str, looks: int = 0, trigger: str = "push", ref: str = "refs/heads/main") -> Job:
    """A job of several deliveries, in the order in which they came."""
    deliveries = tuple(Delivery(str(number), "github", ref, hint, f"by {number}", "") for number, hint in enumerate(hints))
    return Job("shop", trigger, hint=hints[-1], actor="ann", deliveries=deliveries, looks=looks)


def test_every_push_of_the_deliveries_counts_the_newest_last() -> None:
    assert missed(heard(PUSHED, HEAD, OTHER, PUSHED), Head(HEAD), BRANCH) == (OTHER, PUSHED)
    assert missed(heard(PUSHED, HEAD), Head(HEAD), BRANCH) == (PUSHED,)
    assert not is_missed(heard(PUSHED, HEAD), Head(HEAD), BRANCH), "the newest one is there"
    assert missed(Job("shop", "push", hint=PUSHED), Head(HEAD), BRANCH) == (PUSHED,)
    assert missed(replace(heard(PUSHED), deliveries=(*heard("").deliveries, *heard(PUSHED).deliveries)), Head(HEAD), BRANCH) == (PUSHED,)
    tags = tuple(pushed(f"refs/tags/{tag}", hint).deliveries[0] for tag, hint in (("v1.3.0", OTHER), ("v1.1.0", PUSHED)))
    assert missed(replace(heard(PUSHED), deliveries=tags), Head(HEAD, "refs/tags/v1.2.0"), RANGE) == (OTHER,)


ENDS: tuple[tuple[Job, Outcome, str, tuple[str, ...]], ...] = (
    (heard(PUSHED), Outcome.APPLIED, "", (PUSHED,)),
    (heard(PUSHED, HEAD), Outcome.APPLIED, "", (PUSHED,)),
    (heard(PUSHED, OTHER, HEAD), Outcome.UNCHANGED, "", (PUSHED, OTHER)),
    (heard(PUSHED, trigger="drift"), Outcome.DRIFTED, "", (PUSHED,)),
    (heard(PUSHED, looks=3), Outcome.HELD, "", (PUSHED,)),
    (heard(PUSHED, looks=4), Outcome.APPLIED, "", ()),
    (heard(OLD), Outcome.APPLIED, "", (OLD,)),
    (heard(OLD, looks=1), Outcome.APPLIED, "", ()),
    (heard(OLD, HEAD), Outcome.APPLIED, "", ()),
    (heard(PUSHED, OLD, looks=1), Outcome.SUPERSEDED, "", (PUSHED,)),
    (heard(PUSHED, looks=4), Outcome.SUPERSEDED, "", ()),
    (heard(PUSHED), Outcome.LAGGING, "", ()),
    (heard(PUSHED), Outcome.FAILED, "author", (PUSHED,)),
    (heard(PUSHED, HEAD), Outcome.FAILED, "author", ()),
    (heard(PUSHED), Outcome.FAILED, "nobody", ()),
    (heard(PUSHED), Outcome.BUSY, "nobody", ()),
    (heard(PUSHED), Outcome.SUSPENDED, "", ()),
    (replace(heard(PUSHED), dry_run=True), Outcome.PLANNED, "", ()),
    (heard(HEAD), Outcome.APPLIED, "", ()),
)


@pytest.mark.parametrize(("job", "outcome", "who", "left"), ENDS)
def test_a_run_leaves_a_missed_push_to_look_for(job: Job, outcome: Outcome, who: str, left: tuple[str, ...]) -> None:
    again = later(job, Result("shop", outcome, who=who), Head(HEAD), BRANCH, {OLD, HEAD})
    if not left:
        assert again is None
        return
    kept = tuple(each for each in job.deliveries if each.hint in left)
    assert again == Job("shop", "push", hint=left[-1], actor=kept[-1].actor, deliveries=kept, looks=job.looks + 1)


def test_nothing_is_left_to_look_for_where_the_host_was_not_asked() -> None:
    assert later(heard(PUSHED), Result("shop", Outcome.FAILED, who="author"), Head(""), BRANCH, ()) is None
