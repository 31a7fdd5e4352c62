"""Expressions of `healthCheckExprs`, as Flux evaluates them by cel-go: what is read, what is true, and what fails."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from handler.config import cel
from handler.model.health import CURRENT
from handler.model.health import Answer as Verdict
from handler.render.cel_expressions import judge
from tests.nightly.differential import ERROR, Answer, Covers, Question, compare, seeded, words

EXPRESSIONS = 5_000
OBJECT: dict[str, Any] = {
    "apiVersion": "example.com/v1",
    "kind": "Thing",
    "metadata": {"name": "a-1", "generation": 2, "labels": {"app": "x", "k.l/m": "y"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {"replicas": 3, "weight": 1.5, "paused": False, "size": "10Gi", "empty": "", "none": None, "big": 9007199254740993},
    "status": {
        "observedGeneration": 2,
        "phase": "Ready",
        "message": "Äb é😀 c",
        "ratio": 3.0,
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
            {"type": "Synced", "status": "False"},
        ],
        "numbers": [1, 2.5, 3, -4],
        "words": ["b", "a", "b"],
        "mixed": [1, "a", True, None, {}, []],
        "time": "90s",
        "encoded": "aGk=",
    },
}
TEXTS = [
    *words("'Ready' 'x' ''"),
    *words("\"b\" 'é😀' r'\\d' 'a-1' kind apiVersion metadata.name metadata.labels.app metadata.labels['k.l/m'] spec.size"),
    *words("spec.empty status.phase status.message status.time status.encoded status['phase'] status.conditions[0].type"),
    *words("status.words[1] status.mixed[1]"),
    *words("status.?missing.orValue('x') status[?'phase'].orValue('') string(spec.replicas) string(1.5) string(true)"),
]
NUMBERS = [
    *words("1 0 -1 3 2u 1.5 3.0 -0.5 9223372036854775807 1e3 0x1F spec.replicas spec.weight spec.big metadata.generation status.ratio"),
    *words("status.numbers[0] status.numbers[1] size(status.words) status.conditions.size() int('5') int(spec.weight) double('1.5')"),
    *words("status.?none.orValue(1) timestamp(metadata.creationTimestamp).getFullYear() duration(status.time).getSeconds()"),
]
LISTS = words("status.conditions status.numbers status.words status.mixed [1,2,3] ['a','b'] [] spec.missing spec metadata.labels [1,2.5]")
TRUTHS = [
    *words("true false spec.paused has(status.phase) has(spec.missing) has(status.conditions) has(metadata.labels.app)"),
    *words("status.?missing.hasValue() status.?phase.hasValue() bool('true') spec.none==null"),
]
ODD = [
    *words("null {} {'a':1} b'ab' spec status.conditions[0] missing spec.missing optional.none() status.?phase dyn(1) spec.none"),
    "duration('90s')",
    "timestamp(metadata.creationTimestamp)",
    "timestamp('2026-01-02T03:04:05Z')",
]
BODIES = (
    "x.type == 'Ready'",
    "x > 1",
    "x == 'b'",
    "x != null",
    "x.status == 'True' && x.type == 'Ready'",
    "true",
    "x",
    "x in [1, 'a']",
    "x.z",
)
MAPPED = ("x", "x + x", "string(x)", "x.type", "[x]", "size(x)")


def text(chance: Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.4:
        return chance.choice(ODD) if chance.random() < 0.03 else chance.choice(TEXTS)
    one, two, number = text(chance, depth - 1), text(chance, 0), chance.choice(words("0 1 2 -1 5"))
    return chance.choice(
        (
            f"({one} + {two})",
            f"{one}.{chance.choice(words('lowerAscii upperAscii trim'))}()",
            f"{one}.replace({two}, 'q')",
            f"{one}.substring({number})",
            f"{one}.charAt({number})",
            f"{items(chance, 0)}.join({two})",
            f"base64.encode(bytes({one}))",
            f"string(base64.decode({one}))",
            f"strings.quote({one})",
            f"'%s-%d-%.2f'.format([{one}, {number}, {chance.choice(NUMBERS)}])",
            f"string({chance.choice(NUMBERS)})",
            f"({truth(chance, 0)} ? {one} : {two})",
        )
    )


def number(chance: Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.4:
        return chance.choice(ODD) if chance.random() < 0.03 else chance.choice(NUMBERS)
    return chance.choice(
        (
            f"({number(chance, depth - 1)} {chance.choice('+-*/%')} {number(chance, 0)})",
            f"size({text(chance, depth - 1)})",
            f"{text(chance, depth - 1)}.{chance.choice(('indexOf', 'lastIndexOf'))}({text(chance, 0)})",
            f"{chance.choice(words('int uint double'))}({chance.choice((number, text))(chance, depth - 1)})",
            f"-{number(chance, depth - 1)}",
            f"size({items(chance, depth - 1)})",
        )
    )


def items(chance: Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.5:
        return chance.choice(LISTS)
    one = items(chance, depth - 1)
    return chance.choice(
        (
            f"{one}.filter(x, {chance.choice(BODIES)})",
            f"{one}.map(x, {chance.choice(MAPPED)})",
            f"{one}.map(x, {chance.choice(BODIES)}, {chance.choice(MAPPED)})",
            f"({one} + {items(chance, 0)})",
            f"{text(chance, 0)}.split({text(chance, 0)})",
            f"[{number(chance, 0)}, {number(chance, 0)}]",
        )
    )


def truth(chance: Random, depth: int) -> str:
    if chance.random() < (0.5 if depth == 0 else 0.08):
        return chance.choice(ODD) if chance.random() < 0.05 else chance.choice(TRUTHS)
    less = max(depth - 1, 0)
    kind = chance.choice((text, text, number, number, items)) if chance.random() < 0.95 else (lambda chance, _depth: chance.choice(ODD))
    other = kind if chance.random() < 0.9 else chance.choice((text, number, items))
    relation = chance.choice(words("== == == != < <= > >="))
    forms = [
        *[f"{kind(chance, depth)} {relation} {other(chance, less)}"] * 3,
        f"{chance.choice((text, number))(chance, less)} in {items(chance, less)}",
        f"{items(chance, less)}.{chance.choice(words('exists all exists_one'))}(x, {chance.choice(BODIES)})",
        f"{text(chance, less)}.{chance.choice(words('startsWith endsWith contains matches'))}({text(chance, 0)})",
        f"sets.{chance.choice(words('contains intersects equivalent'))}({items(chance, less)}, {items(chance, 0)})",
    ]
    if depth:
        forms += [
            f"({truth(chance, less)} && {truth(chance, less)})",
            f"({truth(chance, less)} || {truth(chance, less)})",
            f"!({truth(chance, less)})",
        ]
    return chance.choice(forms)


def expression(chance: Random) -> str:
    text = truth(chance, 2)
    if chance.random() < 0.04:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice("()[]{}'\".,?:&|!=-+ ab1\\") + text[at:]
    return text


def question(chance: Random) -> Question:
    return {"text": expression(chance), "value": OBJECT}


def ours(asks: Question) -> Answer:
    complaint = cel.complaint(asks["text"])
    if complaint:
        return Answer(ERROR, f"unreadable: {complaint}")
    (row, _) = judge({"entries": [["", "", asks["text"]]], "of": [0]}, [json.dumps(asks["value"]).encode()])
    assert row is not None
    found = Verdict.decode(row)
    return Answer(ERROR, found.wrong) if found.wrong or found.spent else Answer.of(found.name == CURRENT)


def says(mine_has: str = "", theirs_has: str = "") -> Covers:
    return lambda _asks, mine, theirs: mine_has in mine.said and theirs_has in theirs.said


KNOWN: dict[str, Covers] = {
    "A function that doesn't exist": says("there is no function"),
    "A constant that can't be read": says(theirs_has="failed to create CEL program"),
    "A call that takes no such value": says("No matching overloads found"),
    "An empty text that is split": lambda asks, _mine, _theirs: ".split(" in asks["text"],
    "A raw text that ends with a backslash": lambda asks, _mine, _theirs: "\\'" in asks["text"],
}


def example(text: str) -> Question:
    return {"text": text, "value": OBJECT}


def test_expressions() -> None:
    chance = seeded()
    compare("cel", [question(chance) for _ in range(EXPRESSIONS)], ours, KNOWN, example)
