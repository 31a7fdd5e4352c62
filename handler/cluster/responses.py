"""Whether a response answers its request. Pure.

A proxy's page, an empty document and the answer to another request raise ClusterUnavailable: taken for a LIST one would hide live
objects, taken for a 404 it would make a known target look new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.cluster.errors import place_of
from handler.model.errors import ClusterUnavailable
from handler.model.resource import Resource

_ALWAYS_SERVED = ("/api/v1/", "/apis/coordination.k8s.io/v1/")
"""What every API server serves: here only a Status says that something isn't there."""
_UNKNOWN = b"404 page not found"
"""The API server's body for a path that it doesn't serve, such as a group that is gone (Go's `http.NotFound`)."""


def is_missing(path: str, body: Any, said: bytes = b"") -> bool:
    """Return whether a 404 means that there is no such object or kind. `body`: its parsed JSON, `said`: its bytes.

    A proxy's page doesn't: a deletion would look finished, a kind gone.
    """
    return _is_status(body) or (not path.startswith(_ALWAYS_SERVED) and said.strip() == _UNKNOWN)


def checked(answer: dict[str, Any], method: str, path: str, subject: str) -> dict[str, Any]:
    """Return the answer to a request that reads or writes one object if it is that object; any other answer as it is."""
    place = place_of(path)
    if not place.name or method not in ("GET", "PUT", "PATCH"):
        return answer
    metadata = answer.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != place.name or (metadata.get("namespace") or "") != place.namespace:
        raise ClusterUnavailable.of(subject, f"{method} was answered with something else than this object")
    return answer


def items_of(answer: dict[str, Any], resource: Resource, subject: str, *, partial: bool) -> list[dict[str, Any]]:
    """Return the objects of one page of a LIST of this kind; `partial`: of PartialObjectMetadata, which any server may ignore."""
    items = answer.get("items", ())
    found = items if isinstance(items, list) else [] if items is None else None
    version = answer.get("apiVersion") in (resource.api_version, *(("meta.k8s.io/v1",) if partial else ()))
    if found is None or not version or not isinstance(answer.get("metadata"), dict) or not all(_is_object(item) for item in found):
        raise ClusterUnavailable.of(subject, "was answered with something else than this list")
    named = {str(item["kind"]) for item in found if "kind" in item} - {"PartialObjectMetadata"}
    if named - {resource.kind} or _is_of_another(str(answer.get("kind")), resource, items_tell=bool(named)):
        raise ClusterUnavailable.of(subject, f"was answered with a {answer.get('kind')}")
    return found


def echoes(sent: str, headers: Mapping[str, str], mark: str) -> bool:
    """Return whether an answer may belong to the request that carried this Audit-ID.

    The API server sends the id back (apiserver's `WithAuditInit`). Only another id of ours (`mark` is their common beginning) proves that
    the answer is another request's: a proxy may drop the header or replace it.
    """
    heard = [part.strip() for part in headers.get("Audit-Id", "").split(",")]
    return sent in heard or not any(part.startswith(mark) for part in heard)


def _is_of_another(kind: str, resource: Resource, *, items_tell: bool) -> bool:
    """Return whether a list's own kind names another kind. A CRD chooses its list's kind freely; groups without a dot have no CRDs."""
    built_in = "." not in resource.group
    return built_in and not items_tell and kind not in (f"{resource.kind}List", "PartialObjectMetadataList", "List")


def _is_object(item: Any) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)


def _is_status(body: Any) -> bool:
    return isinstance(body, dict) and body.get("kind") == "Status"
