"""Forms of issues and pull requests, and the way to report a vulnerability: as the host reads them, and true to the code."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler import __version__
from handler.cli.group import COMMANDS
from handler.triggers import WEBHOOKS
from tests.repository.command_lines import parsed
from tests.repository.pages import ROOT

TEMPLATES = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(path for path in TEMPLATES.glob("*.yml") if path.name != "config.yml")
HOSTS = {"github": "GitHub", "gitlab": "GitLab", "gitea": "Gitea", "bitbucket": "Bitbucket", "azuredevops": "Azure DevOps"}
HOME = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
EXAMPLE = "git.example.com/tools/anneal"


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("vendor.github-issue-forms", FORMS),
        ("vendor.github-issue-config", [TEMPLATES / "config.yml"]),
    ],
)
def test_the_host_can_read_it(schema: str, files: list[Path]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_each_answer_has_a_name_of_its_own(path: Path) -> None:
    asked = [part for part in document(path)["body"] if part["type"] != "markdown"]
    for names in ([part["id"] for part in asked], [part["attributes"]["label"] for part in asked]):
        assert len(set(names)) == len(names)
    assert any(part.get("validations", {}).get("required") for part in asked)


def test_a_bug_comes_with_what_helps() -> None:
    asked = {part["id"]: part for part in document(TEMPLATES / "bug.yml")["body"] if "id" in part}
    assert {"version", "form", "doctor", "plan", "steps"} <= set(asked)
    for name in ("version", "doctor"):
        assert asked[name]["validations"]["required"]
    assert asked["version"]["attributes"]["placeholder"] == f"anneal {__version__}"
    hosts = " ".join(asked["host"]["attributes"]["options"])
    assert {name for name in set(WEBHOOKS) - {"generic"} if HOSTS[name] not in hosts} == set()


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_a_command_that_a_form_asks_for_is_understood(path: Path) -> None:
    named = re.findall(r"`anneal ([a-z][^`]*)`", path.read_text())
    assert [line for line in named if parsed(line).info_name not in COMMANDS] == []
    assert named or path.stem != "bug"


def test_vulnerabilities_are_led_away_from_issues() -> None:
    config = document(TEMPLATES / "config.yml")
    assert config["blank_issues_enabled"] is False
    assert config["contact_links"][0]["url"] == f"{HOME}/blob/main/SECURITY.md"
    for path in (TEMPLATES / "bug.yml", ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md"):
        assert "SECURITY.md" in path.read_text()


def test_the_home_of_the_repository_is_one() -> None:
    """Each file that names it names the address of pyproject.toml; CONTRIBUTING.md says how a maintainer replaces all at once."""
    places = ("pyproject.toml", ".github/ISSUE_TEMPLATE/config.yml", "docs/ci.md")
    assert [place for place in places if HOME not in (ROOT / place).read_text()] == []
    if "example.com" not in HOME:
        left = ["git", "grep", "-l", EXAMPLE, "--", ":!tests", ":!infra/release", ":!CONTRIBUTING.md"]
        assert subprocess.run(left, cwd=ROOT, capture_output=True, text=True, check=False).stdout == ""


@pytest.mark.skipif(EXAMPLE not in HOME, reason="a maintainer has run it")
def test_the_command_for_maintainers_replaces_the_example_everywhere(tmp_path: Path) -> None:
    (command,) = re.findall(r"`(git grep -l \S+ -- .+? \| xargs sed -i .+?)`", (ROOT / "CONTRIBUTING.md").read_text())
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tmp_path)], check=True, capture_output=True)
    subprocess.run(["sh", "-c", command.replace("HOST/OWNER/REPOSITORY", "git.example.org/teams/anneal")], cwd=tmp_path, check=True)
    assert 'Repository = "https://git.example.org/teams/anneal"' in (tmp_path / "pyproject.toml").read_text()
    left = ["git", "grep", "-l", EXAMPLE, "--", ":!tests", ":!infra/release", ":!CONTRIBUTING.md"]
    assert subprocess.run(left, cwd=tmp_path, capture_output=True, text=True, check=False).stdout == ""


def test_a_report_has_a_place_a_content_and_a_date_of_answer() -> None:
    section = (ROOT / "SECURITY.md").read_text().partition("## Reporting")[2].partition("\n## ")[0]
    for part in ("**Where.**", "**What to send.**", "**What to expect.**", "**Supported versions.**", "| 3 working days |", "| 90 days |"):
        assert part in section
    assert f"newest minor version ({__version__.rpartition('.')[0]}.x)" in section
