"""The OpenAPI document is what the door does: its paths, its statuses, its schemas; and no request gets a 5xx out of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from flask.testing import FlaskClient
from hypothesis import HealthCheck, settings
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from handler.app.target_status import HELD
from tests.fakes.signed_webhooks import SECRETS, github_headers, github_push
from tests.unit.web.door_with_runs import ENDED, FAILED, QUEUED, RECORDED, RUNNING, door
from tests.unit.web.openapi_schema import APP, BEARER, DOCUMENT, declared

pytestmark = pytest.mark.slow

OPERATIONS = schemathesis.openapi.from_wsgi("/api/openapi.json", APP, headers=BEARER)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture
def client() -> FlaskClient:
    return door().test_client()


def test_the_document_is_openapi() -> None:
    validate(DOCUMENT)
    assert DOCUMENT["openapi"].startswith("3.1.")


def test_it_has_room_for_all_that_is_listed_of_a_held_plan() -> None:
    assert DOCUMENT["components"]["schemas"]["HeldChanges"]["properties"]["items"]["maxItems"] == HELD


def test_it_names_exactly_the_routes_and_methods_that_there_are() -> None:
    routed = {(rule.rule, method) for rule in APP.url_map.iter_rules() for method in (rule.methods or set()) - {"HEAD"}}
    told = {(path.replace("{", "<").replace("}", ">"), method.upper()) for path, methods in DOCUMENT["paths"].items() for method in methods}
    assert told == routed


REAL = [
    ("/api/targets", "/api/targets", 200),
    ("/api/targets?limit=1", "/api/targets", 200),
    ("/api/targets?limit=x", "/api/targets", 400),
    ("/api/targets/shop-prod", "/api/targets/{target}", 200),
    ("/api/targets/shop-fixed", "/api/targets/{target}", 200),
    ("/api/targets/nobody", "/api/targets/{target}", 404),
    ("/api/targets/shop-prod/gap", "/api/targets/{target}/gap", 200),
    ("/api/targets/shop-prod/gap?object=ConfigMap/shop/web", "/api/targets/{target}/gap", 200),
    ("/api/targets/shop-dev/gap", "/api/targets/{target}/gap", 200),
    ("/api/targets/nobody/gap", "/api/targets/{target}/gap", 404),
    ("/api/targets/shop-prod/orphans", "/api/targets/{target}/orphans", 200),
    *((f"/api/runs/{run}", "/api/runs/{run}", 200) for run in (QUEUED, RUNNING, ENDED, FAILED, RECORDED)),
    ("/api/runs/shop-prod.0", "/api/runs/{run}", 404),
    ("/api/deliveries", "/api/deliveries", 200),
    ("/api/openapi.json", "/api/openapi.json", 200),
    ("/healthz", "/healthz", 200),
    ("/readyz", "/readyz", 200),
]


@pytest.mark.parametrize(("url", "path", "status"), REAL)
def test_real_answers_have_the_form_that_is_told(client: FlaskClient, url: str, path: str, status: int) -> None:
    for body, secret in ((github_push(), "GITHUB"), (github_push(), "CI"), (github_push("https://git.example.com/a/b"), "GITHUB")):
        client.post("/webhooks/github", data=body, headers=github_headers(body, SECRETS[secret]))
    response = client.get(url, headers=BEARER)
    assert response.status_code == status
    Draft202012Validator(declared(path, status)).validate(response.get_json())


def test_what_is_asked_for_has_the_form_that_is_told(client: FlaskClient) -> None:
    headers = {**BEARER, "Content-Type": "application/json"}
    for body, status in (({}, 202), ({"dryRun": True}, 202), ({"commit": "x"}, 400), ({"approve": "h1"}, 403)):
        response = client.post("/replay/infra", data=json.dumps(body), headers=headers)
        assert response.status_code == status
        Draft202012Validator(declared("/replay/{target}", status, "post")).validate(response.get_json())


@OPERATIONS.parametrize()
@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_whatever_is_sent_is_answered_as_told(case: schemathesis.Case[Any]) -> None:
    case.validate_response(case.call(headers=BEARER), checks=CHECKS)


@OPERATIONS.parametrize()
@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_without_a_token_nothing_but_health_is_answered(case: schemathesis.Case[Any]) -> None:
    response = case.call(headers={"Authorization": "Bearer wrong-token-wrong-token"})
    case.validate_response(response, checks=CHECKS)
    if case.operation.path not in ("/healthz", "/readyz"):
        assert response.status_code in (400, 401, 404, 405, 415)
