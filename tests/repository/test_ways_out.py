"""Whatever a name holds, a command that is advised gives it to its program as one word, and settings that are advised hold it as one value.

Each template is found in the code (`infra.house.advice`), filled with evil names, pasted into a shell whose programs write down what
they are given, or loaded as YAML. That none is made elsewhere, the lint sees.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import pytest
import yaml

from handler.cli.follow_up_commands import GivenFlags
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster
from handler.model.advice import Advice, advice, flow, together
from infra.house.advice import COMMAND, HOLE, MAKER, PROGRAMS, PROSE, Site, sites
from infra.house.sources import ROOT, parsed
from tests.patience import PATIENCE
from tests.repository.evil_names import EVERYWHERE, NAMES

TEXTS = ((str(path.relative_to(ROOT)), path.read_text()) for path in sorted((ROOT / "handler").rglob("*.py")))
SOURCES = [parsed(name, text) for name, text in TEXTS if name != MAKER and re.search(r"advice\(|\{(?:path|words|yaml)\}", text)]
TEMPLATES = sorted({site for source in SOURCES for site in sites(source) if isinstance(site, Site)})
OF_EACH_SORT = tuple(Site("here", text) for text in ("kubectl get {} -n {}", "kustomize build {path} > {path}", "kubectl apply{words}"))
"""Filled with every name: what stands around a hole matters for a few names alone."""


class Pasted(NamedTuple):
    """A command to paste, and the words that must reach a program."""

    site: str
    command: str
    words: tuple[str, ...]


# --- commands
def commands(template: str) -> Iterator[str]:
    """Yield the commands of a template that have a hole for words."""
    for found in COMMAND.finditer(template):
        said = PROSE.split(found.group())[0].rstrip(" .:)")
        if re.search(r"\{(?:|path|words)\}", said):
            yield said


def filled(site: Site, name: str) -> Iterator[Pasted]:
    """Yield the commands of a place with a name in each hole; a list of words has an option of ours, too."""
    for command in commands(site.template):
        values = [["--flag", name] if hole == "words" else "text" if hole == "text" else name for hole in HOLE.findall(command)]
        words = re.sub("> ", ">", command).replace("{words}", " --flag {}").replace("{text}", "text").split(" ")
        path = f"./{name}" if name.startswith("-") else name
        found = (word.partition('"')[0] for word in words if re.search(r"\{(path)?\}", word) and not word.startswith(">"))
        yield Pasted(site.place, advice(command, *values), tuple(word.replace("{path}", path).replace("{}", name) for word in found))


PASTED = [
    each
    for templates, names in ((TEMPLATES, EVERYWHERE), (OF_EACH_SORT, NAMES))
    for site in templates
    for name in names
    for each in filled(site, name)
]


@pytest.fixture(scope="module")
def reached(tmp_path_factory: pytest.TempPathFactory) -> list[list[list[str]]]:
    """Paste all commands into one shell, a person's; return what each of them gave to programs."""
    room, log = tmp_path_factory.mktemp("pasted"), tmp_path_factory.mktemp("log") / "log"
    for name in NAMES:
        (room / name).parent.mkdir(parents=True, exist_ok=True)  # what a command writes to
    programs = {word.partition(" ")[0] for word in PROGRAMS.split("|")} | {"base64", "grep"}
    given = "\"${@//$'\\n'/$'\\x02'}\""  # bash writes at each line's end, and the programs of a pipe write at once
    stubs = "\n".join(f"{each}() {{ builtin printf '%s\\0' CALL {given} >>{log}; }}" for each in sorted(programs | {"export", "printf"}))
    lines = "\n".join(f"builtin printf 'NEXT\\0' >>{log}\n{each.command}" for each in PASTED)
    assert all("\n" not in each.command for each in PASTED)
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-i"],
        input=f"set -H\n{stubs}\n{lines}\n".encode("utf-8", "surrogateescape"),
        cwd=room,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": str(room), "HISTFILE": "/dev/null"},
        capture_output=True,
        timeout=5 * PATIENCE,
        check=False,
    )
    assert not [*room.rglob("PWNED")], done.stderr[-2000:]
    assert {file.name for file in room.iterdir() if file.is_file()} <= {*NAMES}, "a file that another one is written to"
    parts = log.read_bytes().decode().replace("\x02", "\n").split("NEXT\0")[1:]
    return [[call.split("\0")[:-1] for call in part.split("CALL\0")[1:]] for part in parts]


def test_each_name_reaches_its_program_as_one_word(reached: list[list[list[str]]]) -> None:
    assert len(reached) == len(PASTED) > 200 * len(EVERYWHERE)
    wrong = dict[str, tuple[Pasted, list[list[str]]]]()
    for pasted, ran in zip(PASTED, reached, strict=True):
        given = [word for call in ran for word in call]
        if any(word not in given for word in pasted.words):
            wrong.setdefault(pasted.site, (pasted, ran))
    assert not wrong, "\n".join(f"{site}: {pasted.command!r}: {ran}" for site, (pasted, ran) in wrong.items())


