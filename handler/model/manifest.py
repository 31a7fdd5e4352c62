"""A declared object: what a renderer hands to the plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

from handler.model.names import Identity, identity_of


@dataclass(frozen=True, slots=True)
class Manifest:
    """One document of git. `raw`: canonical JSON, bytes to stay small, not in `repr`, for it may be a Secret's; `place`: file:line.

    `item`: its position in the List that it stands in, 0: the first of one, or in none. `hidden`: JSON pointers of the fields that may hold
    what isn't in git: what a Secret says, or a file that is encrypted there.
    """

    identity: Identity
    api_version: str
    raw: bytes = field(repr=False)
    place: str
    item: int = 0
    hidden: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, body: dict[str, Any], place: str = "", item: int = 0) -> Manifest:
        """Make one from a parsed document."""
        return cls(identity_of(body), str(body.get("apiVersion") or ""), canonical(body), place, item)

    def body(self) -> dict[str, Any]:
        """Return a fresh copy of the document, safe to change."""
        return cast(dict[str, Any], json.loads(self.raw))

    def with_body(self, body: dict[str, Any]) -> Self:
        """Return it with another body, whose fields are hidden where its own are."""
        return replace(self, identity=identity_of(body), api_version=str(body.get("apiVersion") or ""), raw=canonical(body))


def at(body: Any, *steps: str) -> Any:
    """Return what lies at a path of fields, or None: what git holds may have any shape."""
    for step in steps:
        if not isinstance(body, dict):
            return None
        body = body.get(step)
    return body


def items_at(body: Any, *steps: str) -> list[Any]:
    """Return the list at a path of fields; another shape, which the server will refuse, holds nothing."""
    found = at(body, *steps)
    return found if isinstance(found, list) else []


def without_aggregated_rules(body: dict[str, Any]) -> dict[str, Any]:
    """Return an object as it is sent: without `rules` beside an aggregationRule, which its controller writes."""
    of_rbac = body.get("kind") == "ClusterRole" and str(body.get("apiVersion")).startswith("rbac.authorization.k8s.io/")
    is_aggregated = of_rbac and body.get("aggregationRule") is not None
    return {key: value for key, value in body.items() if key != "rules"} if is_aggregated else body


def canonical(value: object) -> bytes:
    """Return the one JSON spelling of a value: sorted keys, no spaces, UTF-8."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest_of(manifests: Iterable[Manifest]) -> str:
    """Return the sha256 of a rendered set, whatever the order of its files (Kubernixos' checksum)."""
    ordered = sorted(manifest.raw for manifest in manifests)
    return hashlib.sha256(b"[" + b",".join(ordered) + b"]").hexdigest()
