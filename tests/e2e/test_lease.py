"""Two workers on one target: one runs, the other leaves what is asked; a worker that was away too long stops."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from handler.model.result import Outcome
from tests.e2e.documents import config_map
from tests.e2e.killed_runs import Wire
from tests.e2e.one_target import DONE, Shop, told


def test_two_workers_at_once_share_the_lease_and_end_at_the_head(shop: Shop, wired: Wire) -> None:
    workers = [shop.handler_at(wired().kubeconfig) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        for number in range(4):
            shop.push(*(config_map(shop.name, f"c{index}", {"key": str(number)}) for index in range(4 + number % 2)))
            results = list(pool.map(lambda worker: worker.run(shop.job()), workers))
            assert {result.outcome for result in results} <= {*DONE, Outcome.BUSY}, [told(result) for result in results]
            shop.assert_converged()
