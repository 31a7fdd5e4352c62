"""A delivery about a pull request at the door: one job for its repository, within the sender's scope, shown by a name of its own."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import Promoted, Repository
from handler.config.secret_ref import SecretRef
from handler.config.secrets import resolve_all
from handler.config.settings import Settings, Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.errors import BadSignature
from handler.model.event import Event, Job
from handler.web.app import create_app
from handler.web.delivery_decision import bounded, watch
from handler.web.status_api import WorkerLink
from tests.fakes.feedback import AtOnce
from tests.fakes.page_visits import PAGE_SECRETS, URL, the_page
from tests.fakes.signed_webhooks import INFRA, SECRETS, SHOP, Kept, door_secrets, door_settings, github_headers
from tests.unit.web.page.page_door import OWN

FEEDBACK = FeedbackSettings(pull_requests=True, host="gitea", token=SecretRef(env="CI"))
REASON = "the plan of pull request 12 is made for the targets that follow its base branch"
OFF = "plans on pull requests are off: write `feedback: {pullRequests: true}` in its repository"


def planning(settings: Settings) -> Settings:
    """The door's targets; of every repository pull requests are planned."""
    return replace(
        settings, targets=tuple(replace(each, repository=replace(each.repository, feedback=FEEDBACK)) for each in settings.targets)
    )


@pytest.fixture
def queue() -> Kept:
    return Kept()


@pytest.fixture
def client(queue: Kept) -> FlaskClient:
    return create_app(planning(door_settings()), door_secrets(), queue, lambda: True, events=AtOnce("log")).test_client()


def opened(url: str = SHOP, action: str = "opened", number: int = 12) -> bytes:
    return json.dumps({"action": action, "number": number, "repository": {"clone_url": url}, "sender": {"login": "ada"}}).encode()


def comment(text: str = "/anneal plan") -> bytes:
    issue = {"number": 12, "pull_request": {"url": "x"}}
    written = {"id": 6, "body": text}
    document = {"action": "created", "issue": issue, "comment": written, "repository": {"clone_url": SHOP}, "sender": {"login": "bob"}}
    return json.dumps(document).encode()


def send(client: FlaskClient, body: bytes, event: str = "pull_request", secret: str = "GITHUB") -> TestResponse:
    return client.post("/webhooks/github", data=body, headers=github_headers(body, SECRETS[secret], event))


def get(client: FlaskClient, path: str, token: str) -> TestResponse:
    return client.get(path, headers={"Authorization": f"Bearer {SECRETS[token]}"})


def plain(job: Job) -> Job:
    assert job.asked > 0.0
    return replace(job, asked=0.0)


def test_an_opened_one_is_one_job_and_the_answer_says_so(client: FlaskClient, queue: Kept) -> None:
    response = send(client, opened())
    assert (response.status_code, response.get_json()) == (
        202,
        {"matched": [{"target": "shop-prod~12", "reason": REASON, "run": "r1"}], "ignored": [], "run": "r1"},
    )
    assert [plain(job) for job in queue.jobs] == [Job("shop-prod~12", "pull-request", actor="ada")]


def test_a_comment_goes_as_its_id(client: FlaskClient, queue: Kept) -> None:
    assert send(client, comment(), "issue_comment").status_code == 202
    assert [plain(job) for job in queue.jobs] == [Job("shop-prod~12", "pull-request", comments=("6",), actor="bob")]
    assert send(client, comment("nice"), "issue_comment").status_code == 200
    assert len(queue.jobs) == 1


@pytest.mark.parametrize("body", [b"{}", opened(number=0), b'{"action": "opened"}'])
def test_what_cant_be_read_is_answered_400(client: FlaskClient, queue: Kept, body: bytes) -> None:
    assert (send(client, body).status_code, queue.jobs) == (400, [])


def test_where_plans_are_off_nothing_runs_and_the_setting_is_named(queue: Kept) -> None:
    client = create_app(door_settings(), door_secrets(), queue, lambda: True).test_client()
    response = send(client, opened())
    fixed = "it follows no branch, and plans on pull requests are of those that follow their base"
    assert response.status_code == 200
    assert [(row["target"], row["reason"]) for row in response.get_json()["ignored"]] == [
        ("shop-prod", OFF),
        ("shop-dev", OFF),
        ("shop-fixed", fixed),
    ]
    assert queue.jobs == []


# --- whom a secret speaks for
def test_the_secret_of_one_repository_plans_no_pull_request_of_another(client: FlaskClient, queue: Kept) -> None:
    assert send(client, opened(), secret="INFRA").status_code == 401
    assert send(client, opened(INFRA)).status_code == 401
    assert queue.jobs == []
    assert send(client, opened(INFRA), secret="INFRA").get_json()["matched"][0]["target"] == "infra~12"


