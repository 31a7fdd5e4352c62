"""`anneal retire` ends a target by its record alone: it deletes or lets go, shows that first, and goes on after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner, Result

from handler.cli.group import anneal
from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, state_name
from handler.model.result import Outcome
from infra.githost import Host
from tests.e2e.documents import Document, claim, config_map, deployment, namespace, service
from tests.e2e.one_target import STATES, Shop, told
from tests.e2e.serve_process import until
from tests.e2e.tcp_gate import Gate
from tests.e2e.two_targets import Pair
from tests.e2e.versioned_objects import written_by_terraform

ROOT = Path(__file__).parents[2]
PROTECTED = {"argocd.argoproj.io/sync-options": "Prune=false"}


def retire(shop: Shop, *flags: str, config: Path | None = None, kubeconfig: Path | None = None) -> Result:
    where = ["-c", str(config)] if config else ["--state-namespace", STATES]
    known = ["--kubeconfig", str(kubeconfig or shop.kubectl.kubeconfig)]
    known += ["--repository", shop.target.repository.url] if "-y" in flags else []
    nothing = {"ANNEAL_CONFIG": None}
    return CliRunner().invoke(anneal, ["retire", shop.name, *flags, *where, *known], env=nothing)


@pytest.fixture(autouse=True)
def without_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def configuration(shop: Shop, directory: Path, *names: str, **changes: Any) -> Path:
    """Write a configuration of other targets, or of this one."""
    target = {
        "repository": {"url": shop.target.repository.url},
        "namespaces": [shop.name],
        "path": shop.target.path,
        "clusterScoped": list(shop.target.cluster_scoped),
    }
    targets = [{"name": name, **target, **changes} for name in names]
    file = directory / "anneal.yaml"
    file.write_text(yaml.safe_dump({"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES, "targets": targets}))
    return file


def places(shop: Shop) -> tuple[Document | None, Document | None]:
    record = shop.kubectl.ask("GET", f"/api/v1/namespaces/{STATES}/configmaps/{state_name(shop.name)}")
    return record, shop.kubectl.ask("GET", f"/apis/coordination.k8s.io/v1/namespaces/{STATES}/leases/{state_name(shop.name)}")


def filled(shop: Shop, *more: Document) -> tuple[Document, ...]:
    documents = (config_map(shop.name, "one"), service(shop.name, "web"), deployment(shop.name, "web"), *more)
    shop.push(*documents)
    shop.applied()
    return documents


def said(done: Result) -> str:
    return f"{done.exit_code}: {done.output}{done.exception!r}"


def test_prune_deletes_what_the_rules_let_go_and_frees_the_rest(shop: Shop) -> None:
    kept, space = config_map(shop.name, "kept", annotations=PROTECTED), namespace(f"{shop.name}-jobs")
    documents = filled(shop, kept, space, config_map(f"{shop.name}-jobs", "inside"))
    done = retire(shop, "--prune", "-y")
    assert done.exit_code == 0, said(done)
    assert "4 of 6 live objects would be deleted" in done.output
    assert "2 of 6 live objects would stay, without our marks" in done.output
    assert "--kind Namespace" in done.output
    assert places(shop) == (None, None)
    gone = [document for document in documents if document not in (kept, space)]
    assert not any(map(shop.live, gone))
    for document in (kept, space):
        metadata = (shop.live(document) or {})["metadata"]
        assert PART_OF not in metadata.get("labels", {})
        assert IDENTITY not in metadata.get("annotations", {})


def test_a_guarded_kind_goes_once_it_is_named(shop: Shop) -> None:
    space, data = namespace(f"{shop.name}-jobs"), claim(shop.name, "data")
    filled(shop, space, data)
    done = retire(shop, "--prune", "--kind", "Namespace", "-o", "json", "-y")
    assert done.exit_code == 0, said(done)
    found = json.loads(done.output)
    assert f"Namespace/{space['metadata']['name']}" in found["deleted"]
    assert (found["letGo"], found["ended"]) == ([f"PersistentVolumeClaim/{shop.name}/data"], True)
    assert shop.live(data) is not None


def test_keep_lets_another_tool_take_all_of_it_without_a_conflict(shop: Shop) -> None:
    documents = filled(shop)
    before = {name: uid for name, (uid, _) in shop.versions(documents).items()}
    done = retire(shop, "--keep", "-y")
    assert done.exit_code == 0, said(done)
    assert places(shop) == (None, None)
    changed = (config_map(shop.name, "one", {"key": "other"}), service(shop.name, "web"), deployment(shop.name, "web", replicas=3))
    whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": changed})
    shop.kubectl.run("apply", "--server-side", "--field-manager=other", "-f", "-", given=whole)
    shop.kubectl.run("rollout", "status", "deployment/web", "-n", shop.name, "--timeout=110s")
    assert {name: uid for name, (uid, _) in shop.versions(documents).items()} == before
    for document in documents:
        live = shop.live(document) or {}
        owned = [each for each in live["metadata"]["managedFields"] if each["manager"] == FIELD_MANAGER]
        assert all(each["fieldsV1"].keys() <= {"f:metadata"} for each in owned), owned
    shop.configure()  # and this one may have it again, as any object without an owner
    shop.push(*changed)
    shop.applied()


def test_a_living_holder_of_the_lease_makes_it_busy(open_shop: Callable[..., Shop], tmp_path: Path) -> None:
    shop = open_shop(lease=9.0)
    shop.create_namespace()
    documents = filled(shop)
    before = shop.versions(documents)
    with shop.handler.lock(shop.target).acquire():
        file = configuration(shop, tmp_path, f"{shop.name}-other")
        file.write_text(file.read_text() + "leaseDuration: 9s\n")
        done = retire(shop, "--prune", "-y", config=file)
    assert done.exit_code == 4, said(done)
    assert shop.versions(documents) == before


def test_a_namespace_that_left_the_whitelist_is_retired_alone(shop: Shop, tmp_path: Path) -> None:
    jobs = shop.create_namespace(f"{shop.name}-jobs")
    inside = (config_map(jobs, "a"), config_map(jobs, "b"))
    documents = filled(shop, *inside)
    shop.configure(namespaces=(shop.name,))
    shop.push(*documents[:3])
    planned = shop.run(dry_run=True)
    assert planned.plan
    assert any(f"anneal retire {shop.name} --namespace {jobs} --prune" in note for note in planned.plan.notes), planned.plan.notes
    shop.run()
    assert {each.identity.name for each in shop.state().orphans} == {"a", "b"}
    file = configuration(shop, tmp_path, shop.name)
    refused = retire(shop, "--prune", "-y", "--namespace", shop.name, config=file)
    assert refused.exit_code == 1, said(refused)
    done = retire(shop, "--prune", "-y", "--namespace", jobs, config=file)
    assert done.exit_code == 0, said(done)
    assert not any(map(shop.live, inside))
    state = shop.state()
    assert (state.orphans, jobs in state.namespaces) == ((), False)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert all(map(shop.live, documents[:3]))


def test_a_run_of_an_older_configuration_after_it_is_a_first_run(shop: Shop) -> None:
    documents = filled(shop)
    done = retire(shop, "--keep", "-y")
    assert done.exit_code == 0, said(done)
    result = shop.run()
    assert result.outcome is Outcome.APPLIED, told(result)
    assert all(map(shop.live, documents))


def retired_beside(pair: Pair, directory: Path, space: str = "") -> Result:
    """Retire a with a configuration that has b alone, which may use `space`."""
    config = configuration(pair.b, directory, pair.b.name, namespaces=[space or pair.space])
    return retire(pair.a, "--prune", "-y", config=config)


def test_what_a_configured_target_declares_by_now_is_let_go_for_it(pair: Pair, tmp_path: Path) -> None:
    """What git moved from a to b, which hasn't run since: the person retires a first."""
    moves, leaves = config_map(pair.space, "moves"), config_map(pair.space, "leaves")
    pair.push((moves, leaves))
    pair.a.applied()
    before = pair.a.versions([moves])
    pair.push((), (moves,))
    done = retired_beside(pair, tmp_path)
    assert done.exit_code == 0, said(done)
    assert f"target {pair.b.name} declares it" in done.output
    assert pair.a.live(leaves) is None
    assert PART_OF not in (pair.a.live(moves) or {})["metadata"].get("labels", {})
    pair.b.applied()
    assert {name: uid for name, (uid, _) in pair.a.versions([moves]).items()} == {name: uid for name, (uid, _) in before.items()}
    assert (pair.b.live(moves) or {})["metadata"]["annotations"][IDENTITY].startswith(f"{pair.b.name}:")


