"""What the API server answers to one request: routing, LISTs, applies, swaps, deletes. No network, no threads, no time of its own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import formatdate
from typing import Any

from handler.cluster.errors import RequestPlace, place_of
from handler.cluster.live import matches
from handler.model.names import Identity
from tests.fakes.apiserver import managed_fields
from tests.fakes.apiserver.bodies import copied
from tests.fakes.apiserver.kinds import SERVED, Served, by_place, discovery
from tests.fakes.apiserver.store import Body, Refusal, Store, Stored

KUBE_SYSTEM = Identity("", "Namespace", "", "kube-system")


@dataclass(frozen=True)
class Asked:
    """One request, read."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    content_type: str
    accept: str

    @property
    def dry(self) -> bool:
        return self.query.get("dryRun") == "All"

    @property
    def manager(self) -> str:
        return self.query.get("fieldManager", "unknown")

    @property
    def partial(self) -> bool:
        return "as=PartialObjectMetadata" in self.accept


class ApiServer:
    """A cluster. `clock`: its time in seconds since the epoch; `served`: its kinds."""

    def __init__(self, clock: Callable[[], float], served: Sequence[Served] = SERVED) -> None:
        self.clock = clock
        self._served, self._by_place = served, by_place(served)
        self._one = threading.RLock()  # as etcd does: one change after the other, whatever threads ask
        self.store = Store(lambda: datetime.fromtimestamp(clock(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        self._pages: dict[str, list[Stored]] = {}
        for name in ("default", "kube-system"):
            self.must(
                Asked("POST", "/api/v1/namespaces", {}, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, "", "")
            )

    def must(self, asked: Asked) -> Body:
        """Do what a person does; it may not be refused."""
        status, body = self.answer(asked)
        assert status < 300, body
        return body

    def answer(self, asked: Asked) -> tuple[int, Body]:
        """Return status and body."""
        try:
            with self._one:
                return self._routed(asked)
        except Refusal as refused:
            return refused.status, refused.body

    def date(self) -> str:
        """The `Date` header: whole seconds."""
        return formatdate(int(self.clock()), usegmt=True)

    def _routed(self, asked: Asked) -> tuple[int, Body]:
        if asked.path in ("/api", "/apis"):
            return 200, discovery(asked.path == "/api", self._served)
        if asked.path == "/version":
            return 200, {"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
        place = place_of(asked.path)
        row = self._by_place.get((place.group, asked.path.strip("/").split("/")[2 if place.group else 1], place.resource))
        if row is None:
            raise Refusal(404, "NotFound", "the server could not find the requested resource")
        identity = Identity(place.group, row.resource.kind, place.namespace, place.name)
        if asked.method == "GET" and not place.name:
            return 200, self._list(asked, row, place)
        if asked.method == "POST":
            return self._create(asked, row, place)
        return getattr(self, f"_{asked.method.lower()}")(asked, row, identity)  # type: ignore[no-any-return] # one of the methods below

    # --- reads
    def _get(self, asked: Asked, row: Served, identity: Identity) -> tuple[int, Body]:
        return 200, _shown(self._there(identity, row).body, asked)

    def _there(self, identity: Identity, row: Served) -> Stored:
        found = self.store.get(identity)
        if found is None:
            raise Refusal(404, "NotFound", f'{_plural(row)} "{identity.name}" not found')
        return found

    def _list(self, asked: Asked, row: Served, place: RequestPlace) -> Body:
        token = asked.query.get("continue", "")
        if token and token not in self._pages:
            raise Refusal(410, "Expired", "The provided continue parameter is too old")
        found = self._pages.pop(token) if token else self._selected(asked, row, place.namespace)
        limit = int(asked.query.get("limit") or len(found) or 1)
        metadata: Body = {"resourceVersion": str(self.store.revision)}
        if found[limit:]:
            metadata["continue"] = f"page-{self.store.revision}-{len(self._pages)}-{len(found)}"
            self._pages[metadata["continue"]] = found[limit:]
        items = [_shown(one.body, asked) for one in found[:limit]]
        for item in () if asked.partial else items:
            del item["kind"], item["apiVersion"]
        if asked.partial:
            return {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items}
        return {"kind": f"{row.resource.kind}List", "apiVersion": row.resource.api_version, "metadata": metadata, "items": items}

    def _selected(self, asked: Asked, row: Served, namespace: str) -> list[Stored]:
        name = asked.query.get("fieldSelector", "").removeprefix("metadata.name=")
        return [
            stored
            for identity, stored in self.store.all()
            if stored.row is row
            and namespace in ("", identity.namespace)
            and name in ("", identity.name)
            and matches(stored.body, asked.query.get("labelSelector", ""))
        ]

    # --- writes
    def _create(self, asked: Asked, row: Served, place: RequestPlace) -> tuple[int, Body]:
        identity = Identity(place.group, row.resource.kind, place.namespace, asked.body["metadata"]["name"])
        self._needs_namespace(identity)
        if (strangers := _strangers(asked, row)) and asked.query.get("fieldValidation") == "Strict":
            what = f'{identity.kind} in version "{row.resource.version}" cannot be handled as a {identity.kind}'
            raise Refusal(400, "BadRequest", f'{what}: strict decoding error: unknown field "{strangers[0]}"')
        if self.store.get(identity):
            raise Refusal(409, "AlreadyExists", f'{_plural(row)} "{identity.name}" already exists')
        owners = managed_fields.updated(None, {}, asked.body, asked.manager)
        return 201, _shown(self.store.put(identity, row, asked.body, owners, dry=asked.dry), asked)

    def _put(self, asked: Asked, row: Served, identity: Identity) -> tuple[int, Body]:
        live = self._there(identity, row)
        return 200, self._swapped(asked, row, identity, live, asked.body)

    def _swapped(self, asked: Asked, row: Served, identity: Identity, live: Stored, body: Body) -> Body:
        """Store a changed body against what its metadata names."""
        _same(body["metadata"], live, row)
        _immutable(live, body)
        owners = managed_fields.updated(live.body, live.owners, body, asked.manager)
        return _shown(self.store.put(identity, row, body, owners, dry=asked.dry), asked)

    def _patch(self, asked: Asked, row: Served, identity: Identity) -> tuple[int, Body]:
        if "apply-patch" in asked.content_type:
            return self._apply(asked, row, identity)
        live = self._there(identity, row)
        if "json-patch" in asked.content_type:
            if any(step["path"] == "/metadata/managedFields" for step in asked.body):
                return 200, self._reowned(asked, row, identity, live)
            return 200, self._swapped(asked, row, identity, live, _stepped(live.body, asked.body))
        return 200, self._swapped(asked, row, identity, live, _merged(live.body, asked.body))

    def _reowned(self, asked: Asked, row: Served, identity: Identity, live: Stored) -> Body:
        """Who owns what, against a resourceVersion, and what is removed with that."""
        values = {step["path"].rpartition("/")[2]: step.get("value") for step in asked.body}
        _same({"resourceVersion": values["resourceVersion"]}, live, row)
        body = _stepped(live.body, [step for step in asked.body if step["op"] == "remove"])
        owners = {owner: paths & managed_fields.leaves(body) for owner, paths in managed_fields.read(values["managedFields"]).items()}
        return _shown(self.store.put(identity, row, body, owners, dry=asked.dry), asked)

    def _apply(self, asked: Asked, row: Served, identity: Identity) -> tuple[int, Body]:
        live, metadata = self.store.get(identity), asked.body["metadata"]
        if strangers := _strangers(asked, row):
            what = f"failed to create typed patch object ({identity.namespace}/{identity.name}; v1, Kind={identity.kind})"
            raise Refusal(500, "", f"{what}: .{strangers[0]}: field not declared in schema")
        if live:
            _same(metadata, live, row)
        elif metadata.get("uid"):
            seen = f"uid mismatch: the provided object specified uid {metadata['uid']}, and no existing object was found"
            raise Refusal(409, "Conflict", f'Operation cannot be fulfilled on {_plural(row)} "{identity.name}": {seen}')
        else:
            self._needs_namespace(identity)
        forced = asked.query.get("force") == "true"
        try:
            body, owners = managed_fields.applied(
                live.body if live else None, live.owners if live else {}, asked.body, asked.manager, force=forced
            )
        except managed_fields.Conflict as others:
            raise Refusal(409, "Conflict", f"Apply failed with 1 conflict: conflict with {others}") from None
        if live:
            _immutable(live, body)
        body["metadata"] |= {key: value for key, value in metadata.items() if key in ("name", "namespace")}
        return 200 if live else 201, _shown(self.store.put(identity, row, body, owners, dry=asked.dry), asked)

    def _delete(self, asked: Asked, row: Served, identity: Identity) -> tuple[int, Body]:
        live = self._there(identity, row)
        wanted = (asked.body or {}).get("preconditions") or {}
        for key, has in (("uid", live.uid), ("resourceVersion", live.version)):
            if wanted.get(key) not in (None, has):
                raise Refusal(409, "Conflict", f"Precondition failed: {key} in precondition: {wanted[key]}, in object meta: {has}")
        if not asked.dry:
            self.store.remove(identity)
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def _needs_namespace(self, identity: Identity) -> None:
        if identity.namespace and not self.store.get(Identity("", "Namespace", "", identity.namespace)):
            raise Refusal(404, "NotFound", f'namespaces "{identity.namespace}" not found')


def _strangers(asked: Asked, row: Served) -> list[str]:
    """Return the fields that a kind doesn't have."""
    return sorted(asked.body.keys() - row.fields - {"apiVersion", "kind", "metadata"})


def read(method: str, path: str, query: Mapping[str, str], body: bytes | None, headers: Mapping[str, str]) -> Asked:
    """Read a request."""
    return Asked(method, path, query, json.loads(body) if body else None, headers.get("Content-Type", ""), headers.get("Accept", ""))


def _plural(row: Served) -> str:
    resource = row.resource
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _same(metadata: Body, live: Stored, row: Served) -> None:
    """Refuse a write that names another uid or version than the live one."""
    name = f'{_plural(row)} "{live.body["metadata"]["name"]}"'
    if metadata.get("uid") not in (None, "", live.uid):
        seen = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {live.uid}"
        raise Refusal(409, "Conflict", f"Operation cannot be fulfilled on {name}: {seen}")
    if metadata.get("resourceVersion") not in (None, "", live.version):
        seen = "the object has been modified; please apply your changes to the latest version and try again"
        raise Refusal(409, "Conflict", f"Operation cannot be fulfilled on {name}: {seen}")


def _immutable(live: Stored, body: Body) -> None:
    """ConfigMaps and Secrets that say so don't change."""
    held = ("data", "binaryData", "immutable")
    if live.body.get("immutable") and any((live.body.get(key) or {}) != (body.get(key) or {}) for key in held):
        kind, name = live.row.resource.kind, live.body["metadata"]["name"]
        seen = "data: Forbidden: field is immutable when `immutable` is set"
        raise Refusal(422, "Invalid", f'{kind} "{name}" is invalid: {seen}', cause="data")


def _merged(live: Any, patch: Any) -> Any:
    """Make a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, dict):
        return patch
    made = copied(live) if isinstance(live, dict) else {}
    for key, value in patch.items():
        if value is None:
            made.pop(key, None)
        else:
            made[key] = _merged(made.get(key), value)
    return made


def _stepped(live: Body, steps: list[dict[str, Any]]) -> Body:
    """Make a JSON patch (RFC 6902) of fields."""
    made: Body = copied(live)
    for step in steps:
        *above, key = (part.replace("~1", "/").replace("~0", "~") for part in step["path"].removeprefix("/").split("/"))
        holder = made
        for part in above:
            holder = holder[part]
        if step["op"] == "remove":
            del holder[key]
        else:
            holder[key] = copied(step["value"])
    return made


def _shown(body: Body, asked: Asked) -> Body:
    """Return an object as it is asked for: whole, or its metadata."""
    if not asked.partial:
        return copied(body)
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": copied(body["metadata"])}
