"""What becomes of a field's text once its variables are written out: a text, or a number, true, false, null, as Flux makes it. Pure.

Flux writes variables into the YAML that kustomize prints, and reads that again. So a text that is printed there without quotes is read
anew: `replicas: ${N}` is a number, `"${quote}${N}${quote}"` a text. One that is printed in quotes or as a block stays a text.

Law: what comes out is one scalar, whatever a variable holds: where Flux' text would be a mapping, a list, an alias or a comment, it is the
text itself. Checked against Flux by the golden table in `tests/unit/render/variables`.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml._yaml import CParser

from handler.render import scalars
from handler.render.variables.expression_budget import ExpressionRefused

_QUOTED = re.compile(
    r"""\A(?:---|\.\.\.|[#,\[\]{}&*!|>'"%@`]|[?:-](?=\s|\Z)|\s)|:(?=\s|\Z)|\s\#|\s\Z|[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]"""
)
"""What go-yaml v2 finds in a text that it then prints in quotes (yaml_emitter_analyze_scalar)."""
_NO_BLOCK = re.compile(r"\s\n| \Z|[^\n\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd]")
_BREAK = re.compile(r"[\n\r\x85\u2028\u2029]")
_STRUCTURE = re.compile(r"\s*(?:[\[{&*|>@`%]|[-?](?:\s|\Z))")
_SIMPLE = re.compile(r"[A-Za-z0-9_./+-](?:[A-Za-z0-9_./+@%^=-]|:(?=[A-Za-z0-9_./]))*")
"""Texts that YAML reads as they stand."""
_BEFORE = 5  # events up to the value: of the stream, the document, the mapping, its key, and the value itself
_FIX = "close the quotes; of a text that begins with one, all is in quotes: ${quote}…${quote}, with substitute: {quote: '\"'}"


def read(source: str, made: str) -> scalars.Scalar:
    """Return what a field holds. `source`: its text as git has it; `made`: with the variables written out.

    Raises ExpressionRefused: it begins with a quote and isn't a text in quotes; ValueError, without the text: it is no number JSON has.
    """
    if "\n" in source:
        return made if _NO_BLOCK.search(source) else _chomped(source, made)
    if _QUOTED.search(source) or _BREAK.search(made):
        return made
    value = _plain(made)
    return scalars.number(value) if isinstance(value, float) else value


def _chomped(source: str, made: str) -> str:
    """Return a block of text as its last line breaks are read: those of `|-`, `|` or `|+`, whichever the source was printed as."""
    if source.endswith("\n\n"):
        return made
    text = made.rstrip("\n")
    return f"{text}\n" if source.endswith("\n") and text else text


def _plain(made: str) -> scalars.Scalar:
    if _SIMPLE.fullmatch(made):
        return scalars.plain(made)
    if _STRUCTURE.match(made):
        return made
    event = _scalar(made)
    if event is None:
        if made.lstrip()[:1] in ("'", '"'):
            raise ExpressionRefused("begins with a quote once its variables are written out, and isn't a text in quotes", _FIX)
        return made
    if event.tag is not None:
        return scalars.tagged(event.tag, event.value) if event.tag.startswith(scalars.CORE) else made
    return scalars.plain(event.value) if event.implicit[0] else str(event.value)


def _scalar(made: str) -> Any:
    """Return the event of the one scalar that a text is as the value of a key, or None: it is more, or something else, or can't be read."""
    text = f"k: {made}"
    try:
        parser = CParser(text)
        event: Any = [parser.get_event() for _ in range(_BEFORE)][-1]
        following = parser.get_event()
    except (yaml.YAMLError, ValueError):
        return None
    alone = type(event) is yaml.ScalarEvent and type(following) is yaml.MappingEndEvent and not event.anchor
    return event if alone and not text[event.end_mark.index :].strip() else None
