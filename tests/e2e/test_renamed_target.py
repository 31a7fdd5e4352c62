"""A target that is renamed, or whose records move to another namespace, takes over what it had: the same objects, in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from handler.config.settings import Prune, Wait
from handler.model.errors import TargetMoved
from handler.model.names import IDENTITY, PART_OF, applyset_id, state_name
from handler.model.result import Outcome, Result
from handler.state.record import State
from tests.e2e.api_proxy import is_write
from tests.e2e.documents import Document, claim, config_map, deployment, namespace, service
from tests.e2e.hook_jobs import hook
from tests.e2e.killed_runs import Wire, kill_after
from tests.e2e.one_target import DONE, STATES, Shop, told
from tests.e2e.serve_process import until

PROTECTED = {"anneal.dev/prune": "disabled"}


@dataclass
class Renamed:
    """The shop under its old name, and as it is called from now on: the same repository, namespaces and path."""

    old: Shop
    new: Shop

    @classmethod
    def of(cls, shop: Shop, *, space: str = STATES, name: str = "", **changes: Any) -> Renamed:
        called = name or f"{shop.name}-x"
        former = shop.name if called != shop.name else ""
        target = replace(shop.target, name=called, renamed_from=former)
        new = Shop(called, shop.work, shop.kubectl, shop.sandbox, target, shop.lease)
        new.documents = shop.documents
        made = cls(shop, new)
        made.configure(space, **changes)
        return made

    def configure(self, space: str = STATES, *, line: bool = True, **changes: Any) -> None:
        new = self.new
        new.target = replace(new.target, **changes)
        former = STATES if space != STATES and line else ""
        new.settings = replace(new.settings, targets=(new.target,), state_namespace=space, state_namespace_from=former)
        new.handler = new.handler_at(new.kubectl.kubeconfig)

    @property
    def space(self) -> str:
        return self.new.settings.state_namespace

    @property
    def applyset(self) -> str:
        return applyset_id(state_name(self.new.name), self.space)

    def record(self, name: str, space: str = STATES) -> Document | None:
        found: Document | None = self.new.kubectl.ask("GET", f"/api/v1/namespaces/{space}/configmaps/{state_name(name)}")
        return found

    def lease(self, name: str, space: str = STATES) -> Document | None:
        path = f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases/{state_name(name)}"
        found: Document | None = self.new.kubectl.ask("GET", path)
        return found

    def marks(self, *documents: Document) -> set[tuple[str, str]]:
        live = [self.old.live(document) for document in documents]
        assert all(live), live
        metadata = [(each or {})["metadata"] for each in live]
        return {(each["labels"][PART_OF], each["annotations"][IDENTITY].partition(":")[0]) for each in metadata}

    def uids(self, *documents: Document) -> list[str]:
        return [((self.old.live(document) or {}).get("metadata") or {}).get("uid", "") for document in documents]

    def assert_taken_over(self, *documents: Document) -> State:
        """All carry the new marks alone, and nothing is left of the old record."""
        assert self.marks(*documents) == {(self.applyset, self.new.name)}
        assert self.old.labelled() == {}
        assert (self.record(self.old.name), self.lease(self.old.name)) == (None, None)
        state = self.new.state()
        assert (state.former, state.attempt) == (None, None)
        return state


def whole(shop: Shop) -> tuple[Document, ...]:
    return (config_map(shop.name, "one"), service(shop.name, "web"), deployment(shop.name, "web"), claim(shop.name, "data"))


def filled(shop: Shop) -> tuple[Document, ...]:
    documents = whole(shop)
    shop.push(*documents)
    shop.applied()
    return documents


def changed(result: Result) -> dict[str, set[str]]:
    assert result.plan, told(result)
    return {str(change.identity): {each.path for each in change.fields} for change in result.plan.writes}


MARKS = {f"metadata.annotations.{IDENTITY}", f"metadata.labels.{PART_OF}"}


def test_a_renamed_target_takes_its_objects_and_its_history_over_in_one_run(shop: Shop) -> None:
    documents = filled(shop)
    before = Renamed.of(shop).uids(*documents)
    renamed = Renamed.of(shop)
    planned = renamed.new.run(dry_run=True)
    assert set(map(frozenset, changed(planned).values())) == {frozenset(MARKS)}
    assert len(changed(planned)) == len(documents)
    assert renamed.record(renamed.new.name) is None
    result = renamed.new.applied()
    assert result.counts == {"configured": len(documents)}, told(result)
    state = renamed.assert_taken_over(*documents)
    assert renamed.uids(*documents) == before
    assert len(state.history) == 2
    assert renamed.new.run("drift").outcome is Outcome.UNCHANGED
    assert renamed.new.run("tick").outcome is Outcome.UNCHANGED


def test_a_state_namespace_moves_with_all_that_its_records_have(shop: Shop) -> None:
    documents = filled(shop)
    space = shop.create_namespace(f"{shop.name}-states")
    moved = Renamed.of(shop, space=space, name=shop.name)
    before = moved.uids(*documents)
    planned = moved.new.run(dry_run=True)
    assert set(map(frozenset, changed(planned).values())) == {frozenset({f"metadata.labels.{PART_OF}"})}
    moved.new.applied()
    moved.assert_taken_over(*documents)
    assert moved.uids(*documents) == before


def test_without_the_line_a_moved_record_is_named_before_anything_is_written(shop: Shop) -> None:
    documents = filled(shop)
    space = shop.create_namespace(f"{shop.name}-states")
    moved = Renamed.of(shop, space=space, name=shop.name)
    moved.configure(space, line=False)
    before = shop.versions(documents)
    refused = moved.new.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, TargetMoved.code), told(refused)
    said = str(refused.problems[0])
    assert f"ConfigMap/{STATES}/anneal-{shop.name}" in said
    assert f"stateNamespaceFrom: {STATES}" in said
    assert (moved.record(shop.name, space), shop.versions(documents)) == (None, before)
    moved.configure(space)
    moved.new.applied()
    moved.assert_taken_over(*documents)


def test_without_the_line_a_renamed_target_is_refused_with_it(shop: Shop) -> None:
    documents = filled(shop)
    renamed = Renamed.of(shop, renamed_from="")
    before = shop.versions(documents)
    refused = renamed.new.run()
    assert refused.outcome is Outcome.FAILED, told(refused)
    said = str(refused.problems[0])
    assert f"write `renamedFrom: {shop.name}` on target {renamed.new.name}" in said
    assert f"ConfigMap/{STATES}/anneal-{shop.name}" in said
    assert f"`anneal retire {shop.name} --keep`" in said
    assert shop.versions(documents) == before
    renamed.configure(renamed_from=shop.name)  # its record holds nothing but that failure
    renamed.new.applied()
    renamed.assert_taken_over(*documents)


def test_what_stays_undeclared_is_relabelled_what_may_go_is_pruned_and_nothing_outside_the_whitelist_is_written(shop: Shop) -> None:
    kept, going = config_map(shop.name, "kept", annotations=PROTECTED), config_map(shop.name, "going")
    outside = config_map(f"{shop.name}-jobs", "outside")
    shop.create_namespace(f"{shop.name}-jobs")
    shop.push(config_map(shop.name, "one"), config_map(shop.name, "two"), kept, going, outside)
    shop.applied()
    renamed = Renamed.of(shop, namespaces=(shop.name,))
    before = renamed.uids(kept, outside)
    renamed.new.push(config_map(shop.name, "one"), config_map(shop.name, "two"))
    planned = renamed.new.run(dry_run=True)
    assert planned.plan
    assert {change.identity.name for change in planned.plan.relabelled} == {"kept"}
    assert {change.identity.name for change in planned.plan.prunes if change.writes} == {"going"}
    was = shop.live(outside)
    result = renamed.new.applied()
    assert result.counts == {"configured": 3, "pruned": 1, "skipped": 2}, told(result)
    assert (shop.live(outside), shop.live(going)) == (was, None)
    assert f"list namespace {shop.name}-jobs in `namespaces`" in result.message
    assert renamed.new.state().former
    renamed.configure(namespaces=(shop.name, f"{shop.name}-jobs"), prune=Prune(enabled=False))
    renamed.new.applied()
    renamed.configure(namespaces=(shop.name,), prune=shop.target.prune)
    state = renamed.assert_taken_over(config_map(shop.name, "one"), kept, outside)
    assert ({each.identity.name for each in state.orphans}, renamed.uids(kept, outside)) == ({"kept", "outside"}, before)


def test_a_run_of_the_old_name_is_waited_for_and_what_it_made_is_taken_over(shop: Shop, wired: Wire) -> None:
    filled(shop)
    renamed = Renamed.of(shop)

    def opened(method: str, path: str) -> bool:
        return method == "POST" and path.partition("?")[0].endswith("/configmaps")

    assert kill_after(renamed.new, wired, 1, opened)  # its record stands, and the old one doesn't know of it
    late = (*whole(shop), namespace(f"{shop.name}-jobs"))
    shop.push(*late)
    shop.applied()
    renamed.new.documents = late
    finished = renamed.new.run("tick")
    assert finished.outcome in DONE, told(finished)
    renamed.assert_taken_over(*late)


def test_where_the_old_record_is_lost_its_objects_are_found_by_their_marks(shop: Shop) -> None:
    gone, documents = config_map(shop.name, "gone"), whole(shop)
    shop.push(gone, *documents)
    shop.applied()
    shop.kubectl.run("delete", "configmap", state_name(shop.name), "-n", STATES)
    renamed = Renamed.of(shop)
    before = renamed.uids(gone, *documents)
    renamed.new.push(*documents)
    renamed.new.applied()
    renamed.assert_taken_over(gone, *documents)  # a recovery prunes nothing
    assert renamed.uids(gone, *documents) == before
    renamed.new.applied("tick")
    assert (shop.live(gone), renamed.uids(*documents)) == (None, before[1:])


def test_hooks_get_the_new_marks_and_do_not_run_again(open_shop: Callable[..., Shop]) -> None:
    shop = open_shop(wait=Wait())
    shop.create_namespace()
    act, one = hook(shop, "migrate", "PreSync"), config_map(shop.name, "one")
    left = config_map(shop.name, "left", annotations={"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"})
    shop.push(one, left, act)
    shop.applied()
    renamed = Renamed.of(shop)
    before = renamed.uids(one, left, act)
    planned = renamed.new.run(dry_run=True)
    assert planned.plan
    assert planned.plan.due == ()
    assert {change.identity.name for change in planned.plan.relabelled} == {"migrate"}
    renamed.new.applied()
    renamed.assert_taken_over(one, left, act)
    assert renamed.uids(one, left, act) == before
    assert renamed.new.run("drift").outcome is Outcome.UNCHANGED
    renamed.new.push(config_map(shop.name, "one", {"key": "2"}), left, act)
    renamed.new.applied()
    assert renamed.uids(act) != before[-1:]


def test_a_rollout_that_the_old_name_has_begun_goes_on(shop: Shop, wired: Wire) -> None:
    documents = whole(shop)
    shop.push(*documents)

    def written(method: str, path: str) -> bool:
        return is_write(method, path) and "/deployments/" in path

    assert kill_after(shop, wired, 1, written)
    assert shop.state().attempt is not None
    renamed = Renamed.of(shop)
    result = renamed.new.run("tick")
    assert result.outcome is Outcome.APPLIED, told(result)
    renamed.assert_taken_over(*documents)
    until(lambda: renamed.new.run("drift").outcome is Outcome.UNCHANGED)
