"""The made-up GitLab against docs.gitlab.com/api and what GitLab's own tests expect, over HTTP."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.fakes.git_hosts.exchange import Comment, Grant, PullRequest
from tests.fakes.git_hosts.gitlab import DEVELOPER, REPORTER, GitLab, Pipeline
from tests.fakes.git_hosts.served_host import TOKEN
from tests.rooms.feedback.host_client import OTHER, SHA, Client, Reply

PROJECT = f"projects/{quote('acme/shop', safe='')}"
STATUSES = f"{PROJECT}/statuses/{SHA}"
LISTED = f"{PROJECT}/repository/commits/{SHA}/statuses"
NOTES = f"{PROJECT}/merge_requests/7/notes"
GOOD = {"state": "pending", "name": "anneal/shop", "description": "Planned", "target_url": "https://anneal.example.com/shop"}
ENDS = ("success", "failed", "canceled", "skipped")


@pytest.fixture
def client(gitlab: GitLab) -> Client:
    gitlab.commits = {SHA, OTHER}
    gitlab.pull_requests[7] = PullRequest(7, SHA, OTHER)
    return Client(gitlab, {"PRIVATE-TOKEN": TOKEN})


def put(client: Client, state: str, **changes: Any) -> Reply:
    return client("POST", STATUSES, {**GOOD, "state": state, **changes})


def test_a_status_is_a_job_of_a_pipeline(gitlab: GitLab, client: Client) -> None:
    made = client("POST", f"projects/42/statuses/{SHA}", GOOD)
    assert (made.status, made.body["status"], made.body["ref"], made.body["author"]["username"]) == (201, "pending", "main", "anneal")
    assert gitlab.pipelines == [Pipeline(made.body["pipeline_id"], SHA, "main")]
    assert [(each["name"], each["description"]) for each in client("GET", LISTED).body] == [("anneal/shop", "Planned")]


def test_a_name_may_be_called_context_and_is_default_without(client: Client) -> None:
    assert client("POST", STATUSES, {"state": "running", "context": "anneal"}).body["name"] == "anneal"
    assert client("POST", STATUSES, {"state": "running"}).body["name"] == "default"


@pytest.mark.parametrize(("before", "after"), [("pending", each) for each in ("running", *ENDS)] + [("running", each) for each in ENDS[:3]])
def test_a_status_that_has_not_ended_goes_on(gitlab: GitLab, client: Client, before: str, after: str) -> None:
    assert [put(client, before).status, put(client, after).status] == [201, 201]
    assert [each["status"] for each in gitlab.statuses[SHA]] == [after]


# GitLab's spec of Ci::CreateCommitStatusService: "for invalid transition", "when the `state` parameter is sent the same".
@pytest.mark.parametrize(
    ("before", "after", "event"),
    [("pending", "pending", "enqueue"), ("running", "pending", "enqueue"), ("running", "running", "run"), ("running", "skipped", "skip")],
)
def test_a_step_that_is_none_is_refused_and_changes_nothing(gitlab: GitLab, client: Client, before: str, after: str, event: str) -> None:
    put(client, before)
    answer = put(client, after, description="Another")
    assert answer.status == 400
    words = f'Cannot transition status via :{event} from :{before} (Reason(s): Status cannot transition via "{event}")'
    assert answer.body == {"message": words}
    assert [(each["status"], each["description"]) for each in gitlab.statuses[SHA]] == [(before, "Planned")]


@pytest.mark.parametrize("after", ["pending", "running", *ENDS])
@pytest.mark.parametrize("before", ENDS)
def test_what_has_ended_is_followed_by_another(client: Client, before: str, after: str) -> None:
    put(client, before)
    assert put(client, after).status == 201
    assert [each["status"] for each in client("GET", LISTED).body] == [after]
    assert [each["status"] for each in client("GET", LISTED, query={"all": "true"}).body] == [before, after]


def test_the_status_of_another_user_is_another_one(gitlab: GitLab, client: Client) -> None:
    gitlab.tokens["second"] = Grant("ben", frozenset({"api"}))
    put(client, "pending")
    assert Client(gitlab, {"Authorization": "Bearer second"})("POST", STATUSES, GOOD).status == 201
    assert [each["author"]["username"] for each in gitlab.statuses[SHA]] == ["anneal", "ben"]


def test_a_pipeline_is_chosen_by_ref_and_number(gitlab: GitLab, client: Client) -> None:
    gitlab.pipelines = [Pipeline(501, SHA, "main"), Pipeline(502, SHA, "main"), Pipeline(503, SHA, "feature")]
    assert put(client, "success").body["pipeline_id"] == 503
    assert put(client, "success", ref="main").body["pipeline_id"] == 502
    assert put(client, "success", ref="main", pipeline_id=501).body["pipeline_id"] == 501
    assert [each["pipeline_id"] for each in client("GET", LISTED, query={"order_by": "pipeline_id", "sort": "desc"}).body] == [
        503,
        502,
        501,
    ]
    answer = put(client, "success", ref="main", pipeline_id=503)
    assert (answer.status, answer.body) == (404, {"message": "404 Pipeline for pipeline_id, sha and ref Not Found"})


def test_what_is_not_there_is_named(gitlab: GitLab, client: Client) -> None:
    gitlab.branches[OTHER] = ""
    unknown, unreachable = "0" * 40, OTHER
    assert client("POST", f"{PROJECT}/statuses/{unknown}", GOOD).body == {"message": "404 Commit Not Found"}
    assert client("POST", f"{PROJECT}/statuses/{unreachable}", GOOD).body == {"message": "404 References for commit Not Found"}
    assert client("POST", f"projects/43/statuses/{SHA}", GOOD).body == {"message": "404 Project Not Found"}
    assert client("GET", f"{PROJECT}/merge_requests/8").status == 404


def test_one_status_of_a_commit_is_changed_at_a_time(gitlab: GitLab, client: Client) -> None:
    gitlab.updating = {SHA}
    answer = put(client, "pending")
    assert (answer.status, answer.body) == (409, {"message": "Another update to this commit status is in progress"})


# docs.gitlab.com/api/commits: ref, target_url and description "must be 255 characters or fewer".
@pytest.mark.parametrize(
    ("change", "answered"),
    [
        ({"description": "x" * 256}, {"message": {"description": ["is too long (maximum is 255 characters)"]}}),
        ({"target_url": "https://" + "x" * 248}, {"message": {"target_url": ["is too long (maximum is 255 characters)"]}}),
        ({"target_url": "git://example.com"}, {"message": {"target_url": ["is blocked: Only allowed schemes are http, https"]}}),
        ({"state": "error"}, {"error": "state does not have a valid value"}),
        ({"name": 7}, {"error": "name is invalid"}),
    ],
)
def test_a_status_outside_of_the_bounds_is_refused(gitlab: GitLab, client: Client, change: dict[str, Any], answered: Any) -> None:
    answer = client("POST", STATUSES, {**GOOD, **change})
    assert (answer.status, answer.body) == (400, answered)
    assert len(gitlab.meant()) == 1
    assert gitlab.statuses == {}


def test_a_description_of_255_characters_is_taken(client: Client) -> None:
    assert put(client, "pending", description="ä" * 255).status == 201


def test_a_status_has_a_state_and_no_unknown_field(gitlab: GitLab, client: Client) -> None:
    assert client("POST", STATUSES, {"name": "anneal"}).body == {"error": "state is missing"}
    assert put(client, "pending", url="https://anneal.example.com").status == 201
    assert [each.partition(": ")[2] for each in gitlab.meant()] == [
        "$: 'state' is a required property",
        "$: Additional properties are not allowed ('url' was unexpected)",
    ]


def test_a_name_that_a_job_has_is_taken(gitlab: GitLab, client: Client) -> None:
    gitlab.jobs = {"anneal/shop"}
    answer = put(client, "pending")
    assert (answer.status, answer.body) == (400, {"message": {"name": ["has already been taken"]}})


def test_roles_and_scopes_decide(gitlab: GitLab, client: Client) -> None:
    gitlab.tokens["reader"] = Grant("anneal", frozenset({"read_api"}))
    gitlab.protected = {"main"}
    gitlab.roles["anneal"] = REPORTER
    assert put(client, "pending").body == {"message": "403 Forbidden"}
    gitlab.roles["anneal"] = DEVELOPER
    assert put(client, "pending").body == {"message": "403 Forbidden"}
    assert put(client, "pending", ref="feature").status == 201
    reader = Client(gitlab, {"PRIVATE-TOKEN": "reader"})
    assert reader("GET", LISTED).status == 200
    answer = reader("POST", STATUSES, GOOD)
    assert (answer.status, answer.body["error"], answer.body["scope"]) == (403, "insufficient_scope", "api")
    assert Client(gitlab, {"PRIVATE-TOKEN": "no-such"})("GET", LISTED).body == {"message": "401 Unauthorized"}
    gitlab.denied = True
    assert client("GET", LISTED).body == {"message": "403 Forbidden"}


def test_a_merge_request_says_what_is_merged_into_what(gitlab: GitLab, client: Client) -> None:
    gitlab.pull_requests[8] = PullRequest(8, OTHER, SHA, draft=True, fork=True, state="merged")
    plain, forked = (client("GET", f"{PROJECT}/merge_requests/{number}").body for number in (7, 8))
    assert (plain["iid"], plain["sha"], plain["diff_refs"]["base_sha"], plain["state"], plain["draft"]) == (7, SHA, OTHER, "opened", False)
    assert plain["source_project_id"] == plain["target_project_id"] == 42
    assert (forked["state"], forked["draft"], forked["source_project_id"] == forked["target_project_id"]) == ("merged", True, False)


def test_a_note_is_written_changed_and_deleted(gitlab: GitLab, client: Client) -> None:
    made = client("POST", NOTES, {"body": "A plan"})
    place = f"{NOTES}/{made.body['id']}"
    assert (made.status, made.body["noteable_iid"], made.body["author"]["username"]) == (201, 7, "anneal")
    assert client("PUT", place, {"body": "Another plan"}).body["body"] == "Another plan"
    client("POST", NOTES, {"body": "A second"})
    assert [each["body"] for each in client("GET", NOTES).body] == ["A second", "Another plan"]
    assert [each["body"] for each in client("GET", NOTES, query={"sort": "asc", "per_page": "1"}).body] == ["Another plan"]
    assert client("DELETE", place).status == 204
    assert {client(method, place, body).status for method, body in (("GET", None), ("PUT", {"body": "x"}), ("DELETE", None))} == {404}


# docs.gitlab.com/api/notes: "Limited to 1,000,000 characters."
def test_a_note_has_a_most_of_characters(gitlab: GitLab, client: Client) -> None:
    assert client("POST", NOTES, {"body": "x" * 1_000_000}).status == 201
    answer = client("POST", NOTES, {"body": "x" * 1_000_001})
    assert (answer.status, "is too long (maximum is 1000000 characters)" in answer.body["message"]) == (400, True)
    assert client("POST", NOTES, {}).body == {"error": "body is missing"}
    assert len(gitlab.meant()) == 2


def test_the_note_of_another_is_a_maintainers_to_change(gitlab: GitLab, client: Client) -> None:
    gitlab.comments[90] = Comment(90, 7, "Theirs", "ben")
    assert client("PUT", f"{NOTES}/90", {"body": "x"}).status == 200
    gitlab.roles["anneal"] = DEVELOPER
    assert client("DELETE", f"{NOTES}/90").status == 403


# docs.gitlab.com/user/project/quick_actions: each on a line of its own; what stands in code is none.
def test_a_line_that_begins_with_a_slash_is_carried_out(gitlab: GitLab, client: Client) -> None:
    assert client("POST", NOTES, {"body": "```\n/close\n```\nsee /merge"}).status == 201
    assert gitlab.carried_out == []
    assert client("POST", NOTES, {"body": "/merge"}).status == 202
    assert client("POST", NOTES, {"body": "A plan\n/close"}).status == 201
    assert gitlab.carried_out == ["merge", "close"]
    assert len(gitlab.comments) == 2


def test_commits_have_a_merge_base(gitlab: GitLab, client: Client) -> None:
    place, two = f"{PROJECT}/repository/merge_base", f"refs[]={SHA}&refs[]={OTHER}"
    assert client("GET", f"{place}?{two}").body == {"message": "404 Merge Base Not Found"}
    gitlab.merge_bases[SHA, OTHER] = OTHER
    assert client("GET", f"{place}?{two}").body["id"] == OTHER
    assert client("GET", f"{place}?refs[]={SHA}").body == {"message": "Provide at least 2 refs"}
    assert client("GET", f"{place}?{two[:47]}&refs[]=gone").body == {"message": "Could not find ref: gone"}


def test_a_member_has_an_access_level(gitlab: GitLab, client: Client) -> None:
    gitlab.users["17"] = "30"
    assert client("GET", f"{PROJECT}/members/all/17").body["access_level"] == 30
    assert client("GET", f"{PROJECT}/members/all/18").body == {"message": "404 Not found"}
    assert client("GET", f"{PROJECT}/members/all/ada").status == 400


def test_it_may_want_to_be_left_alone(gitlab: GitLab, client: Client) -> None:
    gitlab.limited = 17
    answer = client("GET", LISTED)
    assert (answer.status, answer.headers["Retry-After"]) == (429, "17")
    assert "too many times" in answer.body["message"]["error"]
