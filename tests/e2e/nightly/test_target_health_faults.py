"""A watch of health under harm: rights are taken, records can't be written, an attempt stays open."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import Impersonate, Wait
from handler.model.errors import RolloutFailed
from handler.model.health import HealthState
from handler.state.record_format import seconds_of, stamp
from tests.e2e.documents import deployment, service
from tests.e2e.health_watch import Watching
from tests.e2e.one_target import STATES, Shop
from tests.e2e.rbac_rights import ALL, allow
from tests.e2e.workload_status import fated
from tests.patience import until


def said(caplog: pytest.LogCaptureFixture, message: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "anneal.health" and message in record.message]


def followed(watch: Watching) -> bool:
    """Whether all that the shop declares is WATCHed."""
    (cluster,) = watch.watch.clusters
    return cluster.scopes.are_whole(watch.shop.name)


def test_rights_that_are_taken_under_a_watch_make_health_unknown(shop: Shop, watching: Any) -> None:
    shop.configure(impersonate=Impersonate(f"{shop.name}/deployer"), namespaces=(shop.name,))
    allow(shop, (ALL, "", "services"))
    shop.push(service(shop.name, "web"))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    until(lambda: followed(watch))
    shop.kubectl.run("delete", "role,rolebinding", "--all", "-n", shop.name)
    watch.shows(HealthState.UNKNOWN, "can't be judged")
    allow(shop, (ALL, "", "services"))
    watch.shows(HealthState.HEALTHY)


def test_a_record_that_cant_be_written_is_tried_once_an_interval(shop: Shop, watching: Any, caplog: pytest.LogCaptureFixture) -> None:
    shop.push(deployment(shop.name, "api", replicas=1))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    until(lambda: followed(watch))
    denied = _denied(shop)
    try:
        shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
        until(lambda: said(caplog, "health can't be recorded"))
        before = len(said(caplog, "health can't be recorded"))
        watch.passes(5)
        assert len(said(caplog, "health can't be recorded")) - before <= 6
    finally:
        shop.kubectl.run("delete", *denied)
    watch.shows(HealthState.DEGRADED, "is not there")


def _denied(shop: Shop) -> tuple[str, str]:
    """Have the server refuse each update of the record; return what takes that back."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["configmaps"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [{"name": "record", "expression": f"request.name == 'anneal-{shop.name}'"}],
        "validations": [{"expression": "false"}],
    }
    made = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": shop.name}}
    shop.kubectl.apply({**made, "kind": "ValidatingAdmissionPolicy", "spec": spec})
    bound = {"policyName": shop.name, "validationActions": ["Deny"]}
    shop.kubectl.apply({**made, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound})
    touch = ("annotate", "configmap", f"anneal-{shop.name}", "-n", STATES, "--overwrite", "--dry-run=server", "tests.example.com/a=1")
    until(lambda: shop.kubectl.tried(*touch).returncode)
    return "validatingadmissionpolicy,validatingadmissionpolicybinding", shop.name


def test_while_a_failed_attempt_is_open_runs_vouch_for_health_though_a_process_watches_it(shop: Shop) -> None:
    shop.configure(wait=Wait(1.0, 120.0))
    shop.push(fated(deployment(shop.name, "api", replicas=1), "never-ready"))
    handler = shop.handler_at(shop.kubectl.kubeconfig, watches=True)
    assert handler.run(shop.job("push")).code == RolloutFailed.code
    store = shop.handler.store(shop.target)
    stored = store.read()
    assert stored.state
    assert stored.state.attempt
    old = replace(stored.state.health, judged=stamp(seconds_of(stored.state.health.judged) - 3 * shop.settings.drift_interval))
    store.swap(stored, replace(stored.state, health=old), stored.state.attempt.token)
    assert handler.run(shop.job("tick")).code == RolloutFailed.code
    assert shop.state().health.judged > old.judged
