"""Total control over a namespace of a real cluster: what an account's rights reach, what goes with what goes, and what the CLI says.

When something goes is a matter of `tests/unit/engine/test_reconcile_exclusive.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from handler.cli.group import anneal
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, deployment, owner, secret, service
from tests.e2e.exclusive_shop import ExclusiveShop
from tests.e2e.one_target import STATES, Shop
from tests.kubectl import Kubectl
from tests.patience import until


def written(shop: Shop, tmp_path: Path) -> Path:
    """Write the shop's configuration; return the file."""
    target: dict[str, Any] = {"name": shop.name, "path": "deploy", "namespaces": [shop.name], "exclusive": [shop.name], "orphanGrace": "1h"}
    target["repository"] = {"url": shop.target.repository.url}
    whole = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES, "targets": [target]}
    path = tmp_path / "anneal.yaml"
    path.write_text(yaml.safe_dump(whole))
    return path


def test_status_plan_and_orphans_tell_when_it_goes_and_how_it_stays(shop: Shop, tmp_path: Path) -> None:
    made, name, configured = ExclusiveShop(shop), shop.name, written(shop, tmp_path)
    made.plant(config_map(name, "stray"))
    made.run()
    (known,) = made.orphans().values()

    def asked(*words: str) -> str:
        flags = ["--config", str(configured), "--kubeconfig", str(made.shop.kubectl.kubeconfig)]
        result = CliRunner().invoke(anneal, [*words, *flags], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return " ".join(result.output.split())

    assert f"ConfigMap/{name}/stray, seen first" in (status := asked("status", name))
    assert f"deleted after {known.until}" in status
    assert f"orphans {name}" in status
    told_so = f"ConfigMap/{name}/stray (isn't declared in exclusive namespace {name}; deleted after {known.until}"
    assert f". kept {told_so}" in asked("plan", name)
    orphans = asked("orphans", name)
    assert f"expires {told_so}" in orphans
    assert f"kubectl annotate ConfigMap/stray -n {name} anneal.dev/prune=disabled" in orphans
    (listed,) = json.loads(asked("orphans", name, "-o", "json"))["orphans"]
    assert (listed["fate"], listed["until"], listed["since"]) == ("expires", known.until, known.since)
    found = json.loads(asked("status", name, "-o", "json"))
    assert known.until in json.dumps(found)
    roles = [each for each in json.loads(asked("rbac", name, "-o", "json"))["items"] if each["kind"] == "Role"]
    (role,) = [each for each in roles if each["metadata"]["namespace"] == name]
    rules = [rule for rule in role["rules"] if {"list", "delete"} <= set(rule["verbs"])]
    granted = {(group, plural) for rule in rules for group in rule["apiGroups"] for plural in rule["resources"]}
    assert {("batch", "jobs"), ("", "pods")} <= granted
    assert not {("coordination.k8s.io", "leases"), ("", "events")} & granted


def test_the_rights_that_rbac_prints_suffice_and_what_a_workload_owns_goes_with_it(
    own_cluster: Kubectl, open_shop: Open, tmp_path: Path
) -> None:
    shop = open_shop(own_cluster)  # elsewhere other tests may define kinds that weren't served when rights were printed
    shop.create_namespace()
    made = ExclusiveShop(shop)
    name, kubectl = shop.name, shop.kubectl
    account = f"{name}/limited"
    flags = ["--config", str(written(shop, tmp_path)), "--kubeconfig", str(kubectl.kubeconfig), "--service-account", account]
    kubectl.grant(CliRunner().invoke(anneal, ["rbac", name, *flags], catch_exceptions=False).output)
    made.configure(cluster_scoped=())
    made.use(made.shop.handler_at(kubectl.account(account, tmp_path)))
    web = deployment(name, "by-hand", replicas=1)
    strays = [config_map(name, "stray"), secret(name, "key", "x"), service(name, "old"), web]
    made.plant(*strays)
    pods = ("get", "pods", "-n", name)
    until(lambda: len(kubectl(*pods)["items"]) == 1 and ((shop.live(web) or {}).get("status") or {}).get("observedGeneration"))
    (below,) = made.plant(config_map(name, "below", ownerReferences=[owner(shop.live(web))]))
    result = made.run()
    assert result.plan
    assert not any("can't be listed" in note for note in result.plan.notes), result.plan.notes
    known = made.orphans()
    assert known.keys() == {"stray", "key", "old", "by-hand"}, "neither its account nor its rights, and nothing that another owns"
    made.wait_for(min(known.values(), key=lambda each: each.until))
    made.ahead -= 60
    assert made.pruned() == set()
    made.wait_for(max(known.values(), key=lambda each: each.until))
    plan = shop.run(trigger="drift", dry_run=True).plan
    assert plan
    assert {(each.identity.kind, each.counted) for each in plan.gone} >= {("Deployment", True), ("ReplicaSet", False), ("Pod", False)}
    assert {each.identity.name for each in plan.gone if each.counted} == {*known, "below"}
    assert made.pruned() == known.keys()
    until(lambda: kubectl(*pods)["items"] == [] and shop.live(below) is None)
    assert ([shop.live(each) for each in strays], made.orphans(), shop.state().drift_due) == ([None] * 4, {}, "")
    assert shop.live(made.web)
    assert made.run().outcome is Outcome.UNCHANGED
