"""Upstream's words and kubectl's flags, and what becomes of each here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from handler.cli import kubernixos as module
from handler.cli.commands.deploy import kubernixos
from handler.cli.group import USAGE, anneal
from handler.cli.kubernixos_flags import forwarded
from handler.config.settings import Wait
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

NAMED = "nothing is forwarded to kubectl"


@each_row(
    ("given", "read"),
    [
        ("apply --dry-run=true -v=6", "apply --dry-run=true --v=6"),
        ("apply -- --dry-run -v 6", "apply --dry-run=client --v=6"),
        ("-v6 dump --v=2 --v 3", "--v=6 dump --v=2 --v=3"),
        ("dump -v apply", "dump -v apply"),
        ("-vv --validate -- prune", "-vv --validate=strict prune"),
        ("--validate=false --timeout 30s", "--validate=false --timeout 30s"),
        ("-dry-run", "--dry-run=client"),
    ],
)
def test_kubectl_flags_are_read_with_and_without_a_separator(given: str, read: str) -> None:
    assert list(forwarded(given.split())) == read.split()


@each_row("given", ["--prune", "--prune=true", "-prune", "-- --prune"])
def test_prune_of_kubectl_is_refused_in_upstreams_words(given: str) -> None:
    shown = CliRunner().invoke(anneal, ["kubernixos", "apply", *given.split()])
    assert (shown.exit_code, shown.stderr) == (1, "Error: Usage of `kubectl apply --prune` is disabled in kubernixos\n")


@each_row(
    ("given", "told"),
    [
        ("build", "build isn't taken: nothing is built, and no kubeval is run"),
        ("diff", f"diff isn't taken: {NAMED}"),
        ("apply --server-side", f"--server-side isn't taken: {NAMED}"),
        ("apply --all-namespaces=true", f"--all-namespaces isn't taken: {NAMED}"),
        ("apply -l app=web", f"-l isn't taken: {NAMED}"),
        ("apply --dry-run=maybe", "'maybe' is not one of"),
        ("apply --validate=warn", "'warn' is not one of"),
        ("apply --timeout=30", "expected 0 or a duration from 1s"),
        ("apply --timeout=-1s", "expected 0 or a duration from 1s"),
        ("apply -v=loud", "Invalid value for '--v'"),
        ("apply -o json", "'json' is not 'text'"),
    ],
)
def test_everything_else_is_refused_by_name(given: str, told: str) -> None:
    shown = CliRunner().invoke(anneal, ["kubernixos", *given.split()])
    assert shown.exit_code == USAGE
    assert told in shown.stderr


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the command would do, instead of doing it."""
    found: dict[str, Any] = {}
    monkeypatch.setattr(module, "_go", lambda command, words: found.update(command=command, words=words))
    return found


def ran(given: str, *, modules: str = "[ ]", code: int = 0) -> str:
    shown = CliRunner(env={"MODULES": modules, "PACKAGES": "", "NIX_PATH": ""}).invoke(anneal, ["kubernixos", *given.split()])
    assert shown.exit_code == code, shown.output
    return shown.stderr


@pytest.mark.parametrize(
    ("given", "words", "shown"),
    [
        ("", set(), False),
        ("prune dump apply --yes", {"dump", "apply", "prune"}, False),
        ("apply --dry-run=true", {"apply"}, True),
        ("apply --dry-run=server", {"apply"}, True),
        ("apply --dry-run=none", {"apply"}, False),
        ("prune --dry-run", {"prune"}, True),
        ("apply --force-conflicts", {"apply"}, False),
        ("apply --force-conflicts=false", {"apply"}, False),
    ],
)
def test_words_combine_and_a_dry_run_is_one(given: str, words: set[str], shown: bool, done: dict[str, Any]) -> None:
    ran(given)
    assert (done["words"], done["command"].shown) == (words, shown)


def test_flags_become_settings_of_the_target(done: dict[str, Any]) -> None:
    ran("apply --timeout=1m30s --validate=ignore --name other -v=1 --show-trace")
    target = done["command"].target
    assert (target.name, target.validate, target.wait) == ("other", "none", Wait(timeout=90.0))
    assert (target.renderer.type, target.renderer.modules, target.renderer.show_trace) == ("nix", "[ ]", True)
    assert done["command"].session.output.verbose
    ran("apply --timeout=0 --validate=true")
    assert (done["command"].target.validate, done["command"].target.wait) == ("server", None)


def test_a_prune_that_can_ask_nobody_is_refused_before_anything(done: dict[str, Any]) -> None:
    assert "it needs --yes" in ran("apply prune", code=USAGE)
    assert done == {}


@pytest.mark.parametrize(
    ("answers", "goes"),
    [(("yes",), True), (("YES",), True), (("no",), False), (("",), False), (("y", "yes"), True), (("y", "no"), False)],
    ids=str,
)
def test_a_prune_asks_in_upstreams_words(answers: tuple[str, ...], goes: bool) -> None:
    asked: list[str] = []

    def ask(question: str, default: str) -> str:
        asked.append(question)
        return answers[len(asked) - 1] or default

    session: Any = SimpleNamespace(output=SimpleNamespace(ask=ask))
    assert module._confirmed(session, "Delete?") is goes
    assert asked == ["Delete?", "Please type yes or no and then press enter"][: len(answers)]


def test_a_name_is_no_flag(done: dict[str, Any]) -> None:
    assert "--name '--dry-run=client': expected a DNS label" in ran("apply --name --dry-run", code=USAGE)
    assert done == {}


def test_modules_must_be_set(done: dict[str, Any]) -> None:
    told = ran("dump", modules="", code=1)
    assert told.startswith('Error occurred during stage "eval": MODULES: must be set in environment\n')
    assert "    export MODULES=" in told
    assert done == {}


@pytest.mark.parametrize("modules", ["[ ]\x1b[2J", "[ {home}/a ]", "x" * 60_001])
def test_modules_must_be_an_expression(modules: str, done: dict[str, Any]) -> None:
    told = ran("apply", modules=modules, code=1)
    assert told.startswith('Error occurred during stage "eval": MODULES: expected a Nix expression')
    assert "\x1b" not in told
    assert done == {}


def test_a_target_must_carry_the_label(tmp_path: Path) -> None:
    config = tmp_path / "anneal.yaml"
    config.write_text(
        "apiVersion: anneal.dev/v1alpha1\nkind: Config\ntargets:\n"
        "  - {name: shop, repository: {url: https://git.example.com/shop.git}, namespaces: [shop]}\n"
    )
    shown = CliRunner().invoke(anneal, ["kubernixos", "-c", str(config), "--target", "shop", "apply"])
    assert shown.exit_code == USAGE, shown.output
    assert "write `compat: kubernixos` on it" in shown.stderr


def test_the_words_complete() -> None:
    (words,) = (each for each in kubernixos.params if isinstance(each, click.Argument))
    found = words.type.shell_complete(click.Context(kubernixos), words, "d")
    assert [each.value for each in found] == ["dump"]
