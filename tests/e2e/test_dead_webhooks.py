"""Fail-closed webhooks that don't answer: a commit that drops one, with what it guards; judged by what kubectl reads before and after."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from handler.engine.apply.prune import Pruner
from handler.engine.planner.dead_webhooks import BROUGHT_BACK, DeadWebhooks
from handler.model.errors import Stopping
from handler.model.names import identity_of
from handler.model.plan import Action, Change
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, namespace, pods
from tests.e2e.hurried_requests import hurry
from tests.e2e.one_target import DONE, SCOPED, STATES, Shop, told
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

GROUP = "admissionregistration.k8s.io"
KINDS = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")


def guard(shop: Shop, kind: str = KINDS[0], **fields: Any) -> Document:
    """Return a configuration over the shop's ConfigMaps whose Service was never made."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}
    hook = {
        "name": "guard.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 1,
        "clientConfig": {"service": {"name": "gone", "namespace": "default", "path": "/"}},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": shop.name}},
        "rules": [rule],
    }
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": shop.name}, "webhooks": [{**hook, **fields}]}


@pytest.fixture
def guarded(shop: Shop) -> Iterator[Shop]:
    """A shop that may declare such configurations."""
    shop.configure(cluster_scoped=(*SCOPED, *(f"{kind}.{GROUP}" for kind in KINDS)), namespaces=(shop.name, "default"))
    yield shop
    for kind, name in itertools.product(KINDS, (shop.name, f"{shop.name}-theirs")):
        shop.kubectl.run("delete", kind, name, "--ignore-not-found")


def impatient(shop: Shop, monkeypatch: pytest.MonkeyPatch, patience: float = PATIENCE) -> None:
    """Let the shop give up soon what a webhook is called for, until a configuration is gone."""
    api, first = shop.handler.api(shop.target), Pruner.first
    hurried = hurry(monkeypatch, api, lambda method, path: method != "GET" and "/configmaps" in path, 0.5)

    def patient(pruner: Pruner, going: Sequence[Change]) -> None:
        first(pruner, going)
        monkeypatch.setattr(hurried, "_deadline", patience)

    monkeypatch.setattr(Pruner, "first", patient)


