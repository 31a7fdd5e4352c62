"""Which values a record may hold, and how each is written as JSON. What is read is untrusted: every value meets its rule.

A field's rule follows from its type: the `Annotated` names below for text with a form, `str` for free text, frozen dataclasses for objects.
By hand: msgspec says neither what a form expects in words, nor does it cut and clean what is written.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import math
import re
import types
import zlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields
from datetime import UTC, datetime
from functools import cache, partial
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from handler.model.names import Identity
from handler.model.quotation import escaped
from handler.model.to_json import camel

R = TypeVar("R")
GZIP_ABOVE = 4096  # characters above which a text is gzipped
INFLATED = 8_000_000  # most bytes that are inflated
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_IDENTITY = re.compile(r"([a-z0-9.-]{0,253})/([A-Za-z][A-Za-z0-9]{0,62}):([a-z0-9-]{0,63})/([^/%\s\x00-\x1f\x7f\ud800-\udfff]{1,253})")


def stamp(seconds: float) -> str:
    """Write seconds since the epoch as RFC 3339 in UTC, to the second."""
    return datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> float:
    """Read RFC 3339 in UTC (`Z`) of the years 1970 to 2999 as seconds since the epoch. Raises ValueError on anything else."""
    if len(text) > 32 or not text.endswith("Z") or not "1970" <= text < "3000":
        raise ValueError("expected a time like 2026-01-31T12:00:00Z")
    return datetime.fromisoformat(text).timestamp()


def gzipped_text(text: bytes) -> str:
    """Return a text gzipped, as base64; the same each time."""
    return base64.b64encode(gzip.compress(text, mtime=0)).decode()


def length_of(zipped: Any) -> int:
    """Return how many bytes a gzipped text says it is of: with another number `inflated` refuses it."""
    try:
        return int.from_bytes(base64.b64decode(str(zipped)[-8:])[-4:], "little")
    except ValueError:
        return 0


def inflated(zipped: Any) -> bytes:
    """Read what `gzipped_text` writes. Raises ValueError: it isn't one whole gzip stream, or of more than INFLATED bytes."""
    try:
        packed = base64.b64decode(zipped, validate=True)
        stream = zlib.decompressobj(wbits=31)
        text = stream.decompress(packed, INFLATED)
    except (TypeError, binascii.Error, zlib.error) as wrong:
        raise ValueError(f"expected gzip: {wrong}") from wrong
    if not stream.eof or stream.unused_data:
        raise ValueError(f"expected one whole gzip stream of at most {INFLATED} bytes")
    return text


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How one kind of value is read (a ValueError says what was expected) and written as JSON."""

    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = _as_it_is


def _free_text(limit: int, shown: Callable[[str], str] = _as_it_is) -> FieldRule:
    """Written, control characters and lone surrogates become U+FFFD and what is beyond the limit is cut. `shown`: also when read."""

    def write(value: str) -> str:
        clean = shown(_UNPRINTABLE.sub("\ufffd", value))
        return clean if len(clean) <= limit else clean[: limit - 1] + "…"

    def accepted(raw: Any) -> bool:
        return isinstance(raw, str) and len(raw) <= limit and not _UNPRINTABLE.search(raw)

    read = _only(accepted, f"printable text of at most {limit} characters")
    return FieldRule(lambda raw: write(read(raw)), write)


def _lines(text: str) -> str:
    return "\n".join(map(escaped, text.split("\n")))


def _only(accepted: Callable[[Any], object], expected: str) -> Callable[[Any], Any]:
    def read(raw: Any) -> Any:
        if not accepted(raw):
            raise ValueError(f"expected {expected}")
        return raw

    return read


def _form(pattern: str, expected: str) -> FieldRule:
    return FieldRule(_only(lambda raw: isinstance(raw, str) and re.fullmatch(pattern, raw, re.ASCII), expected))


def _number(form: type[int] | type[float]) -> FieldRule:
    types = (int,) if form is int else (int, float)

    def accepted(raw: Any) -> bool:
        return not isinstance(raw, bool) and isinstance(raw, types) and 0 <= raw <= 2**53 and math.isfinite(raw)

    read = _only(accepted, "a number, zero or more")
    return FieldRule(lambda raw: form(read(raw)), _as_it_is if form is int else lambda value: round(value, 3))


def _many(each: FieldRule) -> FieldRule:
    read = _only(lambda raw: isinstance(raw, list), "a list")
    return FieldRule(lambda raw: tuple(map(each.read, read(raw))), lambda value: [*map(each.write, value)])


def _time(raw: Any) -> str:
    text = raw if isinstance(raw, str) else ""
    seconds_of(text)
    return text


def _counts(raw: Any) -> dict[str, int]:
    if not isinstance(raw, dict) or len(raw) > 50:
        raise ValueError("expected at most 50 counts by word")
    return {_COUNTED.read(word): _NUMBER.read(count) for word, count in raw.items()}


def _identity(raw: Any) -> Identity:
    """Read `apps/Deployment:shop/api`: the identity annotation's spelling without the target."""
    found = _IDENTITY.fullmatch(raw) if isinstance(raw, str) else None
    if not found:
        raise ValueError("expected <group>/<Kind>:<namespace>/<name>")
    return Identity(*found.groups())


