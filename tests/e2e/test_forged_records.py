"""Records that were written into with kubectl, on a real cluster and a real git host. Every key: `tests/unit/engine`."""

from __future__ import annotations

import json
import secrets

from handler.engine.planner.desired import Preparer
from handler.model.names import state_name
from handler.model.result import Outcome
from handler.render.sandbox import Sandbox
from infra.githost import Host
from tests.e2e.documents import config_map
from tests.e2e.one_target import STATES, Shop, told
from tests.e2e.ordered_targets import Ordered
from tests.kubectl import Kubectl

LONG_AGO = "2001-01-01T00:00:00Z"


def patch(shop: Shop, **keys: object) -> None:
    """Write keys into a target's record, as a person with the right to patch ConfigMaps does."""
    data = {f"{key}.json": json.dumps(value) if value else None for key, value in keys.items()}
    shop.kubectl.run("patch", "configmap", state_name(shop.name), "-n", STATES, "--type=merge", "-p", json.dumps({"data": data}))


def strange(shop: Shop) -> str:
    """Push a commit as a fork's pull request does: the host serves it, and the branch doesn't lead to it."""
    shop.work.git("checkout", "-q", "-b", "fork")
    sha = shop.declare(config_map(shop.name, "web", {"key": "strange"}))
    shop.work.git("push", "-q", "origin", "fork:refs/pull/1/head")
    shop.work.git("checkout", "-q", "main")
    return sha


def preparer(shop: Shop) -> Preparer:
    return shop.handler.dependencies(shop.name).preparer


def test_a_pin_that_was_written_into_the_record_deploys_no_commit_of_a_fork(shop: Shop) -> None:
    head = shop.push(config_map(shop.name, "web", {"key": "1"}), config_map(shop.name, "own", {"key": "1"}))
    shop.applied()
    before, fork = shop.versions(), strange(shop)
    patch(shop, pin={"commit": fork, "away": preparer(shop).reads_at(head), "by": "ada", "reason": "a hotfix", "at": LONG_AGO})
    for trigger in ("tick", "drift"):
        result = shop.run(trigger)
        assert (result.outcome, result.code) == (Outcome.FAILED, "commit-unproven"), told(result)
    history = [{"id": "r", "trigger": "push", "outcome": "applied", "started": LONG_AGO, "commit": fork}]
    patch(shop, pin=None, history=history)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    status = shop.state().status
    refused = shop.run("replay", commit=fork, actor="mallory")
    assert (refused.outcome, refused.code) == (Outcome.REFUSED, "commit-unproven"), told(refused)
    assert (shop.versions(), shop.state().status) == (before, status)
    forced = shop.run("oneoff", commit=fork, force=True)  # a person, in a shell with the configuration
    assert forced.outcome is Outcome.APPLIED, told(forced)
    again = shop.run("drift")
    assert (again.outcome, "isn't proven" in again.message) == (Outcome.UNCHANGED, True), told(again)
    shop.applied("oneoff", unpin=True)
    assert shop.state().commit == head


def test_after_a_forced_push_a_drift_run_of_the_recorded_commit_writes_nothing(shop: Shop) -> None:
    """The new head is refused, so what is recorded would be held."""
    shop.push(config_map(shop.name, "web", {"key": "1"}))
    recorded = shop.applied().commit
    shop.work.git("commit", "-q", "--amend", "-m", "Rewritten")
    shop.work.git("commit", "-q", "--allow-empty", "--amend", "--reset-author", "-m", "Rewritten, too")
    shop.push({**config_map(shop.name, "web", {"key": "2"}), "apiVersion": "v9"}, force=True)
    assert shop.run().outcome is Outcome.FAILED
    shop.kubectl.run("patch", "configmap", "web", "-n", shop.name, "--type=merge", "-p", '{"data": {"key": "by hand"}}')
    before = shop.versions()
    shop.work.git("update-ref", "refs/keep", recorded)
    result = shop.run("drift")
    assert (result.outcome, result.code) == (Outcome.FAILED, "commit-unproven"), told(result)
    assert shop.versions() == before


def test_two_records_that_name_each_other_move_no_object(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> None:
    made = Ordered.of(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl)
    kubectl.create_namespace(made.space)
    made.configure(apps={"depends_on": ()})
    for shop in (made.infra, made.apps):
        made.push(shop, "1")
        shop.applied()
    objects = [config_map(made.space, shop.name) for shop in (made.infra, made.apps)]
    before = made.apps.versions(objects)
    place = {"namespace": STATES, "at": LONG_AGO}
    patch(made.apps, former={"name": made.infra.name, **place})
    patch(made.infra, renamedTo={"name": made.apps.name, **place})
    for shop in (made.apps, made.infra):
        for trigger in ("oneoff", "tick", "drift"):
            result = shop.run(trigger)
            assert (result.outcome, result.code) == (Outcome.FAILED, "target-renamed"), told(result)
    assert made.apps.versions(objects) == before
    assert made.infra.state()
    kubectl.leave_namespaces(made.space)
