"""What `dependsOn` of all targets must be together: configured names, each once, and no circle.

It is judged on nodes, once all files are read: a circle names the line of each of its entries, in whichever file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

import yaml

from handler.config.yaml_nodes import ConfigMistakes, join, place, scalar

Entries = Mapping[str, Sequence[yaml.Node]]
"""Of each target its entries of `dependsOn`."""


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
