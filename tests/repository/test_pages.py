"""README and the other pages say only what is so: configurations load, command lines parse, links resolve, messages are the code's own."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
import yaml

from handler.cli.group import COMMANDS
from handler.config.load import load
from handler.engine.rollout_runner.actions import ACTIONS
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.rollout.checks import CHECKS
from handler.rollout.spec import read
from infra.functions.configured import settings_of, unfit
from tests.repository.advice_sites import HOLE
from tests.repository.command_lines import parsed
from tests.repository.pages import DOCS, FENCE, PAGES, ROOT, blocks, name, spans

LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMAND = re.compile(rf"(?:^|[\s:\[(/])anneal +((?:{'|'.join(COMMANDS)})\b.*)")
WORDS = 9  # letters that a message must have besides its values to count as one


# --- configurations and what else has a form
LIBRARY = DOCS / "library.md"  # its configuration names what a program of its own has; tests/e2e/test_library.py runs that
CONFIGURATIONS = [text for path in PAGES if path != LIBRARY for text in blocks(path, "yaml") if "kind: Config\n" in text]


def test_there_are_configurations_to_load() -> None:
    assert len(CONFIGURATIONS) >= 2


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_every_configuration_loads(text: str, tmp_path: Path) -> None:
    file = tmp_path / "anneal.yaml"
    file.write_text(text)
    assert load(file).targets


def test_there_is_one_that_functions_can_be_packed_with(tmp_path: Path) -> None:
    file = tmp_path / "anneal.yaml"
    (text,) = [text for text in CONFIGURATIONS if "awsSecretsManager: {id" in text and "eks:" in text and "env:" not in text]
    file.write_text(text)
    settings, _ = settings_of(file)
    assert unfit(settings, ssh=False) == ()


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_yaml_and_json_block_can_be_read(path: Path) -> None:
    for text in blocks(path, "yaml"):
        assert isinstance(yaml.safe_load(text), dict)
    for text in blocks(path, "json"):
        assert isinstance(json.loads(text), dict)


# --- commands
def command_lines(path: Path) -> Iterator[str]:
    """Yield what follows `anneal` in blocks and code spans, without what belongs to the shell or to the YAML around it."""
    text = path.read_text()
    for line in (*(line for _, block in FENCE.findall(text) for line in block.splitlines()), *spans(text)):
        found = COMMAND.search(re.sub(r"\$\{\{ (.+?) \}\}", r"$\1", line))
        if found:
            yield re.split(r"\s+(?:\||&&|>|#|;)", found[1])[0].rstrip(']}"')


LINES = sorted({line for path in PAGES for line in command_lines(path)})


@pytest.mark.parametrize("line", LINES)
def test_every_command_line_is_understood(line: str) -> None:
    assert parsed(line).info_name == line.split(maxsplit=1)[0]


def test_every_command_is_told_of() -> None:
    assert {line.split(maxsplit=1)[0] for line in LINES} == set(COMMANDS)


@pytest.mark.parametrize("line", ["apply shop --prnue", "approve shop id more", "serve --bind"])
def test_a_command_line_that_anneal_refuses_is_noticed(line: str) -> None:
    with pytest.raises(click.UsageError):
        parsed(line)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_script_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"(?<!/)\bscripts/([a-z_]+)\b", path.read_text()))
    assert {script for script in named if not (ROOT / "scripts" / script).exists()} == set()


@pytest.mark.parametrize("path", [path for path in PAGES if path.name != "CHANGELOG.md"], ids=name)  # that one names what has moved
def test_every_path_that_is_named_exists(path: Path) -> None:
    named = set(re.findall(r"\b(?:handler|infra|tests)/[\w./-]*\w", path.read_text()))
    made = {"infra/kubernetes/overlays/mine"}  # by the operator, as a copy
    assert {there for there in named - made if not (ROOT / there).exists()} == set()


# --- links
def anchors(path: Path) -> set[str]:
    """Return the anchors of a text's headings, as git hosts make them, and those that it names itself."""
    text = FENCE.sub("", path.read_text())
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    named = re.findall(r'^<a id="(\w+)"></a>$', text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}.union(named)


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_link_inside_the_repository_resolves(path: Path) -> None:
    for link in LINK.findall(FENCE.sub("", path.read_text())):
        if link.startswith("https://"):
            continue
        place, _, anchor = link.partition("#")
        there = path.parent / place if place else path
        assert there.exists(), link
        assert not anchor or anchor in anchors(there), link


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_hosts_are_examples(path: Path) -> None:
    signer, queue = "token.actions.githubusercontent.com", "sqs.eu-central-1.amazonaws.com"  # of a release; the form of a queue's URL
    registries = {"auth.docker.io", "pkg-containers.githubusercontent.com"}  # what must be listed beside well-known ones
    allowed = {"github.com", "keepachangelog.com", "semver.org", signer, queue, *registries}
    hosts = set(re.findall(r"https?://([A-Za-z0-9.-]+)", path.read_text()))
    assert {host for host in hosts - allowed if not host.endswith(".example.com") and host != "127.0.0.1"} == set()


