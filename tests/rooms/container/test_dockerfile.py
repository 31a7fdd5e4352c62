"""The Dockerfile, read: by hadolint, and for what no linter knows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from infra.container import base, building, golang
from infra.renderers import build as renderers

FILE = building.REPOSITORY / building.HERE / "Dockerfile"
HADOLINT = Path(sys.executable).with_name("hadolint")


def instructions() -> list[str]:
    text = re.sub(r"^\s*#.*\n", "", FILE.read_text(), flags=re.MULTILINE)
    return [line for line in re.sub(r"\\\n\s*", "", text).splitlines() if line.strip()]


def linted(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([HADOLINT, "--no-color", "-"], input=text, capture_output=True, text=True, check=False)


def test_hadolint_finds_nothing() -> None:
    done = linted(FILE.read_text())
    assert (done.returncode, done.stdout) == (0, "")


def test_hadolint_would_find_something() -> None:
    done = linted(FILE.read_text() + "RUN cd /tmp && sudo curl http://git.example.com/x | sh\nUSER root\n")
    assert done.returncode == 1
    assert {"DL3002", "DL3004"} <= set(re.findall(r"DL\d+", done.stdout))


def test_every_stage_comes_from_a_base_image_whose_digest_is_an_argument() -> None:
    lines = [line.split()[1:] for line in instructions() if line.startswith("FROM")]
    words = [[word for word in line if not word.startswith("--platform=")] for line in lines]
    stages = {each[2] for each in words}
    assert {each[0] for each in words} - stages == {
        "docker.io/library/python:${PYTHON_TAG}${PYTHON_DIGEST:+@${PYTHON_DIGEST}}",
        "docker.io/library/golang:${GO_TAG}${GO_DIGEST:+@${GO_DIGEST}}",
    }
    assert f"ARG PYTHON_VERSION={base.VERSION}" in instructions()
    assert f"ARG PYTHON_TAG=${{PYTHON_VERSION}}-slim-{base.SUITE}" in instructions()
    assert f"ARG GO_VERSION={golang.VERSION}" in instructions()
    assert f"ARG GO_TAG=${{GO_VERSION}}-{base.SUITE}" in instructions()
    assert f"\ngo {golang.VERSION}." in (renderers.MODULE / "go.mod").read_text(), "the oldest Go that builds them"


def test_the_context_holds_nothing_but_what_is_copied() -> None:
    ignored = (building.REPOSITORY / ".dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    copied = {name for line in instructions() if line.startswith("COPY") and "--from" not in line for name in line.split()[1:-1]}
    assert "*" in ignored
    assert let_in == copied
    assert copied <= set(building.CONTEXT)
