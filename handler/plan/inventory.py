"""Whether an object is a target's member: our label *and* the identity annotation naming exactly it; a copied label is not enough. Pure.

While a target takes over what it had under another name or state namespace, what carries the former marks is its own, too.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handler.model.instance import is_target_name
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, Identity, applyset_id, state_name


@dataclass(frozen=True, slots=True)
class TargetMarks:
    """What makes objects a target's: its name, and the id of its ApplySet."""

    target: str
    applyset: str

    @classmethod
    def of(cls, name: str, namespace: str) -> TargetMarks:
        """Return the marks of a target whose record is in a namespace."""
        return cls(name, applyset_id(state_name(name), namespace))

    def are_on(self, live: Mapping[str, Any], identity: Identity) -> bool:
        """Whether an object carries the label and the identity, naming exactly it."""
        metadata = live.get("metadata") or {}
        labelled = (metadata.get("labels") or {}).get(PART_OF) == self.applyset
        return labelled and (metadata.get("annotations") or {}).get(IDENTITY) == identity.mark(self.target)


@dataclass(frozen=True, slots=True)
class Membership:
    """By which marks objects are a target's: its own, which it writes, and those that it had before (`former`) while it takes over."""

    marks: TargetMarks
    former: TargetMarks | None = None

    @property
    def selector(self) -> str:
        """The label selector that finds all that may be a member."""
        former = self.former
        return f"{PART_OF} in ({self.marks.applyset},{former.applyset})" if former else f"{PART_OF}={self.marks.applyset}"

    def is_former(self, live: Mapping[str, Any], identity: Identity) -> bool:
        """Whether a member carries its former marks still."""
        return self.former is not None and self.former.are_on(live, identity)

    def own_label(self, live: Mapping[str, Any]) -> str:
        """Return the ApplySet of an object where that is ours, now or before; else ours."""
        found = ((live.get("metadata") or {}).get("labels") or {}).get(PART_OF)
        return self.former.applyset if self.former and found == self.former.applyset else self.marks.applyset


def is_member(live: Mapping[str, Any], identity: Identity, ours: Membership) -> bool:
    """Whether an object carries our label and our identity, naming exactly it."""
    return ours.marks.are_on(live, identity) or ours.is_former(live, identity)


def marked_target(live: Mapping[str, Any], identity: Identity) -> str:
    """Return the target that an object's identity annotation names; empty: it names another object, or no valid target."""
    mark = str(((live.get("metadata") or {}).get("annotations") or {}).get(IDENTITY) or "")
    target = mark.partition(":")[0]
    return target if is_target_name(target) and identity.mark(target) == mark else ""


def as_ours(live: Mapping[str, Any], identity: Identity, marks: TargetMarks) -> dict[str, Any]:
    """Return a live object as it will be with our marks: what is taken over is judged by the taker's rules."""
    found = copy.deepcopy(dict(live))
    metadata = found["metadata"]
    metadata["labels"] = {**(metadata.get("labels") or {}), PART_OF: marks.applyset}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), IDENTITY: identity.mark(marks.target)}
    return found


def marks_of(manifest: Manifest) -> Manifest:
    """Return the part of an admitted object that makes it ours, and names it."""
    body = manifest.body()
    metadata = body["metadata"]
    marks = {"labels": {PART_OF: metadata["labels"][PART_OF]}, "annotations": {IDENTITY: metadata["annotations"][IDENTITY]}}
    named = {key: metadata[key] for key in ("name", "namespace") if key in metadata}
    return Manifest.of({"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": named | marks}, manifest.place)
