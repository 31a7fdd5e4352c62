"""What a merge makes of members: what of live is compared, what the server is asked, and which of its refusals is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import IgnoreRule, IgnoreSelect, RecreateSettings
from handler.engine.planner.expired_jobs import RecordedJobs, applied
from handler.engine.planner.preview import Preview
from handler.model.plan import Action
from handler.plan.visible_fields import UNSEEN
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.apply.planned_target import MAPS, TARGET, Body, PlannedTarget, answering, config_map
from tests.unit.engine.planner.previewed_target import Previewed

pytestmark = pytest.mark.slow

KEPT, LEFT = "kustomize.toolkit.fluxcd.io/ssa", "kustomize.toolkit.fluxcd.io/reconcile"
Shown = list[tuple[str, str, str]]


@pytest.fixture
def shown() -> Previewed:
    return Previewed()


def annotated(body: Body, **annotations: str) -> Body:
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def of(preview: Preview) -> tuple[Action, Shown]:
    (change,) = preview.plan.changes
    return change.action, [(each.path, each.live, each.declared) for each in change.fields]


def drifted(shown: Previewed, **data: str) -> None:
    """Let a person change what lives of the ConfigMap `a`."""
    shown.shop.patch("a", data=data)
    shown.shop.written.clear()


GUESSES: dict[str, tuple[Body, Callable[[str], Body], Shown]] = {
    "a key": (config_map("a"), lambda it: config_map("a", data={"key": "1", "new": it}), [("data.new", UNSEEN, "guess")]),
    "drift": (config_map("a"), lambda it: config_map("a", it), [("data.key", UNSEEN, "guess")]),
    "ignored": (
        annotated(config_map("a"), **{"anneal.dev/ignore": "/data/key"}),
        lambda it: config_map("a", it),
        [("metadata.annotations.anneal.dev/ignore", "/data/key", ""), ("data.key", UNSEEN, "guess")],
    ),
    "kept": (annotated(config_map("a"), **{KEPT: "IfNotPresent"}), lambda it: config_map("a", it), [("data", UNSEEN, '{"key": "guess"}')]),
    "left": (annotated(config_map("a"), **{LEFT: "disabled"}), lambda it: config_map("a", it), []),
}


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize("name", GUESSES)
def test_whether_a_guess_is_what_lives_shows_nowhere(shown: Previewed, name: str, judged: bool) -> None:
    before, changed, expected = GUESSES[name]
    shown.live(config_map("a") if name == "left" else before)
    shown.now = (before,)
    found = []
    for lives in ("guess", "other"):
        drifted(shown, **{"new" if name == "a key" else "key": lives})
        shown.asked.clear()
        preview = shown.preview(changed("guess"), judged=judged)
        assert preview.problems == ()
        found.append((of(preview), shown.bodies("POST"), shown.bodies("PATCH")[1:]))
    assert found[0] == found[1]
    (_, fields), _, asked = found[0]
    if name != "left":
        assert sorted(each for each in fields if each[0] != f"data.{UNSEEN}") == sorted(expected)
    assert "guess" not in str(asked), "nothing says whether the server would take it beside what lives"


def test_a_rule_of_the_target_leaves_a_field_to_others(shown: Previewed) -> None:
    """Before the merge and after it, so that nothing changes."""
    rule = IgnoreRule(IgnoreSelect(kind="ConfigMap"), ("/data/key",))
    shown = Previewed(PlannedTarget(replace(TARGET, ignore=(rule,))))
    shown.live(config_map("a"))
    drifted(shown, key="theirs")
    assert of(shown.preview(config_map("a", "2"))) == (Action.UNCHANGED, [])


def test_an_annotation_that_only_lives_leaves_a_field_to_others(shown: Previewed) -> None:
    """Git has dropped it, and that isn't deployed yet."""
    before = annotated(config_map("a"), **{"anneal.dev/ignore": "/data/key"})
    shown.live(before)
    shown.now = (config_map("a"),)
    action, fields = of(shown.preview(config_map("a", "2")))
    assert (action, ("data.key", UNSEEN, "2") in fields) == (Action.UPDATE, True)


