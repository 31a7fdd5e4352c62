"""What the server refuses is refused before the first write, all of it together; deferred is what names what this run creates first."""

from __future__ import annotations

from typing import Any

from handler.model.names import PART_OF
from handler.model.result import Outcome, Result
from handler.rollout.hook_annotations import ARGO_WAVE
from tests.e2e.documents import Document, config_map, definition, deployment, namespace, offer, pods, service
from tests.e2e.incidents import with_quota
from tests.e2e.one_target import SCOPED, Shop, told

RBAC = "rbac.authorization.k8s.io"
CLASSES = (*SCOPED, "PriorityClass.scheduling.k8s.io", "RuntimeClass.node.k8s.io")
READ = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]


def account(space: str, name: str, **metadata: Any) -> Document:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": space, **metadata}}


def pod(space: str, name: str, account: str = "", annotations: dict[str, str] | None = None, **spec: Any) -> Document:
    made = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": space, "annotations": annotations or {}}}
    names = {"serviceAccountName": account} if account else {}
    return made | {"spec": {**pods({}, "web:1")["spec"], "automountServiceAccountToken": False, **names, **spec}}


def role(space: str, name: str) -> Document:
    return {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": {"name": name, "namespace": space}, "rules": READ}


def binding(space: str, name: str, role: str, annotations: dict[str, str] | None = None) -> Document:
    reference = {"apiGroup": RBAC, "kind": "Role", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": "default", "namespace": space}]
    meta = {"name": name, "namespace": space, "annotations": annotations or {}}
    return {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": meta, "roleRef": reference, "subjects": subjects}


def classes(name: str) -> tuple[Document, Document]:
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": 7}
    return priority, {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runc"}


def written(shop: Shop) -> str:
    """Return name, uid and version of each object of the shop's."""
    kinds = "cm,svc,sa,pod,deploy,role,rolebinding,crd,namespace"
    fields = "jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.resourceVersion};{end}"
    return shop.kubectl.run("get", kinds, "-A", "-l", f"{PART_OF}={shop.applyset}", "-o", fields)


def refused(shop: Shop, **fields: Any) -> list[str]:
    """Run the target; it must be refused with nothing written. Return a line a mistake."""
    before = written(shop)
    result = shop.run(**fields)
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused"), told(result)
    assert written(shop) == before
    return result.message.splitlines()


def notes(result: Result) -> tuple[str, ...]:
    assert result.plan
    return result.plan.notes


def test_all_mistakes_of_the_dry_run_are_told_together_before_the_first_write(shop: Shop) -> None:
    with_quota(shop, "services=0")
    theirs = config_map(shop.name, "theirs", labels={"argocd.argoproj.io/instance": "shop"})
    shop.kubectl.apply(theirs)
    bound, named = binding(shop.name, "readers", "reader"), pod(shop.name, "worker", "runner", hostPIDs=True)
    bound["subject"] = bound.pop("subjects")
    crd, tea = definition(shop.group), offer(shop.group, shop.name, "tea")
    tea["spec"]["price"] = "much"
    broken = deployment(shop.name, "broken")
    broken["spec"]["replica"] = 1
    good = config_map(shop.name, "a"), deployment(shop.name, "web"), role(shop.name, "reader"), account(shop.name, "runner")
    shop.push(*good, bound, named, crd, tea, broken, service(shop.name, "web"), config_map(shop.name, "theirs"))
    lines = refused(shop)
    for mistake in (
        f"RoleBinding/{shop.name}/readers: “failed to create typed patch object",
        f"Pod/{shop.name}/worker: “failed to create typed patch object",
        f"Offer/{shop.name}/tea: spec.price: ",
        f"Deployment/{shop.name}/broken: “failed to create typed patch object",
        "exceeded quota: none",
        f"ConfigMap/{shop.name}/theirs: belongs to Argo CD application shop",
    ):
        assert len([line for line in lines if mistake in line]) == 1, (mistake, lines)
    assert len(lines) == 6, lines


def test_references_of_a_pod_that_this_run_creates_are_applied_before_it(shop: Shop) -> None:
    shop.configure(cluster_scoped=CLASSES)
    made = pod(shop.name, "worker", "runner", priorityClassName=shop.name, runtimeClassName=shop.name)
    shop.push(made, account(shop.name, "runner"), *classes(shop.name))
    try:
        result = shop.applied()
        assert f"Pod/{shop.name}/worker: checked by the server once " in " ".join(notes(result))
        live = shop.live(made)
        assert live
        assert live["spec"]["priority"] == 7
        assert shop.run("drift").outcome is Outcome.UNCHANGED
    finally:
        shop.kubectl.run("delete", f"priorityclass/{shop.name}", f"runtimeclass/{shop.name}")


def test_a_missing_reference_that_git_doesnt_declare_is_refused_by_the_dry_run(shop: Shop) -> None:
    other = shop.create_namespace(f"{shop.name}-jobs")
    early = pod(shop.name, "early", "late", {ARGO_WAVE: "-1"})
    new = namespace(f"{shop.name}-new")
    shop.configure(namespaces=(shop.name, other, f"{shop.name}-new"))
    orphan = pod(f"{shop.name}-new", "orphan", "nobody")
    shop.push(config_map(shop.name, "a"), pod(shop.name, "lost", "typo"), early, account(shop.name, "late"), new, orphan)
    lines = refused(shop)
    (lost,) = (line for line in lines if f"Pod/{shop.name}/lost" in line)
    block = f"{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: typo, namespace: {shop.name}}}}}"
    assert f'serviceaccount "typo" not found”; declare it in the same path: {block}; or correct the name' in lost
    (late,) = (line for line in lines if f"Pod/{shop.name}/early" in line)
    assert f"annotations: {{config.kubernetes.io/depends-on: /namespaces/{shop.name}/ServiceAccount/late}}" in late
    (nobody,) = (line for line in lines if f"Pod/{shop.name}-new/orphan" in line)
    assert f'names serviceaccount "nobody", which isn\'t there when it is created: Namespace/{shop.name}-new is only being made' in nobody
    assert len(lines) == 3, lines
