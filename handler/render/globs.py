"""Globs of paths and `.annealignore`, in gitignore's syntax (gitignore(5), wildmatch).

Law: pure, and linear: the patterns come from the repository and run in the worker, so a star never backtracks (atomic groups) and `**`
is a table walk, not a recursion. A segment is what stands between slashes; no wildcard but `**` reaches beyond one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_ANY = re.compile(r".*", re.DOTALL)
_NEVER = r"(?!)"
_ESCAPED_SLASH = re.compile(r"(?<=[^\\])((?:\\\\)*)\\/")
_POSIX = re.compile(r"\[:([a-z]+):\]")


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern for whole paths. A None among `segments` is `**`: any number of segments, at the end at least one."""

    segments: tuple[re.Pattern[str] | None, ...]

    @classmethod
    def of(cls, text: str) -> Glob:
        """Read `**/*.yaml`, `crds/` (everything below), `[a-c]*/x.json`; `/` at the start says nothing more."""
        plain = _ESCAPED_SLASH.sub(r"\1/", text)
        parts = (plain + "**" if plain.endswith("/") else plain).removeprefix("/").split("/")
        return cls(tuple(None if len(part) > 1 and not part.strip("*") else _segment(part) for part in parts))

    def matches(self, parts: Sequence[str]) -> bool:
        """Whether the whole path, given as its segments, is meant."""
        reached = {0}  # how many segments of the pattern may be used up; one round for each segment of the path
        for part in parts:
            reached = {after for at in self._skipped(reached) for after in self._step(at, part)}
            if not reached:
                return False
        return len(self.segments) in reached or (len(self.segments) in self._skipped(reached) and self.segments[-1] is not None)

    def _skipped(self, reached: set[int]) -> set[int]:
        """`**` may stand for nothing."""
        skipped = set(reached)
        for at in sorted(reached):
            ahead = at
            while ahead < len(self.segments) and self.segments[ahead] is None:
                ahead += 1
                skipped.add(ahead)
        return skipped

    def _step(self, at: int, part: str) -> tuple[int, ...]:
        if at == len(self.segments):
            return ()
        segment = self.segments[at]
        if segment is None:
            return (at, at + 1) if at + 1 == len(self.segments) else (at,)
        return (at + 1,) if segment.fullmatch(part) else ()


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files are rendered: `include` and not `exclude`; an exclude that names a directory leaves out what is below it."""

    include: tuple[Glob, ...]
    exclude: tuple[Glob, ...]

    @classmethod
    def of(cls, include: Sequence[str], exclude: Sequence[str]) -> Selection:
        """Read the globs of a target."""
        return cls(tuple(map(Glob.of, include)), tuple(map(Glob.of, exclude)))

    def takes(self, path: str) -> bool:
        """Whether a file, by its path below the target's, is rendered."""
        parts = path.split("/")
        return any(glob.matches(parts) for glob in self.include) and not self.excludes(path)

    def excludes(self, path: str) -> bool:
        """Whether a file, or a directory above it, is left out by name."""
        parts = path.split("/")
        above = [parts[:count] for count in range(1, len(parts) + 1)]
        return any(glob.matches(some) for glob in self.exclude for some in above)


@dataclass(frozen=True, slots=True)
class IgnoreLine:
    """A line of an ignore file. `negated`: it takes back; `directories`: it means nothing else."""

    glob: Glob
    negated: bool
    directories: bool


def ignore_rules(text: str) -> tuple[IgnoreLine, ...]:
    """Read an ignore file: gitignore's comments, escapes, `!`, and trailing slashes and spaces."""
    return tuple(rule for line in text.splitlines() if (rule := _rule(line)))


def ignored(path: str, rules: Mapping[str, tuple[IgnoreLine, ...]], *, directory: bool = False) -> bool:
    """Whether a path is ignored by itself: the deepest ignore file decides, in it the last line. What is above it is the caller's to ask.

    `rules`: directory (the root is empty) -> the rules written there.
    """
    parts = path.split("/")
    for depth in range(len(parts) - 1, -1, -1):
        for rule in reversed(rules.get("/".join(parts[:depth]), ())):
            if (directory or not rule.directories) and rule.glob.matches(parts[depth:]):
                return not rule.negated
    return False


def _rule(line: str) -> IgnoreLine | None:
    text = _without_spaces(line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    directories, text = text.endswith("/"), text.removesuffix("/")
    if not text or text.endswith("/"):
        return None
    anchored = "/" in text
    return IgnoreLine(Glob.of(text if anchored else f"**/{text}"), negated, directories)


def _without_spaces(line: str) -> str:
    text = line.rstrip(" ")
    escaped = (len(text) - len(text.rstrip("\\"))) % 2 and len(text) < len(line)
    return text + " " if escaped else text


def _segment(text: str) -> re.Pattern[str]:
    """Compile one segment. Each piece between stars is looked for once, leftmost: that is enough, and linear."""
    pieces = [""]
    at = 0
    while at < len(text):
        if text[at] == "*":
            pieces.append("")
            at += 1
            continue
        piece, at = _letter(text, at)
        pieces[-1] += piece
    if pieces == ["", ""]:
        return _ANY
    head, *middle = pieces
    tail = f".*{middle.pop()}" if middle else ""
    return re.compile(head + "".join(f"(?>.*?{piece})" for piece in middle if piece) + tail, re.DOTALL)


def _letter(text: str, at: int) -> tuple[str, int]:
    letter = text[at]
    if letter == "?":
        return ".", at + 1
    if letter == "\\":
        return (re.escape(text[at + 1]), at + 2) if at + 1 < len(text) else (_NEVER, at + 1)
    if letter == "[":
        return _bracket(text, at + 1)
    return re.escape(letter), at + 1


def _bracket(text: str, at: int) -> tuple[str, int]:
    """Read `[a-z]`, `[!a]`, `[^a]`, `[]a]`, `[[:digit:]]`; unfinished or of an unknown class it matches nothing, as in git."""
    negated = text[at : at + 1] in ("!", "^")
    start = at = at + negated
    members: list[str] = []
    while at < len(text) and (text[at] != "]" or at == start):
        posix = _POSIX.match(text, at)
        if posix:
            if posix[1] not in _CLASSES:
                return _NEVER, len(text)
            members.append(_CLASSES[posix[1]])
            at = posix.end()
            continue
        low, at = _member(text, at)
        high = low
        if text[at : at + 1] == "-" and text[at + 1 : at + 2] not in ("", "]"):
            high, at = _member(text, at + 1)
        members.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low))
    if at >= len(text):
        return _NEVER, len(text)
    return f"[{'^' if negated else ''}{''.join(members)}]", at + 1


def _member(text: str, at: int) -> tuple[str, int]:
    if text[at] == "\\" and at + 1 < len(text):
        return text[at + 1], at + 2
    return text[at], at + 1
