"""What changes, for people: each object of a plan, or of what a run wrote, with its fields live -> declared and their live managers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from handler.cli.output import Output
from handler.model.advice import advice
from handler.model.names import Identity
from handler.model.numbers import counted, many
from handler.model.plan import PENDING, Action, Change, Due, FieldChange, Hold, Plan
from handler.model.render import FILES

_LOOK = {
    Action.CREATE: ("+", "create", "good", "good"),
    Action.UPDATE: ("~", "update", "warn", "warn"),
    Action.RECREATE: ("!", "recreate", "bad", "warn"),
    Action.PRUNE: ("-", "prune", "bad", "bad"),
    Action.SKIP: (".", "kept", "dim", "dim"),
    Action.UNCHANGED: ("=", "unchanged", "dim", "dim"),
}
"""Sign and word in a plan; style there, and where it is done."""
_MOST = 20  # lines of one object's fields that are shown without -v


def show(output: Output, plan: Plan, way_out: str = "", printed: Collection[Identity] = ()) -> None:
    """Print a plan: objects, then hooks and steps. `printed`: objects whose lines were printed already.

    What it leaves alone is shown on -v, but always where git declares it, or where it lives undeclared in an exclusive namespace.
    """
    for change in plan.changes:
        is_shown = change.writes or change.withheld or change.sibling or change.unmarked or output.verbose
        if is_shown and change.identity not in printed:
            one(output, change)
    for due in plan.due:
        _due(output, due)
    words = Counter(f"{'to ' if change.writes else ''}{_LOOK[change.action][1]}" for change in plan.changes)
    if lost := plan.counts(done=False).get("to lose"):
        words["to lose"] = lost
    gone = f"; {many(plan.removed, 'field')} removed" if plan.removed else ""
    output.line(f"{plan.target} at {plan.commit[:12]}{by(plan.renderer)}: {counted(words)}{gone}", "head")
    for note in plan.notes:
        output.line(f"note: {output.complete(note)}", "dim")
    if plan.hold:
        hold(output, plan.target, plan.hold, way_out, listed=True)


def by(renderer: str) -> str:
    """Say which renderer made the objects; nothing of plain files."""
    return f", by {renderer}" if renderer != FILES else ""


def hold(output: Output, target: str, held: Hold, way_out: str = "", *, listed: bool = False) -> None:
    """Print what waits for a person and the command that allows it. `listed`: the changes were printed already."""
    output.line(f"{target} waits for approval:", "warn")
    for reason in held.reasons:
        output.line(f"  {reason}")
    for action, name, _ in () if listed else held.changes:
        output.line(f"  {action:8} {name}", "bad")
    output.line(f"allow exactly that: {way_out or output.complete(advice('anneal approve {} {}', target, held.id))}", whole=True)


def one(output: Output, change: Change, *, stays: bool = False) -> None:
    """Print one object of a plan. `stays`: also what git doesn't declare and others keep, as on -v."""
    sign, word, style, _ = _LOOK[change.action]
    marks = [
        text for text, is_so in (("adopted", change.adopted and not change.sibling), ("checked in its stage", change.deferred)) if is_so
    ]
    notes = dict.fromkeys(filter(None, [change.reason, *marks]))  # of an adoption the reason says it, too
    tail = f"  ({'; '.join(notes)})" if notes else ""
    place = f"  {change.manifest.place}" if change.manifest and change.manifest.place and change.writes else ""
    output.line(f"{sign} {word} {change.identity}{tail}{place}", style)
    _fields(output, change)
    taken(output, change)
    for field in change.undeclared:
        (output.line if stays else output.detail)(f"    {field.path}: {_quoted(field.live)}  (undeclared, by {field.manager}; it stays)")


def done(output: Output, change: Change, *, fields: bool = True) -> None:
    """Print what a run has done to one object. `fields`: also to which of its fields."""
    explained = change.action is Action.SKIP or change.removes or change.sibling
    waits = f"waits for {', '.join(change.finalizers) or 'the server'}" if change.done == PENDING else ""
    why = f"  ({waits or change.reason})" if change.reason and explained else ""
    output.line(f"{change.identity} {change.done}{why}", _LOOK[change.action][3])
    if fields and change.writes:
        _fields(output, change)
    taken(output, change)


def _fields(output: Output, change: Change) -> None:
    """Print the fields that change; of a long list, which is cut, what goes stands first."""
    found = change.fields if change.action is not Action.CREATE else ()
    cut = len(found) > _MOST and not output.verbose
    shown = sorted(found, key=lambda field: bool(field.declared))[: _MOST - 1] if cut else found
    for field in shown:
        output.line(f"    {'- ' if not field.declared else ''}{_field(field)}", "bad" if not field.declared else "")
    if len(found) > len(shown):
        output.line(f"    and {many(len(found) - len(shown), 'field')} more; -v shows all", "dim")


def taken(output: Output, change: Change) -> None:
    """Print what Kubernetes deletes because of a change."""
    for gone in change.takes if change.writes else ():
        output.line(f"    - {gone}", "bad")


def _due(output: Output, due: Due) -> None:
    step = f" {due.step}:" if due.step != str(due.identity) else ""
    output.line(f"> {due.group}:{step} {due.action} {due.identity}", "warn")
    for gone in due.gone:
        output.line(f"    - {gone}", "bad" if gone.counted else "dim")


def _field(field: FieldChange) -> str:
    live, declared = _quoted(field.live), _quoted(field.declared, "(removed)")
    owner = f"  (live by {field.manager})" if field.manager else ""
    return f"{field.path}: {live} → {declared}{owner}"


def _quoted(text: str, absent: str = "(none)") -> str:
    return text.replace("\n", "⏎") if text else absent
