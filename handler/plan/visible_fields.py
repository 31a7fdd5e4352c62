"""Which live values of a plan a reader of a pull request may see, and which of its changes are the pull request's. Pure.

Law: a live value is shown where git declares the same field already, openly: there the live one is git's, or drift of it. What git doesn't
declare yet may be anything that lives, and stays unseen, also where it is a part of a path: a key, or what names an element; that it is
there is seen. What is to be is shown as git declares it: what a server or an apply makes of it may hold what lives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from handler.model.field_masking import MASKED
from handler.model.manifest import Manifest
from handler.model.names import FIELD_MANAGER, Identity
from handler.model.plan import Action, Change, FieldChange
from handler.plan.declared_fields import DeclaredField, DeclaredFields
from handler.plan.diff import ORDER, field_changes
from handler.plan.managed_fields import equal

Pair = tuple[Manifest | None, Manifest | None]
"""What git declares of an object before and after; None: nothing."""
UNSEEN = "(not shown)"
_BY_POSITION = re.compile(r"\[\d+\]")
"""Of a list that nothing orders by name: what stands at a position may be another's element."""


def visible(change: Change, now: Manifest | None, then: Manifest | None) -> Change:
    """Return a change with the live values that may be seen. `now`, `then`: what git declares before and after; None: nothing."""
    before, after = (DeclaredFields(change.identity.group_kind, each.body() if each else {}) for each in (now, then))
    return replace(change, fields=tuple(dict.fromkeys(_seen(each, before, after) for each in change.fields)))


def without_settled(change: Change, now: Manifest | None, then: Manifest | None) -> Change:
    """Return a change without what only the server writes otherwise, as `2` for a cpu of `2000m`, where no server judges.

    Such is a field that git declares alike before, as it was deployed, and after, and that has had no other writer since: one would own it
    (https://kubernetes.io/docs/reference/using-api/server-side-apply/#field-management). `now`, `then`: as for `visible`.
    """
    if change.action is not Action.UPDATE or now is None or then is None:
        return change
    before, after = (DeclaredFields(change.identity.group_kind, each.body()) for each in (now, then))
    fields = tuple(each for each in change.fields if not _is_settled(each, before.at(each.path), after.at(each.path)))
    if fields or not change.fields or change.reason:
        return replace(change, fields=fields)
    return Change(Action.UNCHANGED, change.identity, change.uid, change.resource_version, manifest=change.manifest)


def _is_settled(each: FieldChange, was: DeclaredField, becomes: DeclaredField) -> bool:
    is_alike = was.value is not None and becomes.known == len(each.path) and equal(was.value, becomes.value)
    return each.manager == FIELD_MANAGER and is_alike and MASKED not in was.text


def by_git(change: Change, now: Manifest | None, then: Manifest | None, others: Pair | None = None) -> Change:
    """Return a change as git alone says it, whatever lives: for where values that aren't in git may have decided what does.

    What lives may hold a value where placeholders show none: by a comparison, a default, a commit before this one. So would it tell that it
    equals what is declared. `now`, `then`: as for `visible`; `others`: the same with other placeholders, by which something else may
    differ. Deletions, and what is left alone, stay as they are.
    """
    if then is None or change.action not in (Action.CREATE, Action.UPDATE, Action.UNCHANGED):
        return visible(change, now, then)
    if now is None:
        return replace(change, action=Action.CREATE, fields=())
    fields = {each.path: each for pair in (others, (now, then)) for each in _differences(change, pair)}
    return Change(Action.UPDATE if fields else Action.UNCHANGED, change.identity, fields=tuple(fields.values()), manifest=change.manifest)


def with_masked(change: Change, now: Manifest | None, then: Manifest | None) -> Change:
    """Return a change with the fields, masked, whose values are hidden and that git declares otherwise: live isn't compared with them."""
    if change.action not in (Action.UPDATE, Action.UNCHANGED):
        return change
    fields = tuple(each for each in _differences(change, (now, then)) if MASKED in each.declared + each.live)
    return replace(change, action=Action.UPDATE, fields=(*change.fields, *fields)) if fields else change


def _differences(change: Change, pair: Pair | None) -> tuple[FieldChange, ...]:
    """Return what differs between what git declares before and after; nothing, where it doesn't declare both."""
    now, then = pair or (None, None)
    return field_changes(change.identity.group_kind, now.body(), then.body()) if now and then else ()


def by_name(change: Change) -> Change:
    """Return a change that says of a live object only that it is declared: where nothing is known of what git declares before."""
    if change.action not in (Action.UPDATE, Action.UNCHANGED):
        return replace(change, fields=())
    return Change(Action.UPDATE, change.identity, manifest=change.manifest)


def _seen(each: FieldChange, before: DeclaredFields, after: DeclaredFields) -> FieldChange:
    """Show a field by what git declares of it before and after."""
    was, becomes = before.at(each.path), after.at(each.path)
    live, declared = each.live, each.declared
    if live and not _is_open(each, was):
        live = UNSEEN
    if declared:
        declared = becomes.text or UNSEEN
    return FieldChange(_told(each.path, max(was.known, becomes.known)), declared, live, each.manager if live != UNSEEN else "")


def _is_open(each: FieldChange, was: DeclaredField) -> bool:
    """Whether a live value may be shown beside what git declares before."""
    if was.text in ("", MASKED):
        return False
    may_hold_others = was.is_nested or each.live[:1] in ("{", "[") or _BY_POSITION.search(each.path)
    return not may_hold_others or each.live == was.text


def _told(path: str, known: int) -> str:
    """Return a path as far as git declares it."""
    rest = path[known:]
    if not rest or rest == ORDER:
        return path
    return f"{path[:known]}[{UNSEEN}]" if rest.startswith("[") else f"{path[:known]}.{UNSEEN}".removeprefix(".")


def changed(now: Mapping[Identity, Manifest], then: Mapping[Identity, Manifest]) -> frozenset[Identity]:
    """Return the objects that git declares otherwise, no longer, or anew."""
    return frozenset(identity for identity in now.keys() | then.keys() if _raw(now.get(identity)) != _raw(then.get(identity)))


def _raw(manifest: Manifest | None) -> bytes:
    return manifest.raw if manifest else b""
