"""What Kubernetes deletes by a policy because of a run: claims, volumes, fields of instances. The judge is what lives before and after."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from handler.config.settings import HoldAbove, Prune, RecreateSettings
from handler.model.result import Outcome, Result
from tests.e2e.documents import Document, config_map, definition, offer, stateful_set
from tests.e2e.one_target import Shop, told
from tests.patience import until

SETS = RecreateSettings(kinds=("StatefulSet.apps",))
CLAIMS = Prune(kinds=("PersistentVolumeClaim",), hold_above=HoldAbove(1000, 1.0))


@dataclass
class Database:
    """A StatefulSet of a shop whose claims are bound to volumes made by hand."""

    shop: Shop
    made: list[str]

    def declared(self, replicas: int = 1, deleted: str = "Delete", scaled: str = "Retain", **more: Any) -> Document:
        """Return the StatefulSet. `size`: of its claims."""
        document = stateful_set(self.shop.name, "db")
        labels = {"app": "db"}
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
