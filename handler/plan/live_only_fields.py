"""Fields of which the server won't let go what live alone has: what they are, and the line that declares them. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any

from handler.model.advice import advice, together
from handler.model.errors import FieldCause, Problem
from handler.model.field_masking import is_sensitive, shown
from handler.model.manifest import at
from handler.plan.admission import Desired
from handler.plan.diff import tellable, text_of
from handler.plan.managed_fields import Fields, Step, at_path, equal, managed_fields, owners, paths, picked, union, without
from handler.plan.retention import CLAIM

Path = tuple[Step, ...]
_FORBIDDEN = "FieldValueForbidden"  # apimachinery's reason of a cause: this value may not be, beside what there is
_NAMED = 5  # how many fields a refusal names


def each_without(live: dict[str, Any], goes: Fields) -> Iterator[tuple[Path, Fields, dict[str, Any]]]:
    """Yield each field that would go, as a path and as a set, and live without it, so that the server can be asked about one at a time."""
    for path, only in paths(goes):
        if at_path(live, path) is not None:
            yield path, only, without(live, only)


def nulled(live: dict[str, Any], less: dict[str, Any], becomes: dict[str, Any], goes: Fields) -> list[tuple[Path, Fields]]:
    """Return the fields that go as the last ones of a map or list which another manager, or git, keeps itself.

    An apply makes null of them (structured-merge-diff, `typed/remove.go`), which schemas may refuse. `less`: live without what goes;
    `becomes`: what another write than an apply makes of that; empty: unknown.
    """
    found = []
    for path, only in paths(goes):
        *above, name = path[:-1] or ("",)
        is_empty = at_path(live, path[:-1]) and at_path(less, path[:-1]) is None
        if is_empty and isinstance(name, str) and name not in (at_path(becomes, above) or {}):
            found.append((path, only))
    return found


def left_null(item: Desired, live: dict[str, Any], gone: Sequence[tuple[Path, Fields]]) -> Problem:
    """Return why an object can't lose the last fields of a map or list that others keep."""
    above = ", ".join(dict.fromkeys(text_of(path[:-1]) for path, _ in gone[:_NAMED]))
    return refusal(item, live, gone, f"it is the last of {above}, which another manager or git keeps: an apply would make null of that")


def unreleased(item: Desired, live: dict[str, Any], goes: Fields) -> str:
    """Say that what people or tools wrote stays, for a write that gives it to us would empty managedFields; and the way out."""
    stays = ", ".join(text_of(tellable(item.identity.group_kind, path)) for path, _ in islice(paths(goes), _NAMED)) or "what others wrote"
    versions = {str(each.get("apiVersion")) for each in managed_fields(live)} - {item.resource.api_version}
    return advice(
        "{}: {text} stays: a write that lets go of it would have the API server forget who wrote the other fields, recorded in {text};"
        " declare the object in that version, or give all versions of its CustomResourceDefinition the same fields",
        str(item.identity),
        stays,
        ", ".join(sorted(versions)),
    )


def refusal(item: Desired, live: dict[str, Any], kept: Sequence[tuple[Path, Fields]], words: str) -> Problem:
    """Return why an object can't lose the fields `kept` by the server in these words of its, and the lines for git."""
    named = "; ".join(_told(item, live, path) for path, _ in kept[:_NAMED])
    more = f" and {len(kept) - _NAMED} more" if len(kept) > _NAMED else ""
    lines = _lines(live, [only for path, only in kept[:_NAMED] if _is_writable(item, live, path)])
    fix = (
        advice("declare what lives, nothing need be deleted: write into it {text}", lines)
        if lines
        else "declare these fields with their live values"
    )
    return Problem(
        str(item.identity), f"live alone has {named}{more}, and the server refuses to drop it: {words}", item.manifest.place, fix
    )


def forbidden(item: Desired, live: dict[str, Any], causes: Sequence[FieldCause]) -> tuple[str, str]:
    """Return what lives where the server forbids what git declares instead, and the lines that declare that; empty: there are none.

    Of a claim that was grown there are: it can't become smaller. Elsewhere the live value may be forbidden, too, beside the rest of what
    git declares. `causes`: the refusal's.
    """
    body = item.manifest.body()
    asked = dict.fromkeys(tuple(each.field.split(".")) for each in causes if each.reason == _FORBIDDEN)
    differing = [path for path in asked if None not in (at(body, *path), at(live, *path)) and not equal(at(body, *path), at(live, *path))]
    seen = "; ".join(_told(item, live, path) for path in differing[:_NAMED])
    if item.identity.group_kind != CLAIM or not differing:
        return seen, ""
    nested = [reduce(lambda below, step: {step: below}, reversed(path), at(live, *path)) for path in differing[:_NAMED]]
    whole = len(nested) == sum(_is_writable(item, live, path) for path in differing[:_NAMED])
    lines = together("; ", (advice("{yaml}: {yaml}", key, value) for each in nested for key, value in each.items())) if whole else ""
    return seen, advice("declare what lives: write into it {text}", lines) if lines else "declare these fields with their live values"


def _told(item: Desired, live: dict[str, Any], path: Path) -> str:
    managers = sorted({manager for manager, _ in owners(live, path)})
    by = f" (by {managers[0]})" if managers else ""
    text = text_of(tellable(item.identity.group_kind, path))
    return f"{text}: {shown(item.identity.group_kind, text, at_path(live, path))}{by}"


def _is_writable(item: Desired, live: dict[str, Any], path: Path) -> bool:
    kind, value = item.identity.group_kind, at_path(live, path)
    text = text_of(path)
    return not is_sensitive(kind, text) and shown(kind, text, value) in (value, json.dumps(value, ensure_ascii=False))


def _lines(live: dict[str, Any], chosen: Sequence[Fields]) -> str:
    fields: Fields = {}
    for only in chosen:
        fields = union(fields, only)
    return together("; ", (advice("{yaml}: {yaml}", key, value) for key, value in picked(live, fields).items())) if fields else ""
