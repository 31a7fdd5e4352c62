"""README and the other pages show only what works: configurations load, Rollouts are read, command lines parse. The lint sees the rest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import yaml

from handler.cli.group import COMMANDS
from handler.config.load import load
from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.rollout.checks import CHECKS
from handler.rollout.spec import read
from infra.functions.configured import settings_of, unfit
from infra.house.pages import DOCS, FENCE, PAGES, blocks, name, spans
from infra.house.sources import ROOT
from tests.repository.command_lines import parsed

COMMAND = re.compile(rf"(?:^|[\s:\[(/])anneal +((?:{'|'.join(COMMANDS)})\b.*)")
LIBRARY = DOCS / "library.md"  # its configuration names what a program of its own has; tests/e2e/test_library.py runs that
YAML = [(path, text) for path in PAGES if path != LIBRARY for text in blocks(path, "yaml")]
CONFIGURATIONS = [text for _, text in YAML if "kind: Config\n" in text]
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def test_every_configuration_loads(tmp_path: Path) -> None:
    file = tmp_path / "anneal.yaml"
    assert len(CONFIGURATIONS) >= 2
    for text in CONFIGURATIONS:
        file.write_text(text)
        assert load(file).targets, text


def test_there_is_one_that_functions_can_be_packed_with(tmp_path: Path) -> None:
    file = tmp_path / "anneal.yaml"
    (text,) = [text for text in CONFIGURATIONS if "awsSecretsManager: {id" in text and "eks:" in text and "env:" not in text]
    file.write_text(text)
    settings, _ = settings_of(file)
    assert unfit(settings, ssh=False) == ()


def command_lines(path: Path) -> Iterator[str]:
    """Yield what follows `anneal` in blocks and code spans, without what belongs to the shell or to the YAML around it."""
    text = path.read_text()
    for line in (*(line for _, block in FENCE.findall(text) for line in block.splitlines()), *spans(text)):
        found = COMMAND.search(re.sub(r"\$\{\{ (.+?) \}\}", r"$\1", line))
        if found:
            yield re.split(r"\s+(?:\||&&|>|#|;)", found[1])[0].rstrip(']}"')


def refused(path: Path, line: str) -> str:
    """Return why `anneal` doesn't take a command line; empty: it does."""
    try:
        command = parsed(line).info_name
    except click.UsageError as error:
        return f"{name(path)}: anneal {line}: {error.format_message()}"
    return "" if command == line.split(maxsplit=1)[0] else f"{name(path)}: anneal {line}: is {command}"


def test_every_command_line_of_a_page_or_form_is_understood_and_every_command_has_one() -> None:
    lines = {(path, line) for path in PAGES for line in command_lines(path)}
    asked = {(path, line) for path in FORMS for line in re.findall(r"`anneal ([a-z][^`]*)`", path.read_text())}
    assert sorted(filter(None, (refused(path, line) for path, line in lines | asked))) == []
    assert {line.split(maxsplit=1)[0] for _, line in lines} == set(COMMANDS)


def test_every_rollout_that_is_shown_is_read() -> None:
    shown = [(path, document) for path, text in YAML if (document := yaml.safe_load(text)).get("kind") == "Rollout"]
    assert shown
    for path, document in shown:
        keys = [step["object"] for group in document["spec"]["groups"] for step in group["steps"]]
        found = {key: (Identity("apps", "Deployment", "shop", key),) for key in keys}
        assert read(Manifest.of(document, f"{name(path)}:1"), found, ACTIONS, CHECKS).steps
