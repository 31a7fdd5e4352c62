"""Our comment on a pull request: edited in place, posted anew where others changed it, found by the record alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.pull_requests.comment_post import PlanComment
from handler.model.pull_request import HostComment
from handler.state.recorded_pull_request import MOST_PULL_REQUESTS
from handler.state.store import StateStore
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import NAMESPACE, TOOLING, blank


class Comments:
    """The comments of one host; it writes lines ends as it likes."""

    def __init__(self) -> None:
        self.found: dict[str, HostComment] = {}
        self.writes = 0

    def comment(self, _number: int, comment: str) -> HostComment | None:
        return self.found.get(comment)

    def add_comment(self, _number: int, text: str) -> HostComment:
        return self._put(str(len(self.found) + 1), text)

    def edit_comment(self, _number: int, comment: str, text: str) -> HostComment | None:
        return self._put(comment, text) if comment in self.found else None

    def _put(self, comment: str, text: str) -> HostComment:
        self.writes += 1
        made = self.found[comment] = HostComment(comment, "robot", text.replace("\n", "\r\n") + "\n")
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


def test_a_closed_pull_request_is_forgotten_and_its_comment_stays(ours: Ours, comments: Comments, store: StateStore) -> None:
    ours(12).show(said("one"))
    ours(13).show(said("two"))
    ours(12).forget()
    state = store.read().state
    assert state is not None
    assert [each.number for each in state.pull_requests] == [13]
    assert len(comments.found) == 2


def test_a_record_keeps_the_comments_of_so_many_pull_requests(ours: Ours, store: StateStore) -> None:
    for number in range(MOST_PULL_REQUESTS + 3):
        ours(number + 1).show(said("text"))
    state = store.read().state
    assert state is not None
    assert len(state.pull_requests) == MOST_PULL_REQUESTS
    assert state.pull_requests[0].number == MOST_PULL_REQUESTS + 3
