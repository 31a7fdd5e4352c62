"""What the forge and other machines run or show: pinned actions, scripts without GNU's tools, no credential, no path of a machine."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence

from infra.house.pages import name
from infra.house.sources import ROOT, Fault, Source, line_at

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OURS = "./.github/workflows/test.yml"
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
ON_MACOS = ("_env", "_python", "anneal", "test")
"""Scripts that macOS runs."""
RECORDED = ("docs/demo-transcript.txt", "docs/images/demo.cast", "docs/images/demo.svg")
ASKING = "handler/model/prctl.py"
"""The one module that asks for what only Linux has."""
# Assembled, so that this file doesn't hold what it looks for; before each what a text with it has in any case.
FORBIDDEN: dict[tuple[str, ...], str] = {
    ("AKIA",): "AKIA" + r"[0-9A-Z]{16}",
    tuple(f"gh{kind}_" for kind in "pousr"): "gh[pousr]_" + r"[A-Za-z0-9]{36}",
    ("glpat-",): "glpat-" + r"[\w-]{20}",
    ("PRIVATE KEY",): "-----BEGIN (RSA |EC |OPENSSH )?PRIVATE KEY-----" + r"\n[A-Za-z0-9+/=]{40}",
    ("/home/", "/Users/"): r"/(home|Users)/[a-z]+/",
    **{(f"/{place}/",): rf"(?<![\w.])/{place}/[a-z.]" for place in ("work", "root")},
}


def of_forge(handler: Sequence[Source]) -> Iterator[Fault]:
    """Yield what is wrong with workflows, the scripts of macOS, recordings, and with modules that macOS runs."""
    used: dict[str, str] = {}
    for path in WORKFLOWS:
        text = path.read_text()
        for found in re.finditer(r"uses: (.+)", text):
            action, _, commit = found[1].partition("@")
            if not found[1].startswith(OURS) and not PINNED.fullmatch(found[1]):
                yield Fault(name(path), line_at(text, found.start()), f"{action} isn't pinned: write OWNER/NAME@COMMIT # vX.Y.Z")
            elif commit and used.setdefault(action, commit.split()[0]) != commit.split()[0]:
                yield Fault(name(path), line_at(text, found.start()), f"{action} has another commit elsewhere: take the same one")
        for found in re.finditer(r"\bscripts/[a-z]+", text):
            if not os.access(ROOT / found.group(), os.X_OK):
                yield Fault(name(path), line_at(text, found.start()), f"{found.group()} isn't there, or no program: name one that is")
    yield from _scripts()
    yield from _recordings()
    for source in handler:
        yield from linux(source)
        for found in re.finditer(r"CDLL\(None\)\.\w+", source.text) if source.name != ASKING else ():
            yield Fault(source.name, line_at(source.text, found.start()), f"asks the C library for what Linux has: ask in {ASKING}")
        if source.name == ASKING and 'if sys.platform != "linux":' not in source.text:
            yield Fault(source.name, 1, 'doesn\'t look where it runs: begin with `if sys.platform != "linux":`')


def linux(source: Source) -> Iterator[Fault]:
    """Yield where a module that macOS runs reads what only Linux has, without a look."""
    found = re.search(r"\"/(?:proc|sys|dev/shm)\b", source.text)
    if found and not re.search(r"\.is_dir\(\)|os\.access\(", source.text):
        said = "only Linux has this directory: say what happens where there is none (`.is_dir()`, `os.access`)"
        yield Fault(source.name, line_at(source.text, found.start()), said)


def _scripts() -> Iterator[Fault]:
    for script in ON_MACOS:
        for number, line in enumerate((ROOT / "scripts" / script).read_text().splitlines(), 1):
            code = re.sub(r"(?:^|\s)#.*", "", line)
            found = re.search(r"\b(?:flock|sha256sum|mapfile|readarray)\b|\$\{\w+,,\}", code)
            if found and "command -v" not in code:
                yield Fault(f"scripts/{script}", number, f"macOS has no `{found.group()}`: ask `command -v` for it, or do without")


def _recordings() -> Iterator[Fault]:
    for place in RECORDED:
        text = (ROOT / place).read_text()
        for found in re.finditer(r"(?<![\w.~])/(?:root|home|tmp|work|var|opt|Users)/\S*|(?:127\.0\.0\.1|localhost):(\d+)", text):
            if found[1] not in ("3000", "8080"):
                yield Fault(place, line_at(text, found.start()), f"{found.group()} is of the machine that it ran on: scripts/demo --record")


def of_committed() -> Iterator[Fault]:
    """Yield the credentials, and the paths of a machine, that git has."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for listed_name in filter(None, listed.split("\0")):
        path = ROOT / listed_name
        text = path.read_text(errors="replace") if path.is_file() else ""
        for hints, pattern in FORBIDDEN.items():
            for found in re.finditer(pattern, text) if any(hint in text for hint in hints) else ():
                said = f"`{found.group()[:12]}…` is a credential, or a path of one machine: take it out, and replace one that was pushed"
                yield Fault(listed_name, line_at(text, found.start()), said)
