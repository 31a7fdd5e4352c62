"""The made-up Bitbucket Cloud against developer.atlassian.com/cloud/bitbucket/rest, over HTTP.

The words of refusals are Bitbucket's: what its users have quoted in public.
"""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.fakes.git_hosts.bitbucket import Bitbucket
from tests.fakes.git_hosts.exchange import Comment, Grant, PullRequest
from tests.fakes.git_hosts.served_host import TOKEN
from tests.rooms.feedback.host_client import OTHER, SHA, Client

BUILD = f"repositories/acme/shop/commit/{SHA}/statuses/build"
COMMENTS = "repositories/acme/shop/pullrequests/7/comments"
GOOD = {"key": "anneal/shop", "state": "INPROGRESS", "url": "https://anneal.example.com/shop", "description": "Planned", "name": "anneal"}


@pytest.fixture
def client(bitbucket: Bitbucket) -> Client:
    bitbucket.commits = {SHA, OTHER}
    bitbucket.pull_requests[7] = PullRequest(7, SHA, OTHER)
    return Client(bitbucket)


# rest/api-group-commit-statuses: "If the specified key already exists, the existing status object will be overwritten."
def test_a_status_of_a_key_is_overwritten(bitbucket: Bitbucket, client: Client) -> None:
    assert client("POST", BUILD, GOOD).status == 201
    assert client("POST", BUILD, {**GOOD, "state": "SUCCESSFUL"}).status == 201
    found = client("GET", f"{BUILD}/anneal%2Fshop")
    assert (found.status, found.body["state"], found.body["description"]) == (200, "SUCCESSFUL", "Planned")
    assert client("PUT", f"{BUILD}/anneal%2Fshop", {"state": "STOPPED", "refname": "feature"}).body["refname"] == "feature"
    assert [each["state"] for each in bitbucket.statuses[SHA]] == ["STOPPED"]
    assert client("PUT", f"{BUILD}/anneal%2Fshop", {"key": "another"}).body["error"]["fields"] == {"key": ["The key cannot be changed."]}
    assert {client("GET", f"{BUILD}/other").status, client("PUT", f"{BUILD}/other", {"state": "FAILED"}).status} == {404}


def test_a_commit_may_be_abbreviated_and_must_be_there(bitbucket: Bitbucket, client: Client) -> None:
    assert client("POST", BUILD.replace(SHA, SHA[:12]), GOOD).status == 201
    assert len(bitbucket.statuses[SHA]) == 1
    assert client("POST", BUILD.replace(SHA, "0" * 40), GOOD).status == 404
    assert client("POST", BUILD.replace("shop", "other"), GOOD).status == 404


def test_statuses_are_listed_by_pages(client: Client) -> None:
    for number in range(3):
        client("POST", BUILD, {**GOOD, "key": str(number)})
    first = client("GET", f"repositories/acme/shop/commit/{SHA}/statuses", query={"pagelen": "2"})
    assert ([each["key"] for each in first.body["values"]], first.body["size"]) == (["0", "1"], 3)
    second = client("GET", first.body["next"].partition("/2.0/")[2])
    assert ([each["key"] for each in second.body["values"]], "next" in second.body) == (["2"], False)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"key": "x" * 41}, "Ensure this value has at most 40 characters (it has 41)."),
        ({"description": "x" * 256}, "Ensure this value has at most 255 characters (it has 256)."),
        ({"url": "/shop"}, "Enter a valid URL."),
        ({"url": "http://anneal:8080/shop"}, "Enter a valid URL."),
        ({"state": "CANCELLED"}, "Select a valid choice. CANCELLED is not one of the available choices."),
    ],
)
def test_a_status_outside_of_the_bounds_is_refused(bitbucket: Bitbucket, client: Client, change: dict[str, Any], words: str) -> None:
    answer = client("POST", BUILD, {**GOOD, **change})
    (name,) = change
    assert (answer.status, answer.body["error"]) == (400, {"fields": {name: [words]}, "message": f"{name}: {words}"})
    assert [each.split(": ")[1] for each in bitbucket.meant()] == [f"$.{name}"]
    assert bitbucket.statuses == {}


def test_a_key_of_40_characters_is_taken(client: Client) -> None:
    assert client("POST", BUILD, {**GOOD, "key": "x" * 40, "url": "http://localhost:8080/{repository.full_name}"}).status == 201


@pytest.mark.parametrize("name", ["key", "state", "url"])
def test_a_status_needs_three_fields(bitbucket: Bitbucket, client: Client, name: str) -> None:
    answer = client("POST", BUILD, {key: value for key, value in GOOD.items() if key != name})
    assert (answer.status, answer.body["error"]["fields"]) == (400, {name: ["This field is required."]})
    assert len(bitbucket.meant()) == 1


