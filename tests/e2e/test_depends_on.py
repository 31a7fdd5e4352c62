"""`dependsOn` over two repositories: what is new waits until the other has what git says and is healthy; what is recorded doesn't."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator

import pytest

from handler.app.build import Handler
from handler.config.git_settings import SecretRef
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Cluster, RecreateSettings
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
    assert ordered.apps.run("drift").outcome is Outcome.UNCHANGED
    assert ordered.record()[1].status.phase == "waiting", "a drift run says so, too"
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


def test_a_persons_pin_is_what_a_dependency_should_have_and_a_pause_keeps_what_it_has(ordered: Ordered) -> None:
    deployed(ordered)
    first = ordered.infra.state().commit
    ordered.push(ordered.infra, "2")
    ordered.infra.applied()
    ordered.infra.applied("oneoff", commit=first)
    ordered.push(ordered.apps, "2")
    ordered.apps.applied()
    ordered.configure(infra={"suspend": True})
    ordered.push(ordered.apps, "3")
    ordered.apps.applied()


def test_a_dependency_that_fails_is_said_with_what_it_says(ordered: Ordered) -> None:
    deployed(ordered)
    ordered.push(ordered.infra, "2", config_map("elsewhere", "stray"))
    assert ordered.infra.run().outcome is Outcome.FAILED
    ordered.push(ordered.apps, "2")
    assert_waits(ordered.apps.run(), "it fails", "elsewhere", f"anneal status {ordered.infra.name}")


def test_a_dependency_whose_plan_is_held_is_said_with_the_command_that_approves_it(ordered: Ordered) -> None:
    many = tuple(config_map(ordered.space, f"made-{number}") for number in range(12))
    ordered.push(ordered.infra, "1", *many)
    ordered.infra.applied()
    ordered.push(ordered.apps, "1")
    ordered.apps.applied()
    ordered.push(ordered.infra, "2")
    held = ordered.infra.run()
    assert held.plan
    assert held.plan.hold
    ordered.push(ordered.apps, "2")
    assert_waits(ordered.apps.run(), "held", f"anneal approve {ordered.infra.name} {held.plan.hold.id}")
    ordered.infra.applied("replay", approve=held.plan.hold.id)
    ordered.apps.applied("tick")


def test_a_dependency_that_is_not_healthy_is_said_with_its_worst_object(ordered: Ordered) -> None:
    sick = fated(deployment(ordered.space, "web"), "crash-loop", replicas=1, progressDeadlineSeconds=1)
    ordered.push(ordered.infra, "1", sick)
    ordered.infra.applied()
    ordered.push(ordered.apps, "1")
    assert_waits(ordered.apps.run(), f"Deployment/{ordered.space}/web", f"anneal status {ordered.infra.name}")
    assert ordered.version(ordered.apps) is None
    ordered.push(ordered.infra, "2")
    ordered.infra.applied("oneoff", force=True)
    ordered.apps.applied("tick")


def test_settings_that_changed_wait_too_and_a_commit_named_by_a_person_does_not(ordered: Ordered) -> None:
    deployed(ordered)
    ordered.push(ordered.infra, "2")
    assert ordered.apps.run("tick").outcome is Outcome.UNCHANGED, "nothing new of its own"
    ordered.configure(apps={"recreate": RecreateSettings(("Deployment.apps",))})
    assert_waits(ordered.apps.run("tick"), "git is at")
    sha = ordered.push(ordered.apps, "2")
    assert_waits(ordered.apps.run("oneoff", force=True))
    ordered.apps.applied("oneoff", commit=sha)
    assert (ordered.version(ordered.apps), ordered.apps.state().pin, ordered.apps.state().awaits) == ("2", None, None)


def test_a_dry_run_plans_on_and_notes_what_a_run_would_wait_for(ordered: Ordered) -> None:
    ordered.push(ordered.apps, "1")
    result = ordered.apps.run("oneoff", dry_run=True, force=True)
    assert result.plan
    assert result.counts == {"to create": 1}, told(result)
    assert f"a run would wait for {ordered.infra.name}: it never ran; anneal apply {ordered.infra.name}" in result.plan.notes
    ordered.push(ordered.infra, "1")
    ordered.infra.applied()
    result = ordered.apps.run("oneoff", dry_run=True, force=True)
    assert result.plan
    assert not any("wait" in note for note in result.plan.notes)


def test_a_dependency_on_another_cluster_comes_first(host: Host, sandbox: Sandbox, kubectl: Kubectl, own_cluster: Kubectl) -> None:
    ordered = Ordered.of(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl, own_cluster)
    for name, way in (("infra", own_cluster), ("apps", kubectl)):
        way.create_namespace(ordered.space)
        ordered.configure(**{name: {"cluster": Cluster(SecretRef(file=str(way.kubeconfig)))}})
    ordered.infra.handler = ordered.apps.handler = reaching_each(ordered)
    for shop in (ordered.infra, ordered.apps):
        ordered.push(shop, "1")
    assert_waits(ordered.apps.run(), "never ran")
    ordered.infra.applied()
    ordered.apps.applied("tick")
    assert (ordered.version(ordered.infra), ordered.version(ordered.apps)) == ("1", "1")
    assert not kubectl.has("configmap", ordered.infra.name, ordered.space), "it lives on its own cluster alone"
    kubectl.leave_namespaces(ordered.space)


def test_a_cluster_that_does_not_answer_holds_up_what_depends_on_it(
    host: Host, sandbox: Sandbox, kubectl: Kubectl, wired: Callable[[], Wired]
) -> None:
    """The dependency is reached by another kubeconfig, whose server goes."""
    wire = wired()
    ordered = Ordered.of(f"s-{secrets.token_hex(4)}", host, sandbox, kubectl)
    kubectl.create_namespace(ordered.space)
    for name, path in (("infra", wire.kubeconfig), ("apps", kubectl.kubeconfig)):
        ordered.configure(**{name: {"cluster": Cluster(SecretRef(file=str(path)))}})
    ordered.infra.handler = ordered.apps.handler = reaching_each(ordered)
    deployed(ordered)
    ordered.push(ordered.apps, "2")
    wire.close()
    ordered.apps.handler = reaching_each(ordered)
    assert_waits(ordered.apps.run(), "can't be seen", f"anneal status {ordered.infra.name}")
    assert ordered.version(ordered.apps) == "1"
    kubectl.leave_namespaces(ordered.space)


def reaching_each(ordered: Ordered) -> Handler:
    """Return a handler that reaches each target's cluster as that says."""
    return Handler(ordered.settings, resolve_all(ordered.settings, os.environ, needs=RUNS), ordered.apps.sandbox, os.environ)


