"""Lets jrsonnet evaluate a program over the files that it may see. Runs in the render child.

Law: the import callback is always set, and knows the files that the worker has resolved and nothing else: without one the library would
read the disk. There is no native function and no environment. What it raises becomes a mistake with file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import rjsonnet

from handler.model.errors import Problem
from handler.model.manifest import canonical
from handler.model.tree import MAX_PATH, printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.frames import encode
from handler.render.jsonnet.import_lexer import CONFIGURATION, MAX_IMPORTS, encode_imports, imports
from handler.render.jsonnet.jsonnet_errors import explain
from handler.render.jsonnet.jsonnet_output import encode_output

ENTRY = "//entry"
"""What the library asks the callback for first; no program may import what begins so."""
MAX_STACK = 500
_NO_LINE = "set `engine: gojsonnet`, which names the line"
"""The way out where the library says no line, as of a field that isn't there."""


def find_imports(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:  # noqa: ARG001 - as every function of a child
    """Yield what each part imports, all together at most one more than a program may have: then the worker says so."""
    left = MAX_IMPORTS + 1
    for number, data in enumerate(parts):
        found = list(islice(imports(data.decode("utf-8", "replace")), left))
        left -= len(found)
        yield encode_imports(number, found)


def evaluate(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the objects of a program, or its mistakes.

    Options: `files`: the path of each part; `lists`: what is imported of a trigger's resources, of each part behind them; `entrypoint`;
    `found`, `missing`: see `table`; `config`: JSON; `strings`, `codes`: external variables; `top_strings`, `top_codes`: top-level
    arguments; `rollout`: see `encode_output`.
    """
    importer = Importer(options, parts)
    entrypoint = printable(options["entrypoint"], MAX_PATH)
    try:
        made = rjsonnet.evaluate_file(  # type: ignore[call-arg]  # its stub lacks gc
            ENTRY,
            max_stack=MAX_STACK,
            import_callback=importer,
            ext_vars=options["strings"],
            ext_codes=options["codes"],
            tla_vars=options["top_strings"],
            tla_codes=options["top_codes"],
            gc=False,  # collecting takes four times as long as all else, and the child ends with this evaluation
        )
    except (RuntimeError, ValueError) as failed:
        said = importer.problem or explain(str(failed), options["entrypoint"], importer.files)
        yield encode(said if said.fix or said.place != entrypoint else replace(said, fix=_NO_LINE))
        return
    yield from encode_output(made.encode(), entrypoint, given=options["rollout"])


class Importer:
    """Answers the imports of one evaluation. `problem`: why it ended one."""

    def __init__(self, options: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        self.files = dict(zip((*options["files"], *options["lists"]), parts, strict=True))
        self._lists = frozenset(options["lists"])
        self.problem: Problem | None = None
        self._entrypoint, self._config = options["entrypoint"], options["config"]
        self._found = {(base, text): path for base, text, path in options["found"]}
        self._missing = {(base, text): Problem(*said) for base, text, *said in options["missing"]}

    def __call__(self, base: str, text: str) -> tuple[str, str]:
        """Return name and text of an imported file. Raises ValueError, with the reason in `problem`."""
        if text == CONFIGURATION:
            return CONFIGURATION, self._config
        if text in self._lists:
            return text, self.files[text].decode()
        path = self._entrypoint if text == ENTRY else self._found.get((base, text))
        if path is None:
            fix = "write the path as one literal: import 'lib/web.libsonnet'"
            unknown = Problem(printable(text), "is imported by what is no plain literal", base, fix)
            self.problem = self._missing.get((base, text), unknown)
            raise ValueError
        try:
            return path, self.files[path].decode()
        except UnicodeDecodeError:
            fix = "set `engine: gojsonnet`, which takes bytes (importbin)"
            self.problem = Problem(printable(path, MAX_PATH), "isn't UTF-8, and rjsonnet imports text only", fix=fix)
            raise ValueError from None


def read_configuration(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Read a file of configuration, JSON or YAML. Options: `place`: its path. Yields it as JSON, or mistakes."""
    found = list(documents(parts[0], options["place"]))
    problems = [item for item in found if isinstance(item, Problem)]
    values = [item for item in found if isinstance(item, Document) and item.value is not None]
    if not problems and len(values) > 1:
        problems = [Problem("configuration", f"holds {len(values):,} documents; one is read", values[1].place())]
    yield from map(encode, problems)
    if not problems:
        yield b"C" + canonical(values[0].value if values else {})
