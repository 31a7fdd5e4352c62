"""The made-up Azure DevOps against learn.microsoft.com/rest/api/azure/devops, over HTTP."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.fakes.git_hosts.azuredevops import CONTRIBUTE, GIT, PULL_REQUEST_CONTRIBUTE, AzureDevOps
from tests.fakes.git_hosts.exchange import Comment, Grant, PullRequest
from tests.fakes.git_hosts.served_host import TOKEN
from tests.rooms.feedback.host_client import OTHER, SHA, Client

REPOSITORY = "platform/_apis/git/repositories/shop"
STATUSES = f"{REPOSITORY}/commits/{SHA}/statuses"
THREADS = f"{REPOSITORY}/pullRequests/7/threads"
GOOD = {
    "state": "pending",
    "context": {"genre": "anneal", "name": "shop"},
    "description": "Planned",
    "targetUrl": "https://anneal.example.com",
}
THREAD = {"comments": [{"content": "A plan", "commentType": "text", "parentCommentId": 0}], "status": "closed"}
VERSION = {"api-version": "7.1"}


def basic(token: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f":{token}".encode()).decode()}


@pytest.fixture
def client(azuredevops: AzureDevOps) -> Client:
    azuredevops.commits = {SHA, OTHER}
    azuredevops.pull_requests[7] = PullRequest(7, SHA, OTHER)
    return Client(azuredevops, basic(TOKEN))


def test_each_post_is_another_status_and_the_latest_of_a_context_is_asked_for(azuredevops: AzureDevOps, client: Client) -> None:
    for state, name in (("pending", "shop"), ("succeeded", "shop"), ("failed", "other")):
        assert client("POST", STATUSES, {**GOOD, "state": state, "context": {"genre": "anneal", "name": name}}, VERSION).status == 200
    assert [each["state"] for each in azuredevops.statuses[SHA]] == ["pending", "succeeded", "failed"]
    everything = client("GET", STATUSES, query=VERSION).body
    assert (everything["count"], [each["id"] for each in everything["value"]]) == (3, sorted(each["id"] for each in everything["value"]))
    latest = client("GET", STATUSES, query={**VERSION, "latestOnly": "true"}).body["value"]
    assert [(each["context"]["name"], each["state"]) for each in latest] == [("shop", "succeeded"), ("other", "failed")]
    assert [each["state"] for each in client("GET", STATUSES, query={**VERSION, "skip": "1", "top": "1"}).body["value"]] == ["succeeded"]


def test_a_repository_goes_by_its_id_too(azuredevops: AzureDevOps, client: Client) -> None:
    assert client("POST", STATUSES.replace("shop", azuredevops.repository_id), GOOD, VERSION).status == 200
    answer = client("POST", STATUSES.replace("shop", "other"), GOOD, VERSION)
    assert (answer.status, answer.body["typeKey"]) == (404, "GitRepositoryNotFoundException")
    assert client("POST", STATUSES.replace(SHA, "0" * 40), GOOD, VERSION).body["typeKey"] == "GitObjectDoesNotExistException"


# git/statuses/create: "Name identifier of the status, cannot be null or empty."
@pytest.mark.parametrize(
    "change",
    [{"context": {"name": ""}}, {"context": {"genre": "anneal"}}, {"state": "running"}, {"targetUrl": "/shop"}, {"description": 7}],
)
def test_a_status_outside_of_the_schema_is_refused(azuredevops: AzureDevOps, client: Client, change: dict[str, Any]) -> None:
    answer = client("POST", STATUSES, {**GOOD, **change}, VERSION)
    (name,) = change
    assert (answer.status, f"Parameter name: {name}" in answer.body["message"]) == (400, True)
    assert len(azuredevops.meant()) == 1
    assert azuredevops.statuses == {}


# "The version must be supplied either as part of the Accept header or as a query parameter".
def test_a_write_names_a_version_that_the_server_has(azuredevops: AzureDevOps, client: Client) -> None:
    answer = client("POST", STATUSES, GOOD)
    assert (answer.status, answer.body["typeKey"]) == (400, "VssVersionNotSpecifiedException")
    assert client("GET", STATUSES).status == 200
    assert [each.rpartition(": ")[2] for each in azuredevops.meant()] == ["it names no api-version"] * 2
    azuredevops.newest_version = 7.0
    answer = client("POST", STATUSES, GOOD, VERSION)
    assert (answer.status, answer.body["typeKey"]) == (400, "VssVersionOutOfRangeException")
    assert client("POST", STATUSES, GOOD, {"api-version": "6.0"}).status == 200


def test_a_pull_request_says_what_is_merged_into_what(azuredevops: AzureDevOps, client: Client) -> None:
    azuredevops.pull_requests[8] = PullRequest(8, OTHER, SHA, draft=True, fork=True, state="merged")
    plain, forked = (client("GET", f"{REPOSITORY}/pullRequests/{number}", query=VERSION).body for number in (7, 8))
    assert (plain["pullRequestId"], plain["status"], plain["isDraft"], "forkSource" in plain) == (7, "active", False, False)
    assert (plain["lastMergeSourceCommit"]["commitId"], plain["lastMergeTargetCommit"]["commitId"]) == (SHA, OTHER)
    assert (plain["sourceRefName"], plain["targetRefName"]) == ("refs/heads/feature", "refs/heads/main")
    assert (forked["status"], forked["isDraft"], "forkSource" in forked) == ("completed", True, True)
    assert client("GET", f"{REPOSITORY}/pullRequests/9", query=VERSION).body["typeKey"] == "GitPullRequestNotFoundException"


def test_a_pull_request_has_statuses_of_its_own(azuredevops: AzureDevOps, client: Client) -> None:
    place = f"{REPOSITORY}/pullRequests/7/statuses"
    assert client("POST", place, {**GOOD, "iterationId": 1}, VERSION).status == 200
    assert client("POST", place, {**GOOD, "iterationId": 0}, VERSION).status == 400
    assert client("POST", STATUSES, {**GOOD, "iterationId": 1}, VERSION).status == 200
    assert [each["iterationId"] for each in client("GET", place, query=VERSION).body["value"]] == [1]
    assert ["iterationId" in each for each in azuredevops.meant()] == [True, True]


def test_a_thread_is_opened_changed_and_emptied(azuredevops: AzureDevOps, client: Client) -> None:
    made = client("POST", THREADS, THREAD, VERSION)
    place = f"{THREADS}/{made.body['id']}"
    assert (made.status, made.body["status"], made.body["comments"][0]["content"]) == (200, "closed", "A plan")
    assert client("POST", f"{place}/comments", {"content": "More"}, VERSION).body["id"] == 2
    assert client("PATCH", f"{place}/comments/1", {"content": "Another plan"}, VERSION).body["content"] == "Another plan"
    assert client("PATCH", place, {"status": "active"}, VERSION).body["status"] == "active"
    (listed,) = client("GET", THREADS, query=VERSION).body["value"]
    assert [each["content"] for each in listed["comments"]] == ["Another plan", "More"]
    for number in (1, 2):
        assert client("GET", place, query=VERSION).body["isDeleted"] is False
        assert client("DELETE", f"{place}/comments/{number}", query=VERSION).status == 200
    gone = client("GET", f"{place}/comments/1", query=VERSION).body
    assert (gone["isDeleted"], "content" in gone) == (True, False)
    assert client("GET", place, query=VERSION).body["isDeleted"] is True
    assert client("GET", f"{THREADS}/99", query=VERSION).status == client("GET", f"{place}/comments/9", query=VERSION).status == 404


# git/pull-request-thread-comments/create: "Comments can be up to 150,000 characters", "up to 500 comments can be created per thread".
def test_a_comment_is_not_too_long_and_a_thread_not_too_full(azuredevops: AzureDevOps, client: Client) -> None:
    place = f"{THREADS}/{client('POST', THREADS, THREAD, VERSION).body['id']}"
    assert client("POST", f"{place}/comments", {"content": "x" * 150_000}, VERSION).status == 200
    assert client("POST", f"{place}/comments", {"content": "x" * 150_001}, VERSION).status == 400
    assert client("POST", THREADS, {"comments": []}, VERSION).status == 400
    assert client("POST", THREADS, {"status": "active"}, VERSION).status == 400
    assert len(azuredevops.meant()) == 3
    thread = int(place.rpartition("/")[2])
    azuredevops.comments |= {thread * 1000 + number: Comment(number, 7, "x", "ada", thread=thread) for number in range(3, 501)}
    assert client("POST", f"{place}/comments", {"content": "x"}, VERSION).status == 400
    assert client("PATCH", f"{place}/comments/3", {"content": "x"}, VERSION).body["typeKey"] == "GitNeedsPermissionException"


def test_commits_have_merge_bases(azuredevops: AzureDevOps, client: Client) -> None:
    place, asked = f"{REPOSITORY}/commits/{SHA}/mergeBases", {**VERSION, "otherCommitId": OTHER}
    assert client("GET", place, query=asked).body == {"count": 0, "value": []}
    azuredevops.merge_bases[SHA, OTHER] = OTHER
    assert client("GET", place, query=asked).body["value"] == [{"commitId": OTHER}]


# security/access-control-lists/query and ims/identities/read-identities; bits: organizations/security/namespace-reference.
def test_who_may_contribute_is_in_the_entries_of_a_person_and_the_groups(azuredevops: AzureDevOps, client: Client) -> None:
    azuredevops.users = {"id-ada": "aad.ada"}
    azuredevops.memberships = {"aad.ada": ["vssgp.contributors", "vssgp.frozen"]}
    azuredevops.entries = {"vssgp.contributors": (CONTRIBUTE, 0), "vssgp.frozen": (0, CONTRIBUTE)}
    (person,) = client("GET", "_apis/identities", query={**VERSION, "identityIds": "id-ada", "queryMembership": "expanded"}).body["value"]
    names = [person["descriptor"], *person["memberOf"]]
    asked = {"token": f"repoV2/project/{azuredevops.repository_id}", "descriptors": ",".join(names), "includeExtendedInfo": "true"}
    (found,) = client("GET", f"_apis/accesscontrollists/{GIT}", query={**VERSION, **asked}).body["value"]
    bits = [(entry["extendedInfo"]["effectiveAllow"], entry["extendedInfo"]["effectiveDeny"]) for entry in found["acesDictionary"].values()]
    assert bits == [(0, 0), (CONTRIBUTE, 0), (0, CONTRIBUTE)]
    assert client("GET", "_apis/identities", query={**VERSION, "identityIds": "id-eve"}).body["count"] == 0


def test_what_we_may_do_ourselves(azuredevops: AzureDevOps, client: Client) -> None:
    azuredevops.callers_bits = PULL_REQUEST_CONTRIBUTE
    asked = {**VERSION, "tokens": f"repoV2/project/{azuredevops.repository_id}"}
    found = [client("GET", f"_apis/permissions/{GIT}/{bits}", query=asked).body["value"] for bits in (CONTRIBUTE, PULL_REQUEST_CONTRIBUTE)]
    assert found == [[False], [True]]


def test_tokens_have_scopes(azuredevops: AzureDevOps, client: Client) -> None:
    azuredevops.tokens["narrow"] = Grant("anneal", frozenset({"vso.code_status"}))
    narrow = Client(azuredevops, basic("narrow"))
    assert narrow("POST", STATUSES, GOOD, VERSION).status == narrow("GET", STATUSES, query=VERSION).status == 200
    answer = narrow("POST", THREADS, THREAD, VERSION)
    assert (answer.status, answer.body["message"].partition(":")[0]) == (401, "TF400813")
    stranger = Client(azuredevops, basic("no-such"))
    assert stranger("GET", STATUSES, query=VERSION).status == 401
    azuredevops.signs_in = True
    page = stranger("GET", STATUSES, query=VERSION)
    assert (page.status, page.headers["Content-Type"]) == (203, "text/html")
    assert Client(azuredevops)("GET", STATUSES, query=VERSION).status == 200
    azuredevops.denied = True
    assert client("POST", STATUSES, GOOD, VERSION).body["typeKey"] == "GitNeedsPermissionException"


def test_it_may_want_to_be_left_alone(azuredevops: AzureDevOps, client: Client) -> None:
    azuredevops.limited = 17
    answer = client("GET", STATUSES, query=VERSION)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "17")


def test_a_field_that_is_not_known_is_noted(azuredevops: AzureDevOps, client: Client) -> None:
    assert client("POST", STATUSES, {**GOOD, "target_url": "x"}, VERSION).status == 200
    assert "'target_url' was unexpected" in azuredevops.meant()[0]
