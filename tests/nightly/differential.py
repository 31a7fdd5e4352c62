"""What every differential test shares: the oracle, seeded chance, and the table of docs/differences.md, which says what may differ.

A row of that table has a name, an example, and what both make of it. A test has a predicate for each row of its codec: a question that
no row's predicate covers must be answered alike, an error being equal to any other error. The examples are asked, too: a row that no
longer holds fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from infra.oracle.build import oracle
from tests.patience import PATIENCE

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "differences.md"
SEED = int(os.environ.get("ANNEAL_NIGHTLY_SEED", "57"))
ERROR = "error"
Covers = Callable[[Mapping[str, Any], "Answer", "Answer"], bool]
Reference = Callable[[Sequence[Mapping[str, Any]]], list["Answer"]]
"""Whether a difference is one that a row is about: by the question, our answer, and the reference's."""
_ROW = re.compile(r"^\| (?P<name>[^|]+?) \| `(?P<example>.+?)` \| `(?P<ours>.+?)` \| `(?P<theirs>.+?)` \| (?P<why>.+) \|$")
_SHOWN = 300

Question = Mapping[str, Any]
"""A line of the oracle's input without its codec; see infra/oracle/main.go."""


@dataclass(frozen=True)
class Answer:
    """What a codec makes of a question, as JSON; `ERROR` of whatever is refused. `said`: the refusal."""

    value: str
    said: str = ""

    @classmethod
    def of(cls, value: Any) -> Answer:
        """Write a value so that 1, 1.5, true and "1" are four, and the order of keys doesn't count."""
        return cls(json.dumps(value, sort_keys=True, ensure_ascii=False))


@dataclass(frozen=True)
class Row:
    """One row of the page: a difference that is known."""

    name: str
    example: str
    ours: str
    theirs: str


def seeded() -> Random:
    """Return chance that is the same in each run; ANNEAL_NIGHTLY_SEED asks for another."""
    return Random(SEED)


def words(text: str) -> list[str]:
    """Return what blanks separate."""
    return text.split()


def asked(codec: str, questions: Sequence[Question], read: Callable[[Question, Any], Any] = lambda _question, value: value) -> list[Answer]:
    """Return the reference's answers. `read`: takes what is compared out of one."""
    lines = "".join(json.dumps({"codec": codec, **each}) + "\n" for each in questions)
    done = subprocess.run([oracle()], input=lines.encode(), capture_output=True, check=True, timeout=5 * PATIENCE)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(questions)
    pairs = zip(questions, found, strict=True)
    return [Answer(ERROR, each["error"]) if "error" in each else Answer.of(read(asks, each["value"])) for asks, each in pairs]


def rows(codec: str) -> list[Row]:
    """Return the table under the heading that names a codec: `## … {#codec}`."""
    _, found, rest = PAGE.read_text().partition(f'<a id="{codec}"></a>')
    assert found, f"docs/differences.md has no anchor {codec}"
    section = rest.split("<a id=")[0]
    return [
        Row(each["name"], *(_plain(each[key]) for key in ("example", "ours", "theirs")))
        for each in map(_ROW.match, section.splitlines())
        if each
    ]


def _plain(cell: str) -> str:
    return cell.replace("\\|", "|").replace("⏎", "\n")


def compare(
    codec: str,
    questions: Sequence[Question],
    ours: Callable[[Question], Answer],
    known: Mapping[str, Covers],
    example: Callable[[str], Question] = lambda text: {"text": text},
    read: Callable[[Question, Any], Any] = lambda _question, value: value,
    reference: Reference | None = None,
) -> None:
    """Fail where an answer differs that no row of the page covers, or where the page says what isn't so.

    `known`: the name of each row, and what it is about; `example`: makes a question of a row's example; `read`:
    takes what is compared out of the oracle's answer; `reference`: answers in place of the oracle.
    """
    answers = reference or (lambda questions: asked(codec, questions, read))
    table = rows(codec)
    assert {row.name for row in table} == set(known), "docs/differences.md and this test name other differences"
    examples = [example(row.example) for row in table]
    for row, found, theirs in zip(table, examples, answers(examples), strict=True):
        mine = ours(found)
        assert known[row.name](found, mine, theirs), f"{row.name}: its example isn't one"
        assert (mine.value, theirs.value) == (row.ours, row.theirs), f"{row.name}: the page says something else"
    counts: Counter[str] = Counter()
    strange: list[str] = []
    for each, theirs in zip(questions, answers(questions), strict=True):
        mine = ours(each)
        if mine.value == theirs.value:
            counts["alike"] += 1
            counts["refused by both"] += mine.value == ERROR
        elif name := next((name for name, covers in known.items() if covers(each, mine, theirs)), ""):
            counts[name] += 1
        else:
            strange.append(
                f"{json.dumps(each, ensure_ascii=False)}\n  ours:   {mine.value} {mine.said}\n  theirs: {theirs.value} {theirs.said}"
            )
    sys.stdout.write(f"{codec}: {len(questions):,} compared, {len(strange)} differ; {dict(counts)}\n")
    assert not strange, f"{len(strange)} of {len(questions):,} differ, ANNEAL_NIGHTLY_SEED={SEED}:\n" + "\n".join(strange[:_SHOWN])
