"""What a program expects: dicts, models of the `kubernetes` package, lists -> bodies, each with its identity and kind."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from handler.cluster.vendor_models import body_of, is_model, version_and_kind
from handler.library.operator_client import ObjectClient
from handler.model.errors import AnnealError, Problem
from handler.model.names import GroupKind, Identity, Resource, identity_of

_BUILT_IN = ("", "apps", "autoscaling", "batch", "policy")
_BUILT_IN_OF_K8S_IO = (
    *("admissionregistration", "apiextensions", "apiregistration", "certificates", "coordination", "discovery"),
    *("flowcontrol.apiserver", "networking", "node", "rbac.authorization", "resource", "scheduling", "storage"),
)
_SERVERS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
"""Metadata that only the server writes: an object that was read may be expected."""


@dataclass(frozen=True, slots=True)
class ExpectedObject:
    """One object. `resource`: its kind; None: a CustomResourceDefinition among the expected objects makes it."""

    identity: Identity
    body: dict[str, Any]
    resource: Resource | None


def expected_of(client: ObjectClient, objects: Iterable[Any], problems: list[Problem]) -> list[ExpectedObject]:
    """Read what is expected; what can't be is added to `problems`. The given objects aren't changed. Raises AnnealError: discovery."""
    bodies = [body for number, each in enumerate(_flat(objects)) if (body := _body(client, each, f"object {number + 1}", problems))]
    made = {(spec.get("group"), (spec.get("names") or {}).get("kind")) for body in bodies if (spec := _crd(body))}
    found: dict[Identity, ExpectedObject] = {}
    for body in bodies:
        item = _expected(client, body, made, problems)
        if item is not None and item.identity in found:
            problems.append(Problem(str(item.identity), "is expected twice", fix="hand over one of the two"))
        elif item is not None:
            found[item.identity] = item
    return list(found.values())


def _flat(objects: Any) -> Iterator[Any]:
    if isinstance(objects, Mapping):
        is_list = str(objects.get("kind", "")).endswith("List") and isinstance(objects.get("items"), list | tuple)
        yield from _flat(objects["items"]) if is_list else (objects,)
    elif is_model(objects):
        yield from _flat(objects.items) if isinstance(getattr(objects, "items", None), list) else (objects,)
    elif isinstance(objects, Iterable) and not isinstance(objects, str | bytes):
        for each in objects:
            yield from _flat(each)
    else:
        yield objects


def _body(client: ObjectClient, given: Any, place: str, problems: list[Problem]) -> dict[str, Any] | None:
    body = body_of(given)
    wrong = "" if isinstance(body, dict) else f"is a {type(given).__name__}, neither a dict nor a model of the kubernetes package"
    if not wrong and is_model(given) and not (body.get("apiVersion") and body.get("kind")):
        named = _named_by_class(client, given)
        body = {**body, **named}
        wrong = "" if named else f"has no api_version and kind, and its class {type(given).__name__} doesn't say them for certain"
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not wrong and not (body.get("apiVersion") and body.get("kind")):
        wrong = "has no apiVersion or kind"
    if not wrong and not (isinstance(metadata, dict) and isinstance(metadata.get("name"), str) and metadata["name"]):
        wrong = f"is a {body['kind']} without metadata.name"
    try:
        json.dumps(body, allow_nan=False)
    except (TypeError, ValueError) as error:
        wrong = wrong or f"is no JSON: {error}"
    if wrong or metadata is None:
        fix = "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'namespace': 'shop', 'name': 'web'}, 'data': {}}"
        problems.append(Problem(place, wrong, fix=f"write it as {fix}"))
        return None
    kept = {key: value for key, value in metadata.items() if key not in _SERVERS}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": kept}


def _named_by_class(client: ObjectClient, given: Any) -> dict[str, str]:
    version, kind = version_and_kind(given) or ("", "")
    groups = (*_BUILT_IN, *(f"{group}.k8s.io" for group in _BUILT_IN_OF_K8S_IO))
    versions = [f"{group}/{version}".lstrip("/") for group in groups] if kind else []
    found = [each for each in versions if client.find(each, kind)]
    return {"apiVersion": found[0], "kind": kind} if len(found) == 1 else {}


def _crd(body: Mapping[str, Any]) -> dict[str, Any]:
    return dict(body.get("spec") or {}) if body["kind"] == "CustomResourceDefinition" else {}


def _expected(client: ObjectClient, body: dict[str, Any], made: set[tuple[Any, Any]], problems: list[Problem]) -> ExpectedObject | None:
    identity, resource = identity_of(body), client.find(body["apiVersion"], body["kind"])
    if resource is None and (identity.group, identity.kind) not in made:
        client.refresh()  # it may be served since
        resource = client.find(body["apiVersion"], body["kind"])
    wrong, fix = placed_wrong(resource, identity) if resource else ("", "")
    if resource is None and (identity.group, identity.kind) not in made:
        wrong, fix = f"{body['apiVersion']} {identity.kind} isn't served", "hand over its CustomResourceDefinition, too, or correct it"
    if wrong:
        problems.append(Problem(str(identity), wrong, fix=fix))
        return None
    return ExpectedObject(identity, body, resource)


def placed_wrong(resource: Resource, identity: Identity) -> tuple[str, str]:
    """Return what is wrong with an object's namespace, and the way out; empty: nothing."""
    if resource.namespaced and not identity.namespace:
        return "has no metadata.namespace", "'metadata': {'namespace': 'shop', 'name': '" + identity.name + "'}"
    if not resource.namespaced and identity.namespace:
        return "is of a kind that lies in no namespace", "leave its metadata.namespace out"
    return "", ""


def named_kind(client: ObjectClient, kind: str) -> Resource:
    """Return the kind that `apps/v1/Deployment`, `v1/ConfigMap`, `Deployment.apps` or `ConfigMap` names. Raises AnnealError: none does."""
    version, _, name = kind.rpartition("/")
    found = client.find(version, name) if version else client.preferred(GroupKind.parse(kind))
    if found is None:
        raise AnnealError.of(f"kinds: {kind}", "isn't served", fix="name it as kinds=('apps/v1/Deployment',) or kinds=('Deployment.apps',)")
    if not found.namespaced:
        raise AnnealError.of(f"kinds: {kind}", "lies in no namespace: nothing of it is deleted", fix=f"leave {kind} out of kinds")
    return found