@pytest.mark.parametrize("fault", ["its git host is down", "its head can't be rendered"])
def test_while_what_a_configured_target_declares_cant_be_seen_nothing_ends_and_the_same_again_goes_on(
    pair: Pair, host: Host, tmp_path: Path, fault: str
) -> None:
    leaves, moves = config_map(pair.space, "leaves"), config_map(pair.space, "moves")
    pair.push((leaves, moves))
    pair.a.applied()
    pair.push((), (moves,))
    before, record, gate = pair.a.versions(), places(pair.a)[0], Gate(host.url_of(pair.space))
    beside = pair.b.target.repository.url.replace(f"http://{urlsplit(host.url_of('')).netloc}", gate.url)
    config = configuration(pair.b, tmp_path, pair.b.name, namespaces=[pair.space], repository={"url": beside})
    if fault == "its git host is down":
        gate.turn("shut")
    else:
        broken = pair.work.write("b/broken.yaml", "a: [1").commit("A mistake")
        pair.work.push()
    for more in ([], ["--dry-run"]):
        done = retire(pair.a, "--prune", "-y", *more, config=config)
        assert done.exit_code == 1, said(done)
        assert f"target {pair.b.name} may declare ConfigMap/{pair.space}/" in done.output
        assert "and that can't be seen" in done.output
        assert f"retire {pair.a.name} --prune --repository {pair.a.target.repository.url}" in done.output
        assert (pair.a.versions(), places(pair.a)[0]) == (before, record)
    gate.turn("open")
    if fault != "its git host is down":
        assert broken
        pair.work.remove("b/broken.yaml").commit("Mended")
        pair.work.push()
    done = retire(pair.a, "--prune", "-y", config=config)
    assert done.exit_code == 0, said(done)
    assert (pair.a.live(leaves), places(pair.a)) == (None, (None, None))
    assert pair.a.live(moves) is not None
    gate.close()


