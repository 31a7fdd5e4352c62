"""The plan of what a pull request would bring, on a cluster in memory: what is made, changed and deleted, and what isn't even looked at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.config.settings import Prune
from handler.engine.planner.preview import Preview, without_handed_over
from handler.model.errors import PlanRefused
from handler.model.names import PART_OF, Identity
from handler.model.plan import Action, Change, Plan
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.unit.engine.apply.planned_target import MAPS, TARGET, Body, PlannedTarget, answering, config_map, ours, outcomes
from tests.unit.engine.planner.previewed_target import Previewed

pytestmark = pytest.mark.slow

SECRETS = "/api/v1/namespaces/shop/secrets"


def named(name: str, kind: str = "ConfigMap", namespace: str = "shop") -> Identity:
    return Identity("", kind, namespace, name)


def secret(name: str, value: str) -> Body:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"}, "stringData": {"key": value}}


@pytest.fixture
def shown() -> Previewed:
    return Previewed()


def actions(preview: Preview) -> dict[str, Action]:
    return {change.identity.name: change.action for change in preview.plan.changes}


def fields(preview: Preview, name: str) -> list[tuple[str, str, str]]:
    (change,) = (change for change in preview.plan.changes if change.identity.name == name)
    return [(each.path, each.live, each.declared) for each in change.fields]


def test_what_is_declared_is_made_or_changed_and_the_rest_goes(shown: Previewed) -> None:
    shown.live(config_map("same"), config_map("other"), config_map("gone"))
    found = shown.preview(config_map("same"), config_map("other", "2"), config_map("new"))
    assert actions(found) == {"same": Action.UNCHANGED, "other": Action.UPDATE, "new": Action.CREATE, "gone": Action.PRUNE}
    assert fields(found, "other") == [("data.key", "1", "2")]
    assert outcomes(found.plan.prunes) == [(Action.PRUNE, "gone", "no longer declared")]
    assert (found.problems, found.judged, found.apart) == ((), False, 0)
    assert (found.plan.live_members, found.plan.commit) == (3, "c" * 40)


@pytest.mark.parametrize("judged", [False, True])
def test_a_strangers_object_under_a_declared_name_is_made_as_if_it_were_not_there(shown: Previewed, judged: bool) -> None:
    shown.shop.post(MAPS, config_map("theirs", "canary"))
    found = shown.preview(config_map("theirs"), judged=judged)
    (change,) = found.plan.changes
    assert (change.action, change.uid, change.resource_version, change.fields, found.problems) == (Action.CREATE, "", "", (), ())
    assert shown.sent == (["POST configmaps"] if judged else [])
    assert "canary" not in str(found)


def test_nothing_is_asked_but_lists_of_the_targets_own_members(shown: Previewed) -> None:
    shown.live(config_map("a"), secret("s", "1"))
    shown.preview(config_map("a", "2"), config_map("b"), secret("s", "2"))
    looks = [each.asked for each in shown.asked if "/namespaces" in each.asked.path or each.asked.path.startswith("/api/v1/")]
    assert {asked.method for asked in looks} == {"GET"}
    assert all(PART_OF in asked.query.get("labelSelector", "") for asked in looks), [asked.path for asked in looks]
    assert not any(asked.path.startswith(("/api/v1/namespaces/shop/configmaps/", SECRETS + "/")) for asked in looks)


def test_a_server_judges_what_is_new_and_what_changes_by_dry_runs(shown: Previewed) -> None:
    shown.live(config_map("same"), config_map("other"))
    found = shown.preview(config_map("same"), config_map("other", "2"), config_map("new"), judged=True)
    assert shown.sent == ["PATCH other", "POST configmaps", "POST configmaps"], "by itself, too"
    assert (found.judged, found.apart, actions(found)["other"], fields(found, "other")) == (
        True,
        0,
        Action.UPDATE,
        [("data.key", "1", "2")],
    )


def test_what_the_server_refuses_is_a_problem_with_its_place(shown: Previewed) -> None:
    shown.live(config_map("a"))
    found = shown.preview(config_map("c"), config_map("a", dota={}), judged=True)
    (problem,) = found.problems
    assert (problem.subject, problem.place, "dota" in problem.message) == ("ConfigMap/shop/a", "1.yaml:1", True)
    assert (actions(found), found.apart) == ({"c": Action.CREATE}, 0)


POLICY = 'admission webhook "x" denied the request: no'


@pytest.mark.parametrize(
    ("status", "message", "apart", "problems"),
    [
        (403, 'configmaps "a" is forbidden: User "planner" cannot patch resource "configmaps" in API group ""', 2, []),
        (400, 'admission webhook "x" does not support dry run', 2, []),
        (403, POLICY, 0, ["ConfigMap/shop/a", "ConfigMap/shop/b"]),
        (422, "data.key: Invalid value", 0, ["ConfigMap/shop/a", "ConfigMap/shop/b"]),
    ],
    ids=["no right", "no dry run", "a webhook", "invalid"],
)
def test_what_no_right_or_webhook_lets_the_server_judge_is_planned_apart(
    shown: Previewed, status: int, message: str, apart: int, problems: list[str]
) -> None:
    shown.live(config_map("a"))
    patching, posting = answering("PATCH", "a", status, message), answering("POST", "configmaps", status, message)
    shown.shop.meet = lambda call, do: patching(call, lambda: posting(call, do))
    found = shown.preview(config_map("a", "2"), config_map("b"), judged=True)
    assert (found.apart, [each.subject for each in found.problems]) == (apart, problems)
    assert [each.place for each in found.problems] == [f"{number}.yaml:1" for number in range(len(problems))]
    assert {(each.message, each.fix) for each in found.problems} <= {("the server refuses it", f"anneal plan shop --commit {'c' * 40}")}
    assert actions(found) == ({} if problems else {"a": Action.UPDATE, "b": Action.CREATE})


def test_what_comes_with_its_namespace_is_made_though_the_server_does_not_know_where(shown: Previewed) -> None:
    shown.shop.meet = answering("POST", "configmaps", 404, 'namespaces "shop" not found')
    found = shown.preview(config_map("a"), judged=True)
    assert (actions(found), found.problems, found.apart) == ({"a": Action.CREATE}, (), 0)


@pytest.mark.parametrize("judged", [False, True])
def test_a_secret_that_lives_is_unchanged_whatever_it_holds(shown: Previewed, judged: bool) -> None:
    shown.live(secret("s", "1"), config_map("a"))
    changed = secret("s", "2")
    changed["metadata"]["labels"] = {"app": "shop"}
    found = shown.preview(changed, secret("new", "3"), config_map("a"), judged=judged)
    assert actions(found) == {"s": Action.UNCHANGED, "new": Action.CREATE, "a": Action.UNCHANGED}
    assert (fields(found, "s"), shown.sent) == ([], [])
    assert found.apart == (2 if judged else 0), "neither was judged"
    (change,) = (change for change in found.plan.changes if change.identity.name == "s")
    assert (change.uid, change.resource_version) == ("", "")


def test_objects_whose_names_no_git_says_are_left_out_with_what_may_be_theirs(shown: Previewed) -> None:
    """A member of their kind and namespace that git doesn't declare may be one of them, under its real name."""
    shown.live(config_map("web-canary"), config_map("was-declared"), secret("old", "1"))
    placed = config_map("web-placeholder")
    found = shown.preview(
        placed, config_map("new"), judged=True, unnamed=frozenset({named("web-placeholder")}), declared=[named("was-declared")]
    )
    assert actions(found) == {"new": Action.CREATE, "was-declared": Action.PRUNE, "old": Action.PRUNE}
    assert shown.sent == ["POST configmaps"], "the server isn't asked by a placeholder's name"


