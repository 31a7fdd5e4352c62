"""What changed between two commits of a target: both are rendered as they are shown, and compared object by object.

Law: only commits that stand in the target's record are fetched: a viewer can't have the server fetch another one. Fields are masked as a
plan's are, where either commit hides them; of a Secret nothing is said but which of its fields changed. A commit that can't be had or
rendered is a problem of the answer, with its way out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.config.settings import Target
from handler.engine.run.errors import RequestRefused
from handler.model.advice import advice
from handler.model.errors import AnnealError, Problem
from handler.model.hidden_fields import HiddenFields
from handler.model.manifest import Manifest
from handler.model.names import Identity, Resource
from handler.model.numbers import many
from handler.model.render import Rendered
from handler.model.to_json import fitting
from handler.model.tree import ReadSet, printable
from handler.plan.admission import declared_kinds
from handler.plan.diff import field_changes
from handler.state.record import State

MOST, MOST_FIELDS = 500, 100
"""Objects that are shown, and fields of one."""
_PATH = 500  # characters of a field's path
_NOTES = 50
_NOTHING = Rendered((), ReadSet(()))
_ORDER = ("deleted", "changed", "created")
Find = Callable[[str, str], Resource | None]


@dataclass(frozen=True, slots=True)
class ChangedField:
    """One field. `before`, `after`: masked text, empty: it isn't there."""

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ChangedObject:
    """One object. `place`: file:line after the change, before it where it goes; `count`: how many fields changed."""

    object: str
    group: str
    change: str
    place: str
    count: int = 0
    fields: tuple[ChangedField, ...] = ()


@dataclass(frozen=True, slots=True)
class CommitDiff:
    """What changed. `count`: how many objects; `problems`: why one of the commits can't be shown, then nothing is compared."""

    target: str
    before: str
    after: str
    counts: Mapping[str, int] = field(default_factory=dict)
    count: int = 0
    objects: tuple[ChangedObject, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def recorded_commits(state: State) -> frozenset[str]:
    """Return the commits that a record names."""
    progress, attempt, refusal = state.rollout, state.attempt, state.status.refusal
    named = (each.commit for each in (attempt, state.pin, state.held, state.waiting, progress, refusal) if each)
    found = {state.commit, attempt.back if attempt else "", *named, *(run.commit for run in state.history)}
    return frozenset(found - {""})


def asked(state: State, before: str, after: str) -> None:
    """Raise RequestRefused unless a record names both commits; `before` may be empty: nothing."""
    known = recorded_commits(state)
    for commit in (before, after) if before else (after,):
        if commit not in known:
            seen = "isn't in the record of this target"
            raise RequestRefused.of(f"commit {commit[:40]}", seen, fix=advice("anneal history {} shows its commits", state.target))


def commit_diff(handler: Handler, target: Target, before: str, after: str) -> CommitDiff:
    """Render two commits of a target and compare them. The caller has made sure that its record names both (`asked`)."""
    found = CommitDiff(target.name, before, after)
    sides: list[Rendered] = []
    for commit in (before, after):
        try:
            sides.append(_rendered(handler, target, commit) if commit else _NOTHING)
        except AnnealError as error:
            problems = (Problem(f"commit {commit[:12]}", "can't be shown"), *(each.bare() for each in error.problems))
            return replace(found, problems=problems)
    find = _finder(handler, target)
    was, becomes = (_Side.of(each, find, target.namespace) for each in sides)
    return _compared(found, was, becomes)


def _rendered(handler: Handler, target: Target, commit: str) -> Rendered:
    handler.dependencies(target.name).preparer.prove(commit)
    tree = handler.source(target).fetch(commit, target.path)
    return handler.render(target, tree, older=True)


def _finder(handler: Handler, target: Target) -> Find:
    """Return what knows kinds; where the cluster can't be asked, none."""
    try:
        exact = handler.discovery(target).index().exact
    except AnnealError:
        return lambda _version, _kind: None
    return lambda version, kind: exact.get((version, kind))


@dataclass(frozen=True, slots=True)
class _Side:
    """One commit's objects by identity, as they are compared."""

    rendered: Rendered
    objects: Mapping[Identity, Manifest]
    stable: Mapping[Identity, dict[str, Any]]

    @classmethod
    def of(cls, rendered: Rendered, find: Find, namespace: str) -> _Side:
        own = dict(kind for manifest in rendered.manifests for kind in declared_kinds(manifest.body()))
        objects, bodies = {}, {}
        for manifest in rendered.manifests:
            identity = _placed(manifest, own, find, namespace)
            objects[identity] = manifest
            unstable = rendered.unstable.get(manifest.identity)
            bodies[identity] = unstable.without(manifest.body()) if unstable else manifest.body()
            bodies[identity]["metadata"] = {**bodies[identity]["metadata"], "namespace": identity.namespace}
        return cls(rendered, objects, bodies)


def _placed(manifest: Manifest, own: Mapping[tuple[str, str], Resource], find: Find, namespace: str) -> Identity:
    """Return an object's identity with the namespace that it goes to."""
    identity = manifest.identity
    kind = (manifest.api_version, identity.kind)
    resource = own.get(kind) or find(*kind)
    inside = resource is not None and resource.namespaced and not identity.namespace
    return replace(identity, namespace=namespace) if inside else identity


def _compared(found: CommitDiff, before: _Side, after: _Side) -> CommitDiff:
    changed = list(_changes(before, after))
    every = len(before.objects.keys() | after.objects.keys())
    counts = {word: sum(each.change == word for each in changed) for word in _ORDER} | {"unchanged": every - len(changed)}
    changed.sort(key=lambda each: (_ORDER.index(each.change), each.object, each.group))
    notes = dict.fromkeys(note for side in (before, after) for note in _notes(side.rendered))
    shown = tuple(printable(note, _PATH) for note in [*notes][:_NOTES])
    return replace(found, counts=counts, count=len(changed), objects=tuple(fitting(changed[:MOST])), notes=shown)


def _changes(before: _Side, after: _Side) -> Iterator[ChangedObject]:
    for identity, manifest in before.objects.items():
        if identity not in after.objects:
            yield ChangedObject(str(identity), identity.group, "deleted", manifest.place)
    for identity, manifest in after.objects.items():
        if identity not in before.objects:
            yield ChangedObject(str(identity), identity.group, "created", manifest.place)
        elif fields := _fields(identity, before, after):
            shown = tuple(fields[:MOST_FIELDS])
            yield ChangedObject(str(identity), identity.group, "changed", manifest.place, len(fields), shown)


def _fields(identity: Identity, before: _Side, after: _Side) -> list[ChangedField]:
    was, becomes, kind = before.stable[identity], after.stable[identity], identity.group_kind
    if was == becomes:
        return []
    both = HiddenFields.of(before.objects[identity]) | HiddenFields.of(after.objects[identity])
    changes = [] if was["apiVersion"] == becomes["apiVersion"] else [ChangedField("apiVersion", was["apiVersion"], becomes["apiVersion"])]
    found = field_changes(kind, was, becomes, both)
    return [*changes, *(ChangedField(printable(each.path, _PATH), each.live, each.declared) for each in found)]


def _notes(rendered: Rendered) -> Iterator[str]:
    yield from rendered.notes
    if rendered.renamed:
        yield f"{many(len(rendered.renamed), 'object')} have another name at each render"