def test_a_field_that_is_left_to_others_from_now_on_changes_no_more(shown: Previewed) -> None:
    shown.live(config_map("a"))
    drifted(shown, key="theirs")
    after = annotated(config_map("a", "2"), **{"anneal.dev/ignore": "/data/key"})
    assert of(shown.preview(after)) == (Action.UPDATE, [("metadata.annotations.anneal.dev/ignore", UNSEEN, "/data/key")])


@pytest.mark.parametrize("lives", ["1", "2"])
@pytest.mark.parametrize("judged", [False, True])
def test_a_member_that_git_declares_for_the_first_time_is_new(shown: Previewed, lives: str, judged: bool) -> None:
    shown.live(config_map("a", lives))
    shown.now = ()
    assert of(shown.preview(config_map("a"), judged=judged)) == (Action.CREATE, [])
    assert shown.sent == (["POST configmaps"] if judged else [])


@pytest.mark.parametrize("guessed", [False, True])
def test_what_git_leaves_alone_and_doesnt_live_is_not_made(shown: Previewed, guessed: bool) -> None:
    (change,) = shown.preview(annotated(config_map("a"), **{LEFT: "disabled"}), guessed=guessed).plan.changes
    assert (change.action, LEFT in change.reason) == (Action.SKIP, True)


def test_a_job_that_has_removed_itself_is_not_made_again(shown: Previewed) -> None:
    spec = {"ttlSecondsAfterFinished": 0, "template": {"spec": {"containers": []}}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "namespace": "shop"}, "spec": spec}
    assert of(shown.preview(job))[0] is Action.CREATE
    items = shown.shop.plan(job).desired
    (ran,) = applied(items.values())
    assert of(shown.preview(job, ran=RecordedJobs(frozenset({(ran.identity, ran.declared)}))))[0] is Action.UNCHANGED


# --- what is made anew
FROZEN = config_map("a", immutable=True)


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.parametrize(("kinds", "action"), [((), None), (("ConfigMap",), Action.RECREATE)])
@pytest.mark.parametrize("lives", [{}, {"new": "2"}, {"new": "3"}], ids=["not there", "right", "wrong"])
def test_immutable_data_is_judged_by_git_alone(judged: bool, kinds: tuple[str, ...], action: Action | None, lives: dict[str, str]) -> None:
    shown = Previewed(PlannedTarget(replace(TARGET, recreate=RecreateSettings(kinds))))
    before = {**FROZEN, "data": FROZEN["data"] | lives}
    if lives:
        shown.shop.server.must(Asked("POST", MAPS, {"fieldManager": "other"}, before, "", ""))
    shown.live(FROZEN)
    found = shown.preview({**FROZEN, "data": {"key": "1", "new": "2"}}, judged=judged)
    assert (shown.sent, found.plan.counts(done=False)) == ([], {"to recreate": 1} if action else {})
    assert [(each.message, "recreate" in each.fix) for each in found.problems] == (
        [] if action else [("an immutable field changed: data: field is immutable", True)]
    )
    assert not action or of(found) == (action, [("data.new", UNSEEN, "2")])


@pytest.mark.parametrize("allowed", [False, True])
def test_by_the_servers_words_an_object_is_made_anew_or_refused_with_the_way_out(shown: Previewed, allowed: bool) -> None:
    before = annotated(config_map("a"), **{"anneal.dev/recreate": "allow"}) if allowed else config_map("a")
    shown.live(before)
    shown.shop.meet = answering("PATCH", "a", 422, 'ConfigMap "a" is invalid: data.key: Invalid value: field is immutable')
    found = shown.preview({**before, "data": {"key": "2"}}, judged=True)
    if allowed:
        assert of(found) == (Action.RECREATE, [("data.key", "1", "2")])
    else:
        assert ["recreate.kinds" in each.fix or "anneal.dev/recreate" in each.fix for each in found.problems] == [True]


# --- which refusals are shown
def refusing(status: int, message: str, *names: str, causes: tuple[str, ...] = ()) -> Any:
    """Refuse dry-runs of a method and the last part of their paths."""

    def meet(call: Call, do: Callable[[], Reply]) -> Reply:
        if f"{call.asked.method} {call.asked.path.rpartition('/')[2]}" not in names:
            return do()
        details = {"causes": [{"field": field, "reason": "FieldValueInvalid", "message": "Invalid value"} for field in causes]}
        return (
            status,
            {"kind": "Status", "message": message, "code": status, "reason": "Invalid", "details": details},
            {},
        )

    return meet


