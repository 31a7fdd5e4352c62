"""Ctrl-C while a run is under way, and what goes on after it."""

from __future__ import annotations

import re
import signal
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from handler.cli import diff, reports
from handler.cli.apply import show
from handler.cli.output import Output
from handler.cli.run_job import retry, run, stoppable
from handler.cli.session import Session
from handler.config.git_settings import Repository
from handler.config.settings import Cluster, Settings, Target
from handler.engine.run.errors import NotPromoted
from handler.model.advice import advice
from handler.model.errors import AnnealError, ClusterUnavailable, Problem
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Action, Change, Hold
from handler.model.result import Outcome, Result
from handler.state.heartbeat import UNREAD, Pulse, Server


@pytest.fixture
def session() -> Session:
    return Session(Output(), {})


def test_ctrl_c_stops_at_the_next_write_and_the_second_one_at_once() -> None:
    before, said = signal.getsignal(signal.SIGINT), list[str]()
    with stoppable(said.append) as stop:
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert said == ["stopping at the next write; again to stop at once"]
    assert signal.getsignal(signal.SIGINT) is before


def test_sigterm_stops_a_run_at_its_next_write_too() -> None:
    with stoppable(lambda _: None) as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()


def outcomes(session: Session, *results: Result) -> tuple[Result, list[Job]]:
    """Run a job whose runs end so; return its end, and the jobs that were run."""
    left, jobs = list(results), list[Job]()

    def run_one(job: Job, _stop: threading.Event) -> Result:
        jobs.append(job)
        return left.pop(0)

    session.__dict__ |= {"handler": SimpleNamespace(run=run_one), "sandbox": SimpleNamespace(start=lambda: None)}
    found = run(session, Job("shop", "oneoff", commit="a" * 40, rollback=True, actor="ann"), "applying shop")
    session._sandbox = None
    return found, jobs


