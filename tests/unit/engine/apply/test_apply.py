"""An apply writes what the plan showed: an object that moved since is planned again, and deletes nothing that the plan kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.cluster import write
from handler.cluster.write import forgetting
from handler.engine.apply import apply
from handler.engine.planner.planner import Planned
from handler.model.errors import AccessDenied, ApiRefused, LeaseLost, Moved, NotReady, PlanRefused, PlanStale
from handler.model.names import IDENTITY
from handler.model.plan import Action
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.apply.planned_target import MAPS, TARGET, Lease, PlannedTarget, after, answering, before, both, config_map, outcomes

pytestmark = pytest.mark.slow

RECREATE = {"anneal.dev/recreate": "allow"}


def recreatable(value: str, **more: Any) -> dict[str, Any]:
    return config_map("web", value, metadata={"name": "web", "namespace": "shop", "annotations": RECREATE}, **more)


@pytest.fixture
def shop() -> PlannedTarget:
    """A target with one applied ConfigMap."""
    made = PlannedTarget()
    made.apply(made.plan(config_map("web")))
    made.written.clear()
    return made


def test_what_was_written_is_noted_with_its_uid_and_generation(shop: PlannedTarget) -> None:
    done = shop.apply(shop.plan(config_map("web", "2"), config_map("new")))
    live = [shop.live(name) for name in ("web", "new")]
    assert done.stored.uids == {body["metadata"]["uid"] for body in live if body}
    assert {identity.name for identity in done.written} == {"web", "new"}
    assert [shop.value(name) for name in ("web", "new")] == ["2", "1"]


def test_an_object_that_changed_since_the_plan_is_planned_again_and_written(shop: PlannedTarget) -> None:
    planned = shop.plan(config_map("web", "2"))
    shop.patch("web", data={"more": "theirs"})
    shop.apply(planned)
    live = shop.live("web")
    assert live
    assert live["data"] == {"key": "2", "more": "theirs"}


def test_an_object_that_is_gone_since_the_plan_is_created(shop: PlannedTarget) -> None:
    planned = shop.plan(config_map("web", "2"))
    shop.delete("web")
    done = shop.apply(planned)
    assert [each[0] for each in outcomes(done.outcomes)] == [Action.CREATE]
    assert shop.value("web") == "2"


def test_an_object_that_came_since_the_plan_is_judged_before_it_is_taken(shop: PlannedTarget) -> None:
    planned = shop.plan(config_map("web"), config_map("new", "2"))
    shop.post(
        MAPS, config_map("new", metadata={"name": "new", "namespace": "shop", "labels": {"kustomize.toolkit.fluxcd.io/name": "flux"}})
    )
    with pytest.raises(PlanRefused, match="belongs to Flux Kustomization flux"):
        shop.apply(planned)
    assert shop.value("new") == "1"


def test_what_another_wrote_just_so_is_spared_and_not_written(shop: PlannedTarget) -> None:
    planned = shop.plan(config_map("web", "2"))
    shop.patch("web", data={"key": "2"})
    done = shop.apply(planned)
    live = shop.live("web")
    assert live
    assert [each[0] for each in outcomes(done.outcomes)] == [Action.UNCHANGED]
    assert done.stored.uids == {live["metadata"]["uid"]}
    assert shop.written == []


def test_a_lost_lease_ends_the_run_also_where_nothing_is_left_to_write(shop: PlannedTarget) -> None:
    lease, planned = Lease(shop), shop.plan(config_map("web", "2"))
    shop.meet = before("PATCH", "web", both(lambda: shop.patch("web", data={"key": "2"}), lease.lose))
    with pytest.raises(LeaseLost):
        shop.apply(planned)


def test_an_object_that_moves_at_each_try_ends_the_run(shop: PlannedTarget) -> None:
    planned, values = shop.plan(config_map("web", "2")), iter("345678")
    shop.meet = before("PATCH", "web", lambda: shop.patch("web", data={"key": next(values)}), times=5)
    with pytest.raises(Moved):
        shop.apply(planned)
    assert (shop.value("web"), shop.written) == ("5", [])


@pytest.fixture
def frozen() -> tuple[PlannedTarget, Planned]:
    """A target, and a plan of an update; the object has become immutable since."""
    shop = PlannedTarget()
    shop.apply(shop.plan(recreatable("1")))
    planned = shop.plan(recreatable("2"))
    shop.patch("web", immutable=True)
    shop.written.clear()
    return shop, planned


def test_an_object_that_would_have_to_be_deleted_since_the_plan_is_left_to_the_next_run(frozen: tuple[PlannedTarget, Planned]) -> None:
    shop, planned = frozen
    with pytest.raises(Moved, match="would have to be deleted now"):
        shop.apply(planned)
    assert (shop.value("web"), shop.written) == ("1", [])


def test_put_deletes_nothing_either(frozen: tuple[PlannedTarget, Planned]) -> None:
    shop, planned = frozen
    with pytest.raises(Moved, match="would have to be deleted now"):
        shop.applier(planned).put(planned.plan.changes[0].identity)
    assert shop.value("web") == "1"


def test_what_the_plan_makes_anew_is_deleted_and_created() -> None:
    shop = PlannedTarget()
    shop.apply(shop.plan(recreatable("1", immutable=True)))
    first, planned = shop.live("web"), shop.plan(recreatable("2", immutable=True))
    shop.written.clear()
    done = shop.apply(planned)
    now = shop.live("web")
    assert first
    assert now
    assert now["metadata"]["uid"] != first["metadata"]["uid"]
    assert {identity.name for identity in done.removed} == {"web"}
    assert (shop.written, shop.propagations, now["data"]) == (["DELETE web", "PATCH web"], ["Background"], {"key": "2"})


@pytest.fixture
def taking(shop: PlannedTarget) -> PlannedTarget:
    """A target that takes over what was created by kubectl, with a field that git doesn't declare."""
    shop.post(MAPS, {**config_map("taken"), "data": {"key": "1", "undeclared": "1"}})
    return shop


