"""README is one screen of essentials: its size, its parts in their order, and what it shows of the demo."""

from __future__ import annotations

import re

from tests.repository.pages import DOCS, ROOT

README = ROOT / "README.md"
TEXT = README.read_text()
TRANSCRIPT = DOCS / "demo-transcript.txt"


def test_it_is_short() -> None:
    assert len(TEXT.encode()) <= 12_000


def told(line: str) -> str:
    """Return a line of the demo without what differs from one recording to the next: commits, ids, times, widths."""
    return re.sub(r"[\d.]+ m?s\b", "0 s", re.sub(r"\b[0-9a-f]{7,}\b", "id", " ".join(line.split())))


def test_what_the_readme_shows_of_the_demo_is_in_its_transcript() -> None:
    shown = TEXT.partition("<!-- demo transcript -->")[2].partition("<!-- end of demo transcript -->")[0]
    lines = [line for line in shown.splitlines() if line.strip() not in ("", "…", "```", "```text")]
    recorded = {told(line) for line in TRANSCRIPT.read_text().splitlines()}
    assert lines
    assert [line for line in lines if told(line) not in recorded] == []
