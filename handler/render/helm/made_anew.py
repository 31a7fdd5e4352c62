"""Two renders of the same inputs -> what a chart makes anew each time: random names, keys, certificates, times. Pure.

Law: paths and functions are named, never a value. What differs is kept as it is live, so that no run rotates it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.render import UnstableFields
from handler.render.helm.chart_facts import Use

_SHOWN = 3
_NOTES = 20
_WHOLES = ("", "/metadata", "/metadata/labels", "/metadata/annotations")
"""What others write into: it can't be kept as it lives as a whole."""


def unstable(first: Sequence[Manifest], second: Sequence[Manifest], uses: Sequence[Use]) -> dict[Identity, UnstableFields]:
    """Return the fields that differ between two renders, by object. `uses`: calls that may be why."""
    again = {manifest.identity: manifest for manifest in second}
    found: dict[Identity, UnstableFields] = {}
    for manifest in first:
        other = again.get(manifest.identity)
        if other is not None and other.raw != manifest.raw:
            paths = tuple(_differing("", manifest.body(), other.body()))
            found[manifest.identity] = UnstableFields(paths, reason(manifest.place, uses))
    return found


def renamed(first: Sequence[Manifest], second: Sequence[Manifest], uses: Sequence[Use]) -> Iterator[str]:
    """Yield notes on the objects that have another name, or aren't there, in a second render; so many at most."""
    other = others(first, second)
    for manifest in other[:_NOTES]:
        why = reason(manifest.place, uses)
        yield f"{manifest.place}: {manifest.identity} is another object at each render: {why}; where nothing else changes, a person decides"
    if len(other) > _NOTES:
        yield f"{len(other) - _NOTES:,} more objects are others at each render"


def others(first: Sequence[Manifest], second: Sequence[Manifest]) -> list[Manifest]:
    """Return the objects of a render that the second one doesn't have."""
    again = {manifest.identity for manifest in second}
    return [manifest for manifest in first if manifest.identity not in again]


def reason(place: str, uses: Sequence[Use]) -> str:
    """Name the calls that make something anew: those of the object's own template, where it has any."""
    path = place.rpartition(":")[0]
    return calls([use for use in uses if use.place.rpartition(":")[0] == path] or uses, _SHOWN)


def calls(uses: Iterable[Use], shown: int) -> str:
    """Name calls with their places, so many at most."""
    every = list(dict.fromkeys(f"{use.function} at {use.place}" for use in uses))
    more = f" and {len(every) - shown:,} more" if len(every) > shown else ""
    return f"{', '.join(every[:shown])}{more}"


def _differing(path: str, one: Any, other: Any) -> Iterator[str]:
    """Yield JSON pointers of what differs, as deep as both have the same shape; an object and its metadata are never one value."""
    if isinstance(one, dict) and isinstance(other, dict) and (path in _WHOLES or one.keys() == other.keys()):
        yield from _each(path, one, other)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        yield from _each(path, dict(enumerate(one)), dict(enumerate(other)))
    elif one != other:
        yield path


def _each(path: str, one: Mapping[Any, Any], other: Mapping[Any, Any]) -> Iterator[str]:
    for key in dict.fromkeys((*one, *other)):
        if one.get(key) != other.get(key):
            yield from _differing(f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}", one.get(key), other.get(key))