def test_a_run_killed_at_any_write_of_a_wait_or_after_it_is_gone_on_with(ordered: Ordered, wired: Callable[[], Wired]) -> None:
    ordered.push(ordered.infra, "0")
    ordered.infra.applied()
    number, killed = 0, True
    while killed:
        number += 1
        ordered.push(ordered.infra, str(number))
        ordered.push(ordered.apps, str(number))
        kill_after(ordered.apps, wired, 1, is_recorded)  # the first write says that it waits
        assert_waits(ordered.apps.run("tick"))
        ordered.infra.applied()
        killed = kill_after(ordered.apps, wired, number, is_recorded)
        ordered.push(ordered.infra, f"{number} more")  # it isn't ready by now, and what was begun is finished all the same
        begun = ordered.apps.state().attempt is not None
        result = ordered.apps.run("tick")
        assert result.outcome in DONE if begun or not killed else result.outcome in (*DONE, Outcome.WAITING), told(result)
        ordered.infra.applied()
        assert ordered.apps.run("tick").outcome in DONE
        assert (ordered.version(ordered.apps), ordered.apps.state().awaits) == (str(number), None)
    assert number > 2


def test_what_overtakes_a_killed_run_waits_and_what_was_begun_is_finished(ordered: Ordered, wired: Callable[[], Wired]) -> None:
    deployed(ordered)
    begun = ordered.push(ordered.apps, "2")
    assert kill_after(ordered.apps, wired, 1, is_recorded), "it has opened its attempt"
    ordered.push(ordered.infra, "2")
    waits = ordered.push(ordered.apps, "3")
    ordered.apps.applied("tick")
    _, state = ordered.record()
    assert (state.commit, state.attempt, ordered.version(ordered.apps)) == (begun, None, "2")
    assert_waits(ordered.apps.run("tick"), "git is at")
    version, state = ordered.record()
    assert state.awaits
    assert (state.awaits.commit, state.status.phase) == (waits, "waiting")
    assert_waits(ordered.apps.run("tick"))
    assert ordered.record()[0] == version, "nothing differs, so nothing is written"
    ordered.infra.applied()
    ordered.apps.applied("tick")
    _, state = ordered.record()
    assert (ordered.version(ordered.apps), state.attempt, state.awaits) == ("3", None, None)
