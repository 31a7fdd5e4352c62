"""What `anneal retire` shows: what becomes of the objects of one record, before and after."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handler.cli import diff
from handler.cli.output import Output
from handler.engine.retire import Retire, Retired, Retirement
from handler.model.advice import advice, together
from handler.model.names import IDENTITY, PART_OF, Identity, kubectl
from handler.model.numbers import many
from handler.model.plan import Change
from handler.model.quotation import quoted
from handler.plan.dependants import may_own_more


def show(output: Output, shown: Retirement, notes: Sequence[str]) -> None:
    """Print what would be done to each object."""
    for change in (*shown.going, *shown.staying):
        diff.one(output, change)
    for line in notes:
        output.line(line, "warn")
    if shown.state.repository:
        output.line(f"its record is of repository {quoted(shown.state.repository)}, installation {quoted(shown.state.installation)}")
    if state := shown.state.suspend:
        output.line(f"it is suspended by {quoted(state.by)}: {quoted(state.reason) or 'no reason given'}", "warn")


def summary(shown: Retirement, namespace: str = "") -> list[str]:
    """Return what would be done, in the words of the guards."""
    whole = many(shown.planned.plan.live_members, "live object")
    place = f" in namespace {namespace}" if namespace else ""
    going, staying = len(shown.going), len(shown.staying)
    lost = sum(gone.counted for change in shown.going for gone in change.takes)
    along = f", and {many(lost, 'object')} with {'it' if going == 1 else 'them'}" if lost else ""
    lines = [f"{going} of {whole} would be deleted{place}{along}"] if going else []
    lines += [f"{staying} of {whole} would stay{place}, without our marks"] if staying else []
    kinds = sorted({str(change.identity.kind) for change in shown.staying if "prune.kinds" in change.reason})
    lines += [f"to delete those of kind {', '.join(kinds)}, too: {' '.join(f'--kind {kind}' for kind in kinds)}"] if kinds else []
    lines = lines or [f"no object of it lives{place}"]
    lines += may_own_more(shown.going)
    space = Identity("", "Namespace", "", namespace)
    return [*lines, *([advice(_STAYS, *_ends(space))] if any(change.identity == space for change in shown.planned.plan.prunes) else [])]


def _ends(space: Identity) -> tuple[str, ...]:
    """Return how a Namespace is called that is no content of itself, and what deletes it, or lets go of it."""
    marks = (kubectl(verb, space, f"{key}-") for verb, key in (("label", PART_OF), ("annotate", IDENTITY)))
    return str(space), kubectl("delete", space), together(" && ", marks)


_STAYS = "{text} itself stays, for it isn't in itself: `{text}` deletes it, with all that is left there; `{text}` lets go of it"


def facts(name: str, done: Retired, asked: Retire) -> dict[str, Any]:
    """Return what was done as JSON."""
    return {
        "target": name,
        "namespace": asked.namespace,
        "deleted": [str(change.identity) for change in done.done if change.removes],
        "lost": [str(gone.identity) for change in done.done if change.removes for gone in change.takes if gone.counted],
        "letGo": [str(change.identity) for change in done.done if not change.removes],
        "left": [str(identity) for identity in done.left],
        "ended": done.ended,
    }


def print_done(output: Output, changes: Sequence[Change]) -> None:
    """Print what was done."""
    with output.still():
        for change in changes:
            diff.done(output, change, fields=False)