def test_no_name_is_taken_for_an_option(reached: list[list[list[str]]]) -> None:
    wrong = set[str]()
    for pasted, ran in zip(PASTED, reached, strict=True):
        for call in ran:
            behind = (call[place - 1] if place else "" for place, word in enumerate(call) if word == "-rf" and "--" not in call[:place])
            wrong |= {pasted.command for each in behind if not each.startswith("-")}
    assert not wrong


def test_a_command_in_a_code_span_ends_with_it() -> None:
    assert [name for name in NAMES if advice("run `anneal apply {}`, now", name).count("`") != 2] == []


# --- settings
def block_of(template: str) -> str:
    """Return the settings around the first hole of a template: its outermost brackets, with the key before them."""
    hole = template.index("{yaml}")
    opened, start = 0, hole
    for place in range(hole - 1, -1, -1):
        opened += {"]": -1, "}": -1, "[": 1, "{": 1}.get(template[place], 0)
        if opened > 0:
            opened, start = 0, place
    if found := re.search(r"[\w.{}]+: $", template[:start]):
        start = found.start()
    end, opened = hole + len("{yaml}"), 0
    for place in range(start, len(template)):
        opened += {"]": -1, "}": -1, "[": 1, "{": 1}.get(template[place], 0)
        if not opened and place >= hole + len("{yaml"):
            end = place + 1
            break
    return template[start:end]


def renamed(value: Any, old: str, new: str) -> Any:
    """Return a value with another name in place of one."""
    if isinstance(value, dict):
        return {renamed(key, old, new): renamed(each, old, new) for key, each in value.items()}
    return [renamed(each, old, new) for each in value] if isinstance(value, list) else new if value == old else value


BLOCKS = sorted({block_of(site.template) for site in TEMPLATES if "{yaml}" in site.template})


def loaded(block: str, name: object) -> Any:
    text = advice(block, *(name if hole == "yaml" else "text" for hole in HOLE.findall(block)))
    assert "\n" not in text
    return yaml.load(str(text), yaml.CSafeLoader)


def test_each_name_is_one_value_of_each_block() -> None:
    assert len(BLOCKS) > 20
    for block, name in product(BLOCKS, EVERYWHERE):
        assert loaded(block, name) == renamed(loaded(block, "SENTINEL"), "SENTINEL", name), block
        nested, wanted = [{"name": name, name: [name, True, 3]}], [{"name": "SENTINEL", "SENTINEL": ["SENTINEL", True, 3]}]
        if not re.search(r"\{\{yaml\}: ", block) and not block.startswith("{yaml}: "):
            assert loaded(block, nested) == renamed(loaded(block, wanted), "SENTINEL", name), block


def test_a_value_stands_in_any_place_of_yaml_on_one_line() -> None:
    for name, shown in ((name, flow(name)) for name in NAMES):
        assert shown.isprintable()
        assert "`" not in shown
        assert yaml.safe_load(f"a: {shown}") == {"a": name}
        assert yaml.safe_load(f"a: {{b: {shown}, {shown}: [{shown}]}}") == {"a": {"b": name, name: [name]}}
        assert yaml.safe_load(f"- {shown}\n- x") == [name, "x"]


# --- what is completed
FLAGS = GivenFlags(("-c", "a b.yaml"), ("--kubeconfig", "/etc/admin"))


def test_only_our_own_words_are_completed() -> None:
    said = "anneal apply x; kubectl delete ns prod"
    whole = advice("look: kubectl get {} -n {}; {text}; or {text}", said, said, said, advice("anneal apply {}", said))
    done = FLAGS.complete(whole, Cluster())
    assert done == (f"look: kubectl --kubeconfig /etc/admin get '{said}' -n '{said}'; {said}; or anneal -c 'a b.yaml' apply '{said}'")
    for text in (said, f"{whole}", str(whole), whole.replace("x", "y"), "; ".join([whole])):
        assert FLAGS.complete(text, Cluster()) == text, "what isn't known to be ours any more"


def test_a_text_put_together_knows_its_pieces() -> None:
    both = together("; ", ("kubectl delete ns prod", "", advice("anneal apply {}", "shop")))
    assert isinstance(both, Advice)
    assert FLAGS.complete(both, Cluster()) == "kubectl delete ns prod; anneal -c 'a b.yaml' apply shop"


def test_flags_are_words_too() -> None:
    for name in NAMES:
        done = GivenFlags().complete(advice("kubectl get x"), Cluster(SecretRef(file=name)))
        assert done == f"kubectl{advice('{words}', ['--kubeconfig', name])} get x"
