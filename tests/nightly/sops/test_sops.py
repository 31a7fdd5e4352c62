"""Files that sops has encrypted: what renderers are given of them is what `sops decrypt` prints, byte by byte, or an error of both."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest
import yaml

from handler.model.errors import AnnealError
from handler.render import Sandbox
from tests.nightly.differential import ERROR, SEED, Answer, Covers, Question, compare, seeded
from tests.nightly.sops.generated_files import EDITS, FLAGS, FORMS, GROUPS, OF_COMMENTS, RECIPIENTS, TYPES, edited
from tests.rooms.render.kustomize_trees import public_tools
from tests.rooms.render.sops_files import ALICE, bare, encrypted, plain, sops

FILES = 800
AT_ONCE = 2
LEFT = '"as it is"'
"""Our answer of a file that isn't seen as one of sops: renderers read its text."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


def grouped(path: str, text: str | bytes, *flags: str, to: str) -> bytes:
    """Encrypt by the settings of sops, which name groups of keys."""
    with tempfile.TemporaryDirectory() as directory:
        settings = Path(directory, "sops.json")
        settings.write_text(to)
        return sops("--config", str(settings), "encrypt", "--filename-override", path, *flags, given=text)


def question(path: str, text: str | bytes, flags: Sequence[str] = (), to: str = ALICE.recipient, edit: str = "", seed: int = 0) -> Question:
    """Encrypt a file. One that sops doesn't encrypt has no `data`."""
    shown = {"path": path, "flags": shlex.join(flags), "edit": edit, "text": text if isinstance(text, str) else repr(text)}
    try:
        data = (grouped if to[:1] == "{" else encrypted)(path, text, *flags, to=to).decode()
    except AssertionError:
        return shown
    return {**shown, "data": EDITS[edit](data, Random(seed)) if edit else data}


def files() -> list[Question]:
    chance = seeded()
    asked = []
    for number in range(FILES):
        form = chance.choice(("yaml", "yaml", *FORMS))
        names, make = FORMS[form]
        flags = chance.choice(FLAGS if form in ("yaml", "json", "dotenv", "ini") else FLAGS[:1])
        flags = chance.choice(OF_COMMENTS) if form == "yaml" and chance.random() < 0.1 else flags
        flags = (*flags, *(chance.choice(TYPES) if form == "binary" and chance.random() < 0.3 else ()))
        asked.append((chance.choice(names), make(chance), flags, chance.choice(RECIPIENTS), edited(chance), number + SEED))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [each for each in pool.map(lambda given: question(*given), asked) if "data" in each]


def example(text: str) -> Question:
    """Read a row's example: `{path: a.yaml, text: "a: 1", flags: "--…", edit: twice}`."""
    given = yaml.safe_load(text)
    to = GROUPS[given["groups"]] if "groups" in given else ALICE.recipient
    return question(given["path"], given["text"], shlex.split(given.get("flags", "")), to, given.get("edit", ""))


def reference(questions: Sequence[Question]) -> list[Answer]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(_printed, questions))


def _printed(asks: Question) -> Answer:
    try:
        return Answer.of(bare(asks["path"], asks["data"].encode()).decode("latin-1"))
    except (AssertionError, subprocess.TimeoutExpired) as refused:
        return Answer(ERROR, str(refused))


def given(sandbox: Sandbox) -> Callable[[Question], Answer]:
    def ours(asks: Question) -> Answer:
        data = asks["data"].encode()
        try:
            made = plain(sandbox, f"deploy/{asks['path']}", data)
        except AnnealError as refused:
            return Answer(ERROR, str(refused))
        return Answer(LEFT) if made == data else Answer.of(made.decode("latin-1"))

    return ours


def is_json(asks: Question) -> bool:
    """Whether it looks like JSON: behind a byte order mark it doesn't."""
    return bool(asks["data"].lstrip().startswith("{"))


def refused(mine: Answer, theirs: Answer) -> tuple[bool, bool]:
    return mine.value == ERROR, theirs.value == ERROR


KNOWN: dict[str, Covers] = {
    "A file without whole metadata": lambda _asks, mine, theirs: (mine.value, theirs.value) == (LEFT, ERROR),
    "A name of another form": lambda asks, mine, theirs: (
        refused(mine, theirs) == (False, True)
        and ((asks["path"] in FORMS["binary"][0] and not is_binary(asks)) or (asks["path"] == "a.json" and not is_json(asks)))
    ),
    "More behind JSON": lambda asks, mine, theirs: refused(mine, theirs) == (True, False) and "can't be read as JSON" in mine.said,
    "A document without content": lambda _asks, mine, theirs: without_content(theirs) == without_content(mine),
    "Documents that aren't encrypted, or each by itself": lambda asks, _mine, _theirs: differing(asks) > 1,
    "A line of INI metadata that says nothing": lambda asks, mine, theirs: (
        asks["path"] == "a.ini" and refused(mine, theirs) == (False, True) and "key-value delimiter" in theirs.said
    ),
    "Windows' line ends in metadata": lambda asks, mine, theirs: (
        asks["path"] == "a.env" and "\r\n" in asks["data"] and refused(mine, theirs) == (False, True)
    ),
    "Key groups": lambda _asks, mine, theirs: "split among key groups" in mine.said,
}


def is_binary(asks: Question) -> bool:
    return is_json(asks) and set(json.loads(asks["data"])) == {"data", "sops"}


def differing(asks: Question) -> int:
    """Return how many metadata the documents of a YAML file have; none are some, too."""
    if asks["path"] not in FORMS["yaml"][0]:
        return 1
    try:
        documents = list(yaml.load_all(asks["data"], yaml.BaseLoader))
    except yaml.YAMLError:
        return 1
    return len({json.dumps(each.get("sops")) if isinstance(each, dict) else "" for each in documents if each})


def without_content(answer: Answer) -> str:
    return re.sub(r"---\\n|\{\}\\n|# x\\n", "", answer.value)


@pytest.mark.timeout(1800)
def test_decrypted_files(sandbox: Sandbox) -> None:
    compare("sops", files(), given(sandbox), KNOWN, example, reference=reference)
