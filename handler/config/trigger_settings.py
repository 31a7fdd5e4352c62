"""What makes a target run beside git: objects of the cluster, each an instance of the target. Spelled as Locutus' configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from handler.config.settings_shape import Json
from handler.config.settings_shape import doc as _doc


@dataclass(frozen=True, slots=True)
class KeyTransformation:
    """One step from an object's key, `namespace/name`, to that of the instance that it belongs to; as Prometheus' relabelling."""

    action: Literal["replace", "keep", "drop"] = _doc(
        "replace: what `regex` matches becomes `replacement`; keep, drop: objects whose key matches are kept, or left out.", "replace"
    )
    regex: str = _doc("RE2, of the whole key.", "(.*)", kind="keyRegex")
    replacement: str = _doc("What the key becomes: $1 or ${1} is the first group.", "$1")


@dataclass(frozen=True, slots=True)
class SelectorRequirement:
    """One condition on a label."""

    key: str = _doc("The label's name.", kind="labelKey")
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"] = _doc("How it is compared.")
    values: tuple[str, ...] = _doc("With what, for In and NotIn.", factory=tuple)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Which objects count, by their labels, as Kubernetes spells it."""

    match_labels: Json = _doc("Labels that an object must have: {app: grafana}.", Json(""))
    match_expressions: tuple[SelectorRequirement, ...] = _doc("Conditions that must all hold.", factory=tuple)

    @property
    def query(self) -> str:
        """The selector as the API server takes it."""
        return ",".join((*self._labels(), *map(_written, self.match_expressions)))

    def _labels(self) -> Iterator[str]:
        return (f"{key}={value}" for key, value in sorted(json.loads(self.match_labels or "{}").items()))


def _written(each: SelectorRequirement) -> str:
    """Write one condition in the set-based form."""
    match each.operator:
        case "Exists":
            return each.key
        case "DoesNotExist":
            return f"!{each.key}"
    return f"{each.key} {each.operator.lower()} ({','.join(each.values)})"


@dataclass(frozen=True, slots=True)
class WatchedResource:
    """A kind whose objects trigger runs, and are a configuration: `import 'locutus-runtime/<name>/list'`."""

    name: str = _doc("How programs import its list.", kind="resourceName")
    api_version: str = _doc("apiVersion of the kind.", kind="groupVersion")
    kind: str = _doc("Kind.", kind="kindName")
    namespace: str = _doc("Only objects of this namespace; empty: of all.", "", kind="namespace")
    label_selector: LabelSelector = _doc("Only objects with these labels.", factory=LabelSelector)
    key_transformations: tuple[KeyTransformation, ...] = _doc(
        "Which instance an object belongs to: steps from its own key, `namespace/name`, to the instance's.", factory=tuple
    )


@dataclass(frozen=True, slots=True)
class ResourceTrigger:
    """Each object of one kind is an instance of the target, with its own inventory and record."""

    main_resource: str = _doc("The one of `resources` whose objects are the instances.", kind="resourceName")
    resources: tuple[WatchedResource, ...] = _doc("Kinds that are watched.")
    service_account: str = _doc(
        "Name of a ServiceAccount in each instance's namespace: reads, writes and status of the instance have its rights.",
        "",
        kind="objectName",
    )
    write_status: bool = _doc("Write how the rollout goes into the status of the object.", True)
    adopt_unowned: bool = _doc(
        "An instance may take over objects that no tool and no target has; without it they are refused, for its object names them.", False
    )
    across_namespaces: bool = _doc(
        "An instance may declare objects in all of `namespaces`; without it, only in the namespace of its own object.", False
    )

    @property
    def main(self) -> WatchedResource:
        """The resource whose objects are the instances."""
        return next(each for each in self.resources if each.name == self.main_resource)

    @property
    def listed(self) -> tuple[WatchedResource, ...]:
        """The other resources."""
        return tuple(each for each in self.resources if each.name != self.main_resource)


@dataclass(frozen=True, slots=True)
class TriggerSettings:
    """What makes a target run, beside pushes and the clock."""

    resource: ResourceTrigger | None = _doc("Objects of a kind: each is an instance of this target.", None)
