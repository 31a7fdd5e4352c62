"""What a program expects: dicts, models of the `kubernetes` package, lists -> bodies, each with its identity and kind."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from handler.cluster.vendor_models import body_of, is_model, version_and_kind
from handler.library.operator_client import ObjectClient
from handler.model.errors import AnnealError, Problem
from handler.model.manifest import without_aggregated_rules
from handler.model.names import GroupKind, Identity, Resource, group_of, identity_of

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
    made = kinds_made(bodies)
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
        metadata = objects.get("metadata")
        is_named = isinstance(metadata, Mapping) and bool(metadata.get("name"))  # AccessList is a kind like others
        is_list = str(objects.get("kind", "")).endswith("List") and isinstance(objects.get("items"), list | tuple) and not is_named
        yield from _flat(objects["items"]) if is_list else (objects,)
    elif is_model(objects):
        yield from _flat(objects.items) if isinstance(getattr(objects, "items", None), list) else (objects,)
    elif isinstance(objects, Iterable) and not isinstance(objects, str | bytes):
        for each in objects:
            yield from _flat(each)
    else:
        yield objects


def _body(client: ObjectClient, given: Any, place: str, problems: list[Problem]) -> dict[str, Any] | None:
    try:
        body = body_of(given)
    except RecursionError:
        problems.append(Problem(place, "contains itself", fix="hand over what JSON can say"))
        return None
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
        body = json.loads(json.dumps(body, allow_nan=False, ensure_ascii=False).encode())  # a key that is a number becomes text
    except (TypeError, ValueError, RecursionError) as error:
        wrong = wrong or f"is no JSON: {error}"
    if wrong or metadata is None:
        fix = "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'namespace': 'shop', 'name': 'web'}, 'data': {}}"
        problems.append(Problem(place, wrong, fix=f"write it as {fix}"))
        return None
    kept = {key: value for key, value in metadata.items() if key not in _SERVERS}
    sent = without_aggregated_rules(body)
    return _with_data({**{key: value for key, value in sent.items() if key != "status"}, "metadata": kept})


def _with_data(body: dict[str, Any]) -> dict[str, Any]:
    """Write a Secret's stringData as data: the server keeps what an apply doesn't declare there any more."""
    plain, data = body.get("stringData"), body.get("data") or {}
    if (body["apiVersion"], body["kind"]) != ("v1", "Secret") or not isinstance(plain, dict) or not isinstance(data, dict):
        return body
    if not all(isinstance(text, str | None) for text in plain.values()):
        return body  # the server says what is wrong
    encoded = {key: base64.b64encode((text or "").encode()).decode() for key, text in plain.items()}
    return {**{key: value for key, value in body.items() if key != "stringData"}, "data": {**data, **encoded}}


def _named_by_class(client: ObjectClient, given: Any) -> dict[str, str]:
    version, kind = version_and_kind(given) or ("", "")
    groups = (*_BUILT_IN, *(f"{group}.k8s.io" for group in _BUILT_IN_OF_K8S_IO))
    versions = [f"{group}/{version}".lstrip("/") for group in groups] if kind else []
    found = [each for each in versions if client.find(each, kind)]
    return {"apiVersion": found[0], "kind": kind} if len(found) == 1 else {}


def kinds_made(bodies: Iterable[Mapping[str, Any]]) -> frozenset[GroupKind]:
    """Return the kinds that the CustomResourceDefinitions among objects make."""
    specs = [body["spec"] for body in bodies if body["kind"] == "CustomResourceDefinition" and isinstance(body.get("spec"), dict)]
    named = [(spec.get("group"), spec["names"].get("kind")) for spec in specs if isinstance(spec.get("names"), dict)]
    return frozenset(GroupKind(group, kind) for group, kind in named if isinstance(group, str) and isinstance(kind, str))


def _expected(client: ObjectClient, body: dict[str, Any], made: Collection[GroupKind], problems: list[Problem]) -> ExpectedObject | None:
    identity, resource = identity_of(body), client.find(body["apiVersion"], body["kind"])
    if resource is None and identity.group_kind not in made:
        client.refresh()  # it may be served since
        resource = client.find(body["apiVersion"], body["kind"])
    wrong, fix = placed_wrong(resource, identity) if resource else ("", "")
    if resource is None and identity.group_kind not in made:
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


def named_kind(client: ObjectClient, kind: str, made: Collection[GroupKind] = ()) -> Resource | None:
    """Return the kind that `apps/v1/Deployment`, `v1/ConfigMap`, `Deployment.apps` or `ConfigMap` names. Raises AnnealError: none does.

    None: a CustomResourceDefinition among the expected objects makes it (`made`), so there is nothing of it yet.
    """
    version, _, name = str(kind).rpartition("/")
    group_kind = GroupKind(group_of(version), name) if version else GroupKind.parse(str(kind))
    ask = partial(client.find, version, name) if version else partial(client.preferred, group_kind)
    found = ask()
    if found is None:
        client.refresh()  # it may be served since
        found = ask()
    if found is None and group_kind in made:
        return None
    if found is None:
        raise AnnealError.of(f"kinds: {kind}", "isn't served", fix="name it as kinds=('apps/v1/Deployment',) or kinds=('Deployment.apps',)")
    if not found.namespaced:
        raise AnnealError.of(f"kinds: {kind}", "lies in no namespace: nothing of it is deleted", fix=f"leave {kind} out of kinds")
    return found
