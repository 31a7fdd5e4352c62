"""The objects that Anneal stores for itself: state ConfigMaps, Leases and their Namespace. A write never forces: 409 is `Moved`."""

from __future__ import annotations

from typing import Any, Literal

from handler.cluster.api import Api, ApiRequest, encode
from handler.cluster.live import metadata
from handler.cluster.webhooks import with_way_out
from handler.model.errors import ClusterUnavailable, StateInvalid
from handler.model.names import FIELD_MANAGER, Resource, identity_of

Kind = Literal["ConfigMap", "Lease", "Namespace"]
_KINDS: dict[str, Resource] = {
    "ConfigMap": Resource("", "v1", "ConfigMap", "configmaps", namespaced=True),
    "Lease": Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True),
    "Namespace": Resource("", "v1", "Namespace", "namespaces", namespaced=False),
}
_QUERY = {"fieldManager": FIELD_MANAGER}


class OwnObjects:
    """Get, create, replace, delete and overview of state objects."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def get(self, kind: Kind, namespace: str, name: str) -> dict[str, Any] | None:
        """Read one; None when there is none."""
        return self._api.get(_KINDS[kind].path(namespace, name), subject=_subject(kind, namespace, name))

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create one and return it as stored. Moved when it exists already, ClusterUnavailable when the outcome is unknown: read again."""
        return self._write("POST", body, _KINDS[body["kind"]].path(identity_of(body).namespace), repeatable=False)

    def replace(self, body: dict[str, Any]) -> dict[str, Any]:
        """Swap one against the resourceVersion in its metadata. Moved when it isn't the live one; ApiRefused 404 when it is gone."""
        identity = identity_of(body)
        if not body["metadata"].get("resourceVersion"):
            raise StateInvalid.of(str(identity), "a swap needs the resourceVersion that was read")
        return self._write("PUT", body, _KINDS[body["kind"]].path(identity.namespace, identity.name), repeatable=True)

    def delete(self, kind: Kind, namespace: str, name: str, *, uid: str, resource_version: str = "") -> bool:
        """Delete exactly this one; False when it is gone already, Moved when it changed."""
        conditions = {"uid": uid} | ({"resourceVersion": resource_version} if resource_version else {})
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": conditions}
        return self._api.delete(_KINDS[kind].path(namespace, name), options) is not None

    def overview(self, kind: Kind, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the metadata of all of a kind in a namespace: one request for many targets' summaries."""
        return list(metadata(self._api, _KINDS[kind], namespace, selector))

    def cluster_uid(self) -> str:
        """Return the uid of the Namespace kube-system, which identifies a cluster for its whole life."""
        found = self.get("Namespace", "", "kube-system")
        if not found:
            raise StateInvalid.of("Namespace/kube-system", "doesn't exist: this is no usable cluster")
        return str(found["metadata"]["uid"])

    def server_time(self) -> float:
        """Return the API server's clock in seconds since the epoch."""
        return self._api.server_time()

    def _write(self, method: str, body: dict[str, Any], path: str, *, repeatable: bool) -> dict[str, Any]:
        one = identity_of(body)
        try:
            return self._api.expect(ApiRequest(method, path, _QUERY, encode(body), subject=str(one), repeatable=repeatable))
        except ClusterUnavailable as error:
            raise with_way_out(self._api, error, one.namespace) if error.webhook else error from None


def _subject(kind: str, namespace: str, name: str) -> str:
    return "/".join(part for part in (kind, namespace, name) if part)
