"""Rollouts as authors write them, on a real cluster: Locutus' own example in both dialects, and what becomes of a Rollout that changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.cli.render import flat
from handler.model.result import Outcome
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment, job, service
from tests.e2e.one_target import PATH, Shop, told
from tests.e2e.rollouts import outcomes, progress, recorded

GRAFANA = "grafana/deployment.json"
OLD_CHECKS = [
    {"name": "Generation correct", "path": "{.metadata.generation}", "value": {"path": "{.status.observedGeneration}"}},
    {"name": "All replicas updated", "path": "{.status.replicas}", "value": {"path": "{.status.updatedReplicas}"}},
    {"name": "No replica unavailable", "path": "{.status.unavailableReplicas}", "default": 0, "value": {"static": 0}},
]


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    opened = open_shop(rollout=rollouts.ROLLOUT)
    opened.create_namespace()
    return opened


def grafana(namespace: str, version: str = "5.1.0") -> Document:
    """Upstream's manifest, in a namespace of the test's own."""
    made = deployment(namespace, "grafana", f"grafana/grafana:{version}", replicas=1, labels={"app": "grafana"})
    [container] = made["spec"]["template"]["spec"]["containers"]
    container["ports"] = [{"containerPort": 3000, "name": "http"}]
    return made


def push(shop: Shop, files: dict[str, Document], *groups: dict[str, Any], **spec: Any) -> str:
    """Push files below the path, and a Rollout beside it."""
    for name, body in files.items():
        shop.work.write(f"{PATH}/{name}", json.dumps(body, indent=1))
    body = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "grafana-rollout-0"}}
    shop.work.write(rollouts.ROLLOUT, json.dumps({**body, "spec": {**spec, "groups": list(groups)}}, indent=1))
    sha = shop.work.commit("A rollout")
    shop.work.push()
    return sha


def rendered(shop: Shop) -> dict[str, Any]:
    source = shop.handler.source(shop.target)
    return flat(shop.handler.render(shop.target, source.fetch(shop.head, PATH)))


def test_the_seeds_own_example_is_rendered_and_rolled_out(shop: Shop) -> None:
    made = grafana(shop.name)
    push(shop, {GRAFANA: made}, {"steps": [{"object": GRAFANA, "action": "CreateOrUpdate"}]})
    found = rendered(shop)
    assert found["objects"] == {GRAFANA: made}
    assert (found["rollout"]["metadata"]["name"], len(found["rollout"]["spec"]["groups"])) == ("grafana-rollout-0", 1)
    shop.applied()
    assert shop.live(made) is not None
    assert [(each.group, each.step, each.object, each.action, each.outcome) for each in progress(shop).steps] == [
        ("group 1", GRAFANA, f"Deployment/{shop.name}/grafana", "CreateOrUpdate", "done")
    ]
    assert shop.run("tick").outcome is Outcome.UNCHANGED
    assert shop.run("drift").outcome is Outcome.UNCHANGED


def test_the_old_dialect_with_groups_and_field_comparisons(shop: Shop) -> None:
    """A Service that nothing waits for, Grafana until all its replicas are there, then what reads it; a free object before them."""
    files = {
        GRAFANA: grafana(shop.name),
        "grafana/service.json": service(shop.name, "grafana", 3000),
        "dashboards.json": config_map(shop.name, "dashboards"),
        "free.json": config_map(shop.name, "free"),
        "hook.json": config_map(shop.name, "hook"),
    }
    files["hook.json"]["metadata"]["annotations"] = {"argocd.argoproj.io/hook": "Skip"}  # no object that is applied
    steps = [
        {"object": GRAFANA, "action": "CreateOrUpdate", "success": [{"fieldComparisons": OLD_CHECKS}]},
        {"object": "grafana/service.json", "action": "CreateIfNotExist"},
    ]
    last = {"name": "Dashboards", "steps": [{"object": "dashboards.json", "action": "CreateOrUpdate"}]}
    push(shop, files, {"name": "Rollout Grafana", "steps": steps}, last)
    planned = shop.run("oneoff", dry_run=True, force=True)
    assert planned.plan is not None, told(planned)
    assert planned.plan.notes == ("1 object that no step names is applied before the first group",)
    assert [[change.identity.name for change in stage] for stage in planned.plan.stages] == [
        ["free"],
        ["grafana", "grafana"],
        ["dashboards"],
    ]
    result = shop.applied()
    assert result.counts == {"created": 4}, told(result)
    live = shop.live(files[GRAFANA])
    assert live is not None
    assert live["status"]["availableReplicas"] == 1
    assert outcomes(shop) == {GRAFANA: "done", "grafana/service.json": "done", "dashboards.json": "done"}
    first, then = (recorded(shop, name) for name in (GRAFANA, "dashboards.json"))
    assert first.finished <= then.started, "groups follow each other"


def test_the_new_dialect_migrates_before_it_rolls(shop: Shop) -> None:
    """Upstream's newer form: steps in order, a Job's success by comparison, its failure by name."""
    files = {"job.json": job(shop.name, "migrate"), "web.json": deployment(shop.name, "web", replicas=1)}
    done = {"name": "done", "path": "{.status.succeeded}", "default": 0, "value": {"staticInt64": 1}}
    success = {
        "fieldComparisons": {"expectedValues": [done], "timeout": "2m", "progressTimeout": "2m", "pollInterval": "1s"},
        "failure": [{"checkName": "JobOOMKilled"}],
    }
    migrate = {"name": "migrate-db", "object": "job.json", "action": "Recreate", "success": [success]}
    roll = {"name": "roll", "object": "web.json", "action": "CreateOrUpdate", "success": [{"healthy": {}}]}
    group = {"name": "migrate", "steps": [migrate, roll]}
    push(shop, files, group, parallel=False)
    shop.applied()
    assert outcomes(shop) == {"migrate-db": "done", "roll": "done"}
    live = shop.live(files["job.json"])
    assert live is not None
    assert live["status"]["succeeded"] == 1
    first = live["metadata"]["uid"]
    assert shop.run("drift").outcome is Outcome.UNCHANGED, "drift runs make nothing anew"
    push(shop, {"web.json": deployment(shop.name, "web", "shop:2", replicas=1)}, group, parallel=False)
    result = shop.applied()
    assert result.counts == {"recreated": 1, "configured": 1}, told(result)
    live = shop.live(files["job.json"])
    assert live is not None
    assert live["metadata"]["uid"] != first
