"""A tick that needs no run says whether the record owes its git host an end; a host that lags gives no target a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.app.tick_survey import TickSurvey
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.refs import Head
from handler.model.result import Outcome, Result
from handler.state.record_values import RecordedCommitStatus
from tests.fakes.engine import SHOP
from tests.unit.engine.promoting_targets import PROD, STAGING, Line, promoted_once

INFRA = Target("infra", SHOP, ("infra",), path="infra")
WEB = Target("web", SHOP, ("web",), path="web", depends_on=("infra",))


def surveyed(monkeypatch: pytest.MonkeyPatch, line: Line, name: str) -> Result | None:
    """Survey a tick; None: the target gets its run."""
    found: list[Result | None] = []
    monkeypatch.setattr(line.handler, "head", lambda _target, _since: Head(line.host.shown))  # it has no address
    TickSurvey(Settings(targets=line.targets), line.handler).look([Job(name, "tick")], lambda _job, result, _mute: found.append(result))
    (result,) = found
    return result


def owes(line: Line, name: str, *states: str) -> None:
    """Write into a record that its host isn't shown these yet."""
    statuses = tuple(RecordedCommitStatus(f"{number:040x}", state, "said", "run") for number, state in enumerate(states))
    line.handler.store(line.handler.target(name)).update(lambda state: replace(state, commit_statuses=statuses))


@pytest.mark.parametrize("target", [STAGING, PROD], ids=["of a branch", "promoted"])
def test_a_quiet_target_tells_whether_it_owes_an_end(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    line = promoted_once()
    for states, owed in (((), False), (("pending", "failure"), True), (("pending",), False)):
        owes(line, target.name, *states)
        result = surveyed(monkeypatch, line, target.name)
        assert result
        assert (result.outcome, result.owes) == (Outcome.UNCHANGED, owed)


def test_a_target_that_waits_for_others_tells_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line((INFRA, WEB))
    line.commit("1")
    assert line.run("web").outcome is Outcome.WAITING
    for states, owed in ((("success",), True), ((), False)):
        owes(line, "web", *states)
        result = surveyed(monkeypatch, line, "web")
        assert result
        assert (result.outcome, result.owes) == (Outcome.WAITING, owed)


def test_a_target_that_needs_a_run_has_no_end_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    line = promoted_once()
    owes(line, "staging", "success")
    line.commit("2")
    assert surveyed(monkeypatch, line, "staging") is None, "its run posts what it owes"
