"""What is dry-run in an object's stead, where that can't be yet: in another namespace, under a scratch name, without what it names."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from handler.cluster.api import Api
from handler.cluster.live import probe
from handler.cluster.write import DryRunner
from handler.config.settings import Target
from handler.engine.planner.server_answers import is_by_schema
from handler.model.errors import AccessDenied, ApiRefused, Moved, Problem
from handler.model.hidden_fields import without
from handler.model.manifest import canonical
from handler.model.names import Identity, Resource
from handler.plan.admission import NAMESPACE, Desired
from handler.plan.quoted_refusal import told_refusal

_KEPT = 40  # characters of a name that its scratch name keeps; some names are labels of at most 63
_NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass
class StandIn:
    """One plan's stand-in: another namespace of the target that exists, found once. `absent`: what the plan creates."""

    target: Target
    api: Api
    absent: Collection[Identity] = frozenset()
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: str | None = None

    @property  # no `cached_property`: Python 3.11's has one lock for all instances, and a slow cluster would hold up every plan
    def name(self) -> str:
        """An existing whitelisted namespace, or nothing."""
        with self._lock:
            if self._known is None:
                self._known = self._look()
            return self._known

    def _look(self) -> str:
        if "*" in self.target.namespaces:
            return "default"
        names = [name for name in self.target.namespaces if Identity("", NAMESPACE.kind, "", name) not in self.absent]
        try:
            found = probe(self.api, [(_NAMESPACES, "", name) for name in names])
        except AccessDenied:
            return ""
        return next((identity.name for identity in sorted(found)), "")


def scratch(body: dict[str, Any], item: Desired) -> dict[str, Any]:
    """Return an object under a name that nothing has, so that the server judges it as a new one."""
    digest = hashlib.sha256(canonical(without(item.manifest))).hexdigest()[:12]  # it stands in audit logs
    body["metadata"]["name"] = f"{item.identity.name[:_KEPT].rstrip('-.')}-{digest}"
    return body


def check_elsewhere(api: Api, resource: Resource, body: dict[str, Any]) -> None:
    """Dry-run a body in an object's stead, as if nothing lived under its name there. Raises ApiRefused, AccessDenied.

    A namesake would be merged with it, so that its create is asked about: mutation, validation and admission come before the look whether
    it exists. What only an apply refuses, a list key that comes twice, is refused before that meets what lives.
    """
    runner = DryRunner(api)
    try:
        if not runner.check(resource, body)["metadata"].get("resourceVersion"):
            return
    except (ApiRefused, AccessDenied, Moved) as error:
        if isinstance(error, ApiRefused) and error.misshapen:
            raise
    try:
        runner.create(resource, body)
    except Moved as error:
        refused = ApiRefused(*error.problems, status=409, reason=error.reason)
        if error.reason != "AlreadyExists" or not is_by_schema(refused, 409):  # a webhook may deny with any status and reason
            raise refused from error


def mistakes_of(api: Api, item: Desired, body: dict[str, Any] | None, namespace: str = "") -> list[Problem]:
    """Dry-run a body in an object's stead, and return what is invalid whatever it names and wherever it is; None: nothing can be."""
    if body is None:
        return []
    if namespace:
        body["metadata"]["namespace"] = namespace
    try:
        check_elsewhere(api, item.resource, body)
    except (ApiRefused, AccessDenied) as error:
        if is_by_schema(error, 422):
            name, own = body["metadata"]["name"], item.identity.name
            said = told_refusal(error, item.manifest).problems
            return [Problem(str(item.identity), p.message.replace(name, own), item.manifest.place, p.fix) for p in said]
    return []