@pytest.mark.parametrize(
    ("guessed", "declared", "gone"),
    [
        (False, [], ["a", "b", "s"]),
        (True, [], []),
        (True, [named("a")], ["a"]),
        (True, [named("a"), named("s", "Secret"), named("new")], ["a", "s"]),
    ],
)
def test_where_values_may_decide_what_is_declared_only_what_git_declares_now_is_deleted(
    shown: Previewed, guessed: bool, declared: list[Identity], gone: list[str]
) -> None:
    shown.live(config_map("a"), config_map("b"), secret("s", "1"))
    found = shown.preview(config_map("new"), guessed=guessed, declared=declared)
    assert sorted(change.identity.name for change in found.plan.prunes) == gone
    assert found.plan.live_members == 3


def test_without_prune_what_is_not_declared_stays(shown: Previewed) -> None:
    shown.live(config_map("a"), config_map("b"))
    found = shown.preview(config_map("a"), prune=False)
    assert (outcomes(found.plan.prunes), found.plan.hold) == ([(Action.SKIP, "b", "prune is off")], None)


def test_deletions_come_before_what_says_that_it_stays(shown: Previewed) -> None:
    kept = config_map("a-kept")
    kept["metadata"]["annotations"] = {"anneal.dev/prune": "disabled"}
    shown.live(config_map("web"), kept, config_map("b"))
    found = shown.preview(config_map("web"))
    assert [(change.action, change.identity.name) for change in found.plan.prunes] == [(Action.PRUNE, "b"), (Action.SKIP, "a-kept")]


