"""Commit statuses on six hosts, the same tests for each: what is posted is what the host shows, and what it shows is found again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.feedback.git_hosts import GitHostApi
from handler.model.commit_status import TEXT, CommitStatus, StatusState
from handler.model.errors import AccessDenied, GitUnavailable
from handler.model.host_answer import HostBusy, HostRefusal
from tests.rooms.feedback.tried_hosts import MadeUp, TriedHost, way

CONTEXT = "anneal/blue/shop"
LONG = "anneal/a-long-installation/a-target-whose-name-is-as-long-as-names-may-be"
LINK = "https://anneal.example.com/ui/targets/shop"
NOWHERE = "http://127.0.0.1:1/api"


def status(commit: str, state: StatusState = StatusState.SUCCESS, text: str = "3 created", context: str = CONTEXT) -> CommitStatus:
    return CommitStatus(commit, context, state, text, LINK)


def post(api: GitHostApi, *statuses: CommitStatus) -> None:
    for each in statuses:
        api.post(each)


@pytest.mark.parametrize("state", StatusState)
def test_each_state_is_shown(tried: TriedHost, state: StatusState) -> None:
    api, commit = tried.api(), tried.commit()
    posted = status(commit, state, f"it is {state}")
    assert not api.shows(posted)
    api.post(posted)
    assert tried.shown(commit, CONTEXT) == (tried.states[list(StatusState).index(state)], f"it is {state}", LINK)
    assert api.shows(posted)
    assert not api.shows(replace(posted, text="another text"))


def test_what_is_superseded_is_no_success_and_what_is_pending_no_end(tried: TriedHost) -> None:
    pending, success, failure, held, superseded, untouched = tried.states
    assert success == untouched
    assert len({pending, success, failure, superseded}) == 4
    assert held not in (pending, success)


def test_the_newest_of_a_context_counts(tried: TriedHost) -> None:
    api, commit = tried.api(), tried.commit()
    first, second = status(commit, StatusState.PENDING, "being applied"), status(commit, StatusState.FAILURE, "1 failed")
    other = status(commit, text="of another", context="anneal/green/shop")
    post(api, first, other, second)
    assert (api.shows(first), api.shows(second), api.shows(other)) == (False, True, True)
    third = status(commit, StatusState.SUCCESS, "1 changed")
    post(api, third, replace(other, text="again"))
    assert (api.shows(second), api.shows(third)) == (False, True)
    again = status(commit, StatusState.PENDING, "being applied")
    post(api, again)
    assert (api.shows(third), api.shows(again)) == (False, True)


def test_one_that_has_many_others_after_it_is_found(tried: TriedHost) -> None:
    api, commit = tried.api(), tried.commit()
    mine = status(commit)
    post(api, mine, *(status(commit, context=f"ci/{number}") for number in range(120)))
    assert api.shows(mine)
    assert not api.shows(status(commit, context="anneal/blue/none"))


def test_what_is_posted_twice_is_no_error(tried: TriedHost) -> None:
    api, commit = tried.api(), tried.commit()
    for state in (StatusState.PENDING, StatusState.SUPERSEDED):
        post(api, status(commit, state), status(commit, state))
        assert api.shows(status(commit, state))


@pytest.mark.parametrize("text", ["x" * TEXT, "ä" * TEXT, "\u2713 1 changed", "<b>&amp;</b> {repository.name}"])
def test_a_text_is_shown_whole(tried: TriedHost, text: str) -> None:
    api, commit = tried.api(), tried.commit()
    api.post(status(commit, text=text))
    assert tried.shown(commit, CONTEXT)[1] == text
    assert api.shows(status(commit, text=text))


def test_a_long_context_is_one_of_its_own(tried: TriedHost) -> None:
    api, commit = tried.api(), tried.commit()
    post(api, status(commit, context=LONG), status(commit, StatusState.FAILURE, context=f"{LONG}-2"))
    assert tried.shown(commit, LONG)[0] == tried.states[1]
    assert (api.shows(status(commit, context=LONG)), api.shows(status(commit, StatusState.FAILURE, context=f"{LONG}-2"))) == (True, True)


def test_a_status_needs_no_link(tried: TriedHost) -> None:
    api, commit = tried.api(), tried.commit()
    api.post(replace(status(commit), link=""))
    assert api.shows(status(commit))
    link = tried.shown(commit, CONTEXT)[2]
    assert link == "" or link.endswith(f"/commits/{commit}")


def test_a_commit_that_the_host_has_not_is_refused(tried: TriedHost) -> None:
    api = tried.api()
    assert not api.shows(status("9" * 40))
    with pytest.raises(HostRefusal) as refused:
        api.post(status("9" * 40))
    assert refused.value.status == 422


def test_a_repository_that_the_token_does_not_see_is_another_refusal(tried: TriedHost) -> None:
    api = way(tried.name, tried.url.replace("shop", "commit-shop"), tried.token, tried.api_url)
    assert not api.shows(status("9" * 40))
    with pytest.raises(HostRefusal) as refused:
        api.post(status("9" * 40))
    assert refused.value.status == 404


def test_a_token_that_the_host_does_not_know_is_denied(tried: TriedHost) -> None:
    api, commit = tried.api("0" * 40), tried.commit()
    with pytest.raises(AccessDenied, match=r"signed in by feedback\.token"):
        api.post(status(commit))


def test_a_token_that_may_not_write_says_what_it_lacks(tried: TriedHost) -> None:
    api, commit = tried.api(tried.reading()), tried.commit()
    with pytest.raises(AccessDenied) as denied:
        api.post(status(commit))
    (problem,) = denied.value.problems
    assert problem.fix.startswith("let the token ")
    assert problem.fix.endswith(", or give another one")


def test_a_host_that_does_not_answer_is_unavailable(tried: TriedHost) -> None:
    api, commit = way(tried.name, tried.url, tried.token, NOWHERE), tried.commit()
    with pytest.raises(GitUnavailable) as missed:
        api.post(status(commit))
    assert not isinstance(missed.value, HostBusy)


def test_a_host_that_is_down_is_unavailable_until_it_is_up(made: MadeUp) -> None:
    api, commit = made.api(), made.commit()
    made.host.down = True
    with pytest.raises(GitUnavailable, match="503"):
        api.post(status(commit))
    made.host.down = False
    made.host.stop()
    with pytest.raises(GitUnavailable):
        api.shows(status(commit))
    made.host.start()
    api.post(status(commit))
    assert api.shows(status(commit))


def test_a_host_that_wants_a_pause_gets_it(made: MadeUp) -> None:
    api, commit = made.api(), made.commit()
    made.host.limited = 41
    with pytest.raises(HostBusy) as busy:
        api.post(status(commit))
    assert busy.value.pause == 41
