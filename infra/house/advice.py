"""Every place of `handler` that makes a command or a block, found in its code: the templates of `advice`, and what goes around it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from infra.house.sources import Source

HOLE = re.compile(r"\{(|path|words|yaml|text)\}")
PROGRAMS = (
    "anneal|argocd|aws|curl|export|flux|git (?:add|ls-remote)|gpg|helm|kubectl|kustomize|mkdir|openssl|pip|printf|promtool|sops|ssh-keyscan"
)
COMMAND = re.compile(rf"(?<![\w./-])(?:KUBECONFIG=\S+ )?(?:{PROGRAMS}) (?:[^`;\n]|(?<=' );)*")
PROSE = re.compile(
    r", | (?:says|shows|accepts|lets|ends|takes|makes|before|does|prints|brings|lists|or|and|has|deletes|packs|where|runs|after)\b.*"
)
"""What follows a command in a sentence."""
MAKER = "handler/model/advice.py"
"""The one module that makes the texts."""
_BUILT = re.compile(rf"(?<![\w./'-])(?:{PROGRAMS}) [^`;\n,]*\0")
_BLOCK = re.compile(r"[\w\0]: ?[\[{][^`\n]*\0|[{\[]\w+: ?\0|`[\w.]+: \0|\n *- ?\0|\n *[\w.]+: \0")
_FILLED = re.compile(r"\{(?:path|words|yaml)\}")


class Site(NamedTuple):
    """One template, and where it stands."""

    place: str
    template: str


def sites(source: Source) -> Iterator[Site | ast.Call]:
    """Yield each template of a module, those of tables, too; the call where it isn't a literal."""
    for node in source.texts():
        text = str(node.value)
        if "{" in text and _FILLED.search(text):
            yield Site(f"{source.name}:{node.lineno}", text)
    called = [*calls(source, "advice")]
    known = _named(source) if called else {}
    for call in called:
        found = _texts(call.args[0], known)
        yield from [call] if found is None else (Site(f"{source.name}:{call.lineno}", each) for each in found)


def calls(source: Source, function: str) -> Iterator[ast.Call]:
    """Yield the calls of a function."""
    return (node for node in source.of(ast.Call) if isinstance(node.func, ast.Name) and node.func.id == function)


def built(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of what puts a command or a block together by hand; what is filled in stands as a NUL."""
    for node in source.of(ast.JoinedStr, ast.BinOp):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Mod):
            continue
        parts = node.values if isinstance(node, ast.JoinedStr) else (node.left, node.right)
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "\0" for part in parts)
        if _BUILT.search(text) or _BLOCK.search(text):
            yield node.lineno, text.replace("\0", "{}")


def _texts(node: ast.AST, names: dict[str, list[str]]) -> list[str] | None:
    """Return the literals that an argument is; None: it is something else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.IfExp):
        both = _texts(node.body, names), _texts(node.orelse, names)
        return [*both[0], *both[1]] if both[0] is not None and both[1] is not None else None
    return names.get(node.id) if isinstance(node, ast.Name) else None


def _named(source: Source) -> dict[str, list[str]]:
    """Return the literals of each name that nothing else is ever given to."""
    found: dict[str, list[str]] = {}
    others = {node.arg for node in source.of(ast.arg)}
    for node in source.of(ast.Assign):
        said = _texts(node.value, {})
        for target in node.targets:
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).extend(said or [])
                others |= set() if said else {target.id}
    return {name: said for name, said in found.items() if name not in others}
