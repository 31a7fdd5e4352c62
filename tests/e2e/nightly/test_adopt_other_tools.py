"""What other tools have deployed, planted by requests such as theirs: refused naming tool and owner, taken over as the refusal says."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import pytest

from handler.model.errors import Problem
from handler.model.names import IDENTITY, PART_OF
from handler.model.result import Outcome
from handler.plan.ownership import TOOLS
from tests.e2e.documents import Document, config_map, definition, deployment, namespace, offer, service
from tests.e2e.one_target import Shop, told, version, way_out
from tests.e2e.plan_and_live import untold

Way = Literal["server-side", "client-side", "create"]
NONE: Mapping[str, str] = {}
REVISION = "deployment.kubernetes.io/revision"
OTHERS = {"operator", "endpointslice-controller", "cert-manager-certificates-issuing", "kapp-controller", "argocd-server"}
"""Whose fields stay: no tool of ours to name."""
FLUX = {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}
RELEASE = {"helm.toolkit.fluxcd.io/name": "web", "helm.toolkit.fluxcd.io/namespace": "apps"}
HELM = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "apps"}
CHART = {"app.kubernetes.io/managed-by": "Helm", "app.kubernetes.io/instance": "web", "helm.sh/chart": "web-1.0.0"}
INSTANCE = {"app.kubernetes.io/instance": "web"}
TRACKED = {"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/web"}
KAPP = {"kapp.k14s.io/app": "1700000000000000000", "kapp.k14s.io/association": "v1.abc"}
KAPPED = {"kapp.k14s.io/identity": "v1;shop//ConfigMap/web;v1", "kapp.k14s.io/original": "{}"}
KLUCTL = {"kluctl.io/discriminator": "web-prod", "kluctl.io/tag-0": "web"}
FLEET = {"objectset.rio.cattle.io/id": "default-shop-web"}
HASH = {"objectset.rio.cattle.io/hash": "9cb5a2c2b8f6"}
INVENTORY = {"config.k8s.io/owning-inventory": "0fa8a4a2"}


@dataclass(frozen=True)
class Planted:
    """One object that a tool has put there. `named` and `tools`: what its refusal says; none: no tool owns it. `kept`: git declares it."""

    named: str
    tools: tuple[str, ...]
    way: Way
    manager: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    kept: tuple[str, ...] = ()
    kind: str = "ConfigMap"


def by(tool: str, named: str, way: Way, manager: str, labels: Mapping[str, str] = NONE, annotations: Mapping[str, str] = NONE) -> Planted:
    return Planted(named, (tool,) if tool else (), way, manager, labels, annotations)


ROWS = {
    "flux": by("flux", "Flux Kustomization apps", "server-side", "kustomize-controller", FLUX),
    "flux-unlabelled": by("flux", "Flux (field manager kustomize-controller)", "server-side", "kustomize-controller"),
    "flux-install": by("flux", "Flux (field manager flux)", "server-side", "flux"),
    "flux-by-kubectl": by("flux", "Flux Kustomization apps", "client-side", "kubectl-client-side-apply", FLUX),
    "flux-by-another": by("flux", "Flux Kustomization apps", "create", "operator", FLUX),
    "helmrelease": replace(
        by("", "Flux HelmRelease web and Helm release web", "create", "helm-controller", RELEASE | CHART, HELM), tools=("flux", "helm")
    ),
    "helmrelease-4": by("flux", "Flux (field manager helm-controller)", "server-side", "helm-controller", CHART),
    "argocd-tracked": by("argocd", "Argo CD application web", "client-side", "argocd-controller", NONE, TRACKED),
    "argocd-labelled": by("argocd", "Argo CD application web", "client-side", "argocd-controller", INSTANCE),
    "argocd-server-side": by("argocd", "Argo CD application web", "server-side", "argocd-controller", INSTANCE),
    "argocd-own-label": by("argocd", "Argo CD application web", "client-side", "argocd-controller", {"argocd.argoproj.io/instance": "web"}),
    "argocd-unmarked": by("argocd", "Argo CD (field manager argocd-controller)", "server-side", "argocd-controller"),
    "argocd-replaced": by("argocd", "Argo CD application web", "create", "argocd-application-controller", INSTANCE),
    "helm": by("helm", "Helm release web", "create", "helm", CHART, HELM),
    "helm-4": by("helm", "Helm release web", "server-side", "helm", CHART, HELM),
    "helm-unannotated": by("helm", "Helm (field manager helm)", "create", "helm", CHART),
    "helm-crds": by("helm", "Helm (field manager helm)", "create", "helm"),
    "helm-terraform": by("helm", "Helm release web", "create", "terraform-provider-helm_v2.13.0_x5", CHART, HELM),
    "kapp": by("kapp", "kapp app 1700000000000000000", "create", "kapp", KAPP, KAPPED),
    "kapp-ssa": by("kapp", "kapp app 1700000000000000000", "server-side", "kapp-server-side-apply", KAPP, KAPPED),
    "kluctl": by("kluctl", "kluctl discriminator web-prod", "server-side", "kluctl", KLUCTL, {"kluctl.io/deployment-item-dir": "web"}),
    "kluctl-unmarked": by("kluctl", "kluctl (field manager kluctl)", "server-side", "kluctl"),
    "kubernixos": by("kubernixos", "Kubernixos checksum 0a1b", "client-side", "kubectl-client-side-apply", {"kubernixos": "0a1b"}),
    "kpt": by("cli-utils", "cli-utils inventory 0fa8a4a2", "server-side", "kubectl", NONE, INVENTORY),
    "kpt-client-side": by("cli-utils", "cli-utils inventory 0fa8a4a2", "client-side", "kubectl", NONE, INVENTORY),
    "fleet": by("fleet", "Rancher Fleet object set default-shop-web", "create", "fleetagent", HASH, FLEET),
    "fleet-unmarked": by("fleet", "Rancher Fleet (field manager fleetagent)", "create", "fleetagent"),
    "fleet-by-helm": replace(
        by("", "Helm release web and Rancher Fleet object set default-shop-web", "server-side", "fleetagent", HASH | CHART, HELM | FLEET),
        tools=("helm", "fleet"),
    ),
    "flux-and-declared": replace(by("flux", "Flux Kustomization apps", "server-side", "kustomize-controller", FLUX), kept=tuple(FLUX)),
    "deployment-flux": replace(by("flux", "Flux Kustomization apps", "server-side", "kustomize-controller", FLUX), kind="Deployment"),
    "deployment-argocd": replace(by("argocd", "Argo CD application web", "client-side", "argocd-controller", INSTANCE), kind="Deployment"),
    "deployment-helm": replace(by("helm", "Helm release web", "create", "helm", CHART, HELM), kind="Deployment"),
    "service-helm": replace(by("helm", "Helm release web", "create", "helm", CHART, HELM), kind="Service"),
    "chart-by-kubectl": by("", "", "client-side", "kubectl-client-side-apply", CHART),
    "chart-server-side": by("", "", "server-side", "kubectl", CHART),
    "instance-by-another": by("", "", "create", "operator", INSTANCE),
    "hash-handed-on": by("", "", "create", "endpointslice-controller", HASH),
    "operator": by("", "", "server-side", "cert-manager-certificates-issuing"),
    "kapp-controller": by("", "", "create", "kapp-controller"),
    "argocd-server": by("", "", "create", "argocd-server"),
}
"""Tool by mark by field manager."""


def live_of(shop: Shop, name: str, row: Planted) -> Document:
    """What the tool deploys; a ConfigMap has a key that git drops."""
    metadata: dict[str, Any] = {"labels": {"app": name, **row.labels}, "annotations": {"team": "shop", **row.annotations}}
    if row.kind == "ConfigMap":
        return config_map(shop.name, name, {"key": "1", "dropped": "1"}, **metadata)
    return deployment(shop.name, name, **metadata) if row.kind == "Deployment" else service(shop.name, name, **metadata)


def declared_of(shop: Shop, name: str, row: Planted) -> Document:
    """What git declares of it: no mark but what the row says."""
    found = live_of(shop, name, row)
    found["metadata"]["labels"] = {"app": name} | {key: row.labels[key] for key in row.kept}
    found["metadata"]["annotations"] = {"team": "shop"}
    found.get("data", {}).pop("dropped", None)
    return found


def plant(shop: Shop, rows: Mapping[str, Planted]) -> None:
    """Send what each tool sends: its verb, its field manager; together what can go together."""
    for way, manager in sorted({(row.way, row.manager) for row in rows.values()}):
        items = [live_of(shop, name, row) for name, row in rows.items() if (row.way, row.manager) == (way, manager)]
        given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
        verb = {"server-side": ["apply", "--server-side", "--force-conflicts"], "client-side": ["apply"], "create": ["create"]}[way]
        shop.kubectl.run(*verb, f"--field-manager={manager}", "-f", "-", given=given)


def counted(problem: Problem) -> int:
    """Return how many objects a refusal is of: `ConfigMap/shop/a and 4 more`."""
    return 1 + int(problem.subject.partition(" and ")[2].removesuffix(" more") or 0)


def seen(document: Document | None) -> Document:
    assert document
    return document


def planted(shop: Shop) -> dict[str, Document]:
    """Return what lives of the table, by the name of its row."""
    found = shop.kubectl("get", "configmaps,deployments,services", "-n", shop.name, "--show-managed-fields")["items"]
    return {each["metadata"]["name"]: each for each in found if each["metadata"]["name"] in ROWS}


def test_objects_of_each_other_tool_are_refused_by_name_and_adopted_as_the_refusal_says(shop: Shop) -> None:
    plant(shop, ROWS)
    sets = replica_sets(shop)
    before = planted(shop)
    assert_planted(before)
    declared = {name: declared_of(shop, name, row) for name, row in ROWS.items()}
    shop.push(*declared.values())
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused"), told(result)
    *reasons, whole = result.problems
    assert {problem.message: counted(problem) for problem in reasons} == Counter(
        f"belongs to {row.named}" for row in ROWS.values() if row.named
    )
    assert all(problem.place.startswith("deploy/") for problem in reasons)
    assert sorted(way_out(whole)) == sorted({tool for row in ROWS.values() for tool in row.tools})
    assert versions(planted(shop)) == versions(before)

    shop.configure(adopt=tuple(sorted(way_out(whole))))
    shown = shop.run("drift", dry_run=True).plan
    assert shown
    result = shop.applied()
    assert result.plan
    assert all(change.adopted for change in result.plan.writes)
    after = planted(shop)
    for change in shown.changes:
        name = change.identity.name
        assert_taken_over(before[name], after[name], declared[name], ROWS[name])
        assert untold(before[name], after[name], change.fields) == []
    assert {change.identity.name for change in shown.changes} == ROWS.keys()
    assert replica_sets(shop) == sets, "nothing was rolled out"
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert versions(planted(shop)) == versions(after)


def replica_sets(shop: Shop) -> set[tuple[str, str]]:
    """Return name and uid of each ReplicaSet, once the controller has seen every Deployment."""
    for name in (name for name, row in ROWS.items() if row.kind == "Deployment"):
        shop.kubectl.run("rollout", "status", f"deployment/{name}", "-n", shop.name)
    return {(each["metadata"]["name"], each["metadata"]["uid"]) for each in shop.kubectl("get", "replicasets", "-n", shop.name)["items"]}


def versions(found: Mapping[str, Document]) -> dict[str, tuple[str, str]]:
    """Return uid and version of each, which every write changes but that of a status."""
    return {name: (each["metadata"]["uid"], version(each)) for name, each in found.items()}


def assert_planted(before: Mapping[str, Document]) -> None:
    """The API server has noted each writer as the table says."""
    for name, row in ROWS.items():
        entries = [each for each in before[name]["metadata"]["managedFields"] if not each.get("subresource")]
        wanted = (row.manager, "Apply" if row.way == "server-side" else "Update")
        assert wanted in [(each["manager"], each["operation"]) for each in entries], name


def assert_taken_over(before: Document, after: Document, declared: Document, row: Planted) -> None:
    """The same object, as git declares it, without the tool's marks and fields; nothing of it was restarted. What others wrote stays."""
    meta, managers = after["metadata"], {each["manager"] for each in after["metadata"]["managedFields"] if not each.get("subresource")}
    assert meta["uid"] == before["metadata"]["uid"]
    assert meta["labels"][PART_OF]
    assert (row.manager in managers) is (row.manager in OTHERS)
    if row.named or row.manager not in OTHERS:
        assert meta["labels"].keys() == {*declared["metadata"]["labels"], PART_OF}
        assert meta["annotations"].keys() - {REVISION} == {"team", IDENTITY}
    else:
        assert meta["labels"] == {**before["metadata"]["labels"], PART_OF: meta["labels"][PART_OF]}
    if row.kind == "ConfigMap":
        assert after["data"] == (before if row.manager in OTHERS else declared)["data"]
    else:
        assert after["spec"] == before["spec"]


