"""YAML text becomes nodes that know their file and line. Scalars keep their text, so `1.10` is never a float by accident.

Depth and size are bounded before anything recursive sees the text: libyaml's composer dies on deep nesting, and 300 bytes of
aliases expand to half a billion nodes.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from handler.model.errors import ConfigInvalid, Problem

MAX_DEPTH = 32
MAX_NODES = 100_000
_LOADER = yaml.CSafeLoader  # the pure one names aliases and anchors in its errors: a secret that begins with * or & would show
_CORE = "tag:yaml.org,2002:"
_WORDS = {"str": "text", "int": "a number", "float": "a number", "bool": "true or false", "null": "nothing", "timestamp": "a date"}
_QUOTE = "quote a value that begins with one of * & ! % @ `"
ALTERNATIVES: tuple[tuple[frozenset[str], ...], ...] = (
    (frozenset({"branch"}), frozenset({"tag"}), frozenset({"semver"}), frozenset({"commit"})),
    (frozenset({"promoted"}), frozenset({"tag"}), frozenset({"semver"}), frozenset({"commit"})),
    (frozenset({"basic"}), frozenset({"ssh"}), frozenset({"githubApp"})),
    (frozenset({"token"}), frozenset({"githubApp"})),
    (frozenset({"env"}), frozenset({"file"})),
    (frozenset({"kubeconfig", "context"}), frozenset({"inCluster"})),
)
"""Keys that exclude each other: writing one in a target drops the others that `defaults` wrote."""


@dataclass(slots=True)
class ConfigMistakes:
    """Every mistake found so far, each once, however often `defaults` brings it up. `main`: the file that is reported first."""

    main: str
    found: dict[tuple[str, int, int, str, str], Problem] = field(default_factory=dict)

    def add(self, node: yaml.Node, subject: str, message: str, fix: str = "") -> None:
        """Note what is wrong with a node; the subject is its path, e.g. `targets[shop].revision`."""
        mark = node.start_mark
        problem = Problem(subject or "configuration", message, place(node), fix)
        self.found.setdefault((mark.name, mark.line, mark.column, subject.rpartition(".")[2], message), problem)

    def take(self, error: ConfigInvalid) -> None:
        """Note the problems of a file that couldn't be read at all."""
        for problem in error.problems:
            file, _, line = problem.place.rpartition(":")
            self.found.setdefault((file, int(line), 0, problem.subject, problem.message), problem)

    def settle(self) -> None:
        """Raise ConfigInvalid with every mistake, by file and line; do nothing if there is none."""
        if self.found:
            raise ConfigInvalid(*(self.found[key] for key in sorted(self.found, key=lambda key: (key[0] != self.main, key))))


class _Text(io.StringIO):
    """Text with the name that marks carry."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self.name = name


def place(node: yaml.Node) -> str:
    """Where a node begins, as file:line."""
    return f"{node.start_mark.name}:{node.start_mark.line + 1}"


def compose(text: str, file: str) -> yaml.Node:
    """Read one YAML document into nodes. Raises ConfigInvalid: no YAML, empty, deeper or larger (aliases expanded) than it may be."""
    try:
        _bound(yaml.parse(_Text(text, file), Loader=_LOADER), file)
        node = yaml.compose(_Text(text, file), Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        raise _unreadable(error, file) from None
    except (yaml.YAMLError, UnicodeError):
        raise ConfigInvalid.of("YAML", "expected UTF-8 text, found a character that YAML doesn't allow", place=f"{file}:1") from None
    if node is None:
        raise ConfigInvalid.of("YAML", "expected a mapping, found an empty file", place=f"{file}:1")
    _measure(node, 1, {})
    return node


def _unreadable(error: yaml.MarkedYAMLError, file: str) -> ConfigInvalid:
    said = ", ".join(part for part in (error.context, error.problem) if part)
    fix = _QUOTE if any(word in said for word in ("alias", "anchor", "tag", "token", "directive")) else ""
    return ConfigInvalid.of("YAML", said, place=f"{file}:{_line(error.problem_mark or error.context_mark)}", fix=fix)


def _line(mark: Any) -> int:
    return mark.line + 1 if mark else 1


def _bound(events: Iterable[yaml.Event], file: str) -> None:
    """Walk the flat event stream, which no nesting can hurt, and refuse what the composer shouldn't see."""
    depth = 0
    for count, event in enumerate(events):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or count > 2 * MAX_NODES:
            raise _too_much("deeper" if depth > MAX_DEPTH else "larger", f"{file}:{_line(event.start_mark)}")


