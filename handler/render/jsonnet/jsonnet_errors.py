"""What an engine says of a program that failed -> one problem at the innermost line of the commit. Pure, in the child.

    RUNTIME ERROR: no such region
    <tab>lib/web.libsonnet:2:3-19<tab>function <web>
    <tab>Field "api"                                     the program's alone
    → lib/web.libsonnet:2:3: $.api: no such region

Law: nothing of this machine's paths is left, and a message that imitates frames misplaces only itself.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from handler.model.advice import advice
from handler.model.errors import Problem
from handler.model.quotation import quoted
from handler.model.tree import MAX_PATH, printable

MOST = 600  # letters of a message: the cause stands first
_MOST_LINES = 2_000
_MOST_TEXT = 1 << 20

_FRAME = re.compile(r"\t(?P<path>[^\t]+?):\(?(?P<line>\d+):(?P<column>\d+)\)?(?:-\S+)?(?::? .*|:?\t.*|:)?")
_FIELD = re.compile(r"\tField \"(?P<name>.*)\"\t?|\tArray element (?P<index>\d+)\t?")
_STATIC = re.compile(r"(?P<path>[^\s:]+):\(?(?P<line>\d+):(?P<column>\d+)\)?(?:-\S+)?:? (?P<message>.*)", re.DOTALL)
_PREFIX = re.compile(r"\A(?:RUNTIME|STATIC) ERROR: ")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FASTER = "install `jsonnet` where programs have their walls, or set `sandbox: weak` where they haven't (docs/renderers.md, The engines)"
NO_YAML = "std.parseYaml is refused, for the library in C++ reads YAML otherwise: `*alias`, `0x1f`, `yes`"
NOT_FOUND = re.compile(r"couldn't open import \"(?P<text>.*?)\": no match locally or in the Jsonnet library paths", re.DOTALL)
_RULES: tuple[tuple[str, str, str], ...] = (
    (r"max stack frames exceeded\.?", "recurses deeper than 500 calls", "let the recursion end"),
    (r"runtime: goroutine stack exceeds .*", "recurses or nests too deep", "let the recursion end"),
    (
        r"[Uu]ndefined external variable: (?P<name>.*)",
        "external variable {name} isn't set",
        "write it for the target: renderer: {type: jsonnet, extVars: {{yaml}: …}}",
    ),
    (
        r"(?:Missing argument: |function parameter )(?P<name>\w+)(?: not bound in call\.)?",
        "argument {name} isn't given",
        "an argument of the program itself is written for the target: renderer: {type: jsonnet, topLevelArguments: {{yaml}: …}}",
    ),
    (
        r"(?P<why>only functions can be called, got null|Unexpected type null, expected function)",
        "{why}",
        "where it calls std.native: there are no native functions here; commit what one would make",
    ),
    (
        r"[Cc]omputed imports are not allowed.*",
        "an import is computed",
        "write the path as one literal: import 'lib/web.libsonnet'",
    ),
    (re.escape(NO_YAML), NO_YAML, FASTER),
    (
        r"couldn't manifest function (?:as JSON|in JSON output).*",
        "is a function, which can't be an object",
        "call it, or hide the field: name:: function…",
    ),
)
"""Messages that are known, what each becomes, with its groups, and the way out."""


@dataclass(frozen=True, slots=True)
class _Said:
    """The parts of what an engine said. `frames`: (path, line, column), the innermost first; `fields`: of the output."""

    message: str
    frames: tuple[tuple[str, str, str], ...]
    fields: tuple[str | int, ...]


def explain(
    said: str, entrypoint: str, files: Collection[str], missing: Mapping[tuple[str, str], Problem] | None = None, before: int = 0
) -> Problem:
    """Return the problem that an engine's error names.

    `files`: those of the commit; `missing`: imports that aren't there (Go's alone); `before`: letters that stand before each first line.
    """
    parts = _parts(said[:_MOST_TEXT])
    path, line, column = next((frame for frame in parts.frames if frame[0] in files), (entrypoint, "", ""))
    if absent := NOT_FOUND.fullmatch(parts.message):
        known = (missing or {}).get((posixpath.dirname(path), absent["text"]))
        if known:
            return known
    if line == "1" and int(column) > before:
        column = str(int(column) - before)
    message, fix = _explained(parts.message)
    shown = printable(path, MAX_PATH)
    place = f"{shown}:{line}:{column}" if line else shown
    subject = pointer(parts.fields) if parts.fields else shown
    return Problem(printable(subject), message or "failed and said nothing", place, fix)


def _explained(message: str) -> tuple[str, str]:
    for pattern, seen, fix in _RULES:
        if found := re.fullmatch(pattern, message, re.DOTALL):
            groups = {name: printable(value or "", 80) for name, value in found.groupdict().items()}
            return seen.format(**groups), advice(fix, *(found.groups() if "{yaml}" in fix else ()))
    return quoted(" ".join(message.split()), MOST), ""


def _parts(said: str) -> _Said:
    lines = said.strip("\n").split("\n")[:_MOST_LINES]
    head: list[str] = []
    frames: list[tuple[str, str, str]] = []
    fields: list[str | int] = []
    for line in lines:
        if field := _FIELD.fullmatch(line):
            fields.append(int(field["index"]) if field["index"] else field["name"])
        elif frame := _FRAME.fullmatch(line):
            frames.append((frame["path"], frame["line"], frame["column"]))
        elif not frames and not fields and not line.startswith("\t"):
            head.append(line)
    message = _PREFIX.sub("", "\n".join(_without_quote(head)).strip(), count=1)
    if static := _STATIC.fullmatch(message):
        frames.insert(0, (static["path"], static["line"], static["column"]))
        message = static["message"]
    return _Said(message, tuple(frames), tuple(reversed(fields)))


def _without_quote(head: list[str]) -> Iterator[str]:
    """Yield the lines of a message without those of the program, which Go shows after a blank one."""
    for number, line in enumerate(head):
        if number and not line and _STATIC.fullmatch(head[0]):
            return
        yield line


def pointer(steps: Collection[str | int]) -> str:
    """Return the path of a value in a program's output: `$.grafana.rules[0]`, `$["setup/0namespace"]`."""
    return "$" + "".join(map(_step, steps))


def _step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _WORD.fullmatch(step) else f'["{printable(step, 80)}"]'
