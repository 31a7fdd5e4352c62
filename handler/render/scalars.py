"""What one YAML scalar means to the API server's Go decoder (sigs.k8s.io/yaml on go.yaml.in/yaml v2).

Law: pure; every rule here is Go's, checked against it by the golden table in `tests/unit/render/go_yaml_golden.py`. PyYAML's own rules
differ in silence: `0o14`, `1e3`, `09`, `y` are strings to it, `12:30` is the integer 750, `2026-11-20` a date.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from decimal import Decimal

Scalar = str | int | float | bool | None

CORE = "tag:yaml.org,2002:"  # what `!!` stands for
UNKNOWN_TAG = "unknown tag; a text that begins with ! must be quoted"
"""The tag isn't quoted: it may be a password without its quotes."""

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMERIC = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_SIGN_WITHIN = re.compile(r"0b([-+][01]+)")  # go-yaml reads what stands behind 0b by itself
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_STRAY = re.compile(r"(?<![0-9])_|_(?![0-9])")
"""An underscore that doesn't stand between digits; Go minds that only where a number begins with its point."""
_TIMESTAMP = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt \t].*)?")
_LONGEST = 80  # no integer of 64 bits is longer, however it is written; Python refuses to read very long ones


def plain(text: str) -> Scalar:
    """Return what an unquoted scalar stands for. A float stays one even if it is whole (see `number`)."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC or (text[0] == "." and _STRAY.search(text)):
        return text
    digits = text.replace("_", "")
    whole = _integer(digits)
    if whole is not None:
        return whole
    value = float(digits) if _FLOAT.fullmatch(digits) else math.inf
    return text if math.isinf(value) else value


def tagged(tag: str, text: str) -> Scalar:
    """Return what a tagged scalar stands for. Raises ValueError, which never quotes the text: an unknown tag, or the text doesn't fit."""
    name = tag.removeprefix(CORE) if tag.startswith(CORE) else ""
    if tag == "!" or name == "str":
        return text
    if name == "binary":
        return _binary(text)
    if name == "timestamp" and _TIMESTAMP.fullmatch(text):
        return text
    value = plain(text)
    if name == "float" and type(value) is int and value < 2**63:
        value = float(value)
    types = {"bool": (bool,), "int": (int,), "float": (float,), "null": (type(None),), "timestamp": ()}
    if name not in types:
        raise ValueError(UNKNOWN_TAG)
    if type(value) not in types[name]:
        raise ValueError(f"the value isn't a !!{name}")
    return value


def number(value: float) -> int | float:
    """Return a float as Go writes it to JSON: whole numbers below 1e21 without fraction or exponent. Raises ValueError: infinity or NaN."""
    if not math.isfinite(value):
        raise ValueError("infinity and NaN can't be written as JSON; quote it if it is text")
    if value.is_integer() and abs(value) < 1e21:
        return int(Decimal(repr(value)))
    return value


def key(value: object) -> str:
    """Return a mapping key as Go writes it: `y` is "true". Raises ValueError: null, a collection, or beyond 64 signed bits."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() if -(2**63) <= value < 2**63:
            return str(value)
        case float():
            return _float_key(value)
        case None:
            raise ValueError("a key is null; quote it if it is text")
    raise ValueError("a key must be text")


def _integer(digits: str) -> int | None:
    """Go's `ParseInt(s, 0, 64)`, then `ParseUint`, which takes no sign."""
    if within := _SIGN_WITHIN.fullmatch(digits):
        digits = f"{within[1][0]}0b{within[1][1:]}"
    found = _INTEGER.fullmatch(digits) if len(digits) <= _LONGEST else None
    if not found:
        return None
    sign, hexadecimal, binary, octal, decimal = found.groups()
    text, base = next((part, base) for part, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)) if part)
    value = int(text, base) * (-1 if sign == "-" else 1)
    return value if -(2**63) <= value < (2**63 if sign else 2**64) else None


def _binary(text: str) -> str:
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise ValueError("!!binary must be base64 of UTF-8 text; other bytes belong in binaryData, without a tag") from None


def _float_key(value: float) -> str:
    """Go's `FormatFloat(value, 'g', -1, 32)`: the fewest digits that name the same 32-bit float, an exponent from 1e6 on."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    try:
        single = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise ValueError("a key is too large a number; quote it if it is text") from None
    tries = (f"{single:.{places}e}" for places in range(9))
    shortest = next((text for text in tries if struct.pack("<f", float(text)) == struct.pack("<f", single)), f"{single:.8e}")
    mantissa, _, exponent = shortest.partition("e")
    return shortest if not -4 <= int(exponent) < 6 else format(Decimal(f"{mantissa}e{exponent}"), "f")
