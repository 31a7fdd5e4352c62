"""A run that is killed anywhere is finished or repaired by the next one: nothing leaks, nothing foreign is touched."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from handler.model.result import Outcome
from tests.e2e.api_proxy import is_object_write, is_write
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, definition, deployment, namespace, offer, service
from tests.e2e.killed_runs import Wire, kill_after
from tests.e2e.one_target import DONE, Shop, told

AT_ONCE = 4


def is_step(method: str, path: str) -> bool:
    """Whether a request is one after which a run is killed: each write, and the look at the state before each stage.

    Renewals of the Lease come when time has passed, so they aren't counted; taking it is followed by a look at the state.
    """
    renewal = method == "PUT" and "/leases/" in path
    return (is_write(method, path) and not renewal) or (method == "GET" and "/configmaps/anneal-" in path)


def first(shop: Shop) -> list[Document]:
    jobs = f"{shop.name}-jobs"
    return [
        namespace(jobs),
        definition(shop.group),
        offer(shop.group, jobs, "spring"),
        config_map(shop.name, "one"),
        config_map(jobs, "two"),
        service(shop.name, "web"),
        deployment(shop.name, "web"),
    ]


def second(shop: Shop) -> list[Document]:
    """One changed, three added, three gone; the way back is as long."""
    jobs = f"{shop.name}-jobs"
    return [
        namespace(jobs),
        definition(shop.group),
        offer(shop.group, jobs, "summer"),
        config_map(shop.name, "one", {"key": "2"}),
        config_map(jobs, "three"),
        service(shop.name, "api"),
        deployment(shop.name, "web"),
    ]


@dataclass
class Neighbours:
    """What others have beside the shop."""

    shop: Shop
    documents: list[Document]
    before: dict[str, tuple[str, str]]

    @classmethod
    def plant(cls, shop: Shop) -> Neighbours:
        documents = [config_map(shop.name, "neighbour"), service(shop.name, "neighbour")]
        shop.kubectl.apply(*documents)
        return cls(shop, documents, shop.versions(documents))

    def assert_untouched(self) -> None:
        assert self.shop.versions(self.documents) == self.before


def steps(shop: Shop, wired: Wire) -> int:
    """Run undisturbed in a process of its own, and count the steps."""
    wire = wired()
    result = shop.child(wire.kubeconfig).begin(shop.job()).result()
    assert result, "the undisturbed run didn't end"
    assert result.outcome is Outcome.APPLIED, told(result)
    return sum(is_step(*request) for request in wire.seen)


def assert_next_run_converges(shop: Shop, neighbours: Neighbours, trigger: str = "tick") -> None:
    result = shop.run(trigger)
    assert result.outcome in DONE, told(result)
    shop.assert_converged()
    neighbours.assert_untouched()


def opened(open_shop: Open) -> Shop:
    shop = open_shop()
    shop.create_namespace()
    return shop


def test_a_first_run_killed_after_any_write_is_finished_by_the_next(open_shop: Open, wired: Wire) -> None:
    shop = opened(open_shop)
    shop.push(*first(shop))
    total = steps(shop, wired)
    assert total > 12

    def crash(step: int) -> bool:
        shop = opened(open_shop)
        neighbours = Neighbours.plant(shop)
        shop.push(*first(shop))
        killed = kill_after(shop, wired, step, is_step)
        assert_next_run_converges(shop, neighbours)
        return killed

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(crash, range(1, total + 1))) > total // 2  # how often a run looks and records is up to its threads


def test_an_update_with_prune_killed_after_any_write_is_finished_by_the_next(open_shop: Open, wired: Wire) -> None:
    shops = [opened(open_shop) for _ in range(AT_ONCE)]
    for shop in shops:
        shop.push(*first(shop))
        shop.applied()
    shops[0].push(*second(shops[0]))
    total = steps(shops[0], wired)
    assert total > 10
    shops[0].push(*first(shops[0]))
    shops[0].applied()

    def crash(number: int) -> int:
        shop = shops[number]
        neighbours = Neighbours.plant(shop)
        changed, killed = False, 0
        for step in range(number + 1, total + 1, AT_ONCE):
            changed = not changed
            shop.push(*(second(shop) if changed else first(shop)))
            killed += kill_after(shop, wired, step, is_step)
            assert_next_run_converges(shop, neighbours)
        return killed

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(crash, range(AT_ONCE))) > total // 2


def test_a_force_push_back_to_an_older_commit_undoes_a_half_applied_newer_one(shop: Shop, wired: Wire) -> None:
    neighbours = Neighbours.plant(shop)
    older = shop.push(*first(shop))
    shop.applied()
    documents = shop.documents
    shop.push(*second(shop))
    assert kill_after(shop, wired, 2, is_object_write)
    shop.work.git("reset", "-q", "--hard", older)
    shop.work.push(force=True)
    shop.documents = documents
    assert_next_run_converges(shop, neighbours, "push")
    assert shop.state().commit == older
