"""What `dependsOn` and `revision.promoted` of all targets must be together: configured names, of the same repository, and no circle.

`dependsOn` is judged on nodes, once all files are read: a circle names the line of each of its entries, in whichever file. A circle of
promotions may lead over `dependsOn`, too. Targets of another installation (`Promoted.is_elsewhere`) are judged by the runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import yaml

from handler.config.decode import nearest
from handler.config.setting_fault import Fault
from handler.config.settings import Settings, Target
from handler.config.value_formats import is_glob
from handler.config.yaml_nodes import ConfigMistakes, join, place, scalar

Entries = Mapping[str, Sequence[yaml.Node]]
"""Of each target its entries of `dependsOn`."""
Note = Callable[[str, Fault], None]  # takes a target's name, and what is wrong with its `promoted.from`


def note_mistakes(entries: Entries, mistakes: ConfigMistakes) -> None:
    """Note a name that is written twice, a target that waits for itself, and each circle; unknown names are the decoder's."""
    for target, nodes in entries.items():
        _note_repeated(target, nodes, mistakes)
    waits = {name: {scalar(node): node for node in nodes if scalar(node) in entries} for name, nodes in entries.items()}
    for names in circles(waits, lambda name, after: _position(waits[name][after])):
        found = [waits[name][after] for name, after in pairwise((*names, names[0]))]
        subject = join(f"targets[{names[0]}]", "dependsOn")
        if len(found) == 1:
            mistakes.add(found[0], subject, f"{names[0]} waits for itself", "remove the entry")
            continue
        shown = ", ".join(f"{each} waits for {scalar(node)} ({place(node)})" for each, node in zip(names, found, strict=True))
        mistakes.add(found[0], subject, f"targets wait for each other in a circle: {shown}", "remove one of these entries")


def _note_repeated(target: str, nodes: Sequence[yaml.Node], mistakes: ConfigMistakes) -> None:
    first: dict[str, yaml.Node] = {}
    for node in nodes:
        if first.setdefault(scalar(node), node) is not node:
            seen = f"{scalar(node)} is written twice, first at {place(first[scalar(node)])}"
            mistakes.add(node, join(f"targets[{target}]", "dependsOn"), seen, "remove the entry")


def circles(waits: Mapping[str, Collection[str]], rank: Callable[[str, str], Any]) -> Iterator[tuple[str, ...]]:
    """Yield circles until none is left, each from its step of the lowest rank on, which is looked at no more. `waits`: see `circle`."""
    left = {name: set(others) for name, others in waits.items()}
    while found := circle(left):
        first, _ = min(enumerate(pairwise((*found, found[0]))), key=lambda step: rank(*step[1]))
        names = (*found[first:], *found[:first])
        yield names
        left[names[0]].discard(names[1 % len(names)])


def circle(waits: Mapping[str, Collection[str]]) -> list[str]:
    """Return the names of one circle, each before the one that it waits for; empty: there is none. `waits`: for whom each waits."""
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]  # each before the one that waits for it, the first once more at the end
        return found[:0:-1]
    return []


def _position(node: yaml.Node) -> tuple[str, int, int]:
    mark = node.start_mark
    return mark.name, mark.line, mark.column


def promoters(settings: Settings, target: Target) -> tuple[str, ...]:
    """Return the names of the targets that prove commits for a target, each once; a glob never means the target itself."""
    promoted = target.revision.promoted
    if promoted is None:
        return ()
    globs = not promoted.is_elsewhere and any(map(is_glob, promoted.from_))
    known = tuple(each.name for each in settings.targets) if globs else ()
    found = (matched for name in promoted.from_ for matched in (_matched(name, known, target.name) if is_glob(name) else (name,)))
    return tuple(dict.fromkeys(found))


def followers(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return by target those that may have something to do once it records, or becomes healthy; what none follows isn't in it."""
    found: dict[str, list[str]] = defaultdict(list)
    for each in settings.targets:
        for name in promoters(settings, each) if each.revision.promoted and not each.revision.promoted.is_elsewhere else ():
            found[name].append(each.name)
    return {name: tuple(names) for name, names in found.items()}


def note_promotions(settings: Settings, note: Note) -> None:
    """Note names that aren't configured or match nothing, other repositories, and each circle."""
    followed = [each for each in settings.targets if each.revision.promoted and not each.revision.promoted.is_elsewhere]
    for target in followed:
        for fault in _faults(settings, target):
            note(target.name, fault)
    follows = {each.name: set(promoters(settings, each)) for each in followed}
    for found in _circles(follows, {each.name: set(each.depends_on) for each in settings.targets}):
        fix = "let one of them follow a branch"
        if any(name not in follows.get(before, ()) for before, name in pairwise((*found, found[0]))):
            fix = f"{fix}, or take one out of `dependsOn`"
        seen = f"targets wait for each other in a circle: {' → '.join((*found, found[0]))}"
        note(found[0], Fault("from", seen, fix, _entry(settings, found[0], found[1 % len(found)])))


def _faults(settings: Settings, target: Target) -> Iterator[Fault]:
    promoted = target.revision.promoted
    names = [each.name for each in settings.targets]
    for name in promoted.from_ if promoted else ():
        if is_glob(name):
            if not _matched(name, tuple(names), target.name):
                yield Fault("from", f"{name} matches no other target", nearest(name, names), (name,))
        elif name not in names:
            guess = nearest(name, names)
            elsewhere = "One of another installation needs `cluster`, `stateNamespace` or `installation` beside it"
            fix = f"{guess}{'' if guess.endswith('?') else '.'} {elsewhere}"
            yield Fault("from", f"{name} is not configured", fix, (name,))
    for other in filter(None, map(settings.target, promoters(settings, target))):
        if other.name != target.name and not other.repository.is_same(target.repository):
            seen = f"{other.name} is of another repository, {other.repository.url}: its commits are none of {target.repository.url}"
            fix = "name a target of the same repository, or add its URL to `repository.aliases`"
            yield Fault("from", seen, fix, _entry(settings, target.name, other.name))


def _entry(settings: Settings, name: str, promoter: str) -> tuple[str, ...]:
    """Return the entry of `from` by which a target follows another one; none: it is written otherwise."""
    target = settings.target(name)
    entries = target.revision.promoted.from_ if target and target.revision.promoted else ()
    return next(((each,) for each in entries if each == promoter or (is_glob(each) and fnmatchcase(promoter, each))), ())


def _circles(follows: Mapping[str, set[str]], depends: Mapping[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Yield circles in which one follows the next; those of `dependsOn` alone are noted by `note_mistakes`."""
    waits = {name: (others | follows.get(name, set())) & depends.keys() for name, others in depends.items()}
    for found in circles(waits, lambda name, after: (after not in follows.get(name, ()), name, after)):
        if found[1 % len(found)] in follows.get(found[0], ()):
            yield found


def _matched(glob: str, names: tuple[str, ...], own: str) -> tuple[str, ...]:
    return tuple(name for name in names if name != own and fnmatchcase(name, glob))
