"""When a target is ready for those that depend on it: each reason why it isn't, with the command that helps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.config.git_settings import Promoted, Repository, Revision
from handler.config.settings import Target
from handler.engine.run import readiness
from handler.engine.run.other_records import OtherRecord
from handler.engine.run.readiness import SeenDependency
from handler.model.health import HealthState
from handler.state.record import Attempt, HeldPlan, Pin, RunStatus, State, Suspend, TargetHealth
from handler.state.record_format import seconds_of
from handler.state.record_values import DependencyWait, Obstacle, RunOnce
from handler.state.summary import Summary
from tests.unit.state.samples import NOON, blank, sha

pytestmark = pytest.mark.slow

NOW = seconds_of(NOON)
HAS, HEAD = sha("a"), sha("b")
SETTINGS, OTHER = "c" * 64, "d" * 64
INFRA = Target("infra", Repository("https://git.example.com/acme/infra.git"), ("infra",))
PROMOTED = replace(INFRA, revision=Revision(promoted=Promoted(("infra-staging",))))
WELL = TargetHealth(HealthState.HEALTHY, NOON, NOON)
GOOD = blank(commit=HEAD, reads="e" * 64, settings=SETTINGS, status=RunStatus("applied", NOON), health=WELL)
_INPUTS: dict[str, Any] = {"commit": HEAD, "reads": "e" * 64, "settings": SETTINGS}
ATTEMPT = Attempt(token="u-1.1", since=NOON, **_INPUTS)
HELD = HeldPlan("h1", ("12 deletions", "more"), (), since=NOON, **_INPUTS)


def judged(state: State | None, *, together: bool = False, pinned: bool = False, target: Target = INFRA) -> Obstacle | None:
    """Judge as the gate does."""
    record = OtherRecord("infra", state, state.health if state else TargetHealth())
    found = readiness.at_rest(target, record)
    if found or state is None:
        return found
    return readiness.of_commit(SeenDependency(target, SETTINGS, record, HEAD, together, pinned), NOW)


def failing(phase: str) -> State:
    return replace(GOOD, status=RunStatus(phase, NOON, message="Deployment/infra/db: no room\nmore"))


def health(state: HealthState, *worst: str) -> State:
    return replace(GOOD, health=TargetHealth(state, NOON, NOON, worst))


PINNED = replace(GOOD, commit=HAS, pin=Pin(HAS, by="ada"))
BACK = replace(GOOD, commit=HAS, pin=Pin(HAS, reason="rollback: it failed", automatic=True))
PAUSED = replace(GOOD, commit=HAS, suspend=Suspend("ada", "freeze"))
WAITS = DependencyWait(HEAD, SETTINGS, NOON, (Obstacle("base", "it fails"), Obstacle("dns", "it never ran")))

NOT_READY: dict[str, tuple[dict[str, Any], str, str]] = {
    "no record": ({"state": None}, "it never ran", "anneal apply infra"),
    "a record of nothing": ({"state": blank()}, "it never ran", "anneal apply infra"),
    "only a failure": ({"state": replace(failing("failed"), commit="")}, "it fails: “Deployment/infra/db: no room”", "anneal status infra"),
    "only a look": ({"state": replace(GOOD, commit="")}, "it has applied nothing yet", "anneal apply infra"),
    "waits itself": (
        {"state": replace(GOOD, awaits=WAITS, status=RunStatus("waiting"))},
        "it waits itself for base and dns",
        "anneal status infra",
    ),
    "held": ({"state": replace(GOOD, held=HELD)}, "its plan is held as h1: “12 deletions; more”", "anneal approve infra h1"),
    "held as a forged id": (
        {"state": replace(GOOD, held=replace(HELD, id="h1; anneal retire vic"))},
        "its plan is held as “h1; anneal retire vic”: “12 deletions; more”",
        "anneal approve infra",
    ),
    "waits itself for a forged name": (
        {"state": replace(GOOD, awaits=replace(WAITS, on=(Obstacle("x; y", "it fails"),)), status=RunStatus("waiting"))},
        "it waits itself for “x; y”",
        "anneal status infra",
    ),
    "held takeover": (
        {"state": replace(GOOD, held=replace(HELD, once=RunOnce(("flux",))))},
        "its plan is held as h1: “12 deletions; more”",
        "anneal adopt infra --from flux --approve h1",
    ),
    "failing": ({"state": failing("failed")}, "it fails: “Deployment/infra/db: no room”", "anneal status infra"),
    "deleting": ({"state": failing("pruning")}, "what it has pruned isn't gone yet: “Deployment/infra/db: no room”", "anneal status infra"),
    "under way": ({"state": replace(GOOD, attempt=ATTEMPT)}, f"a run of it isn't through, for {HEAD[:12]}", "anneal status infra"),
    "behind": ({"state": replace(GOOD, commit=HAS)}, f"it has {HAS[:12]}, and git is at {HEAD[:12]}", "anneal status infra"),
    "behind what is proven": (
        {"state": replace(GOOD, commit=HAS), "target": PROMOTED},
        f"it has {HAS[:12]}, and {HEAD[:12]} is proven",
        "anneal promote infra",
    ),
    "nothing proven yet": ({"state": replace(GOOD, commit=""), "target": PROMOTED}, "it has applied nothing yet", "anneal promote infra"),
    "a pin that has ended": ({"state": PINNED}, f"it has {HAS[:12]}, and git is at {HEAD[:12]}", "anneal status infra"),
    "a pin that isn't applied": (
        {"state": replace(PINNED, commit=sha("f")), "pinned": True},
        f"it is pinned to {HAS[:12]} and has {sha('f')[:12]}",
        "anneal status infra",
    ),
    "went back": (
        {"state": BACK, "pinned": True, "together": True},
        f"it went back to {HAS[:12]}: “rollback: it failed”",
        "push what mends it; once more: anneal unpin infra",
    ),
    "paused": (
        {"state": PAUSED, "together": True},
        f"it is suspended by ada at {HAS[:12]}, and doesn't take {HEAD[:12]}",
        "anneal resume infra",
    ),
    "paused by its settings": (
        {"state": replace(GOOD, commit=HAS), "together": True, "target": replace(INFRA, suspend=True)},
        f"it is suspended in the configuration at {HAS[:12]}, and doesn't take {HEAD[:12]}",
        "set `suspend: false` for infra in anneal.yaml",
    ),
    "other settings": ({"state": replace(GOOD, settings=OTHER)}, "its settings have changed and aren't applied yet", "anneal apply infra"),
    "degraded": (
        {"state": health(HealthState.DEGRADED, "Deployment/infra/db: 0 of 1 ready\nmore")},
        "it is degraded: “Deployment/infra/db: 0 of 1 ready”",
        "anneal status infra",
    ),
    "on its way": ({"state": health(HealthState.PROGRESSING)}, "not all of it is healthy yet", "anneal status infra"),
    "unknown": (
        {"state": health(HealthState.UNKNOWN, "was healthy at noon")},
        "how it does isn't known: “was healthy at noon”",
        "anneal apply infra",
    ),
    "never judged": ({"state": replace(GOOD, health=TargetHealth())}, "how it does isn't known", "anneal apply infra"),
}
READY: dict[str, dict[str, Any]] = {
    "at the head": {"state": GOOD},
    "at the commit of both": {"state": GOOD, "together": True},
    "pinned by a person": {"state": PINNED, "pinned": True},
    "pinned by a person, in the same repository": {"state": PINNED, "pinned": True, "together": True},
    "went back, in another repository": {"state": BACK, "pinned": True},
    "paused, in another repository": {"state": PAUSED},
    "paused at the commit of both": {"state": replace(PAUSED, commit=HEAD), "together": True},
    "paused, with other settings": {"state": replace(PAUSED, settings=OTHER)},
    "drift that is only reported": {"state": replace(GOOD, status=RunStatus("drifted", NOON))},
    "what waited once": {"state": replace(GOOD, awaits=WAITS)},
}


@pytest.mark.parametrize("case", NOT_READY)
def test_what_is_not_ready_says_why_and_what_helps(case: str) -> None:
    asked, why, fix = NOT_READY[case]
    assert judged(**asked) == Obstacle("infra", why, fix)


@pytest.mark.parametrize("case", READY)
def test_what_has_what_it_should_have_and_is_healthy_is_ready(case: str) -> None:
    assert judged(**READY[case]) is None


_STATES = st.builds(
    replace,
    st.just(GOOD),
    commit=st.sampled_from(["", HAS, HEAD]),
    settings=st.sampled_from([SETTINGS, OTHER]),
    attempt=st.sampled_from([None, ATTEMPT]),
    held=st.sampled_from([None, HELD]),
    pin=st.sampled_from([None, Pin(HAS), Pin(HAS, automatic=True)]),
    suspend=st.sampled_from([None, Suspend("ada")]),
    awaits=st.sampled_from([None, WAITS]),
    status=st.builds(RunStatus, phase=st.sampled_from(["", "applied", "failed", "held", "pruning", "waiting", "rolling-out", "drifted"])),
    health=st.builds(TargetHealth, state=st.sampled_from(["", *map(str, HealthState)])),
)


@given(_STATES, st.booleans(), st.booleans())
def test_a_summary_says_that_a_target_is_certainly_unready_only_where_its_record_does(state: State, together: bool, pinned: bool) -> None:
    if readiness.is_certainly_unready(Summary.of(state), HEAD, together=together):
        is_held_by_a_pin = pinned and state.pin is not None
        assert judged(state, together=together, pinned=is_held_by_a_pin) is not None
    assert readiness.is_certainly_unready(None, HEAD, together=together)
