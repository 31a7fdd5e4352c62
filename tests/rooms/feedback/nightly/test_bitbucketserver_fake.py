"""The made-up Bitbucket Data Center against developer.atlassian.com/server/bitbucket/rest, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.git_hosts.bitbucketserver import BitbucketServer
from tests.fakes.git_hosts.exchange import Comment, Grant, PullRequest
from tests.rooms.feedback.host_client import OTHER, SHA, Client

REPOSITORY = "projects/ACME/repos/shop"
BUILDS = f"{REPOSITORY}/commits/{SHA}/builds"
COMMENTS = f"{REPOSITORY}/pull-requests/7/comments"
GOOD = {"key": "anneal/shop", "state": "INPROGRESS", "url": "https://anneal.example.com/shop", "description": "Planned", "name": "anneal"}


@pytest.fixture
def client(bitbucketserver: BitbucketServer) -> Client:
    bitbucketserver.commits = {SHA, OTHER}
    bitbucketserver.pull_requests[7] = PullRequest(7, SHA, OTHER)
    return Client(bitbucketserver)


def test_a_status_of_a_key_is_replaced(bitbucketserver: BitbucketServer, client: Client) -> None:
    assert client("POST", BUILDS, GOOD).status == 204
    assert client("POST", BUILDS, {**GOOD, "state": "CANCELLED"}).status == 204
    assert client("GET", BUILDS, query={"key": "anneal/shop"}).body == {**GOOD, "state": "CANCELLED"}
    assert [each["state"] for each in bitbucketserver.statuses[SHA]] == ["CANCELLED"]
    assert client("GET", BUILDS, query={"key": "other"}).status == 404
    assert client("POST", BUILDS.replace(SHA, "0" * 40), GOOD).body["errors"][0]["exceptionName"].endswith("NoSuchCommitException")
    assert client("POST", BUILDS.replace("shop", "other"), GOOD).status == 404


# developer.atlassian.com/server/bitbucket/reference/api-changelog: 8.0 added the build states CANCELLED and UNKNOWN.
def test_an_old_server_knows_fewer_states_and_operations(bitbucketserver: BitbucketServer, client: Client) -> None:
    bitbucketserver.version = (7, 21)
    assert client("POST", BUILDS, {**GOOD, "state": "UNKNOWN"}).status == 400
    assert client("POST", BUILDS, GOOD).status == 204
    bitbucketserver.version = (7, 4)
    assert client("GET", BUILDS, query={"key": "anneal/shop"}).status == 404
    bitbucketserver.version = (7, 3)
    assert client("POST", BUILDS, GOOD).status == 404
    legacy = f"/rest/build-status/1.0/commits/{SHA}"
    assert client("POST", legacy, {**GOOD, "key": "old"}).status == 204
    assert [each["key"] for each in client("GET", legacy).body["values"]] == ["old", "anneal/shop"]


# Builds and Deployments: "build key was blank or longer than 255 characters", "build status url was blank or longer than 450 characters".
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": "x" * 256}, "Please specify a valid key"),
        ({"key": ""}, "Please specify a valid key"),
        ({"url": "https://" + "x" * 443}, "Please specify a valid url"),
        ({"url": "/shop"}, "Please specify a valid url"),
        ({"state": "STOPPED"}, "Please specify a valid state"),
        ({"ref": "main"}, "Please specify a valid ref"),
    ],
)
def test_a_status_outside_of_the_bounds_is_refused(
    bitbucketserver: BitbucketServer, client: Client, change: dict[str, Any], words: str
) -> None:
    answer = client("POST", BUILDS, {**GOOD, **change})
    assert (answer.status, answer.body["errors"][0]["message"]) == (400, words)
    assert len(bitbucketserver.meant()) == 1
    assert bitbucketserver.statuses == {}


@pytest.mark.parametrize("name", ["key", "state", "url"])
def test_a_status_needs_three_fields(bitbucketserver: BitbucketServer, client: Client, name: str) -> None:
    answer = client("POST", BUILDS, {key: value for key, value in GOOD.items() if key != name})
    assert (answer.status, answer.body["errors"][0]["context"]) == (400, name)
    assert len(bitbucketserver.meant()) == 1


# build-status: "All fields (mandatory or optional) are limited to 255 characters, except for the url".
def test_a_status_of_the_old_kind_has_a_short_description(bitbucketserver: BitbucketServer, client: Client) -> None:
    legacy = f"/rest/build-status/1.0/commits/{SHA}"
    assert client("POST", legacy, {**GOOD, "description": "x" * 256}).status == 400
    assert client("POST", BUILDS, {**GOOD, "description": "x" * 256}).status == 204
    assert len(bitbucketserver.meant()) == 1


def test_a_pull_request_says_what_is_merged_into_what(bitbucketserver: BitbucketServer, client: Client) -> None:
    bitbucketserver.pull_requests[8] = PullRequest(8, OTHER, SHA, draft=True, fork=True, state="merged")
    plain, forked = (client("GET", f"{REPOSITORY}/pull-requests/{number}").body for number in (7, 8))
    assert (plain["id"], plain["state"], plain["draft"], plain["fromRef"]["latestCommit"]) == (7, "OPEN", False, SHA)
    assert (plain["toRef"]["id"], plain["toRef"]["latestCommit"]) == ("refs/heads/main", OTHER)
    assert (forked["state"], forked["draft"]) == ("MERGED", True)
    assert forked["fromRef"]["repository"]["id"] != forked["toRef"]["repository"]["id"]
    assert client("GET", f"{REPOSITORY}/pull-requests/9").status == 404


# Pull Requests: the version "must match the server's version of the comment or the update will fail"; 409.
def test_a_comment_is_changed_and_deleted_by_its_version(bitbucketserver: BitbucketServer, client: Client) -> None:
    made = client("POST", COMMENTS, {"text": "A plan"})
    place = f"{COMMENTS}/{made.body['id']}"
    assert (made.status, made.body["version"]) == (201, 0)
    assert client("PUT", place, {"text": "Another plan", "version": 0}).body["version"] == 1
    late = client("PUT", place, {"text": "A third", "version": 0})
    error = late.body["errors"][0]
    assert (late.status, error["exceptionName"].rpartition(".")[2]) == (409, "CommentOutOfDateException")
    assert (error["currentVersion"], error["expectedVersion"]) == (1, 0)
    assert client("DELETE", place, query={"version": "0"}).status == 409
    assert client("GET", place).body["text"] == "Another plan"
    assert client("DELETE", place, query={"version": "1"}).status == 204
    assert client("GET", place).status == 404


def test_a_version_left_out_is_an_old_one(bitbucketserver: BitbucketServer, client: Client) -> None:
    place = f"{COMMENTS}/{client('POST', COMMENTS, {'text': 'A plan'}).body['id']}"
    assert client("PUT", place, {"text": "Another"}).body["errors"][0]["expectedVersion"] == -1
    assert client("DELETE", place).status == 409
    assert len(bitbucketserver.meant()) == 2


# What users have quoted: "Please enter a non-empty value less than 32768 characters".
@pytest.mark.parametrize("text", ["", "x" * 32_768])
def test_a_comment_has_a_text_that_is_not_too_long(bitbucketserver: BitbucketServer, client: Client, text: str) -> None:
    assert client("POST", COMMENTS, {"text": "x" * 32_767}).status == 201
    answer = client("POST", COMMENTS, {"text": text})
    assert answer.status == 400
    words = "Please enter a non-empty value less than 32768 characters"
    assert answer.body == {"errors": [{"context": "text", "message": words, "exceptionName": None}]}
    assert len(bitbucketserver.meant()) == 1


def test_the_comment_of_another_is_not_ours_to_change(bitbucketserver: BitbucketServer, client: Client) -> None:
    bitbucketserver.comments[90] = Comment(90, 7, "Theirs", "ben")
    assert client("PUT", f"{COMMENTS}/90", {"text": "x", "version": 0}).status == 401


def test_comments_are_among_the_activities(client: Client) -> None:
    for text in ("First", "Second"):
        client("POST", COMMENTS, {"text": text})
    assert client("GET", COMMENTS, query={"path": "app.yaml"}).body["values"] == []
    first = client("GET", f"{REPOSITORY}/pull-requests/7/activities", query={"limit": "1"}).body
    assert ([each["comment"]["text"] for each in first["values"]], first["isLastPage"], first["nextPageStart"]) == (["Second"], False, 1)
    second = client("GET", f"{REPOSITORY}/pull-requests/7/activities", query={"limit": "1", "start": "1"}).body
    assert ([each["comment"]["text"] for each in second["values"]], second["isLastPage"]) == (["First"], True)


def test_commits_have_a_merge_base(bitbucketserver: BitbucketServer, client: Client) -> None:
    place = f"{REPOSITORY}/commits/{SHA}/merge-base"
    assert client("GET", place, query={"otherCommitId": OTHER}).status == 204
    bitbucketserver.merge_bases[SHA, OTHER] = OTHER
    assert client("GET", place, query={"otherCommitId": OTHER}).body["id"] == OTHER
    assert client("GET", f"{REPOSITORY}/pull-requests/7/merge-base").body["id"] == OTHER
    assert client("GET", place, query={"otherCommitId": "0" * 40}).status == 404


def test_only_an_administrator_may_list_permissions(bitbucketserver: BitbucketServer, client: Client) -> None:
    bitbucketserver.users = {"ada": "REPO_WRITE", "adam": "REPO_READ", "ben": "REPO_ADMIN"}
    bitbucketserver.by_group = {"ben"}
    place = f"{REPOSITORY}/permissions/users"
    answer = client("GET", place)
    assert (answer.status, answer.body["errors"][0]["exceptionName"]) == (401, "com.atlassian.bitbucket.AuthorisationException")
    bitbucketserver.tokens["admin"] = Grant("root", frozenset({"REPO_ADMIN"}))
    found = Client(bitbucketserver, {"Authorization": "Bearer admin"})("GET", place, query={"filter": "ada"}).body["values"]
    assert [(each["user"]["name"], each["permission"]) for each in found] == [("ada", "REPO_WRITE"), ("adam", "REPO_READ")]


# System Maintenance, "Get all users": "Only authenticated users may call this resource", with a filter by permission.
def test_any_user_may_ask_who_may_write(bitbucketserver: BitbucketServer, client: Client) -> None:
    bitbucketserver.users = {"ada": "REPO_WRITE", "adam": "REPO_READ", "ben": "REPO_ADMIN"}
    bitbucketserver.by_group = {"ben"}
    asked = {"permission.1": "REPO_WRITE", "permission.1.projectKey": "ACME", "permission.1.repositorySlug": "shop"}
    assert [each["name"] for each in client("GET", "users", query=asked).body["values"]] == ["ada", "ben"]
    assert [each["name"] for each in client("GET", "users", query={**asked, "filter": "ad"}).body["values"]] == ["ada"]
    assert client("GET", "users", query={**asked, "permission.1.repositorySlug": "other"}).status == 404


def test_an_unknown_token_is_refused(bitbucketserver: BitbucketServer, client: Client) -> None:
    answer = Client(bitbucketserver, {"Authorization": "Bearer no-such"})("GET", f"{REPOSITORY}/pull-requests/7")
    assert (answer.status, "Authentication failed" in answer.text) == (401, True)


def test_what_it_does_not_know_is_noted(bitbucketserver: BitbucketServer, client: Client) -> None:
    assert client("POST", BUILDS, {**GOOD, "target_url": "x"}).status == 204
    assert client("GET", BUILDS).status == 400
    assert client("GET", COMMENTS).status == 400
    assert ["target_url" in each for each in bitbucketserver.meant()] == [True, False, False]


def test_it_may_want_to_be_left_alone(bitbucketserver: BitbucketServer, client: Client) -> None:
    bitbucketserver.limited = 17
    answer = client("GET", f"{REPOSITORY}/pull-requests/7")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "17")
