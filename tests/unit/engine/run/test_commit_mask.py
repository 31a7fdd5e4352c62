"""What an author's error carries is masked wherever a run leaves it: in the history, the status, the pin, the journal, the Result."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from handler.engine.run.commit_mask import CommitMask, hidden
from handler.model.errors import PlanRefused, Problem
from handler.model.event import Job
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.result import Outcome
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.engine import state_of
from tests.unit.engine.in_memory_cluster import MAPS, InMemoryCluster, config_map
from tests.unit.engine.rollback_commits import BACK, HOOK, push

DECLARED, OPERATORS = "hunter2-of-the-database", "ghp_of-the-operator"


def saying(words: str, name: str) -> Callable[[Call, Callable[[], Reply]], Reply]:
    """Return a way on which an admission webhook refuses one ConfigMap, in these words."""
    refused = {"kind": "Status", "code": 422, "status": "Failure", "reason": "Invalid", "message": f'admission webhook "w" denied: {words}'}

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        return (422, refused, {}) if call.writes and call.asked.path == f"{MAPS}/{name}" else do()

    return way


@pytest.mark.parametrize("marks", [HOOK, {**HOOK, "argocd.argoproj.io/hook": "PostSync"}, {}])
def test_no_secret_that_a_failure_tells_reaches_the_record_or_the_result(marks: dict[str, str]) -> None:
    fake = InMemoryCluster()
    push(fake, "1")
    assert fake.handler(BACK).run(Job("shop", "push")).outcome is Outcome.APPLIED
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}, "stringData": {"password": DECLARED}}
    last = config_map("migrate", "2")
    last["metadata"]["annotations"] = marks
    bodies: tuple[dict[str, Any], ...] = (config_map("web", "2"), secret, last)
    sha = fake.host.commit({f"shop/{body['metadata']['name']}.yaml": json.dumps(body) for body in bodies})
    fake.host.push(sha)
    fake.meet = saying(f"with {DECLARED} and more", "migrate")
    handler = fake.handler(BACK)
    result = handler.run(Job("shop", "push"))
    assert result.outcome is Outcome.ROLLED_BACK
    state = state_of(handler)
    assert state.pin
    assert state.pin.automatic
    failed = next(run for run in state.history if run.outcome == Outcome.FAILED)
    for left in (failed.message, state.pin.reason, state.status.message, str(result), str(result.problems), repr(state)):
        assert "denied: with *** and more" in left
        assert DECLARED not in left


def manifest(kind: str, name: str, **body: Any) -> Manifest:
    group = {"Deployment": "apps/v1", "Login": "example.com/v1"}
    return Manifest.of({"apiVersion": group.get(kind, "v1"), "kind": kind, "metadata": {"name": name, "namespace": "shop"}, **body})


ENV = [{"name": "DB_PASSWORD", "value": "tuna-salad"}, {"name": "MODE", "value": "production"}, {"name": "A_TOKEN", "value": "short"}]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("with hunter2-of-the-database", "with ***"),
        ("host database, mode production", "host database, mode production"),
        ("with tuna-salad", "with ***"),
        ("keys from-a-map and from-a-resource", "keys *** and ***"),
        ("Secret login-web, 862486, True, true", "Secret login-web, ***, True, true"),
        ("as eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzaG9wIn0.c2lnbmF0dXJl!", "as ***!"),
        ("eyJ is no token", "eyJ is no token"),
        ("short", "short"),
    ],
)
def test_secret_values_of_a_commit_are_masked_whole_and_in_parts(text: str, shown: str) -> None:
    """A part, or a field, that is called like an object of the commit isn't: every other text names those."""
    file = "password: hunter2-of-the-database\nhost: database\n"
    template = {"spec": {"containers": [{"name": "web", "env": ENV}]}}
    mask = CommitMask(
        str,
        [
            manifest("Secret", "db", stringData={"file": file}),
            manifest("Service", "database"),
            manifest("Deployment", "web", spec={"template": template}),
            manifest("ConfigMap", "settings", data={"api-key": "from-a-map", "mode": "production"}),
            manifest("Login", "ann", spec={"token": ["from-a-resource", 862486, True], "clientSecret": "login-web"}),
            manifest("Secret", "login-web"),
        ],
    )
    assert mask(text) == shown


def test_values_that_a_commit_takes_from_secrets_of_the_cluster_are_masked_whole_and_in_parts() -> None:
    made = Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "database"}})
    mask = CommitMask(str, (made,), secrets=("password: hunter2-of-the-database\nhost: database\n",))
    text = "spec.env[0].value: Invalid value: hunter2-of-the-database, of database"
    assert mask(text) == "spec.env[0].value: Invalid value: ***, of database"
    assert "hunter2" not in repr(mask)


def test_a_problem_of_an_object_tells_no_value_of_its_hidden_fields_however_short() -> None:
    declared = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": -17, "paused": True}}
    identity = Identity("apps", "Deployment", "shop", "web")
    mask = CommitMask(str, (Manifest.of(declared),), hidden={identity: ("/spec/replicas", "/spec/paused")})
    said = "spec.replicas: Invalid value: -17: must be at least 1, not -170 or true"
    problems = (Problem("Deployment/shop/web", said), Problem("Deployment/shop/api", said))
    error = hidden(PlanRefused(*problems), CommitMask(mask, ()))
    assert [each.message for each in error.problems] == [said.replace("-17:", "***:"), said]
