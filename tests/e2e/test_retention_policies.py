"""What Kubernetes deletes by a policy because of a run: claims, volumes, fields of instances. The judge is what lives before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from click.testing import CliRunner

from handler.cli.group import anneal
from handler.config.settings import HoldAbove, Prune, RecreateSettings
from handler.model.plan import Action
from handler.model.result import Outcome, Result
from handler.model.rollout import ARGO_HOOK
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, definition, offer, stateful_set
from tests.e2e.exclusive_shop import ExclusiveShop
from tests.e2e.one_target import SCOPED, STATES, Shop, told
from tests.e2e.serve_process import until

SETS = RecreateSettings(kinds=("StatefulSet.apps",))
CLAIMS = Prune(kinds=("PersistentVolumeClaim",), hold_above=HoldAbove(1000, 1.0))


@dataclass
class Database:
    """A StatefulSet of a shop whose claims are bound to volumes made by hand."""

    shop: Shop
    made: list[str]

    def declared(self, replicas: int = 1, deleted: str = "Delete", scaled: str = "Retain", **more: Any) -> Document:
        """Return the StatefulSet. `size`: of its claims; `selector`: of its pods."""
        document = stateful_set(self.shop.name, "db")
        labels = more.get("selector") or {"app": "db"}
        claims = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none",
            "resources": {"requests": {"storage": more.get("size", "1Gi")}},
        }
        document["spec"] |= {
            "replicas": replicas,
            "podManagementPolicy": "Parallel",
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": deleted, "whenScaled": scaled},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claims}],
            "selector": {"matchLabels": labels},
        }
        document["spec"]["template"]["metadata"]["labels"] = labels
        return document

    def volume(self, number: int, reclaims: str = "Retain") -> Document:
        name = f"{self.shop.name}-{number}"
        reference = {"namespace": self.shop.name, "name": f"data-db-{number}"}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "none", "claimRef": reference}
        spec |= {"persistentVolumeReclaimPolicy": reclaims, "hostPath": {"path": f"/tmp/{name}"}}  # the one path that its deleter takes
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}

    def apply(self, replicas: int = 1, reclaims: str = "Retain", **policy: Any) -> dict[str, str]:
        """Have it applied, its claims bound and, where the policy says so, owned; return the claims."""
        for number in range(replicas):
            self.made.append(f"{self.shop.name}-{number}")
            assert self.shop.kubectl.ask("POST", "/api/v1/persistentvolumes", self.volume(number, reclaims))
        document = self.declared(replicas, **policy)
        self.shop.push(document, config_map(self.shop.name, "other"))
        self.shop.applied()
        is_owned = document["spec"]["persistentVolumeClaimRetentionPolicy"]["whenDeleted"] == "Delete"
        until(lambda: len(self.bound()) == replicas == len(self.pods()) and (len(self.owned()) == replicas) is is_owned)
        return self.claims()

    def _listed(self, plural: str) -> list[Document]:
        found = self.shop.kubectl.ask("GET", f"/api/v1/namespaces/{self.shop.name}/{plural}")
        assert found
        return list(found["items"])

    def claims(self) -> dict[str, str]:
        """Return the claims that nothing deletes, by name with their uids."""
        found = [each["metadata"] for each in self._listed("persistentvolumeclaims")]
        return {each["name"]: each["uid"] for each in found if "deletionTimestamp" not in each}

    def pods(self) -> dict[str, str]:
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in self._listed("pods")}

    def bound(self) -> list[str]:
        return [each["metadata"]["name"] for each in self._listed("persistentvolumeclaims") if each["status"]["phase"] == "Bound"]

    def owned(self) -> dict[str, str]:
        """Return the claims that go with an owner, each with the owner's uid: the garbage collector acts on nothing else."""
        found = [each["metadata"] for each in self._listed("persistentvolumeclaims")]
        return {each["name"]: each["ownerReferences"][0]["uid"] for each in found if each.get("ownerReferences")}

    def live(self) -> Document | None:
        return self.shop.live(self.declared())

    def lost(self, result: Result) -> set[str]:
        """Return the claims that a plan names."""
        assert result.plan, told(result)
        return {gone.identity.name for gone in result.plan.gone if gone.identity.kind == "PersistentVolumeClaim"}


@pytest.fixture
def database(shop: Shop) -> Iterator[Database]:
    made = Database(shop, [])
    yield made
    for name in made.made:
        shop.kubectl.ask("DELETE", f"/api/v1/persistentvolumes/{name}")


# --- deletion
def test_a_statefulset_that_is_made_anew_keeps_its_claims_and_its_pods(database: Database) -> None:
    shop, before = database.shop, database.apply()
    pods, live = database.pods(), database.live()
    assert live
    shop.configure(recreate=SETS)
    shop.push(database.declared(size="2Gi"), config_map(shop.name, "other"))
    result = shop.applied()
    anew = database.live()
    assert anew
    assert (anew["metadata"]["uid"] != live["metadata"]["uid"], database.lost(result)) == (True, set())
    until(lambda: database.owned() == dict.fromkeys(before, anew["metadata"]["uid"]))
    assert (database.claims(), database.pods()) == (before, pods)


