"""Which dropped webhook configurations hold an object up, and what refuses an object and is dropped with it; real ones: `tests/e2e`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from handler.engine.planner.dead_webhooks import DeadWebhooks
from handler.model.errors import ClusterUnavailable, Problem
from handler.model.manifest import Manifest
from handler.model.names import Identity, Resource
from handler.plan.admission import Desired

ONE = Identity("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "", "guard")
RULE = {"apiGroups": [""], "resources": ["configmaps"], "operations": ["UPDATE"]}
LABELS = {"team": "shop"}
HOOK = {"name": "a.example.com", "failurePolicy": "Fail", "rules": [RULE], "clientConfig": {"service": {"namespace": "x", "name": "y"}}}


def dead(*hooks: dict[str, Any]) -> DeadWebhooks:
    def get(path: str, **_: Any) -> dict[str, Any]:
        found = {"webhooks": list(hooks)} if "webhookconfigurations" in path else {"metadata": {"labels": LABELS}}
        return {"apiVersion": "v1", "kind": "Any", "metadata": {}, **found}

    api: Any = SimpleNamespace(get=get)
    comparison: Any = SimpleNamespace(candidates={ONE: {}})
    return DeadWebhooks(api, comparison)


def item() -> Desired:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop", "labels": LABELS}}
    return Desired(Manifest.of(body), Resource("", "v1", "ConfigMap", "configmaps", namespaced=True))


def unavailable(webhook: str) -> ClusterUnavailable:
    error = ClusterUnavailable.of("ConfigMap/shop/a", "PATCH answered 500")
    error.webhook = webhook
    return error


def selecting(operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "team", "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("change", "waits"),
    [
        ({}, True),
        ({"failurePolicy": "Ignore"}, False),
        ({"name": "b.example.com"}, False),
        ({"rules": [{**RULE, "apiGroups": ["*"], "resources": ["*/*"], "operations": ["*"]}]}, True),
        ({"rules": [{**RULE, "operations": ["CREATE"]}]}, False),
        ({"rules": [{**RULE, "apiGroups": ["apps"]}, {**RULE, "resources": ["configmaps/status"]}]}, False),
        ({"objectSelector": {"matchLabels": {"team": "bank"}}}, False),
        ({"namespaceSelector": {"matchLabels": LABELS}}, True),
        ({"namespaceSelector": selecting("In", "shop", "bank")}, True),
        ({"namespaceSelector": selecting("NotIn", "shop")}, False),
        ({"namespaceSelector": selecting("Exists")}, True),
        ({"objectSelector": selecting("DoesNotExist")}, False),
    ],
)
def test_only_a_dropped_configuration_that_guards_the_object_by_all_that_it_says_goes_first(change: dict[str, Any], waits: bool) -> None:
    found = dead({**HOOK, **change})
    if waits:
        assert "not judged yet" in found.unjudged(item(), unavailable("a.example.com"), is_new=False)
        assert found.guarded == {ONE: [item().identity]}
        found.cleared = True
    with pytest.raises(ClusterUnavailable):
        found.unjudged(item(), unavailable("a.example.com"), is_new=False)


def test_an_answer_that_names_no_webhook_excuses_nothing() -> None:
    with pytest.raises(ClusterUnavailable):
        dead(HOOK).unjudged(item(), unavailable(""), is_new=False)


@pytest.mark.parametrize(("webhook", "is_dropped"), [("a.example.com", True), ("b.example.com", False)])
def test_a_webhook_that_denies_and_is_dropped_is_named_with_two_commits(webhook: str, is_dropped: bool) -> None:
    problem = Problem("ConfigMap/shop/a", f'admission webhook "{webhook}" denied the request: no')
    found = dead(HOOK).by_two_commits(problem)
    first = f"commit first the removal of {ONE} alone, and then the change of ConfigMap/shop/a"
    assert found.fix == (f"{ONE} would go after it is written: {first}" if is_dropped else "")
