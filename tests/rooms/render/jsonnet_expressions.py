"""Expressions of jsonnet, generated from a seed: each format with flags, widths and numbers, each function of std with fitting arguments.

`values` has an engine evaluate many of them through the renderer: those that fail are found by halves, for an error ends a program.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

from handler.model.errors import AnnealError
from handler.render import Sandbox
from tests.rooms.render.jsonnet_programs import LIBRARY, PROGRAM, rendered

ERROR, AT_ONCE = "an error", 60
_NUMBERS = """
0 1 -1 2 7 -7 10 42 255 1000 65536 -65536 0.1 -0.1 0.5 1.5 2.5 -2.5 1.95 -0.01 -3.99 99.995 0.045 1.005 3.14159 123456.789 1e21 1e-7 -1e-7
9007199254740991 9007199254740993 12345678901234567890 1e15 1e16 1e100 5e-324 0.30000000000000004 100 1048576 -0
"""
_TEXTS = """
'' | 'a' | 'abc' | 'aXbXc' | 'é' | '🎈b' | ' a b ' | 'a,b,,c' | 'x: y' | '0x1f' | '10' | '-7' | 'aGk=' | '\\n\\t' | 'A/b+c'
"""
_ARRAYS = """
[] | [1] | [3, 1, 2] | [1, 1, 2] | ['b', 'a'] | [[1], [2, 3]] | [null, 1] | [true, false] | [0.1, 2.5] | [{a: 1}, {a: 2}]
"""
_OBJECTS = """
{} | {a: 1} | {b: 2, a: 1} | {a: {b: null}} | {a:: 1, b: 2} | {'x y': [1], z: 'é'} | {a: 0.1} | {a: [], b: {}}
"""
_FUNCTIONS = "function(x) x | function(x) [x] | function(x) x == 1 | function(x) std.toString(x)"
_ANY = "1 | 0.1 | 'a' | [1, {b: 2}] | {a: 1} | null | true"
NUMBERS = _NUMBERS.split()
KINDS = {
    kind: [each.strip() for each in text.split(" | ")]
    for kind, text in {"t": _TEXTS, "a": _ARRAYS, "o": _OBJECTS, "f": _FUNCTIONS, "i": "0 | 1 | 2 | 3 | 10", "v": _ANY}.items()
} | {"n": NUMBERS}
"""What arguments are made of: texts, arrays, objects, functions, small counts, any value, numbers."""
_STD = """
abs:n sign:n floor:n ceil:n round:n sqrt:n exp:n log:n log2:n log10:n sin:n cos:n tan:n asin:n acos:n atan:n atan2:nn hypot:nn pow:nn
max:nn min:nn mod:ni mantissa:n exponent:n clamp:nnn deg2rad:n rad2deg:n isEven:n isOdd:n isInteger:n isDecimal:n toString:v toString:n
type:v length:t length:a length:o codepoint:t char:i substr:tii findSubstr:tt startsWith:tt endsWith:tt stripChars:tt lstripChars:tt
rstripChars:tt split:tt splitLimit:tti splitLimitR:tti strReplace:ttt trim:t isEmpty:t equalsIgnoreCase:tt asciiUpper:t asciiLower:t
stringChars:t parseInt:t parseOctal:t parseHex:t parseJson:t encodeUTF8:t escapeStringJson:t escapeStringPython:t escapeStringBash:t
escapeStringDollars:t escapeStringXML:t base64:t base64Decode:t base64DecodeBytes:t md5:t sha1:t sha256:t sha512:t sha3:t format:tn
manifestJson:v manifestJsonMinified:v manifestJsonMinified:o manifestYamlDoc:v manifestYamlDoc:o manifestYamlStream:a manifestPython:v
manifestPythonVars:o manifestToml:o manifestXmlJsonml:a manifestIni:o makeArray:if member:av member:tt count:av find:va map:fa
mapWithIndex:fa flatMap:fa filter:fa filterMap:ffa foldl:fav range:ii repeat:ti repeat:ai slice:aiii join:ta join:aa deepJoin:a lines:a
flattenArrays:a flattenDeepArray:a reverse:a sort:a uniq:a all:a any:a sum:a avg:a minArray:a maxArray:a contains:av remove:av
removeAt:ai set:a setInter:aa setUnion:aa setDiff:aa setMember:va get:otv objectHas:ot objectHasAll:ot objectFields:o objectFieldsAll:o
objectValues:o objectValuesAll:o objectKeysValues:o objectRemoveKey:ot mapWithKey:fo mergePatch:oo prune:v prune:o equals:vv
assertEqual:vv isArray:v isBoolean:v isFunction:v isNumber:v isObject:v isString:v isNull:v xor:vv xnor:vv primitiveEquals:vv
resolvePath:tt thisFile: pi: trace:tv decodeUTF8:a
"""
STD = _STD.split()
OPERATORS = ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^", "<<", ">>", "&&", "||", "in")
KNOWN = (
    r"^std\.(sha1|sha256|sha512|sha3)\(",
    r"^std\.(xor|xnor|removeAt|isOdd|isEven|sum|avg|round)\(",
    r"^std\.(sin|cos|tan|asin|acos|atan|atan2|exp|log|log2|log10|hypot|pow)\(",
    r"^std\.(base64\(.*[^\x00-\x7f]|base64Decode\()",
    r"^std\.manifest\w+\(.*(0\.1|2\.5)",
    r"%.*[eEgG]'.*5e-324",
)
"""What the program and the library make otherwise: the table of docs/renderers.md, The engines."""
FLAGS = ("", "", "", "-", "+", " ", "0", "#", "-#", "+0", " 0", "+-")


def expressions(count: int, seed: int) -> list[str]:
    """Return so many different ones, the same of the same seed."""
    chance, found = random.Random(seed), dict[str, None]()
    kinds = (_format, _format, _function, _function, _function, _operation)
    while len(found) < count:
        found[chance.choice(kinds)(chance)] = None
    return list(found)


def _format(chance: random.Random) -> str:
    width, precision = chance.choice(("", "", "1", "5", "12")), chance.choice(("", "", ".0", ".1", ".2", ".5", ".10"))
    letter = chance.choice("diuoxXeEfFgGsc%")
    value = chance.choice(NUMBERS if letter not in "sc%" else ("65", "'a'", "'é'", "0.1", "{a: 1}", "[[1, 0.1]]", "null", "true", "1e21"))
    text = f"'%{chance.choice(FLAGS)}{width}{precision}{letter}'"
    return f"std.format({text}, [{value}])" if chance.random() < 0.5 else f"{text} % [{value}]"


def _function(chance: random.Random) -> str:
    name, _, kinds = chance.choice(STD).partition(":")
    if not kinds:
        return f"std.{name}"
    return f"std.{name}({', '.join(chance.choice(KINDS[kind]) for kind in kinds)})"


def _operation(chance: random.Random) -> str:
    operands = KINDS[chance.choice("nnntaov")]
    return f"({chance.choice(operands)}) {chance.choice(OPERATORS)} ({chance.choice(operands)})"


def values(sandbox: Sandbox, found: Sequence[str], engine: str) -> list[Any]:
    """Return what an engine makes of each; ERROR where it refuses, or its process ends."""
    if len(found) > AT_ONCE:
        return [made for at in range(0, len(found), AT_ONCE) for made in values(sandbox, found[at : at + AT_ONCE], engine)]
    listed = ",\n".join(f"{{ v: {each} }}" for each in found)
    text = f"{{ apiVersion: 'example.com/v1', kind: 'Made', metadata: {{ name: 'a' }}, spec: {{ made: [\n{listed}\n] }} }}"
    try:
        (made,) = rendered(sandbox, {"deploy/main.jsonnet": text}, engine).manifests
    except AnnealError:
        if len(found) == 1:
            return [ERROR]
        half = len(found) // 2
        return values(sandbox, found[:half], engine) + values(sandbox, found[half:], engine)
    return [each["v"] for each in made.body()["spec"]["made"]]


def unlisted_differences(sandbox: Sandbox, found: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Return the expressions of which the engines make something else, and whose difference isn't known, with what each makes."""
    pairs = zip(found, values(sandbox, found, PROGRAM), values(sandbox, found, LIBRARY), strict=True)
    differing = {text: (one, other) for text, one, other in pairs if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)}
    return {text: both for text, both in differing.items() if not any(re.search(each, text) for each in KNOWN)}