FINALIZER = {"metadata": {"finalizers": ["finalizers.example.com/tool"]}}
COWRITTEN: dict[str, dict[str, Any]] = {
    "kustomize-controller": FINALIZER,
    "helm-controller": {**FINALIZER, "status": {"lastAttemptedRevision": "1"}},
    "argocd-application-controller": {"operation": {"sync": {"revision": "1"}}, "status": {"sync": {"status": "Synced"}}},
    "flux": {"spec": {"suspend": True}},
    "kluctl": {"spec": {"suspend": True}},
    "fleetagent": {"metadata": {"labels": {"team": "shop"}}, "status": {"display": "Ready"}},
}
"""What tools write on objects that git declares for them: their custom resources, Namespaces. By field manager."""


@pytest.mark.parametrize("adopt", ["unowned", tuple(TOOLS)], ids=["unowned", "tools"])
def test_a_field_manager_of_a_shared_object_isnt_its_owner(shop: Shop, adopt: Any) -> None:
    crd = definition(shop.group)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    shop.kubectl.apply(crd)
    shop.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{shop.group}")
    jobs = namespace(f"{shop.name}-jobs", labels={"name": "made-by-helm"})
    shop.kubectl.run("create", "--field-manager=helm", "-f", "-", given=json.dumps(jobs))
    offers, web = {name: offer(shop.group, shop.name, name) for name in COWRITTEN}, service(shop.name, "web")
    shop.kubectl.apply(*offers.values(), web)
    for name, change in COWRITTEN.items():
        patch(shop, f"offers.{shop.group}/{name}", change, f"--field-manager={name}")
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    for manager in ("kustomize-controller", "argocd-controller", "fleetagent"):
        condition = {"status": {"conditions": [ready | {"type": manager}]}}
        patch(shop, "service/web", condition, "--subresource=status", f"--field-manager={manager}")
    shop.push(namespace(f"{shop.name}-jobs"), *offers.values(), web)
    shop.configure(adopt=adopt)
    shop.applied()
    assert seen(shop.live(jobs))["metadata"]["labels"]["name"] == "made-by-helm"
    assert len(seen(shop.live(web))["status"]["conditions"]) == 1
    for name, change in COWRITTEN.items():
        live = seen(shop.live(offers[name]))
        assert live["metadata"]["labels"][PART_OF]
        assert_holds(live, {"spec": {"price": 1}})
        assert_holds(live, change)
    for name in ("kustomize-controller", "helm-controller"):
        patch(shop, f"offers.{shop.group}/{name}", {"metadata": {"finalizers": None}})


def patch(shop: Shop, named: str, change: Document, *options: str) -> None:
    shop.kubectl.run("patch", named, "-n", shop.name, "--type=merge", "-p", json.dumps(change), *options)


def assert_holds(live: Any, part: Any) -> None:
    """Each field of a part is in a live object, as it is."""
    for key, value in part.items():
        assert key in live
        if isinstance(value, dict):
            assert_holds(live[key], value)
        else:
            assert live[key] == value
