"""A conversion as a configuration: YAML whose comments say what became of each field, or all of it as JSON. Pure.

- `# set: …`: above the target that has the setting
- `# not taken over: …`: above the target that goes without; at the end where there is none
- `# by itself: …`: at the end, each reason once
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from handler.cli.importing.conversion import Conversion, text_of
from handler.cli.importing.custom_resource import ITSELF, LOST, SET, CustomResource, FieldNote
from handler.model.numbers import many
from handler.model.tree import printable

SUSPENDED = "; the target is suspended until that is settled"
_LINE = 4_000  # characters of one comment


def document(found: Conversion, alone: Mapping[str, int]) -> str:
    """Return the configuration as YAML with comments. `alone`: how many objects of other kinds were left alone."""
    settings = [target for target, _ in found.targets]
    text = iter(text_of(settings).splitlines(keepends=True))
    said: set[FieldNote] = set()
    heads = iter([list(_head(sources, said)) for _, sources in found.targets])
    lines = [f"# anneal import: {summary(found)}\n"]
    for line in text:
        if line.startswith("  - name: "):
            lines += [f"  # {each}\n" for each in next(heads)]
        lines.append(line)
    lines += [f"# {each}\n" for each in _tail(found, said, alone)]
    return "".join(lines)


def facts(found: Conversion, alone: Mapping[str, int]) -> dict[str, Any]:
    """Return all of it as JSON."""
    notes = [note for each in found.resources for note in each.notes]
    return {
        "targets": [target for target, _ in found.targets],
        "set": [_fact(note) for note in notes if note.verdict == SET],
        "byItself": [_fact(note) for note in notes if note.verdict == ITSELF],
        "notTakenOver": [_fact(note) for note in notes if note.verdict == LOST],
        "leftAlone": dict(alone),
    }


def summary(found: Conversion) -> str:
    """Say what was made, and what has no counterpart, in one line."""
    lost = sum(note.verdict == LOST for each in found.resources for note in each.notes)
    paused = sum(bool(target.get("suspend")) for target, _ in found.targets)
    text = f"{many(len(found.targets), 'target')} from {many(len(found.resources), 'object')}"
    text += f"; {many(lost, 'field')} not taken over" if lost else ""
    return text + (f"; {many(paused, 'target')} suspended" if paused else "")


def _fact(note: FieldNote) -> dict[str, Any]:
    known = {"source": note.source, "field": note.field, "place": note.place, "setting": note.setting, "text": note.text}
    return {**{key: text for key, text in known.items() if text}, **({"suspends": True} if note.halts else {})}


def _head(sources: Iterable[CustomResource], said: set[FieldNote]) -> Iterator[str]:
    for source in sources:
        yield from (_set(note) for note in source.notes if note.verdict == SET)
    for source in sources:
        for note in source.notes:
            if note.verdict == LOST and note not in said:
                said.add(note)
                yield _lost(note)


def _tail(found: Conversion, said: set[FieldNote], alone: Mapping[str, int]) -> Iterator[str]:
    notes = [note for each in found.resources for note in each.notes]
    yield from (_lost(note) for note in notes if note.verdict == LOST and note not in said)
    reasons = Counter(note.text for note in notes if note.verdict == ITSELF)
    for reason in reasons:
        yield _line(f"by itself: {reason}")
        yield from (_line(f"  {_where(note)}") for note in notes if note.verdict == ITSELF and note.text == reason)
    if alone:
        yield _line("left alone, as other manifests: " + ", ".join(f"{count} {kind}" for kind, count in sorted(alone.items())))


def _set(note: FieldNote) -> str:
    return _line(f"set: {note.setting} from {_where(note)}" + (f": {note.text}" if note.text else ""))


def _lost(note: FieldNote) -> str:
    return _line(f"not taken over: {_where(note)}: {note.text}{SUSPENDED if note.halts else ''}")


def _where(note: FieldNote) -> str:
    return f"{note.source}{' ' if note.field else ''}{note.field} ({note.place})"


def _line(text: str) -> str:
    return printable(text, _LINE)
