"""Expressions of jsonnet, generated from a seed: each format with flags, widths and numbers, each function of std with fitting arguments.

`by_program` asks Google's bare program, one process for each. `by_library` has the renderer's library evaluate many at once: an error ends
a program, and its line says which one is left out of the next.
"""

from __future__ import annotations

import random
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from handler.model.errors import AnnealError
from handler.model.manifest import Manifest
from handler.render import Sandbox
from handler.render.jsonnet.jsonnet_output import read_output
from infra.renderers.build import binaries
from tests.nightly.differential import ERROR, Answer
from tests.patience import PATIENCE
from tests.rooms.render.jsonnet_programs import LIBRARY, rendered

MAIN, AT_ONCE = "deploy/main.jsonnet", 60
_LINE = re.compile(rf"{MAIN}:(\d+)")
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


def by_program(found: Sequence[str]) -> list[Answer]:
    """Return what Google's bare program makes of each."""
    program = str(binaries() / "jsonnet")
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "deploy").mkdir()
        return [_by_program(program, Path(place), each) for each in found]


def _by_program(program: str, place: Path, text: str) -> Answer:
    (place / MAIN).write_text(_program([text]))
    done = subprocess.run([program, MAIN], cwd=place, capture_output=True, check=False, timeout=PATIENCE)
    if done.returncode:
        return Answer(ERROR, done.stderr.decode(errors="replace")[:200])
    rows = list(read_output(done.stdout, MAIN, given=False))
    return next((_values(each)[0] for each in rows if isinstance(each, Manifest)), Answer(ERROR, str(rows[0])))


def by_library(sandbox: Sandbox, found: Sequence[str], reference: Sequence[Answer]) -> list[Answer]:
    """Return what the library makes of each. `reference`: the program's: what is an error there is likely one here, and goes alone."""
    likely = [text for text, each in zip(found, reference, strict=True) if each.value != ERROR]
    groups = [likely[at : at + AT_ONCE] for at in range(0, len(likely), AT_ONCE)]
    groups += [[text] for text, each in zip(found, reference, strict=True) if each.value == ERROR]
    made = {text: answer for group in groups for text, answer in _by_library(sandbox, group).items()}
    return [made[text] for text in found]


def _by_library(sandbox: Sandbox, group: Sequence[str]) -> dict[str, Answer]:
    """Evaluate a group; where one of it fails, the others without it."""
    if not group:
        return {}
    try:
        (made,) = rendered(sandbox, {MAIN: _program(group)}, LIBRARY).manifests
    except AnnealError as error:
        if len(group) == 1:
            return {group[0]: Answer(ERROR, str(error))}
        line = _LINE.match(error.problems[0].place or "")
        at = int(line[1]) - 2 if line else len(group) // 2
        failed = group[at : at + 1] if line else []
        return _by_library(sandbox, failed) | _by_library(sandbox, group[:at]) | _by_library(sandbox, group[at + len(failed) :])
    return dict(zip(group, _values(made), strict=True))


def _program(found: Sequence[str]) -> str:
    """Return a program that makes an object of these, each in a line of its own."""
    listed = ",\n".join(f"{{ v: {each} }}" for each in found)
    return f"{{ apiVersion: 'example.com/v1', kind: 'Made', metadata: {{ name: 'a' }}, spec: {{ made: [\n{listed}\n] }} }}"


def _values(made: Manifest) -> list[Answer]:
    return [Answer.of(each["v"]) for each in made.body()["spec"]["made"]]
