"""Plain files of every form that sops knows, the flags that they are encrypted with, and what people and tools make of encrypted files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import yaml

from tests.nightly.differential import words
from tests.rooms.render.sops_files import ALICE, BOB, encrypted

SCALARS = words(
    "1 0 -7 3.50 1e3 1e21 0o14 0x1f 017 1_000 9007199254740993 9223372036854775807 18446744073709551615 true yes off null ~ .5 -0.0"
    " 2026-11-30 2026-11-30T10:00:00Z 12:30:45 x web-1 é 日本語 😀 a#b ENC[x] sops"
)
QUOTED = ("''", '""', "'a: b'", '"\\u0001\\t\\n"', '"\\U0001F600 \\\\"', "'2026-11-30'", "'1'", '"a # b"', "'it''s'", '" "')
KEYS = [*words("a b name data stringData password user_unencrypted x_open y_secret kind ключ 'q' sops_mac mac"), '"a b"']
BLOCKS = ("|\n{}x\n{}  y\n", ">-\n{}folded\n{}text\n", "|+\n{}keep\n\n", "|\n{}sops_mac=1\n{}[sops]\n")
FLAGS = (
    *((), (), ("--encrypted-regex", "^(data|stringData|password)$"), ("--encrypted-suffix", "_secret"), ("--unencrypted-suffix", "_open")),
    *(("--unencrypted-regex", "^(kind|name)$"), ("--mac-only-encrypted", "--encrypted-regex", "^(data|password|a)$")),
    *(("--encrypted-regex", 'a#b|"x"|^.$'), ("--unencrypted-regex", "^ключ|;$"), ("--encrypted-regex", "`|=|é|a")),
)
OF_COMMENTS = (("--encrypted-comment-regex", "sops:enc"), ("--unencrypted-comment-regex", "open"))
GROUPS = {count: json.dumps({"creation_rules": [{"key_groups": [{"age": [ALICE.recipient, BOB.recipient]}] * count}]}) for count in (1, 2)}
"""Settings of sops."""
RECIPIENTS = (
    *(*GROUPS.values(), ALICE.recipient, ALICE.recipient, ALICE.recipient, BOB.recipient),
    *(f"{BOB.recipient},{ALICE.recipient}", f"{ALICE.recipient},{BOB.recipient}"),
)


def _scalar(chance: Random) -> str:
    return chance.choice(SCALARS) if chance.random() < 0.7 else chance.choice(QUOTED)


def _comment(chance: Random, indent: str) -> str:
    return chance.choice(("", "", "", f"{indent}# a note\n", f"{indent}# sops:enc\n", f"{indent}# open\n", "\n"))


def _block(chance: Random, depth: int, indent: str = "") -> str:
    text = ""
    for key in chance.sample(KEYS, chance.randint(1, 4)):
        text += f"{_comment(chance, indent)}{indent}{key}:{_node(chance, depth, indent)}"
    return text


def _node(chance: Random, depth: int, indent: str) -> str:
    kind, deeper = chance.random(), f"{indent}  "
    if depth and kind < 0.25:
        return f"\n{_block(chance, depth - 1, deeper)}"
    if depth and kind < 0.4:
        return "\n" + "".join(f"{_comment(chance, deeper)}{deeper}-{_node(chance, depth - 1, deeper)}" for _ in range(chance.randint(1, 3)))
    if kind < 0.5:
        return f" {chance.choice(BLOCKS).format(deeper, deeper)}"
    if kind < 0.6:
        return f" {chance.choice(('[]', '{}', '', f'[{_scalar(chance)}, {{k: {_scalar(chance)}}}]'))}\n"
    return f" {_scalar(chance)}{chance.choice(('', '', ' # aside'))}\n"


def yaml_text(chance: Random) -> str:
    documents = [_block(chance, 3) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    return chance.choice(("", "", "---\n", "# head\n---\n")) + "---\n".join(documents)


def _value(chance: Random, depth: int) -> Any:
    if depth and chance.random() < 0.3:
        return {chance.choice(KEYS): _value(chance, depth - 1) for _ in range(chance.randint(0, 3))}
    if depth and chance.random() < 0.3:
        return [_value(chance, depth - 1) for _ in range(chance.randint(0, 3))]
    texts = ["", "x", "é\n\t\x01", "😀", "ENC[AES256_GCM,data:x]", "</script>", "2026-11-30", 'a\\b"c']
    return chance.choice([*texts, 0, -1, 2**53 + 1, 2**63 - 1, 1.5, 1e21, 1e-7, True, False, None])


def json_text(chance: Random) -> str:
    keys = chance.choice((words("data"), KEYS, KEYS))
    whole = {key: _value(chance, 3) for key in chance.sample(keys, chance.randint(1, min(4, len(keys))))}
    return json.dumps(whole, indent=chance.choice((None, 2)), ensure_ascii=chance.random() < 0.5)


def dotenv_text(chance: Random) -> str:
    values = ("", "x", "a b", '"q"', "'q'", "a\\nb", "a=b", "a#b", "é😀", " x ", "1", "true", "[sops]", "$HOME", "x\\")
    names = words("A B_C D_SECRET user_open sopsA É a.b")
    lines = [f"{name}={chance.choice(values)}" for name in chance.sample(names, chance.randint(1, 5))]
    return "\n".join([*lines, chance.choice(("", "# note", "#", "# sops_mac=x"))]) + chance.choice(("", "\n", "\n\n"))


def ini_text(chance: Random) -> str:
    values = ("", "x", "a b", '"q"', "a=b", "a#b", "a;b", "é😀", "`t`", "1", "true", "x\\", "ENC[x]", "a:b", "`a;b`")
    names = words("a b_c d_secret user_open é a.b")

    def section() -> str:
        rows = ""
        for name in chance.sample(names, chance.randint(0, 3)):
            rows += chance.choice(("", "", "; note\n", "# note\n"))
            rows += f"{name}{chance.choice((' = ', '=', ': '))}{chance.choice(values)}\n"
        return rows

    return section() + "".join(f"[{name}]\n{section()}" for name in chance.sample(words("part x.y sopsx é"), chance.randint(1, 3)))


def binary_text(chance: Random) -> bytes:
    return chance.choice(
        (b"", b"x", b"hello\n", bytes(range(256)), b'{"a": 1}', b"sops_mac=1\n", b"[sops]\nmac = x\n", b"\xff" * 3000, "é".encode())
    )


FORMS: Mapping[str, tuple[tuple[str, ...], Callable[[Random], str | bytes]]] = {
    "yaml": (("a.yaml", "b.yml"), yaml_text),
    "json": (("a.json",), json_text),
    "dotenv": (("a.env",), dotenv_text),
    "ini": (("a.ini",), ini_text),
    "binary": (("a.bin", "motd", "key.pem", "a.txt"), binary_text),
}
TYPES = tuple(("--input-type", form, "--output-type", form) for form in ("json", "yaml", "dotenv", "ini"))

# --- what happens to encrypted files
VALUE = re.compile(r"ENC\[AES256_GCM,data:[^\]]*\]")


def _swapped(text: str, chance: Random) -> str:
    found = VALUE.findall(text)
    if len(found) < 2:
        return text
    one, other = chance.sample(found, 2)
    return text.replace(one, "\0").replace(other, one).replace("\0", other)


def _without(pattern: str) -> Callable[[str, Random], str]:
    return lambda text, _chance: re.sub(pattern, "", text, count=1, flags=re.MULTILINE)


def _with(pattern: str, new: str) -> Callable[[str, Random], str]:
    return lambda text, _chance: re.sub(pattern, new, text, count=1, flags=re.MULTILINE)


def _flipped(text: str, chance: Random) -> str:
    at = chance.choice([found.start() for found in VALUE.finditer(text)]) + len("ENC[AES256_GCM,data:")
    return f"{text[:at]}{'B' if text[at] != 'B' else 'C'}{text[at + 1 :]}"


def _restyled(text: str, chance: Random) -> str:
    """Write YAML and JSON anew, as formatters do."""
    if text.lstrip().startswith("{"):
        found = json.loads(text)
        found = dict(reversed(found.items())) if chance.random() < 0.5 else found
        return json.dumps(found, indent=chance.choice((None, 1, 4)), ensure_ascii=chance.random() < 0.5)
    if re.search(r"^(sops_|\[sops\])", text, re.MULTILINE):
        return text
    loaded = list(yaml.load_all(text, yaml.BaseLoader))
    style = chance.choice((None, '"', "'"))
    kept: dict[str, Any] = {
        "allow_unicode": chance.random() < 0.5,
        "sort_keys": chance.random() < 0.5,
        "width": chance.choice((40, 10_000)),
    }
    return str(yaml.safe_dump_all(loaded, default_style=style, default_flow_style=chance.choice((None, False, True)), **kept))


def _metadata_first(text: str, _chance: Random) -> str:
    lines = text.splitlines(keepends=True)
    flat = [line for line in lines if line.startswith("sops_")]
    if flat:
        return "".join([*flat, *(line for line in lines if not line.startswith("sops_"))])
    found = re.search(r"^(sops:\n(?: .*\n?)*|\[sops\]\n(?:[^\[\n].*\n?)*)", text, re.MULTILINE)
    if not found or text.startswith(("---", "#")) or "\n---" in text:
        return text
    return f"{found[0]}{text[: found.start()]}{text[found.end() :]}"


EDITS: Mapping[str, Callable[[str, Random], str]] = {
    "swapped values": _swapped,
    "flipped letter": _flipped,
    "no mac": _without(r'^\s*"?(sops_)?mac"?(: |=| = ).*\n'),
    "no version": _without(r'^\s*"?(sops_)?version"?(: |=| = ).*\n'),
    "no date": _without(r'^\s*"?(sops_)?lastmodified"?(: |=| = ).*\n'),
    "another date": _with(r"(lastmodified\"?(?:: |=| = )\"?)....", r"\g<1>2001"),
    "a date that is none": _with(r"(lastmodified\"?(?:: |=| = )\"?)....", r"\g<1>x"),
    "another version": _with(r"(version\"?(?:: |=| = )\"?)3\.", r"\g<1>1."),
    "another recipient": lambda text, _chance: text.replace(ALICE.recipient, BOB.recipient),
    "no value": _without(r"^[^\n]*ENC\[AES256_GCM[^\n]*\n"),
    "another key": _with(r'^(\s*"?)(a|b|A|name|data)(?="?\s*[:=])', r"\1z"),
    "one more key": _with(r"\A(?!---)(?=\w+:)", "more: 1\n"),
    "one more line": _with(r"\A(?=\w+=)", "MORE=1\n"),
    "plain in its place": lambda text, _chance: VALUE.sub("plain", text, count=1),
    "mac of all": _without(r'^\s*"?(sops_)?mac_only_encrypted"?(: |=| = ).*\n'),
    "CRLF": lambda text, _chance: text.replace("\n", "\r\n"),
    "byte order mark": lambda text, _chance: f"\ufeff{text}",
    "blank lines": lambda text, _chance: f"\n{text}\n\n",
    "no last line end": lambda text, _chance: text.rstrip("\n"),
    "a comment": lambda text, _chance: f"# x\n{text}",
    "a comment at the end": lambda text, _chance: f"{text}# x\n",
    "a document mark": lambda text, _chance: f"---\n{text}",
    "a document mark at the end": lambda text, _chance: f"{text}---\n",
    "document ends": lambda text, _chance: f"{text}...\n",
    "a plain document": lambda text, _chance: f"{text}---\nplain: 1\n",
    "a plain document before": lambda text, _chance: f"plain: 1\n---\n{text}",
    "another document": lambda text, _chance: f"{text}---\n{encrypted('a.yaml', 'more: 1').decode()}",
    "twice": lambda text, _chance: f"{text}---\n{text}",
    "cut": lambda text, chance: text[: chance.randrange(len(text))],
    "restyled": _restyled,
    "metadata first": _metadata_first,
}
WEIGHTS = {"restyled": 5, "metadata first": 3, "swapped values": 3, "flipped letter": 2, "cut": 3}


def edited(chance: Random) -> str:
    """Return the name of an edit; most often of none."""
    if chance.random() < 0.45:
        return ""
    return chance.choice([name for name in EDITS for _ in range(WEIGHTS.get(name, 1))])