@pytest.mark.parametrize(
    ("causes", "told"),
    [(("data.key",), True), (("data.new",), False), (("data.key", "data.other"), False), ((), True)],
    ids=["of a field that may be seen", "of one that is new", "of both", "of the body"],
)
def test_a_refusal_beside_what_lives_is_told_where_it_speaks_of_what_may_be_seen(
    shown: Previewed, causes: tuple[str, ...], told: bool
) -> None:
    shown.live(config_map("a"))
    shown.shop.meet = refusing(422, 'ConfigMap "a" is invalid: no', "PATCH a", causes=causes)
    found = shown.preview(config_map("a", data={"key": "2", "new": "3"}), judged=True)
    assert [each.subject for each in found.problems] == (["ConfigMap/shop/a"] if told else [])
    assert shown.bodies("PATCH") == [{"data": {"key": "2"}}]


def test_a_refusal_of_what_the_merge_leaves_as_it_is_is_told(shown: Previewed) -> None:
    shown.live(config_map("a"))
    drifted(shown, key="2")
    shown.shop.meet = refusing(422, 'ConfigMap "a" is invalid: no', "PATCH a", causes=("data.key",))
    assert [each.subject for each in shown.preview(config_map("a"), judged=True).problems] == ["ConfigMap/shop/a"]


@pytest.mark.parametrize(("status", "message"), [(422, "no"), (403, 'admission webhook "x" denied the request: no')])
def test_what_the_server_wouldnt_create_before_the_merge_either_isnt_judged_by_that(shown: Previewed, status: int, message: str) -> None:
    shown.live(config_map("a"))
    shown.shop.meet = refusing(status, message, "POST configmaps")
    assert of(shown.preview(config_map("a", "2"), judged=True)) == (Action.UPDATE, [("data.key", "1", "2")])


QUOTA = 'configmaps "a" is forbidden: exceeded quota: tight, requested: configmaps=1, used: configmaps=1, limited: configmaps=1'


def test_a_member_has_its_room_and_what_is_new_needs_some(shown: Previewed) -> None:
    shown.live(config_map("a"))
    shown.shop.meet = refusing(403, QUOTA, "POST configmaps")
    found = shown.preview(config_map("a", "2"), config_map("b"), judged=True)
    assert [each.subject for each in found.problems] == ["ConfigMap/shop/b"]
    shown.now = ()
    assert shown.preview(config_map("a", "2"), judged=True).problems == ()


def service(**spec: Any) -> Body:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "namespace": "shop"}, "spec": spec}


@pytest.mark.parametrize(
    ("spec", "sent"),
    [
        ({"clusterIP": "10.0.0.1", "ports": [{"port": 80, "nodePort": 30001}]}, {"ports": [{"port": 80}]}),
        ({"clusterIP": "None", "clusterIPs": ["None"]}, {"clusterIP": "None", "clusterIPs": ["None"]}),
        ("x", "x"),
        ({"ports": ["x"]}, {"ports": ["x"]}),
    ],
)
def test_what_is_allocated_to_a_member_is_not_asked_for_again(shown: Previewed, spec: Any, sent: Any) -> None:
    shown.live(service(ports=[{"port": 80}]))
    shown.preview({**service(), "spec": spec}, judged=True)
    assert shown.bodies("POST")[0] == {"spec": sent}


@pytest.mark.parametrize("before", [{"replicas": 2}, {"replicas": 2, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}])
def test_claims_that_git_lets_go_are_named_also_where_their_policy_is_new(shown: Previewed, before: Body) -> None:
    def stateful(**spec: Any) -> Body:
        spec |= {"volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"}, "spec": spec}

    shown.live(stateful(**before))
    found = shown.preview(stateful(replicas=1, persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"}))
    assert [str(gone.identity) for gone in found.plan.gone] == ["PersistentVolumeClaim/shop/data-db-1"]
