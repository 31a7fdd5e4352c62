"""One law for everything that deletes: whatever goes was in the plan, was counted, was announced, and is reported; kubectl is the judge."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from handler.cli import diff
from handler.cli.output import Output
from handler.config.settings import HoldAbove, Prune, RecreateSettings
from handler.model.plan import Gone
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, offer, owner
from tests.e2e.one_target import PATH, Shop, told
from tests.e2e.pull_request_host import PullRequests
from tests.e2e.ways_to_go import WAYS, Way, owned, scoped, uids
from tests.patience import until

NONE, OFF, ALL = Prune(hold_above=HoldAbove(0, 0.0)), Prune(enabled=False), Prune(hold_above=HoldAbove(1000, 1.0))


@pytest.mark.parametrize("name", WAYS)
def test_whatever_goes_was_in_the_plan_was_counted_and_told_and_is_reported(
    name: str, open_shop: Open, capsys: pytest.CaptureFixture[str]
) -> None:
    way = WAYS[name]
    shop = open_shop(**way.settings, prune=replace(ALL, kinds=way.kinds))
    shop.create_namespace()
    documents = way.first(shop)
    way.commit(shop, documents, first=True)
    shop.work.push()
    shop.applied()
    way.between(shop)
    documents, all_of_it = [*documents, *way.beside(shop)], way.lost | way.free
    before = uids(shop, documents)
    assert before.keys() >= all_of_it
    _foretold(shop, way)
    way.commit(shop, way.then(shop))
    shop.work.push()
    _held(shop, way)
    _off(shop, way)
    assert uids(shop, documents) == before, "a plan that waits or is refused touches nothing"
    shop.configure(prune=replace(ALL, kinds=way.kinds))
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan is not None
    assert _names(gone for gone in plan.gone if gone.counted) == way.lost
    assert _names(gone for gone in plan.gone if not gone.counted) >= way.free
    capsys.readouterr()
    diff.show(Output(), plan)
    text = capsys.readouterr().out
    assert all(f"/{one}" in text for one in all_of_it), text
    result = shop.applied()
    until(lambda: {one for one, uid in before.items() if uids(shop, documents).get(one) != uid} == all_of_it)
    assert _names(gone for change in result.written for gone in change.gone) >= all_of_it, "what really happened is reported"


def _names(found: Iterable[Gone]) -> set[str]:
    return {gone.identity.name.partition(".")[0] for gone in found}


def _foretold(shop: Shop, way: Way) -> None:
    """The comment on a pull request of the second commit names what goes, deletions first, and counts it in its first line."""
    if not way.foretold:
        return
    pulls = PullRequests.of(shop)
    way.commit(shop, way.then(shop))
    shop.work.git("push", "-q", "-f", "origin", "HEAD:refs/heads/change")
    head = shop.work.git("rev-parse", "HEAD").strip()
    shop.work.git("reset", "-q", "--hard", "origin/main")
    pulls.plan(head)
    lines = pulls.host.text.splitlines()
    first = next(line for line in lines if "**" in line)
    told = [line for line in lines if line.startswith("- ")]
    assert all(any(f"/{one}" in line for line in told) for one in way.lost), lines
    counted = sum(int(number) for number, word in re.findall(r"(\d+) to (delete|recreate)", first))
    assert counted == len(way.lost | way.free), first


def _held(shop: Shop, way: Way) -> None:
    """The guard that lets nothing go counts all of it, and a run waits."""
    if not way.lost:
        return
    shop.configure(prune=replace(NONE, kinds=way.kinds))
    result = shop.run()
    assert result.outcome is Outcome.HELD, told(result)
    assert result.plan is not None
    assert result.plan.hold is not None
    assert f"{len(way.lost)} of " in result.plan.hold.reasons[0]
    named = " ".join(name for _, name, _ in result.plan.hold.changes)
    assert all(f"/{one}" in named for one in way.lost)


def _off(shop: Shop, way: Way) -> None:
    """Where prune is off nothing goes: what would take it is refused, or left alone."""
    if not way.lost:
        return
    shop.configure(prune=replace(OFF, kinds=way.kinds))
    result = shop.run("oneoff", force=True, dry_run=True)
    if way.kept:
        assert result.plan is not None, told(result)
        assert result.plan.gone == ()
        return
    assert result.outcome is Outcome.FAILED, told(result)
    refused = [str(problem.subject) for problem in result.problems if "/" in problem.subject]
    assert any(f"/{one}" in each for one in way.lost for each in refused), refused
    assert len(refused) + sum(map(int, re.findall(r"and (\d+) more", " ".join(refused)))) == len(way.lost), refused


def _owner(shop: Shop, name: str, uid: str = "") -> list[dict[str, str]]:
    found = owner(shop.live(config_map(shop.name, name)))
    return [{**found, "uid": uid or found["uid"]}]


def test_an_owner_that_git_names_must_live_and_stay(open_shop: Open) -> None:
    shop = open_shop(prune=OFF)
    shop.create_namespace()
    above, other = config_map(shop.name, "owner"), config_map(shop.name, "other")
    shop.push(above, other)
    shop.applied()

    def refused(owners: list[dict[str, str]], *declared: Document) -> str:
        shop.push(*declared, config_map(shop.name, "below", ownerReferences=owners))
        result = shop.run()
        assert result.outcome is Outcome.FAILED, told(result)
        assert shop.live(config_map(shop.name, "below")) is None
        (problem,) = result.problems
        assert problem.place.startswith(f"{PATH}/ConfigMap-{shop.name}-below.yaml:1")
        return f"{problem.subject} {problem.message}"

    strange = "0b7e9d3c-0000-4000-8000-000000000000"
    assert f"(uid {strange}), which isn't there in namespace {shop.name}" in refused(_owner(shop, "owner", strange), above, other)
    assert "which isn't there" in refused([{**_owner(shop, "owner")[0], "name": "nobody"}], above, other)
    served = [{**_owner(shop, "owner")[0], "kind": "Widget", "apiVersion": "example.com/v1"}]
    assert "is of a kind that the server doesn't serve" in refused(served, above, other)
    shop.configure(prune=ALL)
    assert "which goes by this plan" in refused(_owner(shop, "owner"), other)
    shop.push(above, other, config_map(shop.name, "middle"))
    shop.applied()
    owned("configmap", "middle", "owner")(shop)
    assert "which goes by this plan" in refused(_owner(shop, "middle"), other), "with its own owner"
    below = config_map(shop.name, "below", ownerReferences=_owner(shop, "owner"))
    shop.push(above, other, below)
    shop.applied()
    shop.push(above, config_map(shop.name, "other", {"key": "2"}), below)
    shop.applied()
    assert shop.live(below), "the garbage collector leaves it"


def test_a_definition_that_serves_no_version_is_not_made_anew_over_its_instances(open_shop: Open) -> None:
    """They live on, unseen, until it goes."""
    kinds = RecreateSettings(kinds=("CustomResourceDefinition.apiextensions.k8s.io",))
    shop = open_shop(prune=ALL, recreate=kinds, cluster_scoped=("CustomResourceDefinition",))
    shop.create_namespace()
    crd = scoped(shop, "Namespaced")
    shop.push(crd)
    shop.applied()
    until(lambda: shop.kubectl.tried("apply", "-f", "-", given=json.dumps(offer(shop.group, shop.name, "one"))).returncode == 0)
    crd["spec"]["versions"][0]["served"] = False
    shop.push(crd)
    shop.applied()
    uid = shop.live(crd)["metadata"]["uid"]  # type: ignore[index]  # it was applied
    crd["spec"]["scope"] = "Cluster"
    shop.push(crd)
    refused = shop.run()
    assert refused.code == "plan-refused", told(refused)
    assert "would be made anew, and what it holds can't be listed" in refused.message
    assert (shop.live(crd) or {})["metadata"]["uid"] == uid