def test_the_first_target_within_the_senders_scope_gives_the_name() -> None:
    event = Event("github", "pull-request", "1", (SHOP,), pull_request=12)
    watched = watch(planning(door_settings()).targets)
    for scope, name in (({"shop-prod", "shop-dev"}, "shop-prod~12"), ({"shop-dev", "infra"}, "shop-dev~12")):
        found = bounded(event, watched, frozenset(scope))
        assert [each.target for each in found.decisions] == [name]
        assert "shop-prod" in found.foreign or "shop-prod" in scope
    with pytest.raises(BadSignature):
        bounded(event, watched, frozenset({"infra"}))


def test_a_promoted_target_plans_and_a_template_does_not() -> None:
    shop = Repository(SHOP, feedback=FEEDBACK)
    trigger = TriggerSettings(resource=ResourceTrigger("web", (WatchedResource("web", "v1", "ConfigMap"),)))
    promoted = Target("late", shop, ("late",))
    promoted = replace(promoted, revision=replace(promoted.revision, promoted=Promoted(("early",))))
    watched = watch((Target("template", shop, ("web",), trigger=trigger), promoted)).targets
    assert [(each.name, each.plans_pull_requests, each.has_instances) for each in watched] == [
        ("template", False, True),
        ("late", True, False),
    ]


# --- where it shows
def deliveries(client: FlaskClient, token: str, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = get(client, f"/api/deliveries{query}", token).get_json()["process"]
    return found


def test_it_shows_to_tokens_of_the_target_that_it_is_named_by(client: FlaskClient) -> None:
    send(client, opened())
    send(client, opened(INFRA), secret="INFRA")
    row = {"target": "shop-prod~12", "matched": True, "reason": REASON, "ref": "", "commit": "", "run": "r1"}
    assert [each["targets"] for each in deliveries(client, "READER")] == [[row]]
    assert [[row["target"] for row in each["targets"]] for each in deliveries(client, "ALL")] == [["infra~12"], ["shop-prod~12"]]
    assert [each["kind"] for each in deliveries(client, "ALL", "?target=shop-prod")] == ["pull-request"]
    assert deliveries(client, "ALL", "?target=shop-dev") == []
    assert get(client, "/api/deliveries?target=shop-prod~12", "ALL").status_code == 404


def test_its_run_is_known_by_the_id_that_the_door_answered_with() -> None:
    def ask(question: str, **about: Any) -> dict[str, Any]:
        assert question == "run"
        return {"run": {"run": about["run"], "target": "shop-prod~12"}}

    link = WorkerLink(ask, lambda _request: None)
    client = create_app(planning(door_settings()), door_secrets(), Kept(), lambda: True, worker=link).test_client()
    assert get(client, "/api/runs/shop-prod~12.0123456789ab", "READER").get_json()["target"] == "shop-prod~12"
    assert get(client, "/api/runs/infra~12.0123456789ab", "READER").status_code == 403
    assert get(client, "/api/runs/shop-nowhere~12.0123456789ab", "READER").status_code == 404


def test_the_page_leads_to_the_target_that_it_is_named_by() -> None:
    def ask(question: str, **_about: Any) -> dict[str, Any]:
        assert question == "deliveries"
        return {"recorded": [], "unread": []}

    settings = replace(planning(door_settings()), page=the_page())
    secrets, link = resolve_all(settings, SECRETS | PAGE_SECRETS), WorkerLink(ask, lambda _request: None)
    client = create_app(settings, secrets, Kept(), lambda: True, worker=link).test_client()
    send(client, opened())
    assert client.post("/ui/login", data={"token": PAGE_SECRETS["ADA"]}, headers=OWN, base_url=URL).status_code == 303
    page = client.get("/ui/deliveries", base_url=URL)
    assert page.status_code == 200
    assert f'<a href="/ui/targets/shop-prod">shop-prod~12</a> runs: {REASON}' in page.text


def test_it_is_logged_with_its_number_and_counted_as_matched(queue: Kept, caplog: pytest.LogCaptureFixture) -> None:
    events = AtOnce("log")
    metrics = events.add("door", "1.2.3", lambda: 0.0, lambda: 0.0)
    client = create_app(planning(door_settings()), door_secrets(), queue, lambda: True, metrics=metrics, events=events).test_client()
    with caplog.at_level(logging.INFO, "anneal.delivery"):
        send(client, comment(), "issue_comment")
    fields = caplog.records[-1].__dict__["fields"]
    assert {key: fields[key] for key in ("kind", "actor", "pull_request", "comment", "runs", "ignored")} == {
        "kind": "pull-request",
        "actor": "bob",
        "pull_request": 12,
        "comment": "6",
        "runs": {"shop-prod~12": "r1"},
        "ignored": {},
    }
    assert "/anneal" not in json.dumps(fields)
    text = metrics.text()
    assert 'anneal_deliveries_total{code="",outcome="matched",provider="github"} 1.0' in text
    assert "~" not in text
