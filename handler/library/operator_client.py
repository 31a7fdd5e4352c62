"""What `reconcile` reads and writes through: two protocols, for a program that brings its own, and the two that stand for a cluster."""

from __future__ import annotations

import os
import threading
from collections.abc import Collection, MutableMapping
from copy import copy
from pathlib import Path
from typing import Any, Protocol

from handler.cluster.api import Api
from handler.cluster.connect import ClusterConnection, connect
from handler.cluster.discovery import Discovery
from handler.cluster.lister import Followed, LiveChange
from handler.cluster.lister import Lister as SharedLister
from handler.cluster.live import Listing, Object, named, pages
from handler.cluster.vendor_models import connection_of
from handler.cluster.write import Writer
from handler.config.settings import Cluster
from handler.engine.apply.let_claims_go import let_claims_go
from handler.model.errors import AnnealError, ClusterUnavailable
from handler.model.names import GroupKind, Identity, Resource

_FIRST_LIST = 60.0  # seconds


class ObjectClient(Protocol):
    """The API server for one operator. Objects are dicts as the server sends them, with apiVersion and kind.

    `verdicts`: memory of `reconcile`, an empty dict to begin with.
    """

    verdicts: MutableMapping[Identity, bytes]

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Return a kind that is served in this version, or None."""

    def preferred(self, group_kind: GroupKind) -> Resource | None:
        """Return a kind in the version that its group prefers, or None."""

    def refresh(self) -> None:
        """Forget which kinds are served."""

    def list(self, resource: Resource, namespace: str) -> list[Object]:
        """Return all objects of a kind in a namespace, or of a cluster-scoped kind. Raises AnnealError."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return one object, or None. Raises AnnealError."""

    def apply(self, resource: Resource, body: Object, manager: str, live: Object | None) -> Object:
        """Apply on the server's side, by force; return the object. Raises Moved: it isn't the `live` one any more; AnnealError."""

    def delete(self, resource: Resource, live: Object) -> bool:
        """Delete this very object; False: it was gone already. Raises Moved: it isn't the `live` one any more; AnnealError."""


class ObjectLister(Protocol):
    """What is known of live objects without a request. Its objects aren't changed by the reader."""

    def items(self, resource: Resource, namespace: str) -> list[Object]:
        """Return a kind's objects in a namespace (cluster-scoped: all). Raises AnnealError: that isn't known for certain now."""

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return one object, or None. Raises AnnealError, as `items`."""

    def saw(self, resource: Resource, obj: Object) -> None:
        """Take the answer to a write."""

    def dropped(self, resource: Resource, identity: Identity, uid: str) -> None:
        """Take that an object was deleted."""


class Client:
    """A cluster. Made without arguments it is found as kubectl finds it: KUBECONFIG, ~/.kube/config, else the pod's service account.

    `kubeconfig`: a file's path; `context`: one of its contexts. Raises KubeconfigInvalid, ClusterUnavailable.
    """

    def __init__(self, kubeconfig: str | Path = "", context: str = "", *, connection: ClusterConnection | None = None) -> None:
        found = connection or connect(Cluster(), kubeconfig=str(kubeconfig), context=context, environ=os.environ)
        self.api = Api(found)
        self.verdicts: MutableMapping[Identity, bytes] = {}
        self._discovery = Discovery(self.api)

    @classmethod
    def of(cls, configured: Any) -> Client:
        """Take over a `kubernetes.client.ApiClient` or `Configuration`: address, authority, certificate, token or password, proxy.

        Not taken over: headers of its own (refused), time-outs, retries. Raises KubeconfigInvalid.
        """
        return cls(connection=connection_of(configured))

    @classmethod
    def in_cluster(cls) -> Client:
        """Return a client with the pod's service account. Raises KubeconfigInvalid: this is no pod."""
        return cls(connection=connect(Cluster(in_cluster=True), environ=os.environ))

    def find(self, api_version: str, kind: str) -> Resource | None:
        """Return a kind that is served in this version, or None; the first question reads all kinds."""
        return self._discovery.find(api_version, kind)

    def preferred(self, group_kind: GroupKind) -> Resource | None:
        """Return a kind in the version that its group prefers, or None."""
        return self._discovery.preferred(group_kind)

    def refresh(self) -> None:
        """Read at the next question which kinds are served."""
        self._discovery.refresh()

    def list(self, resource: Resource, namespace: str) -> list[Object]:
        """Return all objects of a kind in a namespace, or of a cluster-scoped kind, by one paged LIST. Raises AnnealError."""
        return [item for page in pages(self.api, Listing(resource, namespace)) for item in page]

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return one object, or None. Raises AnnealError."""
        subject = str(Identity(resource.group, resource.kind, namespace, name))
        found = self.api.get(resource.path(namespace, name), subject=subject)
        return found and named(found, resource)

    def apply(self, resource: Resource, body: Object, manager: str, live: Object | None) -> Object:
        """Apply on the server's side, by force; return the object. Raises Moved, AnnealError."""
        metadata = live["metadata"] if live else {}
        writer = Writer(self.api, lambda: None, manager)
        return writer.apply(resource, body, metadata.get("uid", ""), metadata.get("resourceVersion", ""), whole=True)

    def delete(self, resource: Resource, live: Object) -> bool:
        """Delete this very object, as it is, without a StatefulSet's claims; False: it was gone already. Raises Moved, AnnealError."""
        metadata = live["metadata"]
        identity = Identity(resource.group, resource.kind, metadata.get("namespace", ""), metadata["name"])
        version = let_claims_go(self.api, lambda: None, resource, identity, metadata["uid"], metadata["resourceVersion"])
        return Writer(self.api, lambda: None).delete(resource, identity, metadata["uid"], version)


