"""Values the plan's tests are made of: declared documents, live objects with the managedFields a server would write."""

from __future__ import annotations

import copy
from typing import Any

from handler.config.git_settings import Repository
from handler.config.instance_target import InstanceTarget, instance_target
from handler.config.settings import Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.instance import Instance
from handler.model.manifest import Manifest
from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, Resource, applyset_id, identity_of
from handler.plan.admission import Admission, Desired
from handler.plan.inventory import Membership, TargetMarks

SET = applyset_id("anneal-shop", "anneal-system")
OURS = Membership(TargetMarks("shop", SET))
VERBS = frozenset({"list", "delete"})
SERVED = (
    Resource("", "v1", "ConfigMap", "configmaps", True, VERBS),
    Resource("", "v1", "Secret", "secrets", True, VERBS),
    Resource("", "v1", "Service", "services", True, VERBS),
    Resource("", "v1", "Namespace", "namespaces", False, VERBS),
    Resource("", "v1", "Pod", "pods", True, VERBS),
    Resource("", "v1", "Binding", "bindings", True, frozenset({"create"})),
    Resource("acme.io", "v0", "Gadget", "gadgets", True, VERBS),
    Resource("", "v1", "ServiceAccount", "serviceaccounts", True, VERBS),
    Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", True, VERBS),
    Resource("apps", "v1", "Deployment", "deployments", True, VERBS),
    Resource("apps", "v1", "StatefulSet", "statefulsets", True, VERBS),
    Resource("batch", "v1", "Job", "jobs", True, VERBS),
    Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", True, VERBS),
    Resource("coordination.k8s.io", "v1", "Lease", "leases", True, VERBS),
    Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", False, VERBS),
    Resource("rbac.authorization.k8s.io", "v1", "Role", "roles", True, VERBS),
    Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", True, VERBS),
    Resource("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False, VERBS),
    Resource("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", False, VERBS),
    Resource("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", False, VERBS),
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, VERBS),
)


def target(**settings: Any) -> Target:
    """A target of the shop."""
    facts: dict[str, Any] = {"namespaces": ("shop",), "namespace": "shop", **settings}
    return Target(name="shop", repository=Repository(url="https://git.example.com/acme/shop.git"), **facts)


def instance(*, across: bool = False, **settings: Any) -> InstanceTarget:
    """The target of `Shop/shop/main`, an instance of template `shop`."""
    trigger = ResourceTrigger("shop", (WatchedResource("shop", "acme.io/v1", "Shop"),), across_namespaces=across)
    live = {"apiVersion": "acme.io/v1", "kind": "Shop", "metadata": {"name": "main", "namespace": "shop", "uid": "uid-main"}}
    return instance_target(target(trigger=TriggerSettings(trigger), **settings), Instance.of(live))


def find(api_version: str, kind: str) -> Resource | None:
    """What the server serves."""
    return next((item for item in SERVED if (item.api_version, item.kind) == (api_version, kind)), None)


def admission(**settings: Any) -> Admission:
    return Admission(target(**settings), SET, "anneal-system", find, SERVED)


def document(kind: str = "ConfigMap", name: str = "web", api: str = "v1", **parts: Any) -> dict[str, Any]:
    """One declared document; `metadata` is merged, the rest are top-level fields."""
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **parts}


CRD = document(
    "CustomResourceDefinition",
    "widgets.acme.io",
    "apiextensions.k8s.io/v1",
    spec={
        "group": "acme.io",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [{"name": "v1", "served": True}, {"name": "v0", "served": False}],
    },
)


def manifest(*args: Any, place: str = "web.yaml:1", **parts: Any) -> Manifest:
    return Manifest.of(document(*args, **parts), place)


def desired(*bodies: dict[str, Any], **settings: Any) -> tuple[Desired, ...]:
    """Admit documents, each from a file of its own."""
    return admission(**settings).admit([Manifest.of(body, f"{index}.yaml:1") for index, body in enumerate(bodies)])


def fields_of(value: Any) -> dict[str, Any]:
    """The fieldsV1 of a value whose lists are atomic."""
    return {f"f:{key}": fields_of(item) for key, item in value.items()} if isinstance(value, dict) else {}


def entry(fields: dict[str, Any], manager: str = FIELD_MANAGER, operation: str = "Apply", **more: str) -> dict[str, Any]:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": more.pop("api", "v1"),
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **more,
    }


def live(body: dict[str, Any], fields: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """A live object that is exactly a declared one; `metadata` overrides."""
    found = copy.deepcopy(body)
    owned = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    owned["metadata"] = {key: value for key, value in body["metadata"].items() if key not in ("name", "namespace")}
    owned = {key: value for key, value in owned.items() if value != {} or key != "metadata"}
    entries = [entry(fields_of(owned) if fields is None else fields, api=body["apiVersion"])]
    found["metadata"] |= {"uid": f"uid-{body['metadata']['name']}", "resourceVersion": "7", "managedFields": entries, **metadata}
    return found


def member(body: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """A live object with our label and identity."""
    found = live(body)
    found["metadata"].setdefault("namespace", "shop")
    if metadata.get("namespace") == "":
        found["metadata"].pop("namespace")
        metadata.pop("namespace")
    identity = identity_of(found)
    found["metadata"]["labels"] = {PART_OF: SET, **metadata.pop("labels", {})}
    found["metadata"]["annotations"] = {IDENTITY: identity.mark("shop"), **metadata.pop("annotations", {})}
    found["metadata"] |= metadata
    return found
