"""A StatefulSet that goes back: its controller never replaces a pod of the failed revision, so the run does, as its plan says."""

from __future__ import annotations

from handler.config.settings import Rollback, Wait
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map
from tests.e2e.one_target import told
from tests.e2e.test_rollback_pods import PATIENT, database, pod
from tests.patience import until


def test_without_rollback_the_stale_pod_is_named_with_its_command_and_stays(open_shop: Open) -> None:
    shop = open_shop(wait=Wait(timeout=5.0))
    shop.create_namespace()
    shop.push(database(shop, "db:2", "no-image"))
    assert shop.run().outcome is Outcome.FAILED
    uid = pod(shop)["metadata"]["uid"]
    shop.push(database(shop, "db:3"))
    result = shop.run()
    assert result.outcome is Outcome.FAILED, told(result)
    assert f"kubectl delete Pod/db-0 -n {shop.name}" in str(result.problems[0]), told(result)
    assert "another revision" in str(result.problems[0])
    assert pod(shop)["metadata"]["uid"] == uid
    shop.kubectl.run("delete", "pod", "db-0", "-n", shop.name)
    shop.configure(wait=PATIENT)
    shop.applied("tick")


def test_a_pod_below_the_partition_or_left_to_people_stays(open_shop: Open) -> None:
    shop = open_shop(wait=Wait(timeout=5.0), rollback=Rollback(on_failure=True))
    shop.create_namespace()
    uids = []
    for strategy, outcome in (({"rollingUpdate": {"partition": 1}}, Outcome.FAILED), ({"type": "OnDelete"}, Outcome.APPLIED)):
        shop.push(database(shop, "db:2", "no-image", updateStrategy=strategy), config_map(shop.name, "again"))
        assert shop.run().outcome is Outcome.FAILED
        until(lambda: "startTime" in pod(shop)["status"])
        uids.append(pod(shop)["metadata"]["uid"])
        shop.push(database(shop, "db:3", updateStrategy=strategy))
        shop.configure(wait=PATIENT if outcome is Outcome.APPLIED else Wait(timeout=5.0))
        result = shop.run()
        assert result.outcome is outcome, "of what people replace the old pod is no failure of the new revision"
        assert result.plan is None or not result.plan.gone
        uids.append(pod(shop)["metadata"]["uid"])
    assert len(set(uids)) == 1
