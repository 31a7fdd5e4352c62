"""One object of a template's main resource: the instance that it stands for, and its name as a target. Pure.

    <template>.<namespace>.<name>     <template>.<name> of a cluster-scoped object
    <template>.<what fits>-<digest>   where that is longer than the value of a label may be, or holds what names of targets don't

Law: what an instance is configured by is its object without what servers and controllers write: no status of it starts a run.
"""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from handler.model.manifest import canonical
from handler.model.names import Identity, identity_of

LONGEST = 63
"""Characters of a target's name: the value of a label."""
LONGEST_TEMPLATE = 40
_DIGITS = 10
_WRITTEN_BY_SERVERS = ("managedFields", "resourceVersion", "generation", "selfLink")


_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
TARGET_NAME = re.compile(rf"(?=.{{1,56}}\Z){_LABEL}|(?=.{{1,{LONGEST}}}\Z){_LABEL}(?:\.{_LABEL})+")
"""Of a configured target or an instance; the whole text must match."""


def is_target_name(text: str) -> bool:
    """Whether a text may be the name of a target, configured or an instance."""
    return TARGET_NAME.fullmatch(text) is not None


def template_of(target: str) -> str:
    """Return the configured target that an instance is of; of any other target its own name."""
    return target.partition(".")[0]


def is_instance(target: str) -> bool:
    """Whether a target's name is an instance's: those of configured targets hold no dot."""
    return "." in target


def is_covered(target: str, globs: Iterable[str]) -> bool:
    """Whether rights to what these globs match cover a target: one matches its name, or its template's where it is an instance."""
    names = {target, template_of(target)}
    return any(fnmatch.fnmatchcase(name, glob) for glob in globs for name in names)


def instance_name(template: str, namespace: str, name: str) -> str:
    """Return the name of an instance as a target; always the same one for an object."""
    whole = ".".join(filter(None, (template, namespace, name)))
    if is_target_name(whole):
        return whole
    digest = hashlib.sha256(f"{namespace}/{name}".encode()).hexdigest()[:_DIGITS]
    plain = re.sub(r"[.-]*\.[.-]*", ".", re.sub("[^a-z0-9.-]", "-", whole.lower()))  # Roles may be called `system:Node`
    return f"{plain[: LONGEST - _DIGITS - 1].rstrip('.-')}-{digest}"


@dataclass(frozen=True)
class Instance:
    """An instance's object. `body`: what of it is configuration; `generation`: 0 where the server counts none.

    `definition`: the uid of its kind's definition; empty: it has none, or it may not be read.
    """

    identity: Identity
    uid: str
    body: dict[str, Any] = field(repr=False, hash=False)
    generation: int = 0
    terminating: bool = False
    definition: str = ""

    @classmethod
    def of(cls, live: dict[str, Any], definition: str = "") -> Instance:
        """Return the instance of a live object."""
        metadata = live["metadata"]
        generation = metadata.get("generation")
        count = generation if type(generation) is int else 0
        going = bool(metadata.get("deletionTimestamp"))
        return cls(identity_of(live), str(metadata.get("uid") or ""), configuration(live), count, going, definition)

    @property
    def key(self) -> str:
        """`namespace/name`; the name alone of a cluster-scoped object: what key transformations take."""
        return key_of(self.identity)

    @cached_property
    def digest(self) -> str:
        """The sha256 of what it configures."""
        return hashlib.sha256(canonical(self.body)).hexdigest()

    def owns(self, references: Any) -> bool:
        """Whether an object with these ownerReferences is owned by this one alone; an older object of the same name counts as it."""
        identity = self.identity
        wanted = (identity.group, identity.kind, identity.name)
        return bool(references) and all(
            (str(each.get("apiVersion") or "").rpartition("/")[0], each.get("kind"), each.get("name")) == wanted for each in references
        )


def key_of(identity: Identity) -> str:
    """Return an object's key, `namespace/name`; the name alone of a cluster-scoped one."""
    return "/".join(filter(None, (identity.namespace, identity.name)))


def configuration(live: dict[str, Any]) -> dict[str, Any]:
    """Return what of an object is configuration: all but its status and what servers write into its metadata."""
    metadata = {key: value for key, value in live["metadata"].items() if key not in _WRITTEN_BY_SERVERS}
    return {**{key: value for key, value in live.items() if key != "status"}, "metadata": metadata}
