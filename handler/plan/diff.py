"""Two bodies -> the fields that differ, for people: masked, with the manager that owns each live.

List elements are named by what identifies them (`containers[name=web]`), so that an insertion is one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from handler.model.field_masking import MASKED, is_sensitive, shown
from handler.model.hidden_fields import HiddenFields
from handler.model.names import FIELD_MANAGER, GroupKind
from handler.model.plan import FieldChange
from handler.model.quotation import printable
from handler.plan.managed_fields import KEY_DEFAULTS, MEMBER, Step, equal, owners

_NOISE = ("managedFields", "resourceVersion", "generation", "creationTimestamp", "uid", "selfLink")
_IDENTIFYING = (("name",), ("containerPort", "protocol"), ("port", "protocol"), ("mountPath",), ("key",), ("type",), ("ip",), ("uid",))
Path = tuple[Step, ...]
ORDER = "[order]"  # the last step of a path that names the order of a list's elements


def meaningful(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object without what the server keeps for itself: status and bookkeeping metadata."""
    kept = {key: value for key, value in body.items() if key not in ("status", "apiVersion", "kind")}
    metadata = body.get("metadata") or {}
    kept["metadata"] = {key: value for key, value in metadata.items() if key not in _NOISE}
    return kept


def differs(live: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether writing `wanted` (a dry-run's answer) would change `live`."""
    return not equal(meaningful(live), meaningful(wanted))


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[Path, Any, Any]]:
    """Yield where two objects differ, with both values; None: there is none."""
    yield from _differences((), meaningful(one), meaningful(other))


def field_changes(
    kind: GroupKind,
    live: dict[str, Any],
    wanted: dict[str, Any],
    hidden: HiddenFields = HiddenFields(),  # noqa: B008 - frozen
) -> tuple[FieldChange, ...]:
    """Return every field that differs, each with its live owner: what isn't in here isn't in the plan.

    `hidden`: masked on both sides, for live they may hold what they held before.
    """
    found: list[FieldChange] = []
    for path, was, becomes in differences(live, wanted):
        text = text_of(tellable(kind, tuple(hidden.told(path))))
        was_shown, becomes_shown = shown(kind, text, was), shown(kind, text, becomes)
        if hidden.hides(path):
            was_shown, becomes_shown = was_shown and MASKED, becomes_shown and MASKED
        found.append(FieldChange(text, becomes_shown, was_shown, _owner(live, path)))
    return tuple(dict.fromkeys(found))


def tellable(kind: GroupKind, path: Path) -> Path:
    """Return a path without what is sensitive: elements of a list that is masked aren't named by their values either."""
    fields = tuple(takewhile(lambda step: isinstance(step, str), path))
    return fields if is_sensitive(kind, text_of(fields)) else path


def _owner(live: dict[str, Any], path: Path) -> str:
    managers = sorted({manager for manager, _ in owners(live, path)}, key=lambda name: name == FIELD_MANAGER)
    return managers[0] if managers else ""


def text_of(path: Path) -> str:
    """Write a path: `spec.containers[name=web].image`."""
    text = ""
    for step in path:
        if isinstance(step, str):
            odd = step is not ORDER and (" " in step or not step.isprintable())
            text += f'["{printable(step)}"]' if odd else f".{step}" if text and step is not ORDER else step
        elif isinstance(step, int):
            text += f"[{step}]"
        else:
            text += "[" + ",".join(f"{key}={value}" if key != MEMBER else str(value) for key, value in step) + "]"
    return text


def _differences(path: Path, was: Any, becomes: Any) -> Iterator[tuple[Path, Any, Any]]:
    if equal(was, becomes):
        return
    if isinstance(was, dict) and isinstance(becomes, dict):
        for key in sorted(was.keys() | becomes.keys()):
            if key in was and key in becomes:
                yield from _differences((*path, key), was[key], becomes[key])
            else:
                yield (*path, key), was.get(key), becomes.get(key)
    elif isinstance(was, list) and isinstance(becomes, list):
        yield from _list_differences(path, was, becomes)
    else:
        yield path, was, becomes


def _list_differences(path: Path, was: list[Any], becomes: list[Any]) -> Iterator[tuple[Path, Any, Any]]:
    before, after = paired(was, becomes)
    if before.keys() == after.keys() and all(equal(before[key], after[key]) for key in before):
        yield path, was, becomes  # only the order differs
        return
    orders = [[step for step in one if step in other] for one, other in ((before, after), (after, before))]
    if orders[0] != orders[1]:
        was_order, order = ([text_of((step,)) for step in each] for each in orders)
        yield (*path, ORDER), was_order, order
    for step in dict.fromkeys([*before, *after]):
        element, other = before.get(step), after.get(step)
        is_named = isinstance(step, int) and any(_step(each, ("name",), {}) for each in (element, other))
        if step in before and step in after and not is_named:
            yield from _differences((*path, step), element, other)
        elif step not in before or step not in after or not equal(element, other):
            yield (*path, step), element, other  # whole: by its name masking knows a secret's value


def paired(was: list[Any], becomes: list[Any]) -> tuple[dict[Step, Any], dict[Step, Any]]:
    """Return the elements of two lists, each by what identifies it in both; by position where nothing does."""
    filled = {key: value for key, value in KEY_DEFAULTS.items() if any(isinstance(item, dict) and key in item for item in (*was, *becomes))}
    for keys in _IDENTIFYING:
        both: list[list[Step]] = [[_step(item, keys, filled) for item in items] for items in (was, becomes)]
        if all(all(steps) and len(set(steps)) == len(steps) for steps in both):
            return dict(zip(both[0], was, strict=True)), dict(zip(both[1], becomes, strict=True))
    return dict(enumerate(was)), dict(enumerate(becomes))


def names_of(item: Any, at: int) -> Iterator[str]:
    """Yield each step of a path that may lead to an element of a list. `at`: its position."""
    yield text_of((at,))
    steps = (_step(item, keys, filled) for keys in _IDENTIFYING for filled in ({}, KEY_DEFAULTS))
    yield from (text_of((step,)) for step in steps if step)


def _step(item: Any, keys: tuple[str, ...], filled: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    if not isinstance(item, dict) or not isinstance(item.get(keys[0]), str | int):
        return ()
    return tuple((key, value) for key in keys if isinstance(value := item.get(key, filled.get(key)), str | int))
