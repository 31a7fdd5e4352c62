"""Every place of `handler` that makes a command or a block, found in its code: the templates of `advice`, and what goes around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.repository.pages import ROOT

HOLE = re.compile(r"\{(|path|words|yaml|text)\}")
PROGRAMS = (
    "anneal|argocd|aws|curl|export|flux|git (?:add|ls-remote)|gpg|helm|kubectl|kustomize|mkdir|openssl|pip|printf|promtool|sops|ssh-keyscan"
)
COMMAND = re.compile(rf"(?<![\w./-])(?:KUBECONFIG=\S+ )?(?:{PROGRAMS}) (?:[^`;\n]|(?<=' );)*")
BUILT = re.compile(rf"(?<![\w./'-])(?:{PROGRAMS}) [^`;\n,]*\0")
BLOCK = re.compile(r"[\w\0]: ?[\[{][^`\n]*\0|[{\[]\w+: ?\0|`[\w.]+: \0|\n *- ?\0|\n *[\w.]+: \0")


class Site(NamedTuple):
    """One template, and where it stands."""

    place: str
    template: str


def texts(node: ast.AST, names: dict[str, list[str]]) -> list[str] | None:
    """Return the literals that an argument is; None: it is something else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        both = texts(node.body, names), texts(node.orelse, names)
        return [*both[0], *both[1]] if both[0] is not None and both[1] is not None else None
    return names.get(node.id) if isinstance(node, ast.Name) else None


def named(tree: ast.AST) -> dict[str, list[str]]:
    """Return the literals of each name that nothing else is ever given to."""
    found: dict[str, list[str]] = {}
    others = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign):
            continue
        said = texts(node.value, {})
        for target in node.targets:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).extend(said or [])
                others |= set() if said else {target.id}
    return {name: said for name, said in found.items() if name not in others}


@cache
def trees() -> list[tuple[str, ast.Module]]:
    """Return the modules of `handler` but for the one that makes the texts."""
    paths = sorted((ROOT / "handler").rglob("*.py"))
    made = [(str(path.relative_to(ROOT)), path) for path in paths]
    return [(name, ast.parse(Path(path).read_text())) for name, path in made if name != "handler/model/advice.py"]


def calls(tree: ast.AST, function: str) -> Iterator[ast.Call]:
    """Yield the calls of a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            yield node


def sites(tree: ast.Module, name: str) -> Iterator[Site | str]:
    """Yield each template of a module, those of tables, too; as text the place of one that isn't a literal."""
    known = named(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\{(?:path|words|yaml)\}", node.value):
            yield Site(f"{name}:{node.lineno}", node.value)
    for call in calls(tree, "advice"):
        place = f"{name}:{call.lineno}"
        found = texts(call.args[0], known)
        yield from [place] if found is None else (Site(place, each) for each in found)


def built(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a module that put a command or a block together by hand; what is filled in stands as a NUL."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in node.values)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mod):
            text = "".join(str(side.value) if isinstance(side, ast.Constant) else "\0" for side in (node.left, node.right))
        else:
            continue
        if BUILT.search(text) or BLOCK.search(text):
            yield text.replace("\0", "{}")
