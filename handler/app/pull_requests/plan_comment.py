"""The plans of a pull request as one comment in Markdown: deletions first, in the words of `anneal plan`. Pure.

    targets       those that lose objects or would be held, those with mistakes, the rest
    of each       what would hold, what goes away, mistakes, the rest; in each, what isn't by the pull request stands apart
    no room       lines in that order, of all targets; then a line each that names it; then how many more there are

Law: what comes from git or a cluster stands in code blocks alone, behind a fence that it can't end: it is read, and does nothing. A comment
is no longer than its host takes; what is cut says so.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import accumulate

from handler.app.pull_requests.target_preview import TargetPreview
from handler.model.advice import advice
from handler.model.commit_status import StatusState, fitting
from handler.model.errors import Problem
from handler.model.names import Identity
from handler.model.numbers import counted, many
from handler.model.plan import Action, Change, FieldChange, Gone, Plan
from handler.model.tree import printable

LINES = 60
"""Lines of one target's plan that are shown unfolded."""
BEGINS = "### Anneal: "
"""How each comment begins."""
_FIELDS = 30  # of one object
_SIGNS = {
    Action.PRUNE: ("- delete", 0),
    Action.RECREATE: ("- recreate", 1),
    Action.UPDATE: ("~ change", 2),
    Action.CREATE: ("+ create", 3),
    Action.SKIP: ("= leave", 4),
}
_LINE, _MOST_TICKS = 500, 8
_TICKS = re.compile(r"`{3,}")
_CROWDED = "There is no room for the plans of these:"
_AROUND_NAMES = 200  # characters beside the named targets: `_CROWDED`, and how many more there are
_OTHERS = "# not by this pull request: live differs from the branch already, or what was merged isn't deployed yet"


class _Rank(IntEnum):
    """What is shown first, within a target and where there isn't room for all."""

    DANGER = 0  # what would hold, and what goes away
    MISTAKE = 1
    REST = 2