def test_a_target_that_may_not_use_the_namespace_claims_nothing(pair: Pair, tmp_path: Path) -> None:
    leaves = config_map(pair.space, "leaves")
    pair.push((leaves,))
    pair.a.applied()
    done = retired_beside(pair, tmp_path, f"{pair.space}-other")
    assert done.exit_code == 0, said(done)
    assert pair.a.live(leaves) is None


def test_what_would_lose_its_owners_without_our_marks_is_named_and_keeps_them(shop: Shop) -> None:
    crd, tea = written_by_terraform(shop)
    plain = config_map(shop.name, "emptied")
    shop.push(crd, tea, plain)
    shop.applied()
    nobody = json.dumps([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}])
    shop.kubectl.run("patch", "configmap", "emptied", "-n", shop.name, "--type=json", "-p", nobody)
    before = shop.versions([tea])
    done = retire(shop, "--keep", "-y")
    assert done.exit_code != 0, said(done)
    assert f"Offer/{shop.name}/tea: isn't written: the API server would forget who wrote its fields" in done.output
    assert shop.versions([tea]) == before
    assert PART_OF not in (shop.live(plain) or {})["metadata"].get("labels", {})
    crd["spec"]["versions"][0]["schema"] = crd["spec"]["versions"][1]["schema"]  # the way out that it names
    alike = json.dumps({"spec": {"versions": crd["spec"]["versions"]}})
    shop.kubectl.run("patch", "crd", crd["metadata"]["name"], "--type=merge", "-p", alike)
    until(lambda: retire(shop, "--keep", "-y").exit_code == 0)
    metadata = (shop.live(tea) or {})["metadata"]
    assert PART_OF not in metadata.get("labels", {})
    assert [each["manager"] for each in metadata["managedFields"]] == ["terraform"]