@pytest.mark.parametrize("kind", KINDS)
def test_a_dead_webhook_that_git_drops_goes_first_and_what_it_guards_is_written_in_the_same_run(
    guarded: Shop, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, hook = guarded, guard(guarded, kind)
    shop.push(hook, config_map(shop.name, "changed"), config_map(shop.name, "kept"))
    shop.applied()
    impatient(shop, monkeypatch)
    before = shop.versions()
    shop.push(config_map(shop.name, "changed", {"key": "2"}), config_map(shop.name, "kept"), config_map(shop.name, "new"))
    shown = shop.run(dry_run=True)
    assert shown.plan, told(shown)
    waits = {change.identity.name: change.reason for change in shown.plan.changes if change.deferred}
    assert waits == dict.fromkeys(
        ("changed", "new"), f"not judged yet: {kind}/{shop.name} goes first, whose webhook guard.example.com doesn't answer"
    )
    (gone,) = (change for change in shown.plan.changes if change.action is Action.PRUNE)
    assert gone.reason == "no longer declared; goes first: its webhook guard.example.com doesn't answer"
    names = ", ".join(f"ConfigMap/{shop.name}/{name}" for name in ("changed", "new"))
    assert f"{kind}/{shop.name} goes first; not judged before it is gone: {names}" in shown.plan.notes
    assert shop.versions() == before
    result = shop.applied()
    assert result.counts == {"created": 1, "configured": 1, "pruned": 1, "unchanged": 1}
    assert shop.live(hook) is None
    shop.assert_converged()


def test_all_configurations_that_hold_an_object_up_go_first_and_a_run_that_ends_after_that_is_finished(
    guarded: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, hooks = guarded, [guard(guarded, kind, name=f"{kind.lower()}.example.com") for kind in KINDS]
    judge = DeadWebhooks.judge
    shop.push(*hooks, config_map(shop.name, "changed"), config_map(shop.name, "kept"))
    shop.applied()
    impatient(shop, monkeypatch, 10.0)
    shop.push(config_map(shop.name, "changed", {"key": "2"}), config_map(shop.name, "kept"))

    def stops(dead: DeadWebhooks) -> None:
        if any(shop.live(hook) for hook in hooks):
            judge(dead)
        raise Stopping.of("the worker", "stops")

    with monkeypatch.context() as patched:
        patched.setattr(DeadWebhooks, "judge", stops)
        assert shop.run().outcome is Outcome.BUSY
    assert [shop.live(hook) for hook in hooks] == [None, None]
    assert shop.applied("tick").counts == {"configured": 1, "unchanged": 1}
    shop.assert_converged()


def test_a_dead_webhook_is_applied_again_as_it_was_where_what_it_guards_is_refused(guarded: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, hook = guarded, guard(guarded, KINDS[1])
    fixed = {**config_map(shop.name, "fixed"), "immutable": True}
    shop.push(hook, fixed, config_map(shop.name, "other"))
    shop.applied()
    impatient(shop, monkeypatch)
    before, was = shop.versions([fixed, config_map(shop.name, "other")]), shop.live(hook)
    shop.push({**fixed, "data": {"key": "2"}}, config_map(shop.name, "other", {"key": "2"}), config_map("default", shop.name))
    result = shop.run()
    assert (result.outcome, result.who) == (Outcome.FAILED, "author"), told(result)
    subjects = [problem.subject for problem in result.problems]
    assert subjects == [f"ConfigMap/{shop.name}/fixed", f"{KINDS[1]}/{shop.name}"], told(result)
    assert "is applied again as it was" in result.message
    now = shop.live(hook)
    assert was
    assert now
    assert (now["webhooks"], now["metadata"]["labels"]) == (was["webhooks"], was["metadata"]["labels"])
    annotations = {**was["metadata"]["annotations"], BROUGHT_BACK: shop.head}
    assert (now["metadata"]["annotations"], now["metadata"]["managedFields"][0]["manager"]) == (annotations, "anneal")
    assert shop.versions([fixed, config_map(shop.name, "other")]) == before
    assert shop.live(config_map("default", shop.name)) is None, "nothing else was written"
    impatient(shop, monkeypatch)
    shop.push(fixed, config_map(shop.name, "other", {"key": "2"}))
    shop.applied()
    shop.assert_converged()


PRE_SYNC = {"argocd.argoproj.io/hook": "PreSync"}


@pytest.mark.parametrize("why", ["its Namespace is made", "it names what is made", "it is a hook"])
def test_what_a_dead_webhook_keeps_from_being_judged_otherwise_waits_for_it_too(
    guarded: Shop, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, fresh = guarded, f"{guarded.name}-jobs"
    shop.configure(namespaces=(shop.name, fresh))
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps", "pods"], "operations": ["CREATE"]}
    shop.push(guard(shop, namespaceSelector={"matchLabels": {"shop": shop.name}}, rules=[rule]), config_map(shop.name, "kept"))
    shop.applied()
    shop.kubectl.run("label", "namespace", shop.name, f"shop={shop.name}")
    impatient(shop, monkeypatch)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "made", "namespace": shop.name}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits", "namespace": shop.name}}
    spec = {**pods({}, "shop:1")["spec"], "serviceAccountName": "made"}
    waiting = {
        "its Namespace is made": [namespace(fresh), config_map(fresh, "waits")],
        "it names what is made": [account, {**pod, "spec": spec}],
        "it is a hook": [config_map(shop.name, "waits", annotations=PRE_SYNC)],
    }[why]
    shop.push(*waiting, config_map(shop.name, "kept"))
    shown = shop.run(dry_run=True)
    assert shown.plan, told(shown)
    waits = str(identity_of(waiting[-1]))
    assert any(note.endswith(f"goes first; not judged before it is gone: {waits}") for note in shown.plan.notes), told(shown)
    shop.applied()
    assert shop.live(waiting[-1])
    assert not shop.live(guard(shop))


@pytest.mark.parametrize("why", ["it would be made anew", "a quota is full"])
def test_a_dead_webhook_goes_and_comes_back_only_once_for_what_the_next_run_would_meet_again(
    guarded: Shop, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop, hook = guarded, guard(guarded, KINDS[1])
    old = config_map(shop.name, "fixed", annotations={"anneal.dev/recreate": "allow"}) | {"immutable": True}
    shop.push(hook, old)
    shop.applied()
    if why == "a quota is full":
        quota = {"metadata": {"name": "full", "namespace": shop.name}, "spec": {"hard": {"configmaps": "1"}}}
        shop.kubectl.apply({"apiVersion": "v1", "kind": "ResourceQuota", **quota})
        until(lambda: shop.kubectl.run("get", "resourcequota", "full", "-n", shop.name, "-o", "jsonpath={.status.used}"))
    impatient(shop, monkeypatch)
    shop.push({**old, "data": {"key": "2"}}) if why == "it would be made anew" else shop.push(old, config_map(shop.name, "new"))
    result = shop.run()
    assert result.outcome is Outcome.FAILED, told(result)
    assert "is applied again as it was" in result.message, told(result)
    back = shop.live(hook)
    assert back
    impatient(shop, monkeypatch)
    again = shop.run("tick")
    assert (again.outcome, shop.live(hook)) == (Outcome.FAILED, back), told(again)
    command = again.problems[0].fix.partition("try this commit again: kubectl ")[2]
    shop.kubectl.run("delete", "resourcequota", "--all", "-n", shop.name)
    shop.kubectl.run(*shlex.split(command))
    impatient(shop, monkeypatch)
    ended = shop.run("tick")
    assert (ended.outcome in DONE) is (why == "a quota is full"), told(ended)


def test_a_dead_webhook_over_the_records_is_named_with_a_command_that_works(
    own_cluster: Kubectl, open_shop: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = open_shop(own_cluster)
    shop.create_namespace()
    rules = [{"apiGroups": ["", "coordination.k8s.io"], "apiVersions": ["v1"], "resources": ["configmaps", "leases"], "operations": ["*"]}]
    selector = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [STATES, "other"]}]}
    shop.kubectl.create_namespace(STATES)
    shop.kubectl.apply(guard(shop, rules=rules, namespaceSelector=selector))
    impatient(shop, monkeypatch)
    shop.push(config_map(shop.name, "one"))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "cluster-unavailable"), told(result)
    (problem,) = result.problems
    command = problem.fix.partition(f"or exempt namespace {STATES}: kubectl ")[2]
    assert command.startswith(f"patch validatingwebhookconfiguration {shop.name} "), problem
    own_cluster.run(*shlex.split(command))
    until(lambda: shop.run("tick").outcome in DONE)
    shop.assert_converged()


def test_a_protected_dead_webhook_stays(guarded: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, hook = guarded, guard(guarded)
    hook["metadata"]["annotations"] = {"helm.sh/resource-policy": "keep"}
    shop.push(hook, config_map(shop.name, "changed"))
    shop.applied()
    impatient(shop, monkeypatch)
    shop.push(config_map(shop.name, "changed", {"key": "2"}))
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "cluster-unavailable"), told(result)
    assert "guard.example.com" in result.message
    assert not result.written
    assert shop.live(hook)
