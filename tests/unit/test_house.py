"""The house rules of the source: who may import whom, how long things are, what never stands in code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.layers import ADAPTERS, LAYERS, PURE
from tests.source_files import HANDLER, ROOT, length, modules, name, nodes, sources, tree

pytestmark = pytest.mark.slow

PARTS = ("handler", "infra", "scripts", "tests")
FILE_LINES = 400  # fewer than
FUNCTION_LINES = 50  # at most, its docstring not counted

VENDORS = {
    "model": {"yaml"},  # settings that are advised, loaded by the first of them
    "config": {"cel_expr_python", "re2", "yaml"},
    "source": {"cryptography", "dulwich", "urllib3", "paramiko", "jwt", "pysequoia", "semantic_version"},
    "triggers": {"standardwebhooks"},
    "feedback": {"prometheus_client"},
    "render": {"_jsonnet", "pyrage", "yaml"},  # pyrage: age, which SOPS wraps data keys by; _jsonnet: jsonnet, in the child
    "plan": {"jsonschema"},
    "cluster": {"kubernetes", "urllib3", "yaml"},  # yaml: kubeconfigs
    "queues": {"botocore"},
    "prometheus": {"urllib3"},
    "aws": {"botocore"},
    "web": {"flask", "gunicorn", "werkzeug", "yaml", *("authlib", "itsdangerous", "jinja2", "joserfc", "urllib3")},  # the latter: the page
    "cli": {"click", "rich", "yaml", "urllib3"},  # yaml: what render and rbac print; urllib3: replay speaks to a running server
    "functions": {"apig_wsgi", "flask"},
}
UNCLEAR = {"utils", "util", "helpers", "helper", "manager", "misc", "common"}
SECRET = re.compile(r"secret|token|signature|password", re.IGNORECASE)
# Here `token` is the fencing token of a Lease's holder, a number and no secret.
# Their `signature` is a kind of packet, or a commit's: no secret.
PUBLIC = ("handler/source/signatures/openpgp.py",)
NAMED = re.compile(r"(handler(?:\.\w+)+)\.?(?::\w+)?")
"""A string that names a module, or what stands in it: `handler.feedback.log:EventLog`."""
FENCING = ("handler/state/", "handler/engine/")


def room(path: Path) -> str:
    """Return the room a module stands in; a module of the root is one of its own."""
    return room_of(".".join(("handler", *path.relative_to(HANDLER).with_suffix("").parts)))


def room_of(module: str) -> str:
    """Return the room of a dotted name below `handler`: the engine's are its folders, and what stands beside them."""
    first, *rest = module.split(".")[1:]
    inner = f"{first}.{rest[0]}" if rest else first
    return inner if any(inner in layer for layer in LAYERS) else first


def layer(origin: str) -> int:
    """Return how high a room lies."""
    return next(number for number, rooms in enumerate(LAYERS) if origin in rooms)


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of all imports, also those inside functions, and of the modules that a string names."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)}:{node.lineno}: imports are absolute"
            base = node.module or ""
            yield from ((node.lineno, _module(base, alias.name)) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (named := NAMED.fullmatch(node.value)):
            yield node.lineno, named[1]


def _module(base: str, imported: str) -> str:
    """Return what `from base import imported` imports: a module of ours, or the module that has that name."""
    path = ROOT.joinpath(*base.split("."), imported)
    return f"{base}.{imported}" if base == "handler" or path.is_dir() or path.with_suffix(".py").is_file() else base


def may_import(origin: str, imported: str) -> bool:
    """Tell whether a module of room `origin` may import a dotted name."""
    parts = imported.split(".")
    if parts[0] in sys.stdlib_module_names or parts[1:2] == ["__version__"]:
        return True
    if parts[0] != "handler":
        return parts[0] in VENDORS.get(origin.partition(".")[0], set())
    room = room_of(imported)
    if origin in PURE and room in ADAPTERS:
        return False
    return room == origin or layer(room) < layer(origin)


@pytest.mark.parametrize(
    ("origin", "imported", "allowed"),
    [
        ("plan", "handler.model.plan", True),
        ("plan", "handler.plan.order", True),
        ("plan", "handler.cluster.api", False),
        ("plan", "handler.engine.reconcile", False),
        ("plan", "handler.rollout.spec", True),
        ("rollout", "handler.plan.order", False),
        ("rollout", "handler.health.kstatus", True),
        ("health", "handler.rollout.spec", False),
        ("plan", "yaml", False),
        ("model", "handler.config.settings", False),
        ("model", "yaml", True),
        ("model", "dulwich", False),
        ("config", "handler.plan", False),
        ("state", "kubernetes.client", False),
        ("cluster", "kubernetes.client", True),
        ("cluster", "dulwich.repo", False),
        ("engine", "handler.cluster.api", True),
        ("engine", "kubernetes", False),
        ("engine.run", "handler.plan.order", True),
        ("engine.planner", "handler.engine.run.context", False),
        ("engine.waits", "handler.engine.run.context", True),
        ("engine.run", "handler.engine.reconcile", False),
        ("app", "handler.web.app", False),
        ("web", "handler.worker.worker", False),
        ("worker", "handler.app.build", True),
        ("state", "handler.cluster.api", False),
        ("triggers", "hmac", True),
        ("triggers", "flask", False),
    ],
)
def test_the_import_rule_tells_right_from_wrong(origin: str, imported: str, allowed: bool) -> None:
    assert may_import(origin, imported) is allowed


def test_an_import_goes_to_a_lower_layer_or_stays_in_its_room() -> None:
    found = ((path, line, imported) for path in modules() for line, imported in imports(path))
    assert [f"{name(path)}:{line}: {imported}" for path, line, imported in found if not may_import(room(path), imported)] == []


def test_no_import_goes_round() -> None:
    known = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in modules()}  # without the faces of packages
    graph = {origin: {to for _, to in imports(path) if to in known and to != origin} for origin, path in known.items()}
    TopologicalSorter(graph).prepare()  # a CycleError names the circle


