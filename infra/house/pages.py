"""The pages of the repository: what they name exists, what they show can be read, and no host that is named is real."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

from infra.house.layers import LAYERS
from infra.house.sources import ROOT, Fault, line_at

DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("**/*.md"))]
"""Every page that people read."""
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"``\s?(.+?)\s?``|`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
IMAGE = re.compile(r'<(?:img|source)\b[^>]* src(?:set)?="([^"]+)"')
README_BYTES = 12_000  # at most
HOSTS = {
    *("github.com", "keepachangelog.com", "semver.org", "127.0.0.1"),
    *("token.actions.githubusercontent.com", "sqs.eu-central-1.amazonaws.com"),  # the signer of a release; the form of a queue's URL
    *("auth.docker.io", "pkg-containers.githubusercontent.com"),  # what must be listed beside well-known ones
}
MADE = {"infra/kubernetes/overlays/mine"}
"""Made by the operator, as a copy."""
HOME = ("pyproject.toml", ".github/ISSUE_TEMPLATE/config.yml", "docs/ci.md")
"""What names the home of the repository."""


def name(path: Path) -> str:
    """Return a path as it is named."""
    return str(path.relative_to(ROOT))


def blocks(path: Path, language: str) -> list[str]:
    """Return the blocks of code of a page that are of one language."""
    return [text for found, text in FENCE.findall(path.read_text()) if found == language]


def spans(text: str) -> list[str]:
    """Return the spans of code of a text."""
    return [one or other for one, other in SPAN.findall(FENCE.sub("", text))]


def unfenced(text: str) -> str:
    """Return a text with blank lines in place of its blocks of code."""
    return FENCE.sub(lambda block: "\n" * block.group().count("\n"), text)


def of_pages() -> Iterator[Fault]:
    """Yield what is wrong with each page, and with what is said in several places."""
    for path in PAGES:
        text = path.read_text()
        for offset, said in (*_blocks(text), *_names(path, text), *_links(path, text)):
            yield Fault(name(path), line_at(text, offset), said)
        if path.parent != ROOT and not re.match(r"# [^\n]+\n\nFor [^:\n]+: [^\n]+", text):
            yield Fault(name(path), 1, "a page begins with `# Title`, an empty line, and for whom it is: `For people who …: what`")
    yield from _whole()
    yield from _agreed()


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the blocks of YAML and JSON that can't be read, or are no mapping."""
    for block in FENCE.finditer(text):
        try:
            read = yaml.safe_load(block[2]) if block[1] == "yaml" else json.loads(block[2]) if block[1] == "json" else {}
        except (yaml.YAMLError, ValueError) as error:
            read = " ".join(str(error).split())
        if not isinstance(read, dict):
            yield block.start(), f"this {block[1]} can't be read as one mapping: {read}"


def _names(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield the scripts, paths and hosts that a page may not name; the changelog names what has moved."""
    for found in re.finditer(r"(?<!/)\bscripts/([a-z_]+)\b", text):
        if not (ROOT / found.group()).exists():
            yield found.start(), f"{found.group()} isn't there: name the one that is"
    for found in re.finditer(r"\b(?:handler|infra|tests)/[\w./-]*\w", text if path.name != "CHANGELOG.md" else ""):
        if found.group() not in MADE and not (ROOT / found.group()).exists():
            yield found.start(), f"{found.group()} isn't there: name where it is now"
    for found in re.finditer(r"https?://([A-Za-z0-9.-]+)", text):
        if found[1] not in HOSTS and not found[1].endswith(".example.com"):
            yield found.start(), f"{found[1]} is a real host: take one below example.com, or list it in HOSTS of infra/house/pages.py"


def _links(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield the links and pictures that lead nowhere inside the repository."""
    prose = unfenced(text)
    for found in (*LINK.finditer(prose), *IMAGE.finditer(prose)):
        place, _, anchor = found[1].partition("#")
        there = path.parent / place if place else path
        if found[1].startswith("https://"):
            continue
        if not there.exists():
            yield found.start(), f"the link to {found[1]} leads nowhere: name a file that is there"
        elif anchor and anchor not in _anchors(there):
            yield found.start(), f"{place or 'this page'} has no heading #{anchor}: name one that it has"


@cache
def _anchors(path: Path) -> set[str]:
    """Return the anchors of a text's headings, as git hosts make them, and those that it names itself."""
    text = FENCE.sub("", path.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    named = re.findall(r'^<a id="(\w+)"></a>$', text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}.union(named)


def _whole() -> Iterator[Fault]:
    """Yield pages that the index lacks, a README that is too long, and layers that CONTRIBUTING.md draws otherwise than they are."""
    index = DOCS / "README.md"
    linked = {(DOCS / link).resolve() for link in LINK.findall(index.read_text()) if "://" not in link}
    for path in PAGES:
        if path.parent != ROOT and path not in linked | {index}:
            yield Fault(name(index), 1, f"{name(path)} isn't linked: give it a line here")
    if (size := len((ROOT / "README.md").read_bytes())) > README_BYTES:
        yield Fault("README.md", 1, f"{size:,} bytes, at most {README_BYTES:,}: move what isn't essential to a page of docs")
    text = (ROOT / "CONTRIBUTING.md").read_text()
    before, mark, drawn = text.partition("<!-- layers -->\n\n```text\n")
    if tuple(set(line.split(", ")) for line in drawn.partition("```")[0].splitlines()) != LAYERS:
        yield Fault(
            "CONTRIBUTING.md", line_at(text, len(before + mark)), "these layers aren't those of infra/house/layers.py: make both one"
        )


def _agreed() -> Iterator[Fault]:
    """Yield where the home of the repository, or the version, is named otherwise than where it is given."""
    home = _one(r'(?m)^Repository = "(.+)"$', "pyproject.toml")
    version = _one(r'(?m)^__version__ = "(.+)"$', "handler/__init__.py")
    for place, wanted in (
        *((place, home) for place in HOME),
        (".github/ISSUE_TEMPLATE/config.yml", f"{home}/blob/main/SECURITY.md"),
        (".github/ISSUE_TEMPLATE/bug.yml", f"placeholder: anneal {version}\n"),
        ("SECURITY.md", f"newest minor version ({version.rpartition('.')[0]}.x)"),
    ):
        if wanted not in (ROOT / place).read_text():
            yield Fault(place, 1, f"doesn't say `{wanted.strip()}`, as pyproject.toml and handler/__init__.py have it: write it so")


def _one(pattern: str, place: str) -> str:
    (found,) = re.findall(pattern, (ROOT / place).read_text())
    return str(found)
