"""The dependencies: bounded, locked with hashes, and the same ones wherever Anneal runs. That what is installed agrees, the lint sees."""

from __future__ import annotations

import json
import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from infra.house.sources import ROOT

RUNTIME, TEST = "requirements.lock", "requirements-test.lock"
FUNCTIONS = ("requirements-functions", "requirements-functions-ssh")
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)
NPM = (("infra", "osls"), ("infra/browser", "axe-core"), ("infra/octokit", "@octokit/openapi"))


def direct(file: str) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def locked(file: str) -> dict[str, Version]:
    return {str(canonicalize_name(name)): Version(version) for name, version in PIN.findall((ROOT / file).read_text())}


def test_every_runtime_dependency_has_a_floor_and_a_ceiling_and_a_lock_pins_each_inside_its_bounds() -> None:
    runtime, tools = direct("requirements.txt"), direct("requirements-test.txt")
    assert [str(each) for each in runtime if not {">=", "<"} <= {bound.operator for bound in each.specifier}] == []
    for lock, wanted in ((RUNTIME, runtime), (TEST, runtime + tools)):
        pins = locked(lock)
        assert [str(each) for each in wanted if not each.specifier.contains(pins[canonicalize_name(each.name)])] == []


def test_every_pin_has_a_hash_and_no_lock_names_an_index() -> None:
    for lock in (RUNTIME, TEST, *(f"{each}.lock" for each in FUNCTIONS)):
        text = (ROOT / lock).read_text()
        entries = re.split(r"(?m)^(?=[A-Za-z0-9])", text)[1:]
        assert entries, lock
        assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
        assert "://" not in text, lock
    for place, package in NPM:
        wanted = json.loads((ROOT / place / "package.json").read_text())["devDependencies"]
        packages = json.loads((ROOT / place / "package-lock.json").read_text())["packages"]
        found = {name: each for name, each in packages.items() if name}
        assert found[f"node_modules/{package}"]["version"] == wanted[package]
        assert [name for name, each in found.items() if "resolved" in each or "integrity" not in each] == []


def test_tests_and_functions_run_on_the_versions_that_the_container_runs_on() -> None:
    runtime, tested = locked(RUNTIME), locked(TEST)
    assert {name: tested.get(name) for name in runtime} == runtime
    for each in FUNCTIONS:
        pins = locked(f"{each}.lock")
        assert pins == {name: version for name, version in runtime.items() if name in pins}
        assert {str(canonicalize_name(found.name)) for found in direct(f"{each}.txt")} <= set(pins)
