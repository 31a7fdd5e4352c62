"""A plan for people: each object that would change, with its fields live -> declared and who owns them live."""

from __future__ import annotations

from collections import Counter

from handler.cli.printing import Output
from handler.cli.reports import counted, hold
from handler.model.plan import Action, Change, Due, FieldChange, Plan
from handler.model.words import many

_SIGNS = {
    Action.CREATE: ("+", "good"),
    Action.UPDATE: ("~", "warn"),
    Action.RECREATE: ("!", "bad"),
    Action.PRUNE: ("-", "bad"),
    Action.SKIP: (".", "dim"),
    Action.UNCHANGED: ("=", "dim"),
}
_WORDS = {
    Action.CREATE: "create",
    Action.UPDATE: "update",
    Action.RECREATE: "recreate",
    Action.PRUNE: "prune",
    Action.SKIP: "kept",
    Action.UNCHANGED: "unchanged",
}


def show(output: Output, plan: Plan, way_out: str = "") -> None:
    """Print a plan: objects, then hooks and steps. What it leaves alone is shown on -v, but always where git declares it."""
    for change in plan.changes:
        if change.writes or change.withheld or change.sibling or output.verbose:
            _change(output, change)
    for due in plan.due:
        _due(output, due)
    words = Counter(f"to {_WORDS[change.action]}" if change.writes else _WORDS[change.action] for change in plan.changes)
    gone = f"; {many(plan.removed, 'field')} removed" if plan.removed else ""
    output.line(f"{plan.target} at {plan.commit[:12]}: {counted(words)}{gone}", "head")
    for note in plan.notes:
        output.line(f"note: {note}", "dim")
    if plan.hold:
        hold(output, plan.target, plan.hold, way_out)


def _change(output: Output, change: Change) -> None:
    sign, style = _SIGNS[change.action]
    marks = [
        text for text, is_so in (("adopted", change.adopted and not change.sibling), ("checked in its stage", change.deferred)) if is_so
    ]
    told = dict.fromkeys(filter(None, [change.reason, *marks]))  # of an adoption the reason says it, too
    tail = f"  ({'; '.join(told)})" if told else ""
    place = f"  {change.manifest.place}" if change.manifest and change.manifest.place and change.writes else ""
    output.line(f"{sign} {_WORDS[change.action]} {change.identity}{tail}{place}", style)
    for field in change.fields if change.action is not Action.CREATE else ():
        output.line(f"    {'- ' if not field.declared else ''}{_field(field)}", "bad" if not field.declared else "")
    for field in change.undeclared:
        output.detail(f"    {field.path}: {_quoted(field.live)}  (undeclared, by {field.manager}; it stays)")


def _due(output: Output, due: Due) -> None:
    """A step that has a name of its own is told by it, too."""
    step = f" {due.step}:" if due.step != str(due.identity) else ""
    output.line(f"> {due.group}:{step} {due.action} {due.identity}", "warn")


def _field(field: FieldChange) -> str:
    live, declared = _quoted(field.live), _quoted(field.declared, "(removed)")
    owner = f"  (live by {field.manager})" if field.manager else ""
    return f"{field.path}: {live} → {declared}{owner}"


def _quoted(text: str, absent: str = "(none)") -> str:
    """Show that a value isn't there, and keep a long one on its line."""
    return text.replace("\n", "⏎") if text else absent
