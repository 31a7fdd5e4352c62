"""What controllers own although manifests carry it: exported by `kubectl get -o yaml`, or from a chart. A second run writes none of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handler.cluster.connect import ClusterConnection
from handler.model.result import Outcome
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import Document, admission, claim, config_map, deployment, job, namespace, secret, service
from tests.e2e.object_history import Watching
from tests.e2e.one_target import SCOPED, Shop, told
from tests.e2e.watch_streams import WatchStreams
from tests.patience import until

Wire = Callable[[], Wired]
Row = Callable[[Shop], tuple[list[Document], Callable[[], object]]]
RBAC = "rbac.authorization.k8s.io"
OTHER = "11111111-1111-1111-1111-111111111111"
EXPORTED: Document = {"creationTimestamp": None, "resourceVersion": "1", "uid": OTHER, "generation": 1}


@pytest.fixture
def shop(shop: Shop) -> Iterator[Shop]:
    """A shop that may have objects outside of namespaces; they go with it."""
    own = (f"ClusterRole.{RBAC}", "Node", "PersistentVolume")
    shop.configure(cluster_scoped=(*SCOPED, *own))
    yield shop
    for kind in own:
        shop.kubectl.run("delete", kind, "--ignore-not-found", "--wait=false", "-l", f"shop={shop.name}")


def scoped(shop: Shop, kind: str, name: str = "", version: str = "v1", **fields: Any) -> Document:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name or shop.name, "labels": {"shop": shop.name}}, **fields}


def filled(shop: Shop, document: Document, patch: Any, manager: str) -> Callable[[], object]:
    """Return how a controller fills in a field, which the cluster of the tests hasn't."""
    meta = document["metadata"]
    place = ["-n", meta["namespace"]] if "namespace" in meta else []
    kind = "json" if isinstance(patch, list) else "merge"
    options = [f"--type={kind}", f"--field-manager={manager}", "-p", json.dumps(patch)]
    return lambda: shop.kubectl.run("patch", document["kind"], meta["name"], *place, *options)


def lives(shop: Shop, document: Document, holds: Callable[[Document], object]) -> Callable[[], object]:
    """Return a wait until a controller has filled something in."""

    def is_so() -> bool:
        live = shop.live(document)
        return live is not None and bool(holds(live))

    return lambda: until(is_so)


