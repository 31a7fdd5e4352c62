"""What Kubernetes deletes by a policy because of a run: claims, volumes, fields of instances. The judge is what lives before and after."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from handler.cli.group import anneal
from handler.model.result import Outcome
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map
from tests.e2e.one_target import SCOPED, STATES
from tests.e2e.test_retention_policies import SETS, Database, database  # noqa: F401 - fixtures, too
from tests.patience import until


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


def test_a_retired_target_leaves_the_claims_of_its_statefulsets(database: Database, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop, before = database.shop, database.apply()
    monkeypatch.chdir(tmp_path)
    command = ["retire", shop.name, "--prune", "--yes", "--state-namespace", STATES, "--kubeconfig", str(shop.kubectl.kubeconfig)]
    command += ["--repository", shop.target.repository.url]
    answer = CliRunner().invoke(anneal, command, env={"ANNEAL_CONFIG": None})
    assert answer.exit_code == 0, answer.output
    assert (database.live(), database.owned(), database.claims()) == (None, {}, before)


def test_a_step_leaves_the_claims_of_the_statefulset_that_it_makes_anew(database: Database) -> None:
    shop, before = database.shop, database.apply()
    live, other = database.live(), config_map(shop.name, "other")
    assert live
    shop.configure(recreate=SETS, rollout=rollouts.ROLLOUT)
    declared = database.declared()
    rollouts.push(
        shop, [declared, other], rollouts.group("all", rollouts.step("Recreate", declared), rollouts.step("CreateOrUpdate", other))
    )
    assert database.lost(shop.applied()) == set()
    anew = database.live()
    assert anew
    assert (anew["metadata"]["uid"] != live["metadata"]["uid"], database.claims()) == (True, before)


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
