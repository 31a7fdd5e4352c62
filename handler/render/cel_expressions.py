"""What the expressions of `healthCheckExprs` say of live objects; runs in a child of a fork server of its own.

Law: an expression may be quadratic in a list of the cluster's. So an evaluation has a bound of steps (`handler.config.cel`), a child one of
processor time, and each verdict is sent before the next object is looked at: those of a child that is killed aren't lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from handler.config import cel
from handler.model.health import CURRENT, FAILED, IN_PROGRESS, NOTHING, Answer

_CODE = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")  # how the library begins and ends what it says
_WORDS = (
    (re.compile(r'Key not found in map : "?([^"]*)"?'), r"no such key: \1"),
    (re.compile(r'No value with name "([^"]*)" found in Activation'), r"no such field: \1"),
)
"""What it says most often, in cel-go's words, which Flux' users know."""
_LONGEST = 300

cel.environment()  # loaded by the fork server: a child may open no file


def judge(options: Mapping[str, Any], parts: Sequence[bytes]) -> Iterator[bytes | None]:
    """Yield an `Answer` for each object in JSON. Options: `entries`: lists of inProgress, failed, current; `of`: each object's entry."""
    programs = [tuple(zip((IN_PROGRESS, FAILED, CURRENT), map(_program, entry), strict=True)) for entry in options["entries"]]
    for index, part in zip(options["of"], parts, strict=True):
        yield _answer(programs[index], json.loads(part)).encode()
        yield None


def _program(expression: str) -> Callable[[Any], Any] | None:
    if not expression:
        return None
    program = cel.compiled(expression)
    return lambda live: program.eval(data=live)


def _answer(programs: Sequence[tuple[str, Callable[[Any], Any] | None]], live: dict[str, Any]) -> Answer:
    """Ask one after the other, as Flux does: the first that is true decides, or that can't be evaluated."""
    for name, program in programs:
        if program is None:
            continue
        try:
            value = program(live)
        except RuntimeError as error:
            return Answer(name, spent=cel.SPENT in str(error), wrong=_plain(str(error)))
        kind = value.type().name()
        if kind != "BOOL":
            return Answer(name, wrong=_failed(value) if kind == "ERROR" else f"is no truth value but {kind.lower()}")
        if value.value():
            return Answer(name)
    return Answer(NOTHING)


def _failed(value: Any) -> str:
    try:
        return _plain(str(value.plain_value()))
    except TypeError:  # the library takes an optional for an error, and can't say which
        return "is no truth value but an optional: write .orValue(false) behind it"


def _plain(words: str) -> str:
    for pattern, written in _WORDS:
        words = pattern.sub(written, words)
    return _CODE.sub("", _CODE.sub("", words))[:_LONGEST]


FUNCTIONS = {"health": judge}
