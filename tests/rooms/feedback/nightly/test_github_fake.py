"""The made-up GitHub against GitHub's description and docs.github.com/rest, over HTTP.

The words of refusals are GitHub's: what its users have quoted in public, by the page that names the limit.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jwt
import pytest
import urllib3

from tests.fakes.git_hosts.exchange import Grant, PullRequest
from tests.fakes.git_hosts.github import GitHub
from tests.rooms.feedback.host_client import OTHER, SHA, Client
from tests.rooms.source.github_api import APP, INSTALLATION, GitHubApi

STATUSES = f"repos/acme/shop/statuses/{SHA}"
LISTED = f"repos/acme/shop/commits/{SHA}/statuses"
GOOD = {"state": "success", "context": "anneal/shop", "description": "Applied", "target_url": "https://anneal.example.com/shop"}


@pytest.fixture
def client(github: GitHub) -> Client:
    github.commits = {SHA, OTHER}
    github.pull_requests[7] = PullRequest(7, SHA, OTHER)
    return Client(github)


def test_a_status_is_shown_newest_first(github: GitHub, client: Client) -> None:
    created = client("POST", STATUSES, GOOD)
    assert (created.status, created.body["creator"]["login"]) == (201, "anneal")
    client("POST", STATUSES, {"state": "failure", "context": "Anneal/shop"})
    listed = client("GET", LISTED)
    assert [each["state"] for each in listed.body] == ["failure", "success"]
    assert [each["state"] for each in github.statuses[SHA]] == ["success", "failure"]
    assert listed.body[1]["description"] == "Applied"


def test_a_status_without_a_context_is_the_default_one(github: GitHub, client: Client) -> None:
    assert client("POST", STATUSES, {"state": "pending"}).body["context"] == "default"


# docs.github.com/rest/commits/statuses: "there is a limit of 1000 statuses per sha and context"; contexts are case-insensitive.
def test_a_commit_takes_a_thousand_statuses_of_a_context(github: GitHub, client: Client) -> None:
    client("POST", STATUSES, GOOD)
    github.statuses[SHA] *= 1000
    answer = client("POST", STATUSES, {**GOOD, "context": "ANNEAL/shop"})
    assert answer.status == 422
    assert answer.body["message"] == "Validation Failed"
    (error,) = answer.body["errors"]
    assert error == {"resource": "Status", "code": "custom", "message": "This SHA and context has reached the maximum number of statuses."}
    assert client("POST", STATUSES, {**GOOD, "context": "another"}).status == 201


@pytest.mark.parametrize("sha", ["0" * 40, SHA[:12]])
def test_a_commit_must_be_there_by_its_full_name(client: Client, sha: str) -> None:
    answer = client("POST", f"repos/acme/shop/statuses/{sha}", GOOD)
    assert (answer.status, answer.body["message"]) == (422, f"No commit found for SHA: {sha}")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"description": "x" * 141}, "description is too long (maximum is 140 characters)"),
        ({"description": "gone \U0001f680"}, "description contains unicode characters above 0xffff"),
        ({"target_url": "ftp://anneal.example.com"}, "target_url must use http(s) scheme"),
        ({"state": "running"}, "state is not included in the list"),
    ],
)
def test_a_status_outside_of_the_bounds_is_refused(github: GitHub, client: Client, change: dict[str, str], words: str) -> None:
    answer = client("POST", STATUSES, {**GOOD, **change})
    (name,) = change
    assert answer.status == 422
    assert answer.body["errors"] == [{"resource": "Status", "code": "custom", "field": name, "message": words}]
    assert [each.split(": ")[1] for each in github.meant()] == [f"$.{name}"]
    assert github.statuses == {}


def test_a_description_of_140_characters_is_taken(client: Client) -> None:
    assert client("POST", STATUSES, {**GOOD, "description": "ä" * 140}).status == 201


def test_a_status_has_a_state(github: GitHub, client: Client) -> None:
    answer = client("POST", STATUSES, {"context": "anneal"})
    assert (answer.status, answer.body["message"]) == (422, 'Invalid request.\n\n"state" wasn\'t supplied.')
    assert github.meant() == [f"POST /{STATUSES}: $: 'state' is a required property"]


def test_a_field_that_github_does_not_know_is_ignored_and_noted(github: GitHub, client: Client) -> None:
    assert client("POST", STATUSES, {**GOOD, "targetUrl": "x"}).status == 201
    assert "'targetUrl' was unexpected" in github.meant()[0]


def test_pages_are_named_by_a_link(github: GitHub, client: Client) -> None:
    for number in range(5):
        client("POST", STATUSES, {**GOOD, "description": str(number)})
    first = client("GET", LISTED, query={"per_page": "2"})
    assert [each["description"] for each in first.body] == ["4", "3"]
    url = first.headers["Link"].partition(">")[0].lstrip("<")
    second = client("GET", url.removeprefix(f"{github.url}/"))
    assert [each["description"] for each in second.body] == ["2", "1"]
    last = client("GET", LISTED, query={"per_page": "2", "page": "3"})
    assert ([each["description"] for each in last.body], "Link" in last.headers) == (["0"], False)


def test_a_pull_request_says_what_is_merged_into_what(github: GitHub, client: Client) -> None:
    github.pull_requests[8] = PullRequest(8, OTHER, SHA, draft=True, fork=True, state="merged")
    plain, forked = (client("GET", f"repos/acme/shop/pulls/{number}").body for number in (7, 8))
    assert (plain["number"], plain["head"]["sha"], plain["base"]["sha"], plain["draft"], plain["state"]) == (7, SHA, OTHER, False, "open")
    assert plain["head"]["repo"]["full_name"] == plain["base"]["repo"]["full_name"] == "acme/shop"
    assert (forked["draft"], forked["state"], forked["merged"], forked["head"]["repo"]["full_name"]) == (True, "closed", True, "ada/shop")
    assert client("GET", "repos/acme/shop/pulls/9").status == 404


def test_a_comment_is_written_changed_and_deleted(github: GitHub, client: Client) -> None:
    created = client("POST", "repos/acme/shop/issues/7/comments", {"body": "A plan"})
    place = f"repos/acme/shop/issues/comments/{created.body['id']}"
    assert (created.status, created.body["issue_url"].rpartition("/")[2]) == (201, "7")
    changed = client("PATCH", place, {"body": "Another plan"})
    assert (changed.status, client("GET", place).body["body"]) == (200, "Another plan")
    assert client("DELETE", place).status == 204
    assert {client(method, place, body).status for method, body in (("GET", None), ("PATCH", {"body": "x"}), ("DELETE", None))} == {404}


# docs.github.com/rest/issues/comments; GitHub's words name the number.
def test_a_comment_has_a_most_of_characters(github: GitHub, client: Client) -> None:
    assert client("POST", "repos/acme/shop/issues/7/comments", {"body": "x" * 65_536}).status == 201
    answer = client("POST", "repos/acme/shop/issues/7/comments", {"body": "x" * 65_537})
    assert answer.status == 422
    assert answer.body["errors"][0]["message"] == "Body is too long (maximum is 65536 characters)"
    assert answer.body["errors"][0]["code"] == "unprocessable"
    assert len(github.meant()) == 1


def test_a_locked_conversation_takes_no_comment(github: GitHub, client: Client) -> None:
    github.pull_requests[7].locked = True
    answer = client("POST", "repos/acme/shop/issues/7/comments", {"body": "A plan"})
    assert (answer.status, answer.body["message"]) == (403, "Unable to create comment because issue is locked.")


@pytest.mark.parametrize(("base", "status"), [(SHA, "identical"), (OTHER, "ahead")])
def test_commits_are_compared(github: GitHub, client: Client, base: str, status: str) -> None:
    github.merge_bases[OTHER, SHA] = OTHER
    answer = client("GET", f"repos/acme/shop/compare/{base}...{SHA}")
    assert (answer.body["merge_base_commit"]["sha"], answer.body["status"]) == (base, status)


# docs.github.com/rest/collaborators: "the maintain role is mapped to write and the triage role is mapped to read".
@pytest.mark.parametrize(("role", "permission"), [("admin", "admin"), ("maintain", "write"), ("triage", "read"), ("none", "none")])
def test_a_person_has_a_permission(github: GitHub, client: Client, role: str, permission: str) -> None:
    github.users["ada"] = role
    answer = client("GET", "repos/acme/shop/collaborators/ada/permission")
    assert (answer.body["permission"], answer.body["role_name"]) == (permission, role)
    assert client("GET", "repos/acme/shop/collaborators/eve/permission").status == 404


def test_a_token_has_permissions(github: GitHub, client: Client) -> None:
    github.tokens["reader"] = Grant("anneal", frozenset({"statuses:read"}))
    narrow, unknown = Client(github, {"Authorization": "Bearer reader"}), Client(github, {"Authorization": "Bearer no-such"})
    assert narrow("GET", LISTED).status == 200
    answer = narrow("POST", STATUSES, GOOD)
    assert (answer.status, answer.body["message"]) == (403, "Resource not accessible by personal access token")
    assert (unknown("GET", LISTED).status, unknown("GET", LISTED).body["message"]) == (401, "Bad credentials")
    assert client("GET", "repos/acme/other/pulls/7").status == 404


def _jwt(app: GitHubApi) -> str:
    now = int(time.time())
    return jwt.encode({"iat": now - 60, "exp": now + 300, "iss": APP}, app.key.read_text(), algorithm="RS256")


def test_an_app_buys_a_token_with_the_permissions_that_it_asks_for(app: GitHubApi) -> None:
    with GitHub(app=app) as host:
        host.commits = {SHA}
        buyer = Client(host, {"Authorization": f"Bearer {_jwt(app)}"})
        place = f"app/installations/{INSTALLATION}/access_tokens"
        bought = buyer("POST", place, {"permissions": {"statuses": "write"}, "repositories": ["shop"]})
        assert (bought.status, bought.body["permissions"]) == (201, {"statuses": "write", "metadata": "read"})
        mine = Client(host, {"Authorization": f"Bearer {bought.body['token']}"})
        assert mine("POST", STATUSES, GOOD).status == 201
        answer = mine("POST", "repos/acme/shop/issues/7/comments", {"body": "A plan"})
        assert (answer.status, answer.body["message"]) == (403, "Resource not accessible by integration")
        answer = buyer("POST", place, {"permissions": {"administration": "write"}})
        assert (answer.status, answer.body["message"]) == (422, "The permissions requested are not granted to this installation.")
        assert buyer("POST", place, {"permissions": {"statuses": "anything"}}).status == 422
        assert len(host.meant()) == 1


# docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api: "no more than 80 content-generating requests per minute".
def test_writes_that_come_too_soon_are_put_off(github: GitHub, client: Client) -> None:
    now = [0.0]
    github.writes_a_minute, github.clock = 80, lambda: now[0]
    assert {client("POST", STATUSES, GOOD).status for _ in range(80)} == {201}
    now[0] = 20.0
    answer = client("POST", STATUSES, GOOD)
    assert (answer.status, answer.headers["Retry-After"]) == (403, "41")
    assert "secondary rate limit" in answer.body["message"]
    assert client("GET", LISTED).status == 200
    now[0] = 61.0
    assert client("POST", STATUSES, GOOD).status == 201


def test_a_host_may_be_down_slow_limited_or_deny_all(github: GitHub, client: Client) -> None:
    github.down = True
    assert client("GET", LISTED).status == 503
    github.down, github.limited = False, 30
    assert (client("GET", LISTED).status, client("GET", LISTED).headers["Retry-After"]) == (403, "30")
    github.limited, github.denied = 0, True
    assert client("GET", LISTED).status == 403
    github.denied, github.slow = False, 60
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        Client(github, timeout=0.2)("GET", LISTED)
    github.slow = 0
    github.stop()
    with pytest.raises(urllib3.exceptions.NewConnectionError):
        client("GET", LISTED)
    github.start()
    assert client("GET", LISTED).status == 200
    assert len(github.asked("GET", "/statuses")) == 6


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "noted"),
    [
        ("PUT", STATUSES, {"body": GOOD}, 404, "no such operation"),
        ("GET", LISTED, {"query": {"sort": "asc"}}, 200, "no parameter sort"),
        ("POST", STATUSES, {"body": GOOD, "Content_Type": "text/plain"}, 201, "a body of the type 'text/plain'"),
        ("POST", STATUSES, {"body": ["x"]}, 422, "is not of type 'object'"),
        ("GET", LISTED, {"User_Agent": ""}, 403, "no User-Agent"),
    ],
)
def test_what_the_description_has_not_is_noted(
    github: GitHub, client: Client, method: str, path: str, sent: dict[str, Any], status: int, noted: str
) -> None:
    assert client(method, path, **sent).status == status
    assert noted in github.meant()[0]


def test_a_host_that_is_left_with_a_violation_fails_its_test(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no such operation"), GitHub() as host:
        Client(host)("GET", "repos/acme/shop/labels")
