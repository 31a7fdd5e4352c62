"""What goes on while a newer commit is refused: drift runs, attempts that are open, health, a server's own ticks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from handler.model.plan import Action
from handler.model.result import Outcome
from tests.e2e.documents import Document, config_map, deployment
from tests.e2e.drift import edit
from tests.e2e.one_target import PATH, STATES, Shop, told
from tests.e2e.refused_commits import Wire, assert_heals, assert_still, refused
from tests.e2e.serve_process import Serving
from tests.fakes.clock import NEVER
from tests.patience import until


def test_drift_runs_hold_the_recorded_commit_while_a_newer_one_is_refused(shop: Shop, wired: Wire) -> None:
    wire = wired()
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    shop.applied()
    before = shop.head
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map("elsewhere", "c"))
    refused(shop)
    status = shop.state().status
    edit(shop, "cm", "a", {"data": {"key": "edited"}})
    shop.kubectl.run("delete", "cm", "b", "-n", shop.name)
    result = shop.run("drift")
    assert (result.outcome, result.commit) == (Outcome.APPLIED, before), told(result)
    assert {str(change.identity): change.action for change in result.written} == {
        f"ConfigMap/{shop.name}/a": Action.UPDATE,
        f"ConfigMap/{shop.name}/b": Action.CREATE,
    }
    state = shop.state()
    assert (state.status, state.commit, state.attempt, state.pin) == (status, before, None, None)
    assert result.standing
    assert result.standing.refused
    wire.forget()
    again = shop.handler_at(wire.kubeconfig).run(shop.job("drift"))
    assert (again.outcome, wire.writes) == (Outcome.UNCHANGED, []), told(again)
    shop.push(config_map(shop.name, "a", {"key": "3"}))
    assert shop.applied("tick").counts == {"configured": 1, "pruned": 1}


def test_a_drift_repair_that_failed_midway_is_finished_while_a_newer_commit_is_refused(shop: Shop, wired: Wire, renders: list[str]) -> None:
    wire = wired()
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    shop.applied()
    before = shop.head
    shop.push(config_map("elsewhere", "c"))
    refusal = refused(shop)
    for name in "ab":
        edit(shop, "cm", name, {"data": {"key": "edited"}})
    wire.wire.only = lambda method, path: method == "PATCH" and "dryRun" not in path and "/configmaps/b" in path
    wire.wire.tricks[:] = [_gone]
    result = shop.handler_at(wire.kubeconfig).run(shop.job("drift"))
    assert result.outcome is Outcome.FAILED, told(result)
    state = shop.state()
    assert state.attempt
    assert (state.attempt.commit, state.status.refusal) == (before, refusal)
    renders.clear()
    result = shop.handler_at(wire.kubeconfig).run(shop.job("tick"))
    assert (result.outcome, result.commit, renders) == (Outcome.APPLIED, before, [before]), told(result)
    assert (shop.state().attempt, shop.state().status.refusal) == (None, refusal)
    assert_still(shop, wire, renders, 0)


def _gone(handler: Any) -> bool:
    handler.answer(403, {}, json.dumps({"kind": "Status", "status": "Failure", "code": 403, "message": "no"}).encode())
    return False


def test_what_is_refused_while_another_commit_is_half_applied_is_rendered_once(shop: Shop, wired: Wire, renders: list[str]) -> None:
    """Its attempt stays open; no tick asks for the Lease meanwhile."""
    wire = wired()
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "b"))
    wire.wire.only = lambda method, path: method == "PATCH" and "dryRun" not in path and "/configmaps/b" in path
    wire.wire.tricks[:] = [_gone]
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert result.outcome is Outcome.FAILED, told(result)
    assert shop.state().attempt
    assert shop.state().status.refusal is None
    shop.push(config_map("elsewhere", "c"))
    refused(shop)
    assert shop.state().attempt
    assert_still(shop, wire, renders, 0)
    shop.push(config_map(shop.name, "a", {"key": "2"}), config_map(shop.name, "b"))
    assert_heals(shop, wire)


def test_health_is_judged_while_a_commit_is_refused(shop: Shop) -> None:
    documents: list[Document] = [config_map(shop.name, "a"), deployment(shop.name, "web", replicas=1)]
    shop.push(*documents)
    shop.applied()
    shop.push(config_map("elsewhere", "c"))
    refused(shop)
    shop.kubectl.run("delete", "deployment", "web", "-n", shop.name)
    result = shop.handler_at(shop.kubectl.kubeconfig, looks=True).run(shop.job("tick"))
    assert "is refused still" in str(result.problems[0])
    assert shop.state().health.state == "degraded"


def test_ticks_of_a_server_render_nothing_and_heal_by_themselves(shop: Shop, tmp_path: Path) -> None:
    target = {
        "name": shop.name,
        "repository": {"url": shop.target.repository.url},
        "path": PATH,
        "namespaces": [shop.name, f"{shop.name}-jobs"],
        "cluster": {"kubeconfig": {"file": str(shop.kubectl.kubeconfig)}},
    }
    config: dict[str, Any] = {
        "apiVersion": "anneal.dev/v1alpha1",
        "kind": "Config",
        "stateNamespace": STATES,
        "interval": "1s",
        "targets": [target],
    }
    config |= {"webhooks": {"github": {"secrets": [{"env": "HOOK"}]}}, "driftInterval": NEVER}
    path = tmp_path / "anneal.json"
    path.write_text(json.dumps(config))
    shop.push(config_map(shop.name, "a"), config_map(f"{shop.name}-jobs", "b"))
    server = Serving(path, tmp_path / "log").start().ready()
    try:
        until(lambda: sum("is refused still" in str(line.get("problems")) for line in server.runs()) > 2, server.log.read_text)
        first, *later = server.runs()
        assert "not found" in str(first["problems"])
        assert not any("not found" in str(line["problems"]) for line in later), "the failure's text is logged once"
        shop.create_namespace(f"{shop.name}-jobs")
        until(lambda: [line for line in server.runs() if line["outcome"] == "applied"], server.log.read_text)
        assert server.lines("a refusal is over")[0]["changed"] == f"Namespace/{shop.name}-jobs"
    finally:
        server.stop()
    shop.assert_converged()
