"""Hooks are taken out of what is declared, put in order by phase and wave, and refused where they can't be."""

from __future__ import annotations

from typing import Any

import pytest

from handler.engine.planner.hook_dry_run import replaces
from handler.model.errors import PlanRefused
from handler.model.names import Identity
from handler.model.rollout import Mode, Phase
from handler.plan.admission import Desired
from handler.plan.hooks import PlannedHooks, resting, separate
from handler.plan.order import DEPENDS_ON, SYNC_WAVE, order
from tests.unit.plan.samples import desired, document

HOOK, POLICY = "argocd.argoproj.io/hook", "argocd.argoproj.io/hook-delete-policy"
SCOPED = ("Namespace", "CustomResourceDefinition")


def job(name: str, phases: str, wave: str = "0", **annotations: str) -> dict[str, Any]:
    return document("Job", name, "batch/v1", metadata={"annotations": {HOOK: phases, SYNC_WAVE: wave, **annotations}})


def separated(*bodies: dict[str, Any]) -> tuple[tuple[Desired, ...], PlannedHooks]:
    return separate(desired(*bodies, cluster_scoped=SCOPED))


def waves(planned_hooks: PlannedHooks, phase: Phase) -> list[list[str]]:
    return [[one.name for one in wave] for wave in planned_hooks.waves.get(phase, ())]


def test_hooks_of_sync_stay_among_the_stages_and_the_others_leave() -> None:
    rest, planned_hooks = separated(
        document(), job("pre", "PreSync"), job("both", "Sync,PostSync"), job("skip", "Skip"), job("fail", "SyncFail")
    )
    assert {item.identity.name: item.mode for item in rest} == {"web": Mode.APPLY, "both": Mode.HOOK}
    assert {item.identity.name for item in planned_hooks.items.values()} == {"pre", "both", "skip", "fail"}
    assert all(item.mode is Mode.HOOK for item in planned_hooks.items.values())
    assert waves(planned_hooks, Phase.PRE_SYNC) == [["pre"]]
    assert waves(planned_hooks, Phase.POST_SYNC) == [["both"]]
    assert waves(planned_hooks, Phase.SYNC_FAIL) == [["fail"]]


def test_hooks_that_had_their_time_are_declared_and_never_run() -> None:
    _, planned = separated(job("again", "PreSync"))
    found = resting(planned, desired(document("Secret", "made")))
    assert {item.identity.name: item.mode for item in found.items.values()} == {"again": Mode.HOOK, "made": Mode.HOOK}
    assert [due.identity.name for due in found.due()] == ["again"]
    assert waves(found, Phase.PRE_SYNC) == [["again"]]


def test_hooks_of_a_phase_go_in_waves_and_by_what_they_depend_on() -> None:
    needing = job("last", "PreSync", **{DEPENDS_ON: "batch/namespaces/shop/Job/m"})
    _, planned_hooks = separated(job("b", "PreSync", "2"), needing, job("m", "PreSync"), job("a", "PreSync", "-3"))
    assert waves(planned_hooks, Phase.PRE_SYNC) == [["a"], ["m"], ["last"], ["b"]]


def test_what_a_hook_depends_on_may_be_declared_elsewhere_or_nowhere() -> None:
    (item,) = desired(job("pre", "PreSync", **{DEPENDS_ON: "/namespaces/shop/ConfigMap/else"}))
    elsewhere = Identity("", "ConfigMap", "shop", "else")
    (after,) = desired(job("post", "PostSync", **{DEPENDS_ON: "/namespaces/shop/ConfigMap/else"}))
    assert separate([after], [elsewhere])[1].notes == ()
    (later,) = separate([item], [elsewhere])[1].notes
    assert later.endswith("names ConfigMap/shop/else, whose step in the Rollout comes later; it isn't waited for")
    told = f"Job/shop/pre: {DEPENDS_ON} names ConfigMap/shop/else, which isn't declared here; it isn't waited for"
    assert separate([item])[1].notes == (told,)


def test_due_hooks_are_listed_in_order_but_for_those_done() -> None:
    _, planned_hooks = separated(
        job("fail", "SyncFail"), job("all", "PreSync,Sync,PostSync", "1"), job("pre", "PreSync"), job("never", "Skip")
    )
    told = [(due.group, due.identity.name, due.action) for due in planned_hooks.due()]
    assert told == [
        ("PreSync", "pre", "run"),
        ("PreSync", "all", "run"),
        ("Sync", "all", "run"),
        ("PostSync", "all", "run"),
        ("SyncFail", "fail", "run"),
    ]
    left = planned_hooks.due({("PreSync", "Job/shop/pre"), ("Sync", "Job/shop/all")})
    assert [(due.group, due.identity.name) for due in left] == [("PreSync", "all"), ("PostSync", "all"), ("SyncFail", "fail")]