def test_a_takeover_removes_what_the_plan_showed(taking: PlannedTarget) -> None:
    planned = taking.plan(config_map("web"), config_map("taken", "2"))
    taking.apply(planned)
    live = taking.live("taken")
    assert live
    assert live["data"] == {"key": "2"}
    assert live["metadata"]["annotations"][IDENTITY] == "shop:/ConfigMap:shop/taken"


def test_a_takeover_whose_apply_would_change_what_the_plan_did_not_show_is_not_sent(taking: PlannedTarget) -> None:
    planned = taking.plan(config_map("web"), config_map("taken", "2"))
    taking.meet = after("PATCH", "taken", lambda: taking.patch("taken", data={"more": "since"}))
    with pytest.raises(PlanStale, match=r"would apply data.more otherwise than the plan showed"):
        taking.apply(planned)
    live = taking.live("taken")
    assert live
    assert live["data"] == {"key": "1", "undeclared": "1", "more": "since"}


def test_a_takeover_that_would_empty_managed_fields_by_now_is_left_to_the_next_run(
    taking: PlannedTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned, before = taking.plan(config_map("taken", "2")), taking.live("taken")
    refusal = ApiRefused(forgetting("ConfigMap/shop/taken", ["v2"]), reason=ApiRefused.FORGOTTEN)

    def refuse(*_: object) -> None:
        raise refusal

    monkeypatch.setattr(write, "refuse_to_forget", refuse)
    with pytest.raises(PlanStale, match=r"would forget who wrote its fields, which are recorded in v2"):
        taking.apply(planned)
    assert taking.live("taken") == before


def test_what_persons_write_onto_a_takeover_since_the_plan_does_not_go_with_it(taking: PlannedTarget) -> None:
    planned = taking.plan(config_map("web"), config_map("taken", "2"))
    taking.patch("taken", data={"more": "since"})
    with pytest.raises(PlanStale, match=r"data.more would go, which the plan didn't show"):
        taking.apply(planned)
    live = taking.live("taken")
    assert live
    assert live["data"] == {"key": "1", "undeclared": "1", "more": "since"}


# --- what is noted
def test_what_was_written_is_noted_also_where_another_object_of_its_stage_is_refused(shop: PlannedTarget) -> None:
    planned = shop.plan(config_map("web", "2"), config_map("new"))
    noted: list[str] = []
    shop.meet = answering(
        "PATCH", "new", 403, 'configmaps "new" is forbidden: User "jo" cannot patch resource "configmaps" in API group ""'
    )
    made = shop.applier(planned)
    made.noted = lambda items: noted.extend(item.identity.name for item in items)
    with pytest.raises(AccessDenied):
        made.apply(planned.plan.stages[0])
    assert (noted, [each[:2] for each in outcomes(made.outcomes)]) == (["web"], [(Action.UPDATE, "web")])


# --- what must stand first
@pytest.mark.parametrize("phase", ["Active", "Terminating"])
def test_a_namespace_that_does_not_stand_ends_the_run(monkeypatch: pytest.MonkeyPatch, phase: str) -> None:
    monkeypatch.setattr(apply, "_READY_TIMEOUT", 0.0)
    shop = PlannedTarget(replace(TARGET, namespaces=("shop", "new")))

    def shown(call: Call, send: Callable[[], Reply]) -> Reply:
        status, body, more = send()
        for item in body.get("items", []) if call.asked.path == "/api/v1/namespaces" else []:
            item["status"] = {"phase": phase}
        return status, body, more

    shop.meet = shown
    planned = shop.plan({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
    if phase == "Active":
        done = shop.apply(planned)
        assert {identity.name for identity in done.written} == {"new"}
        assert done.settling == set(), "it is waited for once"
    else:
        with pytest.raises(NotReady, match="Namespace/new: does not stand"):
            shop.apply(planned)


# --- how it is deleted
def test_a_job_that_is_made_anew_goes_with_its_pods_first() -> None:
    shop = PlannedTarget()
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "namespace": "shop"}, "spec": {"template": {"a": "1"}}}
    shop.apply(shop.plan(job))
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    path = "/apis/batch/v1/namespaces/shop/jobs/once"
    shop.server.must(Asked("PATCH", path, {"fieldManager": "kubectl"}, {"status": done}, "application/merge-patch+json", ""))
    other = {**job, "spec": {"template": {"a": "2"}}}
    shop.meet = answering("PATCH", "once", 422, 'Job.batch "once" is invalid: spec.template: Invalid value: field is immutable')
    planned = shop.plan(other)
    shop.meet = straight
    assert [change.action for change in planned.plan.changes] == [Action.RECREATE]
    shop.apply(planned)
    assert shop.propagations == ["Foreground"]
