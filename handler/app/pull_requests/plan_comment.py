"""The plans of a pull request as one comment in Markdown: deletions first, in the words of `anneal plan`. Pure.

Law: what comes from git or a cluster stands in code blocks alone, behind a fence that it can't end: it is read, and does nothing. A comment
is no longer than its host takes; what is cut says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from handler.app.pull_requests.target_preview import TargetPreview
from handler.model.commit_status import StatusState, fitting
from handler.model.errors import Problem
from handler.model.numbers import counted, many
from handler.model.plan import Action, Change, FieldChange, Plan
from handler.model.tree import printable

LINES = 60
"""Lines of one target's plan that are shown unfolded."""
_FIELDS = 30  # of one object
_TARGETS = 30  # that are shown whole
_SIGNS = {
    Action.PRUNE: ("- delete", 0),
    Action.RECREATE: ("- recreate", 1),
    Action.UPDATE: ("~ change", 2),
    Action.CREATE: ("+ create", 3),
    Action.SKIP: ("= leave", 4),
}
_LINE, _MOST_TICKS = 500, 8
_TICKS = re.compile(r"`{3,}")


@dataclass(frozen=True, slots=True)
class PlanOf:
    """What a comment is about: the `head` merged into `branch` at `base`. `trouble`: why there is no plan at all, empty: there is.

    `diverged`: the branch has moved on since; `edited`: the comment before was changed by others.
    """

    head: str
    branch: str
    base: str = ""
    diverged: bool = False
    trouble: tuple[Problem, ...] = ()
    edited: bool = False


def text(about: PlanOf, previews: Sequence[TargetPreview], longest: int, *, folds: bool) -> str:
    """Return a comment of at most so many characters. `folds`: the host folds what stands in `<details>`."""
    parts = [*_opening(about), *([_block(map(str, about.trouble))] if about.trouble else [])]
    touched = [each for each in previews if not each.untouched]
    parts += [_summary(previews, touched)] if previews else []
    sections = [_section(each, folds=folds) for each in touched[:_TARGETS]]
    if len(touched) > _TARGETS:
        sections.append(
            f"and {many(len(touched) - _TARGETS, 'target')} more: " + ", ".join(f"`{each.target}`" for each in touched[_TARGETS:])
        )
    whole = "\n\n".join([*parts, *sections])
    return whole if len(whole) <= longest else _cut(parts, touched, longest)


def status_of(about: PlanOf, previews: Sequence[TargetPreview]) -> tuple[StatusState, str]:
    """Return how the head of a pull request fares, in a status' few words: a failure where anything can't be planned."""
    if about.trouble:
        return StatusState.FAILURE, fitting(str(about.trouble[0]))
    wrong = next((each for each in previews if each.problems), None)
    if wrong:
        return StatusState.FAILURE, fitting(f"{wrong.target}: {_bare(wrong.problems[0])}")
    held = [each.target for each in previews if each.plan and each.plan.hold]
    words = counted(_totals(previews)) if _totals(previews) else "changes nothing"
    return StatusState.SUCCESS, fitting(f"{words}{f'; {held[0]} would wait for approval' if held else ''}")


def _bare(problem: Problem) -> str:
    return f"{f'{problem.place}: ' if problem.place else ''}{problem.subject}: {problem.message}"


def _opening(about: PlanOf) -> Iterator[str]:
    yield f"### Anneal: what merging `{about.head[:12]}` into `{_inline(about.branch)}` would change"
    if about.base:
        yield f"At `{about.base[:12]}` of `{_inline(about.branch)}`."
    if about.edited:
        yield "The comment before this one was changed or deleted by others; this is posted anew."
    if about.diverged:
        yield f"`{_inline(about.branch)}` has moved on since this branch began: this is the plan of both together."


def _summary(previews: Sequence[TargetPreview], touched: Sequence[TargetPreview]) -> str:
    rest = len(previews) - len(touched)
    said = f"{many(len(touched), 'target')} of {len(previews)} read{'s' if len(touched) == 1 else ''} what changes"
    totals, lost = _totals(touched), sum(each.preview is None for each in touched)
    found = [counted(totals) if totals else "", f"{many(lost, 'target')} can't be planned" if lost else ""]
    told = ", ".join(filter(None, found)) or "nothing to change"
    return f"{said}: **{told}**." + (f" {many(rest, 'target')} untouched." if rest else "")


def _totals(previews: Iterable[TargetPreview]) -> dict[str, int]:
    words = {Action.PRUNE: "to delete", Action.RECREATE: "to recreate", Action.UPDATE: "to change", Action.CREATE: "to create"}
    found = dict.fromkeys(words.values(), 0)
    for each in previews:
        for change in each.plan.writes if each.plan else ():
            found[words[change.action]] += 1
    return {word: number for word, number in found.items() if number}


