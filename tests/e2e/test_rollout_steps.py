"""The steps of a Rollout on a real cluster: every action, in their order, over kinds that come with it and pods that are waited for."""

from __future__ import annotations

import pytest

from handler.config.settings import Wait
from handler.model.result import Outcome
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, definition, deployment, offer
from tests.e2e.killed_runs import Wire
from tests.e2e.one_target import DONE, Shop, told
from tests.e2e.rollouts import assert_carried_out, everything, group, opened, outcomes, planted, step, written
from tests.patience import PATIENCE


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    """Here every shop has a Rollout."""
    return opened(open_shop, 15.0)


def test_every_action_is_carried_out_in_the_order_of_groups(shop: Shop, wired: Wire) -> None:
    uids = planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    wire = wired()
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert result.outcome is Outcome.APPLIED, told(result)
    assert_carried_out(shop, uids, "2")
    names = written(wire.seen)
    assert names[:4] == [("PATCH", "free"), ("DELETE", "old"), ("DELETE", "migration"), ("PATCH", "migration")]
    assert sorted(names[4:-1]) == [("PATCH", "fresh"), ("PATCH", "settings"), ("PATCH", "web")]
    assert names[-1] == ("PATCH", "last")


def test_objects_of_a_new_kind_may_come_at_once_when_the_step_of_their_definition_is_done(shop: Shop) -> None:
    """Without dry-runs, whose tries would hide one that came too early."""
    shop.configure(validate="none")
    kind = definition(shop.group)
    offers = [offer(shop.group, shop.name, f"o{number}") for number in range(4)]
    groups = [
        group("kinds", step("CreateOrUpdate", kind)),
        group("objects", *(step("CreateOrUpdate", each) for each in offers), parallel=True),
    ]
    rollouts.push(shop, [kind, *offers], *groups)
    assert shop.run().outcome in DONE
    assert set(outcomes(shop).values()) == {"done"}
    assert all(shop.live(each) for each in offers)


def test_a_deployment_whose_target_waits_is_waited_for_by_its_step(shop: Shop) -> None:
    shop.configure(wait=Wait(timeout=PATIENCE))
    web, after = deployment(shop.name, "web", replicas=1), config_map(shop.name, "after")
    rollouts.push(shop, [web, after], group("one", step("CreateOrUpdate", web), step("CreateOrUpdate", after)))
    shop.applied()
    live = shop.live(web)
    assert live
    assert live["status"]["readyReplicas"] == 1
    assert outcomes(shop) == {"web": "done", "after": "done"}
