"""Paths into an object, as `kubectl get -o jsonpath` finds what they name."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import yaml

from handler.rollout.jsonpath import TooMany, Unreadable, compiled
from tests.nightly.differential import ERROR, Answer, Covers, Question, compare, seeded, words

PATHS = 15_000
KEYS = [*words("a b c name type status items x.y a/b 0 é"), "k l", "it's"]
LEAVES: list[Any] = ["x", "y", "1", "", "True", "Ready", 0, 1, 2, -1, 1.5, 10_000_000_000, True, False, None, [], {}]
NAMES = words("a b c name type status items items")


def value(chance: Random, depth: int) -> Any:
    kind = chance.random()
    if depth == 0 or kind < 0.15:
        return chance.choice(LEAVES)
    if kind < 0.55:
        return [value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    return {chance.choice((*NAMES, *KEYS)): value(chance, depth - 1) for _ in range(chance.randint(0, 4))}


def document(chance: Random) -> dict[str, Any]:
    items = [{"name": chance.choice("xy"), "type": chance.choice(LEAVES), "a": value(chance, 2)} for _ in range(chance.randint(0, 4))]
    return {"items": items, **{chance.choice(KEYS): value(chance, 3) for _ in range(4)}}


def name(chance: Random) -> str:
    return chance.choice((*NAMES, *NAMES, "x\\.y", "a/b", "é", "it's", "a-b", "_", "1a", "kubernetes\\.io/x"))


def literal(chance: Random) -> str:
    return chance.choice(
        ('"x"', "'x'", '"Ready"', '"True"', "1", "0", "1.5", "-1", "true", "false", "null", "x", '""', "1.0", "10000000000")
    )


def inner(chance: Random) -> str:
    return "@" + "".join(chance.choice((f".{name(chance)}", f"['{chance.choice(NAMES)}']", "[0]", "")) for _ in range(2))


def condition(chance: Random) -> str:
    if chance.random() < 0.2:
        return f"?({inner(chance)})"
    right = literal(chance) if chance.random() < 0.85 else inner(chance)
    blank = chance.choice(("", " "))
    return f"?({inner(chance)}{blank}{chance.choice(words('== == == != < <= > >= = =~ &&'))}{blank}{right})"


def index(chance: Random) -> str:
    number = chance.choice(words("0 1 2 -1 -2 5 -5"))
    other = chance.choice((*words("0 1 2 3 -1 5"), ""))
    forms = (
        number,
        number,
        "*",
        f"{number}:{other}",
        f":{other}",
        "::2",
        f"{number},{other or 0}",
        f"{number}:{other}:1",
        f"::{other}",
        "1:0",
        "",
    )
    return chance.choice(forms)


def step(chance: Random) -> str:
    kind = chance.random()
    if kind < 0.45:
        return f".{name(chance)}"
    if kind < 0.6:
        return f"[{index(chance)}]"
    if kind < 0.72:
        return f"[{condition(chance)}]"
    if kind < 0.82:
        quote = chance.choice("''''''\"")
        return f"[{','.join(f'{quote}{chance.choice(KEYS[:10])}{quote}' for _ in range(chance.choice((1, 1, 2))))}]"
    if kind < 0.97:
        return chance.choice(("[*]", ".*", f"..{name(chance)}"))
    return chance.choice(("..", ".", "[", "]", "()", " ", "..*", "...", "-"))


def path(chance: Random) -> str:
    start = chance.choice(("", "", "", "$", "@", chance.choice(NAMES), ".items", ".items", ".items[*]", ".items[0].a"))
    inner = start + "".join(step(chance) for _ in range(chance.randint(1, 4)))
    return "{" + inner + "}" if chance.random() < 0.97 else inner


def question(chance: Random) -> Question:
    return {"text": path(chance), "value": document(chance)}


def ordered(asks: Question, found: Any) -> Any:
    """Sort what a map's values are found by: Go's maps have no order."""
    loose = "*" in asks["text"] or ".." in asks["text"]
    return sorted(found, key=lambda each: Answer.of(each).value) if loose and isinstance(found, list) else found


def ours(asks: Question) -> Answer:
    try:
        return Answer.of(ordered(asks, compiled(asks["text"]).find(asks["value"])))
    except (Unreadable, TooMany) as refused:
        return Answer(ERROR, str(refused))


def without_bytes(answer: Answer) -> list[Any]:
    return [each for each in json.loads(answer.value) if type(each) is not int or not 0 <= each < 256]


def bytes_of_texts(asks: Question, mine: Answer, theirs: Answer) -> bool:
    return ".*" in asks["text"] and ERROR not in (mine.value, theirs.value) and without_bytes(mine) == without_bytes(theirs)


def stops_early(asks: Question, mine: Answer, theirs: Answer) -> bool:
    found = [] if ERROR in (mine.value, theirs.value) else [json.loads(each.value) for each in (mine, theirs)]
    return bool(found) and len(found[0]) > len(found[1]) and re.search(r"\[[^]']*[:*][^]']*\]", asks["text"]) is not None


def wants(pattern: str) -> Covers:
    """Whether the reference refuses the path with such words."""
    return lambda _asks, _mine, theirs: re.search(pattern, theirs.said) is not None


KNOWN: dict[str, Covers] = {
    "A text that isn't one path": lambda _asks, mine, _theirs: mine.said.startswith("can't be read"),
    "A value of another kind than the path asks for": wants("is not array or slice|incompatible types|invalid type for comparison"),
    "An index beyond a list's end": wants("out of bounds|is greater than ending index"),
    "Several values on a side of a comparison": wants("can only compare one element"),
    "A name in double quotes": wants('invalid array index .*"'),
    "`..*`": wants(r"unrecognized character in action: U\+002A"),
    "The letters of a text": bytes_of_texts,
    "An empty list among several": stops_early,
    "An index in a filter that asks whether something is there": lambda asks, _mine, _theirs: (
        re.search(r"\?\(@[^=!<>]*\[[^]']*\][^=!<>]*\)", asks["text"]) is not None
    ),
    "`null` in a filter": wants("unrecognized identifier null"),
    "The object itself": lambda asks, _mine, _theirs: asks["text"].strip("{ }").endswith("."),
    "A point within a quoted name": lambda asks, _mine, _theirs: re.search(r"['\"]x\.y['\"]", asks["text"]) is not None,
    "A path without a point at its beginning": lambda asks, _mine, theirs: (
        asks["text"].strip()[0] in "$@[" or theirs.said.startswith("cannot parse number -")
    ),
}


def example(text: str) -> Question:
    """Read a row's example: `path`, and what it is asked of."""
    found = yaml.safe_load(text)
    return {"text": found.pop("path"), "value": found}


def test_paths() -> None:
    chance = seeded()
    compare("jsonpath", [question(chance) for _ in range(PATHS)], ours, KNOWN, example, ordered)
