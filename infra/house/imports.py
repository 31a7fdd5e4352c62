"""Who imports whom: layers, libraries, circles; a test imports from no other test."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter

from infra.house.layers import ADAPTERS, LAYERS, PURE, VENDORS
from infra.house.sources import ROOT, Fault, Source, line_at

HERE = "infra/house/layers.py"
ENTRIES = {"__init__.py", "__main__.py", "wsgi.py"}
"""The modules of the root."""
NAMED = re.compile(r"(handler(?:\.\w+)+)\.?(?::\w+)?")
"""A string that names a module, or what stands in it: `handler.feedback.log:EventLog`."""
_STANDARD = sys.stdlib_module_names
_LIBRARIES = re.compile(r"^VENDORS", re.MULTILINE)


def of_product(handler: Sequence[Source]) -> Iterator[Fault]:
    """Yield what breaks the law of imports."""
    used: dict[str, set[str]] = {}
    graph: dict[str, set[str]] = {each.module: set() for each in handler}
    for each in handler:
        room = _room_of(each.module)
        for line, imported in _imports(each):
            first = imported.partition(".")[0]
            if not _may_import(room, imported):
                yield Fault(each.name, line, f"{room} may not import {imported}: {_law(room, first)}")
            if first not in _STANDARD and first != "handler":
                used.setdefault(room, set()).add(first)
            if imported in graph and imported != each.module:
                graph[each.module].add(imported)
        yield from _relative(each)
    yield from _vendors(used)
    try:
        TopologicalSorter(graph).prepare()  # without the faces of packages
    except CycleError as error:
        circle = error.args[1]
        yield Fault(f"{circle[0].replace('.', '/')}.py", 1, f"imports go round, {' <- '.join(circle)}: move what both need to a third")
    yield from _rooms(handler)


def of_tests(tests: Sequence[Source]) -> Iterator[Fault]:
    """Yield what a test imports from another, but for the night's part of a file from the gate's."""
    for each in tests:
        for line, imported in _imports(each):
            if imported.startswith("tests.") and ".test_" in imported and not each.module.replace(".nightly.", ".").startswith(imported):
                yield Fault(each.name, line, f"imports from the test {imported}: move what both need to a module that is no test")
        yield from _relative(each)


def _law(room: str, first: str) -> str:
    if first != "handler":
        return f"a library that VENDORS of {HERE} doesn't give to this room; ask the room that has it, or write it there"
    return f"it lies beside or above{', or is an adapter' if room in PURE else ''} (LAYERS of {HERE}); have it handed in"


def _relative(source: Source) -> Iterator[Fault]:
    for node in source.of(ast.ImportFrom):
        if node.level:
            yield Fault(source.name, node.lineno, "a relative import: write the whole name")


def _imports(source: Source) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of all imports, also those inside functions, and of the modules that a string names."""
    for node in source.of(ast.Import):
        yield from ((node.lineno, alias.name) for alias in node.names)
    for node in source.of(ast.ImportFrom):
        yield from ((node.lineno, _module(node.module, alias.name)) for alias in node.names if not node.level)
    for node in source.of(ast.Constant):
        if isinstance(node.value, str) and node.value.startswith("handler.") and (named := NAMED.fullmatch(node.value)):
            yield node.lineno, named[1]


@cache
def _module(base: str, imported: str) -> str:
    """Return what `from base import imported` imports: a module of ours, or the module that has that name."""
    path = ROOT.joinpath(*base.split("."), imported)
    return f"{base}.{imported}" if base == "handler" or path.is_dir() or path.with_suffix(".py").is_file() else base


@cache
def _room_of(module: str) -> str:
    """Return the room of a dotted name below `handler`: the engine's are its folders, and what stands beside them."""
    first, *rest = module.split(".")[1:] or [""]
    inner = f"{first}.{rest[0]}" if rest else first
    return inner if any(inner in layer for layer in LAYERS) else first


def _layer(room: str, unknown: int) -> int:
    return next((number for number, rooms in enumerate(LAYERS) if room in rooms), unknown)


@cache
def _may_import(room: str, imported: str) -> bool:
    """Tell whether a module of a room may import a dotted name."""
    parts = imported.split(".")
    if parts[0] in _STANDARD or parts[1:2] == ["__version__"]:
        return True
    if parts[0] != "handler":
        return parts[0] in VENDORS.get(room.partition(".")[0], set())
    there = _room_of(imported)
    if room in PURE and there in ADAPTERS:
        return False
    return there == room or _layer(there, len(LAYERS)) < _layer(room, -1)


def _vendors(used: dict[str, set[str]]) -> Iterator[Fault]:
    """Yield the differences between the table of libraries and what rooms import."""
    line = line_at(text := (ROOT / HERE).read_text(), found.start() if (found := _LIBRARIES.search(text)) else 0)
    for room in sorted({*used, *VENDORS}):
        for library in sorted(VENDORS.get(room, set()) - used.get(room, set())):
            yield Fault(HERE, line, f"VENDORS gives {library} to {room}, which doesn't import it: take it out")
        for library in sorted(used.get(room, set()) - VENDORS.get(room, set())):
            yield Fault(HERE, line, f"VENDORS doesn't give {library} to {room}, which imports it: have another room import it, or add it")


def _rooms(handler: Sequence[Source]) -> Iterator[Fault]:
    """Yield rooms without a layer, layers without a room, and folders that are no packages."""
    names = {each.name for each in handler}
    rooms = {each.split("/")[1] for each in names if each.count("/") > 1}
    wanted = {room.partition(".")[0] for layer in LAYERS for room in layer} - {"wsgi", "__main__"}
    for room in sorted(rooms - wanted):
        yield Fault(f"handler/{room}/__init__.py", 1, f"this room has no layer: give it one in LAYERS of {HERE}")
    for room in sorted(wanted - rooms):
        yield Fault(HERE, 1, f"the room {room} of LAYERS isn't there: take it out")
    for name in sorted({f"handler/{each}" for each in ENTRIES} ^ {each for each in names if each.count("/") == 1}):
        yield Fault(name, 1, f"the root has {', '.join(sorted(ENTRIES))} and rooms alone: move it into a room")
    for folder in sorted({name.rpartition("/")[0] for name in names}):
        if f"{folder}/__init__.py" not in names:
            yield Fault(f"{folder}/__init__.py", 1, "each folder is a package: add this file, with a docstring")
