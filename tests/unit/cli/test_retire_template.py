"""The ends of a template's instances, in turn: what keeps one, keeps the template's own record, and no other instance."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from handler.cli.output import Output
from handler.cli.reports import BUSY, DONE_CODE, FAILED
from handler.cli.retire_guards import RetireRequest
from handler.cli.retire_template import _carried_out, _Member
from handler.engine.retire import Retired
from handler.model.errors import AnnealError, Busy, StateInvalid
from handler.model.names import Identity
from tests.unit.app.instance_cluster import TEMPLATE

REQUEST = RetireRequest("grafana", prune=True, yes=True)
ENDED = Retired((), (), ended=True)
CAME = Retired((), (Identity("", "ConfigMap", "shop", "late"),), ended=False)
BUSY_ERROR = Busy.of("target grafana.shop.b", "is held")


class Ends:
    """What ends a target, with one answer. `tried`: the names of those that were tried."""

    def __init__(self, name: str, answer: Retired | AnnealError, tried: list[str], *, stops: bool = False) -> None:
        self.name, self.answer, self.tried, self.stops, self.namespace, self.wrote = name, answer, tried, stops, "", None

    def carry_out(self, _shown: Any, stop: threading.Event) -> Retired:
        self.tried.append(self.name)
        if self.stops:
            stop.set()
        if isinstance(self.answer, AnnealError):
            raise self.answer
        return self.answer


def carried_out(*answers: Retired | AnnealError, refused: tuple[AnnealError, ...] = (), stops: bool = False) -> tuple[int, list[str]]:
    """End instances a, b, … with these answers, then the template; return the exit code, and what was tried."""
    tried: list[str] = []
    names = [*(f"grafana.shop.{letter}" for letter, _ in zip("abc", answers, strict=False)), "grafana"]
    ends = (Ends(name, answer, tried, stops=stops) for name, answer in zip(names, (*answers, ENDED), strict=True))
    members: list[Any] = [_Member(replace(TEMPLATE, name=each.name), each, SimpleNamespace()) for each in ends]  # type: ignore[arg-type]  # as much of them as is used
    return _carried_out(Output(), REQUEST, members, refused), [name.rpartition(".")[2] for name in tried]


@pytest.mark.parametrize(
    ("answers", "refused", "code", "tried"),
    [
        ((ENDED, ENDED), (), DONE_CODE, ["a", "b", "grafana"]),
        ((ENDED, BUSY_ERROR, ENDED), (), BUSY, ["a", "b", "c"]),
        ((BUSY_ERROR, StateInvalid.of("record", "is damaged"), ENDED), (), FAILED, ["a", "b", "c"]),
        ((ENDED, CAME, ENDED), (), FAILED, ["a", "b", "c"]),
        ((ENDED,), (StateInvalid.of("record", "is damaged"),), FAILED, ["a"]),
    ],
)
def test_what_keeps_one_instance_keeps_no_other_and_the_templates_record(
    answers: tuple[Any, ...], refused: tuple[AnnealError, ...], code: int, tried: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert carried_out(*answers, refused=refused) == (code, tried)
    out = capsys.readouterr().out
    assert ("to go on: anneal retire grafana --prune" in " ".join(out.split())) is (code != DONE_CODE)


def test_after_a_signal_no_other_instance_is_begun() -> None:
    assert carried_out(ENDED, ENDED, stops=True) == (FAILED, ["a"])
