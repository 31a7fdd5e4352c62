"""A worker's discovery is old as soon as another makes a kind: nothing is deleted, and nothing forgotten, because of it."""

from __future__ import annotations

import pytest

from handler.app.build import Handler
from handler.config.settings import Prune
from handler.model.names import GroupKind
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, definition, namespace, offer
from tests.e2e.killed_runs import Wire
from tests.e2e.one_target import Shop, told
from tests.e2e.served_kinds import until_served

GUARDED = Prune(kinds=("Namespace", "CustomResourceDefinition"))


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    """A shop that may delete Namespaces and CRDs."""
    opened = open_shop(prune=GUARDED)
    opened.create_namespace()
    return opened


def plant(shop: Shop, place: str) -> Document:
    """Create an Offer by hand, of a kind that stands."""
    until_served(shop, "v1")
    precious = offer(shop.group, place, "precious")
    shop.kubectl.apply(precious)
    return precious


def kept_because(shop: Shop, worker: Handler, kept: Document) -> str:
    """Run a worker that would prune one guarded object; return why it doesn't."""
    result = worker.run(shop.job())
    assert result.outcome in (Outcome.UNCHANGED, Outcome.APPLIED), told(result)
    assert result.plan
    (change,) = result.plan.prunes
    live = shop.live(kept)
    assert live
    assert "deletionTimestamp" not in live["metadata"]
    assert [orphan.identity for orphan in shop.state().orphans] == [change.identity]
    return change.reason


def test_a_namespace_with_objects_of_a_kind_newer_than_our_discovery_isnt_pruned(shop: Shop) -> None:
    jobs = f"{shop.name}-jobs"
    shop.push(namespace(jobs), config_map(shop.name, "keep"))
    shop.applied()
    shop.kubectl.apply(definition(shop.group))
    precious = plant(shop, jobs)
    shop.push(config_map(shop.name, "keep"))
    assert kept_because(shop, shop.handler, namespace(jobs)) == f"still holds Offer/{jobs}/precious"
    assert shop.live(precious)


def test_a_crd_applied_by_another_worker_isnt_pruned_while_it_has_instances(shop: Shop) -> None:
    pruning = shop.handler_at(shop.kubectl.kubeconfig)
    shop.push(config_map(shop.name, "keep"))
    assert pruning.run(shop.job()).outcome is Outcome.APPLIED
    shop.push(config_map(shop.name, "keep"), definition(shop.group))
    shop.applied()
    precious = plant(shop, shop.name)
    shop.push(config_map(shop.name, "keep"))
    assert kept_because(shop, pruning, definition(shop.group)) == "still has instances (1); deleting it would delete them"
    assert shop.live(precious)


def test_a_member_of_a_kind_newer_than_our_discovery_is_pruned_and_its_kind_not_forgotten(shop: Shop) -> None:
    keep, made, gone = config_map(shop.name, "keep"), definition(shop.group), offer(shop.group, shop.name, "gone")
    pruning = shop.handler_at(shop.kubectl.kubeconfig)
    shop.push(keep)
    assert pruning.run(shop.job()).outcome is Outcome.APPLIED
    shop.push(keep, made, gone)
    shop.applied()
    until_served(shop, "v1")
    shop.push(keep, made)
    result = pruning.run(shop.job())
    assert (result.outcome, result.counts.get("pruned")) == (Outcome.APPLIED, 1), told(result)
    shop.assert_converged()


def test_a_member_whose_version_vanished_is_found_under_the_new_one_and_pruned(shop: Shop) -> None:
    shop.kubectl.apply(definition(shop.group))
    until_served(shop, "v1")
    shop.push(config_map(shop.name, "keep"), offer(shop.group, shop.name, "old"))
    shop.applied()
    shop.kubectl.apply(_moved_on(shop))
    until_served(shop, "v2")
    until_served(shop, "v1", served=False)
    shop.push(config_map(shop.name, "keep"))
    assert shop.applied().counts["pruned"] == 1
    assert shop.kubectl("get", f"offers.v2.{shop.group}", "-n", shop.name)["items"] == []
    assert GroupKind(shop.group, "Offer") in shop.state().kinds, "only a drift run that found none may forget a kind"


def _moved_on(shop: Shop) -> Document:
    """The shop's CRD with its first version no longer served and a second one in its place."""
    moved = definition(shop.group)
    older = moved["spec"]["versions"][0]
    moved["spec"]["versions"] = [{**older, "served": False, "storage": False}, {**older, "name": "v2"}]
    return moved


def test_a_crd_without_instances_in_git_is_established_when_the_run_ends(shop: Shop, wired: Wire) -> None:
    wire = wired()
    shop.push(definition(shop.group))
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert result.outcome is Outcome.APPLIED, told(result)
    live = shop.live(definition(shop.group))
    assert live
    assert "Established" in [condition["type"] for condition in live["status"]["conditions"] if condition["status"] == "True"]
    written = next(index for index, (method, path) in enumerate(wire.seen) if method == "PATCH" and "dryRun" not in path)
    assert any("/customresourcedefinitions" in path for method, path in wire.seen[written:] if method == "GET"), "it was waited for"
