"""Cost follows the change: how many requests a run makes, and that it writes only what differs. Counted, never timed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handler.app.build import Handler
from handler.model.health import HealthState
from handler.model.result import Outcome
from infra.githost import Host
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import Document, config_map, deployment, service
from tests.e2e.one_target import Shop, told
from tests.patience import until

Wire = Callable[[], Wired]


def documents(shop: Shop) -> list[Document]:
    return [*(config_map(shop.name, f"c{number}") for number in range(5)), service(shop.name, "web"), deployment(shop.name, "web")]


@pytest.fixture
def wire(wired: Wire) -> Wired:
    return wired()


@pytest.fixture
def handler(shop: Shop, wire: Wired) -> Handler:
    """A warm handler behind the wire; its shop is applied and its verdicts are cached."""
    shop.push(*documents(shop))
    handler = shop.handler_at(wire.kubeconfig)
    first = handler.run(shop.job())
    assert first.outcome is Outcome.APPLIED, told(first)

    def at_rest() -> bool:
        again = handler.run(shop.job("drift"))
        assert again.outcome is Outcome.UNCHANGED, told(again)
        return shop.state().health.state == HealthState.HEALTHY

    until(at_rest)  # the Deployment's controller writes its status in several steps
    wire.forget()
    return handler


@pytest.mark.parametrize("trigger", ["push", "tick"])
def test_a_push_without_change_is_one_cluster_request(shop: Shop, handler: Handler, wire: Wired, host: Host, trigger: str) -> None:
    host.requests.clear()
    assert handler.run(shop.job(trigger, hint=shop.head)).outcome is Outcome.UNCHANGED
    assert [method for method, _ in wire.seen] == ["GET"]
    assert len(host.requests) == 1, "the head is resolved and nothing is fetched"


def test_a_drift_run_of_an_unchanged_shop_lists_each_kind_once_and_writes_nothing(shop: Shop, handler: Handler, wire: Wired) -> None:
    before = shop.versions()
    assert handler.run(shop.job("drift")).outcome is Outcome.UNCHANGED
    kinds = {document["kind"] for document in documents(shop)}
    assert len(wire.seen) <= len(kinds) + 4
    assert wire.writes == []
    assert not any("dryRun" in path for _, path in wire.seen), "what the server called the same isn't asked again"
    assert shop.versions() == before


def test_one_changed_object_is_one_object_write(shop: Shop, handler: Handler, wire: Wired) -> None:
    changed = [config_map(shop.name, "c0", {"key": "2"}), *documents(shop)[1:]]
    shop.push(*changed)
    assert handler.run(shop.job()).outcome is Outcome.APPLIED
    assert [(method, path.partition("?")[0]) for method, path in wire.object_writes] == [
        ("PATCH", f"/api/v1/namespaces/{shop.name}/configmaps/c0")
    ]
    shop.assert_converged()


def test_a_prune_is_one_object_write(shop: Shop, handler: Handler, wire: Wired) -> None:
    shop.push(*documents(shop)[1:])
    assert handler.run(shop.job()).outcome is Outcome.APPLIED
    assert [(method, path) for method, path in wire.object_writes] == [("DELETE", f"/api/v1/namespaces/{shop.name}/configmaps/c0")]
    shop.assert_converged()


def test_every_change_is_dry_run_before_the_first_write(shop: Shop, handler: Handler, wire: Wired) -> None:
    shop.push(*(config_map(shop.name, f"c{number}", {"key": "2"}) for number in range(5)), *documents(shop)[5:])
    assert handler.run(shop.job()).outcome is Outcome.APPLIED
    patches = ["dry" if "dryRun=All" in path else "write" for method, path in wire.seen if method == "PATCH"]
    assert patches == ["dry"] * 5 + ["write"] * 5


def test_a_broken_manifest_among_good_ones_writes_nothing(shop: Shop, handler: Handler, wire: Wired) -> None:
    broken = service(shop.name, "web", port=123456)
    shop.push(config_map(shop.name, "c0", {"key": "2"}), broken, deployment(shop.name, "web", image=""))
    result = handler.run(shop.job())
    assert result.outcome is Outcome.FAILED
    assert {problem.subject for problem in result.problems} == {f"Service/{shop.name}/web", f"Deployment/{shop.name}/web"}
    assert all(problem.place.startswith("deploy/") for problem in result.problems)
    assert wire.object_writes == []
