"""Ignoring a field never resets it and never fails."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from handler.config.settings import IgnoreRule, IgnoreSelect
from handler.model.names import IDENTITY, PART_OF, Identity, identity_of
from handler.model.render import UnstableFields
from handler.plan.ignore import ANNOTATION, Ignoring, without
from tests.unit.plan.samples import desired, document, entry

REPLICAS: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
HOOKS: dict[str, Any] = {"f:webhooks": {'k:{"name":"b"}': {"f:clientConfig": {"f:caBundle": {}}}}}


def effective(body: dict[str, Any], live: dict[str, Any], *paths: str, **select: str) -> dict[str, Any]:
    """What is applied of a body onto a live object under one rule."""
    rules = (IgnoreRule(IgnoreSelect(**select), paths),)
    return Ignoring(rules).effective(identity_of(body), copy.deepcopy(body), live)


def owned(body: dict[str, Any], *entries: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(body)
    found["metadata"]["managedFields"] = list(entries)
    return found


def scaled(replicas: int, *entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return owned(document("Deployment", api="apps/v1", spec={"replicas": replicas, **more}), *entries)


DECLARED = document("Deployment", api="apps/v1", spec={"replicas": 1, "paused": False})
UNDECLARED = document("Deployment", api="apps/v1", spec={"paused": False})


@pytest.mark.parametrize(
    ("body", "live", "spec"),
    [
        (DECLARED, scaled(5, entry(REPLICAS, "keda")), {"paused": False}),
        (DECLARED, scaled(5, entry(REPLICAS)), {"replicas": 5, "paused": False}),
        (DECLARED, scaled(5, entry(REPLICAS), entry(REPLICAS, "keda")), {"replicas": 5, "paused": False}),
        (DECLARED, scaled(5), {"replicas": 5, "paused": False}),
        (DECLARED, owned(UNDECLARED), {"paused": False}),
        (UNDECLARED, scaled(5, entry(REPLICAS)), {"replicas": 5, "paused": False}),
        (UNDECLARED, scaled(5, entry(REPLICAS, "keda")), {"paused": False}),
        (UNDECLARED, scaled(5), {"paused": False}),
    ],
    ids=["theirs", "ours", "shared", "nobody's", "not live", "ours, undeclared", "theirs, undeclared", "nobody's, undeclared"],
)
def test_an_ignored_field_is_left_out_when_another_owns_it_and_else_keeps_its_live_value(
    body: dict[str, Any], live: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert effective(body, live, "/spec/replicas")["spec"] == spec


def hook(name: str, bundle: str = "") -> dict[str, Any]:
    return {"name": name, "clientConfig": {"service": {"name": name}} | ({"caBundle": bundle} if bundle else {})}


def hooks(kind: str, *found: dict[str, Any]) -> dict[str, Any]:
    return document(kind, "hooks", "admissionregistration.k8s.io/v1", webhooks=list(found))


@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_an_injected_ca_bundle_stays_with_its_own_webhook_in_whatever_order_they_live(kind: str) -> None:
    ours: dict[str, Any] = {"f:webhooks": {'k:{"name":"a"}': {"f:clientConfig": {"f:caBundle": {}}}}}
    live = owned(
        hooks(kind, hook("c", "CC"), hook("b", "BB"), hook("a", "AA")), entry(HOOKS, "cert-manager-cainjector", "Update"), entry(ours)
    )
    body = hooks(kind, hook("a", "old"), hook("b", "old"), hook("new", "first"))
    found = effective(body, live)["webhooks"]
    assert [each["clientConfig"].get("caBundle") for each in found] == ["old", None, None], "what git alone has written is git's"


@pytest.mark.parametrize(
    ("kind", "api", "body"),
    [
        (
            "CustomResourceDefinition",
            "apiextensions.k8s.io/v1",
            {"conversion": {"webhook": {"clientConfig": {"caBundle": "old"}}}},
        ),
        ("APIService", "apiregistration.k8s.io/v1", {"caBundle": "old"}),
    ],
)
def test_injected_ca_bundles_are_ignored_by_default(kind: str, api: str, body: dict[str, Any]) -> None:
    live = document(kind, api=api, spec={"conversion": {"webhook": {"clientConfig": {"caBundle": "new"}}}, "caBundle": "new"})
    assert "old" not in str(effective(document(kind, api=api, spec=body), live)["spec"])


RULES: dict[str, Any] = {"f:rules": {}}
TAINT = "node.kubernetes.io/"
RBAC = "rbac.authorization.k8s.io/v1"


@pytest.mark.parametrize(
    ("body", "live", "found"),
    [
        (
            document("ClusterRole", api=RBAC, aggregationRule={}),
            owned(document("ClusterRole", api=RBAC, rules=["was ours"]), entry(RULES)),
            {"aggregationRule": {}},
        ),
        (document("ClusterRole", api=RBAC, rules=["git's"]), document("ClusterRole", api=RBAC, rules=["live"]), {"rules": ["git's"]}),
        (
            document("PersistentVolumeClaim", spec={"volumeName": ""}),
            document("PersistentVolumeClaim", spec={"volumeName": "pv-1"}),
            {"spec": {"volumeName": "pv-1"}},
        ),
        (
            document("PersistentVolumeClaim", spec={"volumeName": "git's"}),
            document("PersistentVolumeClaim", spec={"volumeName": "pv-1"}),
            {"spec": {"volumeName": "git's"}},
        ),
        (
            document("Secret", type="kubernetes.io/service-account-token", data={"token": "old", "more": "1"}),
            document("Secret", type="kubernetes.io/service-account-token", data={"token": "new"}),
            {"type": "kubernetes.io/service-account-token", "data": {"token": "new"}},
        ),
        (
            document("Secret", type="kubernetes.io/service-account-token", data={"extra": "2"}),
            owned(document("Secret", data={"extra": "1"}), entry({"f:data": {"f:extra": {}}})),
            {"type": "kubernetes.io/service-account-token", "data": {"extra": "2"}},
        ),
        (
            document("Secret", type="Opaque", data={"token": "1"}),
            document("Secret", data={"token": "2"}),
            {"type": "Opaque", "data": {"token": "1"}},
        ),
        (
            document("Node", spec={"taints": [{"key": f"{TAINT}not-ready"}, {"key": "a"}, {"key": f"{TAINT}out-of-service"}]}),
            document("Node", spec={"taints": [{"key": "a"}, {"key": f"{TAINT}unschedulable"}, {"key": "c"}]}),
            {"spec": {"taints": [{"key": "a"}, {"key": f"{TAINT}unschedulable"}, {"key": f"{TAINT}out-of-service"}]}},
        ),
        (document("Node", spec={}), document("Node", spec={"taints": [{"key": "a"}]}), {"spec": {}}),
    ],
    ids=["aggregated since", "plain role", "unbound", "bound by git", "token", "git's key", "secret", "taints", "no taints"],
)
def test_what_controllers_fill_in_is_left_to_them(body: dict[str, Any], live: dict[str, Any], found: dict[str, Any]) -> None:
    done = effective(body, live)
    assert {key: value for key, value in done.items() if key not in ("apiVersion", "kind", "metadata")} == found


def test_the_revision_of_an_exported_deployment_is_the_controllers() -> None:
    key = "deployment.kubernetes.io/revision"
    mark: dict[str, Any] = {"f:metadata": {"f:annotations": {f"f:{key}": {}}}}
    body = document("Deployment", api="apps/v1", metadata={"annotations": {key: "1", "x": "y"}})
    live = document("Deployment", api="apps/v1", metadata={"annotations": {key: "7", "x": "y"}})
    assert effective(body, owned(live, entry(mark, "kube-controller-manager", "Update")))["metadata"]["annotations"] == {"x": "y"}
    foreign, found = ({**each, "apiVersion": "acme.io/v1"} for each in (body, live))
    kept = effective(foreign, owned(found, entry(mark, "kube-controller-manager", "Update")))["metadata"]["annotations"]
    assert kept == {key: "1", "x": "y"}, "another group's Deployment has another controller"


def test_a_list_position_is_written_in_ascii_digits() -> None:
    body, live = document(spec={"hosts": ["a", "b"]}), document(spec={"hosts": ["a", "live"]})
    assert effective(body, live, "/spec/hosts/1")["spec"] == {"hosts": ["a", "live"]}
    for position in ("\u0661", "\uff11", "1" * 5_000):
        assert effective(body, live, f"/spec/hosts/{position}")["spec"] == body["spec"]


def test_webhooks_that_git_removed_are_not_brought_back() -> None:
    live = owned(hooks("MutatingWebhookConfiguration", hook("b", "BB")), entry(HOOKS))
    body = document("MutatingWebhookConfiguration", "hooks", "admissionregistration.k8s.io/v1")
    assert effective(body, live, "/webhooks/*/failurePolicy") == body
    assert effective(body | {"webhooks": None}, live) == body | {"webhooks": None}


def test_a_declared_hpa_owns_the_replicas_of_what_it_scales() -> None:
    hpa = document("HorizontalPodAutoscaler", api="autoscaling/v2", spec={"scaleTargetRef": {"kind": "Deployment", "name": "web"}})
    admitted = [item.manifest.body() for item in desired(hpa, document("Service"))]
    ignoring = Ignoring.of((), admitted)
    assert ignoring.scaled == {("Deployment", "shop", "web")}
    for name, replicas in (("web", None), ("other", 1)):
        body = copy.deepcopy(DECLARED)
        found = ignoring.effective(Identity("apps", "Deployment", "shop", name), body, scaled(5, entry(REPLICAS, "hpa")))
        assert found["spec"].get("replicas") == replicas


@pytest.mark.parametrize(
    ("manager", "left"), [("kube-controller-manager", True), ("keda-operator", True), ("kubectl-scale", False), ("rancher", False)]
)
def test_a_controller_that_scales_counts_although_git_doesnt_declare_why(manager: str, left: bool) -> None:
    at_work = entry(REPLICAS, manager, "Update", subresource="scale")
    assert effective(DECLARED, scaled(5, at_work))["spec"] == ({"paused": False} if left else {"replicas": 1, "paused": False})


def test_a_custom_kind_is_scaled_by_the_field_that_its_definition_names() -> None:
    body = document("Offer", api="example.com/v1", metadata={"namespace": "shop"}, spec={"size/of~it": 1, "price": 1})
    live = copy.deepcopy(body) | {"spec": {"size/of~it": 4, "price": 2}}
    fields: dict[str, Any] = {"f:spec": {".": {}, "f:size/of~it": {}}}
    live["metadata"]["managedFields"] = [entry(fields, "keda-operator", "Update", subresource="scale")]
    assert effective(body, live)["spec"] == {"price": 1}


def test_a_scaled_object_of_keda_names_a_deployment_where_it_names_no_kind() -> None:
    made = document("ScaledObject", api="keda.sh/v1alpha1", metadata={"namespace": "shop"}, spec={"scaleTargetRef": {"name": "web"}})
    assert Ignoring.of((), [made]).scaled == {("Deployment", "shop", "web")}


@pytest.mark.parametrize("spec", [None, "text", {"scaleTargetRef": "web"}, {"scaleTargetRef": None}])
def test_an_hpa_of_any_shape_is_read(spec: Any) -> None:
    assert Ignoring.of((), [document("HorizontalPodAutoscaler", api="autoscaling/v2", spec=spec)]).scaled == {("None", "", "None")}


@pytest.mark.parametrize(
    ("select", "chosen"),
    [
        ({}, True),
        ({"group": "apps"}, True),
        ({"group": "app*", "kind": "Deploy*", "name": "w?b", "namespace": "sh*"}, True),
        ({"group": "core"}, False),
        ({"group": "batch"}, False),
        ({"kind": "deployment"}, False),
        ({"name": "api"}, False),
        ({"namespace": "bank"}, False),
    ],
)
def test_a_rule_selects_by_globs(select: dict[str, str], chosen: bool) -> None:
    body = document("Deployment", api="apps/v1", metadata={"namespace": "shop"}, spec={"replicas": 1})
    assert (effective(body, scaled(5), "/spec/replicas", **select)["spec"]["replicas"] == 5) is chosen


def test_core_names_the_group_without_a_name() -> None:
    assert effective(document(data={"a": "1"}), document(data={"a": "2"}), "/data/a", group="core")["data"] == {"a": "2"}


def test_an_annotation_ignores_several_pointers() -> None:
    body = document(data={"a/b": "1", "c~d": "1", "e": "1"}, metadata={"annotations": {ANNOTATION: " /data/a~1b, /data/c~0d ,"}})
    live = document(data={"a/b": "2", "c~d": "2", "e": "2"})
    assert effective(body, live)["data"] == {"a/b": "2", "c~d": "2", "e": "1"}


@pytest.mark.parametrize(
    ("pointer", "before", "live", "after"),
    [
        ("/data/*", {"a": "1", "b": "1"}, {"a": "2", "c": "2"}, {"a": "2"}),
        ("/data/1", ["a", "b"], ["c", "d"], ["a", "d"]),
        ("/data/*", ["a", "b", "c"], ["d"], ["d"]),
        ("/data/5", ["a"], ["c"], ["a"]),
        ("/data/-1", ["a"], ["c"], ["a"]),
        ("/data/0/x", [{"x": 1}], "text", [{}]),
        ("/data/0/x", [{"name": "n", "x": 1}], "text", [{"name": "n"}]),
        ("/data/x/y", "text", {"x": {"y": 1}}, "text"),
        ("/data/x/y", {"x": None}, {"x": {"y": 1}}, {"x": None}),
        ("/data/x/y", {"z": 1}, {"x": {"y": 1}}, {"z": 1}),
        ("/data//y", {"": {"y": 1}}, {"": {"y": 2}}, {"": {"y": 2}}),
    ],
)
def test_a_pointer_reaches_what_git_declares_and_nothing_else(pointer: str, before: Any, live: Any, after: Any) -> None:
    assert effective(document(data=before), document(data=live), pointer)["data"] == after


def test_ports_are_told_apart_by_their_place_live() -> None:
    ports: dict[str, Any] = {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:nodePort": {}}}}}
    live = owned(document("Service", spec={"ports": [{"port": 80, "protocol": "TCP", "nodePort": 30000}]}), entry(ports, "lb", "Update"))
    body = document("Service", spec={"ports": [{"port": 80, "nodePort": 30001}]})
    assert effective(body, live, "/spec/ports/*/nodePort")["spec"]["ports"] == [{"port": 80}]


@pytest.mark.parametrize(
    "pointer",
    [
        "/apiVersion",
        "/kind",
        "/metadata",
        "/metadata/name",
        "/metadata/namespace",
        "/metadata/labels",
        "/metadata/annotations",
        "/metadata/*",
        "/metadata/labels/*",
        "/metadata/annotations/*",
        "/metadata/annotations/anneal.dev~1identity",
        "/metadata/labels/applyset.kubernetes.io~1part-of",
        "/*",
    ],
)
def test_no_pointer_takes_the_marks_off_that_make_an_object_ours(pointer: str) -> None:
    (item,) = desired(document(data={}))
    body = item.manifest.body()
    other = document("Secret", "other", "v2", metadata={"namespace": "bank", "labels": {PART_OF: "x"}, "annotations": {IDENTITY: "y"}})
    found = effective(body, other, pointer)
    assert (found["apiVersion"], found["kind"], found["metadata"]) == (body["apiVersion"], body["kind"], body["metadata"])


def test_a_label_may_be_ignored() -> None:
    body, live = document(metadata={"labels": {"a": "1", "b": "1"}}), document(metadata={"labels": {"a": "2", "b": "2"}})
    assert effective(body, live, "/metadata/labels/a")["metadata"]["labels"] == {"a": "2", "b": "1"}


def test_a_field_ignored_by_position_is_matched_to_the_live_element_of_its_name() -> None:
    declared = document("Deployment", api="apps/v1", spec={"containers": [{"name": "app"}]})
    live = document("Deployment", api="apps/v1", spec={"containers": [{"name": "sidecar", "image": "s"}, {"name": "app", "image": "a"}]})
    ignoring = Ignoring((IgnoreRule(IgnoreSelect(), ("/spec/containers/0/image",)),))
    assert ("spec", "containers", 1, "image") in ignoring.spared(identity_of(declared), declared, live)


ANEW = UnstableFields(("/spec/replicas", "/spec/seed"), "randInt at templates/web.yaml:3")


@pytest.mark.parametrize(
    ("declared", "lives", "applied"),
    [
        ({"replicas": 7, "seed": "b"}, {"replicas": 1, "seed": "a"}, {"replicas": 1, "seed": "a"}),
        ({"replicas": 7, "seed": "b"}, {"seed": "a"}, {"replicas": 7, "seed": "a"}),
        ({"replicas": 7}, {"replicas": 1, "seed": "a"}, {"replicas": 1, "seed": "a"}),
        ({"replicas": 7, "paused": True}, {"replicas": 1, "paused": False}, {"replicas": 1, "paused": True}),
    ],
    ids=["both live", "one isn't there yet", "one isn't rendered now", "another field changes"],
)
def test_what_each_render_makes_anew_is_created_once_and_then_stays(
    declared: dict[str, Any], lives: dict[str, Any], applied: dict[str, Any]
) -> None:
    body, live = (document("Deployment", api="apps/v1", spec=spec) for spec in (declared, lives))
    for manager in ("anneal", "helm"):
        lived = owned(live, entry({"f:spec": {f"f:{name}": {} for name in lives}}, manager))
        ignoring = Ignoring((), unstable={identity_of(body): ANEW})
        assert ignoring.effective(identity_of(body), copy.deepcopy(body), lived)["spec"] == applied


@pytest.mark.parametrize(
    ("rule", "held"),
    [("/spec/replicas", ["/spec/seed"]), ("/spec/*", []), ("/spec", []), ("/spec/replicas/a", ["/spec/replicas", "/spec/seed"])],
)
def test_a_rule_that_names_such_a_field_or_what_is_around_it_decides(rule: str, held: list[str]) -> None:
    identity = identity_of(DECLARED)
    ignoring = Ignoring((IgnoreRule(IgnoreSelect(kind="Deployment"), (rule,)),), unstable={identity: ANEW})
    assert ignoring.held(identity) == held
    assert Ignoring((), unstable={identity: ANEW}).held(Identity("", "ConfigMap", "shop", "other")) == []


@pytest.mark.parametrize("pointer", ["/metadata", "/metadata/name", "/kind"])
def test_what_says_which_object_it_is_never_stays(pointer: str) -> None:
    body, lived = document("Deployment", "declared", api="apps/v1"), document("Deployment", "live", api="apps/v1", spec={"replicas": 1})
    ignoring = Ignoring((), unstable={identity_of(body): UnstableFields((pointer,), "randAlpha at templates/web.yaml:3")})
    assert ignoring.effective(identity_of(body), copy.deepcopy(body), lived) == body


@pytest.mark.parametrize(
    ("pointers", "left"),
    [
        (["/spec/replicas"], {"paused": False}),
        (["/spec/*"], {}),
        (["/spec/none", "/none/x", "/metadata/name"], {"replicas": 1, "paused": False}),
        ([], {"replicas": 1, "paused": False}),
    ],
)
def test_what_is_left_to_others_is_taken_out_of_a_declaration(pointers: list[str], left: dict[str, Any]) -> None:
    found = without(copy.deepcopy(DECLARED), DECLARED, pointers)
    assert (found["spec"], found["metadata"]) == (left, DECLARED["metadata"])


def test_all_that_git_leaves_to_others_has_a_pointer() -> None:
    identity = identity_of(DECLARED)
    unstable = {identity: UnstableFields(("/data/made",), "a chart")}
    ignoring = Ignoring((IgnoreRule(IgnoreSelect(), ("/spec/a",)),), unstable=unstable)
    body = {**DECLARED, "metadata": {**DECLARED["metadata"], "annotations": {ANNOTATION: "/spec/b, /spec/c"}}}
    assert ignoring.pointers(identity, body, DECLARED) == ["/spec/b", "/spec/c", "/spec/a", "/data/made"]
