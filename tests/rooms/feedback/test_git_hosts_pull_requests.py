"""Pull requests on six hosts, the same tests for each: what one is, where it parts, its comments, and who may push."""

from __future__ import annotations

import pytest

from handler.model.errors import AccessDenied
from handler.model.host_answer import HostRefusal
from handler.model.pull_request import PullRequest
from tests.rooms.feedback.tried_hosts import Right, TriedHost

TEXT = "### Plan\n\n- `ConfigMap/shop/a`\n\n<details><summary>more</summary>\n\n```diff\n+ ä: \U0001f680\n```\n\n</details>"


def test_one_of_a_branch_is_what_the_host_says(tried: TriedHost) -> None:
    proposal = tried.propose()
    found = tried.api().pull_request(proposal.number)
    author = tried.person(Right.WRITER)
    assert found == PullRequest(proposal.number, proposal.head, "release/1.x", author)


def test_one_of_a_fork_says_so(tried: TriedHost) -> None:
    proposal = tried.propose(Right.READER, fork=True)
    found = tried.api().pull_request(proposal.number)
    assert (found.head, found.is_fork, found.is_open, found.author) == (proposal.head, True, True, tried.person(Right.READER))


def test_one_of_a_fork_that_is_gone_is_of_a_fork(tried: TriedHost) -> None:
    proposal = tried.propose(Right.READER, fork=True)
    tried.forget_fork(proposal.number)
    found = tried.api().pull_request(proposal.number)
    assert (found.head, found.is_fork) == (proposal.head, True)


def test_a_draft_says_so(tried: TriedHost) -> None:
    proposal = tried.propose(draft=True)
    found = tried.api().pull_request(proposal.number)
    assert (found.is_draft, found.is_open, found.is_fork) == (True, True, False)


def test_a_closed_one_says_so(tried: TriedHost) -> None:
    proposal = tried.propose()
    tried.close(proposal.number)
    assert not tried.api().pull_request(proposal.number).is_open


def test_one_that_is_not_there_is_refused(tried: TriedHost) -> None:
    with pytest.raises(HostRefusal) as refused:
        tried.api().pull_request(4711)
    assert refused.value.status == 404


# --- where two commits part


def test_diverged_commits_have_a_merge_base(tried: TriedHost) -> None:
    proposal = tried.propose()
    assert tried.api().merge_base(proposal.base, proposal.head) == proposal.merge_base


def test_a_commit_is_the_merge_base_of_itself(tried: TriedHost) -> None:
    commit = tried.commit()
    assert tried.api().merge_base(commit, commit) == commit


def test_unrelated_commits_have_none(tried: TriedHost) -> None:
    one, other = tried.commit(), tried.unrelated()
    assert tried.api().merge_base(one, other) == ""


def test_a_commit_that_the_host_has_not_has_no_merge_base(tried: TriedHost) -> None:
    with pytest.raises(HostRefusal):
        tried.api().merge_base(tried.commit(), "9" * 40)


# --- comments


def test_a_comment_is_added_read_edited_and_gone(tried: TriedHost) -> None:
    api, number = tried.api(), tried.propose().number
    added = api.add_comment(number, TEXT)
    assert added.text == TEXT
    assert api.comment(number, added.id) == added
    edited = api.edit_comment(number, added.id, f"{TEXT}\nand more")
    assert edited is not None
    assert (edited.id, edited.author, edited.text) == (added.id, added.author, f"{TEXT}\nand more")
    assert api.comment(number, added.id) == edited
    tried.delete(number, added.id)
    assert (api.comment(number, added.id), api.edit_comment(number, added.id, "again")) == (None, None)


def test_a_comment_may_be_as_long_as_the_row_says(tried: TriedHost) -> None:
    api, number = tried.api(), tried.propose().number
    text = "ä" * api.longest
    assert api.longest <= 65_536
    added = api.add_comment(number, text)
    assert added.text == text
    edited = api.edit_comment(number, added.id, text[:-1])
    assert edited is not None
    assert edited.text == text[:-1]


def test_a_comment_that_is_not_there_is_none(tried: TriedHost) -> None:
    api, number = tried.api(), tried.propose().number
    for comment in ("4711", "4711/1", "", "../7", "7/../../8", "7?x=1", "²"):
        assert (api.comment(number, comment), api.edit_comment(number, comment, "text")) == (None, None)


def test_a_comment_on_another_pull_request_is_none(tried: TriedHost) -> None:
    api, number, other = tried.api(), tried.propose().number, tried.propose().number
    added = api.add_comment(number, "A plan")
    assert (api.comment(other, added.id), api.edit_comment(other, added.id, "text")) == (None, None)
    assert api.comment(number, added.id) == added


def test_a_comment_on_no_pull_request_is_refused(tried: TriedHost) -> None:
    with pytest.raises(HostRefusal) as refused:
        tried.api().add_comment(4711, "A plan")
    assert refused.value.status == 404


# --- who may push


@pytest.mark.parametrize(("right", "may"), [(Right.STRANGER, False), (Right.READER, False), (Right.WRITER, True), (Right.OWNER, True)])
def test_who_may_push_is_asked(tried: TriedHost, right: Right, may: bool) -> None:
    assert tried.api().may_write(tried.person(right)) is (may and tried.tells_rights)


def test_no_such_account_may_push(tried: TriedHost) -> None:
    api = tried.api()
    for author in ("", "no-such-person", "9" * 12, '" OR "', "../ada", "a b", "ä/?#", "[bot]"):
        assert not api.may_write(author)


@pytest.mark.parametrize(("right", "may"), [(Right.READER, False), (Right.WRITER, True)])
def test_the_author_of_a_comment_is_what_is_asked_for(tried: TriedHost, right: Right, may: bool) -> None:
    api, number = tried.api(), tried.propose().number
    said = api.comment(number, tried.say(number, right, "/anneal plan"))
    assert said is not None
    assert (said.text, said.author) == ("/anneal plan", tried.person(right))
    assert api.may_write(said.author) is (may and tried.tells_rights)


def test_the_author_of_a_pull_request_is_what_is_asked_for(tried: TriedHost) -> None:
    api = tried.api()
    assert api.may_write(api.pull_request(tried.propose().number).author) is tried.tells_rights


def test_a_token_that_may_only_read_cannot_comment(tried: TriedHost) -> None:
    api, number = tried.api(tried.reading()), tried.propose().number
    with pytest.raises(AccessDenied) as denied:
        api.add_comment(number, "A plan")
    assert denied.value.problems[0].fix.startswith("let the token ")
