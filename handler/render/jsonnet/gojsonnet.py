"""The engine: Google's own program in Go, `jsonnet`, which runs behind the walls of programs over the files that were imported.

Law: it gets the files of the commit that the imports lead to, values in files of their own, and no variable of an environment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from handler.model.errors import Problem
from handler.model.tree import MAX_PATH, printable
from handler.render.frames import encode
from handler.render.jsonnet.import_lexer import CONFIGURATION
from handler.render.jsonnet.jsonnet_errors import explain
from handler.render.jsonnet.jsonnet_output import encode_output
from handler.render.programs.program import Program, ProgramLimits

OWN = ".git"
"""The directory of values beside the commit's files: no tree of git can hold the name. Searched first, for the configuration is there."""
LIMITS = ProgramLimits()
_FLAGS = {"strings": "--ext-str-file", "codes": "--ext-code-file", "top_strings": "--tla-str-file", "top_codes": "--tla-code-file"}


def program(
    tool: str, options: Mapping[str, Any], search: Sequence[str], files: Mapping[str, bytes], lists: Mapping[str, bytes]
) -> tuple[Program, list[bytes]]:
    """Return what is run and its files. `tool`: the program; `options`: as of `evaluate`; `search`: of imports; `lists`: of a trigger."""
    contents = {**files, f"{OWN}/{CONFIGURATION}": options["config"].encode()}
    contents |= {f"{OWN}/{path}": text for path, text in lists.items()}
    arguments: list[str] = []
    for kind, flag in _FLAGS.items():
        for number, (name, text) in enumerate(options[kind].items()):
            path = f"{OWN}/{kind}/{number}"
            contents[path] = text.encode()
            arguments += (flag, f"{name}={path}")
    for directory in (*reversed(search), OWN):  # the rightmost wins
        arguments += ("--jpath", directory or ".")
    order = {path: number for number, path in enumerate(contents)}
    return Program(tool, (*arguments, "--", options["entrypoint"]), order, limits=LIMITS), list(contents.values())


def read_program(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes]:
    """Read what the program said. Options: `exit_code`, `home`: the program's; the others as of `evaluate`."""
    output, errors = parts
    if options["exit_code"]:
        missing = {(base, text): Problem(*said) for base, text, *said in options["missing"]}
        said = errors.decode("utf-8", "replace").replace(f"{options['home']}/", "")
        yield encode(explain(said, options["entrypoint"], options["files"], missing))
        return
    yield from encode_output(output, printable(options["entrypoint"], MAX_PATH), given=options["rollout"])


def codes(values: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """Return which of these are strings, and the others as code: JSON is jsonnet."""
    strings = {name: value for name, value in values.items() if isinstance(value, str)}
    return strings, {name: json.dumps(value) for name, value in values.items() if name not in strings}