def _section(each: TargetPreview, *, folds: bool) -> str:
    head = f"#### `{each.target}`"
    lines = [*_lines(each)]
    said = " · ".join(_remarks(each))
    if len(lines) <= LINES:
        body = _block(lines) if lines else "Nothing to change."
    elif folds:
        body = f"<details><summary>{many(len(lines), 'line')}</summary>\n\n{_block(lines)}\n\n</details>"
    else:
        body = _block([*lines[:LINES], f"… and {len(lines) - LINES} lines more: anneal plan {each.target} after the merge"])
    return "\n\n".join(filter(None, (head, said, body)))


def _remarks(each: TargetPreview) -> Iterator[str]:
    """Yield what a target's plan is: judged by the server or not, and what isn't compared."""
    if each.preview is None:
        yield "**can't be planned**"
        return
    if each.problems:
        yield f"**the API server refuses {many(len(each.problems), 'object')}**"
    if each.plan and each.plan.hold:
        yield "**would wait for approval**"
    if not each.preview.judged:
        yield "not judged by the server"
    elif each.preview.apart:
        yield f"judged by the server, but for {many(each.preview.apart, 'object')} that it wasn't asked about"
    else:
        yield "judged by the server"
    yield from each.notes


def _lines(each: TargetPreview) -> Iterator[str]:
    yield from map(str, each.problems)
    plan = each.plan
    if plan is None:
        return
    if plan.hold:
        yield from (f"! {reason}" for reason in plan.hold.reasons)
    shown = sorted(_told(plan), key=lambda change: (_SIGNS[change.action][1], change.identity))
    mine = [change for change in shown if change.identity in each.mine]
    others = [change for change in shown if change.identity not in each.mine]
    for change in mine:
        yield from _change(change)
    if others:
        yield "# not by this pull request: live differs from the branch already, or what was merged isn't deployed yet"
        for change in others:
            yield from _change(change)
    for due in plan.due:
        yield f"> {due.group}: {due.action} {due.identity}"
    yield from (f"# {note}" for note in plan.notes)


def _told(plan: Plan) -> Iterator[Change]:
    """Yield the changes that are shown: what is written, and what is left though it isn't declared, or though it is."""
    for change in plan.changes:
        if change.writes or (change.action is Action.SKIP and (change.withheld or change.reason)):
            yield change


def _change(change: Change) -> Iterator[str]:
    why = f"  ({change.reason})" if change.reason and change.reason != "no longer declared" else ""
    place = f"  {change.manifest.place}" if change.manifest and change.manifest.place and change.writes else ""
    yield f"{_SIGNS[change.action][0]} {change.identity}{why}{place}"
    fields = change.fields if change.action is not Action.CREATE else ()
    for field in sorted(fields, key=lambda each: bool(each.declared))[:_FIELDS]:
        yield f"    {_field(field)}"
    if len(fields) > _FIELDS:
        yield f"    and {many(len(fields) - _FIELDS, 'field')} more"


def _field(each: FieldChange) -> str:
    live, declared = _one_line(each.live) or "(none)", _one_line(each.declared) or "(removed)"
    return f"{each.path}: {live} → {declared}"


def _one_line(value: str) -> str:
    """Return a text as one line of bounded length, without what turns or breaks lines, nor many backticks in a row."""
    shown = printable(value.replace("\r", "").replace("\n", "⏎"), _LINE)
    return _TICKS.sub(lambda run: run.group() if len(run.group()) <= _MOST_TICKS else "`" * _MOST_TICKS + "…", shown)


def _block(lines: Iterable[str]) -> str:
    """Return a code block that nothing in it can end."""
    whole = "\n".join(_one_line(line) for line in lines)
    longest = max((len(found.group()) for found in _TICKS.finditer(whole)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}diff\n{whole}\n{fence}"


def _inline(value: str) -> str:
    return value.replace("`", "'")


def _cut(parts: Sequence[str], touched: Sequence[TargetPreview], longest: int) -> str:
    """Return a comment that fits: of each target as many lines as there is room for, deletions and mistakes being the first."""
    opening = "\n\n".join(parts)
    room = (longest - len(opening) - 200) // max(len(touched), 1)
    sections = []
    for each in touched:
        lines, kept, size = [*_lines(each)], list[str](), 0
        for line in lines:
            size += len(_one_line(line)) + 1
            if size > room - 300:
                break
            kept.append(line)
        more = [f"… and {len(lines) - len(kept)} lines more"] if len(kept) < len(lines) else []
        sections.append(f"#### `{each.target}`\n\n{' · '.join(_remarks(each))}\n\n{_block([*kept, *more])}")
    whole = "\n\n".join([opening, *sections])
    return whole if len(whole) <= longest else f"{opening[: longest - 100]}\n\n{many(len(touched), 'target')}: too much for a comment."
