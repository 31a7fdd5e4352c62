"""What texts advise exists: each `anneal …` that a message, a hint or a help names is a command, its flags are that command's, and no
message speaks of a feature that only a later version has.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from handler.cli.group import COMMANDS, anneal
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
COMMAND = re.compile(r"\banneal (?!in )([a-z][a-z-]+)((?: [^\s`;,:)\]]+)*)")
API_GROUP = re.compile(r"\b[a-z-]+(?:\.[a-z0-9-]+){2,}")
LATER = ("outgoing webhook", "notification", "dashboard", "use that renderer")
"""What isn't there yet; a word goes with the commit that brings its feature."""


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield every text of a module that a person may read; what is put into it stands as X."""
    tree, parts = ast.parse(path.read_text()), set()
    for node in ast.walk(tree):  # parents first
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) and not _is_help(node):
            parts.add(id(node.body[0].value))  # type: ignore[attr-defined]  # an expression, for it is a docstring
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def _is_help(node: ast.AST) -> bool:
    """Whether a docstring is what `--help` prints."""
    return isinstance(node, ast.FunctionDef) and any("command" in ast.unparse(each) for each in node.decorator_list)


def flags(name: str) -> set[str]:
    found = anneal.get_command(click.Context(anneal), name)
    assert found is not None
    return {each for param in found.params if isinstance(param, click.Option) for each in (*param.opts, *param.secondary_opts)}


def missing(text: str) -> list[str]:
    """Return the commands, and the flags of commands, that a text names and that there aren't."""
    found = []
    for command, rest in COMMAND.findall(text):
        if command not in COMMANDS:
            found.append(f"anneal {command}")
            continue
        named = {word.partition("=")[0].rstrip(".") for word in rest.split() if re.fullmatch(r"--[a-z][a-z.-]+(=.*)?", word)}
        found += [f"anneal {command} {flag}" for flag in sorted(named - flags(command))]
    return found


@each_row("path", sorted((ROOT / "handler").rglob("*.py")))
def test_messages_advise_existing_commands_and_flags(path: Path) -> None:
    for line, text in texts(path):
        assert missing(text) == [], f"{path}:{line}"
        said = API_GROUP.sub("", text.lower())
        assert not any(each in said for each in LATER), f"{path}:{line}: {text}"
