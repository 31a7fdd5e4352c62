"""Deliveries about pull requests: which ask for a plan, and that of a payload only the number and a comment's id are taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.errors import BadPayload
from handler.model.event import Event
from tests.fakes.host_webhooks import SAMPLES, Sample, read
from tests.unit.rows import each_row

BY_NAME = {str(sample): sample for sample in SAMPLES}
PLANNED = [sample for sample in SAMPLES if sample.kind == "pull-request"]
COMMENTS = [sample for sample in PLANNED if sample.comment]
OWN = [sample for sample in PLANNED if not sample.headers]
"""Our own samples: those say 12 wherever the number is."""


def event(sample: Sample, document: Any = None) -> Event:
    body = sample.body if document is None else json.dumps(document).encode()
    return read(sample.provider, body, event=sample.event)


def named(sample: str, **more: Any) -> Event:
    """Read a sample with other top-level keys."""
    found = BY_NAME[sample]
    return event(found, found.document | more)


def inner(sample: str, section: str, **more: Any) -> Event:
    """Read a sample with other keys in a section; one that is None is left out."""
    found, document = BY_NAME[sample], BY_NAME[sample].document
    at = document
    for key in section.split("."):
        at = at[key]
    at |= more
    for key in [key for key, value in more.items() if value is None]:
        del at[key]
    return event(found, document)


NUMBERS = {
    "github": ("github/pull_request-opened", "", "number"),
    "github-comment": ("github/issue_comment-created", "issue", "number"),
    "gitlab": ("gitlab/merge_request-reopen", "object_attributes", "iid"),
    "gitlab-note": ("gitlab/note", "merge_request", "iid"),
    "gitea": ("gitea/pull_request-opened", "", "number"),
    "gitea-comment": ("gitea/issue_comment-created", "issue", "number"),
    "bitbucket": ("bitbucket/cloud-pullrequest-created", "pullrequest", "id"),
    "bitbucket-comment": ("bitbucket/cloud-comment_created", "pullrequest", "id"),
    "bitbucketserver": ("bitbucket/center-pr-opened", "pullRequest", "id"),
    "bitbucketserver-comment": ("bitbucket/center-comment-added", "pullRequest", "id"),
    "azuredevops": ("azuredevops/pullrequest-created-draft", "resource", "pullRequestId"),
    "azuredevops-comment": ("azuredevops/comment", "resource.pullRequest", "pullRequestId"),
}
"""Where each host has the number: a sample, the section in it, the key."""


@each_row("host", NUMBERS)
def test_a_pull_request_without_a_number_is_refused(host: str) -> None:
    name, section, key = NUMBERS[host]
    document = BY_NAME[name].document
    at = document
    for step in filter(None, section.split(".")):
        at = at[step]
    at[key] = 7
    assert event(BY_NAME[name], document).pull_request == 7
    at[key] = 10**9
    with pytest.raises(BadPayload, match=key):
        event(BY_NAME[name], document)
    del at[key]
    with pytest.raises(BadPayload, match=f"{key} is missing"):
        event(BY_NAME[name], document)


IDS = {
    "github": ("github/issue_comment-created", "comment"),
    "gitlab": ("gitlab/note", "object_attributes"),
    "gitea": ("gitea/issue_comment-created", "comment"),
    "bitbucket": ("bitbucket/cloud-comment_created", "comment"),
    "bitbucketserver": ("bitbucket/center-comment-added", "comment"),
    "azuredevops": ("azuredevops/comment", "resource.comment"),
}


@each_row("host", IDS)
@each_row("odd", [None, "6", 10**20 - 1])
def test_a_comment_that_asks_has_an_id_or_is_refused(host: str, odd: object) -> None:
    name, section = IDS[host]
    assert inner(name, section, id=9_007_199_254_740_993).comment.endswith("9007199254740993")
    with pytest.raises(BadPayload, match="id is missing"):
        inner(name, section, id=odd)


TEXTS = {
    "github": ("github/issue_comment-created", "comment", "body"),
    "gitlab": ("gitlab/note", "object_attributes", "note"),
    "gitea": ("gitea/issue_comment-created", "comment", "body"),
    "bitbucket": ("bitbucket/cloud-comment_created", "comment.content", "raw"),
    "bitbucketserver": ("bitbucket/center-comment-added", "comment", "text"),
    "azuredevops": ("azuredevops/comment", "resource.comment", "content"),
}


@each_row("host", TEXTS)
@each_row("said", ["", "/anneal", "/anneal plan shop", "/Anneal plan", "please\n/anneal plan", "/anneal  plan", "x" * 100_000])
def test_a_comment_that_says_anything_else_plans_nothing(host: str, said: str) -> None:
    name, section, key = TEXTS[host]
    found = inner(name, section, **{key: said})
    assert (found.kind, found.pull_request, found.note) == (
        "other",
        0,
        "a comment asks for a plan only when its whole text is `/anneal plan`",
    )


@each_row("host", TEXTS)
def test_space_around_the_command_is_nothing(host: str) -> None:
    name, section, key = TEXTS[host]
    assert inner(name, section, **{key: "\r\n /anneal plan \n"}).comment == BY_NAME[name].comment


@each_row("sample", PLANNED)
def test_of_a_pull_request_nothing_is_taken_but_where_and_which_one_it_is(sample: Sample) -> None:
    found = event(sample)
    taken = Event(found.provider, "pull-request", found.delivery, found.urls, actor=found.actor, pull_request=sample.number)
    assert (found.comment, found) == (sample.comment, Event(**{**_fields(taken), "comment": sample.comment}))
    said = json.dumps(_fields(found))
    assert [word for word in ("main", "more-web", "replicas", "/anneal") if word in said] == []


def _fields(found: Event) -> dict[str, Any]:
    return {name: getattr(found, name) for name in Event.__slots__}


@each_row("sample", OWN)
def test_the_repository_is_the_one_that_it_is_to_be_merged_into(sample: Sample) -> None:
    assert not any("bob" in url for url in event(sample).urls)


@each_row("sample", COMMENTS)
def test_the_author_of_a_comment_is_recorded(sample: Sample) -> None:
    assert event(sample).actor == ("bob@example.com" if sample.provider == "azuredevops" else "bob")


TICKS = "; for plans on pull requests, tick "
ISSUE, OWN_WORDS = "comments ask for something on pull requests alone", "confidential comments and the host's own are not read"
CLOUD = "Created, Updated, Merged, Declined and Comment created"
CENTER = "Opened, Source branch updated, Modified, Merged, Declined and Comment added"
AZURE = "Pull request created, Pull request updated and Pull request commented on"
NOTES = {
    "github/pull_request-labeled": "pull_request labeled events ask for nothing",
    "github/pull_request-edited-title": "pull_request edited events ask for nothing",
    "github/issue_comment-edited": "issue_comment edited events ask for nothing",
    "github/issue_comment-created-issue": ISSUE,
    "github/pull_request_review-submitted": f"pull_request_review events ask for nothing{TICKS}Pull requests and Issue comments",
    "gitlab/merge_request-approved": "merge_request approved events ask for nothing",
    "gitlab/merge_request-update-labels": "merge_request update events ask for nothing",
    "gitlab/merge_request-test": "merge_request test events ask for nothing",
    "gitlab/note-update": "note update events ask for nothing",
    "gitlab/note-commit": ISSUE,
    "gitlab/note-confidential": OWN_WORDS,
    "gitlab/note-system": OWN_WORDS,
    "bitbucket/cloud-pullrequest-approved": f"pullrequest:approved events ask for nothing{TICKS}{CLOUD}",
    "bitbucket/center-pr-reviewer-approved": f"pr:reviewer:approved events ask for nothing{TICKS}{CENTER}",
    "bitbucket/center-pr-modified-title": "edited titles and descriptions ask for nothing",
    "azuredevops/pullrequest-updated-vote": "reviews ask for nothing",
    "azuredevops/pullrequest-merged": f"git.pullrequest.merged events ask for nothing{TICKS}{AZURE}",
    "azuredevops/comment-edited": "edited and deleted comments ask for nothing",
    "azuredevops/comment-system": "the host's own comments are not read",
}


@each_row(("sample", "note"), NOTES.items())
def test_what_plans_nothing_says_why(sample: str, note: str) -> None:
    assert event(BY_NAME[sample]).note == note


@each_row("sample", ["github/pull_request-opened", "github/issue_comment-created", "gitea/pull_request-opened"])
@each_row("action", [None, "Opened", 7])
def test_an_action_that_is_none_is_refused(sample: str, action: object) -> None:
    with pytest.raises(BadPayload, match="action"):
        named(sample, action=action)


@each_row("action", ["labeled", "assigned", "review_requested", "auto_merge_enabled", "milestoned", "locked", "enqueued"])
def test_an_action_that_changes_no_commit_and_no_base_plans_nothing(action: str) -> None:
    assert named("github/pull_request-opened", action=action).kind == named("gitea/pull_request-opened", action=action).kind == "other"


# --- what one host alone does
@pytest.mark.parametrize(
    ("changes", "kind"), [({"title": {"from": "WIP: More web"}}, "pull-request"), ({"body": {"from": "Why"}}, "other")]
)
def test_a_title_says_whether_it_is_a_draft_on_gitea(changes: object, kind: str) -> None:
    assert named("gitea/pull_request-edited-title", changes=changes).kind == kind


def test_a_comment_on_an_issue_is_one_whatever_it_says_on_gitea() -> None:
    assert named("gitea/issue_comment-created", is_pull=False).kind == "other"
    with pytest.raises(BadPayload, match="is_pull"):
        named("gitea/issue_comment-created", is_pull="true")


@each_row("said", ["changed the reviewer list on", "has approved", "is waiting for the author on", "rejected", "voted on"])
@each_row("where", [" pull request 12 (More web)", " the pull request"])
def test_a_review_on_azure_devops_is_known_by_what_is_said_of_it(said: str, where: str) -> None:
    found = named("azuredevops/pullrequest-updated-push", message={"text": f"Ada Approved {said}{where}"})
    assert (found.kind, found.note) == ("other", "reviews ask for nothing")


@pytest.mark.parametrize(
    "message",
    [
        None,
        {},
        {"text": ""},
        {"text": "Ada updated the source branch of pull request 12 (voted on pull request 7)"},
        {"text": "Ada hat den Quellbranch von Pull Request 12 aktualisiert"},
    ],
)
def test_an_update_of_azure_devops_that_may_be_one_of_commits_is_read_as_that(message: object) -> None:
    assert named("azuredevops/pullrequest-updated-push", message=message).pull_request == 12


@pytest.mark.parametrize("resource", [None, {}, {"url": "https://git.example.com/x"}])
def test_a_subscription_that_sends_too_little_of_a_pull_request_is_refused(resource: object) -> None:
    with pytest.raises(BadPayload, match=r"pullRequestId is missing: set the subscription's `Resource details to send` to All"):
        named("azuredevops/pullrequest-updated-push", resource=resource)


@pytest.mark.parametrize("links", [None, {}, {"threads": None}, {"threads": {"href": "https://git.example.com/threads/5/comments/2"}}])
def test_a_comment_on_azure_devops_names_its_thread_or_is_refused(links: object) -> None:
    with pytest.raises(BadPayload, match="names no thread"):
        inner("azuredevops/comment", "resource.comment", _links=links)


def test_who_updated_a_pull_request_azure_devops_does_not_say() -> None:
    assert event(BY_NAME["azuredevops/pullrequest-updated-push"]).actor == ""
    assert event(BY_NAME["azuredevops/pullrequest-created-draft"]).actor == "ada@example.com"


def test_data_center_names_what_was_before_whatever_has_changed() -> None:
    modified = BY_NAME["bitbucket/center-pr-modified-title"].document
    for gone in ({"previousDraft"}, {"previousTarget"}, {"previousDraft", "previousTarget"}):
        left = {key: value for key, value in modified.items() if key not in gone}
        assert event(BY_NAME["bitbucket/center-pr-modified-title"], left).kind == "other"
    with pytest.raises(BadPayload, match="previousDraft"):
        event(BY_NAME["bitbucket/center-pr-modified-title"], modified | {"previousDraft": "no"})


def test_a_pull_request_of_no_repository_is_refused() -> None:
    for sample in ("github/pull_request-opened", "gitea/pull_request-opened", "bitbucket/cloud-pullrequest-created"):
        with pytest.raises(BadPayload, match="names no repository"):
            named(sample, repository={})
    with pytest.raises(BadPayload, match="names no repository"):
        named("gitlab/note", project=None, repository=None)
    with pytest.raises(BadPayload, match="names no repository"):
        inner("bitbucket/center-pr-opened", "pullRequest", toRef=None)
