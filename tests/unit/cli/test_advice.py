"""What `status` leads with: one row for each way a target can stand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.cli.advice import View, next_step
from handler.cli.times import ago, moment, span, until
from handler.config.git import Repository
from handler.config.settings import Target
from handler.model.names import Identity
from handler.state.lease import Peek
from handler.state.record import Approval, Attempt, Drift, Held, Orphan, Pin, State, Status, Suspend, TargetHealth
from handler.state.rules import seconds_of, stamp

NOW = 1_800_000_000.0
SHA = "a" * 40
LATER = stamp(NOW + 90)
TARGET = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",))
APPLIED = State("shop", "default", "uid", TARGET.repository.url, commit=SHA, status=Status("applied", stamp(NOW)))
ONE = Identity("", "ConfigMap", "shop", "one")
HELD = Held("58eb1fd1ec42", ("too many",), (("prune", "ConfigMap/shop/one", "uid"),), SHA, SHA, SHA, stamp(NOW))


def failed(who: str, next_try: str = "") -> Status:
    return Status("failed", stamp(NOW), message="m", failures=1, who=who, next_try=next_try)


@pytest.mark.parametrize(
    ("changed", "command", "said"),
    [
        ({}, "", "nothing to do"),
        ({"drift_due": LATER}, "", "nothing to do; live is looked at again in 1 min"),
        ({"suspend": Suspend("ada", "freeze")}, "anneal resume shop", "suspended"),
        ({"suspend": Suspend("ada", until=stamp(NOW - 1))}, "", "nothing to do"),
        ({"held": HELD}, "anneal approve shop 58eb1fd1ec42", "1 deletion waits for approval; to allow exactly it:"),
        ({"held": HELD, "approval": Approval(HELD.id, SHA, SHA, HELD.changes, "ada", LATER)}, "anneal apply shop", "approved"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW))}, "anneal apply shop", "didn't finish"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW)), "status": failed("author")}, "", "fix the commit"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW)), "status": Status("waiting", next_try=LATER)}, "", "isn't healthy yet"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW)), "status": Status("rolling-out", next_try=LATER)}, "", "rollout goes on"),
        ({"attempt": Attempt(SHA, SHA, SHA, "x.1", stamp(NOW)), "status": Status("rolling-out")}, "anneal apply shop", "didn't finish"),
        ({"status": failed("author")}, "", "fix the commit"),
        ({"status": failed("operator")}, "anneal apply shop", "said below"),
        ({"status": failed("nobody", LATER)}, "anneal apply shop", "tried again in 1 min"),
        ({"health": TargetHealth("degraded", LATER, LATER, ("Deployment/shop/a: 0 of 1",))}, "anneal status shop --logs", "degraded"),
        ({"health": TargetHealth("degraded", LATER, LATER, ("PersistentVolumeClaim/shop/a: lost",))}, "", "degraded"),
        ({"health": TargetHealth("degraded", LATER, LATER, ("Service/shop/a: is not there",))}, "anneal apply shop", "is gone"),
        ({"health": TargetHealth("unknown", LATER, LATER)}, "anneal apply shop", "isn't known"),
        ({"health": TargetHealth("progressing", LATER, LATER)}, "", "not all of it is healthy yet"),
        ({"health": TargetHealth("healthy", LATER, LATER, (), ("Service/shop/a: no address",))}, "", "noted below"),
        ({"pin": Pin(SHA)}, "anneal unpin shop", "pinned"),
        ({"pin": Pin(SHA, automatic=True)}, "anneal unpin shop", "rolled back"),
        ({"drift": (Drift(ONE, "data.a", "1", "2"),)}, "anneal apply shop", "1 field differs from git; to bring it back:"),
        (
            {"orphans": (Orphan("uid", ONE, stamp(NOW)),)},
            "anneal prune shop --dry-run",
            "1 object is no longer declared; to see whether it may go:",
        ),
    ],
)
def test_the_next_step_is_a_command_where_there_is_one(changed: dict[str, Any], command: str, said: str) -> None:
    step = next_step(View(TARGET, replace(APPLIED, **changed), None, NOW))
    assert step.command == command
    assert said in step.text


@pytest.mark.parametrize(
    ("view", "command", "said"),
    [
        (View(TARGET, None, None, NOW), "anneal apply shop", "never ran"),
        (View(TARGET, None, None, NOW, "cluster-unavailable", "no answer"), "", "no answer"),
        (View(TARGET, APPLIED, None, NOW, "target-moved", "moved"), "anneal retarget shop", "another repository"),
        (View(TARGET, APPLIED, Peek("pod-1", True, 1.0, False), NOW), "", "pod-1 works on it now"),
        (View(TARGET, APPLIED, Peek("pod-1", False, 90.0, False), NOW), "anneal unlock shop", "hasn't renewed for 90 s"),
    ],
)
def test_the_lease_and_a_missing_record_count_too(view: View, command: str, said: str) -> None:
    step = next_step(view)
    assert step.command == command
    assert said in step.text


@pytest.mark.parametrize(("seconds", "text"), [(-3, "0 s"), (0, "0 s"), (59.9, "60 s"), (61, "1 min"), (7200, "2 h"), (200_000, "2 d")])
def test_a_span_is_told_in_its_largest_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_recorded_times_are_told_from_now() -> None:
    assert (ago(stamp(NOW - 120), NOW), ago("", NOW)) == ("2 min ago", "")
    assert (until(LATER, NOW), until(stamp(NOW - 1), NOW), until("", NOW)) == ("in 1 min", "at once", "at once")


def test_until_takes_a_duration_or_a_time_with_its_zone() -> None:
    assert moment("2h", NOW) == NOW + 7200
    assert moment("2030-01-31T12:00:00+02:00", NOW) == seconds_of("2030-01-31T10:00:00Z")


@pytest.mark.parametrize("text", ["soon", "2030-01-31T12:00:00", "0s", "-1h"])
def test_until_refuses_anything_else(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        moment(text, NOW)


def test_what_the_configuration_suspends_is_resumed_there() -> None:
    step = next_step(View(replace(TARGET, suspend=True), APPLIED, None, NOW))
    assert (step.command, step.urgent) == ("", True)
    assert "set `suspend: false` in anneal.yaml" in step.text
