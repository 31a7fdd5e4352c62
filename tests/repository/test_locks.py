"""The dependencies: bounded, locked with hashes, current, and in agreement with each other."""

from __future__ import annotations

import json
import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-test.lock")
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)


def direct(file: str) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    return [Requirement(line) for line in lines if line and not line.startswith("-")]


def locked(file: str) -> dict[str, Version]:
    return {str(canonicalize_name(name)): Version(version) for name, version in PIN.findall((ROOT / file).read_text())}


def test_every_runtime_dependency_has_a_floor_and_a_ceiling() -> None:
    for requirement in direct("requirements.txt"):
        operators = {specifier.operator for specifier in requirement.specifier}
        assert ">=" in operators, f"{requirement} has no floor"
        assert "<" in operators, f"{requirement} has no ceiling"


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_direct_dependency_inside_its_bounds(lock: str) -> None:
    pins = locked(lock)
    wanted = direct("requirements.txt") + (direct("requirements-test.txt") if "test" in lock else [])
    for requirement in wanted:
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), str(requirement)


@pytest.mark.parametrize("lock", [*LOCKS, "requirements-functions.lock", "requirements-functions-ssh.lock"])
def test_every_pin_has_a_hash(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", text)[1:]
    assert entries
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []
    assert "://" not in text, "a lock names no index"


def test_tests_run_on_the_versions_that_production_runs_on() -> None:
    tested = locked("requirements-test.lock")
    assert {name: tested.get(name) for name in locked("requirements.lock")} == locked("requirements.lock")


@pytest.mark.parametrize(("place", "package"), [("infra", "osls"), ("infra/browser", "axe-core"), ("infra/octokit", "@octokit/openapi")])
def test_a_lock_of_npm_names_no_registry_and_every_package_has_a_hash(place: str, package: str) -> None:
    wanted = json.loads((ROOT / place / "package.json").read_text())["devDependencies"]
    packages = json.loads((ROOT / place / "package-lock.json").read_text())["packages"]
    found = {name: each for name, each in packages.items() if name}
    assert found[f"node_modules/{package}"]["version"] == wanted[package]
    assert [name for name, each in found.items() if "resolved" in each or "integrity" not in each] == []


@pytest.mark.parametrize("name", ["functions", "functions-ssh"])
def test_functions_run_on_the_versions_that_the_container_runs_on(name: str) -> None:
    pins = locked(f"requirements-{name}.lock")
    assert pins == {each: version for each, version in locked("requirements.lock").items() if each in pins}
    wanted = {str(canonicalize_name(each.name)) for each in direct(f"requirements-{name}.txt")}
    assert wanted <= set(pins)


@pytest.mark.parametrize("lock", LOCKS)
def test_boto3_is_current_and_kubernetes_lets_it_be(lock: str) -> None:
    """kubernetes 37.0.2 asks for a python-dateutil that botocore refuses; a resolver then goes back to boto3 0.0.3."""
    pins = locked(lock)
    assert pins["boto3"] >= Version("1.40")
    assert pins["kubernetes"] != Version("37.0.2")


def test_what_is_installed_is_what_is_locked() -> None:
    installed = {str(canonicalize_name(each.metadata["Name"])): Version(each.version) for each in metadata.distributions()}
    pins = {name: version for name, version in locked("requirements-test.lock").items() if name in installed}
    assert {"boto3", "kubernetes", "dulwich", "pytest"} <= set(pins)
    assert {name: installed[name] for name in pins} == pins


def test_what_is_installed_agrees_with_itself() -> None:
    """What `pip check` reports, without pip: every requirement of every distribution is met by an installed one."""
    found = {canonicalize_name(each.metadata["Name"]): each for each in metadata.distributions()}
    broken = []
    for each in found.values():
        for requirement in map(Requirement, each.requires or ()):
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            have = found.get(canonicalize_name(requirement.name))
            if have is None or not requirement.specifier.contains(have.version, prereleases=True):
                broken.append(f"{each.metadata['Name']} asks for {requirement}, there is {have.version if have else 'none'}")
    assert broken == []
