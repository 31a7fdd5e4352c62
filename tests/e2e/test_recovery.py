"""An emptied cluster and a deleted state converge from the same repository; real manifests too, with nothing else touched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from handler.config.settings import Prune
from handler.model.names import PART_OF, identity_of
from handler.model.result import Outcome
from handler.state.configmap import state_name
from infra.controlplane import controlplane as controlplanes
from tests.e2e.conftest import Open
from tests.e2e.documents import config_map, definition, deployment, namespace, offer
from tests.e2e.shop import DONE, STATES, Shop, only_round, told, version
from tests.kubectl import Kubectl

EVERY_KIND = ("Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim")


def forget_state(shop: Shop) -> None:
    shop.kubectl.run("delete", "cm", state_name(shop.name), "-n", STATES)


def test_a_deleted_state_is_found_again_by_the_labels(shop: Shop) -> None:
    """In one run: the first round prunes nothing, the second plans fully, under the guards."""
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "gone"))
    shop.applied()
    shop.push(config_map(shop.name, "a"))
    forget_state(shop)
    result = shop.applied()
    assert result.counts == {"unchanged": 1, "pruned": 1}
    shop.assert_converged()
    (entry,) = shop.state().history
    assert (entry.id, entry.counts) == (result.run, result.counts), "one commit, one entry"


def test_the_first_round_of_a_recovery_only_shows_what_would_go(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "gone"))
    shop.applied()
    shop.push(config_map(shop.name, "a"))
    forget_state(shop)
    with monkeypatch.context() as patched:
        first = only_round(shop, patched)
    assert first.counts == {"unchanged": 1, "skipped": 1}
    assert len(shop.labelled()) == 2
    assert shop.applied("tick").counts == {"unchanged": 1, "pruned": 1}


def test_a_recovery_holds_a_mass_deletion(shop: Shop) -> None:
    many = [config_map(shop.name, f"c{number}") for number in range(14)]
    shop.push(*many)
    shop.applied()
    before = shop.versions(many)
    shop.push(config_map(shop.name, "only"))
    forget_state(shop)
    assert shop.run().outcome is Outcome.HELD
    assert shop.versions(many) == before


def test_the_loss_of_the_state_of_an_unchanged_shop_writes_no_object(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"), definition(shop.group), offer(shop.group, shop.name, "spring"))
    shop.applied()
    before = shop.versions()
    forget_state(shop)
    assert shop.run("tick").outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
    assert shop.versions() == before
    shop.assert_converged()


def test_an_emptied_cluster_converges_from_the_same_repository(shop: Shop) -> None:
    jobs = f"{shop.name}-jobs"
    shop.push(namespace(jobs), definition(shop.group), offer(shop.group, jobs, "spring"), deployment(shop.name, "web"))
    shop.applied()
    shop.kubectl.run("delete", "ns", jobs)
    shop.kubectl.run("delete", "crd", f"offers.{shop.group}")
    shop.kubectl.run("delete", "deployment", "web", "-n", shop.name)
    shop.applied("drift")
    shop.assert_converged()
    forget_state(shop)
    shop.kubectl.run("delete", "ns", jobs)
    shop.kubectl.run("delete", "crd", f"offers.{shop.group}")
    shop.configure()
    result = shop.run("tick")
    assert result.outcome in DONE, told(result)
    assert [run.outcome for run in shop.state().history] == ["applied"], "found by its labels, then planned fully"
    assert result.counts == {"created": 3, "unchanged": 1}
    shop.assert_converged()


@pytest.fixture
def own_cluster(spare_directory: Path) -> Iterator[Kubectl]:
    """A cluster of the test's own: an APIService without a backend would keep namespaces of others from going."""
    kubeconfig = controlplanes.up(spare_directory)
    yield Kubectl(controlplanes.binaries() / "kubectl", kubeconfig)
    controlplanes.down(spare_directory)


@pytest.mark.slow
def test_kube_prometheus_is_applied_rests_and_goes_without_a_trace(own_cluster: Kubectl, open_shop: Open, shared_data: Path) -> None:
    shop = open_shop(own_cluster, namespaces=("*",))
    manifests = sorted((shared_data / "kube-prometheus").rglob("*.yaml"))
    texts = {str(path.relative_to(shared_data / "kube-prometheus")): path.read_text() for path in manifests}
    kinds = {(d["apiVersion"].rpartition("/")[0], d["kind"]) for text in texts.values() for d in _documents(text)}
    shop.configure(cluster_scoped=tuple(f"{kind}.{group}" if group else kind for group, kind in kinds))
    for name, text in texts.items():
        shop.work.write(f"deploy/{name}", text)
    shop.work.commit("kube-prometheus")
    shop.work.push()
    others = _inventory(shop)
    result = shop.applied()
    assert result.counts["created"] > 100, told(result)
    assert result.counts.keys() == {"created"}
    _assert_untouched(others, shop)

    before = _ours(shop)
    assert shop.run().outcome is Outcome.UNCHANGED
    for _ in range(2):
        shop.configure()
        assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.run(force=True).outcome in (Outcome.UNCHANGED, Outcome.APPLIED)
    assert _ours(shop) == before

    shop.configure(prune=Prune(kinds=EVERY_KIND, allow_empty=True))
    shop.work.remove("deploy").write("deploy/readme.md", "moved away")
    shop.work.commit("Moved away")
    shop.work.push()
    held = shop.run()
    assert held.outcome is Outcome.HELD
    assert held.plan
    assert held.plan.hold
    shop.applied(approve=held.plan.hold.id)
    assert _ours(shop) == {}
    _assert_untouched(others, shop)


def _documents(text: str) -> list[dict[str, str]]:
    return [document for document in yaml.load_all(text, yaml.BaseLoader) if document]


_AGGREGATED = ("ClusterRole/admin/", "ClusterRole/edit/", "ClusterRole/view/")
"""The controller manager collects into these whatever is labelled for it."""


def _inventory(shop: Shop, *selector: str) -> dict[str, str]:
    """Return kind, name and uid -> version (without status) of everything in the cluster that doesn't change by itself."""
    kinds = shop.kubectl.run("api-resources", "--verbs=list,delete", "-o", "name").split()
    busy = ("leases", "events", "endpointslices", "endpoints", "pods", "nodes", "componentstatuses", "flowschemas", "prioritylevel")
    asked = ",".join(kind for kind in kinds if not kind.startswith(busy))
    answer = shop.kubectl.run("get", asked, "-A", *selector, "--ignore-not-found", "--show-managed-fields", "-o", "json")
    found = json.loads(answer)["items"] if answer else []
    rows = {f"{identity_of(item)}/{item['metadata']['uid']}": version(item) for item in found}
    return {key: value for key, value in rows.items() if not key.startswith(_AGGREGATED)}


def _ours(shop: Shop) -> dict[str, str]:
    return _inventory(shop, "-l", f"{PART_OF}={shop.applyset}")


def _assert_untouched(others: dict[str, str], shop: Shop) -> None:
    """What was there before still is, unchanged."""
    now = _inventory(shop)
    assert {key: now.get(key) for key in others} == others