def test_a_statefulset_that_could_not_adopt_its_pods_is_not_made_anew(database: Database) -> None:
    shop, before = database.shop, database.apply()
    shop.configure(recreate=SETS)
    shop.push(database.declared(selector={"app": "database"}), config_map(shop.name, "other"))
    result = shop.run()
    assert (result.outcome, [each.subject for each in result.problems]) == (Outcome.FAILED, [f"StatefulSet/{shop.name}/db"])
    assert (database.claims(), len(database.pods())) == (before, 1)


def test_a_pruned_statefulset_lets_its_claims_go_also_those_of_pods_that_are_gone(database: Database) -> None:
    """The controller looks at no claim of a pod that is gone: that keeps its reference to the StatefulSet, whatever its policy says."""
    shop, before = database.shop, database.apply(replicas=2)
    shop.push(database.declared(1), config_map(shop.name, "other"))
    shop.applied()
    until(lambda: len(database.pods()) == 1)
    assert len(database.owned()) == 2
    shop.push(config_map(shop.name, "other"))
    result = shop.applied()
    assert (database.live(), database.lost(result), database.owned()) == (None, set(), {})
    until(lambda: not database.pods())
    assert database.claims() == before


def test_claims_that_prune_names_go_with_their_statefulset_and_volumes_and_the_plan_names_them(database: Database) -> None:
    shop, before = database.shop, database.apply(reclaims="Delete")
    shop.configure(prune=CLAIMS)
    shop.push(config_map(shop.name, "other"))
    shown = shop.run(dry_run=True)
    assert database.lost(shown) == before.keys()
    assert shown.plan
    assert f"{shop.name}-0" in {gone.identity.name for gone in shown.plan.gone if gone.identity.kind == "PersistentVolume"}
    shop.applied()
    until(lambda: not database.claims())
    until(lambda: shop.kubectl.ask("GET", f"/api/v1/persistentvolumes/{shop.name}-0") is None)


def test_a_protected_claim_keeps_all_claims_of_its_statefulset(database: Database) -> None:
    shop, before = database.shop, database.apply()
    shop.configure(prune=CLAIMS)
    shop.kubectl.run("annotate", "pvc", "data-db-0", "-n", shop.name, "anneal.dev/prune=disabled")
    shop.push(config_map(shop.name, "other"))
    assert database.lost(shop.applied()) == set()
    assert (database.live(), database.owned(), database.claims()) == (None, {}, before)


