"""Which dropped webhook configurations hold an object up, and what refuses an object and is dropped with it; real ones: `tests/e2e`."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from handler.engine.planner.dead_webhooks import DeadWebhooks
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable, PlanRefused, Problem
from handler.model.names import Identity
from handler.model.plan import Action, Change
from tests.unit.plan.samples import desired, document

GROUP = "admissionregistration.k8s.io"
ONE = Identity(GROUP, "ValidatingWebhookConfiguration", "", "guard")
HOOK = {"name": "a.example.com", "failurePolicy": "Fail"}
(ITEM,) = desired(document("ConfigMap", "a"))


def dead(*hooks: dict[str, Any], stays: Sequence[dict[str, Any]] = (), listed: bool = True) -> DeadWebhooks:
    """Return those of a plan that drops a configuration with these webhooks, and leaves one."""

    def get(path: str) -> dict[str, Any]:
        if not listed:
            raise AccessDenied.of("webhooks", "403")
        found = {"guard": hooks, "other": stays} if path.endswith("validatingwebhookconfigurations") else {}
        return {"items": [{"metadata": {"name": name}, "webhooks": [*each]} for name, each in found.items()]}

    api: Any = SimpleNamespace(get=get)
    comparison: Any = SimpleNamespace(candidates={ONE: {}})
    return DeadWebhooks(api, comparison)


def unavailable(webhook: str) -> ClusterUnavailable:
    error = ClusterUnavailable.of("ConfigMap/shop/a", "PATCH answered 500")
    error.webhook = webhook
    return error


@pytest.mark.parametrize(
    ("found", "waits"),
    [
        (dead(HOOK), True),
        (dead({"name": "b.example.com"}, HOOK), True),
        (dead(HOOK, stays=[{**HOOK, "failurePolicy": "Ignore"}, {**HOOK, "name": "b.example.com"}]), True),
        (dead({**HOOK, "failurePolicy": "Ignore"}), False),
        (dead({**HOOK, "name": "b.example.com"}), False),
        (dead(HOOK, stays=[HOOK]), False),
        (dead(HOOK, listed=False), False),
    ],
)
def test_only_a_dropped_configuration_goes_first_that_fails_closed_and_alone_has_the_webhook(found: DeadWebhooks, waits: bool) -> None:
    if waits:
        assert "not judged yet" in found.unjudged(ITEM, unavailable("a.example.com"), list)
        assert found.guarded == {ONE: [ITEM.identity]}
        found.judge()
    with pytest.raises(ClusterUnavailable):
        found.unjudged(ITEM, unavailable("a.example.com"), list)


@pytest.mark.parametrize(
    ("found", "error"),
    [
        (Change(Action.UPDATE, ITEM.identity), None),
        (Change(Action.RECREATE, ITEM.identity), PlanRefused),
        (Problem(str(ITEM.identity), "no"), PlanRefused),
        (AccessDenied.of(str(ITEM.identity), "no"), AccessDenied),
    ],
)
def test_what_waited_is_judged_by_all_that_comes_of_it(found: Any, error: type[AnnealError] | None) -> None:
    waiting = dead(HOOK)
    waiting.unjudged(ITEM, unavailable("a.example.com"), lambda: [found])
    with pytest.raises(error) if error else contextlib.nullcontext():
        waiting.judge()


@pytest.mark.parametrize(
    ("prunes", "why"),
    [
        ((), "it is left"),
        ((Change(Action.SKIP, ONE, reason="protected by helm.sh/resource-policy: keep"),), "protected by helm.sh/resource-policy: keep"),
    ],
)
def test_a_dead_webhook_stays_that_the_plan_doesnt_delete(prunes: tuple[Change, ...], why: str) -> None:
    """Prune is off, or something protects it."""
    waiting = dead(HOOK)
    waiting.unjudged(ITEM, unavailable("a.example.com"), list)
    with pytest.raises(ClusterUnavailable) as caught:
        waiting.put_first(prunes, "c" * 40)
    assert caught.value.problems[0].fix == f"{ONE} would go first, which git declares no longer, but: {why}"
    (first,) = waiting.put_first((Change(Action.PRUNE, ONE, reason="no longer declared"),), "c" * 40)
    assert first.reason == "no longer declared; goes first: its webhook a.example.com doesn't answer"


def test_an_answer_that_names_no_webhook_excuses_nothing() -> None:
    with pytest.raises(ClusterUnavailable):
        dead(HOOK).unjudged(ITEM, unavailable(""), list)


@pytest.mark.parametrize(("webhook", "is_dropped"), [("a.example.com", True), ("b.example.com", False)])
def test_a_webhook_that_denies_and_is_dropped_is_named_with_two_commits(webhook: str, is_dropped: bool) -> None:
    problem = Problem("ConfigMap/shop/a", f'admission webhook "{webhook}" denied the request: no')
    found = dead(HOOK).by_two_commits(problem)
    first = f"commit first the removal of {ONE} alone, and then the change of ConfigMap/shop/a"
    assert found.fix == (f"{ONE} would go after it is written: {first}" if is_dropped else "")
