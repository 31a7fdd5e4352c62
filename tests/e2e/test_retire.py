"""`anneal retire` ends a target by its record alone: it deletes or lets go, shows that first, and goes on after a kill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from handler.cli.group import anneal
from handler.model.names import FIELD_MANAGER, IDENTITY, PART_OF, state_name
from tests.e2e.documents import Document, config_map, deployment, namespace, service
from tests.e2e.one_target import STATES, Shop
from tests.e2e.versioned_objects import written_by_terraform
from tests.patience import until

PROTECTED = {"argocd.argoproj.io/sync-options": "Prune=false"}


def retire(shop: Shop, *flags: str) -> Result:
    known = ["--state-namespace", STATES, "--kubeconfig", str(shop.kubectl.kubeconfig), "--repository", shop.target.repository.url]
    return CliRunner().invoke(anneal, ["retire", shop.name, *flags, *known], env={"ANNEAL_CONFIG": None})


@pytest.fixture(autouse=True)
def without_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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


def test_keep_lets_another_tool_take_all_of_it_without_a_conflict(shop: Shop) -> None:
    documents = filled(shop)
    before = {name: uid for name, (uid, _) in shop.versions(documents).items()}
    done = retire(shop, "--keep", "-y")
    assert done.exit_code == 0, said(done)
    assert places(shop) == (None, None)
    changed = (config_map(shop.name, "one", {"key": "other"}), service(shop.name, "web"), deployment(shop.name, "web", replicas=3))
    whole = json.dumps({"apiVersion": "v1", "kind": "List", "items": changed})
    shop.kubectl.run("apply", "--server-side", "--field-manager=other", "-f", "-", given=whole)
    shop.kubectl.run("rollout", "status", "deployment/web", "-n", shop.name)
    assert {name: uid for name, (uid, _) in shop.versions(documents).items()} == before
    for document in documents:
        live = shop.live(document) or {}
        owned = [each for each in live["metadata"]["managedFields"] if each["manager"] == FIELD_MANAGER]
        assert all(each["fieldsV1"].keys() <= {"f:metadata"} for each in owned), owned
    shop.configure()  # and this one may have it again, as any object without an owner
    shop.push(*changed)
    shop.applied()


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
