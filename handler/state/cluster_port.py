"""The port to the cluster: the few verbs that a record and a lock need, with compare-and-swap. Nothing here does I/O itself."""

from __future__ import annotations

from typing import Any, Literal, Protocol

from handler.model.advice import advice
from handler.model.errors import AccessDenied, ApiRefused, Moved

Body = dict[str, Any]  # an object as the API server's JSON has it
Kind = Literal["ConfigMap", "Lease", "Namespace"]  # what a record and a lock are made of


class StateObjects(Protocol):
    """ConfigMaps, Leases and Namespaces of one cluster. Reads are consistent (no cache). Safe to share between threads."""

    def get(self, kind: Kind, namespace: str, name: str) -> Body | None:
        """Return the object, or None when it (or its namespace) doesn't exist."""

    def create(self, body: Body) -> Body:
        """POST it and return what was stored. Raises Moved when it exists already, ApiRefused (status 404) without its namespace."""

    def replace(self, body: Body) -> Body:
        """PUT it with its metadata.resourceVersion and uid and return what was stored.

        Raises Moved when either differs, Moved or ApiRefused (status 404) when it is gone.
        """

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str, resource_version: str = "") -> bool:
        """Delete exactly this one; False when it is gone already. Raises Moved when it changed or was made again."""

    def server_time(self) -> float:
        """Return the API server's clock in seconds since the epoch: its last `Date` plus the time since."""


def create_in_namespace(objects: StateObjects, body: Body) -> Body:
    """Create an object, and its namespace first where missing. Raises AccessDenied, with the command to type, where it may not be."""
    try:
        return objects.create(body)
    except ApiRefused as refused:
        if refused.status != 404:
            raise
    namespace = body["metadata"]["namespace"]
    try:
        if objects.get("Namespace", "", namespace) is None:
            objects.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    except AccessDenied as denied:
        raise AccessDenied.of(
            f"Namespace/{namespace}",
            "doesn't exist and may not be created",
            fix=advice("create it: kubectl create namespace {}", namespace),
        ) from denied
    return objects.create(body)


def replace_same(objects: StateObjects, body: Body) -> Body:
    """Replace exactly the object that was read. Raises Moved when it changed, was deleted, or deleted and made again."""
    try:
        return objects.replace(body)
    except ApiRefused as refused:
        if refused.status != 404:
            raise
        metadata = body["metadata"]
        raise Moved.of(f"{body['kind']}/{metadata['namespace']}/{metadata['name']}", "was deleted since it was read") from refused
