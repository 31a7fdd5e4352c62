"""The pages of the repository: their code blocks and the spans of code in their prose."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("**/*.md"))]
"""Every page that people read."""


FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


SPAN = re.compile(r"``\s?(.+?)\s?``|`([^`\n]+)`")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    return [text for found, text in FENCE.findall(path.read_text()) if found == language]


def spans(text: str) -> list[str]:
    return [one or other for one, other in SPAN.findall(FENCE.sub("", text))]
