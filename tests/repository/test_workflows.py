"""Workflows: read by actionlint, shellcheck and zizmor; least rights, a release of what was tested. Their pins are the lint's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from infra.house.forge import OURS, WORKFLOWS
from infra.house.sources import ROOT
from infra.release.__main__ import commands
from infra.release.tools import binaries

BIN = Path(sys.executable).parent
DOCKERFILE = (ROOT / "infra" / "container" / "Dockerfile").read_text()
SIGNING = {"id-token", "attestations"}
WRITING = {"wheel": {"id-token"}, "image": {"packages", *SIGNING}, "chart": {"packages", *SIGNING}, "page": {"contents", *SIGNING}}
"""What the jobs of a release may write; no other job may write anything."""


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def steps() -> Iterator[dict[str, Any]]:
    for path in WORKFLOWS:
        for job in read(path)["jobs"].values():
            yield from job.get("steps", ())


def test_actionlint_shellcheck_and_zizmor_find_nothing() -> None:
    actionlint: list[str | Path] = [binaries() / "actionlint", "-no-color", "-shellcheck", BIN / "shellcheck", "-pyflakes=", *WORKFLOWS]
    zizmor: list[str | Path] = [BIN / "zizmor", "--offline", "--no-progress", "--quiet", ROOT / ".github"]
    for command in (actionlint, zizmor):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
        assert done.returncode == 0, done.stdout


def test_rights_are_given_to_jobs_and_are_least_and_a_release_waits_for_every_test() -> None:
    for path in WORKFLOWS:
        workflow = read(path)
        assert workflow["permissions"] == {}
        rights = {name: {right for right, may in job["permissions"].items() if may == "write"} for name, job in workflow["jobs"].items()}
        assert {name: found for name, found in rights.items() if found} == (WRITING if path.stem == "release" else {})
        assert [job for job in workflow["jobs"].values() if "uses" not in job and job["timeout-minutes"] > 60] == []
    (jobs,) = [read(path)["jobs"] for path in WORKFLOWS if path.stem == "release"]
    assert jobs["test"]["uses"] == OURS
    assert all({"test", "build"} <= set(jobs[name]["needs"]) for name in ("wheel", "image", "chart"))
    assert {"wheel", "image", "chart"} <= set(jobs["page"]["needs"])


def test_what_a_release_runs_of_ours_is_understood() -> None:
    lines = [line for step in steps() for line in re.findall(r"scripts/release ([a-z].*?)\)?$", step.get("run", ""), re.MULTILINE)]
    assert {line.split()[0] for line in lines} == {"build", "check", "push"}
    for line in lines:
        words = line.replace('"', "").split()
        assert commands().parse_args(words).command == words[0]


def test_the_image_is_built_from_what_the_dockerfile_names() -> None:
    (build,) = [step["with"] for step in steps() if step.get("uses", "").startswith("docker/build-push-action@")]
    (named,) = [step["run"] for step in steps() if step.get("id") == "name"]
    versions = dict(re.findall(r"^ARG (PYTHON|GO)_VERSION=(\S+)$", DOCKERFILE, re.MULTILINE))
    assert f"docker.io/library/python:{versions['PYTHON']}-slim-bookworm" in named
    assert f"docker.io/library/golang:{versions['GO']}-bookworm" in named
    given = {line.partition("=")[0] for line in build["build-args"].splitlines()}
    assert given == {"PYTHON_DIGEST", "GO_DIGEST", "VERSION", "REVISION", "CREATED"}
    assert {each for each in given if not re.search(rf"^ARG .*\b{each}=", DOCKERFILE, re.MULTILINE)} == set()
    assert (ROOT / build["file"]).is_file()
    assert build["platforms"] == "linux/amd64,linux/arm64"
    assert "push-by-digest=true" in build["outputs"]
