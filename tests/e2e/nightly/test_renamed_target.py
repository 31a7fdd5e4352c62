"""A target that is renamed, or whose records move to another namespace, takes over what it had: the same objects, in one run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from handler.config.settings import Wait
from handler.model.names import IDENTITY, PART_OF, applyset_id, state_name
from handler.model.result import Outcome, Result
from handler.state.record import State
from tests.e2e.documents import Document, claim, config_map, deployment, service
from tests.e2e.hook_jobs import hook
from tests.e2e.one_target import STATES, Shop, told


@dataclass
class Renamed:
    """The shop under its old name, and as it is called from now on: the same repository, namespaces and path."""

    old: Shop
    new: Shop

    @classmethod
    def of(cls, shop: Shop, *, space: str = STATES, name: str = "") -> Renamed:
        called = name or f"{shop.name}-x"
        target = replace(shop.target, name=called, renamed_from=shop.name if called != shop.name else "")
        new = Shop(called, shop.work, shop.kubectl, shop.sandbox, target, shop.lease)
        new.documents = shop.documents
        former = STATES if space != STATES else ""
        new.settings = replace(new.settings, targets=(new.target,), state_namespace=space, state_namespace_from=former)
        new.handler = new.handler_at(new.kubectl.kubeconfig)
        return cls(shop, new)

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
