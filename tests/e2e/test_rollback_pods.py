"""A StatefulSet that goes back: its controller never replaces a pod of the failed revision, so the run does, as its plan says."""

from __future__ import annotations

from handler.config.settings import Impersonate, Rollback, Wait
from handler.model.errors import RolloutFailed
from handler.model.plan import Cause
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, stateful_set
from tests.e2e.one_target import Shop, told
from tests.e2e.rbac_rights import DEPLOYER, allow
from tests.e2e.workload_status import fated
from tests.patience import PATIENCE

FAILS, PATIENT = Wait(timeout=30.0), Wait(timeout=PATIENCE)
"""The bad revision never gets ready; the good ones have as long, too: a pod is ready within a second, on a machine that stalls later."""
BACK = {"wait": FAILS, "rollback": Rollback(on_failure=True)}


def database(shop: Shop, image: str, fate: str = "", **spec: object) -> Document:
    made = stateful_set(shop.name, "db")
    made["spec"] |= {"replicas": 1} | spec
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return fated(made, fate) if fate else made


def pod(shop: Shop) -> Document:
    found: Document = shop.kubectl("get", "pod", "db-0", "-n", shop.name)
    return found


def test_a_stateful_set_goes_back_and_the_next_good_commit_is_judged_by_its_own_pods(open_shop: Open) -> None:
    shop = open_shop(**BACK)
    shop.create_namespace()
    old = shop.push(database(shop, "db:1"))
    shop.applied()
    shop.push(database(shop, "db:2", "no-image"))
    result = shop.run()
    assert (result.outcome, result.commit) == (Outcome.ROLLED_BACK, old), told(result)
    assert result.plan
    named = [(str(gone.identity), gone.cause, gone.counted) for gone in result.plan.gone]
    assert named == [(f"Pod/{shop.name}/db-0", Cause.STUCK, False)]
    assert [note for note in result.plan.notes if f"Pod/{shop.name}/db-0 was deleted" in note]
    assert pod(shop)["spec"]["containers"][0]["image"] == "db:1"
    new = shop.push(database(shop, "db:3"))
    assert shop.applied().commit == new
    assert shop.state().pin is None
    assert pod(shop)["spec"]["containers"][0]["image"] == "db:3"


def test_a_pod_that_is_protected_or_that_may_not_be_deleted_stays_and_is_named(open_shop: Open) -> None:
    shop = open_shop(wait=Wait(timeout=5.0), rollback=Rollback(on_failure=True))
    shop.create_namespace()
    shop.push(database(shop, "db:2", "no-image"))
    assert shop.run().outcome is Outcome.FAILED
    uid, way_out = pod(shop)["metadata"]["uid"], f"kubectl delete Pod/db-0 -n {shop.name}"
    shop.kubectl.run("annotate", "pod", "db-0", "-n", shop.name, "helm.sh/resource-policy=keep")
    shop.push(database(shop, "db:3"))
    planned = shop.run(dry_run=True).plan
    assert planned
    assert planned.stuck == ()
    assert [note for note in planned.notes if "Pod/" in note] == [
        f"Pod/{shop.name}/db-0 isn't replaced, though its set may wait for that: it is protected by helm.sh/resource-policy: keep"
    ]
    result = shop.run()
    assert (result.code, way_out in str(result.problems[0])) == (RolloutFailed.code, True), told(result)
    assert pod(shop)["metadata"]["uid"] == uid
    shop.kubectl.run("annotate", "pod", "db-0", "-n", shop.name, "helm.sh/resource-policy-")
    allow(shop, ("get,list,watch,create,patch", "*", "*"))
    shop.configure(impersonate=Impersonate(f"{shop.name}/{DEPLOYER}"), namespaces=(shop.name,), cluster_scoped=())
    result = shop.run(dry_run=True)
    planned = result.plan
    assert planned, told(result)
    assert [str(gone.identity) for gone in planned.stuck] == [f"Pod/{shop.name}/db-0"]
    result = shop.run("cli", force=True)
    assert (result.code, way_out in str(result.problems[0])) == (RolloutFailed.code, True), told(result)
    assert pod(shop)["metadata"]["uid"] == uid
