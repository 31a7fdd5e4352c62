"""Which targets are siblings: of one repository, revision and cluster, however each reaches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import urllib3

from handler.config.settings import ApplySetId
from handler.engine.planner.siblings import SiblingQuestions
from handler.model.errors import GitUnavailable, Moved
from handler.model.event import Job
from handler.model.names import IDENTITY, PART_OF, Identity, applyset_id, state_name
from handler.model.plan import Action
from handler.model.result import Outcome
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.fakes.apiserver.connection import Call, Reply
from tests.fakes.apiserver.server import KUBE_SYSTEM, Asked
from tests.fakes.engine import SHOP, cluster
from tests.unit.engine.two_targets import A, B, Bench, X, change_of, document
from tests.unit.plan.samples import desired

pytestmark = pytest.mark.slow

A_SET = ApplySetId(applyset_id(state_name("a"), "anneal-system"))
LIVE, MERGE = "/api/v1/namespaces/shop/configmaps/x", "application/merge-patch+json"


def unreachable(call: Call, do: Callable[[], Reply]) -> Reply:
    raise urllib3.exceptions.ProtocolError("connection refused")


def test_a_target_of_another_revision_is_no_sibling_and_the_message_names_commands(bench: Bench) -> None:
    bench.configure(b={"revision": replace(B.revision, branch="next")})
    bench.push(b={"x": document("x")})
    refused = bench.run("b")
    told = str(refused.problems[0])
    assert "belongs to target a, which isn't of this repository, revision and cluster" in told
    assert "`anneal suspend a`" in told
    assert "`kubectl label ConfigMap/x -n shop applyset.kubernetes.io/part-of-`" in told
    assert "`kubectl annotate ConfigMap/x -n shop anneal.dev/identity-`" in told
    bench.applied("a")
    assert bench.live() is None


def test_an_instance_of_a_template_that_is_configured_isnt_taken_for_one_that_is_gone(bench: Bench) -> None:
    labels = {PART_OF: applyset_id(state_name("a.shop.m"), "anneal-system")}
    metadata = {"labels": labels, "annotations": {IDENTITY: X.mark("a.shop.m")}}
    bench.server.must(Asked("PATCH", LIVE, {"fieldManager": "anneal"}, {"metadata": metadata}, MERGE, ""))
    bench.push(b={"x": document("x")})
    (refused,) = bench.run("b").problems
    assert refused.message == "belongs to target a.shop.m, an instance of a"
    bench.targets = (B,)
    bench.configure()
    assert "this configuration doesn't know" in bench.run("b", force=True).problems[0].message


def test_a_target_that_is_no_sibling_gives_up_what_adopt_names_by_its_applyset_and_is_refused_from_then_on(bench: Bench) -> None:
    bench.configure(b={"revision": replace(B.revision, branch="next")})
    bench.push(a={"x": document("x", "1")}, b={"x": document("x", "2")})
    bench.applied("a")
    uid, (refusal,) = bench.uid(), bench.run("b").problems
    assert refusal.fix.endswith(f"or take it over as it is: add to target b: adopt: [{A_SET}]; or once: anneal adopt b --from {A_SET}")
    bench.configure(b={"adopt": (A_SET,)})
    change = change_of(bench.run("b", dry_run=True))
    assert {each.path for each in change.fields} == {f"metadata.annotations.{IDENTITY}", f"metadata.labels.{PART_OF}", "data.key"}
    bench.applied("b")
    assert (bench.owner(), bench.uid(), (bench.live() or {})["data"]) == ("b", uid, {"key": "2"})
    refused = bench.run("a", "drift")
    assert "belongs to target b, which isn't of this repository" in str(refused.problems[0])
    bench.push(b={"x": document("x", "2")})
    bench.applied("a")
    assert (bench.owner(), bench.uid(), (bench.live() or {})["data"]) == ("b", uid, {"key": "2"})


@pytest.fixture
def shared(bench: Bench) -> Bench:
    """Return one whose x is of a target that is no sibling of b, and of a Helm release, too."""
    bench.configure(b={"revision": replace(B.revision, branch="next")})
    marks = {f"meta.helm.sh/release-{key}": value for key, value in (("name", "web"), ("namespace", "shop"))}
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    bench.server.must(Asked("PATCH", LIVE, {"fieldManager": "helm"}, {"metadata": {"annotations": marks, "labels": labels}}, MERGE, ""))
    bench.push(b={"x": document("x", "2")})
    return bench


def test_all_that_adopt_has_to_name_is_in_one_refusal(shared: Bench) -> None:
    (refusal,) = shared.run("b").problems
    assert "isn't of this repository, revision and cluster; it belongs to Helm release web, too" in refusal.message
    assert f"add to target b: adopt: [helm, {A_SET}]; or once: anneal adopt b --from helm --from {A_SET}" in refusal.fix
    assert refusal.fix.endswith("kubectl delete secrets -n shop -l owner=helm,name=web")
    shared.configure(b={"adopt": ("helm", A_SET)})
    shared.applied("b")
    assert shared.owner() == "b"


def test_what_moves_an_object_of_two_owners_by_commands_begins_with_the_second_owner(shared: Bench) -> None:
    (refusal,) = shared.run("b").problems
    assert refusal.fix.startswith("first add to target b: adopt: [helm]; then to move it without deleting it, in this order: ")
    shared.configure(b={"adopt": ("helm",)})
    unmarked = {"metadata": {"labels": {PART_OF: None}, "annotations": {IDENTITY: None}}}
    shared.server.must(Asked("PATCH", LIVE, {"fieldManager": "kubectl-label"}, unmarked, MERGE, ""))
    shared.applied("b")
    assert shared.owner() == "b"


def test_siblings_hand_over_by_git_alone_whatever_adopt_names(bench: Bench) -> None:
    bench.configure(b={"adopt": (A_SET,)})
    bench.push(a={"x": document("x")}, b={"x": document("x")})
    refused = bench.run("b")
    assert "belongs to target a, which declares it, too, at a/x.json:1" in str(refused.problems[0])
    assert bench.owner() == "a"


@pytest.mark.parametrize("adopt", ["never", "unowned"])
def test_what_carries_this_targets_own_name_and_another_label_is_no_other_targets(bench: Bench, adopt: Any) -> None:
    bench.applied("a")
    other = ApplySetId(applyset_id("shop", "shop", "Secret"))
    bench.server.must(Asked("PATCH", LIVE, {"fieldManager": "kubectl"}, {"metadata": {"labels": {PART_OF: other}}}, MERGE, ""))
    bench.configure(a={"adopt": adopt})
    (refusal,) = bench.run("a", "drift").problems
    assert "carries the name of target a, and another ApplySet's label" in str(refusal)
    once = f"; or once: anneal adopt a --from {other}" if adopt != "never" else ""
    assert refusal.fix.endswith(f"add to target a: adopt: [{other}]{once}")
    bench.configure(a={"adopt": (other,)})
    bench.applied("a")
    assert bench.owner() == "a"


def two_clusters(second: ApiServer) -> Bench:
    """Return a bench whose b reaches its cluster in another way than a."""
    bench = Bench((A, replace(B, cluster=replace(B.cluster, context="other"))))
    ways = {A.cluster: FakeConnection(bench.server, bench._way), bench.targets[1].cluster: FakeConnection(second, bench._way)}
    bench.handler._connection = lambda target: ways[target.cluster]  # type: ignore[method-assign]  # the seam
    return bench


def test_targets_on_different_clusters_are_no_siblings() -> None:
    """Both declare the same names, each on its own cluster: what one drops goes there, whatever the other says."""
    second = cluster()
    second.store.get(KUBE_SYSTEM).body["metadata"]["uid"] = "another-cluster"  # type: ignore[union-attr]  # it is always there
    bench = two_clusters(second)
    bench.push(a={"x": document("x")}, b={"x": document("x")})
    bench.applied("a", "b")
    bench.push(b={"x": document("x")})
    bench.applied("a", "b")
    assert (bench.live(), second.store.get(X) is not None) == (None, True)


def test_two_kubeconfigs_of_one_cluster_uid_lead_to_siblings() -> None:
    server = cluster()
    bench = two_clusters(server)
    bench.server = server
    bench.handler._connection = lambda target: FakeConnection(server, bench._way)  # type: ignore[method-assign]  # the seam
    bench.push(a={"x": document("x")})
    bench.applied("a", "b")
    bench.push(b={"x": document("x")})
    bench.applied("a", "b")
    assert bench.owner() == "b"


def test_objects_of_a_target_on_a_silent_cluster_are_kept_and_others_pruned() -> None:
    """A fleet of clusters goes on pruning what none declares while one of them is down."""
    second = cluster()
    second.store.get(KUBE_SYSTEM).body["metadata"]["uid"] = "another-cluster"  # type: ignore[union-attr]  # it is always there
    bench = two_clusters(second)
    bench.push(a={"x": document("x"), "y": document("y")})
    bench.applied("a")
    way = bench.handler._connection
    silent = FakeConnection(second, unreachable)
    bench.handler._connection = lambda target: way(target) if target.name == "a" else silent  # type: ignore[method-assign]  # the seam
    bench.push(b={"x": document("x")})
    left = change_of(bench.run("a"))
    assert (left.action, left.sibling) == (Action.SKIP, "b")
    assert "which may be on this cluster and can't reach its own" in left.reason
    assert bench.live()
    assert bench.live(replace(X, name="y")) is None
    bench.handler._connection = way  # type: ignore[method-assign]  # it answers, and is another one
    bench.configure()
    bench.handler._connection = way  # type: ignore[method-assign]  # the seam
    bench.later("a").run(Job("a", "tick"))
    assert bench.live() is None


def test_objects_of_a_target_on_a_silent_cluster_arent_taken_over() -> None:
    server = cluster()
    bench = two_clusters(server)
    bench.server = server
    bench.handler._connection = lambda target: FakeConnection(server, bench._way)  # type: ignore[method-assign]  # the seam
    bench.push(a={"x": document("x")})
    bench.applied("a")
    server.store.remove(Identity("", "ConfigMap", "anneal-system", "anneal-a"))
    bench.configure()
    reach = {"a": FakeConnection(cluster(), unreachable), "b": FakeConnection(server, bench._way)}
    bench.handler._connection = lambda target: reach[target.name]  # type: ignore[method-assign]  # the seam
    bench.push(b={"x": document("x")})
    result = bench.run("b")
    assert (result.outcome, result.code) == (Outcome.FAILED, "cluster-unavailable"), result
    assert bench.owner() == "a"


def test_an_alias_makes_targets_siblings(bench: Bench) -> None:
    other = "https://other.example.com/acme/shop.git"
    bench.configure(a={"repository": replace(SHOP, aliases=(other,))}, b={"repository": replace(SHOP, url=other)})
    uid = bench.uid()
    bench.push(b={"x": document("x")})
    bench.applied("a")
    assert bench.uid() == uid


def test_in_the_middle_of_a_run_nothing_is_taken_once_the_head_has_moved_on(bench: Bench) -> None:
    """The object came into the sibling's hands since the plan: this run may be the one that is late."""
    head, live = bench.push(b={"x": document("x")}), bench.live()
    (item,) = desired({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}})
    siblings = bench.handler.dependencies("b").siblings
    assert live

    def asked(now: str) -> SiblingQuestions:
        return SiblingQuestions(B, siblings, head, head, lambda: now)

    applyset = applyset_id("anneal-b", "anneal-system")
    assert asked("elsewhere").giver(item, live, applyset) == "a"
    assert asked(head).again().giver(item, live, applyset) == "a"
    with pytest.raises(Moved, match="the head has moved on"):
        asked("elsewhere").again().giver(item, live, applyset)


def test_what_a_giver_says_is_asked_again_once_the_git_host_answers(bench: Bench) -> None:
    """A mistake of its author is a refusal; this is none, and the next run finds out."""
    head, live = bench.push(b={"x": document("x")}), bench.live()
    (item,) = desired({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "shop"}})
    asked = SiblingQuestions(B, bench.handler.dependencies("b").siblings, head, head)
    bench.host.down = True
    assert live
    with pytest.raises(GitUnavailable):
        asked.giver(item, live, applyset_id("anneal-b", "anneal-system"))
