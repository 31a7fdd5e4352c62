"""What the record keeps of health after a look: which verdict, since when, in which words."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from handler.engine.health.custom_health import no_expressions
from handler.engine.health.target_health import MISSING, HealthLook, after_writing, judged, judged_absent, judged_live, renewed
from handler.model.health import Health, HealthState, Status
from handler.model.names import Identity
from handler.model.rollout import Mode
from handler.state.record import Ran, TargetHealth
from handler.state.record_format import stamp
from tests.unit.state.samples import blank, sha

NOW = 1_900_000_000.0
API = Identity("apps", "Deployment", "shop", "api")
WEB = Identity("", "Service", "shop", "web")
JOB = Identity("batch", "Job", "shop", "migrate")
WELL, MOVES = Health(Status.CURRENT), Health(Status.IN_PROGRESS, "1 of 2 replicas available")
FAILED, GONE = Health(Status.FAILED, "ProgressDeadlineExceeded"), Health(Status.NOT_FOUND, "is not there")
UNKNOWN = Health(Status.UNKNOWN, "takes too long to judge")
PATIENCE = 300.0
NONE = no_expressions()


def was(state: HealthState, ago: float = 60.0, *worst: str) -> TargetHealth:
    return TargetHealth(str(state), stamp(NOW - ago), stamp(NOW - ago), worst)


def after(before: TargetHealth, look: HealthLook, *, anew: bool = False) -> TargetHealth:
    return judged(before, look, NOW, PATIENCE, (), anew=anew)


@pytest.mark.parametrize(
    ("verdicts", "state"),
    [
        ({}, HealthState.HEALTHY),
        ({API: WELL}, HealthState.HEALTHY),
        ({API: WELL, WEB: MOVES}, HealthState.PROGRESSING),
        ({API: MOVES, WEB: UNKNOWN}, HealthState.UNKNOWN),
        ({API: UNKNOWN, WEB: GONE}, HealthState.DEGRADED),
        ({API: FAILED, WEB: MOVES}, HealthState.DEGRADED),
        ({API: Health(Status.TERMINATING)}, HealthState.PROGRESSING),
    ],
)
def test_the_worst_object_decides_the_health_state(verdicts: dict[Identity, Health], state: HealthState) -> None:
    found = after(TargetHealth(), HealthLook(verdicts))
    assert (found.state, found.since, found.judged) == (state, stamp(NOW), stamp(NOW))


def test_the_same_verdict_isnt_written_again_however_its_numbers_change() -> None:
    before = after(was(HealthState.HEALTHY), HealthLook({API: FAILED, WEB: MOVES}))
    assert after(before, HealthLook({API: FAILED, WEB: replace(MOVES, message="0 of 2 replicas available")})) is before
    other = judged(before, HealthLook({API: FAILED}), NOW + 9, PATIENCE, ())
    assert (other.state, other.since, other.worst) == (before.state, before.since, before.worst[:1])


def test_another_order_of_unhealthy_objects_isnt_written() -> None:
    before = after(was(HealthState.HEALTHY), HealthLook({API: MOVES, WEB: Health(Status.TERMINATING)}, stuck={API}))
    assert after(before, HealthLook({API: MOVES, WEB: Health(Status.TERMINATING)})) is before


def test_a_run_that_makes_again_what_was_missed_leaves_nothing_missing() -> None:
    namespace = Identity("", "Namespace", "", "shop")
    item = SimpleNamespace(identity=namespace, mode=Mode.APPLY)
    assert after_writing({namespace: GONE}, [item], {}, NOW).state() is HealthState.HEALTHY  # type: ignore[list-item] # all it asks for


def test_what_a_run_has_just_written_and_not_looked_at_is_not_known_to_be_healthy_where_its_controller_may_say_otherwise() -> None:
    release = Identity("helm.toolkit.fluxcd.io", "HelmRelease", "shop", "web")
    body = {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": {"name": "web", "namespace": "shop"}, "spec": {}}
    config = Identity("", "ConfigMap", "shop", "web")
    items = [
        SimpleNamespace(identity=release, mode=Mode.APPLY, manifest=SimpleNamespace(body=lambda: body)),
        SimpleNamespace(identity=config, mode=Mode.APPLY),
    ]
    look = after_writing({}, items, {}, NOW)  # type: ignore[arg-type] # all it asks for
    assert (look.state(), look.worst()) == (HealthState.PROGRESSING, [release])
    waited = after_writing({}, items, [(items[0], Health(Status.CURRENT))], NOW)  # type: ignore[arg-type,list-item] # all it asks for
    assert waited.state() is HealthState.HEALTHY


def test_health_is_degraded_once_progressing_longer_than_the_patience() -> None:
    moves = HealthLook({API: MOVES})
    assert after(was(HealthState.PROGRESSING, PATIENCE - 1), moves).state == HealthState.PROGRESSING
    assert after(was(HealthState.PROGRESSING, PATIENCE), moves).state == HealthState.DEGRADED
    assert after(was(HealthState.HEALTHY), moves).state == HealthState.PROGRESSING
    assert after(was(HealthState.HEALTHY), replace(moves, stuck={API})).state == HealthState.DEGRADED


def test_health_stays_degraded_until_all_is_healthy_or_another_commit_is_applied() -> None:
    assert after(was(HealthState.DEGRADED), HealthLook({API: MOVES})).state == HealthState.DEGRADED
    assert after(was(HealthState.DEGRADED), HealthLook({API: MOVES}), anew=True).state == HealthState.PROGRESSING
    assert after(was(HealthState.DEGRADED), HealthLook({API: WELL})).state == HealthState.HEALTHY


def test_a_recorded_reason_stays_where_a_look_knows_none() -> None:
    told = after(was(HealthState.HEALTHY), HealthLook({API: FAILED}, {API: "pod api-1: container main waits: CrashLoopBackOff"}))
    assert told.worst == ("Deployment/shop/api: ProgressDeadlineExceeded; pod api-1: container main waits: CrashLoopBackOff",)
    assert after(told, HealthLook({API: FAILED})) is told
    assert after(told, HealthLook({API: WELL})).worst == ()


def test_health_messages_are_masked_and_cut() -> None:
    found = judged(
        TargetHealth(),
        HealthLook({API: replace(FAILED, message="http://ann:pw4711@db " * 500)}),
        NOW,
        PATIENCE,
        (),
    )
    assert "pw4711" not in found.worst[0]
    assert len(found.worst[0]) <= 700


def test_nothing_that_a_cluster_says_of_an_object_that_holds_a_secret_is_recorded() -> None:
    look = HealthLook({API: replace(FAILED, message="refused swordfish")}, {API: "pod api-1: CrashLoopBackOff"})
    assert judged(TargetHealth(), look, NOW, PATIENCE, {API}).worst == ("Deployment/shop/api: failed; pod api-1: CrashLoopBackOff",)
    assert judged(TargetHealth(), HealthLook({API: MISSING}), NOW, PATIENCE, {API}).worst == ("Deployment/shop/api: is not there",)


def test_a_health_verdict_is_renewed_before_it_grows_old() -> None:
    before = was(HealthState.HEALTHY, 100.0)
    assert renewed(before, before, NOW, 60.0) is before
    assert renewed(before, before, NOW, 50.0) == replace(before, judged=stamp(NOW))


def test_hooks_what_others_have_and_jobs_that_remove_themselves_arent_missed() -> None:
    state = replace(blank(commit=sha()), declared=(API, WEB, JOB, Identity("", "ConfigMap", "shop", "a")), ran=(Ran(JOB),))
    assert judged_absent(state, NONE) == frozenset(), "a record of format 2 doesn't say what is apart"
    told = replace(state, health=TargetHealth("healthy", apart=(WEB,)))
    assert judged_live(told, NONE) == {API, JOB}
    assert judged_absent(told, NONE) == {API}


def test_each_applied_change_has_its_own_progress_patience() -> None:
    before = was(HealthState.PROGRESSING, PATIENCE - 1)
    assert after(before, HealthLook({API: MOVES}), anew=True).since == stamp(NOW)
    assert after(before, HealthLook({API: MOVES})).since == before.since


def test_an_unknown_health_state_is_unknown() -> None:
    assert HealthState("splendid") is HealthState.UNKNOWN
    assert after(TargetHealth("splendid", stamp(NOW)), HealthLook({API: WELL})).state == HealthState.HEALTHY


def test_a_reason_that_a_look_no_longer_finds_is_dropped() -> None:
    before = replace(was(HealthState.PROGRESSING, 1), worst=(f"{API}: moves; ImagePullBackOff",))
    moves = HealthLook({API: Health(Status.IN_PROGRESS, "moves")})
    assert after(before, moves).worst == before.worst, "a look that looks for none knows none"
    assert after(before, replace(moves, evidence={API: ""})).worst == (f"{API}: moves",)
