"""Health belongs to the target: judged at the end of each run, by drift runs and by a watch between them; kubectl breaks and cures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from handler.config.settings import HoldAbove, Impersonate, Prune
from handler.model.health import HealthState
from handler.model.names import PART_OF
from handler.model.result import Outcome
from handler.state.heartbeat import Heartbeat, known
from handler.state.record import Attempt, TargetHealth
from handler.state.record_format import seconds_of, stamp
from tests.e2e.documents import config_map, deployment, service
from tests.e2e.one_target import PATH, STATES, Shop, told
from tests.e2e.rbac_rights import ALL, allow
from tests.e2e.serve_process import TOKEN, Serving, until
from tests.e2e.status_api import bearer, metrics
from tests.e2e.workload_status import fated
from tests.fakes.clock import NEVER


def test_health_is_degraded_by_a_deleted_object_and_healthy_once_it_is_back(shop: Shop, watching: Any) -> None:
    shop.push(deployment(shop.name, "api", replicas=2), config_map(shop.name, "a"))
    shop.applied()
    assert shop.state().health.state in (HealthState.PROGRESSING, HealthState.HEALTHY)
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    before = shop.state()
    shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
    health = watch.shows(HealthState.DEGRADED, "Deployment", "is not there")
    assert health.since
    after = shop.state()
    assert (after.history, after.commit, after.status) == (before.history, before.commit, before.status), "no run, nothing else written"
    assert shop.run("drift").outcome is Outcome.APPLIED
    watch.shows(HealthState.HEALTHY)


def test_each_run_judges_health_by_the_objects_it_has_read(shop: Shop) -> None:
    shop.push(service(shop.name, "web"), config_map(shop.name, "a"))
    shop.applied()
    assert shop.state().health.state == HealthState.HEALTHY
    shop.push(deployment(shop.name, "api", replicas=1), service(shop.name, "web"))
    shop.applied()
    assert shop.state().health.state == HealthState.PROGRESSING
    until(lambda: (shop.live(shop.documents[0]) or {}).get("status", {}).get("availableReplicas"))
    result = shop.run("drift")
    assert result.outcome is Outcome.UNCHANGED, told(result)
    assert shop.state().health.state == HealthState.HEALTHY
    shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)


def test_a_crash_loop_from_the_first_second_is_told_although_nothing_waits(shop: Shop, watching: Any) -> None:
    broken = fated(deployment(shop.name, "api", replicas=1), "crash-loop")
    shop.push(broken)
    shop.applied()
    watch = watching()
    watch.shows(HealthState.DEGRADED, "CrashLoopBackOff")
    del broken["spec"]["template"]["metadata"]["annotations"]
    shop.push(broken)
    shop.applied()
    assert shop.state().health.state == HealthState.PROGRESSING, "another commit"
    watch.shows(HealthState.HEALTHY)


def test_a_note_about_a_healthy_object_is_kept_while_it_holds(shop: Shop, watching: Any) -> None:
    balanced = service(shop.name, "web")
    balanced["spec"]["type"] = "LoadBalancer"
    shop.push(balanced)
    shop.applied()
    address = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
    watch = watching()
    watch.shows(HealthState.HEALTHY, "its load balancer has no address yet")
    shop.kubectl.run("patch", "service", "web", "-n", shop.name, "--subresource=status", "--type=merge", "-p", json.dumps(address))
    until(lambda: not watch.shows(HealthState.HEALTHY).notes)


def test_health_that_nobody_watches_any_more_is_unknown(shop: Shop, watching: Any) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    watch = watching()
    objects, beat = shop.handler.objects(shop.target), Heartbeat(shop.handler.objects(shop.target), STATES, "default")
    until(lambda: (found := beat.read().watched) and found.duration == 6.0)
    until(lambda: (judged := shop.state().health) and judged.state == HealthState.HEALTHY)
    health, found = shop.state().health, beat.read().watched
    assert found
    assert known(health, found, objects.server_time(), 1800.0) == health
    watch.stop()
    late = known(health, found, found.renewed + found.duration + 1, 1800.0)
    assert (late.state, late.worst[0].startswith("was healthy when it was judged last")) == (HealthState.UNKNOWN, True)


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


def test_a_target_that_declares_nothing_to_watch_any_more_holds_up_no_pass(shop: Shop, watching: Any) -> None:
    shop.push(service(shop.name, "web"), config_map(shop.name, "a"))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    watch.passes(1)
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    watch.passes(2)
    (cluster,) = watch.watch.clusters
    assert not [each for each in cluster.scopes.followed.values() if not each.kept]
    shop.push(service(shop.name, "web"), config_map(shop.name, "a"))
    shop.applied()
    shop.kubectl.run("delete", "service", "web", "-n", shop.name)
    watch.shows(HealthState.DEGRADED, "is not there")


def test_drift_report_of_a_deleted_object_makes_health_degraded(shop: Shop) -> None:
    shop.configure(drift="report")
    shop.push(service(shop.name, "web"), config_map(shop.name, "a"))
    shop.applied()
    assert shop.state().health.state == HealthState.HEALTHY
    shop.kubectl.run("delete", "service", "web", "-n", shop.name)
    assert shop.run("drift").outcome is Outcome.DRIFTED
    health = shop.state().health
    assert (health.state, health.worst) == (HealthState.DEGRADED, (f"Service/{shop.name}/web: is not there",))


def test_a_target_of_which_nothing_was_ever_applied_is_not_healthy(shop: Shop, watching: Any) -> None:
    shop.push(service(shop.name, "web"), {**config_map(shop.name, "a"), "data": {"refused by the API server": "x"}})
    assert shop.run().outcome is Outcome.FAILED
    watch = watching()
    watch.passes(2)
    shop.handler_at(shop.kubectl.kubeconfig, looks=True).run(shop.job("tick"))
    assert shop.state().health == TargetHealth()
    shop.push(service(shop.name, "web"))
    shop.applied()
    watch.shows(HealthState.HEALTHY)


def test_a_held_run_makes_health_degraded_by_a_deleted_object(shop: Shop) -> None:
    shop.configure(prune=Prune(hold_above=HoldAbove(0, 0.1)))
    shop.push(service(shop.name, "web"), config_map(shop.name, "a"))
    shop.applied()
    shop.kubectl.run("delete", "service", "web", "-n", shop.name)
    shop.push(service(shop.name, "web"))
    assert shop.run().outcome is Outcome.HELD
    health = shop.state().health
    assert (health.state, health.worst) == (HealthState.DEGRADED, (f"Service/{shop.name}/web: is not there",))


def test_ticks_of_a_function_judge_health_after_a_recent_run_or_while_not_healthy(shop: Shop) -> None:
    shop.push(service(shop.name, "web"))
    shop.applied()
    store, function = shop.handler.store(shop.target), shop.handler_at(shop.kubectl.kubeconfig, looks=True)

    def tick() -> str:
        assert function.run(shop.job("tick")).outcome is Outcome.UNCHANGED
        return store.read().resource_version

    def age() -> str:
        stored = store.read()
        assert stored.state
        run = stored.state.history[0]
        old = replace(run, started=stamp(seconds_of(run.started) - 601.0))
        return store.swap(stored, replace(stored.state, history=(old, *stored.state.history[1:]))).resource_version

    assert tick() == store.read().resource_version
    shop.kubectl.run("delete", "service", "web", "-n", shop.name)
    aged = age()
    assert tick() == aged, "well, and long ago: drift runs look at it"
    assert shop.run("drift").outcome is Outcome.APPLIED
    shop.kubectl.run("delete", "service", "web", "-n", shop.name)
    seen = tick()
    assert (shop.state().health.state, shop.state().health.worst) == (HealthState.DEGRADED, (f"Service/{shop.name}/web: is not there",))
    assert tick() == seen, "the same verdict"
    aged = age()
    shop.kubectl.apply(shop.documents[0])
    assert tick() == aged, "there, but without our label"


def test_a_drift_run_renews_an_old_health_verdict_only_where_nothing_watches(shop: Shop) -> None:
    shop.push(service(shop.name, "web"))
    shop.applied()
    store = shop.handler.store(shop.target)
    stored = store.read()
    assert stored.state
    old = replace(stored.state.health, judged=stamp(seconds_of(stored.state.health.judged) - 3 * shop.settings.drift_interval))
    written = store.swap(stored, replace(stored.state, health=old))
    watching = shop.handler_at(shop.kubectl.kubeconfig, watches=True)
    assert watching.run(shop.job("drift")).outcome is Outcome.UNCHANGED
    assert store.read().resource_version == written.resource_version
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.state().health.judged > old.judged


def test_an_object_with_another_inventory_label_is_missing_from_health(shop: Shop, watching: Any) -> None:
    shop.push(service(shop.name, "web"))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    watch.passes(2)
    shop.kubectl.run("label", "service", "web", "-n", shop.name, f"{PART_OF}=another", "--overwrite")
    watch.shows(HealthState.DEGRADED, "is not there")


def test_health_is_unknown_once_objects_may_not_be_read(shop: Shop, watching: Any) -> None:
    shop.configure(impersonate=Impersonate(f"{shop.name}/deployer"), namespaces=(shop.name,))
    allow(shop, (ALL, "", "services"))
    shop.push(service(shop.name, "web"))
    shop.applied()
    shop.kubectl.run("delete", "role,rolebinding", "--all", "-n", shop.name)
    health = watching().shows(HealthState.UNKNOWN, "can't be judged")
    assert "services" in health.worst[0]


def test_no_health_is_written_while_an_attempt_is_open(shop: Shop, watching: Any) -> None:
    shop.push(deployment(shop.name, "api", replicas=1))
    shop.applied()
    watch = watching()
    watch.shows(HealthState.HEALTHY)
    store = shop.handler.store(shop.target)
    stored = store.read()
    assert stored.state
    attempt = Attempt(shop.head, "b" * 64, "c" * 64, "u.1", stored.state.health.since)
    opened = store.swap(stored, replace(stored.state, attempt=attempt), "u.1")
    shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
    watch.passes(2)
    assert store.read().resource_version == opened.resource_version
    assert opened.state
    store.swap(opened, replace(opened.state, attempt=None), "u.1")
    watch.shows(HealthState.DEGRADED, "is not there")


def test_a_server_reports_target_health_in_api_metrics_and_log(shop: Shop, tmp_path: Path) -> None:
    shop.push(deployment(shop.name, "api", replicas=1))
    server = Serving(tmp_path / "anneal.yaml", tmp_path / "log")
    server.config.write_text(json.dumps(_served(shop)))
    try:
        server.start().ready()
        until(lambda: _row(server)["health"] == "healthy", told=server.log.read_text)
        shop.kubectl.run("delete", "deployment", "api", "-n", shop.name)
        until(lambda: _row(server)["health"] == "degraded", told=server.log.read_text)
        until(
            lambda: f'anneal_target_health{{health="degraded",target="{shop.name}"}} 1.0' in metrics(server), told=lambda: metrics(server)
        )
        until(lambda: _whole(server, shop)["trouble"] is None, told=server.log.read_text)
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
