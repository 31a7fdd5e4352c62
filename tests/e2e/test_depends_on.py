"""`dependsOn` over two repositories: what is new waits until the other has what git says and is healthy; what is recorded doesn't."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest

from handler.engine.run.errors import DependencyNotReady
from handler.model.result import Outcome, Result
from handler.render.sandbox import Sandbox
from infra.githost import Host
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import config_map, deployment
from tests.e2e.killed_runs import is_recorded, kill_after
from tests.e2e.one_target import DONE, told
from tests.e2e.ordered_targets import Ordered
from tests.e2e.workload_status import fated
from tests.kubectl import Kubectl


@pytest.fixture
def ordered(host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Iterator[Ordered]:
    made = Ordered.of(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl)
    kubectl.create_namespace(made.space)
    yield made
    kubectl.leave_namespaces(made.space)


def assert_waits(result: Result, *words: str) -> None:
    """It waits for the other target, and says why and what helps."""
    assert (result.outcome, result.code) == (Outcome.WAITING, DependencyNotReady.code), told(result)
    said = str(result.problems[0])
    assert all(word in said for word in words), said


def deployed(ordered: Ordered) -> None:
    for shop in (ordered.infra, ordered.apps):
        ordered.push(shop, "1")
        shop.applied()


def test_a_first_deploy_goes_in_order_and_waiting_is_recorded_once(ordered: Ordered) -> None:
    ordered.push(ordered.infra, "1")
    sha = ordered.push(ordered.apps, "1")
    assert_waits(ordered.apps.run(), "never ran", f"anneal apply {ordered.infra.name}")
    version, state = ordered.record()
    assert ordered.version(ordered.apps) is None
    assert state.awaits
    assert (state.awaits.commit, state.attempt, state.status.phase, state.commit) == (sha, None, "waiting", "")
    assert_waits(ordered.apps.run("tick"))
    assert ordered.record()[0] == version, "nothing differs, so nothing is written"
    ordered.infra.applied()
    ordered.apps.applied("tick")
    _, state = ordered.record()
    assert (state.awaits, state.status.phase, state.commit, ordered.version(ordered.apps)) == (None, "applied", sha, "1")
    assert [run.outcome for run in state.history] == ["applied", "waiting"]


def test_what_is_recorded_is_held_while_a_newer_commit_waits(ordered: Ordered) -> None:
    deployed(ordered)
    newer = ordered.push(ordered.infra, "2")
    old = ordered.apps.state().commit
    waits = ordered.push(ordered.apps, "2")
    assert_waits(ordered.apps.run(), "git is at", newer[:12])
    ordered.apps.kubectl.run("delete", "configmap", ordered.apps.name, "-n", ordered.space)
    result = ordered.apps.run("drift")
    assert (result.outcome, result.commit, ordered.version(ordered.apps)) == (Outcome.APPLIED, old, "1"), told(result)
    _, state = ordered.record()
    assert state.awaits
    assert (state.commit, state.awaits.commit, state.status.phase, state.attempt) == (old, waits, "waiting", None)
    ordered.infra.applied()
    ordered.apps.applied("tick")
    assert ordered.version(ordered.apps) == "2"
