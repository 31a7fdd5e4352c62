"""The declared command line: what a command loads to be shown, and that what does its work takes what is declared."""

from __future__ import annotations

import ast
import importlib
import inspect
import keyword
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from handler.cli import init_hosts, options
from handler.cli.group import COMMANDS, anneal
from tests.unit.cli.loaded import ROOT, loaded, loaded_in_turn, of_vendors
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

SHOWN = {
    *("handler", "handler.cli", "handler.cli.group", "handler.cli.options", "handler.cli.output"),
    *("handler.cli.go_flags", "handler.cli.locutus_flags", "handler.cli.kubernixos_flags"),
    *("handler.config", "handler.model", "handler.web"),
}
"""What of ours is loaded to show a command, and `handler.model`, which holds plain values."""


def ours(modules: frozenset[str]) -> set[str]:
    return {name for name in modules if name.split(".")[0] == "handler" and not name.startswith(("handler.model.", "handler.cli.commands"))}


def commands() -> dict[str, click.Command]:
    found = {name: anneal.get_command(click.Context(anneal), name) for name in COMMANDS}
    return {name: command for name, command in found.items() if command is not None}


def test_a_command_is_shown_by_its_declaration_alone(tmp_path: Path) -> None:
    found = loaded_in_turn(tmp_path, [("--help",), ("--version",), *((name, "--help") for name in COMMANDS)])
    assert len(found) == len(COMMANDS) + 2
    assert {line: more for line, names in found.items() if (more := of_vendors(names) | (ours(names) - SHOWN))} == {}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_loads_no_library(shell: str, tmp_path: Path) -> None:
    modules = loaded(tmp_path, "completion", shell)
    assert of_vendors(modules) == set()
    assert not {
        name for name in modules if name.startswith(("handler.engine", "handler.cluster", "handler.config.settings", "handler.source"))
    }


@each_row("name", COMMANDS)
def test_help_is_plain_text(name: str) -> None:
    shown = CliRunner().invoke(anneal, [name, "--help"]).output
    assert "\\" not in shown, "click's mark of lines that aren't joined is a character, no letter behind a backslash"
    assert "\b" not in shown


def worked() -> dict[str, str]:
    """Return the module that does each command's work, as its declaration says."""
    found: dict[str, str] = {}
    for path in (ROOT / "handler/cli/commands").glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for call in (each for each in node.decorator_list if isinstance(each, ast.Call) and ast.unparse(each.func) == "command"):
                found[node.name.rstrip("_").replace("_", "-")] = str(ast.literal_eval(call.args[0]))
    return found


def test_every_command_is_declared_and_listed() -> None:
    assert worked().keys() == commands().keys() == COMMANDS.keys()


@each_row("name", COMMANDS)
def test_each_command_function_takes_the_declared_parameters(name: str) -> None:
    module = importlib.import_module(f"handler.cli.{worked()[name]}")
    own = name.replace("-", "_")
    work = getattr(module, f"{own}_" if keyword.iskeyword(own) else own)
    takes = inspect.signature(work).parameters
    common = {parameter.name for parameter in click.command()(options.in_both_places(lambda: None)).params}
    given = {str(parameter.name) for parameter in commands()[name].params} - common
    if hasattr(work, "__wrapped__"):  # by `from_files`, which takes the options of `-f`
        given -= {str(parameter.name) for parameter in click.command()(options.files_options(lambda: None)).params} - {"target"}
    named = {each.name for each in takes.values() if each.kind is not each.VAR_KEYWORD} - {"session"}
    anything = any(each.kind is each.VAR_KEYWORD for each in takes.values())
    assert named <= given if anything else named == given
    assert next(iter(takes)) == "session"


def test_init_offers_the_git_hosts_that_it_has_steps_for() -> None:
    (provider,) = (each for each in commands()["init"].params if each.name == "provider")
    assert isinstance(provider, click.Option)
    assert provider.help == f"Whose webhooks are sent: {', '.join((*init_hosts.HOSTS, init_hosts.NONE))} [by the URL]."