def test_a_pull_request_says_what_is_merged_into_what(bitbucket: Bitbucket, client: Client) -> None:
    bitbucket.pull_requests[8] = PullRequest(8, OTHER, SHA, draft=True, fork=True, state="closed")
    plain, forked = (client("GET", f"repositories/acme/shop/pullrequests/{number}").body for number in (7, 8))
    assert (plain["id"], plain["state"], plain["draft"], plain["source"]["commit"]["hash"]) == (7, "OPEN", False, SHA[:12])
    assert plain["destination"]["commit"]["hash"] == OTHER[:12]
    assert (forked["state"], forked["draft"], forked["source"]["repository"]["full_name"]) == ("DECLINED", True, "ada/shop")
    assert client("GET", "repositories/acme/shop/pullrequests/9").status == 404


def test_a_comment_is_written_changed_and_deleted(bitbucket: Bitbucket, client: Client) -> None:
    made = client("POST", COMMENTS, {"content": {"raw": "A plan"}})
    place = f"{COMMENTS}/{made.body['id']}"
    assert (made.status, made.body["pullrequest"]["id"], made.body["user"]["account_id"]) == (201, 7, "anneal")
    assert client("PUT", place, {"content": {"raw": "Another plan"}}).body["content"]["raw"] == "Another plan"
    assert [each["content"]["raw"] for each in client("GET", COMMENTS).body["values"]] == ["Another plan"]
    assert client("DELETE", place).status == 204
    gone = client("GET", place)
    assert (gone.status, gone.body["deleted"], gone.body["content"]["raw"]) == (200, True, "")
    assert client("PUT", place, {"content": {"raw": "x"}}).status == 404
    bitbucket.comments[90] = Comment(90, 7, "Theirs", "ben")
    assert client("DELETE", f"{COMMENTS}/90").status == 403


def test_a_comment_has_a_text_that_is_not_too_long(bitbucket: Bitbucket, client: Client) -> None:
    assert client("POST", COMMENTS, {"content": {"raw": "x" * 32_768}}).status == 201
    answer = client("POST", COMMENTS, {"content": {"raw": "x" * 32_769}})
    assert (answer.status, answer.body) == (400, None)
    assert client("POST", COMMENTS, {"content": {}}).body["error"]["fields"] == {"content.raw": ["This field is required."]}
    assert client("POST", COMMENTS, {"raw": "A plan"}).body["error"]["fields"] == {"content": ["This field is required."]}
    assert len(bitbucket.meant()) == 4


def test_commits_have_a_merge_base(bitbucket: Bitbucket, client: Client) -> None:
    place = f"repositories/acme/shop/merge-base/{SHA[:12]}..{OTHER}"
    assert client("GET", place).status == 404
    bitbucket.merge_bases[SHA, OTHER] = OTHER
    assert client("GET", place).body["hash"] == OTHER


# rest/api-group-repositories: "Returns the explicit user permission"; rest/api-group-workspaces: "effective permissions".
def test_permissions_are_explicit_or_effective(bitbucket: Bitbucket, client: Client) -> None:
    bitbucket.users = {"ada": "write", "ben": "admin", "eve": "read"}
    bitbucket.by_group = {"ben"}
    config, effective = "repositories/acme/shop/permissions-config/users", "workspaces/acme/permissions/repositories/shop"
    assert [client("GET", f"{config}/{name}").body["permission"] for name in ("ada", "ben")] == ["write", "none"]
    (found,) = client("GET", effective, query={"q": 'user.account_id="ben"'}).body["values"]
    assert (found["permission"], found["user"]["account_id"]) == ("admin", "ben")
    assert client("GET", effective, query={"q": 'permission>"read"'}).body["size"] == 2
    client("GET", effective, query={"q": 'user.name="ben"'})
    assert "a filter" in bitbucket.meant()[0]
    bitbucket.administrators = set()
    assert {client("GET", f"{config}/ada").status, client("GET", effective).status} == {403}


def test_tokens_have_scopes(bitbucket: Bitbucket, client: Client) -> None:
    bitbucket.tokens["narrow"] = Grant("anneal", frozenset({"repository"}))
    narrow = Client(bitbucket, {"Authorization": "Basic " + base64.b64encode(b"anneal@example.com:narrow").decode()})
    assert narrow("POST", BUILD, GOOD).status == 201
    answer = narrow("POST", COMMENTS, {"content": {"raw": "A plan"}})
    assert (answer.status, answer.body["error"]["detail"]) == (403, {"granted": ["repository"], "required": ["pullrequest"]})
    assert Client(bitbucket, {"Authorization": "Bearer no-such"})("GET", f"{BUILD}/x").status == 401
    assert Client(bitbucket, {"Authorization": "Basic " + base64.b64encode(f"x:{TOKEN}".encode()).decode()})("GET", COMMENTS).status == 200


def test_it_may_want_to_be_left_alone(bitbucket: Bitbucket, client: Client) -> None:
    bitbucket.limited = 17
    answer = client("GET", COMMENTS)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "17")


def test_a_field_that_is_not_known_is_noted(bitbucket: Bitbucket, client: Client) -> None:
    assert client("POST", BUILD, {**GOOD, "target_url": "x"}).status == 201
    assert "'target_url' was unexpected" in bitbucket.meant()[0]