def test_what_an_annotation_leaves_alone_is_skipped_as_it_lives(shown: Previewed) -> None:
    body = config_map("a", "2")
    shown.live(config_map("a"))
    shown.shop.patch("a", metadata={"annotations": {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}})
    shown.shop.written.clear()
    (change,) = shown.preview(body, judged=True).plan.changes
    assert (change.action, change.fields, shown.sent) == (Action.SKIP, (), [])
    assert change.reason.endswith("set live")


def test_a_plan_that_would_wait_for_a_person_says_so(shown: Previewed) -> None:
    shown.live(config_map("a"), config_map("b"))
    found = shown.preview()
    assert found.plan.hold
    assert found.plan.hold.reasons == ("all 2 live objects would be deleted, none of them is declared any more",)


def hooked(name: str) -> Body:
    body = config_map(name)
    body["metadata"]["annotations"] = {"argocd.argoproj.io/hook": "PostSync", "argocd.argoproj.io/hook-delete-policy": "HookSucceeded"}
    return body


def test_members_that_become_hooks_are_deletions(shown: Previewed) -> None:
    shown.live(config_map("one"), config_map("two"))
    found = shown.preview(hooked("one"), hooked("two"), hooked("fresh"))
    assert [(gone.identity.name, gone.counted) for gone in found.plan.gone] == [("one", True), ("two", True)]
    assert found.plan.hold
    assert found.plan.hold.reasons == ("all 2 live objects would be deleted",)
    shown.shop.target = replace(shown.shop.target, prune=Prune(enabled=False))
    shown.shop.planner.target = shown.shop.target
    (problem,) = shown.preview(hooked("one"), config_map("two")).problems
    assert (problem.subject, problem.place) == ("ConfigMap/shop/one", "0.yaml:1")


def test_where_values_decide_what_lives_a_hook_tells_no_name_that_git_doesnt_declare(shown: Previewed) -> None:
    shown.live(config_map("one"), config_map("two"))
    found = shown.preview(hooked("one"), hooked("two"), guessed=True, declared=[named("one")])
    assert [gone.identity.name for gone in found.plan.gone] == ["one"]


def test_a_merge_that_declares_nothing_is_refused_as_its_run_would_be() -> None:
    shown = Previewed(PlannedTarget(replace(TARGET, prune=Prune())))
    shown.live(config_map("a"))
    with pytest.raises(PlanRefused, match=r"the render declares no object \(1 live member would go\)"):
        shown.preview()


def test_a_verdict_of_a_run_is_known_and_none_is_left_behind(shown: Previewed) -> None:
    shown.live(config_map("a"))
    shown.shop.plan(config_map("a"))
    before = dict(shown.shop.planner.verdicts)
    shown.preview(config_map("a"), config_map("b"), judged=True)
    assert shown.shop.planner.verdicts == before


