"""Fields that only live has and that the server won't let go: what they are, and the line that declares them. Pure.

deciding (asks the server about each field that would go) -> here (the refusal with its way out)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from handler.model.errors import Problem
from handler.model.masking import MASKED, shown
from handler.plan.admit import Desired
from handler.plan.diff import text_of
from handler.plan.field_sets import at_path, paths, without
from handler.plan.owned import Fields, Step, owners

Path = tuple[Step, ...]
_NAMED = 5
"""How many fields a refusal names."""


def each_without(live: dict[str, Any], goes: Fields) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield (path, live without that field) of each field that would go, so that the server can be asked about one at a time."""
    for path, only in paths(goes):
        if at_path(live, path) is not None:
            yield path, without(live, only)


def refusal(item: Desired, live: dict[str, Any], kept: Sequence[Path], words: str) -> Problem:
    """Return why an object can't lose fields that git doesn't declare, naming them, and the lines for git.

    Args:
        item: what git declares.
        live: what lives.
        kept: the fields whose removal the server refuses.
        words: the server's.

    """
    named = "; ".join(_told(item, live, path) for path in kept[:_NAMED])
    more = f" and {len(kept) - _NAMED} more" if len(kept) > _NAMED else ""
    lines = "; ".join(filter(None, (_line(item, live, path) for path in kept[:_NAMED])))
    fix = f"declare what lives, nothing need be deleted: write into it {lines}" if lines else "declare these fields with their live values"
    return Problem(
        str(item.identity), f"live alone has {named}{more}, and the server refuses to drop it: {words}", item.manifest.place, fix
    )


def _told(item: Desired, live: dict[str, Any], path: Path) -> str:
    managers = sorted({manager for manager, _ in owners(live, path)})
    by = f" (by {managers[0]})" if managers else ""
    return f"{text_of(path)}: {_value(item, live, path)}{by}"


def _value(item: Desired, live: dict[str, Any], path: Path) -> str:
    return shown(item.identity.group_kind, text_of(path), at_path(live, path))


def _line(item: Desired, live: dict[str, Any], path: Path) -> str:
    """Write a field as YAML in flow style; empty where its value may not be shown or is too long to be."""
    value = at_path(live, path)
    text = json.dumps(value, ensure_ascii=False)
    if MASKED in _value(item, live, path) or len(text) > len(_value(item, live, path)) + 2:
        return ""
    if not all(isinstance(step, str) for step in path):
        return f"{text_of(path)}: {text}"
    first, *rest = (str(step) for step in path)
    return f"{first}: " + "".join(f"{{{name}: " for name in rest) + text + "}" * len(rest)
