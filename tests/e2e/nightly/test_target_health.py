"""Health belongs to the target: judged at the end of each run, by drift runs and by a watch between them; kubectl breaks and cures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from handler.config.settings import Impersonate
from handler.model.health import HealthState
from handler.model.result import Outcome
from handler.state.record import Attempt
from tests.e2e.documents import config_map, deployment, service
from tests.e2e.one_target import PATH, STATES, Shop
from tests.e2e.rbac_rights import ALL, allow
from tests.e2e.serve_process import TOKEN, Serving
from tests.e2e.status_api import bearer, metrics
from tests.fakes.clock import NEVER
from tests.patience import until


def test_health_is_degraded_by_a_deleted_object_once_no_attempt_is_open_and_healthy_once_it_is_back(shop: Shop, watching: Any) -> None:
    shop.push(deployment(shop.name, "api", replicas=2), config_map(shop.name, "a"))
    shop.applied()
    assert shop.state().health.state in (HealthState.PROGRESSING, HealthState.HEALTHY)
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    before, store = shop.state(), shop.handler.store(shop.target)
    stored = store.read()
    assert stored.state
    attempt = Attempt(shop.head, "b" * 64, "c" * 64, "u.1", stored.state.health.since)
    opened = store.swap(stored, replace(stored.state, attempt=attempt), "u.1")
    shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
    watch.passes(2)
    assert store.read().resource_version == opened.resource_version, "nothing is written amid an attempt"
    assert opened.state
    store.swap(opened, replace(opened.state, attempt=None), "u.1")
    health = watch.shows(HealthState.DEGRADED, "Deployment", "is not there")
    assert health.since
    after = shop.state()
    assert (after.history, after.commit, after.status) == (before.history, before.commit, before.status), "no run, nothing else written"
    assert shop.run("drift").outcome is Outcome.APPLIED
    watch.shows(HealthState.HEALTHY)


def test_health_is_watched_in_the_allowed_namespace_and_listed_where_watch_is_denied(shop: Shop, watching: Any) -> None:
    shop.configure(impersonate=Impersonate(f"{shop.name}/deployer"), namespaces=(shop.name,))
    allow(shop, (ALL, "", "services"), ("create,delete,get,list,patch", "apps", "deployments"))
    shop.push(service(shop.name, "web"), deployment(shop.name, "api", replicas=1))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    shop.kubectl.run("delete", "service", "web", "-n", shop.name)
    watch.shows(HealthState.DEGRADED, "Service", "is not there")
    shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
    watch.shows(HealthState.DEGRADED, "Deployment", "is not there")


def test_a_server_reports_target_health_in_api_metrics_and_log(shop: Shop, tmp_path: Path) -> None:
    shop.push(deployment(shop.name, "api", replicas=1))
    server = Serving(tmp_path / "anneal.yaml", tmp_path / "log")
    server.config.write_text(json.dumps(_served(shop)))
    try:
        server.start().ready()
        until(lambda: _row(server)["health"] == "healthy", server.log.read_text)
        shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
        until(lambda: _row(server)["health"] == "degraded", server.log.read_text)
        until(lambda: f'anneal_target_health{{health="degraded",target="{shop.name}"}} 1.0' in metrics(server), lambda: metrics(server))
        until(lambda: _whole(server, shop)["trouble"] is None, server.log.read_text)
        told = _whole(server, shop)
        assert told["state"]["status"]["phase"] == "applied"
        assert "is not there" in told["state"]["health"]["worst"][0]
        until(lambda: [line for line in server.lines("health") if (line["health"], line["target"]) == ("degraded", shop.name)])
    finally:
        server.stop()


def _served(shop: Shop) -> dict[str, Any]:
    target = {
        "name": shop.name,
        "repository": {"url": shop.target.repository.url},
        "path": PATH,
        "namespaces": [shop.name],
        "clusterScoped": ["Namespace"],
        "cluster": {"kubeconfig": {"file": str(shop.kubectl.kubeconfig)}},
    }
    token = {"name": "ops", "secret": {"env": "OPS"}, "may": ["read", "metrics"]}
    facts = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES, "driftInterval": NEVER}
    return {**facts, "healthInterval": "2s", "replay": {"tokens": [token]}, "targets": [target]}


def _whole(server: Serving, shop: Shop) -> Any:
    return server.send("GET", f"/api/targets/{shop.name}", headers=bearer(TOKEN))[1]


def _row(server: Serving) -> Any:
    return server.send("GET", "/api/targets", headers=bearer(TOKEN))[1]["targets"][0]
