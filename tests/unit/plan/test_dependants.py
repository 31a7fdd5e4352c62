"""What goes with its owners: named and counted, made anew where git declares it, or a reason to keep the owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.plan import Action, Cause, Change, Gone
from handler.plan.dependants import Dependant, GarbageCollection, collected, dependant_of, endpoints_of, is_owned_within, may_own_more

OWNER = Identity("apps", "Deployment", "shop", "owner")
PRUNE = Change(Action.PRUNE, OWNER, "owner", "7", "no longer declared")


def named(name: str, kind: str = "ConfigMap", group: str = "") -> Identity:
    return Identity(group, kind, "shop", name)


def below(name: str, *owners: str, kind: str = "ConfigMap", group: str = "", member: bool = False, kept: str = "") -> Dependant:
    return Dependant(named(name, kind, group), name, owners, member, kept)


def declared(name: str, action: Action = Action.UNCHANGED) -> Change:
    identity = named(name)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}
    return Change(action, identity, name, "3", manifest=Manifest.of(body, f"{name}.yaml:1"))


def garbage(changes: Iterable[Change], *listed: Dependant) -> GarbageCollection:
    changes = tuple(changes)
    mine = {change.identity: change for change in changes if change.manifest}
    return collected(changes, listed, mine.get)


def taken(found: GarbageCollection) -> list[tuple[str, bool, bool]]:
    return [(gone.identity.name, gone.counted, gone.is_member) for gone in found.changes[OWNER].takes]


def test_what_an_owner_takes_along_is_named_with_it_through_any_depth() -> None:
    found = garbage([PRUNE], below("leaf", "middle", member=True), below("middle", "owner"), below("other", "somebody"))
    assert taken(found) == [("middle", True, False), ("leaf", True, True)]
    assert {gone.by for gone in found.changes[OWNER].takes} == {OWNER}
    assert {gone.cause for gone in found.changes[OWNER].gone} == {Cause.UNDECLARED, Cause.OWNER}


@pytest.mark.parametrize(
    ("kind", "group"), [("Pod", ""), ("ReplicaSet", "apps"), ("EndpointSlice", "discovery.k8s.io"), ("ControllerRevision", "apps")]
)
def test_what_controllers_make_again_is_named_and_not_counted(kind: str, group: str) -> None:
    def made(*, member: bool = False, **reference: Any) -> Dependant:
        metadata = {"name": "made", "namespace": "shop", "uid": "made", "ownerReferences": [{"uid": "owner", **reference}]}
        found = dependant_of({"apiVersion": f"{group}/v1".strip("/"), "kind": kind, "metadata": metadata}, is_member=member)
        assert found
        return found

    assert taken(garbage([PRUNE], made(controller=True))) == [("made", False, False)]
    assert taken(garbage([PRUNE], made(controller=True, member=True))) == [("made", True, True)]
    assert taken(garbage([PRUNE], made())) == [("made", True, False)], "no controller makes again what a person has tied to it"


def test_what_has_another_owner_that_stays_stays() -> None:
    assert garbage([PRUNE], below("shared", "owner", "somebody")) == GarbageCollection()
    both = [PRUNE, Change(Action.PRUNE, named("second"), "second", "1")]
    assert garbage(both, below("shared", "owner", "second")).changes[OWNER].takes[0].identity == named("shared")


def test_an_owner_that_stays_takes_nothing() -> None:
    assert garbage([Change(Action.SKIP, OWNER, "owner"), declared("a", Action.UPDATE)], below("leaf", "owner")) == GarbageCollection()


def test_a_declared_member_is_made_anew_and_takes_what_it_owns() -> None:
    found = garbage([PRUNE, declared("mine")], below("mine", "owner", member=True), below("leaf", "mine"))
    made = found.changes[named("mine")]
    assert (made.action, made.cause, made.uid) == (Action.RECREATE, Cause.OWNER, "mine")
    assert [str(gone.identity) for gone in made.takes] == ["ConfigMap/shop/leaf"]
    assert OWNER not in found.changes, "nothing else goes with it"


def test_what_may_not_go_keeps_its_owner_and_all_that_this_would_take() -> None:
    found = garbage([PRUNE, declared("mine")], below("mine", "owner", member=True), below("data", "mine", kept="holds data"))
    assert found == GarbageCollection({}, {OWNER: "ConfigMap/shop/data would go with it: holds data"})


def test_what_two_lists_know_of_one_object_counts_together() -> None:
    kept = replace(below("data", "owner"), kept="git declares it")
    for listed in ((kept, below("data", "owner")), (below("data", "owner"), kept)):
        assert garbage([PRUNE], *listed).kept == {OWNER: "ConfigMap/shop/data would go with it: git declares it"}
    inside = replace(below("one", "owner"), cause=Cause.CONTENT)
    for listed in ((inside, below("one", "somebody", member=True)), (below("one", "somebody", member=True), inside)):
        assert taken(garbage([PRUNE], *listed)) == [("one", True, True)], "what lives in it goes with it, whatever owns it"


ANEW = replace(PRUNE, action=Action.RECREATE)
STEP = replace(PRUNE, cause=Cause.STEP)
WRITTEN = replace(PRUNE, action=Action.UPDATE, takes=(Gone(OWNER, "owner", Cause.WRITTEN),))


@pytest.mark.parametrize(
    ("change", "goes"), [(PRUNE, False), (ANEW, True), (STEP, True), (WRITTEN, True)], ids=["prune", "made anew", "step", "a write"]
)
def test_an_owner_that_git_has_dropped_takes_along_only_what_may_not_be_written_before(change: Change, goes: bool) -> None:
    metadata = {"name": "mine", "namespace": "shop", "uid": "mine", "ownerReferences": [{"uid": "owner"}]}
    free = dependant_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, is_member=True, owners=())
    assert free
    assert (named("mine") in garbage([change, declared("mine", Action.UPDATE)], free).changes) is goes


def test_what_goes_may_own_what_was_not_listed_which_is_one_line() -> None:
    (line,) = may_own_more([PRUNE, *(Change(Action.PRUNE, named(name), name) for name in "cba")])
    assert line.startswith("ConfigMap/shop/a, ConfigMap/shop/b, ConfigMap/shop/c and 1 more may own more: ")
    job, hook = named("job", "Job", "batch"), named("hook")
    assert may_own_more([Change(Action.RECREATE, job, "j", cause=Cause.FINISHED), declared("a", Action.UPDATE)]) == ()
    assert may_own_more([Change(Action.RECREATE, hook, "h", cause=Cause.REPEATED)]), "a Job owns its pods; another hook may own anything"


@pytest.mark.parametrize(
    ("owners", "within"),
    [
        ([("apps/v1", "ReplicaSet")], True),
        ([("batch/v1", "Job"), ("v1", "Service")], True),
        ([("batch.volcano.sh/v1", "Job")], False),
        ([("apps/v1", "ReplicaSet"), ("acme.io/v1", "Fleet")], False),
    ],
)
def test_owners_of_kubernetes_own_kinds_live_in_the_namespace(owners: list[tuple[str, str]], within: bool) -> None:
    references = [{"apiVersion": version, "kind": kind, "uid": "u"} for version, kind in owners]
    assert is_owned_within({"metadata": {"ownerReferences": references}}) is within


def test_what_a_change_takes_along_takes_what_it_owns() -> None:
    job = Gone(named("job", "Job", "batch"), "job", Cause.VOLUME, counted=False)
    write = Change(Action.UPDATE, job.identity, "job", "1", takes=(job,))
    found = garbage([write, declared("mine")], below("mine", "job", member=True), below("leaf", "job"))
    assert [gone.identity.name for gone in found.changes[job.identity].takes] == ["job", "leaf"]
    assert found.changes[named("mine")].action is Action.RECREATE


def test_the_token_of_an_account_goes_with_that_and_where_git_declares_it_keeps_it() -> None:
    metadata = {"name": "token", "namespace": "shop", "uid": "t", "annotations": {"kubernetes.io/service-account.uid": "owner"}}
    live = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    free, kept = dependant_of(live), dependant_of(live, kept="git declares it")
    assert free
    assert kept
    assert taken(garbage([PRUNE], free)) == [("token", True, False)]
    assert garbage([PRUNE, declared("token")], kept).kept == {OWNER: "Secret/shop/token would go with it: git declares it"}
    assert dependant_of({**live, "kind": "ConfigMap"}) is None


@pytest.mark.parametrize(("mine", "kept"), [((), ""), (("web",), "git declares it")])
def test_endpoints_go_with_the_service_of_their_name(mine: tuple[str, ...], kept: str) -> None:
    gone = Change(Action.PRUNE, named("web", "Service"), "s")
    live = {named("web", "Endpoints"): "e", named("other", "Endpoints"): "o"}
    (found,) = endpoints_of(gone, live, {named(each, "Endpoints") for each in mine})
    assert (found.uid, found.owners, found.kept) == ("e", ("s",), kept)
    assert not list(endpoints_of(Change(Action.UPDATE, gone.identity, "s"), live, ()))
