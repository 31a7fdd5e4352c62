"""Objects of another ApplySet: kubectl's own, and another target's that is no sibling. Taken over by id; who had them lets them be."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from handler.config.settings import ApplySetId
from handler.model.names import PART_OF, applyset_id
from handler.model.result import Outcome
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment, service
from tests.e2e.one_target import STATES, Shop, told, way_out

PARENT = "configmap/tools"


def documents(shop: Shop, **data: str) -> list[Document]:
    return [deployment(shop.name, "web", replicas=1), service(shop.name, "web"), config_map(shop.name, "web", {"key": "1", **data})]


def kubectl_apply(shop: Shop, *given: Document, server_side: bool) -> subprocess.CompletedProcess[str]:
    """Run `kubectl apply --prune --applyset` with these documents as the whole set."""
    command = [str(shop.kubectl.program), "apply", f"--server-side={str(server_side).lower()}", "-n", shop.name]
    command += ["--prune", f"--applyset={PARENT}", "-f", "-"]
    environ = {**os.environ, "KUBECONFIG": str(shop.kubectl.kubeconfig), "KUBECTL_APPLYSET": "true"}
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": given})
    return subprocess.run(command, input=listed, env=environ, capture_output=True, text=True, check=False)


def uids(shop: Shop, *given: Document) -> list[str]:
    """Return the uids of these, and of the ReplicaSets: a rollout would make another one."""
    live = [shop.live(document) for document in given]
    sets = shop.kubectl("get", "replicasets", "-n", shop.name)["items"]
    assert all(live), live
    return [str((each or {})["metadata"]["uid"]) for each in (*live, *sets)]


@pytest.mark.parametrize("server_side", [False, True], ids=["client-side", "server-side"])
def test_kubectls_applyset_gives_up_what_adopt_names_by_its_id_and_prunes_nothing_of_it(shop: Shop, *, server_side: bool) -> None:
    theirs, other = documents(shop, dropped="1"), config_map(shop.name, "theirs")
    done = kubectl_apply(shop, *theirs, other, server_side=server_side)
    assert done.returncode == 0, done.stderr
    shop.kubectl.run("rollout", "status", "deployment/web", "-n", shop.name)
    before, found = uids(shop, *theirs), applyset_id("tools", shop.name)
    shop.push(*documents(shop))
    refused = shop.run()
    (refusal,) = refused.problems
    assert (refusal.message, way_out(refusal)) == (f"belongs to ApplySet {found}", [found]), told(refused)

    shop.configure(adopt=(ApplySetId(found),))
    shown = shop.run(dry_run=True).plan
    assert shown
    assert {each.path for change in shown.writes for each in change.fields if change.identity.kind == "ConfigMap"} >= {
        "data.dropped",
        f"metadata.labels.{PART_OF}",
    }
    shop.applied()
    shop.assert_converged()
    assert uids(shop, *theirs) == before
    for document in theirs:
        managers = {each["manager"] for each in (shop.live(document) or {})["metadata"]["managedFields"] if not each.get("subresource")}
        assert managers == {"anneal"}, managers

    written = shop.versions()
    done = kubectl_apply(shop, other, server_side=server_side)  # as it is once they are out of its manifests
    assert (done.returncode, "pruned" in done.stdout) == (0, False), done
    assert (shop.versions(), uids(shop, *theirs)) == (written, before)
    shop.kubectl.run("delete", "configmap", "tools", "-n", shop.name)
    shop.configure(adopt="unowned")
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert (shop.versions(), uids(shop, *theirs)) == (written, before)


def test_an_applyset_that_takes_its_object_back_is_refused_and_nothing_is_deleted(shop: Shop) -> None:
    """The former owner still has it in its manifests: kubectl puts its label on again, and Anneal says so."""
    web = config_map(shop.name, "web")
    assert kubectl_apply(shop, web, server_side=False).returncode == 0
    found = ApplySetId(applyset_id("tools", shop.name))
    shop.push(web)
    shop.configure(adopt=(found,))
    shop.applied()
    before = uids(shop, web)
    done = kubectl_apply(shop, web, server_side=False)
    assert done.returncode == 0, done.stderr
    shop.configure(adopt="unowned")
    (refusal,) = shop.run("drift").problems
    assert "another ApplySet's label" in refusal.message
    assert f"add to target {shop.name}: adopt: [{found}]" in refusal.fix
    shop.configure(adopt=(found,))
    shop.applied()
    assert uids(shop, web) == before


def test_another_repositorys_target_gives_up_what_adopt_names_by_its_id_and_fights_for_none_of_it(open_shop: Open) -> None:
    owner, taker = open_shop(), open_shop()
    owner.create_namespace()
    taker.configure(namespaces=owner.target.namespaces)
    shared, own = documents(owner, dropped="1"), config_map(owner.name, "own")
    owner.push(*shared, own)
    owner.applied()
    owner.kubectl.run("rollout", "status", "deployment/web", "-n", owner.name)
    before = uids(owner, *shared)
    taker.push(*documents(owner))
    refused = taker.run()
    (refusal,) = refused.problems
    record = f"ConfigMap/{STATES}/anneal-{owner.target.name}"
    assert refusal.message == f"belongs to target {owner.target.name} of another repository, whose record is {record}", told(refused)
    assert f"adopt: [{owner.applyset}]" in refusal.fix

    taker.configure(adopt=(ApplySetId(owner.applyset),))
    taker.applied()
    taken = taker.versions(documents(owner))
    assert uids(owner, *shared) == before
    assert "dropped" not in (taker.live(shared[2]) or {})["data"]
    result = owner.run("drift")
    assert result.outcome is Outcome.FAILED, told(result)
    assert f"belongs to target {taker.target.name}" in str(result.problems[0])
    assert taker.versions(documents(owner)) == taken
    owner.push(own)
    for trigger in ("push", "drift"):
        assert owner.run(trigger).outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
        assert (taker.versions(documents(owner)), uids(owner, *shared)) == (taken, before)
    assert owner.live(own)
    taker.configure(adopt="unowned")
    assert taker.run("drift").outcome is Outcome.UNCHANGED
