"""YAML as sigs.k8s.io/yaml reads it: scalars in every style, in the place of values and keys, and documents of all that YAML has."""

from __future__ import annotations

import re
from random import Random

from handler.model.errors import Problem
from handler.render.yamls import yaml_documents
from tests.nightly.differential import ERROR, Answer, Covers, Question, compare, seeded, words

SCALARS = 12_000
DOCUMENTS = 6_000
WORDS = words(
    "y Y yes Yes YES yEs n N no No NO on On ON off Off OFF true True TRUE tRue false False null Null NULL nULL ~ . .. ... - -- +"
    " .nan .NaN .NAN .inf .Inf .INF +.inf -.inf -.INF +.nan NaN inf Infinity << = 0o14 0o 0x 0xg 0b 0b2 1e 1e+ e1 .e1 +. -. ._1 1.e3"
    " 2026-11-30 2026-1-2 2001-12-14t21:59:43.10-05:00 12:30 12:30:45 1:2:3.5 190:20:30 1_000 _1 1_ 1__2 0_8 0x_1f 0b_1 .5_5 1._5"
    " 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616"
    " 0777 08 09 -09 +0 -0 -0.0 0.0 00 000 0e0 1e400 -1e400 1e-400 1e21 1e20 123456789012345678901234567890 0.1 1.10 100.0 1e6 1e5"
)
TAGS = words("!!str !!int !!float !!bool !!null !!binary !!timestamp") * 2 + words("! !x !!map !!seq !!set !!omap !!pairs !!merge !!value")
SAFE = words("a b x y z 0x1f n 1.50 ~")
KEYS = [*words("a b c d e f g h << 1 true 'i' m:n"), '"j"', "k l"]
FLOWS = [*words("y Y yes a b c d 'x'"), '"y"']
NUMERIC = "0123456789"
MARKS = "+-._eExXobB:aAfF~"
TEXT = "abyn01 '\"#:,[]{}&*!|>%@`?-_=/\\\t.é😀\u00a0\u0085\u2028"


def number(chance: Random) -> str:
    return "".join(chance.choice(NUMERIC if chance.random() < 0.65 else MARKS) for _ in range(chance.randint(1, 9)))


def scalar(chance: Random) -> str:
    kind = chance.random()
    if kind < 0.3:
        return chance.choice(WORDS)
    if kind < 0.7:
        return number(chance)
    if kind < 0.8:
        word = list(chance.choice(WORDS))
        word[chance.randrange(len(word))] = chance.choice(NUMERIC + MARKS)
        return "".join(word)
    return "".join(chance.choice(TEXT) for _ in range(chance.randint(0, 8)))


def styled(chance: Random, text: str) -> str:
    style = chance.random()
    tag = f"{chance.choice(TAGS)} " if chance.random() < 0.12 else ""
    if style < 0.75:
        return tag + text
    if style < 0.83:
        return f"{tag}'{text.replace(chr(39), chr(39) * 2)}'"
    if style < 0.95:
        return f'{tag}"{escaped(chance, text)}"'
    return f"{tag}{chance.choice(('|', '>', '|-', '>-', '|+', '>+', '|2'))}\n   {text}\n  {text}\n"


def escaped(chance: Random, text: str) -> str:
    if chance.random() < 0.3:
        return text + chance.choice(
            ("\\n", "\\x41", "\\u00e9", "\\U0001F600", "\\/", "\\e", "\\q", "\\_", "\\N", "\\ud83d", "\\0", "\\\n  x")
        )
    return text.replace("\\", "\\\\").replace('"', '\\"')


def place(chance: Random) -> str:
    text = styled(chance, scalar(chance))
    where = chance.random()
    if where < 0.6:
        return f"v: {text}"
    if where < 0.75:
        return f"{text}: v"
    if where < 0.85:
        return f"- {text}\n- {styled(chance, scalar(chance))}"
    return f"v: [{text}, {{{styled(chance, scalar(chance))}: {styled(chance, scalar(chance))}}}]"


