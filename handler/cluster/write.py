"""`DryRunner` sends dryRun=All; `Writer` checks the fence before each attempt, and its plan's uid and resourceVersion (`Moved`).

Law: what isn't an apply goes as a dry-run first. Where the API server can't convert managedFields between versions of a kind it empties
them with such a write, and who wrote what is lost: that isn't sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

from handler.cluster.api import JSON, Api, ApiRequest, encode
from handler.cluster.live import PARTIAL, named
from handler.model.errors import ApiRefused, Moved, Problem
from handler.model.names import FIELD_MANAGER, Identity, Resource, identity_of

APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_QUERY = {"fieldManager": FIELD_MANAGER, "force": "true", "fieldValidation": "Strict"}
_DRY = {**_QUERY, "dryRun": "All"}
_PATCH = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Strict"}
_DRY_PATCH = {**_PATCH, "dryRun": "All"}
_BAD_REQUEST = 400
_NOT_SENT = frozenset({"managedFields", "creationTimestamp", "generation", "resourceVersion", "uid"})

Propagation = Literal["Background", "Foreground", "Orphan"]


class DryRunner:
    """Server-side apply with admission and defaults, without storing anything."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def apply(self, resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
        """Return the object as applied. Raises ApiRefused: 404: no Namespace or CRD; 400: a webhook lacks dry run; 422: invalid."""
        return self._api.expect(_patching(resource, body, _DRY))

    def create(self, resource: Resource, body: dict[str, Any]) -> None:
        """Create an object where none is; what lives under its name is neither merged nor returned. Raises Moved: one does."""
        identity = identity_of(body)
        sent = {**body, "apiVersion": resource.api_version}
        query = {**_PATCH, "dryRun": "All"}
        self._api.expect(ApiRequest("POST", resource.path(identity.namespace), query, encode(sent), JSON, PARTIAL, str(identity)))

    def check(self, resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
        """Return only the metadata of an object as an apply would leave it, without a resourceVersion if it is new: cheap for CRDs."""
        return named(self._api.expect(_patching(resource, body, _DRY, accept=PARTIAL)), resource)

    def merge(self, resource: Resource, body: dict[str, Any]) -> dict[str, Any]:
        """Return a live object with a body merged into it; fields that the body lacks stay. Raises what `refuse_to_forget` does."""
        request = _patching(resource, body, _DRY_PATCH, content_type=_MERGE_PATCH)
        answer = self._api.expect(request)
        _refuse_forgotten(self._api, request, answer)
        return named(answer, resource)

    def become(
        self, resource: Resource, live: dict[str, Any], body: dict[str, Any], entries: Sequence[dict[str, Any]] | None = None
    ) -> dict[str, Any]:
        """Return a live object updated to `body` by `patch`: for fields whose owners change, which a dry-run apply can't show.

        `entries`: the managedFields that are written along; the answer has none where these would be lost.
        """
        identity = identity_of(live)
        path = resource.path(identity.namespace, identity.name)
        patch = _patch(live, body) + ([] if entries is None else [_owned_by(entries)])
        request = ApiRequest("PATCH", path, _DRY_PATCH, encode(patch), _JSON_PATCH, subject=str(identity), repeatable=True)
        return named(self._api.expect(request), resource)


class Writer:
    """Every object write of a run. `fence` raises LeaseLost when the Lease isn't held any more; `manager`: whose fields an apply makes."""

    def __init__(self, api: Api, fence: Callable[[], None], manager: str = FIELD_MANAGER) -> None:
        self._api = api
        self._fence = fence
        self._query = {**_QUERY, "fieldManager": manager}

    def apply(
        self, resource: Resource, body: dict[str, Any], uid: str = "", resource_version: str = "", *, whole: bool = False
    ) -> dict[str, Any]:
        """Server-side apply; return the metadata of the object as stored, or all of it.

        With `uid` and `resource_version` only an update, else Moved (a resourceVersion alone would create it). Without: a create or merge.
        """
        conditions = {key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        return named(
            self._api.expect(_patching(resource, body, self._query, conditions, self._fence, JSON if whole else PARTIAL)), resource
        )

    def merge(self, resource: Resource, body: dict[str, Any], uid: str, resource_version: str) -> dict[str, Any]:
        """Merge a body into exactly this object; return its metadata; Moved when it changed or is gone. Other fields keep their owners.

        Raises what `refuse_to_forget` does.
        """
        conditions = {"uid": uid, "resourceVersion": resource_version}
        request = _patching(resource, body, _PATCH, conditions, self._fence, PARTIAL, _MERGE_PATCH)
        refuse_to_forget(self._api, request)
        stored = self._api.send(request)
        if stored is None:
            raise Moved.of(request.name, "is gone since it was planned")
        return named(stored, resource)

    def delete(
        self, resource: Resource, identity: Identity, uid: str, resource_version: str = "", propagation: Propagation = "Background"
    ) -> bool:
        """Delete exactly this object; False when it is gone already, Moved when it changed or was created anew."""
        conditions = {key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions, "propagationPolicy": propagation}
        path = resource.path(identity.namespace, identity.name)
        request = ApiRequest("DELETE", path, body=encode(options), subject=str(identity), repeatable=bool(uid), before=self._fence)
        return self._api.send(request) is not None

    def replace_managed_fields(
        self, resource: Resource, identity: Identity, resource_version: str, managed_fields: list[dict[str, Any]]
    ) -> dict[str, Any]:
        """Rewrite managedFields, and return the object. Raises what `refuse_to_forget` does.

        `replace` of the resourceVersion is the lock, as in client-go's csaupgrade: 409; a `test` would answer 422.
        """
        patch: list[dict[str, Any]] = [
            _owned_by(managed_fields),
            {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
        ]
        return self.patch(resource, identity, patch)

    def patch(self, resource: Resource, identity: Identity, patch: list[dict[str, Any]]) -> dict[str, Any]:
        """Send a JSON patch, which replaces the resourceVersion, too; return the object. Raises Moved, and what `refuse_to_forget` does."""
        path = resource.path(identity.namespace, identity.name)
        query = {"fieldManager": FIELD_MANAGER}
        request = ApiRequest("PATCH", path, query, encode(patch), _JSON_PATCH, subject=str(identity), repeatable=True, before=self._fence)
        refuse_to_forget(self._api, request)
        return self._api.expect(request)


def refuse_to_forget(api: Api, request: ApiRequest) -> None:
    """Dry-run a write that isn't an apply. Raises ApiRefused (FORGOTTEN): live has managedFields, and they would be lost with it."""
    try:
        answer = api.send(replace(request, query={**(request.query or {}), "dryRun": "All"}, accept=PARTIAL, repeatable=True))
    except ApiRefused as error:
        if error.status != _BAD_REQUEST:
            raise
        return  # a webhook without dry runs: the write itself is refused for whatever else is wrong with it
    if answer is not None:
        _refuse_forgotten(api, request, answer)


def _refuse_forgotten(api: Api, request: ApiRequest, answer: dict[str, Any]) -> None:
    if answer["metadata"].get("managedFields"):
        return
    live = api.get(request.path, accept=PARTIAL, subject=request.name) or answer
    versions = sorted({str(each.get("apiVersion")) for each in live["metadata"].get("managedFields") or ()})
    if versions:
        raise ApiRefused(forgetting(request.name, versions), reason=ApiRefused.FORGOTTEN)


def forgetting(subject: str, versions: Sequence[str]) -> Problem:
    """Return why what isn't an apply isn't written."""
    seen = f"isn't written: the API server would forget who wrote its fields, which are recorded in {', '.join(versions)}"
    return Problem(subject, seen, fix="give all versions of its CustomResourceDefinition the same fields, or a webhook that converts them")


def _owned_by(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"op": "replace", "path": "/metadata/managedFields", "value": [*entries]}


def _patch(live: dict[str, Any], body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the JSON patch (RFC 6902) between two contents: whole top-level fields, metadata field by field."""
    keys = sorted((live.keys() | body.keys()) - {"apiVersion", "kind", "metadata", "status"})
    names = sorted((live["metadata"].keys() | body["metadata"].keys()) - _NOT_SENT)
    parts = [(f"/{key}", live.get(key), body.get(key)) for key in keys]
    parts += [(f"/metadata/{name}", live["metadata"].get(name), body["metadata"].get(name)) for name in names]
    return [
        {"op": "remove", "path": path} if becomes is None else {"op": "add", "path": path, "value": becomes}
        for path, was, becomes in parts
        if becomes != was
    ]


def _patching(
    resource: Resource,
    body: dict[str, Any],
    query: dict[str, str],
    conditions: dict[str, str] | None = None,
    fence: Callable[[], None] | None = None,
    accept: str = JSON,
    content_type: str = APPLY,
) -> ApiRequest:
    identity = identity_of(body)
    metadata = {key: value for key, value in body["metadata"].items() if key not in _NOT_SENT} | (conditions or {})
    sent = {key: value for key, value in body.items() if key != "status"} | {"apiVersion": resource.api_version, "metadata": metadata}
    path = resource.path(identity.namespace, identity.name)
    return ApiRequest("PATCH", path, query, encode(sent), content_type, accept, str(identity), before=fence)
