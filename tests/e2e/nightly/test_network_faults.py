"""Whatever happens on the way to the API server: a run recovers or says who must act, and the next one mends what is left."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handler.model.errors import ClusterUnavailable, LeaseLost
from handler.model.result import Outcome, Result
from tests.e2e.api_proxy import Wired
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, service
from tests.e2e.hurried_requests import hurry
from tests.e2e.network_faults import PLACES, RULES, Rule, laid_out
from tests.e2e.one_target import DONE, STATES, told
from tests.kubectl import Kubectl
from tests.patience import until

LEASE = 3.0
"""Seconds: a release that was cut off is waited for. A very busy machine may lose such a Lease; the next run mends that, too."""
LOSING = ("lease", "anything")
"""Places at which a fault itself may lose the Lease: there a lost one is no excuse, and it lasts as long as by default."""


@pytest.fixture(scope="module", autouse=True)
def namespace_of_states(kubectl: Kubectl) -> None:
    """The namespace of all records; else the first of these tests would make it, by a write that is met."""
    kubectl.tried("create", "namespace", STATES)


def phases(name: str) -> dict[str, list[Document]]:
    """First apply; one changed and one new; one gone."""
    first = [config_map(name, "a"), config_map(name, "gone"), service(name, "web")]
    update = [config_map(name, "a", {"key": "2"}), config_map(name, "b"), *first[1:]]
    return {"first apply": first, "update": update, "prune": [document for document in update if document["metadata"]["name"] != "gone"]}


def is_lost(result: Result) -> bool:
    """Whether a run has lost its Lease, or its API server has let a request for it wait for a third of its duration."""
    is_late = result.code == ClusterUnavailable.code and result.problems[0].subject.startswith("Lease/")
    return is_late or (result.outcome, result.code) == (Outcome.BUSY, LeaseLost.code)


def assert_ended_well(result: Result, rule: Rule, phase: str) -> None:
    if is_lost(result) and rule.place not in LOSING:
        return
    if result.outcome in DONE:
        assert not rule.ends or "" in rule.ends or rule.place in ("watch", "gone"), f"{phase}: {told(result)}"
        return
    assert (result.outcome, result.who) == (Outcome.FAILED, rule.who), f"{phase}: {told(result)}"
    assert result.code in rule.ends, f"{phase}: {told(result)}"
    assert result.problems, phase
    assert bool(result.next_try) == (rule.who == "nobody"), f"{phase}: what is transient is tried again"


def deleted(wire: Wired) -> set[str]:
    return {path.partition("?")[0].rpartition("/")[2] for method, path in wire.seen if method == "DELETE"}


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_disturbed_run_recovers_or_says_why_and_the_next_one_mends_it(
    rule: Rule, open_shop: Open, wired: Callable[[], Wired], monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = open_shop() if rule.place in LOSING else open_shop(lease=LEASE)
    shop.create_namespace()
    wire = wired()
    worker = shop.handler_at(wire.kubeconfig)
    for phase, documents in phases(shop.name).items():
        shop.push(*documents)
        wire.wire.only, wire.wire.tricks[:] = laid_out(rule)
        wire.forget()
        with monkeypatch.context() as patched:
            hurry(patched, worker.api(shop.target), PLACES[rule.place], rule.deadline, rule.silence)
            assert_ended_well(worker.run(shop.job()), rule, phase)
        wire.wire.tricks.clear()
        result = until(lambda: None if is_lost(found := worker.run(shop.job("tick"))) else found, "each run is lost")
        assert result.outcome in DONE, f"{phase}: {told(result)}"
        shop.assert_converged()
        assert deleted(wire) <= ({"gone"} if phase == "prune" else set()), phase

    result = shop.handler.run(shop.job("drift"))
    assert result.outcome is Outcome.UNCHANGED, "another worker finds something left to do: " + told(result)
