"""Fields that the API server takes as text only: a number or `true` in one is found with its place, before the cluster is asked.

Law: no value is repeated, for it may be a secret: its field and what it is are enough to mend it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from handler.model.errors import Problem
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind, group_of
from handler.model.tree import printable

Body = dict[str, Any]

_TEMPLATE = ("spec", "template")
_POD_TEMPLATES: dict[GroupKind, tuple[str, ...]] = {
    **{GroupKind("apps", kind): _TEMPLATE for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")},
    GroupKind("batch", "Job"): _TEMPLATE,
    GroupKind("batch", "CronJob"): ("spec", "jobTemplate", *_TEMPLATE),
    GroupKind("", "ReplicationController"): _TEMPLATE,
    GroupKind("", "PodTemplate"): ("template",),
    GroupKind("", "Pod"): (),
}
_DATA = {GroupKind("", "Secret"): ("data", "stringData"), GroupKind("", "ConfigMap"): ("data", "binaryData")}
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_QUOTE = 'quote it: {}: "…"'


def problems(subject: str, body: Body, place: str) -> Iterator[Problem]:
    """Yield what isn't text where only text can be: data of Secrets and ConfigMaps, labels and annotations, variables of containers."""
    kind = GroupKind(group_of(str(body.get("apiVersion"))), str(body.get("kind")))
    found = [(path, at(body, path)) for path in _DATA.get(kind, ())]
    found += _marks("metadata", body.get("metadata"))
    template = _POD_TEMPLATES.get(kind)
    if template is not None:
        found += _marks(".".join((*template, "metadata")), at(body, *template, "metadata")) if template else []
        yield from _variables(subject, ".".join((*template, "spec")), at(body, *template, "spec"), place)
    for path, values in found:
        yield from _texts(subject, path, values, place)


def _marks(path: str, metadata: Any) -> list[tuple[str, Any]]:
    return [(f"{path}.{field}", at(metadata, field)) for field in ("labels", "annotations")]


def _texts(subject: str, path: str, values: Any, place: str) -> Iterator[Problem]:
    """Yield what is wrong with a mapping of texts; null stands for none."""
    if values is not None and not isinstance(values, dict):
        yield Problem(subject, f"{path} is {type_name(values)}, not a mapping", place)
    for name, value in values.items() if isinstance(values, dict) else ():
        if value is not None and not isinstance(value, str):
            key = printable(name, 80)
            yield Problem(subject, f"{path}.{key} is {type_name(value)}, not text", place, _QUOTE.format(key))


def _variables(subject: str, path: str, spec: Any, place: str) -> Iterator[Problem]:
    for field in _CONTAINERS:
        for container in items_at(spec, field):
            yield from _of_container(subject, f"{path}.{field}[{_name(container)}].env", items_at(container, "env"), place)


def _of_container(subject: str, path: str, variables: Iterable[Any], place: str) -> Iterator[Problem]:
    for each in variables:
        value = at(each, "value")
        if value is not None and not isinstance(value, str):
            seen = f"{path}[{_name(each)}].value is {type_name(value)}, not text"
            fix = "a variable holds one text: write it as one, or take it from a ConfigMap or Secret (valueFrom)"
            yield Problem(subject, seen, place, fix if isinstance(value, dict | list) else _QUOTE.format("value"))


def _name(item: Any) -> str:
    name = at(item, "name")
    return printable(name, 80) if isinstance(name, str) else "?"


def type_name(value: Any) -> str:
    """Name the type of a value; never the value, which may be a secret."""
    names = {dict: "a mapping", list: "a list", bool: "true or false", int: "a number", float: "a number", str: "text", type(None): "null"}
    return names[type(value)]
