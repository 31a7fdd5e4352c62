"""What modules say in Nix: what arrives in manifests is what `nix-instantiate --eval --json` prints, as Kubernetes reads that."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random

import pytest

from handler.model.errors import AnnealError
from handler.render import Sandbox
from tests.nightly.differential import ERROR, Answer, Covers, Question, asked, compare, seeded, words
from tests.rooms.render.nix_modules import bare, nix_tools, render

EXPRESSIONS = 4_000
BATCH = 300
"""How many one evaluation has; where one of them fails, halves are asked again."""
HARMLESS, NULLS = words("0 1 (-7) 42 9007199254740993 9223372036854775807 (-9223372036854775807) 0777"), words("null true false")
FLOATS = words(
    "1.5 0.1 2.0 100.0 1.0e3 1.e20 1.0e21 1.0E22 1.0e300 1.0e-7 2.3e-308 .5 (-0.0) 3.14159265358979 123456789.123456789 1.0e16"
    " 0.30000000000000004"
)
PIECES = (
    *words("x é 日本語 😀 a.b/c \\n \\t \\r \\\\ \\\" $$ \\${x} </script> & ' ENC[x] true 1 ~"),
    " ",
    "\u2028",
    "\u007f",
    "\u0001",
    "\u00a0",
)
NAMES = [*words('a b c-d _e name data "a.b/c" "é" "" "1" "$$" "kind" "if" "\\n"'), '"x y"']
FAILING = (
    *(
        "x: x",
        "[ (x: x) ]",
        "{ f = { a }: a; }",
        "builtins.map",
        'throw "no"',
        'abort "no"',
        "assert false; 1",
        "1 / 0",
        "{ }.a",
        "[ ] + 1",
    ),
    *("builtins.head [ ]", "let x = x; in x", '1 + "a"', "{ __toString = 5; }", "{ outPath = x: x; }", "{ __toString = self: 5; }"),
    *("{ outPath = { }; }", "builtins.fromJSON ''{''", "undefined", "/nonexistent/file", "builtins.readFile /nonexistent", "1.0e400"),
    *(
        "9223372036854775807 + 1",
        "9223372036854775808",
        'builtins.substring 0 1 "é"',
        "builtins.fromJSON ''\"\\ud800\"''",
        "1.0e300 * 1.0e300",
    ),
    *(
        "(1.0e300 * 1.0e300) - (1.0e300 * 1.0e300)",
        "builtins.toString (x: x)",
        '"${1.5}"',
        '"${{ }}"',
        "builtins.fromTOML ''a = 1979-05-27T07:32:00Z''",
    ),
    *("{ p = ./a.nix; }", "builtins.toFile ''a'' ''b''", 'builtins.getEnv "HOME" == ""', "builtins.currentTime > 0", "toString ./."),
)
DEEP = tuple(
    f"builtins.foldl' (inner: _: {made}) 1 (builtins.genList (n: n) {count})"
    for made in ("[ inner ]", "{ a = inner; }")
    for count in (190, 199, 300)
)

LEVELS = r'(\[|\{"a": ){199}'
"""Of what is in a field of an object, they make 200."""
ALONE = frozenset((*FAILING, *DEEP))
"""What has an evaluation of its own."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with nix_tools(), Sandbox() as sandbox:
        yield sandbox


