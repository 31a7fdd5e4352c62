"""A watch of health under harm: what it follows goes, rights are taken, records can't be written, controllers repeat secrets."""

from __future__ import annotations

import json
import logging
import time
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import Impersonate, Wait
from handler.model.errors import RolloutFailed
from handler.model.health import HealthState
from handler.state.record_format import seconds_of, stamp
from handler.worker.health_watch import scopes
from tests.e2e.documents import config_map, definition, deployment, offer, service
from tests.e2e.health_watch import Watching
from tests.e2e.one_target import STATES, Shop
from tests.e2e.rbac_rights import ALL, allow
from tests.e2e.serve_process import until
from tests.e2e.two_targets import Pair
from tests.e2e.workload_status import fated

"""A fixture."""
CANARY = "hunter2-hunter2-4711"


def said(caplog: pytest.LogCaptureFixture, message: str) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name == "anneal.health" and message in record.message]


def followed(watch: Watching) -> bool:
    """Whether all that the shop declares is WATCHed."""
    (cluster,) = watch.watch.clusters
    return cluster.scopes.are_whole(watch.shop.name)


def test_a_target_that_declares_nothing_to_watch_any_more_ends_no_watch(
    shop: Shop, watching: Any, caplog: pytest.LogCaptureFixture
) -> None:
    shop.push(deployment(shop.name, "api", replicas=1), config_map(shop.name, "a"))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    until(lambda: followed(watch))
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    watch.passes(3)
    assert not said(caplog, "a pass of health failed")
    assert shop.state().health.state == HealthState.HEALTHY


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


def test_health_of_a_recreated_object_is_progressing_before_it_is_degraded(shop: Shop, watching: Any) -> None:
    shop.push(deployment(shop.name, "api", replicas=1))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    until(lambda: followed(watch))
    shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
    watch.shows(HealthState.DEGRADED, "is not there")
    shop.push(fated(deployment(shop.name, "api", image="shop:2", replicas=1), "never-ready"))
    shop.applied()
    until(lambda: "Unhealthy" in str(shop.state().health.worst), told=lambda: str(shop.state().health))
    watch.passes(10)
    assert shop.state().health.state == HealthState.PROGRESSING


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


def test_a_condition_of_what_holds_a_secret_is_repeated_by_no_health_watch(
    shop: Shop, watching: Any, caplog: pytest.LogCaptureFixture
) -> None:
    kind = definition(shop.group)
    kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] = True
    held = offer(shop.group, shop.name, "a")
    held["spec"]["token"] = CANARY
    kind["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["token"] = {"type": "string"}
    shop.push(kind, held)
    shop.applied()
    watch = watching()
    until(lambda: followed(watch))
    condition = {"type": "Ready", "status": "False", "reason": "Refused", "message": f"signing in as ann with {CANARY} is refused"}
    patch = json.dumps({"status": {"conditions": [condition]}})
    until(lambda: not shop.kubectl.tried("patch", f"offers.{shop.group}", "a", "-n", shop.name, "--type=merge", "-p", patch).returncode)
    watch.shows(HealthState.PROGRESSING, f"Offer/{shop.name}/a: in progress")
    record = shop.kubectl.run("get", "configmap", f"anneal-{shop.name}", "-n", STATES, "-o", "yaml")
    assert CANARY not in record + json.dumps([getattr(each, "fields", {}) for each in caplog.records])


def test_a_target_whose_record_was_deleted_is_healthy_again_by_itself(pair: Pair, watching: Any) -> None:
    pair.push((service(pair.space, "a"),), (service(pair.space, "b"),))
    pair.applied(pair.a, pair.b)
    watch = watching(pair.a)
    watch.shows(HealthState.HEALTHY)
    until(lambda: followed(watch))
    pair.a.kubectl.run("delete", "configmap", f"anneal-{pair.a.name}", "-n", STATES)
    watch.passes(3)
    pair.applied(pair.a)  # it finds its members, and writes the record anew
    (cluster,) = watch.watch.clusters
    known = cluster.watched[f"anneal-{pair.a.name}"]
    until(lambda: known.declared and cluster.scopes.are_whole(pair.a.name) and not cluster.arrivals.joined)
    found = known.look(time.monotonic())
    assert found.state() is HealthState.HEALTHY, (
        "what a run has just written isn't called missing for a while, so that the record says less"
    )
    assert {identity.name for identity in found.verdicts} == {"a"}


def test_an_unknown_health_state_in_the_record_ends_no_pass(shop: Shop, watching: Any, caplog: pytest.LogCaptureFixture) -> None:
    shop.push(deployment(shop.name, "api", replicas=1))
    shop.applied()
    store = shop.handler.store(shop.target)
    stored = store.read()
    assert stored.state
    store.swap(stored, replace(stored.state, health=replace(stored.state.health, state="splendid")))
    watching().shows(HealthState.HEALTHY)
    assert not said(caplog, "a pass of health failed")


def test_a_record_that_cant_be_read_is_no_healthy_target(shop: Shop, watching: Any) -> None:
    shop.push(deployment(shop.name, "api", replicas=1))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
    watch.shows(HealthState.DEGRADED, "is not there")
    watch.passes(1)
    record = ("configmap", f"anneal-{shop.name}", "-n", STATES)
    kept = shop.kubectl("get", *record)["data"]["health.json"]
    before = len(watch.said)

    def edit(text: str) -> None:
        shop.kubectl.run("patch", *record, "--type=merge", "-p", json.dumps({"data": {"health.json": text}}))

    edit('{"state": 5}')
    until(lambda: (shop.name, HealthState.UNKNOWN) in watch.said[before:], told=lambda: str(watch.said[before:]))
    edit(kept)
    watch.passes(3)
    assert HealthState.HEALTHY not in {state for _, state in watch.said[before:]}
    assert watch.said[-1] == (shop.name, HealthState.DEGRADED)


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


def test_health_of_kinds_without_a_watch_isnt_judged_by_a_list_from_before_a_run(
    shop: Shop, watching: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scopes, "WATCHES", 0)
    shop.push(service(shop.name, "web"))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    until(lambda: followed(watch))
    before = len(watch.said)
    for number in range(3):
        shop.push(*(service(shop.name, f"web-{each}") for each in range(number + 1)))
        shop.applied()
        watch.passes(1)
    watch.passes(3)
    assert {state for _, state in watch.said[before:]} == {HealthState.HEALTHY}
    assert shop.state().health.state == HealthState.HEALTHY


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
