"""Waiting until what was applied is healthy: who is waited for, when that ends early, and what is said then."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import unquote

import pytest

from handler.config.settings import Wait
from handler.model.result import Outcome
from infra.controlplane.servers import Layout
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import Document, config_map, definition, deployment, job, namespace, offer, service
from tests.e2e.one_target import DONE, Shop, told
from tests.e2e.test_wait_health import PATIENT, failed
from tests.e2e.workload_status import fated, made_ready, stand_still
from tests.patience import until

WATCHES = 4
"""Of 50 seconds each, in the time of such a wait, and one that was cut."""


def recorded(shop: Shop) -> None:
    """Run the target by a tick; its commit must be recorded. After a first one that never was, another follows under the same Lease."""
    result = shop.run("tick")
    assert result.outcome in DONE, told(result)
    assert (shop.state().commit, shop.state().attempt) == (shop.head, None)


def is_available(shop: Shop, document: Document) -> bool:
    live = shop.live(document)
    return bool(live and (live["status"].get("availableReplicas") or 0) >= 1)


def test_a_commit_is_recorded_when_all_of_it_is_healthy_and_what_is_paused_or_pending_is_noted(shop: Shop) -> None:
    shop.configure(wait=PATIENT)
    web, work, brief = deployment(shop.name, "web", replicas=2), job(shop.name, "work"), job(shop.name, "brief")
    brief["spec"]["ttlSecondsAfterFinished"] = 0
    paused, balanced = deployment(shop.name, "still", replicas=1), service(shop.name, "outside")
    paused["spec"]["paused"], balanced["spec"]["type"] = True, "LoadBalancer"
    offers = definition(shop.group), offer(shop.group, shop.name, "tea")
    shop.push(web, work, brief, paused, balanced, config_map(shop.name, "a"), *offers)
    plan = shop.applied().plan
    assert plan
    assert f"Service/{shop.name}/outside: its load balancer has no address yet" in plan.notes
    assert any(note.startswith(f"Deployment/{shop.name}/still: is paused, so its rollout stands still") for note in plan.notes)
    until(lambda: shop.live(brief) is None)
    assert is_available(shop, web)
    done = shop.live(work)
    assert done
    assert done["status"]["succeeded"] == 1
    state = shop.state()
    assert (state.commit, state.attempt, state.waiting, state.status.unhealthy) == (shop.head, None, None, ())


def test_progress_timeout_ends_the_wait_and_is_reported_once(shop: Shop) -> None:
    slow = fated(deployment(shop.name, "slow", replicas=1), "never-ready")
    shop.push(slow)
    shop.applied()
    until(lambda: stand_still(shop, "slow"))
    shop.configure(wait=Wait(120.0, 2.0))
    shop.push(slow, config_map(shop.name, "a"))
    said = failed(shop)
    assert "isn't healthy, and nothing has changed for 2s: 0 of 1 replica available; pod slow-" in said
    assert "Warning Unhealthy: “Readiness probe failed" in said
    assert shop.state().waiting is not None
    assert [failed(shop, trigger="tick") for _ in range(2)] == [said, said]
    history = shop.state().history
    assert [(run.outcome, run.times) for run in history] == [("failed", 3), ("applied", 1)]
    made_ready(shop.kubectl, shop.name, "slow")
    until(lambda: is_available(shop, slow))
    recorded(shop)
    assert (shop.state().waiting, shop.state().status.unhealthy) == (None, ())


def test_a_time_out_names_all_that_is_missing_and_ten_of_it_in_the_error(shop: Shop) -> None:
    shop.configure(wait=Wait(1.0, 120.0))
    shop.push(*(fated(deployment(shop.name, f"w{number:02}", replicas=1), "never-ready") for number in range(12)))
    assert failed(shop).count(": isn't healthy after 1s: ") == 10
    until(lambda: stand_still(shop, *(f"w{number:02}" for number in range(12))))
    lines = failed(shop, force=True).splitlines()
    assert sum("isn't healthy after 1s: 0 of 1 replica" in line for line in lines) == 10
    assert lines[-1].startswith(f"target {shop.name}: 2 more objects are not healthy; see them all: anneal status")
    assert sum("; pod w" in line for line in lines) == 10, "each with its own pod"
    assert len(shop.state().status.unhealthy) == 12


def audited(shop: Shop) -> list[str]:
    """Return what Anneal asked of the shop's Deployments after its last write to them, as the API server's own audit log has it."""
    log, seen = Layout(shop.kubectl.kubeconfig.parent).audit, dict[str, tuple[str, str, str]]()
    if not log.exists():
        pytest.skip("another cluster is used, and its audit log isn't known")
    lines = [line for place in log.parent.glob("audit*.jsonl") for line in place.read_text().splitlines()]  # one may have been put aside
    for event in (json.loads(line) for line in lines if shop.name in line or shop.applyset in unquote(line)):
        if event["userAgent"] == "anneal" and (shop.applyset in unquote(event["requestURI"]) or f"/{shop.name}" in event["requestURI"]):
            path = event["requestURI"].partition("?")[0]
            seen[event["auditID"]] = (event["requestReceivedTimestamp"], event["verb"], path)
    last = max(when for when, verb, _ in seen.values() if verb == "patch")
    return sorted(f"{verb} {path}" for when, verb, path in seen.values() if when > last)


def test_three_hundred_deployments_cost_a_list_and_a_watch(shop: Shop, wired: Callable[[], Wired]) -> None:
    wire = wired()
    shop.configure(wait=PATIENT)
    spaces = [shop.name, f"{shop.name}-jobs"]
    apps = [deployment(spaces[number % 2], f"w{number:03}", replicas=int(number % 10 == 0)) for number in range(300)]
    shop.push(namespace(spaces[1]), *apps, config_map(shop.name, "a"))
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert result.outcome is Outcome.APPLIED, told(result)
    seen = [(method, path) for method, path in wire.seen]
    last = max(number for number, (method, path) in enumerate(seen) if method == "PATCH" and "/deployments/" in path)
    waited = [path for method, path in seen[last + 1 :] if method == "GET"]
    assert len([path for path in waited if "/deployments" in path and "watch=true" not in path]) == 1
    assert len([path for path in waited if "/deployments" in path and "watch=true" in path]) <= WATCHES
    assert not any(f"/namespaces/{shop.name}" in path for path in waited if "/deployments" in path), "one for all namespaces"
    assert not any("/configmaps?" in path or "/secrets" in path for path in waited if shop.name in path), "nothing is waited for there"
    everywhere = "/apis/apps/v1/deployments"
    until(lambda: f"watch {everywhere}" in audited(shop))
    assert audited(shop) in ([f"list {everywhere}", *[f"watch {everywhere}"] * watches] for watches in range(1, WATCHES + 1))


def in_a_hurry(shop: Shop, wait: Wait) -> None:
    """Let the shop's runs wait so, and none of them in its own time: as functions do."""
    shop.configure(wait=wait)
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, patience=0.0)


def test_a_function_leaves_the_rest_of_the_wait_to_the_next_run(shop: Shop) -> None:
    in_a_hurry(shop, PATIENT)
    slow = fated(deployment(shop.name, "slow", replicas=1), "never-ready")
    shop.push(slow)
    first, began = shop.run(), shop.state()
    assert first.outcome is Outcome.WAITING, told(first)
    assert began.waiting
    assert [line.partition(": ")[0] for line in began.status.unhealthy] == [f"Deployment/{shop.name}/slow"]
    until(lambda: stand_still(shop, "slow"))
    shop.run("tick")
    stood = shop.state()
    assert shop.run("tick").outcome is Outcome.WAITING
    again = shop.state()
    assert stood.waiting
    assert again.waiting
    assert began.waiting.since == stood.waiting.since == again.waiting.since
    assert (again.waiting.seen, again.waiting.moved) == (stood.waiting.seen, stood.waiting.moved), "nothing has changed"
    assert "Warning Unhealthy: “Readiness probe failed" in stood.status.unhealthy[0]
    assert again.status.unhealthy == stood.status.unhealthy
    made_ready(shop.kubectl, shop.name, "slow")
    until(lambda: is_available(shop, slow))
    recorded(shop)
