"""What is small: flags as Go reads them, ranges of chart versions as Helm does, label selectors as kubectl does."""

from __future__ import annotations

import re
from random import Random

import yaml

from handler.cli.go_flags import go_duration, go_int
from handler.library.delete_selector import DeleteSelector, SelectorRefused
from handler.model.errors import ConfigInvalid
from handler.source.charts.chart_versions import ChartRange, order_of_version
from handler.source.tag_versions import TAGS, VersionRange, order_of
from tests.nightly.differential import ERROR, Answer, Covers, Question, asked, compare, seeded, words

EACH = 8_000


def picked(chance: Random, pieces: list[str], most: int) -> str:
    return "".join(chance.choice(pieces) for _ in range(chance.randint(0, most)))


# --- durations and whole numbers
UNITS = words("1 0 5 10 300 1.5 .5 1. h m s ms us µs μs ns h m s - + . x 1h 30m 1h30m 01")


def duration(asks: Question) -> Answer:
    found = go_duration(asks["text"])
    return Answer(ERROR) if found is None else Answer.of(rounded(asks, found * 1e9))


def rounded(_asks: Question, nanoseconds: float) -> float:
    """Leave nine digits: ours are seconds with a fraction."""
    return float(f"{nanoseconds:.9g}")


def test_durations() -> None:
    chance = seeded()
    known: dict[str, Covers] = {
        "A negative duration": lambda asks, _mine, _theirs: asks["text"][:1] == "-",
        "A duration of more than 290 years": lambda _asks, mine, _theirs: mine.value != ERROR and float(mine.value) >= 2**63,
        "A part of a nanosecond": lambda asks, _mine, _theirs: re.search(r"\.[0-9]+(ns|us|µs|μs)", asks["text"]) is not None,
    }
    compare("duration", [{"text": picked(chance, UNITS, 5)} for _ in range(EACH)], duration, known, read=rounded)


def integer(asks: Question) -> Answer:
    try:
        return Answer.of(go_int(asks["text"]))
    except ValueError:
        return Answer(ERROR)


def test_whole_numbers() -> None:
    chance = seeded()
    pieces = [*words("0 1 7 8 9 a f _ - + 0x 0b 0o 0X 12 . x"), " "]
    compare("int", [{"text": picked(chance, pieces, 6)} for _ in range(EACH)], integer, {})


# --- versions
def version(chance: Random) -> str:
    numbers = ".".join(str(chance.randint(0, 3)) for _ in range(chance.choice((3, 3, 3, 3, 2, 1))))
    return chance.choice(("", "", "v")) + numbers + chance.choice(("", "", "", "-rc.1", "-alpha", "-0", "-1.x", "+b", "-rc.1+b"))


def bound(chance: Random) -> str:
    numbers = ".".join(chance.choice(words("0 0 1 1 2 3 x X *")) for _ in range(chance.choice((3, 3, 2, 1))))
    tail = chance.choice(("", "", "", "", "-rc.1", "-0", "-alpha.2", "+b"))
    return chance.choice(("", "", "v")) + numbers + tail


def ranged(chance: Random) -> str:
    one = chance.choice((*words("= != > < >= <= ~ ~> ^ => =< == !"), "", "", "^", "~")) + chance.choice(("", "", " ")) + bound(chance)
    kind = chance.random()
    if kind < 0.6:
        return one
    if kind < 0.7:
        return f"{bound(chance)} - {bound(chance)}"
    return f"{one}{chance.choice((' ', ', ', ',', ' || ', '||', ' | '))}{chance.choice(('', '>=', '<', '!='))}{bound(chance)}"


def holds(asks: Question) -> Answer:
    try:
        found = ChartRange(asks["text"])
    except ConfigInvalid:
        return Answer(ERROR)
    version = order_of_version(asks["other"])
    return Answer(ERROR) if version is None else Answer.of(found.holds(version))


def test_chart_versions() -> None:
    chance = seeded()
    compare("semver", [{"text": ranged(chance), "other": version(chance)} for _ in range(EACH)], holds, {})


def tagged(asks: Question) -> Answer:
    try:
        found = VersionRange(asks["text"])
    except ConfigInvalid:
        return Answer(ERROR)
    version = order_of(f"{TAGS}{asks['other']}".encode())
    return Answer(ERROR, "no version") if version is None else Answer.of(found.holds(version))


def test_versions_of_tags() -> None:
    """Flux reads `ref.semver` by the same library as Helm."""
    chance = seeded()
    known: dict[str, Covers] = {
        "A tag without three numbers": lambda _asks, mine, _theirs: mine.said == "no version",
        "What npm's ranges haven't": lambda _asks, mine, _theirs: mine.value == ERROR and not mine.said,
        "A pre-release of another version than the range names": lambda asks, mine, theirs: (
            (mine.value, theirs.value) == ("false", "true") and "-" in asks["text"] and "-" in asks["other"]
        ),
    }
    questions = [{"text": ranged(chance), "other": version(chance)} for _ in range(EACH)]
    compare("revision", questions, tagged, known, yaml.safe_load, reference=lambda asks: asked("semver", asks))


# --- labels
def term(chance: Random) -> str:
    key = chance.choice(words("app tier a.b/c x_y -a app tier a..b"))
    value = chance.choice((*words("web api x 1 a.b"), "", "-"))
    several = ",".join(chance.choice(words("web api x y")) for _ in range(chance.randint(1, 3)))
    forms = (f"{key}={value}", f"{key}=={value}", f"{key}!={value}", f"{key} in ({several})", f"{key} notin ({several})", key, f"!{key}")
    return chance.choice((*forms, f"{key} = {value}", f"{key} in({several})", f"{key}>1", f"! {key}", f"{key} in ()", f" {key}"))


def selects(asks: Question) -> Answer:
    try:
        return Answer.of(DeleteSelector.of(asks["text"]).admits({"metadata": {"labels": asks["names"]}}))
    except SelectorRefused as refused:
        return Answer(ERROR, str(refused))


def test_label_selectors() -> None:
    chance = seeded()
    labels = {"app": ["web", "api"], "tier": ["x", "web"], "a.b/c": ["1"], "x_y": [""]}
    questions = [
        {
            "text": chance.choice((",", ", ")).join(term(chance) for _ in range(chance.choice((1, 2, 2, 3)))),
            "names": {key: chance.choice(values) for key, values in labels.items() if chance.random() < 0.6},
        }
        for _ in range(EACH)
    ]
    known: dict[str, Covers] = {
        "A selector that demands no label": lambda _asks, mine, _theirs: "also selects what carries no label" in mine.said,
        "Numbers that are compared": lambda asks, _mine, _theirs: ">1" in asks["text"],
    }
    compare("selector", questions, selects, known, lambda text: {"text": text, "names": {}})
