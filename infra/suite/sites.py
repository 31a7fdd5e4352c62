"""Where the product can be mutated, and the mutants that stand for all of them."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

AREAS: dict[str, tuple[int, tuple[str, ...]]] = {
    "prune": (
        22,
        (
            "handler/plan/prune.py",
            "handler/plan/retention.py",
            "handler/plan/ownership.py",
            "handler/engine/apply/prune.py",
            "handler/engine/apply/let_claims_go.py",
            "handler/engine/planner/prune_check.py",
            "handler/engine/prune_alone.py",
            "handler/engine/retire.py",
        ),
    ),
    "admission": (8, ("handler/plan/admission.py", "handler/plan/guards.py")),
    "secret masks": (
        14,
        (
            "handler/model/field_masking.py",
            "handler/model/hidden_fields.py",
            "handler/model/quotation.py",
            "handler/plan/quoted_refusal.py",
            "handler/plan/visible_fields.py",
            "handler/config/secrets.py",
            "handler/config/secret_strength.py",
            "handler/cluster/quoted_values.py",
        ),
    ),
    "plan": (36, ("handler/plan/*.py", "handler/engine/planner/*.py")),
    "apply": (
        20,
        ("handler/engine/apply/*.py", "handler/engine/reconcile.py", "handler/engine/rollout_runner/runner.py", "handler/cluster/write.py"),
    ),
    "state": (18, ("handler/state/*.py",)),
    "signatures": (12, ("handler/triggers/signature.py", "handler/triggers/g*.py", "handler/source/signatures/*.py")),
    "web decisions": (
        12,
        (
            "handler/web/delivery_decision.py",
            "handler/web/webhooks.py",
            "handler/web/tokens.py",
            "handler/web/replay_endpoint.py",
            "handler/web/page/access.py",
            "handler/web/page/roles.py",
            "handler/web/page/sessions.py",
            "handler/web/page/acts.py",
        ),
    ),
    "pull request's comment": (8, ("handler/app/pull_requests/*.py",)),
}
"""How many mutants stand for an area, and its files; a file belongs to the first that names it."""
_OPPOSITE = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


@dataclass(frozen=True)
class Mutant:
    """One expression of the product and what stands in its place."""

    area: str
    """A key of AREAS."""
    path: str
    """The file, from the root of the checkout."""
    line: int
    """Where the expression begins, from 1."""
    span: tuple[int, int]
    """First byte of the expression in the file, and the one behind its last."""
    original: str
    """The expression."""
    changed: str
    """What stands in its place."""
    name: str
    """The same as long as file, function, expression and change are: results are kept under it."""

    def __str__(self) -> str:
        """Return place and change on one line."""
        return f"{self.path}:{self.line} {' '.join(self.original.split())[:60]} -> {' '.join(self.changed.split())[:60]}"


def chosen(root: Path) -> list[Mutant]:
    """Return the mutants of all areas, by place: of each area those whose names come first, which no other change of the code moves.

    Raises ValueError: AREAS names a file that isn't there any more.
    """
    seen: set[str] = set()
    found: list[Mutant] = []
    for area, (count, patterns) in AREAS.items():
        if gone := [pattern for pattern in patterns if not any(root.glob(pattern))]:
            raise ValueError(f"infra/suite/sites.py, AREAS: {', '.join(gone)} of {area} isn't there: name where its decisions are now")
        files = sorted({path for pattern in patterns for path in root.glob(pattern)} - {root / path for path in seen})
        seen.update(str(path.relative_to(root)) for path in files)
        possible = sorted((mutant for file in files for mutant in _of_file(root, file, area)), key=lambda mutant: mutant.name)
        found += _apart(possible, count)
    return sorted(found, key=lambda mutant: (mutant.path, mutant.span))


def _apart(possible: Sequence[Mutant], count: int) -> list[Mutant]:
    """Return the first ones that don't lie in one another, at most four of a file."""
    made: list[Mutant] = []
    for mutant in possible:
        same = [other for other in made if other.path == mutant.path]
        if len(same) < 4 and all(mutant.span[1] <= other.span[0] or other.span[1] <= mutant.span[0] for other in same):
            made.append(mutant)
        if len(made) == count:
            break
    return made


def _of_file(root: Path, file: Path, area: str) -> Iterator[Mutant]:
    source = file.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    path = str(file.relative_to(root))
    count: dict[str, int] = {}
    for function, node, changed in _changes(ast.parse(source)):
        span = (starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0))
        original = source[span[0] : span[1]].decode()
        if "#" in original:
            continue  # a comment inside would end what is put around it
        identity = f"{path} {function} {original} {changed}"
        count[identity] = count.get(identity, 0) + 1
        name = hashlib.sha256(f"{identity} {count[identity]}".encode()).hexdigest()[:10]
        yield Mutant(area, path, node.lineno, span, original, changed, name)


def _changes(tree: ast.Module) -> Iterator[tuple[str, ast.expr, str]]:
    """Yield the name of the function, an expression in its body, and what to put there."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        todo: list[ast.AST] = list(function.body)
        while todo:
            node = todo.pop()
            if isinstance(node, (ast.FunctionDef, ast.JoinedStr, ast.ClassDef, ast.AnnAssign)):
                continue  # a function has its own turn; inside a string no quote may be added
            yield from ((function.name, target, changed) for target, changed in _mutations(node))
            todo += ast.iter_child_nodes(node)


def _mutations(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _OPPOSITE:
            yield node, f"{_inside(left)} {_OPPOSITE[type(operator)]} {_inside(right)}"
        case ast.BoolOp(op=operator, values=values):
            yield node, (" or " if isinstance(operator, ast.And) else " and ").join(map(_inside, values))
            yield node, _inside(values[0])
            yield node, _inside(values[-1])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, f"bool{_inside(operand)}"
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, f"not {_inside(test)}"
        case ast.comprehension(ifs=[test, *_]):
            yield test, "True"
        case ast.Expr(value=ast.Call() as call):
            yield call, "None"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.Return(value=ast.expr() as value) if isinstance(value, (ast.List, ast.Tuple, ast.ListComp, ast.Dict, ast.DictComp)):
            yield value, "()" if isinstance(value, ast.Tuple) else "{}" if isinstance(value, (ast.Dict, ast.DictComp)) else "[]"
        case _:
            return


def _inside(node: ast.expr) -> str:
    return f"({ast.unparse(node)})"
