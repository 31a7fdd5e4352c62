"""Workflows: read by the host's schema, actionlint, shellcheck and zizmor; least rights, pinned actions, our own commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from infra.release.__main__ import commands
from infra.release.tools import binaries
from tests.repository.pages import ROOT
from tests.source_files import name, sources

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BIN = Path(sys.executable).parent
DOCKERFILE = (ROOT / "infra" / "container" / "Dockerfile").read_text()
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
OURS = "./.github/workflows/test.yml"


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
    return found


def steps() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in WORKFLOWS:
        for job_name, job in read(path.stem)["jobs"].items():
            yield from ((f"{path.stem}, {job_name}", step) for step in job.get("steps", ()))


def actionlint(*files: Path) -> subprocess.CompletedProcess[str]:
    """Run it with the shellcheck of the lock file."""
    command = [str(binaries() / "actionlint"), "-no-color", "-shellcheck", str(BIN / "shellcheck"), "-pyflakes=", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("schema", "files"), [("vendor.github-workflows", WORKFLOWS), ("vendor.dependabot", [ROOT / ".github" / "dependabot.yml"])]
)
def test_the_host_can_read_them(schema: str, files: list[Path]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_actionlint_and_shellcheck_find_nothing() -> None:
    done = actionlint(*WORKFLOWS)
    assert (done.returncode, done.stdout) == (0, "")


def test_they_would_find_a_missing_job_and_an_unquoted_name(tmp_path: Path) -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(
        text.replace("needs: [test, build, image, chart]", "needs: [test, biuld]", 1).replace("mkdir packages", "mkdir $NAME", 1)
    )
    found = actionlint(wrong).stdout
    assert 'job "wheel" needs job "biuld"' in found
    assert "SC2086" in found


def test_zizmor_finds_nothing() -> None:
    command = [str(BIN / "zizmor"), "--offline", "--no-progress", "--quiet", str(ROOT / ".github")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_pinned_by_its_commit_and_says_its_version(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text())
    assert used
    assert [each for each in used if not each.startswith(OURS) and not PINNED.fullmatch(each)] == []


def test_one_action_has_one_commit() -> None:
    used = {each for path in WORKFLOWS for each in re.findall(r"uses: (\S+@\S+)", path.read_text())}
    assert len({each.partition("@")[0] for each in used}) == len(used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_rights_are_given_to_jobs_and_are_least(path: Path) -> None:
    workflow = read(path.stem)
    assert workflow["permissions"] == {}
    writing = {
        job_name: {right for right, may in job["permissions"].items() if may == "write"} for job_name, job in workflow["jobs"].items()
    }
    signing = {"id-token", "attestations"}
    allowed = {"wheel": {"id-token"}, "image": {"packages", *signing}, "chart": {"packages", *signing}, "page": {"contents", *signing}}
    assert {job: rights for job, rights in writing.items() if rights} == (allowed if path.stem == "release" else {})
    assert [job for job in workflow["jobs"].values() if "uses" not in job and job["timeout-minutes"] > 60] == []


def test_every_script_that_a_step_runs_is_here() -> None:
    named = {script for _, step in steps() for script in re.findall(r"\bscripts/[a-z]+", step.get("run", ""))}
    assert {"scripts/test", "scripts/release", "scripts/anneal"} <= named
    assert [script for script in named if not os.access(ROOT / script, os.X_OK)] == []


def test_what_a_release_runs_of_ours_is_understood() -> None:
    lines = [line for _, step in steps() for line in re.findall(r"scripts/release ([a-z].*?)\)?$", step.get("run", ""), re.MULTILINE)]
    assert {line.split()[0] for line in lines} == {"build", "check", "push"}
    for line in lines:
        words = line.replace('"', "").split()
        assert commands().parse_args(words).command == words[0]


def test_a_release_waits_for_every_test() -> None:
    jobs = read("release")["jobs"]
    assert jobs["test"]["uses"] == OURS
    assert all({"test", "build"} <= set(jobs[name]["needs"]) for name in ("wheel", "image", "chart"))
    assert {"wheel", "image", "chart"} <= set(jobs["page"]["needs"])
    assert "\n  workflow_call:" in (ROOT / OURS).read_text()


def test_the_image_is_built_from_what_the_dockerfile_names() -> None:
    (build,) = [step["with"] for _, step in steps() if step.get("uses", "").startswith("docker/build-push-action@")]
    (named,) = [step["run"] for _, step in steps() if step.get("id") == "name"]
    versions = dict(re.findall(r"^ARG (PYTHON|GO)_VERSION=(\S+)$", DOCKERFILE, re.MULTILINE))
    assert f"docker.io/library/python:{versions['PYTHON']}-slim-bookworm" in named
    assert f"docker.io/library/golang:{versions['GO']}-bookworm" in named
    given = {line.partition("=")[0] for line in build["build-args"].splitlines()}
    assert given == {"PYTHON_DIGEST", "GO_DIGEST", "VERSION", "REVISION", "CREATED"}
    assert {each for each in given if not re.search(rf"^ARG .*\b{each}=", DOCKERFILE, re.MULTILINE)} == set()
    assert (ROOT / build["file"]).is_file()
    assert build["platforms"] == "linux/amd64,linux/arm64"
    assert "push-by-digest=true" in build["outputs"]


def test_macos_runs_the_pure_tests_and_the_command_line() -> None:
    unit = read("test")["jobs"]["unit"]
    assert any(each["os"].startswith("macos") for each in unit["strategy"]["matrix"]["include"])
    runs = "\n".join(step.get("run", "") for step in unit["steps"])
    assert "scripts/test unit" in runs
    assert "scripts/anneal --help" in runs


@pytest.mark.parametrize(
    "path",
    [path for path in sources("tests/unit", "tests/fakes", "handler") if re.search(r"\"/(?:proc|sys|dev/shm)\b", path.read_text())],
    ids=name,
)
def test_what_macos_runs_looks_before_it_reads_what_only_linux_has(path: Path) -> None:
    assert re.search(r"\.is_dir\(\)|os\.access\(", path.read_text()), "say what happens where there is no such directory"


def test_what_only_linux_has_is_asked_for_in_one_module() -> None:
    asking = [path for path in sources("handler") if re.search(r"CDLL\(None\)\.\w+", path.read_text())]
    assert list(map(name, asking)) == ["handler/model/prctl.py"]
    assert 'if sys.platform != "linux":' in asking[0].read_text()


def test_the_scripts_that_macos_runs_need_no_tool_of_gnu() -> None:
    for script in ("_env", "_python", "anneal", "test"):
        for line in (ROOT / "scripts" / script).read_text().splitlines():
            code = re.sub(r"(?:^|\s)#.*", "", line)
            assert not re.search(r"\b(?:flock|sha256sum|mapfile|readarray)\b|\$\{\w+,,\}", code) or "command -v" in code, line


def test_the_night_runs_what_no_other_run_collects() -> None:
    runs = [step["run"] for where, step in steps() if where.startswith("night, ") and "run" in step]
    assert [each.rpartition(" ")[2] for each in runs] == ["nightly"]
    assert "tests/nightly" in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["norecursedirs"]
    assert (ROOT / "tests" / "nightly").is_dir()
