"""How long things are, how they are called, what documents them, and what never stands in code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from infra.house.sources import ROOT, Fault, Function, Source, inner

FILE_LINES = 400  # fewer than
FUNCTION_LINES = 50  # at most, its docstring not counted
MEDIAN_LINES = 6  # at most, docstrings not counted
UNCLEAR = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}
SECRET = re.compile(r"secret|token|signature|password", re.IGNORECASE)
# Here `token` is the fencing token of a Lease's holder, a number and no secret.
FENCING = ("handler/state/", "handler/engine/")
# Their `signature` is a kind of packet, or a commit's: no secret.
PUBLIC = ("handler/source/signatures/openpgp.py",)
_SHELLS = {"os.system", "os.popen", "subprocess.getoutput"}
_SWITCH = re.compile(r"#\s*(?:noqa|type:\s*ignore|pragma:\s*no cover).*")
_REASONED = re.compile(r"#\s*(noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|type: ignore\[[\w, -]+\]|pragma: no (cover|branch))\s*[-(:#].{4,}")
_Scope = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def of_file(source: Source) -> Iterator[Fault]:
    """Yield what is wrong with any file, tests included: too long, or a rule switched off without a reason."""
    if (lines := len(source.text.splitlines())) >= FILE_LINES:
        yield Fault(source.name, lines, f"{lines} lines, fewer than {FILE_LINES} are wanted: split the file by what it does")
    for each in source.functions():
        if (lines := length(each)) > FUNCTION_LINES:
            yield Fault(source.name, each.lineno, f"{each.name} has {lines} lines, at most {FUNCTION_LINES}: give a part of it a name")
    for line, comment in comments(source) if any(map(_bare, _SWITCH.findall(source.text))) else ():
        if _SWITCH.match(comment) and _bare(comment):
            yield Fault(source.name, line, f"`{comment}` switches off: name the rule, and say why (`# noqa: S603 - our own program`)")


def of_product(source: Source) -> Iterator[Fault]:
    """Yield what is wrong with a file that is no test."""
    if not ast.get_docstring(source.tree):
        yield Fault(source.name, 1, "no docstring: say in one sentence what the module does")
    if unclear := UNCLEAR & {*Path(source.name).with_suffix("").parts}:
        yield Fault(source.name, 1, f"`{min(unclear)}` in its name says nothing that it does: name it for that")
    for node in source.of(ast.Attribute):
        if node.attr in ("system", "popen", "getoutput") and ast.unparse(node) in _SHELLS:
            yield Fault(source.name, node.lineno, f"{ast.unparse(node)} runs a shell: run a program with a list of arguments")
    for node in source.of(ast.keyword):
        if node.arg == "shell" and not (isinstance(node.value, ast.Constant) and node.value.value is False):
            yield Fault(source.name, node.lineno, "shell= runs a shell: run a program with a list of arguments")


def of_handler(source: Source) -> Iterator[Fault]:
    """Yield what is wrong with a module of the product."""
    for each in _long_private_docstrings(source.tree):
        yield Fault(source.name, each.lineno, f"the docstring of {each.name}, which is private, has more than one line: make it one")
    if any(each in source.text for each in ("__setattr__", "__dict__", "vars")):
        for write in _outside_writes(source.tree):
            yield Fault(source.name, write.lineno, f"{ast.unparse(write)} writes into an object from outside: make another object")
    for line, text in _secret_comparisons(source):
        yield Fault(source.name, line, f"{text} shows by its duration how much was right: compare by hmac.compare_digest")
    known: set[str] = set()
    for name, line in _given(source):
        if name in known:
            yield Fault(source.name, line, f"{name} is given a second time, and would stand for both: give it another name")
        known.add(name)


def of_all_handler(handler: Sequence[Source]) -> Iterator[Fault]:
    """Yield what is wrong with the modules of the product as a whole."""
    lengths = sorted((length(each), source.name, each.lineno) for source in handler for each in source.functions())
    if (found := median(lines for lines, _, _ in lengths)) > MEDIAN_LINES:
        said = f"the median function of handler has {found} lines, at most {MEDIAN_LINES}: split long ones; this is the longest"
        yield Fault(*lengths[-1][1:], said)
    places: dict[str, str] = {}
    for source in handler:
        for each in source.tree.body:
            if not isinstance(each, ast.ClassDef) or each.name.startswith("_"):
                continue
            if (first := places.setdefault(each.name, source.name)) != source.name:
                yield Fault(source.name, each.lineno, f"the class {each.name} has the name of one of {first}: give it another")


def of_all_tests() -> Iterator[Fault]:
    """Yield the unit tests that are called like no module or package."""
    unit = ROOT / "tests" / "unit"
    for path in sorted(unit.rglob("test_*.py")):
        if path.parent != unit and not _judged(path.relative_to(unit)):
            said = f"called like no module of handler/{path.parent.relative_to(unit)}: a unit test is called like what it judges"
            yield Fault(str(path.relative_to(ROOT)), 1, said)


def length(function: Function) -> int:
    """Return the lines of a function without those of its docstring."""
    whole = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is None:
        return whole
    return whole - ((first.end_lineno or first.lineno) - first.lineno + 1)


def comments(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and text of each comment. To find them costs more than to parse the file: a rule asks where one may be broken."""
    for token in tokenize.generate_tokens(io.StringIO(source.text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _bare(comment: str) -> bool:
    """Tell whether a comment that switches a rule off doesn't name it, or doesn't say why."""
    return not _REASONED.fullmatch(comment)


def _long_private_docstrings(node: ast.AST, private: bool = False) -> Iterator[Function]:
    """Yield each private function, and each method of a private class, whose docstring has more than one line."""
    for each in inner(node):
        inside = private
        if isinstance(each, _Scope):
            inside = private or (each.name.startswith("_") and not each.name.endswith("__"))
        if inside and isinstance(each, Function) and "\n" in (ast.get_docstring(each) or ""):
            yield each
        yield from _long_private_docstrings(each, inside)


def _outside_writes(node: ast.AST, scopes: tuple[_Scope, ...] = ()) -> Iterator[ast.Call | ast.Subscript]:
    """Yield what writes past a class: `object.__setattr__` but on `self` in a constructor of the class, and `x.__dict__[…] = …`."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "object.__setattr__" and not _own(each, scopes):
            yield each
        if isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load) and _dict_of(each.value):
            yield each
        yield from _outside_writes(each, (*scopes, each) if isinstance(each, _Scope) else scopes)


def _own(call: ast.Call, scopes: tuple[_Scope, ...]) -> bool:
    """Tell whether a call writes `self`, directly in `__init__` or `__post_init__` of a class."""
    if len(scopes) < 2 or not isinstance(scopes[-2], ast.ClassDef) or scopes[-1].name not in ("__init__", "__post_init__"):
        return False
    return bool(call.args) and ast.unparse(call.args[0]) == "self"


def _dict_of(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) == "vars"
    return isinstance(value, ast.Attribute) and value.attr == "__dict__"


def _secret_comparisons(source: Source) -> Iterator[tuple[int, str]]:
    """Yield every `==` and `!=` that decides on a secret: such a comparison shows by its duration how much was right."""
    for node in source.of(ast.Compare) if source.name not in PUBLIC else ():
        if _by_value(node) and any(_secret(side) for side in (node.left, *node.comparators)):
            text = ast.unparse(node)
            if not (source.name.startswith(FENCING) and ".token" in text):
                yield node.lineno, text


def _by_value(node: ast.Compare) -> bool:
    """Tell whether a comparison looks at values; one with a literal (a kind's name, an empty text) guesses nothing."""
    literal = any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators))
    return not literal and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)


def _secret(side: ast.expr) -> bool:
    found = side.attr if isinstance(side, ast.Attribute) else side.id if isinstance(side, ast.Name) else ""
    return bool(SECRET.search(found)) and not found.isupper()


def _given(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the names that a module gives, each with its line."""
    for node in source.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        yield from ((each.id, node.lineno) for each in targets if isinstance(each, ast.Name))
        yield from [(node.name, node.lineno)] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def _judged(test: Path) -> bool:
    """Tell whether a module beside, or the package itself, has the name at the front of a test's."""
    folder = ROOT / "handler" / test.parent
    if not folder.is_dir():
        return False
    names = {folder.name, *(path.stem for path in folder.glob("*.py")), *(path.name for path in folder.glob("*/"))}
    return any(f"{test.stem}_".startswith(f"test_{each}_") for each in names)
