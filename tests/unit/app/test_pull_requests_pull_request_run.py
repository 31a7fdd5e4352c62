"""One job for a pull request: what is planned, what isn't, what is tried again, and what its host shows then."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from handler.app.pull_requests.pull_request_run import TRIES
from handler.app.pull_requests.target_preview import UNPLANNED
from handler.config.settings import Settings, Target
from handler.engine.planner.desired import CommitSource, Preparer
from handler.model.commit_status import StatusState
from handler.model.errors import AccessDenied, AnnealError, GitUnavailable
from handler.model.host_answer import HostBusy, HostRefusal
from handler.model.pull_request import HostComment
from handler.model.result import Outcome
from tests.fakes.engine import cluster
from tests.unit.app.pull_requests_in_memory import COMMAND, REPOSITORY, Pulls, objects, target

pytestmark = pytest.mark.slow


@pytest.fixture
def pulls() -> Pulls:
    return Pulls.deployed()


def test_a_pull_request_has_one_comment_and_a_status_of_its_head(pulls: Pulls) -> None:
    result = pulls.run()
    assert (result.outcome, result.message, result.again) == (Outcome.PLANNED, "1 to change", None)
    assert "data.key: 1 → 2" in pulls.api.text
    (status,) = pulls.api.statuses
    expected = (pulls.api.found[12].head, "anneal/default/pull-request/plan", StatusState.SUCCESS, "1 to change")
    assert (status.commit, status.context, status.state, status.text) == expected
    pulls.run()
    assert (len(pulls.api.comments), len(pulls.api.statuses)) == (1, 1)
    assert pulls.api.asked.count("edit_comment") == 0


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"is_open": False}, "it is closed"),
        ({"is_draft": True}, "it is a draft"),
        ({"is_fork": True}, "it comes from a fork, and `forks` is off"),
        ({"base": "release"}, "no target follows release"),
    ],
)
def test_what_isnt_planned_says_nothing_on_the_host(pulls: Pulls, facts: dict[str, Any], said: str) -> None:
    pulls.proposes({"shop/web.yaml": objects("2")}, **facts)
    result = pulls.run()
    assert (result.outcome, result.message, result.again) == (Outcome.PLANNED, said, None)
    assert (pulls.api.comments, pulls.api.statuses) == ({}, [])


def test_a_pull_request_that_is_gone_is_closed(pulls: Pulls) -> None:
    pulls.run()
    del pulls.api.found[12]
    assert pulls.run().message == "it is closed"
    state = pulls.handler.store(pulls.handler.target("shop")).read().state
    assert state is not None
    assert state.pull_requests == ()


def test_a_pull_request_that_is_opened_again_keeps_its_comment(pulls: Pulls) -> None:
    pulls.run()
    opened = pulls.api.found[12]
    pulls.api.found[12] = replace(opened, is_open=False)
    pulls.run()
    pulls.api.found[12] = opened
    pulls.proposes({"shop/web.yaml": objects("3")})
    pulls.run()
    assert len(pulls.api.comments) == 1
    assert "data.key: 1 → 3" in pulls.api.text


# --- asked by a comment
@pytest.mark.parametrize(
    ("comment", "is_planned"),
    [
        (COMMAND, True),
        (replace(COMMAND, text=" /anneal plan\r\n"), True),
        (replace(COMMAND, author="eve"), False),
        (replace(COMMAND, text="/anneal plan please"), False),
        (None, False),
    ],
)
@pytest.mark.parametrize("is_draft", [False, True])
def test_only_the_command_of_an_account_that_may_push_plans_and_plans_a_draft(
    pulls: Pulls, comment: HostComment | None, is_planned: bool, is_draft: bool
) -> None:
    pulls.api.comments = {comment.id: comment} if comment else {}
    pulls.proposes({"shop/web.yaml": objects("2")}, is_draft=is_draft)
    pulls.run(comments=("6",))
    assert bool(pulls.api.statuses) is is_planned


def test_a_strangers_comment_plans_no_draft_whose_commits_have_changed(pulls: Pulls) -> None:
    pulls.api.comments = {"6": replace(COMMAND, author="eve")}
    pulls.proposes({"shop/web.yaml": objects("2")}, is_draft=True)
    assert pulls.run(comments=("6",), changed=True).message == "it is a draft"
    pulls.proposes({"shop/web.yaml": objects("2")})
    pulls.run(comments=("6",), changed=True)
    assert pulls.shown == [(StatusState.SUCCESS, "1 to change")]


def test_comments_of_strangers_displace_none_of_an_account_that_may_push(pulls: Pulls) -> None:
    pulls.api.comments = {"6": COMMAND} | {f"e{number}": HostComment(f"e{number}", "eve", COMMAND.text) for number in range(5)}
    pulls.run(comments=("e0", "6", "e1", "e2"))
    assert pulls.shown == [(StatusState.SUCCESS, "1 to change")]


# --- what can't be done
@pytest.mark.parametrize("error", [GitUnavailable.of("API", "down"), HostBusy.until("API", "429", 600.0)])
def test_a_host_that_doesnt_answer_is_asked_again_later_and_later_but_not_for_ever(pulls: Pulls, error: AnnealError) -> None:
    def down(_asked: str) -> None:
        raise error

    pulls.api.meets = down
    began, result = time.time(), pulls.run()
    assert result.again is not None
    assert (result.outcome, result.again.looks) == (Outcome.FAILED, 1)
    pause = result.again_at - began
    assert pause >= (600.0 if isinstance(error, HostBusy) else 15.0)
    assert pulls.run(looks=TRIES).again is None


def test_a_worker_that_stops_leaves_the_plan_and_asks_for_no_other_try(pulls: Pulls) -> None:
    pulls.stop.set()
    result = pulls.run()
    assert (result.outcome, result.code, result.again) == (Outcome.FAILED, "stopping", None)
    assert (pulls.api.comments, pulls.api.statuses) == ({}, [])


def test_a_host_that_refuses_for_good_isnt_asked_again(pulls: Pulls) -> None:
    def refuse(_asked: str) -> None:
        raise AccessDenied.of("API", "401")

    pulls.api.meets = refuse
    result = pulls.run()
    assert (result.outcome, result.again) == (Outcome.FAILED, None)


def test_git_that_doesnt_answer_shows_on_the_head_and_is_asked_again(pulls: Pulls) -> None:
    pulls.git.down = True
    assert pulls.run().again is not None
    assert pulls.shown == [(StatusState.FAILURE, UNPLANNED)]
    pulls.git.down = False
    pulls.run()
    assert pulls.shown[1:] == [(StatusState.SUCCESS, "1 to change")]


def test_a_mistake_of_ours_shows_on_the_head_too(pulls: Pulls, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("metadata")

    monkeypatch.setattr("handler.app.pull_requests.pull_request_run.preview_target", broken)
    with pytest.raises(KeyError):
        pulls.run()
    assert pulls.shown == [(StatusState.FAILURE, UNPLANNED)]


@pytest.mark.parametrize("what", ["add_comment", "post"])
def test_of_status_and_comment_each_is_posted_where_the_other_is_refused(pulls: Pulls, what: str) -> None:
    def meets(asked: str) -> None:
        if asked == what:
            raise HostRefusal.answered("API", "the API answered 403", 403, "Forbidden")

    pulls.api.meets = meets
    result = pulls.run()
    assert (result.outcome, result.code, result.again) == (Outcome.FAILED, "host-refused", None)
    assert (bool(pulls.api.comments), bool(pulls.api.statuses)) == (what == "post", what == "add_comment")


def test_a_head_that_moves_on_while_it_is_planned_gets_no_comment_of_the_old_one(pulls: Pulls) -> None:
    def meets(asked: str) -> None:
        if asked == "post":
            pulls.proposes({"shop/web.yaml": objects("3")})

    pulls.api.meets = meets
    result = pulls.run()
    assert (result.code, pulls.api.comments) == ("newer-head", {})
    assert result.again is not None
    pulls.api.meets = lambda _: None
    pulls.run()
    assert "data.key: 1 → 3" in pulls.api.text


def test_a_fork_is_planned_for_the_targets_whose_repository_says_so() -> None:
    feedback = replace(REPOSITORY.feedback, forks=True) if REPOSITORY.feedback else None
    open_one = target(repository=replace(REPOSITORY, feedback=feedback))
    pulls = Pulls(cluster("shop", "prod"), Settings(targets=(open_one, target("prod"))))
    pulls.deploy()
    pulls.proposes({"shop/web.yaml": objects("2"), "prod/web.yaml": objects("3", "prod")}, is_fork=True)
    pulls.run()
    assert "data.key: 1 → 2" in pulls.api.text
    assert "prod" not in pulls.api.text


def test_another_first_target_goes_on_with_the_comment() -> None:
    pulls = Pulls(cluster("shop", "cart"), Settings(targets=(target("cart"), target())))
    pulls.deploy()
    pulls.proposes({"shop/web.yaml": objects("2")})
    pulls.run(target="cart~12")
    pulls.settings = Settings(targets=(target(), target("cart")))
    pulls.handler = pulls.made()
    pulls.proposes({"shop/web.yaml": objects("3")})
    pulls.run()
    assert len(pulls.api.comments) == 1
    assert "data.key: 1 → 3" in pulls.api.text


def test_a_host_that_wants_a_pause_gets_no_comment_meanwhile(pulls: Pulls) -> None:
    def busy(asked: str) -> None:
        if asked == "post":
            raise HostBusy.until("API", "429", 600.0)

    pulls.api.meets = busy
    result = pulls.run()
    assert result.again is not None
    assert result.again.moment == result.again_at
    assert pulls.api.comments == {}


def test_what_is_planned_when_a_worker_stops_is_shown_and_the_rest_is_said() -> None:
    pulls = Pulls(cluster("shop", "cart"), Settings(targets=(target(), target("cart"))))
    pulls.deploy()
    pulls.proposes({"shop/web.yaml": objects("2"), "cart/web.yaml": objects("3", "cart")})
    known = pulls.handler.preview_preparer

    def stopped(target: Target, source: CommitSource, number: int) -> Preparer:
        pulls.stop.set()
        return known(target, source, number)

    pulls.handler.preview_preparer = stopped  # type: ignore[method-assign]  # as the worker stops meanwhile
    result = pulls.run()
    assert (result.code, result.again) == ("stopping", None)
    assert "data.key: 1 → 2" in pulls.api.text
    assert f"target cart: {UNPLANNED}" in pulls.api.text