def test_a_retired_target_leaves_the_claims_of_its_statefulsets(database: Database, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, before = database.shop, database.apply()
    monkeypatch.chdir(tmp_path)
    command = ["retire", shop.name, "--prune", "--yes", "--state-namespace", STATES, "--kubeconfig", str(shop.kubectl.kubeconfig)]
    command += ["--repository", shop.target.repository.url]
    answer = CliRunner().invoke(anneal, command, env={"ANNEAL_CONFIG": None})
    assert answer.exit_code == 0, answer.output
    assert (database.live(), database.owned(), database.claims()) == (None, {}, before)


@pytest.mark.parametrize("action", ["DeleteIfExist", "Recreate"])
def test_a_step_leaves_the_claims_of_the_statefulset_that_it_deletes(database: Database, action: str) -> None:
    shop, before = database.shop, database.apply()
    live, other = database.live(), config_map(shop.name, "other")
    assert live
    shop.configure(recreate=SETS, rollout=rollouts.ROLLOUT)
    declared = database.declared()
    rollouts.push(shop, [declared, other], rollouts.group("all", rollouts.step(action, declared), rollouts.step("CreateOrUpdate", other)))
    assert database.lost(shop.applied()) == set()
    anew = database.live()
    assert (anew and anew["metadata"]["uid"]) != live["metadata"]["uid"]
    assert (bool(anew), database.claims()) == (action == "Recreate", before)


def test_an_undeclared_statefulset_of_an_exclusive_namespace_stays_with_its_claims(database: Database) -> None:
    made = ExclusiveShop(database.shop)
    shop = made.shop
    database.made.append(f"{shop.name}-0")
    shop.kubectl.apply(database.volume(0), database.declared())
    until(lambda: len(database.owned()) == 1)
    before = database.claims()
    made.run()
    made.ahead += 2 * made.shop.target.orphan_grace
    result = made.run()
    assert result.plan
    assert {each.action for each in result.plan.prunes if each.identity.kind == "StatefulSet"} == {Action.SKIP}
    assert (bool(database.live()), database.claims()) == (True, before)


# --- scaling
def test_a_scale_down_that_deletes_claims_waits_for_a_person(database: Database) -> None:
    shop, before = database.shop, database.apply(replicas=3, deleted="Retain", scaled="Delete")
    shop.push(database.declared(1, "Retain", "Delete"), config_map(shop.name, "other"))
    held = shop.run()
    assert (held.outcome, database.lost(held)) == (Outcome.HELD, {"data-db-1", "data-db-2"})
    assert (database.claims(), len(database.pods())) == (before, 3)
    assert held.plan
    assert held.plan.hold
    result = shop.applied("replay", approve=held.plan.hold.id, actor="ann")
    until(lambda: database.claims().keys() == {"data-db-0"})
    assert result.counts["lost"] == 2


def test_a_scale_down_by_a_hook_is_refused(database: Database) -> None:
    claims = database.apply(3, deleted="Retain", scaled="Delete")
    document = database.declared(1, "Retain", "Delete")
    document["metadata"]["annotations"] = {ARGO_HOOK: "PostSync"}
    database.shop.push(document, config_map(database.shop.name, "other"))
    refused = database.shop.run()
    assert refused.code == "plan-refused", told(refused)
    assert f"once this hook has written it, PersistentVolumeClaim/{database.shop.name}/data-db-1 goes, too" in refused.message
    assert database.claims() == claims


def test_a_scale_down_without_replicas_in_git_is_one_too(database: Database) -> None:
    """The server's default is one."""
    shop, before = database.shop, database.apply(replicas=2, deleted="Retain", scaled="Delete")
    document = database.declared(1, "Retain", "Delete")
    del document["spec"]["replicas"]
    shop.push(document, config_map(shop.name, "other"))
    held = shop.run()
    assert (held.outcome, database.lost(held), database.claims()) == (Outcome.HELD, {"data-db-1"}, before)


def test_a_scale_down_goes_where_prune_names_claims_and_is_refused_where_prune_is_off(database: Database) -> None:
    shop, before = database.shop, database.apply(replicas=2, deleted="Retain", scaled="Delete")
    shop.push(database.declared(1, "Retain", "Delete"), config_map(shop.name, "other"))
    shop.configure(prune=Prune(enabled=False))
    refused = shop.run()
    assert (refused.outcome, [each.subject for each in refused.problems]) == (
        Outcome.FAILED,
        [f"PersistentVolumeClaim/{shop.name}/data-db-1"],
    )
    assert database.claims() == before
    shop.configure(prune=CLAIMS)
    assert database.lost(shop.applied()) == {"data-db-1"}
    until(lambda: database.claims().keys() == {"data-db-0"})


def test_a_scale_down_by_a_policy_that_retains_deletes_nothing_and_waits_for_nobody(database: Database) -> None:
    shop, before = database.shop, database.apply(replicas=2, deleted="Retain", scaled="Delete")
    shop.push(database.declared(1, "Retain", "Retain"), config_map(shop.name, "other"))
    assert database.lost(shop.applied()) == set()
    until(lambda: len(database.pods()) == 1)
    assert database.claims() == before


# --- volumes
def test_a_released_volume_that_gets_the_policy_delete_waits_for_a_person(database: Database, open_shop: Open) -> None:
    shop = database.shop
    shop.configure(cluster_scoped=(*SCOPED, "PersistentVolume"))
    database.made.append(f"{shop.name}-0")
    volume, other = database.volume(0), config_map(shop.name, "other")
    shop.push(volume, other)
    shop.applied()
    claim = database.declared()["spec"]["volumeClaimTemplates"][0]["spec"]
    place = {"name": "data-db-0", "namespace": shop.name}
    shop.kubectl.apply({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": place, "spec": claim})

    def phase() -> Any:
        live = shop.live(volume)
        return live and live["status"]["phase"]

    until(lambda: phase() == "Bound")
    shop.kubectl.run("delete", "pvc", "data-db-0", "-n", shop.name)
    until(lambda: phase() == "Released")
    shop.push(database.volume(0, "Delete"), other)
    held = shop.run()
    assert held.plan
    assert (held.outcome, [gone.identity.name for gone in held.plan.gone]) == (Outcome.HELD, [f"{shop.name}-0"])
    assert phase() == "Released"


# --- schemas
def narrower(group: str) -> Document:
    found = definition(group)
    found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = {"cost": {"type": "integer"}}
    return found


def test_a_schema_that_lacks_what_instances_hold_waits_for_a_person(shop: Shop) -> None:
    other = config_map(shop.name, "other")
    shop.push(definition(shop.group), other)
    shop.applied()
    until(
        lambda: shop.kubectl.tried("apply", "-f", "-", given=str(offer(shop.group, shop.name, "one", 7)).replace("'", '"')).returncode == 0
    )
    shop.push(narrower(shop.group), other)
    held = shop.run()
    assert held.plan
    assert held.plan.hold, told(held)
    assert "1 instance would lose what its new schema lacks: spec.price" in held.plan.hold.reasons[0]
    live = shop.live(offer(shop.group, shop.name, "one"))
    assert live
    assert live["spec"] == {"price": 7}
    shop.configure(prune=Prune(enabled=False))
    assert shop.run().outcome is Outcome.FAILED
    shop.configure(prune=replace(Prune()))
    shop.kubectl.run("delete", f"offers.{shop.group}", "one", "-n", shop.name)
    shop.applied()
