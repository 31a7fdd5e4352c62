"""The present context of a kubeconfig: cluster and user; files merge as in `kubernetes.config`. Messages name keys, never a value."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

_LISTS = ("clusters", "contexts", "users")
_TEXT = "kube-config"


class Malformed(ValueError):
    """A kubeconfig lacks a field, or has an entry twice."""


@dataclass(frozen=True, slots=True, repr=False)
class Node:
    """A mapping of a kubeconfig: its name in messages, its fields, and the directory where its relative paths begin."""

    name: str
    fields: Any
    directory: str = ""

    def __contains__(self, key: str) -> bool:
        return key in self.fields

    def get(self, key: str) -> Any:
        """Return a field. Raises Malformed: it has none of that name."""
        found = self.fields.get(key)
        if found is None:
            raise Malformed(f"Invalid kube-config file. Expected key {key} in {self.name}")
        return found

    def node(self, key: str) -> Node:
        """Return the mapping that a field holds. Raises Malformed, TypeError: it holds none."""
        found = self.get(key)
        if not isinstance(found, dict):
            raise TypeError(f"{key} holds no fields")
        return Node(f"{self.name}/{key}", found, self.directory)

    def path(self, key: str, directory: str) -> str:
        """Return the path that a field names, relative to a directory. Raises Malformed."""
        return os.path.normpath(os.path.join(directory, self.get(key)))  # noqa: PTH118 - a Path would resolve nothing, either

    def content(self, key: str, directory: str) -> bytes | str:
        """Return the bytes of `<key>-data`, else the path that `key` names, else nothing. Raises Malformed, ValueError."""
        if f"{key}-data" in self:
            return base64.standard_b64decode(self.get(f"{key}-data"))
        path = self.path(key, directory) if key in self else ""
        if path and not Path(path).is_file():
            raise Malformed(f"File does not exist: {path}")
        return path


@dataclass(frozen=True, slots=True, repr=False)
class KubeconfigDocument:
    """A whole kubeconfig, as one text or merged from files. `entries`: of each list, each with its name."""

    name: str
    fields: Any
    entries: dict[str, Any]

    def entry(self, kind: str, name: Any) -> Node | None:
        """Return the entry of a list by name. Raises Malformed: two have it."""
        where, found = f"{self.name}/{kind}", None
        for each in self._list(kind):
            if "name" not in each:
                raise Malformed(f"Invalid kube-config file. Expected all values in {where} list to have 'name' key")
            if each.get("name") == name:
                if found:
                    raise Malformed(f"Invalid kube-config file. Expected only one object with name {name} in {where} list")
                found = each
        return found

    def the(self, kind: str, name: Any) -> Node:
        """Return the entry of a list by name. Raises Malformed: it isn't there, or twice."""
        found = self.entry(kind, name)
        if found is None:
            raise Malformed(f"Invalid kube-config file. Expected object with name {name} in {self.name}/{kind} list")
        return found

    def _list(self, kind: str) -> Sequence[Node]:
        entries: Any = Node(self.name, self.entries).get(kind)
        if not isinstance(entries, list):
            raise Malformed(f"Invalid kube-config file. Expected {self.name}/{kind} to be a list")
        return entries


@dataclass(frozen=True, slots=True, repr=False)
class KubeconfigContext:
    """A context: its cluster and its user, each with its name. `user`: None or without fields: anonymous."""

    cluster: Node
    user: Node | None
    cluster_name: str
    user_name: str

    @classmethod
    def of(cls, document: KubeconfigDocument, name: str) -> KubeconfigContext:
        """Return the context of this name, or the current one. Raises Malformed, and what a field of a wrong type raises."""
        context = document.the("contexts", name or Node(document.name, document.fields).get("current-context")).node("context")
        user = document.entry("users", context.get("user")) if context.fields.get("user") and document.entries.get("users") else None
        cluster = document.the("clusters", context.get("cluster"))
        return cls(
            cluster.node("cluster"), user and user.node("user"), str(context.get("cluster")), str(context.fields.get("user") or "USER")
        )


def of_text(document: Any) -> KubeconfigDocument:
    """Return the kubeconfig of a YAML document; it has no directory."""
    lists = {kind: document[kind] for kind in _LISTS if kind in document}
    return KubeconfigDocument(_TEXT, document, {kind: _entries(f"{_TEXT}/{kind}", found) for kind, found in lists.items()})


def _entries(where: str, found: Any) -> Any:
    return [Node(f"{where}[name={each.get('name')}]", each) for each in found] if isinstance(found, list) else found


def of_files(files: str) -> KubeconfigDocument | None:
    """Merge kubeconfig files; None: none exists. Raises Malformed, OSError, YAMLError, and what wrong types raise."""
    merged: KubeconfigDocument | None = None
    for path, found in _read(files):
        merged = merged or KubeconfigDocument(path, {}, {kind: [] for kind in _LISTS})
        directory = os.path.abspath(os.path.dirname(path))  # noqa: PTH100, PTH120 - links stay as they are
        for kind in _LISTS:
            known = merged.entries[kind]
            for each in found.get(kind) or []:
                if all(other.fields.get("name") != each.get("name") for other in known):
                    known.append(Node(f"{path}/{kind}[name={each.get('name')}]", each, directory))
        if "current-context" in found:
            merged.fields["current-context"] = found["current-context"]
    return merged


def _read(files: str) -> Iterator[tuple[str, Any]]:
    for path in map(os.path.expanduser, filter(None, files.split(":"))):
        if Path(path).exists():
            found = yaml.safe_load(Path(path).read_text())
            if found is None:
                raise Malformed(f"Invalid kube-config. {path} file is empty")
            yield path, found
