"""What Google's library makes otherwise than its program, and only that: a predicate for each row of docs/differences.md, jsonnet."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from handler.render import Sandbox
from tests.nightly.differential import ERROR, Answer, Covers, Question, compare, rows, words
from tests.rooms.render.jsonnet_expressions import by_library, by_program

_CLOSE = 1e-12
_HALVES = 2**52  # from here on a double has none
_CALL = re.compile(r"std\.(\w+)\((.*)\)", re.DOTALL)
_DIGITS = re.compile(r"-?\d+\.\d{15,}")
_CURVES = words("sin cos tan asin acos atan atan2 exp log log2 log10 hypot pow")


def _called(asks: Question, *names: str) -> str:
    """Return the arguments of a call of one of these functions; empty: it is none."""
    found = _CALL.fullmatch(asks["text"])
    return found[2] if found and found[1] in names else ""


def _values(ours: Answer, theirs: Answer) -> tuple[Any, Any]:
    """Return both values; an error is its word."""
    one, other = (each.value if each.value == ERROR else json.loads(each.value) for each in (ours, theirs))
    return one, other


def _hash(asks: Question, ours: Answer, theirs: Answer) -> bool:
    return bool(_called(asks, "sha1", "sha256", "sha512", "sha3")) and ours.value == ERROR != theirs.value


def _fraction(asks: Question, ours: Answer, theirs: Answer) -> bool:
    one, other = _values(ours, theirs)
    if not asks["text"].startswith("std.manifest") or not isinstance(one, str) or ERROR in (one, other):
        return False
    return bool(_DIGITS.sub(lambda each: repr(float(each[0])), one) == other)


def _encoded(asks: Question, ours: Answer, theirs: Answer) -> bool:
    one, other = _values(ours, theirs)
    if not _called(asks, "base64") or ERROR in (one, other):
        return False
    return base64.b64decode(one).decode("latin-1") == base64.b64decode(other).decode()


def _decoded(asks: Question, ours: Answer, theirs: Answer) -> bool:
    one, other = _values(ours, theirs)
    if not _called(asks, "base64Decode") or ERROR in (one, other):
        return False
    return bool(one.encode("latin-1").decode(errors="replace") == other)


def _round(asks: Question, ours: Answer, theirs: Answer) -> bool:
    argument, (one, other) = _called(asks, "round"), _values(ours, theirs)
    if not argument or ERROR in (one, other):
        return False
    value = float(argument)
    away = math.floor(abs(value) + 0.5) if abs(value) < _HALVES else abs(value)
    return bool(other == math.copysign(away, value) and one == math.floor(value + 0.5))


def _last_digits(asks: Question, ours: Answer, theirs: Answer) -> bool:
    one, other = _values(ours, theirs)
    if not _called(asks, *_CURVES) or ERROR in (one, other):
        return False
    return math.isclose(one, other, rel_tol=_CLOSE, abs_tol=0.0)


def _smallest(asks: Question, ours: Answer, theirs: Answer) -> bool:
    asked = "[5e-324]" in asks["text"] and re.search(r"'%[^']*[eEgG]'", asks["text"])
    return bool(asked or "5e-324" in _called(asks, "log10", "pow")) and ERROR not in (ours.value, theirs.value)


def _shift(asks: Question, ours: Answer, theirs: Answer) -> bool:
    return ") << (" in asks["text"] and ours.value == ERROR != theirs.value


def _odd(asks: Question, ours: Answer, theirs: Answer) -> bool:
    argument = _called(asks, "isOdd", "isEven")
    odd = bool(argument) and (not float(argument).is_integer() or abs(float(argument)) >= _HALVES)
    return odd and ERROR not in (ours.value, theirs.value)


def _lenient(*names: str) -> Covers:
    """Return the predicate of functions that the library doesn't refuse."""
    return lambda asks, ours, theirs: bool(_called(asks, *names)) and theirs.value == ERROR != ours.value


def _split(asks: Question, ours: Answer, theirs: Answer) -> bool:
    return ", ''" in _called(asks, "splitLimit") and theirs.value == ERROR != ours.value


def _empty(asks: Question, ours: Answer, theirs: Answer) -> bool:
    return _called(asks, "member").endswith("', ''") and (ours.value, theirs.value) == ("false", "true")


KNOWN: Mapping[str, Covers] = {
    "`std.sha1`, `sha256`, `sha512`, `sha3`": _hash,
    "A fraction in `std.manifestYamlDoc`, `manifestJson` and their kin": _fraction,
    "`std.base64` of what isn't ASCII": _encoded,
    "`std.base64Decode` of what isn't ASCII": _decoded,
    "`std.round` of a negative half, and beyond 2^52": _round,
    "The last digits of `std.sin`, `exp`, `log`, `pow` and their kin": _last_digits,
    "`%e`, `%g`, `std.log10` and `pow` of the smallest number": _smallest,
    "`<<` beyond 2^53": _shift,
    "`std.isOdd` and `isEven` of a fraction, and beyond 2^52": _odd,
    "`std.xor` and `xnor` of no truths": _lenient("xor", "xnor"),
    "`std.sum` of texts": _lenient("sum"),
    "`std.removeAt` beyond the end": _lenient("removeAt"),
    "An empty text in `std.splitLimit`": _split,
    "An empty text in `std.member`": _empty,
}
"""The rows of docs/differences.md, jsonnet, each with the question whether a difference is one that it is about."""


def compare_engines(sandbox: Sandbox, found: Sequence[str]) -> None:
    """Fail where the library makes something else of an expression than the program, and no row of the page says so."""
    asked = list(dict.fromkeys((*(row.example for row in rows("jsonnet")), *found)))
    program = by_program(asked)
    theirs, ours = (dict(zip(asked, each, strict=True)) for each in (program, by_library(sandbox, asked, program)))
    questions = [{"text": text} for text in found]
    compare("jsonnet", questions, lambda each: ours[each["text"]], KNOWN, reference=lambda some: [theirs[each["text"]] for each in some])
