"""A kind as the API server serves it."""

from __future__ import annotations

from dataclasses import dataclass

from handler.model.names import GroupKind


@dataclass(frozen=True, slots=True, order=True)
class Resource:
    """One row of discovery. `plural` is the path segment, `verbs` what the server offers."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()

    @property
    def group_kind(self) -> GroupKind:
        """Its kind, whatever the version."""
        return GroupKind(self.group, self.kind)

    @property
    def api_version(self) -> str:
        """`apps/v1`, `v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the URL path of the collection (all namespaces when `namespace` is empty) or of one object."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{scope}/{self.plural}" + (f"/{name}" if name else "")
