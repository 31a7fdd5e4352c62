"""One look at a record: what is posted, marked, left, dropped, and posted once alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.app.commit_statuses.host_lane import DueLook
from handler.app.commit_statuses.posting import StatusPosting
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.errors import AccessDenied, AnnealError, GitUnavailable, Moved
from handler.model.host_answer import HostRefusal
from tests.unit.app.shown_commits import A, B, C, Records, owed, shop


@pytest.fixture
def records() -> Records:
    return Records(shop(), shop("cart"))


@pytest.fixture
def posting(records: Records) -> StatusPosting:
    return StatusPosting(records.settings, records)


def heard(*names: str) -> DueLook:
    return DueLook("shop", 0.0, frozenset(names))


def test_an_end_is_posted_with_context_and_link_and_marked(records: Records, posting: StatusPosting) -> None:
    records.put(owed(A, text="3 created"))
    posting.look(heard(f"run-a/{A}"))
    link = "https://anneal.example.com/ui/targets/shop"
    assert records.host.posted == [CommitStatus(A, "anneal/blue/shop", StatusState.SUCCESS, "3 created", link)]
    assert [each.posted for each in records.statuses()] == [True]
    posting.look(heard())
    assert len(records.host.posted) == 1


def test_news_is_posted_without_a_question_and_the_rest_only_if_the_host_lacks_it(records: Records, posting: StatusPosting) -> None:
    records.put(owed(A))
    posting.look(heard(f"run-a/{A}"))
    assert records.host.asked == 0
    records.put(owed(A), owed(B))  # as after a kill between post and mark
    StatusPosting(records.settings, records).look(heard())
    assert records.host.asked == 2
    assert records.host.said == [(A, "success"), (B, "success")]
    assert all(each.posted for each in records.statuses())


def test_a_pending_is_shown_once_and_its_end_takes_its_place(records: Records, posting: StatusPosting) -> None:
    records.put(owed(A, StatusState.PENDING, "being applied"))
    for _ in range(3):
        posting.look(heard(A))
    assert records.host.said == [(A, "pending")]
    assert posting.is_pending("shop", A)
    assert records.statuses()[0].posted is False
    records.put(owed(A))
    posting.look(heard(f"run-a/{A}"))
    assert records.host.said == [(A, "pending"), (A, "success")]


def test_a_commit_that_is_tried_again_is_pending_again(records: Records, posting: StatusPosting) -> None:
    for _ in range(2):
        records.put(owed(A, StatusState.PENDING, "being applied"))
        posting.look(heard(A))
        records.put(owed(A, StatusState.FAILURE, "broken"))
        posting.look(heard(f"run-a/{A}"))
        assert not posting.is_pending("shop", A)
    assert records.host.said == [(A, "pending"), (A, "failure")] * 2


@pytest.mark.parametrize("marked", [False, True])
def test_an_end_of_another_process_is_shown_again_after_a_pending_that_came_late(
    records: Records, posting: StatusPosting, *, marked: bool
) -> None:
    records.put(owed(A, StatusState.PENDING, "being applied"))

    def meanwhile(status: CommitStatus) -> None:
        if status.state == StatusState.PENDING:
            records.host.posted.append(replace(status, state=StatusState.SUCCESS, text="3 created"))
            records.put(owed(A, posted=marked))

    records.host.meets = meanwhile
    posting.look(heard(A))
    assert records.host.said == [(A, "success"), (A, "pending"), (A, "success")]


def test_an_end_that_changed_while_it_was_posted_is_still_owed(records: Records, posting: StatusPosting) -> None:
    records.put(owed(A, StatusState.FAILURE, "broken"))
    records.host.meets = lambda status: records.put(owed(A)) if status.state == StatusState.FAILURE else None
    posting.look(heard(f"run-a/{A}"))
    assert [each.posted for each in records.statuses()] == [False]
    posting.look(heard(f"run-a/{A}"))
    assert records.host.said == [(A, "failure"), (A, "success")]


def test_a_commit_that_only_a_webhook_named_is_posted_when_it_was_overtaken_else_dropped(records: Records, posting: StatusPosting) -> None:
    hinted = owed(B, StatusState.SUPERSEDED, hinted=True)
    records.put(hinted)
    records.overtaken = False
    posting.look(heard())
    assert (records.host.posted, records.statuses()) == ([], ())
    records.put(hinted)
    records.overtaken = True
    posting.look(heard())
    assert records.host.said == [(B, "superseded")]


@pytest.mark.parametrize("state", [StatusState.SUCCESS, StatusState.PENDING])
def test_what_the_host_refuses_for_good_is_tried_once(
    records: Records, posting: StatusPosting, state: StatusState, caplog: pytest.LogCaptureFixture
) -> None:
    records.put(owed(A, state))
    refusal = HostRefusal.answered("API", "the API answered 422", 422, "hunter2")

    def refuse(_status: CommitStatus) -> None:
        raise refusal

    records.host.meets = refuse
    posting.look(heard("run-a", A))
    assert [each.posted for each in records.statuses()] == [True]
    assert "a commit status is refused" in caplog.text
    assert "hunter2" not in str([vars(each) for each in caplog.records])
    assert records.host.posted == []


def test_a_commit_that_changes_nothing_has_one_status_for_all_its_targets(records: Records, posting: StatusPosting) -> None:
    for target in (0, 1):
        records.put(owed(C, StatusState.UNTOUCHED), target=target)
    posting.look(heard(f"run-c/{C}"))
    posting.look(replace(heard(f"run-c/{C}"), target="cart"))
    text = "targets that read nothing of what changed stay as they are"
    assert records.host.posted == [CommitStatus(C, "anneal/blue", StatusState.UNTOUCHED, text)]
    assert all(each.posted for target in (0, 1) for each in records.statuses(target))


@pytest.mark.parametrize(
    ("error", "raised", "said"),
    [
        (HostRefusal.answered("API", "no", 404, "no"), AccessDenied, [(B, "success"), (C, "success")]),
        (HostRefusal.answered("API", "no", 409, "no"), Moved, [(B, "success"), (C, "success")]),
        (GitUnavailable.of("API", "down"), GitUnavailable, []),
    ],
    ids=["404", "409", "down"],
)
def test_what_keeps_one_end_from_being_posted_keeps_no_other_but_a_host_that_is_down(
    records: Records, posting: StatusPosting, error: Exception, raised: type[AnnealError], said: list[tuple[str, str]]
) -> None:
    records.put(owed(C), owed(B), owed(A))

    def meets(status: CommitStatus) -> None:
        if status.commit == A:
            raise error

    records.host.meets = meets
    with pytest.raises(raised):
        posting.look(heard())
    assert records.host.said == said
    assert [each.posted for each in records.statuses()] == [bool(said), bool(said), False]


def test_git_is_asked_about_overtaken_commits_after_all_ends_are_posted(
    records: Records, posting: StatusPosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.put(owed(B), owed(A, StatusState.SUPERSEDED, hinted=True))

    def unknown(*_: object) -> bool:
        raise GitUnavailable.of("git host", "down")

    monkeypatch.setattr(records, "is_overtaken", unknown)
    with pytest.raises(GitUnavailable):
        posting.look(heard())
    assert records.host.said == [(B, "success")]
    assert [each.posted for each in records.statuses()] == [True, False]


def test_what_only_the_record_says_is_posted_to_commits_of_the_branch_alone(records: Records, posting: StatusPosting) -> None:
    """A forged end would call any commit good where a required check believes it: the head of a pull request, too."""
    records.branch = {A}
    records.put(owed(A), owed(B), owed(C, StatusState.UNTOUCHED))
    posting.look(heard())
    assert records.host.said == [(A, "success")]
    assert [each.commit for each in records.statuses()] == [A]


def test_a_forged_status_of_the_run_that_has_just_ended_is_no_news(records: Records, posting: StatusPosting) -> None:
    records.branch = {A}
    records.put(owed(B, run="run-a"))
    posting.look(heard(f"run-a/{A}"))
    assert (records.host.said, records.statuses()) == ([], ())


def test_a_target_without_a_record_or_without_anything_owed_asks_no_host(records: Records, posting: StatusPosting) -> None:
    posting.look(heard())
    records.put(owed(A, posted=True))
    posting.look(heard())
    assert (records.host.asked, records.host.posted) == (0, [])