class Writer:
    """Writes expressions by the type of what they are, so that nearly all of them have a value."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance

    def text(self, depth: int) -> str:
        kind, chance = self.chance.random(), self.chance
        if depth <= 0 or kind < 0.4:
            pieces = "".join(chance.choice(PIECES) for _ in range(chance.randint(0, 5)))
            return f'"{pieces}"'
        inner = self.text(depth - 1)
        if kind < 0.5:
            return f'"a${{{inner}}}b${{toString {self.whole(0)}}}"'
        if kind < 0.6:
            return f"''\n  first\n    ${{{inner}}} ''${{x}} '''\n  last\n''"
        if kind < 0.7:
            return f"({inner} + {self.text(depth - 1)})"
        forms = ("(toString {})", "(builtins.toJSON {})", "(builtins.typeOf {})", "(builtins.hashString ''md5'' (builtins.toJSON {}))")
        return chance.choice(forms).format(chance.choice((self.whole(0), self.fraction(), inner, "[ 1 2 ]", "null", "true")))

    def whole(self, depth: int) -> str:
        chance = self.chance
        if depth <= 0 or chance.random() < 0.6:
            return chance.choice(HARMLESS)
        forms = ("({} / 3)", "(builtins.stringLength {})", "(builtins.bitXor {} 5)", "(builtins.length [ {} ])", "(builtins.floor 2.5)")
        form = chance.choice(forms)
        return form.format(self.text(depth - 1) if "string" in form else self.whole(depth - 1))

    def fraction(self) -> str:
        chance = self.chance
        one = chance.choice(FLOATS)
        return one if chance.random() < 0.6 else f"({one} {chance.choice('+-*')} {chance.choice(FLOATS[:5])})"

    def name(self) -> str:
        return self.chance.choice(NAMES)

    def attributes(self, depth: int) -> str:
        chance = self.chance
        names = chance.sample(NAMES, chance.randint(0, 4))
        body = " ".join(f"{name} = {self.value(depth - 1)};" for name in names)
        kind = chance.random()
        if kind < 0.6:
            return f"{{ {body} }}"
        if kind < 0.7:
            return f"({{ {body} }} // {self.attributes(depth - 1) if depth > 0 else '{ }'})"
        if kind < 0.8:
            return f"(builtins.mapAttrs (n: v: [ n v ]) {{ {body} }})"
        if kind < 0.9:
            return f'(builtins.listToAttrs [ {{ name = "x{chance.randint(0, 9)}"; value = {self.value(depth - 1)}; }} ])'
        return f'(let v = {{ {body} }}; in builtins.removeAttrs v [ "a" ])'

    def items(self, depth: int) -> str:
        chance = self.chance
        body = " ".join(f"({self.value(depth - 1)})" for _ in range(chance.randint(0, 4)))
        return chance.choice(("[ {} ]", "[ {} ]", "(map (v: {{ inherit v; }}) [ {} ])", "([ {} ] ++ [ null ])")).format(body)

    def written(self, depth: int) -> str:
        """Return what becomes a text in JSON, or is made of one."""
        chance, inner = self.chance, self.value(depth - 1)
        text = self.text(depth - 1)
        return chance.choice(
            (
                f"{{ __toString = self: self.t; t = {text}; }}",
                f"{{ outPath = {text}; other = {inner}; }}",
                f"{{ __toString = _: {text}; outPath = 1; }}",
                '(derivation { name = "x"; system = "x86_64-linux"; builder = "/bin/sh"; })',
                f"{{ outPath = {{ outPath = {text}; }}; }}",
                f"{{ outPath = {inner}; }}" if chance.random() < 0.1 else f"(builtins.fromJSON (builtins.toJSON {inner}))",
                f"(builtins.tryEval {inner})",
                f'(builtins.split "(b)" {text})',
                "(builtins.fromTOML ''a = 1.0\nb = [1, 2]\nc = \"é\"\n'')",
                "(builtins.functionArgs ({ a, b ? 1 }: a))",
                f'(builtins.concatStringsSep ", " [ {text} {text} ])',
            )
        )

    def value(self, depth: int) -> str:
        kind = self.chance.random()
        if depth <= 0 or kind < 0.35:
            return self.chance.choice((self.text(1), self.whole(1), self.fraction(), self.chance.choice(NULLS)))
        if kind < 0.6:
            return self.attributes(depth)
        if kind < 0.8:
            return self.items(depth)
        return self.written(depth)


def batched(questions: Sequence[Question], evaluate: Callable[[list[str]], list[Answer]]) -> Iterator[Answer]:
    """Yield what expressions are, many by one evaluation."""
    for alone, group in itertools.groupby((each["text"] for each in questions), ALONE.__contains__):
        texts, size = list(group), 1 if alone else BATCH
        for start in range(0, len(texts), size):
            yield from _halved(texts[start : start + size], evaluate)


def _halved(texts: list[str], evaluate: Callable[[list[str]], list[Answer]]) -> list[Answer]:
    try:
        return evaluate(texts)
    except (AnnealError, subprocess.CalledProcessError, ValueError) as refused:
        if len(texts) == 1:
            return [Answer(ERROR, str(getattr(refused, "stderr", b"") or refused))]
    middle = len(texts) // 2
    return [*_halved(texts[:middle], evaluate), *_halved(texts[middle:], evaluate)]


def printed(place: Path) -> Callable[[Sequence[Question]], list[Answer]]:
    """Return what asks nix itself, and has Kubernetes' decoder read what it prints."""

    def evaluate(texts: list[str]) -> list[Answer]:
        found = [json.dumps(each) for each in bare({"a.nix": "1"}, f"[ {' '.join(f'({text})' for text in texts)} ]", place)]
        shown = ['"deep"' if re.search(LEVELS, each) else each.replace(str(place), "/place") for each in found]
        return asked("json", [{"text": each} for each in shown])

    return lambda questions: list(batched(questions, evaluate))


def rendered(sandbox: Sandbox, texts: list[str]) -> list[Answer]:
    objects = (
        f'{{ apiVersion = "example.com/v1"; kind = "Any"; metadata.name = "x{number}"; spec = {text}; }}'
        for number, text in enumerate(texts)
    )
    files = {"deploy/kubernixos.nix": f"{{ kubernixos.manifests = [ {' '.join(objects)} ]; }}", "deploy/a.nix": "1"}
    return [Answer.of(each.body()["spec"]) for each in render(sandbox, files).manifests]


def mentions(text: str) -> Covers:
    return lambda asks, _mine, _theirs: text in asks["text"]


KNOWN: dict[str, Covers] = {
    "The clock": mentions("currentTime"),
    "Variables of the environment": mentions("getEnv"),
    "The directory of the evaluation": mentions("toString ./"),
    "More than 200 levels": lambda _asks, mine, theirs: "deeper than 200" in mine.said and theirs.value == '"deep"',
}


@pytest.mark.timeout(1800)
def test_values(sandbox: Sandbox, tmp_path: Path) -> None:
    writer = Writer(seeded())
    questions = [{"text": text} for text in (*FAILING, *DEEP, *(writer.value(3) for _ in range(EXPRESSIONS)))]
    mine = dict(zip((each["text"] for each in questions), batched(questions, lambda texts: rendered(sandbox, texts)), strict=True))

    def ours(asks: Question) -> Answer:
        text = asks["text"]
        return mine[text] if text in mine else next(batched([asks], lambda texts: rendered(sandbox, texts)))

    compare("nix", questions, ours, KNOWN, reference=printed(tmp_path))