def test_only_hooks_that_run_make_a_rollout() -> None:
    assert separated(job("pre", "PreSync"))[1].runs
    assert not separated(document(), job("skip", "Skip"), job("gone", "PostDelete"))[1].runs
    assert separated(job("gone", "PostDelete"))[1].notes == ("Job/shop/gone: hook PostDelete is never run by a rollout",)


def test_the_namespace_of_an_early_hook_comes_before_everything() -> None:
    rest, planned_hooks = separated(document("Namespace", "shop"), document(), job("pre", "PreSync"))
    assert [one.name for one in planned_hooks.first] == ["shop"]
    staged = order(rest, "", planned_hooks.first, planned_hooks.items).stages
    assert [[item.identity.name for item in stage] for stage in staged] == [["shop"], ["web"]]
    assert not separated(document("Namespace", "shop"), job("post", "PostSync"))[1].first


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        (
            job("pre", "PreSync", **{DEPENDS_ON: "/namespaces/shop/ConfigMap/web"}),
            document(),
            "Job/shop/pre (PreSync) -> ConfigMap/shop/web (Sync)",
        ),
        (
            document(metadata={"annotations": {DEPENDS_ON: "batch/namespaces/shop/Job/post"}}),
            job("post", "PostSync"),
            "ConfigMap/shop/web (Sync) -> Job/shop/post (PostSync)",
        ),
    ],
)
def test_what_depends_on_a_later_phase_is_refused_naming_the_path(one: dict[str, Any], other: dict[str, Any], path: str) -> None:
    with pytest.raises(PlanRefused) as caught:
        separated(one, other)
    assert f"waits for itself: {path}, which comes later" in str(caught.value)
    separated(job("post", "PostSync", **{DEPENDS_ON: "/namespaces/shop/ConfigMap/web"}), document())


@pytest.mark.slow
def test_more_hooks_than_the_record_has_lines_for_are_refused() -> None:
    _, planned_hooks = separated(*(job(f"j{number}", "PreSync") for number in range(1000)), job("skip", "Skip"))
    assert len(planned_hooks.due()) == 1000
    with pytest.raises(PlanRefused, match="hooks: would run 1,002 times in one rollout; at most 1,000 are recorded; split the target"):
        separated(*(job(f"j{number}", "PreSync,PostSync") for number in range(501)))


def test_a_cycle_among_hooks_is_refused_naming_the_path() -> None:
    first = job("a", "PreSync", **{DEPENDS_ON: "batch/namespaces/shop/Job/b"})
    with pytest.raises(PlanRefused, match="waits for itself: Job/shop/a -> Job/shop/b -> Job/shop/a"):
        separated(first, job("b", "PreSync", "1"))


@pytest.mark.parametrize("depends", ["shop/web", "a/b/c/d"])
def test_a_depends_on_that_cannot_be_read_closes_no_cycle_and_is_refused_where_it_is_put_in_order(depends: str) -> None:
    plain = document(metadata={"annotations": {DEPENDS_ON: depends}})
    rest, planned_hooks = separated(plain, job("pre", "PreSync"))
    assert (len(rest), planned_hooks.runs) == (1, True)
    for refuse in (lambda: order(rest), lambda: separated(job("pre", "PreSync", **{DEPENDS_ON: depends}))):
        with pytest.raises(PlanRefused, match=f"{DEPENDS_ON}: "):
            refuse()


def test_every_mistake_of_every_hook_is_told_at_once() -> None:
    with pytest.raises(PlanRefused) as caught:
        separated(job("a", "PreSnyc"), job("b", "PreSync", "first"), document())
    assert len(caught.value.problems) == 2
    assert str(caught.value).startswith("0.yaml:1: Job/shop/a: ")


def test_a_finished_job_is_in_the_way_whatever_its_policy_and_data_never_is() -> None:
    claim = document("PersistentVolumeClaim", "data", metadata={"annotations": {HOOK: "PreSync"}})
    account = document("ServiceAccount", "runner", metadata={"annotations": {HOOK: "PreSync", POLICY: "HookSucceeded"}})
    _, planned_hooks = separated(
        job("migrate", "PreSync", **{POLICY: "HookSucceeded"}), claim, account, document("Secret", metadata=account["metadata"])
    )
    assert {one.kind: replaces(hook) for one, hook in planned_hooks.hooks.items()} == {
        "Job": True,
        "PersistentVolumeClaim": False,
        "ServiceAccount": False,
        "Secret": False,
    }