class Writer:
    """Writes a document of blocks and flows, with anchors, aliases, merges and comments."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.anchors: list[str] = []

    def node(self, depth: int, indent: str) -> str:
        kind, chance = self.chance.random(), self.chance
        anchor = ""
        if chance.random() < 0.15:
            anchor = f"&{chance.choice('abc')} "
            self.anchors.append(anchor[1])
        if depth == 0 or kind < 0.25:
            return f" {anchor}{styled(chance, scalar(chance)) if chance.random() < 0.3 else chance.choice(SAFE)}\n"
        if kind < 0.35 and self.anchors:
            return f" *{chance.choice(self.anchors)}\n"
        if kind < 0.5:
            return f" {anchor}{self.flow(depth - 1)}\n"
        deeper = f"{indent}  "
        if kind < 0.65:
            return f" {anchor}\n" + "".join(f"{deeper}-{self.node(depth - 1, deeper)}" for _ in range(chance.randint(1, 3)))
        return f" {anchor}\n" + self.block(depth, deeper)

    def block(self, depth: int, indent: str) -> str:
        keys = dict.fromkeys(self.key() for _ in range(self.chance.randint(1, 3)))
        return "".join(f"{indent}{key}:{self.node(depth - 1, indent)}{self.comment(indent)}" for key in keys)

    def comment(self, indent: str) -> str:
        return self.chance.choice(("", "", "", f"{indent}# x: y\n", "\n", "# z\n"))

    def key(self) -> str:
        return self.chance.choice([*KEYS, self.chance.choice(WORDS)])

    def flow(self, depth: int) -> str:
        chance = self.chance
        if depth <= 0 or chance.random() < 0.4:
            return chance.choice([number(chance), *FLOWS, *(f"*{each}" for each in self.anchors[-2:])])
        if chance.random() < 0.5:
            return "[" + ", ".join(self.flow(depth - 1) for _ in range(chance.randint(0, 3))) + chance.choice(("]", ", ]", "]"))
        keys = dict.fromkeys(self.key() for _ in range(chance.randint(0, 3)))
        return "{" + ", ".join(f"{key}: {self.flow(depth - 1)}" for key in keys) + "}"


def document(chance: Random) -> str:
    text = Writer(chance).block(3, "")
    if chance.random() < 0.1:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(TEXT) + text[at:]
    return text


def said(text: str) -> Covers:
    return lambda _question, mine, _theirs: text in mine.said


def written(pattern: str) -> Covers:
    return lambda question, _mine, _theirs: re.search(pattern, question["text"]) is not None


NO_JSON = re.compile("^(infinity and NaN|a key (is null|must be text))")
KNOWN: dict[str, Covers] = {
    "A key twice in one mapping": said("written twice"),
    "A tag that Kubernetes doesn't know, or of another kind of value": said("unknown tag"),
    "Bytes that aren't UTF-8": said("!!binary must be"),
    "More behind the end of the document": lambda question, mine, _theirs: (
        "<document start>" in mine.said or question["text"].lstrip()[:1] in "[{"
    ),
    "A value that isn't JSON, and that a later key replaces": lambda question, mine, _theirs: (
        "<<" in question["text"] and NO_JSON.search(mine.said) is not None
    ),
    "An apostrophe behind a backslash": written(r'"[^"]*\\\''),
    "A slash behind a backslash": written(r'"[^"]*\\/'),
    "A colon before a comma or bracket": said("found unexpected ':'"),
    "A question mark within brackets": written(r"[\[{][^\n]*\?"),
    "A lone `!` before a bracket or comma": written(r"!\S*[,\[\]{}]"),
    "A key beyond 32-bit floats": said("a key is too large"),
}


def ours(question: Question) -> Answer:
    found = list(yaml_documents(question["text"].encode(), "a.yaml"))
    problems = [each for each in found if isinstance(each, Problem)]
    if problems:
        return Answer(ERROR, "; ".join(each.message for each in problems))
    return Answer.of(found[0].value if found else None)  # type: ignore[union-attr]  # problems were returned above


def test_scalars() -> None:
    chance = seeded()
    compare("yaml", [{"text": place(chance)} for _ in range(SCALARS)], ours, KNOWN)


def test_documents() -> None:
    chance = seeded()
    compare("yaml", [{"text": document(chance)} for _ in range(DOCUMENTS)], ours, KNOWN)