def test_a_newer_head_that_came_meanwhile_is_gone_on_with(
    session: Session, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(session.events, "announce", heard.append)
    moved = Result("shop", Outcome.SUPERSEDED, message="the head moved", again=Job("shop", "push", hint="b" * 40))
    made = Change(Action.CREATE, Identity("", "ConfigMap", "shop", "a"))
    first = replace(moved, run="shop.1", trigger="rollback", written=(made,), counts={"created": 1})
    found, jobs = outcomes(session, first, moved, Result("shop", Outcome.APPLIED, "b" * 40, "oneoff", run="shop.3"))
    assert (found.outcome, found.commit, found.run, found.trigger) == (Outcome.APPLIED, "b" * 40, "shop.3", "oneoff"), "as its entry says"
    assert (found.written, found.counts) == ((made,), {"created": 1}), "what was written before the newer head came"
    assert [(job.commit, job.rollback, job.actor) for job in jobs] == [("a" * 40, True, "ann"), ("", False, "ann"), ("", False, "ann")]
    assert capsys.readouterr().err.count("the head moved; going on with that") == 2
    assert [(event.job, event.result.outcome) for event in heard] == list(
        zip(jobs, (Outcome.SUPERSEDED, Outcome.SUPERSEDED, Outcome.APPLIED), strict=True)
    ), "each run has its end"


def test_a_stopped_or_superseded_run_names_the_apply_command(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes(session, Result("shop", Outcome.BUSY, code="stopping"))
    outcomes(session, Result("shop", Outcome.SUPERSEDED, message="it was pinned"))
    assert capsys.readouterr().err.count("anneal apply shop") == 2


def test_what_a_plain_run_would_not_go_on_with_names_its_own_command_and_no_tick(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    session.again = "anneal adopt shop --from flux -y"
    outcomes(session, Result("shop", Outcome.BUSY, code="stopping"))
    outcomes(session, Result("shop", Outcome.SUPERSEDED, message="it was pinned"))
    found = capsys.readouterr().err
    assert "what it began stays as it is; anneal adopt shop --from flux -y goes on with it\n" in found
    assert "what was asked for goes on now: anneal adopt shop --from flux -y\n" in found


def test_an_interrupted_plan_has_begun_nothing(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    stopped = SimpleNamespace(run=lambda *_: Result("shop", Outcome.BUSY, code="stopping"))
    session.__dict__ |= {"handler": stopped, "sandbox": SimpleNamespace(start=lambda: None)}
    run(session, Job("shop", "oneoff", dry_run=True), "planning shop")
    session._sandbox = None
    assert "goes on" not in capsys.readouterr().err


NOW = 1_900_000_000.0
RUNS = Pulse(NOW, servers={"one": Server("one", "1.2.3", NOW)}, targets={"shop": ("one", NOW)})


@pytest.mark.parametrize(
    ("pulse", "code", "again", "said"),
    [
        (RUNS, "", "", r"next try in (4m5\ds|5m)"),
        (Pulse(NOW), "", "", "no server runs that would try again; now: anneal apply shop"),
        (replace(RUNS, targets={}), "", "", "no server runs that would try again; now: anneal apply shop"),
        (Pulse(NOW), NotPromoted.code, "", r"no server runs that would try again; in (4m5\ds|5m): anneal apply shop"),
        (UNREAD, "", "", r"next try in (4m5\ds|5m), if a server runs"),
        (ClusterUnavailable.of("x", "y"), "", "", r"next try in (4m5\ds|5m), if a server runs"),
        (None, ClusterUnavailable.code, "", r"next try in (4m5\ds|5m), if a server runs"),
        (None, ClusterUnavailable.code, "the same command", "to try again: the same command"),
        (RUNS, "", "anneal adopt shop --from flux -y", "to try again: anneal adopt shop --from flux -y"),
    ],
)
def test_the_next_try_is_promised_only_where_a_server_looks_after_the_target(
    session: Session, pulse: Any, code: str, again: str, said: str
) -> None:
    def ask(_target: Target) -> Any:
        assert pulse is not None, "a cluster that hasn't answered isn't asked again"
        if isinstance(pulse, AnnealError):
            raise pulse
        return pulse

    target = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",))
    session.__dict__ |= {"handler": SimpleNamespace(pulse=ask), "settings": Settings((target,))}
    session.again = again
    failed = Result("shop", Outcome.FAILED, next_try=time.time() + 299.5, code=code)
    assert re.fullmatch(f"shop: failed in 0.0 s; {said}", reports.summary(failed, retry(session)))
    looked = said.replace("try again;", "look at it again;").replace("next try", "next look").replace("to try", "to look")
    assert re.fullmatch(f"shop: applied in 0.0 s; {looked}", reports.summary(replace(failed, outcome=Outcome.APPLIED), retry(session)))
    session._sandbox = None


def test_a_plan_of_a_target_that_waits_promises_no_try_that_no_server_makes(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    session.__dict__ |= {"handler": SimpleNamespace(pulse=lambda _target: Pulse(NOW))}
    session.settings = Settings((Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",)),))
    waits = Result("shop", Outcome.WAITING, next_try=time.time() + 299.5, code=NotPromoted.code)
    assert show(session, waits) == reports.BUSY
    assert re.search(r"; no server runs that would try again; in (4m5\ds|5m): anneal apply shop\n", capsys.readouterr().out)
    session._sandbox = None


def test_the_commands_of_a_run_reach_what_this_one_has_reached(capsys: pytest.CaptureFixture[str]) -> None:
    with Session(Output(), {}, config="other.yaml", context="west") as session:
        shop = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",), cluster=Cluster(context="east"))
        session.settings = Settings((shop,))
        session.__dict__["handler"] = SimpleNamespace(pulse=lambda _: Pulse(NOW))
        session.target("shop")
        missing = Problem(
            "Namespace/shop", "is missing", fix=advice("create it: kubectl create namespace {}; or see `anneal status {}`", "shop", "shop")
        )
        reports.result(session.output, Result("shop", Outcome.FAILED, problems=(missing,), next_try=time.time() + 9), retry=retry(session))
        diff.hold(session.output, "shop", Hold("h1", ("much goes",), ()))
    told = "".join(capsys.readouterr())
    assert "create it: kubectl --context west create namespace shop; or see `anneal -c other.yaml --context west status shop`" in told
    assert "no server runs that would try again; now: anneal -c other.yaml --context west apply shop" in told
    assert "allow exactly that: anneal -c other.yaml --context west approve shop h1" in told


def test_without_flags_kubectl_is_led_to_the_targets_own_cluster(session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    shop = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",), cluster=Cluster(context="east"))
    session.settings = Settings((shop,))
    session.target("shop")
    reports.problems(session.output, [Problem("Namespace/shop", "is missing", fix=advice("kubectl create namespace {}", "shop"))])
    assert capsys.readouterr().err.endswith("    kubectl --context east create namespace shop\n")
