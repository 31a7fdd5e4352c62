"""CEL, the language of `healthCheckExprs`: the environment of all expressions, with Flux' extensions; loaded only where there are some.

cel-expr-python is Google's own CEL: it fails 8 of the 1,536 conformance tests on JSON-like values (without the two-variable macros that
Flux lacks, too); common-expression-language 0.10 fails 188, cel-python 0.5 574, and neither reads `status.?conditions`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from handler.model.optional_imports import needed_by

FIX = "write a CEL expression over the object's own fields: current: status.phase == 'Ready'"
STEPS = 10_000  # steps of macros (exists, all, filter, map) that one evaluation may take; the library's own bound
SPENT = "Iteration budget exceeded"  # how the library says that an evaluation took more
_EXTENSIONS = "extensions: [{name: strings}, {name: sets}, {name: encoders}, {name: optional}]"
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIRST = re.compile(r"(?:ERROR: )?<input>:(?P<place>\d+:\d+): (?P<said>[^\n]*)")
_UNDECLARED = re.compile(r"<input>:(?P<place>\d+:\d+): undeclared reference to '(?P<name>[^']*)'")
_TYPES = frozenset({"bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "timestamp", "type", "uint", "duration"})
_RESERVED = frozenset({"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"})
_WORDS_OF_CEL = _TYPES | _RESERVED | {"let", "loop", "package", "namespace", "return", "var", "void", "while", "optional_type"}


@cache
def environment() -> Any:
    """Return the environment, in which any top-level field of an object is a variable. Raises ConfigInvalid: no library."""
    return _environment({})


def compiled(expression: str) -> Any:
    """Return an expression fit to be evaluated; as in Flux, types are only known then. Raises RuntimeError: it can't be read."""
    return environment().compile(expression, disable_check=True)


@cache
def complaint(expression: str) -> str:
    """Return why CEL refuses an expression, read as Flux does, or names no function that exists; empty: fine. Raises ConfigInvalid."""
    environment()
    try:
        compiled(expression)
    except RuntimeError as error:
        first = _FIRST.search(str(error))
        return f"{first['place']}: {first['said']}" if first else " ".join(str(error).split())
    return _unknown_function(expression)


def _unknown_function(expression: str) -> str:
    """Compile with types, each word a variable of any type: what is undeclared then is a function. Nothing else counts."""
    words = set(_WORD.findall(expression)) - _WORDS_OF_CEL
    try:
        _environment(dict.fromkeys(words)).compile(expression)
    except RuntimeError as error:
        found = _UNDECLARED.search(str(error))
        return f"{found['place']}: there is no function '{found['name']}'" if found and found["name"] in words else ""
    return ""


def _environment(variables: dict[str, None]) -> Any:
    with needed_by("healthCheckExprs", "scripts/package --config FILE, of a configuration that has them,"):
        from cel_expr_python import cel  # noqa: PLC0415 - see above
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_EXTENSIONS), variables=dict.fromkeys(variables, cel.Type.DYN))