def services(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    headless, local, balanced = (service(shop.name, name) for name in ("headless", "local", "balanced"))
    headless["spec"]["clusterIP"] = "None"
    local["spec"] |= {"clusterIP": "", "ipFamilies": ["IPv4"]}
    local["metadata"] |= EXPORTED
    local["status"] = {"loadBalancer": {}}
    balanced["spec"] |= {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 0}
    balanced["spec"]["ports"][0]["nodePort"] = 0
    return [headless, local, balanced], lives(shop, balanced, lambda live: live["spec"]["healthCheckNodePort"])


def exported_job(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    """Its selector, and the labels of its pods, hold its own uid."""
    shop.kubectl.run("create", "-f", "-", given=json.dumps(job(shop.name, "export")))
    live = json.loads(shop.kubectl.run("get", "job.batch", "export", "-n", shop.name, "-o", "json"))
    live["metadata"].pop("managedFields", None)
    return [live], lambda: None


def webhook(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    hook = admission(shop.name, shop.group)
    hook["webhooks"][0]["clientConfig"]["caBundle"] = "Cg=="
    patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "Cgo="}]
    return [hook], filled(shop, hook, patch, "cainjector")


def bound(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    """A claim that isn't bound in git, and a volume that was bound to another cluster's."""
    volume = scoped(shop, "PersistentVolume")
    reference = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": shop.name, "name": "data"}
    volume["spec"] = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": shop.name}
    volume["spec"] |= {"hostPath": {"path": "/none"}, "claimRef": reference}
    data = claim(shop.name, "data")
    data["spec"] |= {"storageClassName": shop.name, "volumeName": ""}
    data["status"] = {"phase": "Bound"}

    def exported() -> None:
        lives(shop, data, lambda live: live["status"]["phase"] == "Bound")()
        volume["spec"]["claimRef"] = {**reference, "uid": OTHER, "resourceVersion": "1"}
        shop.push(volume, data)
        assert shop.run().outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
        live = shop.live(volume)
        assert live
        assert live["spec"]["claimRef"]["uid"] != OTHER

    return [volume, data], exported


def node(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    taints = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, {"key": "shop", "effect": "NoSchedule"}]
    made = scoped(shop, "Node", spec={"unschedulable": True, "taints": taints})
    keys = {"shop", "node.kubernetes.io/unschedulable"}
    return [made], lives(shop, made, lambda live: {each["key"] for each in live["spec"]["taints"]} == keys)


def token(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    account: Document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "app", "namespace": shop.name}}
    account["secrets"] = [{"name": "app-token-abcde"}]
    held = secret(shop.name, "token", "", annotations={"kubernetes.io/service-account.name": "app"})
    held |= {"type": "kubernetes.io/service-account-token", "data": {"ca.crt": "AA==", "namespace": "AA==", "token": "AA=="}}
    return [account, held], lives(shop, held, lambda live: live["data"]["ca.crt"] != "AA==")


def injected(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    """As OpenShift's service-ca and its network operator fill them in."""
    one = config_map(shop.name, "one", {"service-ca.crt": ""}, annotations={"service.beta.openshift.io/inject-cabundle": "true"})
    two = config_map(shop.name, "two", {"ca-bundle.crt": ""}, labels={"config.openshift.io/inject-trusted-cabundle": "true"})
    acts = filled(shop, one, {"data": {"service-ca.crt": "c"}}, "service-ca"), filled(shop, two, {"data": {"ca-bundle.crt": "c"}}, "cno")
    return [one, two], lambda: [act() for act in acts]


def exported_namespace(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    made = namespace(f"{shop.name}-jobs", labels={"kubernetes.io/metadata.name": f"{shop.name}-jobs"}, **EXPORTED)
    return [{**made, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}], lambda: None


def exported_deployment(shop: Shop) -> tuple[list[Document], Callable[[], object]]:
    revision = "deployment.kubernetes.io/revision"
    web = deployment(shop.name, "web", annotations={revision: "7"}, **EXPORTED)
    web["spec"]["template"]["metadata"]["creationTimestamp"] = None
    return [web], lives(shop, web, lambda live: live["status"].get("observedGeneration"))


ROWS: list[Row] = [
    services,
    exported_job,
    webhook,
    bound,
    node,
    token,
    injected,
    exported_namespace,
    exported_deployment,
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.__name__)
def test_a_second_run_writes_nothing_of_what_controllers_fill_in(shop: Shop, row: Row, wired: Wire) -> None:
    documents, act = row(shop)
    shop.push(*documents, config_map(shop.name, "beside"))
    shop.applied()
    act()
    before, wire = shop.versions(documents), wired()
    for _ in range(2):
        result = shop.handler_at(wire.kubeconfig).run(shop.job("drift"))
        assert result.outcome is Outcome.UNCHANGED, (told(result), result.plan and [each.fields for each in result.plan.writes])
    assert wire.object_writes == []
    assert shop.versions(documents) == before


@pytest.mark.parametrize(
    "rules", [[], None, [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]], ids=["empty", "null", "some"]
)
def test_an_aggregated_role_is_never_without_the_rights_that_its_controller_gave_it(
    shop: Shop, rules: list[Document] | None, connection: ClusterConnection, wired: Wire
) -> None:
    selectors = [{"matchLabels": {"monitors": shop.name}}]
    role = scoped(shop, "ClusterRole", version=f"{RBAC}/v1", aggregationRule={"clusterRoleSelectors": selectors}, rules=rules)
    given = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    part = scoped(shop, "ClusterRole", f"{shop.name}-pods", f"{RBAC}/v1", rules=given)
    part["metadata"]["labels"]["monitors"] = shop.name
    shop.push(part, config_map(shop.name, "beside"))
    shop.applied()
    with Watching(WatchStreams(connection), (f"/apis/{RBAC}/v1/clusterroles",)) as seen:
        shop.push(role, part, config_map(shop.name, "beside"))
        shop.applied()
        lives(shop, role, lambda live: live["rules"] == given)()
        wire = wired()
        for trigger in ("push", "drift", "drift"):
            assert shop.handler_at(wire.kubeconfig).run(shop.job(trigger)).outcome is Outcome.UNCHANGED
        assert wire.object_writes == []
        role["metadata"]["labels"]["more"] = "1"
        shop.push(role, part, config_map(shop.name, "beside"))
        shop.applied()
    shop.kubectl.run(
        "delete", "clusterrole", *{each["metadata"]["name"] for _, _, each in seen.events if "seen-" in each["metadata"]["name"]}
    )
    states = [live.get("rules") or [] for _, _, live in seen.events if live["metadata"]["name"] == shop.name]
    assert states
    assert states[states.index(given) :] == [given] * (len(states) - states.index(given))
    assert all(each in ([], given) for each in states), "what git says beside the rule is nobody's right"
    assert len(states) <= 3, "created, filled in, labelled"


def test_a_role_that_is_aggregated_from_now_on_loses_the_rights_that_git_gave_it(shop: Shop) -> None:
    given = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    role = scoped(shop, "ClusterRole", version=f"{RBAC}/v1", rules=given)
    shop.push(role)
    shop.applied()
    none = {"clusterRoleSelectors": [{"matchLabels": {"monitors": shop.name}}]}
    shop.push({**role, "aggregationRule": none, "rules": []})
    plan = shop.run(dry_run=True).plan
    assert plan
    assert {each.path.partition("[")[0] for each in plan.changes[0].fields} == {"aggregationRule", "rules"}
    shop.applied()
    live = shop.live(role)
    assert live
    assert not live.get("rules")
