"""What the server refuses is refused before the first write, all of it together; deferred is what names what this run creates first."""

from __future__ import annotations

from pathlib import Path

import yaml

from handler.model.result import Outcome
from handler.model.rollout import ARGO_HOOK
from tests.e2e.documents import config_map
from tests.e2e.one_target import STATES, Shop, told
from tests.e2e.test_dry_run_refused import RBAC, account, binding, notes, pod, refused, role


def limited(shop: Shop, place: Path) -> Path:
    """Return the kubeconfig of an account that may write what a shop is made of, and neither `bind` nor `escalate`."""
    kubeconfig = shop.kubectl.account(f"{shop.name}/deployer", place)
    shop.kubectl.tried("create", "namespace", STATES)
    core = {"apiGroups": [""], "resources": ["configmaps", "serviceaccounts", "pods", "namespaces"], "verbs": ["*"]}
    others = [
        {
            "apiGroups": [RBAC],
            "resources": ["roles", "rolebindings"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        }
    ]
    others += [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]}]
    granted = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": shop.name}, "rules": [*others, core]}
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": shop.name}
    reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": shop.name}
    bound = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": shop.name},
        "roleRef": reference,
        "subjects": [subject],
    }
    shop.kubectl.grant(yaml.safe_dump_all([granted, bound]))
    return kubeconfig


def test_a_binding_is_checked_once_its_role_is_there_and_a_role_that_never_comes_is_a_mistake(shop: Shop, tmp_path: Path) -> None:
    shop.handler = shop.handler_at(limited(shop, tmp_path))
    lost = binding(shop.name, "lost", "typo")
    shop.push(config_map(shop.name, "a"), role(shop.name, "reader"), binding(shop.name, "readers", "reader"), lost)
    lines = refused(shop)
    assert len(lines) == 1, lines
    way_out = f"declare Role/{shop.name}/typo in the same path, or correct the name"
    assert f'RoleBinding/{shop.name}/lost: “rolebindings.{RBAC} "typo" not found”; {way_out}' in lines[0]
    shop.push(config_map(shop.name, "a"), role(shop.name, "reader"), binding(shop.name, "readers", "reader"))
    result = shop.applied()
    assert f"RoleBinding/{shop.name}/readers: checked by the server once Role/{shop.name}/reader exists" in notes(result)
    before = shop.live(binding(shop.name, "readers", "reader"))
    shop.push(config_map(shop.name, "a", {"key": "2"}), role(shop.name, "writer"), binding(shop.name, "readers", "writer"))
    (line,) = refused(shop)
    assert f"RoleBinding/{shop.name}/readers: an immutable field changed: cannot change roleRef" in line
    allowed = binding(shop.name, "readers", "writer", {"anneal.dev/recreate": "allow"})
    shop.push(config_map(shop.name, "a", {"key": "2"}), role(shop.name, "writer"), allowed)
    assert shop.applied().counts["recreated"] == 1
    after = shop.live(allowed)
    assert before
    assert after
    assert after["roleRef"]["name"] == "writer"
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    shop.kubectl.run("delete", f"clusterrole/{shop.name}", f"clusterrolebinding/{shop.name}")


def test_other_mistakes_of_an_object_with_a_missing_reference_are_refused_by_the_dry_run(shop: Shop, tmp_path: Path) -> None:
    """Though the server would first say that what it names is missing, which this run creates."""
    shop.handler = shop.handler_at(limited(shop, tmp_path))
    wrong, bound = pod(shop.name, "worker", "runner", restartPolicy="Sometimes"), binding(shop.name, "readers", "reader")
    bound["subjects"][0]["kind"] = "Robot"
    shop.push(config_map(shop.name, "a"), account(shop.name, "runner"), role(shop.name, "reader"), wrong, bound)
    lines = refused(shop)
    assert len(lines) == 2, lines
    (first,) = (line for line in lines if f"Pod/{shop.name}/worker: " in line)
    (second,) = (line for line in lines if f"RoleBinding/{shop.name}/readers: " in line)
    assert 'spec.restartPolicy: Unsupported value: "Sometimes"' in first
    assert 'subjects[0].kind: Unsupported value: "Robot"' in second
    shop.kubectl.run("delete", f"clusterrole/{shop.name}", f"clusterrolebinding/{shop.name}")


def test_a_hook_may_name_what_an_earlier_hook_creates_and_nothing_that_comes_later(shop: Shop) -> None:
    marks, keeps = {ARGO_HOOK: "PreSync"}, {"restartPolicy": "Never", "activeDeadlineSeconds": 1}
    first, then = account(shop.name, "migrator", annotations=marks), pod(shop.name, "migrate", "migrator", marks, **keeps)
    shop.push(config_map(shop.name, "a"), first, then)
    plan = shop.run("oneoff", dry_run=True)
    assert plan.outcome is Outcome.PLANNED, told(plan)
    assert f"Pod/{shop.name}/migrate: checked by the server once ServiceAccount/{shop.name}/migrator exists" in notes(plan)
    late = pod(shop.name, "again", "runner", marks, **keeps)
    shop.push(config_map(shop.name, "a", {"key": "2"}), account(shop.name, "runner"), late)
    (line,) = refused(shop)
    assert f'Pod/{shop.name}/again: “pods "again" is forbidden: error looking up service account {shop.name}/runner' in line
    after = pod(shop.name, "again", "runner", {ARGO_HOOK: "PostSync"}, **keeps)
    shop.push(config_map(shop.name, "a", {"key": "2"}), account(shop.name, "runner"), after)
    plan = shop.run("oneoff", dry_run=True)
    assert plan.outcome is Outcome.PLANNED, told(plan)


def test_other_mistakes_of_a_live_role_binding_are_refused_by_the_dry_run(shop: Shop, tmp_path: Path) -> None:
    """It lives while its role doesn't, which this run creates: the server says nothing else of it until then."""
    reader, bound = role(shop.name, "reader"), binding(shop.name, "readers", "reader")
    shop.push(reader, bound)
    shop.applied()
    shop.kubectl.run("delete", "role", "reader", "-n", shop.name)
    shop.handler = shop.handler_at(limited(shop, tmp_path))
    bound["subjects"][0]["kind"] = "Robot"
    shop.push(config_map(shop.name, "a"), reader, bound)
    (line,) = refused(shop)
    assert (
        f'RoleBinding/{shop.name}/readers: “RoleBinding.{RBAC} "readers" is invalid: subjects[0].kind: Unsupported value: "Robot"' in line
    )
    bound["subjects"] = [{"kind": "ServiceAccount", "name": "default", "namespace": shop.name, "nick": "x"}]
    shop.push(config_map(shop.name, "a"), reader, bound)
    (line,) = refused(shop)
    assert "subjects[0].nick" in line
    del bound["subjects"][0]["nick"]
    bound["metadata"]["labels"] = {"new": "label"}
    shop.push(config_map(shop.name, "a"), reader, bound)
    result = shop.applied()
    assert notes(result).count(f"RoleBinding/{shop.name}/readers: checked by the server once Role/{shop.name}/reader exists") == 1
    shop.kubectl.run("delete", f"clusterrole/{shop.name}", f"clusterrolebinding/{shop.name}")
