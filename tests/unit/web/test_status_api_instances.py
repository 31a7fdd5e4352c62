"""Instances over HTTP: which tokens read which, unknown ones are answered 404, and a run is asked for by an instance's name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from handler.config.git_settings import SecretRef
from handler.config.secrets import resolve_all
from handler.config.settings import ReplaySettings, ReplayToken, Settings
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.names import Identity
from handler.state.record import RecordedInstance
from handler.web.app import create_app
from handler.web.status_api import WorkerLink
from handler.worker.worker import Worker
from tests.fakes.objects import FakeObjects
from tests.fakes.signed_webhooks import SECRETS, SHOP, Kept, door_settings
from tests.fakes.worker_parts import asking, parts_of, remember
from tests.unit.state.samples import blank, sha
from tests.unit.web.door_with_runs import never
from tests.unit.web.openapi_schema import declared

pytestmark = pytest.mark.slow

TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))
LIST = "/api/targets/shop-prod/instances"
MAIN = "shop-prod.shop.main"
BOUNDS = {"ALL": ("*",), "READER": ("shop-prod",), "CI": ("shop-prod.shop.*",), "OPS": ("shop-prod.none.*",), "SCRAPER": ("infra",)}


def settings() -> Settings:
    known = door_settings()
    targets = tuple(replace(each, trigger=TRIGGER) if each.name == "shop-prod" else each for each in known.targets)
    tokens = tuple(ReplayToken(key.lower(), SecretRef(env=key), targets=globs, may=("read", "replay")) for key, globs in BOUNDS.items())
    return replace(known, targets=targets, replay=ReplaySettings(tokens))


@pytest.fixture
def queue() -> Kept:
    return Kept()


@pytest.fixture
def client(queue: Kept) -> FlaskClient:
    objects, known = FakeObjects(), settings()
    for namespace, name in (("shop", "main"), ("shop", "other"), ("dev", "main")):
        instance = RecordedInstance(Identity("example.com", "Widget", namespace, name), f"uid-{namespace}-{name}")
        remember(objects, replace(blank(commit=sha("b")), target=f"shop-prod.{namespace}.{name}", repository=SHOP, instance=instance))
    worker = Worker(known, parts_of(never, known, objects))
    behind = WorkerLink(asking(worker), lambda _request: None)
    return create_app(known, resolve_all(known, SECRETS), queue, lambda: True, worker=behind).test_client()


def get(client: FlaskClient, path: str, token: str) -> Any:
    return client.get(path, headers={"Authorization": f"Bearer {SECRETS[token]}"})


@pytest.mark.parametrize(
    ("token", "listed"),
    [
        ("ALL", ["shop-prod.dev.main", MAIN, "shop-prod.shop.other"]),
        ("READER", ["shop-prod.dev.main", MAIN, "shop-prod.shop.other"]),
        ("CI", [MAIN, "shop-prod.shop.other"]),
    ],
)
def test_a_token_lists_the_instances_that_its_globs_cover(client: FlaskClient, token: str, listed: list[str]) -> None:
    response = get(client, LIST, token)
    found = response.get_json()
    assert (response.status_code, [row["target"] for row in found["instances"]]) == (200, listed)
    assert (found["count"], found["next"]) == (len(listed), None)
    Draft202012Validator(declared("/api/targets/{target}/instances", 200)).validate(found)


def test_the_next_page_begins_where_the_one_before_ended(client: FlaskClient) -> None:
    first = get(client, f"{LIST}?limit=1", "CI").get_json()
    assert ([row["target"] for row in first["instances"]], first["count"], first["next"]) == ([MAIN], 2, MAIN)
    last = get(client, f"{LIST}?limit=1&after={first['next']}", "CI").get_json()
    assert ([row["target"] for row in last["instances"]], last["count"], last["next"]) == (["shop-prod.shop.other"], 2, None)
    assert get(client, f"{LIST}?limit=101", "CI").status_code == 400


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        (LIST, "OPS", 403),  # none of its instances is there
        (LIST, "SCRAPER", 403),
        ("/api/targets/shop-dev/instances", "ALL", 404),  # no template
        ("/api/targets/nothing/instances", "ALL", 404),
        ("/api/targets/nothing/instances", "CI", 403),
        (f"/api/targets/{MAIN}", "ALL", 200),
        (f"/api/targets/{MAIN}", "READER", 200),
        (f"/api/targets/{MAIN}", "CI", 200),
        (f"/api/targets/{MAIN}", "OPS", 403),
        ("/api/targets/shop-prod", "CI", 403),
        ("/api/targets/shop-prod.dev.main", "CI", 403),
        ("/api/targets/shop-prod.shop.gone", "CI", 404),
        ("/api/targets/shop-dev.shop.main", "ALL", 404),
        ("/api/targets/nothing.shop.main", "ALL", 404),
        ("/api/targets/shop-prod.shop.MAIN", "ALL", 404),
        (f"/api/deliveries?target={MAIN}", "CI", 200),
        (f"/api/runs/{MAIN}.{'a' * 12}", "OPS", 403),
        (f"/api/runs/{MAIN}.{'a' * 12}", "CI", 404),
    ],
)
def test_an_instance_is_read_by_its_name_within_a_token_s_bounds(client: FlaskClient, path: str, token: str, status: int) -> None:
    response = get(client, path, token)
    assert response.status_code == status, response.text
    if status == 200 and path.endswith(f"/{MAIN}"):
        Draft202012Validator(declared("/api/targets/{target}", 200)).validate(response.get_json())


def test_a_template_s_row_counts_its_instances(client: FlaskClient) -> None:
    found = get(client, "/api/targets", "ALL").get_json()
    Draft202012Validator(declared("/api/targets", 200)).validate(found)
    counts = {row["target"]: row.get("instances", {}).get("count") for row in found["targets"]}
    assert counts == {"infra": None, "shop-dev": None, "shop-fixed": None, "shop-prod": 3}


@pytest.mark.parametrize(
    ("target", "token", "status"),
    [(MAIN, "CI", 202), (MAIN, "READER", 202), (MAIN, "OPS", 403), ("shop-dev.shop.main", "ALL", 404), ("shop-prod", "CI", 403)],
)
def test_a_run_of_an_instance_is_asked_for_by_its_name(client: FlaskClient, queue: Kept, target: str, token: str, status: int) -> None:
    response = client.post(f"/replay/{target}", json={}, headers={"Authorization": f"Bearer {SECRETS[token]}"})
    assert response.status_code == status
    assert [job.target for job in queue.jobs] == [target] * (status == 202)
