"""Settings that a target lacks, as one block to paste: all objects' needs united, for separate fixes would undo each other. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from handler.model.advice import advice, together
from handler.model.errors import Problem
from handler.model.instance import template_of
from handler.model.numbers import many

Values = tuple[str, ...]
UNOWNED = "unowned"  # what `adopt` says alone; naming a tool includes it
_SET = "set on target {text}: adopt: {yaml}"
_AS_IT_IS = "or take it over as it is: "
_AS_MEANT = "or, if it is meant: "
_LINES: Mapping[str, str] = {
    "namespaces": "add to target {text}: namespaces: {yaml}",
    "clusterScoped": "add to target {text}: clusterScoped: {yaml}",
    "adopt": "add to target {text}: adopt: {yaml}",
    "recreate.kinds": "add to target {text}: recreate: {kinds: {yaml}}",
    "prune.enabled": "set on target {text}: prune: {enabled: {yaml}}",
    "prune.allowEmpty": "add to target {text}: prune: {allowEmpty: {yaml}}",
}


@dataclass(frozen=True, slots=True)
class MissingSetting(Problem):
    """A refusal that other settings of a target would lift; without settings the cluster lacks something.

    `settings`: field (`recreate.kinds`) -> its whole value then; `more`: what else is to be done, or would do instead; `owners`: what
    `anneal adopt` would name to do once what `adopt` does in every run; `first`: the way out that comes before any setting; `joined`: the
    subjects of those that were put together.
    """

    target: str = ""
    settings: tuple[tuple[str, Values], ...] = ()
    more: tuple[str, ...] = ()
    owners: Values = ()
    first: str = ""
    joined: tuple[str, ...] = ()

    def subjects(self) -> tuple[str, ...]:
        """Return all that it is about."""
        return self.joined or (self.subject,)


def lacking(
    problem: Problem,
    target: str,
    settings: Mapping[str, Sequence[str]],
    more: Sequence[str] = (),
    fix: str = "",
    owners: Values = (),
) -> MissingSetting:
    """Make a refusal one of settings, with its way out. `fix`: the way out in other words; `owners`: see `MissingSetting`."""
    wanted = tuple((field, tuple(dict.fromkeys(values))) for field, values in settings.items())
    way_out = fix or together("; ", (block(target, dict(wanted)), _once(target, owners), *more))
    return MissingSetting(problem.subject, problem.message, problem.place, way_out, target, wanted, tuple(more), owners)


def adopting(problem: Problem, target: str, owners: Values, once: Values, more: Values = ()) -> MissingSetting:
    """Give a refusal that has its way out a second one: `adopt` names these owners, or `anneal adopt` those of `once`.

    `more`: what else is to be done, either way.
    """
    settings = {"adopt": owners}
    ways = (problem.fix, advice("{text}{text}", _AS_IT_IS, block(target, settings)), _once(target, once), *more)
    return replace(lacking(problem, target, settings, more, together("; ", ways), once), first=problem.fix)


def taking_over(target: str, owners: Iterable[str], approve: str = "") -> str:
    """Return the command that takes over once what these owners have. `approve`: the id of what it allows beside."""
    flags = [part for owner in owners for part in ("--from", owner)]
    return advice("anneal adopt {}{words}", target, [*flags, *(["--approve", approve] if approve else [])])


def approving(target: str, held: str, adopt: Sequence[str] = (), *, prune: bool = False) -> str:
    """Return the command that allows what is held under an id. `adopt`, `prune`: of the run that was held, see `RunOnce`."""
    if not (held.isascii() and held.isalnum()):  # a record's word, and no id: this shows what is held, and asks
        return advice("anneal approve {}", target)
    plain = advice("anneal prune {} --approve {}" if prune else "anneal approve {} {}", target, held)
    return taking_over(target, adopt, held) if adopt else plain


def _once(target: str, owners: Values, *, alone: bool = True) -> str:
    """Return the second way out. `alone`: nothing but `adopt` is lacking."""
    return advice("or once{text}: {text}", "" if alone else ", in the place of adopt", taking_over(target, owners)) if owners else ""


def block(target: str, settings: Mapping[str, Values]) -> str:
    """Return settings as they stand in anneal.yaml: one on its line, several as a block."""
    target = template_of(target)
    lines = [(line, _value(field, settings[field])) for field, line in _LINES.items() if field in settings]
    if len(lines) > 1:
        return together("\n  ", (f"add to target {target}:", *(advice(line.partition(": ")[2], value) for line, value in lines)))
    return together("", (advice(line if value != UNOWNED else _SET, target, value) for line, value in lines))


def _value(field: str, values: Values) -> object:
    named = [value for value in values if value != UNOWNED]
    return named == ["true"] if field.startswith("prune.") else named or (UNOWNED if field == "adopt" else [])


def resembling(problem: Problem, target: str, settings: Mapping[str, Sequence[str]]) -> MissingSetting:
    """Make a refusal one of settings that comes from a typing error more likely. Its own way out, which corrects that, is the first."""
    found = lacking(problem, target, settings)
    return replace(found, fix=together("; ", (problem.fix, advice("{text}{text}", _AS_MEANT, found.fix))), first=problem.fix)


def joined(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems with those of settings put together: a line for each reason, and the block after all of them."""
    found = list(problems)
    groups: dict[tuple[str, str], list[MissingSetting]] = {}
    for each in found:
        if isinstance(each, MissingSetting):
            groups.setdefault((each.target, each.message), []).append(each)
    others = [each for each in found if not isinstance(each, MissingSetting)]
    targets = dict.fromkeys(target for target, _ in groups)
    return (*others, *(line for target in targets for line in _told([group for key, group in groups.items() if key[0] == target])))


def _told(groups: Sequence[Sequence[MissingSetting]]) -> list[Problem]:
    united = [_united(group) for group in groups]
    wanting = [each for each in united if each.settings]
    if len(wanting) < 2:
        return [*united]
    whole = _united(wanting)
    seen = f"{many(sum(len(group) for group in groups if group[0].settings), 'object')} need what it doesn't allow"
    end = replace(whole, subject=f"target {whole.target}", message=seen, place="", joined=())
    return [*(replace(each, fix="", settings=()) if each.settings else each for each in united), end]


def _united(group: Sequence[MissingSetting]) -> MissingSetting:
    first = group[0]
    if len(group) == 1:
        return first
    settings: dict[str, Values] = {}
    for field, values in (one for each in group for one in each.settings):
        settings[field] = tuple(dict.fromkeys((*settings.get(field, ()), *values)))
    more = tuple(dict.fromkeys(line for each in group for line in each.more))
    owners = tuple(dict.fromkeys(owner for each in group for owner in each.owners))
    ways = [block(first.target, settings), _once(first.target, owners, alone=len(settings) == 1), *more]
    firsts = list(dict.fromkeys(each.first for each in group if each.first))
    if all(each.first for each in group):
        ways = [*firsts, advice("{text}{text}", _AS_IT_IS if "adopt" in settings else _AS_MEANT, ways[0]), *ways[1:]]
    else:
        ways += [advice("or {text}", each) for each in firsts]
    fix = together("\n", ways)
    subject, subjects = f"{first.subject} and {len(group) - 1} more", tuple(each.subject for each in group)
    wanted = tuple(settings.items())
    return replace(first, subject=subject, fix=fix, settings=wanted, more=more, owners=owners, joined=subjects)