def is_recordable(identity: Identity) -> bool:
    """Whether a record can name an object: the API server takes any text without / and % as the name of a Role or RoleBinding."""
    return _IDENTITY.fullmatch(identity.mark("")[1:]) is not None


def _change_key(raw: Any) -> tuple[str, str, str]:
    if not isinstance(raw, list) or len(raw) != 3:
        raise ValueError("expected [action, object, uid]")
    return _WORD.read(raw[0]), _SUBJECT.read(raw[1]), _SUBJECT.read(raw[2])


_SUBJECT = _free_text(600)
_WORD = _form("[a-z][a-z0-9-]{0,39}", "a lower-case word")
_COUNTED = _form("(?:to )?[a-z][a-z0-9-]{0,39}", "what was done (`pruned`) or is to be done (`to prune`)")
_NUMBER = _number(int)
Sha = Annotated[str, _form("[0-9a-f]{40,64}", "40 to 64 hex digits")]
Word = Annotated[str, _WORD]
Time = Annotated[str, FieldRule(_time)]
Token = Annotated[str, _form(r"[A-Za-z0-9-]{1,64}\.[0-9]{1,10}", "<lease uid>.<transitions>")]
Tool = Annotated[str, _form("[A-Za-z0-9_-]{1,63}", "a tool, or the id of an ApplySet")]
Message = Annotated[str, _free_text(4000, _lines)]
Line = Annotated[str, _free_text(300, escaped)]
Path = Annotated[str, _free_text(4096)]
Segment = Annotated[str, _form(r"(?!\.{1,2}$)[^/%?#\s\x00-\x1f\x7f\ud800-\udfff]{0,253}", "one segment of a URL's path")]
ApiVersion = Annotated[str, _form(r"(?:(?:[a-z0-9][a-z0-9.-]{0,252}/)?[a-z][a-z0-9]{0,62})?", "an API version such as apps/v1")]
Counts = Annotated[Mapping[str, int], FieldRule(_counts, dict)]
ChangeKey = Annotated[tuple[str, str, str], FieldRule(_change_key, lambda key: [key[0], *map(_SUBJECT.write, key[1:])])]
_SIMPLE: dict[Any, FieldRule] = {
    str: _free_text(1024),
    bool: FieldRule(_only(lambda raw: isinstance(raw, bool), "true or false")),
    int: _NUMBER,
    float: _number(float),
    Identity: FieldRule(_identity, lambda identity: identity.mark("")[1:]),
}


def _rule_of(hint: Any) -> FieldRule:
    if get_origin(hint) is Annotated:
        found: FieldRule = hint.__metadata__[0]
        return found
    if get_origin(hint) in (Union, types.UnionType):
        return _rule_of(next(part for part in get_args(hint) if part is not type(None)))
    if get_origin(hint) is tuple:
        return _many(_rule_of(get_args(hint)[0]))
    return _SIMPLE[hint] if hint in _SIMPLE else FieldRule(partial(read_record, hint), write_record)


@cache
def _rules(form: Any) -> dict[str, tuple[Field[Any], FieldRule]]:
    hints = get_type_hints(form, include_extras=True)
    return {camel(item.name): (item, _rule_of(hints[item.name])) for item in fields(form)}


def _default(item: Field[Any]) -> Any:
    return item.default_factory() if item.default_factory is not MISSING else item.default


def read_record(form: type[R], raw: Any, only: tuple[str, ...] = ()) -> R:
    """Make a record from JSON. `only`: accept just these fields. Raises ValueError naming the field and what was expected."""
    return form(**read_fields(form, raw, only))


def read_fields(form: Any, raw: Any, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a record's checked fields by name; what has a default may be missing."""
    if not isinstance(raw, dict):
        raise ValueError("expected an object")  # noqa: TRY004 - one class of error for all untrusted input
    known = {key: row for key, row in _rules(form).items() if not only or row[0].name in only}
    if unknown := sorted(raw.keys() - known.keys()):
        raise ValueError(f"{unknown[0][:60]!r} is unknown here")
    found: dict[str, Any] = {}
    for key, (item, rule) in known.items():
        if key in raw:
            found[item.name] = read_value(key, rule, raw[key])
        elif _default(item) is MISSING:
            raise ValueError(f"{key} is missing")
    return found


def read_value(key: str, rule: FieldRule, raw: Any) -> Any:
    """Read one value; the ValueError names its key."""
    try:
        return rule.read(raw)
    except ValueError as wrong:
        raise ValueError(f"{key}: {wrong}") from wrong


def write_record(value: Any, only: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a record's JSON; fields that have their default are left out. `only`: just these fields."""
    found: dict[str, Any] = {}
    form: Any = type(value)
    for key, (item, rule) in _rules(form).items():
        member = getattr(value, item.name)
        if (not only or item.name in only) and (_default(item) is MISSING or member != _default(item)):
            found[key] = rule.write(member)
    return found


def field_rule(form: Any, name: str) -> FieldRule:
    """Return the rule of one field."""
    return _rules(form)[camel(name)][1]
