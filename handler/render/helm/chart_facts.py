"""What the render child finds out about a chart, as it crosses the pipe. Read strictly: the child isn't believed.

A chart stands somewhere twice: where helm says that a file is (`web/charts/db/templates/x.yaml`, by charts' names), and where git has it
(`deploy/charts/database/templates/x.yaml`). `ChartFacts.roots` lead from the first to the second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

NEEDING = (("Chart.yaml", "Chart.lock"), ("requirements.yaml", "requirements.lock"))
"""Files of a chart that name the charts which it needs, each with the one that says in which versions."""
Kinds = Mapping[str, Mapping[str, int]]
"""Path of a template -> kind of an object -> the one line that says so."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """A chart that another needs. `version`: the locked one where there is a lock, else the range; `place`: file:line that asks for it.

    `at`: path, below the rendered chart, of the one that needs it; empty: that one itself.
    """

    at: str
    name: str
    version: str
    repository: str
    alias: str
    place: str


@dataclass(frozen=True, slots=True)
class Use:
    """A function that a template calls: its name, and file:line."""

    function: str
    place: str


@dataclass(frozen=True, slots=True)
class ChartFacts:
    """What matters of a chart before helm reads it.

    `name`: as its Chart.yaml says, empty where that can't be read; `missing`: the charts that it needs and charts/ doesn't hold; `roots`:
    helm's path of a chart -> that in git; `asks_cluster`: it looks at the cluster's version or APIs.
    """

    name: str = ""
    missing: tuple[Dependency, ...] = ()
    uses: tuple[Use, ...] = ()
    roots: Mapping[str, str] = field(default_factory=dict)
    kinds: Kinds = field(default_factory=dict)
    asks_cluster: bool = False


def encode_facts(facts: ChartFacts) -> bytes:
    """Write them as one frame."""
    return json.dumps(asdict(facts)).encode()


def decode_facts(frame: bytes) -> ChartFacts:
    """Read them. Raises ValueError: the frame is something else."""
    try:
        raw = json.loads(frame)
        return ChartFacts(
            _text(raw["name"]),
            tuple(Dependency(**_texts(each)) for each in raw["missing"]),
            tuple(Use(**_texts(each)) for each in raw["uses"]),
            _texts(raw["roots"]),
            {_text(path): {_text(kind): _line(line) for kind, line in found.items()} for path, found in raw["kinds"].items()},
            raw["asks_cluster"] is True,
        )
    except (KeyError, TypeError, AttributeError) as wrong:
        raise ValueError("no facts of a chart") from wrong


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: Mapping[str, object]) -> dict[str, str]:
    return {_text(name): _text(each) for name, each in value.items()}


def _line(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value
