"""What the pages quote is what the code says: refusals with their ways out, and the door's answers."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache

from infra.house.advice import HOLE
from infra.house.pages import DOCS, blocks, name, spans
from infra.house.sources import Fault, Source

WORDS = 9  # letters that a message must have besides its values to count as one
ROWS = 35  # of refusals, at least
COMMANDS = "handler/cli/group.py"
Parts = tuple[str | None, ...]
"""A text in parts; None is a value."""


class Said:
    """The texts of the code."""

    def __init__(self, handler: Sequence[Source]) -> None:
        texts = {tuple(_parts(node)) for source in handler for node in source.of(ast.JoinedStr, ast.Constant)}
        long = [parts for parts in texts if sum(map(str.isalpha, "".join(part or "" for part in parts))) >= WORDS]
        self._whole = {parts[0] for parts in long if len(parts) == 1}
        self._filled = [(max((part for part in parts if part), key=len), parts) for parts in long if len(parts) > 1]

    def has(self, text: str) -> bool:
        """Tell whether the code has this text, after whatever names subject and place; what is filled in may be anything."""
        if text in self._whole or any(text[found.end() :] in self._whole for found in re.finditer(": ", text)):
            return True
        likely = (parts for longest, parts in self._filled if longest in text and all(part in text for part in parts if part))
        return any(_pattern(parts).fullmatch(text) for parts in likely)


def of_pages(handler: Sequence[Source]) -> Iterator[Fault]:
    """Yield the quotations that the code doesn't say."""
    said = Said(handler)
    page = DOCS / "refusals.md"
    command = re.compile(rf"(?:^|[\s:\[(/])anneal +((?:{'|'.join(_commands(handler))})\b.*)")
    found = [(number, line) for number, line in enumerate(page.read_text().splitlines(), 1) if re.match(r"\| (?!what, and why|---)", line)]
    if len(found) < ROWS:
        yield Fault(name(page), 1, f"{len(found)} rows of refusals are found, at least {ROWS} were there: keep the form of its tables")
    for number, line in found:
        _, message, way_out = (cell.strip() for cell in line.strip("|").split(" | ")[:3])
        if not spans(message):
            yield Fault(name(page), number, "this row quotes no message: give it in backticks")
        for text in (*spans(message), *spans(way_out)):
            if not (said.has(text) or command.search(text) or text.startswith("anneal.dev/")):
                yield Fault(name(page), number, f"the code never says `{text}`: quote what it says now")
    yield from _answers(said)


def _answers(said: Said) -> Iterator[Fault]:
    """Yield the reasons in the door's answers of the page that the door doesn't give."""
    page = DOCS / "webhooks.md"
    answers = [json.loads(text) for text in blocks(page, "json")]
    reasons = [row["reason"] for answer in answers for row in (*answer["matched"], *answer["ignored"])]
    if not reasons:
        yield Fault(name(page), 1, "shows no answer with a reason: show one as JSON")
    for reason in reasons:
        if not said.has(reason):
            yield Fault(name(page), 1, f"the code never says `{reason}`: quote what it says now")


def _commands(handler: Sequence[Source]) -> list[str]:
    """Return the names of all commands, from the table that declares them."""
    (table,) = (node.value for each in handler if each.name == COMMANDS for node in each.of(ast.AnnAssign) if node.target.id == "COMMANDS")
    return list(ast.literal_eval(table))


def _parts(node: ast.JoinedStr | ast.Constant) -> Iterator[str | None]:
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            first, *rest = HOLE.split(part.value)[::2]
            yield first
            yield from (each for said in rest for each in (None, said))
        elif isinstance(part, ast.FormattedValue):
            yield None


@cache
def _pattern(parts: Parts) -> re.Pattern[str]:
    return re.compile("(?:.*: )?" + "".join(".*" if part is None else re.escape(part) for part in parts))
