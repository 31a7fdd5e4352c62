"""Ways out: commands to paste into a shell and settings to paste into YAML, in texts of ours. One function makes them. Pure.

Law: no other place puts a word that isn't a literal into a command or into YAML. What is completed by flags that hold credentials is found
in our own literals alone: in no word of git, of a server or of a record.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

_HOLE = re.compile(r"\{(|path|words|yaml|text)\}")
_BEHIND = re.compile(r" --?[\w-]+ \Z| -- |\S\Z")  # what a word stands behind that is no option for its dash
_UNPRINTED = re.compile(r"[^ \w./:=@%+,-]")
_BARE = re.compile(
    r"(?!(?i:n|y|null|true|false|yes|no|on|off)\Z)"
    r"(?:(?:[a-z]+://\w|[A-Za-z_/])[\w./@-]*(?::[A-Za-z0-9][\w./-]*)*(?: [A-Za-z0-9]+)*|[0-9]+(?:ms|[smhd]))",
    re.ASCII,
)


class Advice(str):
    """A text of ours with words of others in it. `pieces`: ours and theirs by turns, ours first. What else is made of it is plain text."""

    __slots__ = ("pieces",)
    pieces: tuple[str, ...]

    def __new__(cls, *pieces: str) -> Advice:
        """Put the pieces together."""
        made = super().__new__(cls, "".join(pieces))
        made.pieces = pieces
        return made

    def completed(self, complete: Callable[[str], str]) -> str:
        """Return the text with our pieces completed, and no word of others."""
        return "".join(piece if number % 2 else complete(piece) for number, piece in enumerate(self.pieces))


def advice(template: str, *values: object) -> str:
    """Return a text with its holes filled in; an Advice stands in any of them as it is.

    `{}`: a word of a shell; `{path}`: a path, which is no option; `{words}`: a word for each, after a space; `{yaml}`: a value as YAML on
    one line; `{text}`: what stands as it is.
    """
    first, *rest = _HOLE.split(template)
    pieces = [first]
    for hole, ours, value in zip(rest[::2], rest[1::2], values, strict=True):
        inner = value.pieces if isinstance(value, Advice) else ("", _SHOWN[hole](value), "")
        if not hole and inner[0] == "" and str(value).startswith("-") and not _BEHIND.search("".join(pieces)):
            inner = ("-- ", *inner[1:])
        pieces[-1:] = [pieces[-1] + inner[0], *inner[1:]]
        pieces[-1] += ours
    return Advice(*pieces)


def together(separator: str, parts: Iterable[str]) -> str:
    """Return the texts that aren't empty as one."""
    found = [part for part in parts if part]
    return advice(separator.join(["{text}"] * len(found)), *found)


def word(value: object) -> str:
    """Return one word of a shell: one line, without a backtick, which would end a code span, or a sign that hides or turns text."""
    text = str(value)
    if text.isprintable() and "`" not in text:
        return shlex.quote(text)
    return "$'" + _UNPRINTED.sub(lambda found: "".join(f"\\x{byte:02x}" for byte in _bytes(found.group())), text) + "'"


def flow(value: Any) -> str:
    """Return a value as YAML on one line, for a place in other YAML."""
    import yaml  # noqa: PLC0415 - only what fails needs it

    def dumped(*, unicode: bool) -> str:
        made = yaml.dump([value], Dumper=_dumper(), default_flow_style=True, width=math.inf, allow_unicode=unicode, sort_keys=False)
        return str(made).strip()[1:-1].replace("`", r"\x60")

    return shown if (shown := dumped(unicode=True)).isprintable() else dumped(unicode=False)


def _bytes(character: str) -> bytes:
    return bytes([ord(character) - 0xDC00]) if "\udc80" <= character <= "\udcff" else character.encode("utf-8", "surrogatepass")


def _path(value: object) -> str:
    text = str(value)
    return word(f"./{text}" if text.startswith("-") else text)


@cache
def _dumper() -> Any:
    import yaml  # noqa: PLC0415 - only what fails needs it

    class Dumper(yaml.SafeDumper):
        """Quotes each text that another reader of YAML might take for something else."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the library's
            return True

        def choose_scalar_style(self) -> Any:
            event: Any = self.event
            return "" if event.implicit[0] and _BARE.fullmatch(event.value) else super().choose_scalar_style()

    def text(dumper: Any, value: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", str(value), style=None if _BARE.fullmatch(value) else '"')

    Dumper.add_representer(str, text)
    Dumper.add_multi_representer(str, text)
    return Dumper


_SHOWN: Mapping[str, Callable[[Any], str]] = {
    "": word,
    "path": _path,
    "words": lambda values: "".join(f" {word(value)}" for value in values),
    "yaml": flow,
    "text": str,
}
