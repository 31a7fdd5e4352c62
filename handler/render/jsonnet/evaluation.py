"""Lets Google's library in C++ evaluate a program over the files that it may see. Runs in the render child, where the program can't.

Law: the import callback is always set, and knows the files that the worker has resolved and nothing else: without one the library would
read the disk. There is no native function and no environment. What it raises becomes a mistake with file and line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

try:
    import _jsonnet
except ImportError:  # no wheel is for Linux on ARM: there the worker asks for none of it
    _jsonnet = None

from handler.model.errors import Problem
from handler.model.manifest import canonical
from handler.model.tree import MAX_PATH, printable
from handler.render.document import Document
from handler.render.documents import documents
from handler.render.frames import encode
from handler.render.jsonnet.import_lexer import CONFIGURATION, MAX_IMPORTS, encode_imports, imports
from handler.render.jsonnet.jsonnet_errors import NO_YAML, explain
from handler.render.jsonnet.jsonnet_output import encode_output

MAX_STACK = 500
_YAML = "//parseYaml"
"""What no program can import: a function that is an error once it is called."""
_SHADOW = f"local std_of_the_library = std; local std = std_of_the_library {{ parseYaml:: import '{_YAML}' }}; "
"""Begins each program, so that nothing is read otherwise without a word: a `std` that is passed on refuses, too."""


def find_imports(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:  # noqa: ARG001 - as every function of a child
    """Yield what each part imports, all together at most one more than a program may have: then the worker says so."""
    left = MAX_IMPORTS + 1
    for number, data in enumerate(parts):
        found = list(islice(imports(data.decode("utf-8", "replace")), left))
        left -= len(found)
        yield encode_imports(number, found)


def evaluate(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the objects of a program, or its mistakes.

    Options: `files`: the path of each part; `lists`: what is imported of a trigger's resources, of each part behind; `entrypoint`;
    `found`, `missing`, `programs`: see `table`; `config`: JSON; `strings`, `codes`: external variables; `top_strings`, `top_codes`:
    arguments of the program; `rollout`: see `encode_output`.
    """
    importer = Importer(options, parts)
    entrypoint = printable(options["entrypoint"], MAX_PATH)
    try:
        made = _jsonnet.evaluate_snippet(
            options["entrypoint"],
            importer.files[options["entrypoint"]].decode("utf-8", "replace"),
            max_stack=MAX_STACK,
            import_callback=importer,
            ext_vars=options["strings"],
            ext_codes=options["codes"],
            tla_vars=options["top_strings"],
            tla_codes=options["top_codes"],
        )
    except (RuntimeError, ValueError) as failed:
        yield encode(importer.problem or explain(str(failed), options["entrypoint"], importer.files, before=len(_SHADOW)))
        return
    yield from encode_output(made.encode(), entrypoint, given=options["rollout"])


class Importer:
    """Answers the imports of one evaluation. `problem`: why it ended one."""

    def __init__(self, options: Mapping[str, Any], parts: Sequence[bytes]) -> None:
        self.files = dict(zip((*options["files"], *options["lists"]), parts, strict=True))
        self.files |= {path: _SHADOW.encode() + self.files[path] for path in options["programs"]}
        self._lists = frozenset(options["lists"])
        self.problem: Problem | None = None
        self._config = options["config"]
        self._found = {(base, text): path for base, text, path in options["found"]}
        self._missing = {(base, text): Problem(*said) for base, text, *said in options["missing"]}

    def __call__(self, base: str, text: str) -> tuple[str, bytes]:
        """Return name and bytes of an imported file. `base`: with a slash at its end. Raises ValueError, with the reason in `problem`."""
        base = base.rstrip("/")
        if text == _YAML:
            return _YAML, f"function(text) error '{NO_YAML}'".encode()
        if text == CONFIGURATION:
            return CONFIGURATION, self._config.encode()
        path = text if text in self._lists else self._found.get((base, text))
        if path is None:
            fix = "write the path as one literal: import 'lib/web.libsonnet'"
            unknown = Problem(printable(text), "is imported by what is no plain literal", base, fix)
            self.problem = self._missing.get((base, text), unknown)
            raise ValueError
        return path, self.files[path]


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
