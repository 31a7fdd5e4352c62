"""An emptied cluster and a deleted state converge from the same repository; real manifests too, with nothing else touched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from handler.app.overview import Overview
from handler.app.target_row import TargetRow
from handler.app.target_status import TargetStatusReader
from handler.cli.follow_up_commands import GivenFlags
from handler.cli.next_step import next_step
from handler.cli.target_page import lines
from handler.config.settings import Impersonate, Prune
from handler.model.names import PART_OF, identity_of, state_name
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, definition, deployment, namespace, offer
from tests.e2e.one_target import DONE, STATES, Shop, told, version
from tests.e2e.rbac_rights import ALL, DEPLOYER, allow
from tests.kubectl import Kubectl
from tests.patience import PATIENCE

EVERY_KIND = ("Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim")


def forget_state(shop: Shop) -> None:
    shop.kubectl.run("delete", "cm", state_name(shop.name), "-n", STATES)


def test_a_deleted_record_is_recovered_by_the_inventory_labels(shop: Shop) -> None:
    """That run does what its plan has shown, and prunes nothing; the next one plans fully, under the guards, and comes soon."""
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "gone"))
    shop.applied()
    shop.push(config_map(shop.name, "a"))
    forget_state(shop)
    shown = shop.run("push", dry_run=True)
    first = shop.applied("push")
    assert first.counts == shown.counts == {"unchanged": 1, "skipped": 1}
    assert len(shop.labelled()) == 2
    assert (bool(first.next_try), bool(shop.state().drift_due)) == (True, True)
    assert shop.run("tick", dry_run=True).counts == {"unchanged": 1, "to prune": 1}
    result = shop.applied("tick")
    assert result.counts == {"unchanged": 1, "pruned": 1}
    shop.assert_converged()
    assert [(entry.id, entry.counts) for entry in shop.state().history] == [(each.run, each.counts) for each in (result, first)]


def test_a_target_whose_record_is_missing_is_said_to_have_lost_it(shop: Shop) -> None:
    def seen() -> tuple[TargetRow, dict[str, Any]]:
        (row,) = Overview(shop.settings, shop.handler, deadline=PATIENCE).look([shop.target])
        return row, TargetStatusReader(shop.settings, shop.handler.records, PATIENCE, members=shop.handler.members).target(shop.name)

    row, facts = seen()
    assert (row.phase, row.members, facts["members"]) == ("never-ran", 0, 0)
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    shop.applied()
    assert "members" not in seen()[1]
    forget_state(shop)
    row, facts = seen()
    assert (row.phase, row.members, facts["members"]) == ("record-missing", 2, 2)
    step = next_step(row)
    assert (step.command, "2 objects of it live" in step.text) == (f"anneal apply {shop.name}", True)
    assert next(lines(row, GivenFlags()))[0] == f"{shop.name}: record missing, 2 objects found"
    allow(shop, (ALL, "", "services"))
    shop.configure(impersonate=Impersonate(f"{shop.name}/{DEPLOYER}"), namespaces=(shop.name,))
    row, facts = seen()
    assert (row.phase, row.members, facts["members"]) == ("no-record", None, None), "what it may not list may live"


def test_an_emptied_cluster_converges_from_the_same_repository(shop: Shop) -> None:
    jobs = f"{shop.name}-jobs"
    shop.push(namespace(jobs), definition(shop.group), offer(shop.group, jobs, "spring"), deployment(shop.name, "web"))
    shop.applied()
    shop.kubectl.run("delete", "ns", jobs)
    shop.kubectl.run("delete", "crd", f"offers.{shop.group}")
    shop.kubectl.run("delete", "deployment", "web", "-n", shop.name)
    shop.applied("drift")
    shop.assert_converged()
    forget_state(shop)
    shop.kubectl.run("delete", "ns", jobs)
    shop.kubectl.run("delete", "crd", f"offers.{shop.group}")
    shop.configure()
    result = shop.run("tick")
    assert result.outcome in DONE, told(result)
    assert result.counts == {"created": 3, "unchanged": 1}
    shop.assert_converged()


def test_kube_prometheus_is_applied_without_drift_and_pruned_whole(own_cluster: Kubectl, open_shop: Open, shared_data: Path) -> None:
    shop = open_shop(own_cluster, namespaces=("*",))
    manifests = sorted((shared_data / "kube-prometheus").rglob("*.yaml"))
    texts = {str(path.relative_to(shared_data / "kube-prometheus")): path.read_text() for path in manifests}
    kinds = {(d["apiVersion"].rpartition("/")[0], d["kind"]) for text in texts.values() for d in _documents(text)}
    shop.configure(cluster_scoped=tuple(f"{kind}.{group}" if group else kind for group, kind in kinds))
    for name, text in texts.items():
        shop.work.write(f"deploy/{name}", text)
    shop.work.commit("kube-prometheus")
    shop.work.push()
    others = _inventory(shop)
    result = shop.applied()
    assert result.counts["created"] > 100, told(result)
    assert result.counts.keys() == {"created"}
    _assert_untouched(others, shop)

    before = _ours(shop)
    assert shop.run().outcome is Outcome.UNCHANGED
    for _ in range(2):
        shop.configure()
        assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.run(force=True).outcome in (Outcome.UNCHANGED, Outcome.APPLIED)
    assert _ours(shop) == before

    shop.configure(prune=Prune(kinds=EVERY_KIND, allow_empty=True))
    shop.work.remove("deploy").write("deploy/readme.md", "moved away")
    shop.work.commit("Moved away")
    shop.work.push()
    held = shop.run()
    assert held.outcome is Outcome.HELD
    assert held.plan
    assert held.plan.hold
    shop.applied(approve=held.plan.hold.id)
    assert _ours(shop) == {}
    _assert_untouched(others, shop)


def _documents(text: str) -> list[dict[str, str]]:
    return [document for document in yaml.load_all(text, yaml.CBaseLoader) if document]


_AGGREGATED = ("ClusterRole/admin/", "ClusterRole/edit/", "ClusterRole/view/")
"""The controller manager collects into these whatever is labelled for it."""


def _inventory(shop: Shop, *selector: str) -> dict[str, str]:
    """Return kind, name and uid -> version (without status) of everything in the cluster that doesn't change by itself."""
    kinds = shop.kubectl.run("api-resources", "--verbs=list,delete", "-o", "name").split()
    busy = ("leases", "events", "endpointslices", "endpoints", "pods", "nodes", "componentstatuses", "flowschemas", "prioritylevel")
    asked = ",".join(kind for kind in kinds if not kind.startswith(busy))
    answer = shop.kubectl.run("get", asked, "-A", *selector, "--ignore-not-found", "--show-managed-fields", "-o", "json")
    found = json.loads(answer)["items"] if answer else []
    rows = {f"{identity_of(item)}/{item['metadata']['uid']}": version(item) for item in found}
    return {key: value for key, value in rows.items() if not key.startswith(_AGGREGATED)}


def _ours(shop: Shop) -> dict[str, str]:
    return _inventory(shop, "-l", f"{PART_OF}={shop.applyset}")


def _assert_untouched(others: dict[str, str], shop: Shop) -> None:
    """What was there before still is, unchanged."""
    now = _inventory(shop)
    assert {key: now.get(key) for key in others} == others