def test_what_another_target_declares_from_now_on_is_left_to_it() -> None:
    gone = [Change(Action.PRUNE, named(name), f"u-{name}", reason="no longer declared") for name in "ab"]
    kept = Change(Action.SKIP, named("c"), "u-c", reason="prune is off")
    made = Change(Action.CREATE, named("d"))
    preview = Preview(Plan("shop", "c" * 40, ((made,),), (*gone, kept)), judged=True, apart=3)
    found = without_handed_over(preview, {named("a"): "web", named("c"): "web", named("d"): "web", named("b", "Secret"): "web"}, Prune())
    assert [(change.action, change.reason, change.sibling) for change in found.plan.prunes] == [
        (Action.SKIP, "target web declares it", "web"),
        (Action.PRUNE, "no longer declared", ""),
        (Action.SKIP, "prune is off", ""),
    ]
    assert (found.plan.stages, found.judged, found.apart) == (((made,),), True, 3)
    assert [change.is_left for change in found.plan.prunes] == [True, False, False]
    assert without_handed_over(preview, {}, Prune()) == preview


def test_what_another_target_takes_over_holds_nothing_up(shown: Previewed) -> None:
    shown.live(*(config_map(name) for name in "abc"))
    found = shown.preview(config_map("d"), config_map("e"))
    assert found.plan.hold is not None
    left = without_handed_over(found, {named(name): "web" for name in "abc"}, TARGET.prune)
    assert (actions(left)["a"], left.plan.hold) == (Action.SKIP, None)
    assert without_handed_over(found, {named("a"): "web"}, TARGET.prune).plan.hold is not None


def test_an_object_of_another_renderer_waits_for_approval(shown: Previewed) -> None:
    shown.live(config_map("a"))
    guarded = {("render", "renderer kustomize", ""): "kustomize makes its objects from now on"}
    hold = shown.preview(config_map("a"), guarded=guarded).plan.hold
    assert hold is not None
    assert hold.reasons == ("kustomize makes its objects from now on",)


def test_a_member_that_git_declares_as_another_kind_stays(shown: Previewed) -> None:
    """An object that is served in two groups has one uid."""
    shown.live(config_map("web"))
    live = shown.shop.live("web")
    assert live
    shown.shop.post(SECRETS, ours(secret("web", "1")))
    assert [change.identity.kind for change in shown.preview(config_map("web")).plan.prunes] == ["Secret"]

    def with_its_uid(call: Call, do: Callable[[], Reply]) -> Reply:
        status, body, more = do()
        for item in body.get("items", []) if call.asked.path.endswith("/secrets") else []:
            item["metadata"]["uid"] = live["metadata"]["uid"]
        return status, body, more

    shown.shop.meet = with_its_uid
    assert shown.preview(config_map("web")).plan.prunes == ()


def test_an_object_that_only_carries_our_label_is_no_member(shown: Previewed) -> None:
    copied = ours(config_map("copy"))
    copied["metadata"]["annotations"] = {}
    shown.shop.post(MAPS, copied)
    found = shown.preview(config_map("a"))
    assert (actions(found), found.plan.live_members) == ({"a": Action.CREATE}, 0)


def test_claims_that_a_smaller_statefulset_loses_are_named_by_their_names_and_wait(shown: Previewed) -> None:
    def stateful(replicas: int) -> Body:
        spec: Body = {"replicas": replicas, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}
        spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}}]
        return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"}, "spec": spec}

    shown.live(stateful(2))
    found = shown.preview(stateful(1))
    assert [str(gone.identity) for gone in found.plan.gone] == ["PersistentVolumeClaim/shop/data-db-1"]
    assert found.plan.hold
    assert not any("persistentvolumeclaims" in each.asked.path for each in shown.asked), "no look beyond members"


@pytest.mark.parametrize("guessed", [False, True])
def test_an_owner_that_isnt_there_is_refused_as_by_a_run(shown: Previewed, guessed: bool) -> None:
    shown.live(config_map("owner"))
    uid = (shown.shop.live("owner") or {})["metadata"]["uid"]

    def owned(name: str, uid: str) -> Body:
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}
        return config_map(name) | {"metadata": {"name": name, "namespace": "shop", "ownerReferences": [reference]}}

    found = shown.preview(config_map("owner"), owned("good", uid), owned("bad", "another"), guessed=guessed)
    assert [each.subject for each in found.problems] == ([] if guessed else ["ConfigMap/shop/bad"]), "a uid may be a placeholder"
    assert all(
        "names the owner ConfigMap owner (uid another), which isn't there in namespace shop" in each.message for each in found.problems
    )