def _too_much(how: str, where: str) -> ConfigInvalid:
    limit = f"{MAX_DEPTH} levels" if how == "deeper" else f"{MAX_NODES} values, aliases expanded"
    return ConfigInvalid.of("YAML", f"{how} than a configuration may be ({limit})", place=where)


def _measure(node: yaml.Node, depth: int, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return (height, nodes) of a node with its aliases expanded; each shared node is walked once."""
    if depth > MAX_DEPTH:
        raise _too_much("deeper", place(node))
    if id(node) not in known:
        sizes = [_measure(child, depth + 1, known) for child in children(node)]
        known[id(node)] = (1 + max((height for height, _ in sizes), default=0), 1 + sum(size for _, size in sizes))
    height, size = known[id(node)]
    if depth + height - 1 > MAX_DEPTH or size > MAX_NODES:
        raise _too_much("deeper" if depth + height - 1 > MAX_DEPTH else "larger", place(node))
    return height, size


def children(node: yaml.Node) -> list[yaml.Node]:
    """Return the nodes right below a list or mapping."""
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def word(node: yaml.Node) -> str:
    """Name what a node is: `a mapping`, `a list`, `text`, `a number`, or `a tag`."""
    kind = node.tag.removeprefix(_CORE)
    if isinstance(node, yaml.ScalarNode):
        return _WORDS.get(kind, "a tag")
    plain, name = ("map", "a mapping") if isinstance(node, yaml.MappingNode) else ("seq", "a list")
    return name if kind == plain else "a tag"


def scalar(node: yaml.Node | None) -> str:
    """Return a scalar's text, empty for anything else."""
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def pairs(node: yaml.Node, subject: str, mistakes: ConfigMistakes) -> dict[str, tuple[yaml.Node, yaml.Node]] | None:
    """Return a mapping's keys with their (key, value) nodes, None if it isn't one; keys written twice are mistakes."""
    if word(node) != "a mapping":
        mistakes.add(node, subject, f"expected a mapping, found {word(node)}", _QUOTE if word(node) == "a tag" else "")
        return None
    found: dict[str, tuple[yaml.Node, yaml.Node]] = {}
    for key, value in node.value:
        name = scalar(key)
        if not isinstance(key, yaml.ScalarNode):
            mistakes.add(key, subject, f"expected a name as key, found {word(key)}")
        elif name in found:
            mistakes.add(key, join(subject, name), f"written twice, first in line {found[name][0].start_mark.line + 1}")
        else:
            found[name] = (key, value)
    return found


def join(subject: str, key: str) -> str:
    """Write a path: `targets[shop].revision`."""
    return f"{subject}.{key}" if subject else key


def merged(base: yaml.Node, over: yaml.Node) -> yaml.Node:
    """Lay `over` on `base`: mappings are merged at every depth, anything else is replaced."""
    if not (isinstance(base, yaml.MappingNode) and isinstance(over, yaml.MappingNode)):
        return over
    below = {scalar(key): value for key, value in base.value}
    written = {scalar(key) for key, _ in over.value}
    laid = [(key, merged(below[scalar(key)], value) if scalar(key) in below else value) for key, value in over.value]
    kept = [(key, value) for key, value in base.value if scalar(key) not in written and not excluded(scalar(key), written)]
    return yaml.MappingNode(over.tag, laid + kept, over.start_mark, over.end_mark)


def excluded(key: str, written: Collection[str]) -> bool:
    """Whether a key is an alternative to one that is written."""
    groups = (group for group in ALTERNATIVES if any(key in option for option in group))
    return any(not option.isdisjoint(written) for group in groups for option in group if key not in option)