@dataclass(frozen=True, slots=True)
class _Line:
    """`removes`: it names a live object that goes away."""

    text: str
    rank: _Rank = _Rank.REST
    removes: bool = False


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
    """Return a comment of at most so many characters, some thousands at least. `folds`: the host folds what stands in `<details>`."""
    parts = [*_opening(about)]
    if about.trouble:
        trouble = _Section("", [_Line(str(each)) for each in about.trouble], folds)
        parts.append(trouble.text(trouble.fitting(longest // 2, trouble.most)))
    touched = sorted((each for each in previews if not each.untouched), key=_rank)
    parts += [_summary(previews, touched)] if previews else []
    opening = "\n\n".join(parts)
    sections = [_section(each, folds=folds) for each in touched]
    return "\n\n".join([opening, *_fitted(sections, longest - len(opening))])


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
    yield f"{BEGINS}what merging `{about.head[:12]}` into `{_inline(about.branch)}` would change"
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
        for gone in each.plan.lost if each.plan else ():
            found[words[_gone_by(gone)]] += 1
    return {word: number for word, number in found.items() if number}


@dataclass(slots=True)
class _Section:
    """Lines in a block below a heading, of which the first few can be shown. `target`: whose plan; `brief`: what stands instead."""

    head: str
    lines: Sequence[_Line]
    folds: bool
    target: str = ""
    brief: str = ""
    _shown: list[str] = field(init=False)
    _ends: list[int] = field(init=False)  # characters of the first so many lines
    _removed: list[int] = field(init=False)  # how many of the first so many lines remove
    _fence: str = field(init=False)

    def __post_init__(self) -> None:
        self._shown = [_one_line(line.text) for line in self.lines]
        self._ends = [*accumulate((len(line) + 1 for line in self._shown), initial=0)]
        self._removed = [*accumulate((line.removes for line in self.lines), initial=0)]
        ticks = (len(found.group()) for line in self._shown for found in _TICKS.finditer(line))
        self._fence = "`" * (max(ticks, default=2) + 1)  # nothing in the block can end it

    @property
    def most(self) -> int:
        """How many lines are shown where there is room for all."""
        return len(self.lines) if self.folds else min(len(self.lines), LINES)

    @property
    def removed(self) -> int:
        """How many live objects go away."""
        return self._removed[-1]

    def until(self, rank: _Rank) -> int:
        """Return how many lines there are up to this rank, as far as they are shown at all."""
        return min(sum(line.rank <= rank for line in self.lines), self.most)

    def text(self, number: int) -> str:
        """Return it with its first lines, so many."""
        before, after = self._around(number)
        return before + "".join(f"{line}\n" for line in self._shown[:number]) + after

    def size(self, number: int) -> int:
        """Return the length of `text`."""
        return sum(map(len, self._around(number))) + self._ends[number]

    def fitting(self, room: int, most: int) -> int:
        """Return how many lines fit, at most so many."""
        highest = min(most, bisect_right(self._ends, room) - 1)
        return next((number for number in range(highest, 0, -1) if self.size(number) <= room), 0)

    def _around(self, number: int) -> tuple[str, str]:
        """Return what stands before and after the lines."""
        left, more = len(self.lines) - number, ""
        if left:
            where = advice(": anneal plan {} after the merge", self.target) if self.target else ""
            more = f"… and {many(left, 'line')} more{_among(self.removed - self._removed[number])}{where}\n"
        before, after = f"{self._fence}diff\n", f"{more}{self._fence}"
        if self.folds and number > LINES:
            of_all = f"{many(len(self.lines), 'line')}{_among(self.removed)}"
            before, after = f"<details><summary>{of_all}</summary>\n\n{before}", f"{after}\n\n</details>"
        return f"{self.head}\n\n{before}" if self.head else before, after


def _among(removed: int) -> str:
    return f", {removed} of them {'a deletion' if removed == 1 else 'deletions'}" if removed else ""


def _section(each: TargetPreview, *, folds: bool) -> _Section:
    head = f"#### `{each.target}`\n\n{' · '.join(_remarks(each))}"
    return _Section(head, [*_lines(each)] or [_Line("Nothing to change.")], folds, each.target, _brief(each))


def _brief(each: TargetPreview) -> str:
    """Return a target's plan as one short line."""
    what = "can't be planned" if each.preview is None else counted(_totals([each])) if _totals([each]) else "nothing to change"
    refused = f"a run would refuse {many(len(each.problems), 'object')}" if each.preview and each.problems else ""
    held = "would wait for approval" if each.plan and each.plan.hold else ""
    return f"- `{each.target}`: {'; '.join(filter(None, (what, held, refused)))}"


def _rank(each: TargetPreview) -> _Rank:
    if each.plan and (each.plan.hold or each.plan.lost or any(change.removes for change in each.plan.changes)):
        return _Rank.DANGER
    return _Rank.MISTAKE if each.problems or each.preview is None else _Rank.REST


def _remarks(each: TargetPreview) -> Iterator[str]:
    """Yield what a target's plan is: judged by the server or not, and what isn't compared."""
    if each.preview is None:
        yield "**can't be planned**"
        return
    if each.problems:
        yield f"**a run would refuse {many(len(each.problems), 'object')}**"
    if each.plan and each.plan.hold:
        yield "**would wait for approval**"
    if not each.preview.judged:
        yield "not judged by the server"
    elif each.preview.apart:
        yield f"judged by the server, but for {many(each.preview.apart, 'object')} that it wasn't asked about"
    else:
        yield "judged by the server"
    yield from each.notes


def _lines(each: TargetPreview) -> Iterator[_Line]:
    """Yield all lines of a target's plan: what would hold it, what goes away, mistakes, the rest."""
    plan = each.plan
    holds = plan.hold.reasons if plan and plan.hold else ()
    lost = [Change(_gone_by(gone), gone.identity, reason=gone.why) for gone in plan.lost] if plan else []
    changes = sorted((*_told(plan), *lost), key=lambda change: (_SIGNS[change.action][1], change.identity)) if plan else []
    mine = each.mine | {gone.identity for gone in plan.lost if gone.by in each.mine} if plan else each.mine
    yield from (_Line(f"! {reason}", _Rank.DANGER) for reason in holds)
    yield from _changes([change for change in changes if change.removes], mine, _Rank.DANGER)
    yield from (_Line(str(problem), _Rank.MISTAKE) for problem in each.problems)
    yield from _changes([change for change in changes if not change.removes], mine, _Rank.REST)
    if plan:
        yield from (_Line(f"> {due.group}: {due.action} {due.identity}") for due in plan.due)
        yield from (_Line(f"# {note}") for note in plan.notes)


def _gone_by(gone: Gone) -> Action:
    return Action.RECREATE if gone.returns else Action.PRUNE


def _changes(changes: Sequence[Change], mine: Collection[Identity], rank: _Rank) -> Iterator[_Line]:
    """Yield the pull request's own changes, then those of others, apart."""
    others = [change for change in changes if change.identity not in mine]
    for change in changes:
        if change.identity in mine:
            yield from _change(change, rank)
    if others:
        yield _Line(_OTHERS, rank)
        for change in others:
            yield from _change(change, rank)


def _told(plan: Plan) -> Iterator[Change]:
    """Yield the changes that are shown: what is written, and what is left though it isn't declared, or though it is."""
    for change in plan.changes:
        if change.writes or (change.action is Action.SKIP and (change.withheld or change.reason)):
            yield change


def _change(change: Change, rank: _Rank) -> Iterator[_Line]:
    why = f"  ({change.reason})" if change.reason and change.reason != "no longer declared" else ""
    place = f"  {change.manifest.place}" if change.manifest and change.manifest.place and change.writes else ""
    yield _Line(f"{_SIGNS[change.action][0]} {change.identity}{why}{place}", rank, removes=change.removes)
    fields = change.fields if change.action is not Action.CREATE else ()
    for each in sorted(fields, key=lambda each: bool(each.declared))[:_FIELDS]:
        yield _Line(f"    {_field(each)}", rank)
    if len(fields) > _FIELDS:
        yield _Line(f"    and {many(len(fields) - _FIELDS, 'field')} more", rank)


def _field(each: FieldChange) -> str:
    live, declared = _one_line(each.live) or "(none)", _one_line(each.declared) or "(removed)"
    return f"{each.path}: {live} → {declared}"


def _one_line(value: str) -> str:
    """Return a text as one line of bounded length, without what turns or breaks lines, nor many backticks in a row."""
    shown = printable(value.replace("\r", "").replace("\n", "⏎"), _LINE)
    return _TICKS.sub(lambda run: run.group() if len(run.group()) <= _MOST_TICKS else "`" * _MOST_TICKS + "…", shown)


def _inline(value: str) -> str:
    return value.replace("`", "'")


def _fitted(sections: Sequence[_Section], room: int) -> Iterator[str]:
    """Yield what is shown of all sections, with two characters before each part: all, or the most dangerous as far as there is room."""
    if sum(each.size(each.most) + 2 for each in sections) <= room:
        yield from (each.text(each.most) for each in sections)
        return
    layout = _Layout(sections, room - _AROUND_NAMES)
    names = sum(len(each.brief) + 1 for each in sections)
    layout.name(layout.room if names <= layout.room else layout.room // 2)
    for rank in _Rank:
        layout.show(rank)
    layout.name(layout.room)
    yield from layout.parts()


@dataclass(slots=True)
class _Layout:
    """What is shown of sections for which there isn't room: of the first some lines, then names; the last are only counted."""

    sections: Sequence[_Section]
    room: int
    _lines: dict[int, int] = field(default_factory=dict)  # that are shown, by the section's place
    _named: int = 0  # so many sections are named or shown

    def name(self, room: int) -> None:
        """Name sections that aren't yet, as far as this room goes."""
        for each in self.sections[self._named :]:
            cost = len(each.brief) + 1
            if cost > room:
                break
            self._named, self.room, room = self._named + 1, self.room - cost, room - cost

    def show(self, rank: _Rank) -> None:
        """Show the lines up to this rank of the named sections, one after the other, while there is room."""
        for place, each in enumerate(self.sections[: self._named]):
            before = self._lines.get(place, 0)
            free = self.room + (each.size(before) + 2 if before else len(each.brief) + 1)
            number = each.fitting(free - 2, each.until(rank))
            if number > before:
                self._lines[place], self.room = number, free - each.size(number) - 2

    def parts(self) -> Iterator[str]:
        """Yield what is shown."""
        yield from (self.sections[place].text(number) for place, number in sorted(self._lines.items()))
        names = [each.brief for place, each in enumerate(self.sections[: self._named]) if place not in self._lines]
        counted_only = self.sections[self._named :]
        if counted_only:
            removed = sum(each.removed for each in counted_only)
            among = f" with {many(removed, 'deletion')}" if removed else ""
            names.append(f"- … and {many(len(counted_only), 'target')} more{among}")
        if names:
            yield f"{_CROWDED}\n\n" + "\n".join(names)