def test_the_root_has_entry_points_and_rooms_alone() -> None:
    assert {path.name for path in HANDLER.glob("*.py")} == {"__init__.py", "__main__.py", "wsgi.py"}
    rooms = {path.name for path in HANDLER.iterdir() if path.is_dir() and any(path.rglob("*.py"))}
    assert rooms == {each.partition(".")[0] for layer in LAYERS for each in layer} - {"wsgi", "__main__"}


def test_each_folder_is_a_package() -> None:
    assert [name(path.parent) for path in modules() if not (path.parent / "__init__.py").is_file()] == []


def test_the_table_of_vendors_names_what_rooms_import_and_nothing_else() -> None:
    used: dict[str, set[str]] = {}
    for path in modules():
        libraries = {imported.partition(".")[0] for _, imported in imports(path)} - sys.stdlib_module_names - {"handler"}
        used[room(path)] = used.get(room(path), set()) | libraries
    assert {origin: libraries for origin, libraries in used.items() if libraries} == VENDORS


def test_files_are_short() -> None:
    lines = {name(path): len(path.read_text().splitlines()) for path in sources(*PARTS)}
    assert {path: count for path, count in lines.items() if count >= FILE_LINES} == {}


def test_functions_are_short() -> None:
    functions = (
        (path, node) for path in sources(*PARTS) for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    found = [
        f"{name(path)}:{each.lineno}: {each.name} has {length(each)} lines" for path, each in functions if length(each) > FUNCTION_LINES
    ]
    assert found == []


def test_a_module_says_its_law() -> None:
    assert [name(path) for path in sources("handler", "infra", "scripts") if not ast.get_docstring(tree(path))] == []


def test_no_module_is_named_for_nothing_it_does() -> None:
    assert [name(path) for path in sources("handler", "infra", "scripts") if UNCLEAR & set(Path(name(path)).with_suffix("").parts)] == []


def test_no_shell_is_run() -> None:
    found = ((path, node) for path in sources("handler", "infra", "scripts") for node in nodes(path))
    assert [f"{name(path)}:{node.lineno}" for path, node in found if isinstance(node, ast.keyword | ast.Attribute) and _shell(node)] == []


def _shell(node: ast.keyword | ast.Attribute) -> bool:
    if isinstance(node, ast.Attribute):
        return ast.unparse(node) in {"os.system", "os.popen", "subprocess.getoutput"}
    return node.arg == "shell" and not (isinstance(node.value, ast.Constant) and node.value.value is False)


@pytest.mark.parametrize(
    ("code", "found"), [("run(a, shell=True)", True), ("run(a, shell=b)", True), ("os.system(a)", True), ("run(a, shell=False)", False)]
)
def test_a_shell_is_recognized(code: str, found: bool) -> None:
    assert any(_shell(node) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.keyword | ast.Attribute)) is found


def secret_comparisons(module: ast.AST) -> list[tuple[int, str]]:
    """Return every `==` and `!=` that decides on a secret: such a comparison shows by its duration how much was right."""
    return [
        (node.lineno, ast.unparse(node))
        for node in ast.walk(module)
        if isinstance(node, ast.Compare) and _by_value(node) and any(_secret(side) for side in (node.left, *node.comparators))
    ]


def _by_value(node: ast.Compare) -> bool:
    """Tell whether a comparison looks at values; one with a literal (a kind's name, an empty text) guesses nothing."""
    literal = any(isinstance(side, ast.Constant) for side in (node.left, *node.comparators))
    return not literal and any(isinstance(op, ast.Eq | ast.NotEq) for op in node.ops)