class ClusterLister:
    """Reads of `reconcile` without requests: each kind is followed from its first use on, by one WATCH for all namespaces.

    `namespaces`: one WATCH a kind in each of these instead, for an account that may not read all. As a context it ends what it started.
    """

    def __init__(self, client: Client, namespaces: Collection[str] = ()) -> None:
        self._lister, self._verdicts = SharedLister(client.api, keep=lambda item: item), client.verdicts
        self._namespaces = frozenset([namespaces] if isinstance(namespaces, str) else namespaces)
        self._process = os.getpid()
        self._closed = False
        self._lock = threading.Lock()
        self._followed: dict[tuple[Resource, str], Followed] = {}

    def items(self, resource: Resource, namespace: str) -> list[Object]:
        """Return a kind's objects in a namespace, waiting for the first LIST. Raises AnnealError: that isn't known for certain now."""
        items = self._of(resource, namespace).items()
        return [item for item in items if item["metadata"].get("namespace", "") == namespace] if resource.namespaced else items

    def saw(self, resource: Resource, obj: Object) -> None:
        """Take the answer to a write, so that the next read knows it."""
        self._of(resource, str(obj["metadata"].get("namespace") or "")).saw(obj)

    def get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return one object, or None. Raises AnnealError, as `items`."""
        return self._of(resource, namespace).get(namespace if resource.namespaced else "", name)

    def dropped(self, resource: Resource, identity: Identity, uid: str) -> None:
        """Take that an object was deleted, so that the next read knows it."""
        self._of(resource, identity.namespace).dropped(identity, uid)

    def _of(self, resource: Resource, namespace: str) -> Followed:
        if self._closed or self._process != os.getpid():
            seen = "is closed" if self._closed else "belongs to the process that this one was forked from"
            raise AnnealError.of("the lister", f"{seen}: it hears of nothing any more", fix="make a Lister here")
        if self._namespaces and resource.namespaced and namespace not in self._namespaces:
            fix = f"Lister(client, namespaces={sorted({*self._namespaces, namespace})!r})"
            raise AnnealError.of(f"namespace {namespace}", "isn't one that the lister follows", fix=fix)
        scope = namespace if self._namespaces and resource.namespaced else ""
        with self._lock:
            key = (resource, scope)
            if key not in self._followed:
                self._followed[key] = self._lister.follow(resource, scope, hear=self._heard)
            followed = self._followed[key]
        followed.answered(_FIRST_LIST)
        if followed.error is not None:
            raise copy(followed.error)
        if not followed.complete:
            raise ClusterUnavailable.of(f"list {resource.group_kind}", f"wasn't answered whole in {_FIRST_LIST:g} s")
        return followed

    def _heard(self, change: LiveChange) -> None:
        """Forget an object that is gone, by whatever deleted it."""
        if change.after is None:
            self._verdicts.pop(change.identity, None)

    def close(self) -> None:
        """End all WATCHes; what was heard doesn't count any more."""
        self._closed = True
        self._lister.close()

    def __enter__(self) -> ClusterLister:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all WATCHes."""
        self.close()
