"""Our comment on a pull request: edited in place, posted anew where others changed it, found by the record alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.pull_requests import comment_post
from handler.app.pull_requests.comment_post import PlanComment, _digest
from handler.model.errors import Busy, GitUnavailable, NewerHead
from handler.model.pull_request import HostComment
from handler.state.record_values import MOST_PULL_REQUESTS, RecordedPullRequest
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import NAMESPACE, TOOLING, blank

pytestmark = pytest.mark.slow


class Comments:
    """The comments of one host; it writes lines ends as it likes."""

    def __init__(self) -> None:
        self.found: dict[str, HostComment] = {}
        self.writes = 0
        self.meets: list[Callable[[], None]] = []
        self.after: list[Callable[[], None]] = []

    def comment(self, _number: int, comment: str) -> HostComment | None:
        return self.found.get(comment)

    def add_comment(self, _number: int, text: str) -> HostComment:
        self._meet()
        return self._put(str(len(self.found) + 1), text)

    def edit_comment(self, _number: int, comment: str, text: str) -> HostComment | None:
        self._meet()
        return self._put(comment, text) if comment in self.found else None

    def _meet(self) -> None:
        if self.meets:
            self.meets.pop()()

    def _put(self, comment: str, text: str) -> HostComment:
        self.writes += 1
        made = self.found[comment] = HostComment(comment, "robot", text.replace("\n", "\r\n") + "\n")
        if self.after:
            self.after.pop()()
        return made


@pytest.fixture
def comments() -> Comments:
    return Comments()


@pytest.fixture
def store() -> StateStore:
    return StateStore(FakeObjects(), NAMESPACE, "shop", "default", TOOLING)


@pytest.fixture
def ours(comments: Comments, store: StateStore) -> Callable[[int], PlanComment]:
    return lambda number: PlanComment(comments, store, blank, number)  # type: ignore[arg-type]  # the part of a host that is asked


Ours = Callable[[int], PlanComment]


def said(text: str) -> Callable[[bool], str]:
    return lambda edited: f"{'edited: ' if edited else ''}{text}"


def test_a_comment_is_posted_once_and_edited_in_place(ours: Ours, comments: Comments) -> None:
    for text in ("one\ntwo", "one\ntwo", "three"):
        ours(12).show(said(text))
    assert [each.text.strip() for each in comments.found.values()] == ["three"]
    assert comments.writes == 2


def test_a_record_that_names_anothers_comment_changes_nothing_of_that(ours: Ours, comments: Comments) -> None:
    """All that a record knows of a comment can be read off it, and written into the record."""
    mine = replace(ours(12), begins="### Anneal: ")
    mine.show(said("### Anneal: one"))
    theirs = comments.add_comment(12, "Please don't merge.")
    forged = RecordedPullRequest(12, theirs.id, theirs.author, _digest(theirs.text))
    mine.store.update(lambda state: replace(state, pull_requests=(forged,)))
    mine.show(said("### Anneal: two"))
    assert comments.found[theirs.id] == theirs
    assert comments.found["3"].text.strip() == "edited: ### Anneal: two"


@pytest.mark.parametrize("text", ["anything else", "one\ntwo and more"])
def test_a_comment_that_others_changed_is_posted_anew_and_says_so(ours: Ours, comments: Comments, text: str) -> None:
    ours(12).show(said("one\ntwo"))
    comments.found["1"] = replace(comments.found["1"], text=text)
    ours(12).show(said("three"))
    assert [each.text.strip() for each in comments.found.values()] == [text, "edited: three"]
    ours(12).show(said("four"))
    assert [each.text.strip() for each in comments.found.values()] == [text, "four"]


def test_a_comment_that_is_gone_is_posted_anew(ours: Ours, comments: Comments) -> None:
    ours(12).show(said("one"))
    comments.found.clear()
    ours(12).show(said("two"))
    assert [each.text.strip() for each in comments.found.values()] == ["edited: two"]


def test_a_comment_of_another_account_under_our_id_is_not_ours(ours: Ours, comments: Comments) -> None:
    ours(12).show(said("one"))
    comments.found["1"] = replace(comments.found["1"], author="eve")
    ours(12).show(said("two"))
    assert comments.found["1"].text.strip() == "one"


def kept(store: StateStore) -> list[int]:
    state = store.read().state
    assert state is not None
    return [each.number for each in state.pull_requests]


def test_a_closed_pull_request_is_forgotten_first_and_keeps_its_comment(ours: Ours, comments: Comments, store: StateStore) -> None:
    for number in (11, 12, 13):
        ours(number).show(said(str(number)))
    ours(13).closed(gone=False)
    assert kept(store) == [12, 11, 13]
    ours(13).show(said("reopened"))
    assert kept(store) == [13, 12, 11]
    ours(12).closed(gone=True)
    ours(99).closed(gone=False)
    assert kept(store) == [13, 11]
    assert [each.text.strip() for each in comments.found.values()] == ["11", "12", "reopened"]


@pytest.mark.parametrize("is_posted", [False, True])
def test_of_two_servers_one_writes_the_comment_and_the_other_comes_again(ours: Ours, comments: Comments, is_posted: bool) -> None:
    if is_posted:
        ours(12).show(said("one"))

    def meanwhile() -> None:
        with pytest.raises(Busy, match="written by another server"):
            ours(12).show(said("the other's"))

    comments.meets = [meanwhile]
    ours(12).show(said("two"))
    ours(12).show(said("the other's"))
    assert [each.text.strip() for each in comments.found.values()] == ["the other's"]


def test_what_another_server_has_written_since_it_was_looked_at_is_not_written_over(ours: Ours, comments: Comments) -> None:
    def meanwhile(_edited: bool) -> str:
        ours(12).show(said("newer"))
        return "older"

    with pytest.raises(Busy):
        ours(12).show(meanwhile)
    assert [each.text.strip() for each in comments.found.values()] == ["newer"]


def test_a_writer_that_died_holds_up_the_next_one_for_a_while_only(ours: Ours, comments: Comments, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def killed() -> None:
        raise Killed

    ours(12).show(said("one"))
    comments.meets = [killed]
    with pytest.raises(Killed):
        ours(12).show(said("two"))
    with pytest.raises(Busy):
        ours(12).show(said("two"))
    later = time.time() + comment_post.WRITING + 1
    monkeypatch.setattr("handler.app.pull_requests.comment_post.time.time", lambda: later)
    ours(12).show(said("two"))
    assert [each.text.strip() for each in comments.found.values()] == ["two"]


def lost() -> None:
    raise GitUnavailable.of("API", "took longer than 15 s")


def test_an_edit_whose_answer_was_lost_is_ours_when_it_is_seen_again(ours: Ours, comments: Comments) -> None:
    ours(12).show(said("one"))
    comments.after = [lost]
    with pytest.raises(GitUnavailable):
        ours(12).show(said("two"))
    ours(12).show(said("two"))
    ours(12).show(said("three"))
    assert [each.text.strip() for each in comments.found.values()] == ["three"]


def test_an_edit_that_didnt_arrive_is_tried_again(ours: Ours, comments: Comments) -> None:
    ours(12).show(said("one"))
    comments.meets = [lost]
    with pytest.raises(GitUnavailable):
        ours(12).show(said("two"))
    ours(12).show(said("two"))
    assert [each.text.strip() for each in comments.found.values()] == ["two"]


def test_a_first_comment_whose_answer_was_lost_isnt_posted_again_at_once(ours: Ours, comments: Comments) -> None:
    comments.after = [lost]
    with pytest.raises(GitUnavailable):
        ours(12).show(said("one"))
    for _ in range(3):
        with pytest.raises(Busy):
            ours(12).show(said("one"))
    assert len(comments.found) == 1


@pytest.mark.parametrize("posted", [False, True])
def test_what_may_not_be_posted_holds_up_nothing_and_loses_nothing(ours: Ours, comments: Comments, posted: bool) -> None:
    def refused(_edited: bool) -> str:
        raise NewerHead.of("pull request 12", "has changed")

    if posted:
        ours(12).show(said("one"))
    with pytest.raises(NewerHead):
        ours(12).show(refused)
    ours(12).show(said("two"))
    assert [each.text.strip() for each in comments.found.values()] == ["two"]


def test_a_writer_that_came_back_too_late_leaves_the_note_of_the_next_one(
    ours: Ours, comments: Comments, store: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late() -> None:
        later = time.time() + comment_post.WRITING + 1
        with monkeypatch.context() as patch:
            patch.setattr("handler.app.pull_requests.comment_post.time.time", lambda: later)
            ours(12).show(said("the next one's"))

    comments.meets = [late]
    ours(12).show(said("mine"))
    state = store.read().state
    assert state is not None
    assert [(each.comment, each.writer) for each in state.pull_requests] == [("1", "")]


def test_a_record_keeps_the_comments_of_so_many_pull_requests(ours: Ours, store: StateStore) -> None:
    for number in range(MOST_PULL_REQUESTS + 3):
        ours(number + 1).show(said("text"))
    state = store.read().state
    assert state is not None
    assert len(state.pull_requests) == MOST_PULL_REQUESTS
    assert state.pull_requests[0].number == MOST_PULL_REQUESTS + 3


@pytest.mark.parametrize("since", ["2999-01-01T00:00:00Z", ""])
def test_a_writer_that_began_at_no_time_that_can_be_hinders_no_one(ours: Ours, comments: Comments, since: str) -> None:
    ours(12).show(said("one"))
    ours(12).store.update(lambda state: replace(state, pull_requests=(RecordedPullRequest(12, writer="x", since=since),)))
    ours(12).show(said("two"))
    assert comments.writes == 2