def _secret(side: ast.expr) -> bool:
    found = side.attr if isinstance(side, ast.Attribute) else side.id if isinstance(side, ast.Name) else ""
    return bool(SECRET.search(found)) and not found.isupper()


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("given == secret", True),
        ("self.token != given", True),
        ("request.signature == expected", True),
        ("hmac.compare_digest(given, secret)", False),
        ("kind == SECRET", False),
        ("token == ''", False),
        ("secret is None", False),
    ],
)
def test_a_secret_comparison_is_recognized(code: str, found: bool) -> None:
    assert bool(secret_comparisons(ast.parse(code))) is found


def test_secrets_are_compared_in_constant_time() -> None:
    secret = [path for path in modules() if name(path) not in PUBLIC]
    found = [f"{name(path)}:{line}: {text}" for path in secret for line, text in secret_comparisons(tree(path))]
    assert [each for each in found if not (each.startswith(FENCING) and ".token" in each)] == []


def test_each_exception_to_a_rule_carries_its_reason() -> None:
    found = ((path, each) for path in sources(*PARTS) for each in _comments(path))
    assert [f"{name(path)}:{each.start[0]}: {each.string}" for path, each in found if _bare(each.string)] == []


def _comments(path: Path) -> list[tokenize.TokenInfo]:
    if not re.search(r"#\s*(noqa|type:|pragma:)", path.read_text()):
        return []
    with path.open("rb") as handle:
        return [token for token in tokenize.tokenize(handle.readline) if token.type == tokenize.COMMENT]


def _bare(comment: str) -> bool:
    """Tell whether a comment switches a rule off without saying why, or without naming the rule."""
    if not re.match(r"#\s*(noqa|type:\s*ignore|pragma:\s*no cover)", comment):
        return False
    return not re.fullmatch(
        r"#\s*(noqa: [A-Z]+\d+(, ?[A-Z]+\d+)*|type: ignore\[[\w, -]+\]|pragma: no (cover|branch))\s*[-(:#].{4,}", comment
    )


@pytest.mark.parametrize(
    ("comment", "bare"),
    [
        ("# noqa", True),
        ("# noqa: S603", True),
        ("# noqa: S603 - our own program", False),
        ("# type: ignore[arg-type]  # the stub is too narrow", False),
        ("# type: ignore", True),
        ("# pragma: no cover", True),
        ("# why it is so", False),
    ],
)
def test_a_bare_exception_is_recognized(comment: str, bare: bool) -> None:
    assert _bare(comment) is bare


def test_no_credential_and_no_path_of_a_machine_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    # Assembled, so that this file doesn't hold what it looks for.
    patterns = [
        "AKIA" + r"[0-9A-Z]{16}",
        "gh[pousr]_" + r"[A-Za-z0-9]{36}",
        "glpat-" + r"[\w-]{20}",
        "-----BEGIN (RSA |EC |OPENSSH )?PRIVATE KEY-----" + r"\n[A-Za-z0-9+/=]{40}",
        r"/(home|Users)/[a-z]+/",
        r"(?<![\w.])/(work|root)/[a-z.]",
    ]
    forbidden = re.compile("|".join(patterns))
    found = []
    for listed_name in filter(None, listed.split("\0")):
        path = ROOT / listed_name
        text = path.read_text(errors="replace") if path.is_file() else ""
        found += [f"{listed_name}: {match.group()[:12]}…" for match in forbidden.finditer(text)]
    assert found == []


def test_no_test_imports_from_another_test() -> None:
    found = ((path, line, imported) for path in sources("tests") for line, imported in imports(path))
    tests = ((path, line, each) for path, line, each in found if each.startswith("tests.") and ".test_" in each)
    assert [f"{name(path)}:{line}: {each}" for path, line, each in tests] == []


def test_no_public_class_has_the_name_of_another() -> None:
    places: dict[str, list[str]] = {}
    for path in modules():
        for each in tree(path).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                places.setdefault(each.name, []).append(name(path))
    assert {each: paths for each, paths in places.items() if len(paths) > 1} == {}


def test_no_module_gives_a_name_twice() -> None:
    """The second one would stand for both: a merge of two modules has done so."""
    found = {name(path): twice for path in modules() if (twice := [each for each, times in Counter(_given(path)).items() if times > 1])}
    assert found == {}


def _given(path: Path) -> Iterator[str]:
    for node in tree(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        yield from (each.id for each in targets if isinstance(each, ast.Name))
        yield from [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []


def test_a_unit_test_is_called_like_the_module_or_package_it_judges() -> None:
    unit = ROOT / "tests" / "unit"
    found = [path.relative_to(unit) for path in unit.rglob("test_*.py") if path.parent != unit]
    assert [str(path) for path in found if not _judged(path)] == []


def _judged(test: Path) -> bool:
    """Tell whether a module beside, or the package itself, has the name at the front of a test's."""
    folder = HANDLER / test.parent
    names = (
        {folder.name, *(path.stem for path in folder.glob("*.py")), *(path.name for path in folder.glob("*/"))}
        if folder.is_dir()
        else set()
    )
    return any(f"{test.stem}_".startswith(f"test_{each}_") for each in names)
