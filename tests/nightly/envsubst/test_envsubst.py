"""Flux' postBuild: one text with its variables written out, and what a field of an object becomes by that."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import yaml

from handler.render.variables.expression import Variables, expanded
from handler.render.variables.expression_budget import ExpressionBudget, ExpressionRefused
from handler.render.variables.flux_scalars import read
from tests.nightly.differential import ERROR, Answer, Covers, Question, compare, seeded, words

TEXTS = 15_000
FIELDS = 8_000
OBJECT = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
NAMES = words("a b c v_1 _x Ä 1n")
VALUES = [
    *words("1 0 true no null ~ 1.0 0x1f abc ABC a/b/c /a/b a.tar.gz straße İı ǅǆ éa é -1 *.? [a-c] \\ $ $$ ${a} ${ { } # : /"),
    *(
        "",
        " ",
        " a ",
        "a b",
        "a: b",
        "- a",
        "a #b",
        "x,y",
        "'q'",
        '"q"',
        "&a",
        "*a",
        "!!int 5",
        "|",
        "a\tb",
        "@",
        "%",
        "`",
        "{a: 1}",
        "[1]",
    ),
]
OPERATORS = words("^ ^^ , ,, : := :- :+ :? = / // /# /% # ## % %% ! - + ? @ ^, :: ==")
PIECES = "abcAB.*?[]-^/\\:=#%,+$}{ 0123é\"'"


def word(chance: Random, depth: int) -> str:
    if depth and chance.random() < 0.25:
        return expression(chance, depth - 1)
    if chance.random() < 0.4:
        return chance.choice(words("a b 1 2 -1 * *. ? .* */ [a-c] [^a] a/b $$ \\/ \\\\ 0 5 abc A é"))
    return "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 4)))


def expression(chance: Random, depth: int = 2) -> str:
    name = chance.choice(NAMES) if chance.random() < 0.95 else word(chance, 0)
    kind = chance.random()
    if kind < 0.2:
        inner = name
    elif kind < 0.27:
        inner = f"#{name}"
    elif kind < 0.4:
        inner = f"{name}:{word(chance, depth)}" + chance.choice(("", f":{word(chance, depth)}"))
    elif kind < 0.6:
        inner = f"{name}{chance.choice(words('/ // /# /%'))}{word(chance, depth)}{chance.choice('/// ')}{word(chance, depth)}"
    else:
        inner = name + chance.choice(OPERATORS) + "".join(word(chance, depth) for _ in range(chance.randint(0, 2)))
    return "${" + inner + ("}" if chance.random() < 0.98 else "")


def text(chance: Random) -> str:
    more = [chance.choice((expression(chance), "x", " ", "$", "$$", "$a", "}", "{", "\n", "-", word(chance, 0))) for _ in range(3)]
    parts = [expression(chance), *more[: chance.randint(0, 2)]]
    chance.shuffle(parts)
    return "".join(parts)


def question(chance: Random) -> Question:
    names = {name: chance.choice(VALUES) for name in NAMES if chance.random() < 0.6}
    return {"text": text(chance), "names": names, "other": chance.choice(("strict", "", "", ""))}


def example(text: str) -> Question:
    """Read a row's example: the variables, and `f`, the text that they are in."""
    names = yaml.safe_load(text)
    return {"text": names.pop("f"), "names": names, "other": ""}


def field_example(text: str) -> Question:
    found = example(text)
    return {"value": {**OBJECT, "f": found["text"]}, "names": found["names"]}


def stays(pattern: str) -> Covers:
    """Whether ours is the text as it is made, and a pattern is in it."""

    def covers(asks: Question, mine: Answer, _theirs: Answer) -> bool:
        text = made({**asks, "text": asks["value"]["f"], "other": ""}) if mine.value != ERROR else ""
        return mine == Answer.of(text) and re.search(pattern, text) is not None

    return covers


KNOWN: dict[str, Covers] = {
    "A character cut in two": lambda _asks, mine, _theirs: "cuts a character in two" in mine.said,
    "A pattern for one character that isn't ASCII": lambda asks, _mine, _theirs: re.search(r"[#%].*[?\[]", asks["text"]) is not None,
}
KNOWN_FIELDS: dict[str, Covers] = {
    "A variable that would be more than one value": stays(r"^\s*(?:[\[\]{}&*|>@`%#,]|[-?:](?:\s|$))|:(?:\s|$)|\s#"),
    "A quote or backslash within a text that YAML writes in quotes": stays(r"['\"\\]"),
    "A blank at the beginning of several lines": lambda asks, mine, _theirs: (
        "\n" in asks["value"]["f"] and re.match(r'"(\\n)* ', mine.value) is not None
    ),
    "More behind a text in quotes": lambda _asks, mine, _theirs: mine.said.startswith("begins with a quote"),
}


def made(asks: Question) -> str:
    return expanded(asks["text"], Variables(asks["names"], None if asks["other"] else ""), ExpressionBudget()).text


def ours(asks: Question) -> Answer:
    try:
        return Answer.of(made(asks))
    except ExpressionRefused as refused:
        return Answer(ERROR, refused.message)


def test_texts() -> None:
    chance = seeded()
    compare("envsubst", [question(chance) for _ in range(TEXTS)], ours, KNOWN, example)


def field(chance: Random) -> Question:
    """Return an object with one field, whose value is mostly variables."""
    parts = [chance.choice(("${a}", "${a}", "${b}", "${a:-1}", "${c:-x y}")) for _ in range(chance.choice((1, 1, 2)))]
    for _ in range(chance.choice((0, 0, 1, 2))):
        parts.insert(chance.randint(0, len(parts)), chance.choice(AROUND))
    names = {name: chance.choice(HELD) if chance.random() < 0.7 else random_text(chance) for name in "ab"}
    return {"value": {**OBJECT, "f": "".join(parts)}, "names": names}


def random_text(chance: Random) -> str:
    return "".join(chance.choice("01a9.e+-_:x'\" #") for _ in range(chance.randint(0, 6)))


AROUND = [*words("x 1 0 . - : e5 / ${q} ' # = ~ , [ { é"), " ", "\n", '"', "a: ", " #"]
HELD = [*VALUES, *words("1e3 017 09 .5 5. -3 +1 1_000 TRUE yes off 2026-01-02 12:30 .inf 0b11 1e400 99999999999999999999 <<")]


def held(asks: Question) -> Answer:
    text = asks["value"]["f"]
    try:
        found = made({**asks, "text": text, "other": ""})
        return Answer.of(read(text, found) if "${" in text or "$$" in text else text)
    except (ExpressionRefused, ValueError) as refused:
        return Answer(ERROR, str(refused))


def the_field(_asks: Question, made: Any) -> Any:
    """Return what became of the field, or of the object where it is another one."""
    return made["f"] if set(made) == {*OBJECT, "f"} else made


def test_fields() -> None:
    chance = seeded()
    compare("postBuild", [field(chance) for _ in range(FIELDS)], held, KNOWN_FIELDS, field_example, the_field)
