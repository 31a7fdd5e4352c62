"""Which fields of a render may hold what isn't in git: those by which it differs from renders of the same with placeholders. Pure.

    data.url        another text with other values              hidden
    data            a key that only the values make             hidden as a whole, for a key is shown
    an object       that no render with placeholders has        hidden, but for what names it
    made-5k8t2…     kustomize's hash of the content             the same object as made-b7d2f…, also where others name it

Law: by place, never by a value. The sets of placeholders share no value: wherever one is only passed on, git alone decides what is hidden.
What names an object is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from handler.model.manifest import Manifest, canonical
from handler.model.names import Identity
from handler.model.render import UnstableFields

_HASH = re.compile(r"(.+)-[2456789bcdfghkmt]{10}", re.DOTALL)  # kustomize: hasher.go
_NAMING = frozenset({"/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"})
_OF_KUBERNETES = ("", "/metadata")
"""Where no author and no value makes keys."""
Body = Any


def with_hidden(
    made: Sequence[Manifest], others: Sequence[Sequence[Manifest]], unstable: Mapping[Identity, UnstableFields]
) -> tuple[Manifest, ...]:
    """Return the objects of a render, each with what is hidden of it. `others`: the same with placeholders; `unstable`: see `Rendered`."""
    sides = [_Side(made, other) for other in others]
    return tuple(_hiding(each, [side.of(each) for side in sides], unstable.get(each.identity)) for each in made)


class _Side:
    """The objects of a render with placeholders, by what they are called in the real one."""

    def __init__(self, made: Sequence[Manifest], other: Sequence[Manifest]) -> None:
        ours, theirs = ({each.identity for each in side} for side in (made, other))
        stems = _stems(ours - theirs), _stems(theirs - ours)
        self._called = {stems[0][stem]: stems[1][stem] for stem in stems[0].keys() & stems[1].keys()}
        self._names = {theirs.name: ours.name for ours, theirs in self._called.items()}
        self._objects = {each.identity: each for each in other}

    def of(self, manifest: Manifest) -> Manifest | None:
        """Return what it has in an object's place, as far as it goes with the real names."""
        found = self._objects.get(self._called.get(manifest.identity, manifest.identity))
        return found.with_body(_renamed(found.body(), self._names)) if found and self._names and found.raw != manifest.raw else found


def _stems(identities: set[Identity]) -> dict[Identity, Identity]:
    """Return objects by their identities without kustomize's hash; none that several share."""
    found: dict[Identity, list[Identity]] = {}
    for each in identities:
        if hashed := _HASH.fullmatch(each.name):
            found.setdefault(replace(each, name=hashed[1]), []).append(each)
    return {stem: each[0] for stem, each in found.items() if len(each) == 1}


def _renamed(node: Body, names: Mapping[str, str]) -> Body:
    if isinstance(node, dict):
        return {key: _renamed(each, names) for key, each in node.items()}
    if isinstance(node, list):
        return [_renamed(each, names) for each in node]
    return names.get(node, node) if isinstance(node, str) else node


def _hiding(manifest: Manifest, others: Sequence[Manifest | None], unstable: UnstableFields | None) -> Manifest:
    there = [each for each in others if each]
    if there and all(each.raw == manifest.raw for each in there):
        return manifest
    bodies = [unstable.without(each.body()) if unstable else each.body() for each in (manifest, *there)]
    found = _differing(bodies[0], bodies[1:], "") if there else _whole(bodies[0])
    return replace(manifest, hidden=tuple(dict.fromkeys((*manifest.hidden, *(each for each in found if each not in _NAMING)))))


def _whole(body: Body) -> Iterator[str]:
    """Yield all of an object but what names it."""
    yield from (_below("", key) for key in body if key != "metadata")
    yield from (_below("/metadata", key) for key in body["metadata"])


def _differing(node: Body, others: Sequence[Body], pointer: str) -> Iterator[str]:
    """Yield where a value differs from one of the others, as deep as git alone decides the keys and the length of lists."""
    if isinstance(node, dict) and all(isinstance(each, dict) for each in others):
        known = dict.fromkeys(key for each in others for key in each)
        if pointer not in _OF_KUBERNETES and not node.keys() <= known.keys():
            yield pointer
            return
        for key in {**known, **node}:
            if key in node and all(key in each for each in others):
                yield from _differing(node[key], [each[key] for each in others], _below(pointer, key))
            else:
                yield _below(pointer, key)
    elif isinstance(node, list) and all(isinstance(each, list) and len(each) == len(node) for each in others):
        for number, each in enumerate(node):
            yield from _differing(each, [other[number] for other in others], _below(pointer, str(number)))
    elif any(canonical(each) != canonical(node) for each in others):  # 1 is no true
        yield pointer


def _below(pointer: str, key: str) -> str:
    return f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
