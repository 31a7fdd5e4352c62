"""What `scripts/demo --record` writes: the transcript, an asciinema cast of the same lines, and its animated picture.

All three come from one run. The cast's times are made to be read: what takes long is cut short, what comes at once is spread; how long
everything took really is said by the lines themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from infra.demo import svg
from infra.demo.narration import Said, normalised

TRANSCRIPT = Path("docs/demo-transcript.txt")
CAST = Path("docs/images/demo.cast")
PICTURE = Path("docs/images/demo.svg")
WRITTEN = (TRANSCRIPT, CAST, PICTURE)

ANSI = {"": "", "bold": "1", "bold cyan": "1;36", "bright_black": "90", "yellow": "33", "green": "32"}
"""How a terminal is asked for the narration's styles."""
LEAST = {"": 0.06, "bold": 0.28, "bold cyan": 0.6, "bright_black": 0.02, "yellow": 0.25, "green": 0.3}
"""Seconds that a line waits at least after the one before it, by its style."""
LONGEST = 0.6
HEADER = {"version": 2, "width": svg.COLUMNS, "height": svg.ROWS, "title": "scripts/demo"}


def save(said: Sequence[Said], known: Mapping[str, str], root: Path) -> list[Path]:
    """Write all three below `root`; `known` maps what differs from machine to machine to what stands for it."""
    cast = cast_of([Said(each.at, normalised(each.text, known), each.style) for each in said])
    texts = (transcript(cast), cast, svg.render(events(cast)))
    paths = [root / path for path in WRITTEN]
    for path, text in zip(paths, texts, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return paths


def cast_of(said: Sequence[Said]) -> str:
    """Return the lines as a cast, https://docs.asciinema.org/manual/asciicast/v2/."""
    lines: list[Any] = [HEADER]
    at = before = 0.0
    for each in said:
        at += min(max(each.at - before, LEAST[each.style]), LONGEST)
        before = each.at
        code = ANSI[each.style]
        text = f"\x1b[{code}m{each.text}\x1b[0m" if code and each.text else each.text
        lines.append([round(at, 3), "o", f"{text}\r\n"])
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def events(cast: str) -> Iterator[Said]:
    """Yield the lines of a cast that `cast_of` has written."""
    styles = {code: style for style, code in ANSI.items()}
    for line in cast.splitlines()[1:]:
        at, _, data = json.loads(line)
        found = re.fullmatch(r"(?:\x1b\[([\d;]+)m)?(.*?)(?:\x1b\[0m)?\r\n", data)
        if found is None:
            raise ValueError(f"not one of the narration's lines: {data!r}")
        yield Said(at, found[2], styles[found[1] or ""])


def transcript(cast: str) -> str:
    """Return the text of a cast."""
    return "".join(f"{each.text}\n" for each in events(cast))
