"""Every command that a message or a page advises is complete: a shell takes it as it stands, and it acts on what is meant alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from handler.model.names import Identity, kubectl
from tests.repository.pages import PAGES, ROOT, name

PROSE = {"handler/config/settings.py", "handler/cli/init.py"}
"""Modules whose texts tell what a command is for, instead of advising it."""
WITHOUT_NAMESPACE = re.compile(
    r"kubectl (?:\S+$|apply\b|config |version|api-resources\b|create namespace |get --raw |get TYPE|get -l|rollout restart\b|[^a-z]"
    r"|\S+ (?:namespaces? |Namespace/|crd |apiservices?|\S*webhookconfigurations\b|\{\} \{\} --type=json|\[\^))"
)
"""What no namespace belongs to, or what names no object: a mention of kubectl, the `-l` of a page over all, a placeholder, a pattern."""
NEEDS_TARGET = "apply|approve|history|unpin|resume|suspend|retarget|unlock|rollback|replay|prune|plan|rollout"
COMMAND = re.compile(r"kubectl [^;`\n]+")
BARE = re.compile(rf"^(?:run )?`?anneal (?:{NEEDS_TARGET})(?:`|$|[;,:]| (?!\{{|shop|TARGET|NAME|T\b|-f|[A-Z]))")


def texts(path: Path) -> Iterator[str]:
    """Yield the literals of a module but for its docstrings; what is filled in stands as `{}`."""
    tree = ast.parse(path.read_text())
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node}
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in inner | bare or isinstance(node, documented):
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def modules() -> list[str]:
    found = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "handler").rglob("*.py"))]
    return [name for name in found if name not in PROSE and re.search(r"kubectl |anneal ", (ROOT / name).read_text())]


def kubectl_commands(text: str) -> list[str]:
    return [found for found in COMMAND.findall(text) if not WITHOUT_NAMESPACE.match(found)]


@pytest.mark.parametrize("name", modules())
def test_a_command_of_a_message_names_its_namespace_and_its_target(name: str) -> None:
    for text in texts(ROOT / name):
        for command in kubectl_commands(text):
            assert " -n " in command, f"{name}: {command}"
        for command in re.findall(r"`(anneal [^`]+)`", text) + ([text] if text.startswith("anneal ") else []):
            assert not BARE.match(command), f"{name}: {command}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name)
def test_a_command_of_a_page_names_its_namespace(page: Path) -> None:
    for quoted in re.findall(r"`(kubectl [^`]+)`", page.read_text()):
        for command in kubectl_commands(quoted):
            assert re.search(r" (?:-n|-A)\b", command), command


@pytest.mark.parametrize("text", ["look: kubectl get configmap b", "kubectl delete pod x; then", "kubectl describe ResourceQuota"])
def test_one_without_is_found(text: str) -> None:
    assert [command for command in kubectl_commands(text) if " -n " not in command]


@pytest.mark.parametrize("command", ["anneal apply", "run `anneal apply --commit x`", "anneal history"])
def test_one_without_a_target_is_found(command: str) -> None:
    assert BARE.match(command)


def test_a_command_on_an_object_is_made_in_one_place() -> None:
    assert kubectl("get", Identity("", "ConfigMap", "shop", "b"), "-o", "yaml") == "kubectl get ConfigMap/b -n shop -o yaml"
    assert kubectl("describe", Identity("", "Namespace", "", "shop")) == "kubectl describe Namespace/shop"
