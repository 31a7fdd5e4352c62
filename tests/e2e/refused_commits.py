"""Refused commits: what the record keeps of one, and that a tick which finds it does nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from handler.model.result import Outcome, Result
from handler.state.record import Refusal, State
from handler.state.record_format import seconds_of
from tests.e2e.api_proxy import Wired
from tests.e2e.one_target import Shop, told

Wire = Callable[[], Wired]


def refused(shop: Shop, code: str = "plan-refused", trigger: str = "push") -> Refusal:
    """Run the target; it must be refused. Return what the record keeps of that."""
    result = shop.run(trigger)
    assert (result.outcome, result.code) == (Outcome.FAILED, code), told(result)
    found = shop.state().status.refusal
    assert found
    return found


def assert_still(shop: Shop, wire: Wired, renders: list[str], facts: int, trigger: str = "tick") -> Result:
    """A tick without a memory reads the record, the cluster's name and the facts, and nothing else; nothing is rendered or written."""
    renders.clear()
    wire.forget()
    before = shop.recorded()
    result = shop.handler_at(wire.kubeconfig).run(shop.job(trigger))
    assert (result.outcome, renders) == (Outcome.FAILED, []), told(result)
    assert "is refused still" in str(result.problems[0])
    assert [request for request in wire.seen if request[0] != "GET"] == []
    own = [path for _, path in wire.seen if f"/configmaps/anneal-{shop.name}" in path or path.endswith("/namespaces/kube-system")]
    assert len(wire.seen) - len(own) <= facts, wire.seen
    assert shop.recorded() == before
    return result


def assert_heals(shop: Shop, wire: Wired) -> None:
    """The next tick applies the head."""
    result = shop.handler_at(wire.kubeconfig).run(shop.job("tick"))
    assert result.outcome is Outcome.APPLIED, told(result)
    assert shop.state().status.refusal is None
    shop.assert_converged()


def waited(shop: Shop) -> None:
    """Let the time come at which a tick tries what no fact decides."""

    def due(state: State) -> State:
        assert state.status.refusal
        assert seconds_of(state.status.refusal.again)
        return replace(state, status=replace(state.status, refusal=replace(state.status.refusal, again="2026-01-01T00:00:00Z")))

    shop.handler.store(shop.target).update(due)
