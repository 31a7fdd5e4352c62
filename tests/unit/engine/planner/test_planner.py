"""A plan knows every member, or there is none: where a recorded kind can't be listed, nothing is planned."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handler.model.errors import ClusterUnavailable, PlanRefused
from handler.model.names import GroupKind
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.unit.engine.apply.planned_target import MAPS, Body, PlannedTarget, config_map, ours

WIDGET = GroupKind("acme.io", "Widget")


def with_a_dead_api_service(call: Call, do: Callable[[], Reply]) -> Reply:
    status, body, more = do()
    if call.asked.path == "/apis":
        body["items"].append({"metadata": {"name": WIDGET.group}, "versions": [{"version": "v1", "freshness": "Stale"}]})
    return status, body, more


def test_a_recorded_kind_of_a_group_that_does_not_answer_ends_the_plan() -> None:
    shop = PlannedTarget(meet=with_a_dead_api_service)
    assert shop.plan(config_map("web")).plan.writes
    with pytest.raises(ClusterUnavailable, match=r"the API group acme.io doesn't answer, so its members can't be listed"):
        shop.plan(config_map("web"), recorded=[WIDGET])


def test_a_recorded_kind_that_is_served_no_more_has_no_members() -> None:
    assert PlannedTarget().plan(config_map("web"), recorded=[WIDGET]).plan.prunes == ()


def test_a_member_that_git_declares_as_another_kind_is_no_candidate() -> None:
    """An object that is served in two groups has one uid."""
    shop = PlannedTarget()
    shop.apply(shop.plan(config_map("web")))
    live = shop.live("web")
    assert live
    shop.post(
        "/api/v1/namespaces/shop/secrets", ours({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web", "namespace": "shop"}})
    )
    assert [change.identity.kind for change in shop.plan(config_map("web")).plan.prunes] == ["Secret"]

    def with_its_uid(call: Call, do: Callable[[], Reply]) -> Reply:
        status, body, more = do()
        for item in body.get("items", []) if call.asked.path.endswith("/secrets") else []:
            item["metadata"]["uid"] = live["metadata"]["uid"]
        return status, body, more

    shop.meet = with_its_uid
    assert shop.plan(config_map("web")).plan.prunes == ()


def test_an_owner_that_git_names_and_that_goes_with_what_goes_is_refused() -> None:
    """Through an object that isn't ours, which no LIST shows."""
    shop = PlannedTarget()
    above = shop.post(MAPS, ours(config_map("member")))
    between = config_map("by-hand")
    between["metadata"]["ownerReferences"] = [_reference(above)]
    made = shop.post(MAPS, between)
    declared = config_map("below")
    declared["metadata"]["ownerReferences"] = [_reference(made)]
    assert shop.plan(config_map("member"), declared).plan.gone == ()
    with pytest.raises(PlanRefused, match=r"ConfigMap/shop/below: names the owner ConfigMap by-hand .*, which goes by this plan"):
        shop.plan(declared)


def _reference(live: Body) -> Body:
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "name": live["metadata"]["name"], "uid": live["metadata"]["uid"]}