# --- messages
Parts = tuple[str | None, ...]


@cache
def messages() -> tuple[Parts, ...]:
    """Return every text of the code that is long enough to tell, in parts; None is a value."""
    trees = [ast.parse(path.read_text()) for path in sorted((ROOT / "handler").rglob("*.py"))]
    texts = {tuple(_parts(node)) for tree in trees for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant)}
    return tuple(parts for parts in texts if sum(letter.isalpha() for part in parts for letter in part or "") >= WORDS)


def _parts(node: ast.JoinedStr | ast.Constant) -> Iterator[str | None]:
    """Yield the parts of a text in code; None is a value."""
    for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            first, *rest = HOLE.split(part.value)[::2]
            yield first
            yield from (each for said in rest for each in (None, said))
        elif isinstance(part, ast.FormattedValue):
            yield None


def is_said(text: str) -> bool:
    """Whether the code has this text, after whatever names subject and place; what is filled in may be anything."""
    likely = (parts for parts in messages() if all(part in text for part in parts if part))
    return any(re.fullmatch("(?:.*: )?" + "".join(".*" if part is None else re.escape(part) for part in parts), text) for parts in likely)


def refusals() -> list[tuple[str, str]]:
    """Return the message and the way out of each row of the page's tables, as Markdown."""
    lines = (line for line in (DOCS / "refusals.md").read_text().splitlines() if re.match(r"\| (?!what, and why|---)", line))
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return [(row[1], row[2]) for row in rows]


REFUSALS = refusals()


def test_the_tables_of_refusals_are_there() -> None:
    assert len(REFUSALS) >= 35


@pytest.mark.parametrize(("message", "way_out"), REFUSALS)
def test_a_quoted_refusal_is_what_the_code_says(message: str, way_out: str) -> None:
    assert spans(message)
    for text in (*spans(message), *spans(way_out)):
        assert is_said(text) or COMMAND.search(text) or text.startswith("anneal.dev/"), text


@pytest.mark.parametrize("text", ["x: is refused because of the weather", "add to target shop: whitelist: [shop]"])
def test_a_message_that_the_code_never_says_is_noticed(text: str) -> None:
    assert not is_said(text)


def test_the_answers_of_the_door_are_its_own() -> None:
    answers = [json.loads(text) for text in blocks(DOCS / "webhooks.md", "json")]
    reasons = [row["reason"] for answer in answers for row in (*answer["matched"], *answer["ignored"])]
    assert reasons
    assert [reason for reason in reasons if not is_said(reason)] == []


# --- what each page is
@pytest.mark.parametrize("path", sorted(DOCS.glob("**/*.md")), ids=name)
def test_a_page_begins_with_its_title_and_for_whom_it_is(path: Path) -> None:
    assert re.match(r"# [^\n]+\n\nFor [^:\n]+: [^\n]+", path.read_text())


def test_the_index_has_every_page() -> None:
    linked = {(DOCS / link).resolve() for link in LINK.findall((DOCS / "README.md").read_text()) if "://" not in link}
    assert {path for path in PAGES if path.parent != ROOT} - {DOCS / "README.md"} <= linked


def test_every_rollout_that_is_shown_is_read() -> None:
    shown = [
        (path, document)
        for path in PAGES
        if path != LIBRARY
        for text in blocks(path, "yaml")
        if (document := yaml.safe_load(text)).get("kind") == "Rollout"
    ]
    assert shown
    for path, document in shown:
        keys = [step["object"] for group in document["spec"]["groups"] for step in group["steps"]]
        found = {key: (Identity("apps", "Deployment", "shop", key),) for key in keys}
        assert read(Manifest.of(document, f"{name(path)}:1"), found, ACTIONS, CHECKS).steps
