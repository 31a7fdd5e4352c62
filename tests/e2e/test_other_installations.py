"""Two installations with one target name, one configuration on another cluster, and a record that was restored there."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from handler.app.build import Handler
from handler.cli.group import anneal
from handler.model.errors import TargetMoved
from handler.model.event import Job
from handler.model.names import state_name
from handler.model.result import Outcome, Result
from tests.e2e.documents import config_map, service
from tests.e2e.one_target import STATES, Shop, told
from tests.kubectl import Kubectl


def second(shop: Shop, space: str = STATES) -> Handler:
    """Return another installation of the same configuration."""
    made = Shop(shop.name, shop.work, shop.kubectl, shop.sandbox, shop.target)
    made.settings = replace(shop.settings, installation="second", state_namespace=space)
    return made.handler_at(shop.kubectl.kubeconfig)


def run(handler: Handler, shop: Shop) -> Result:
    return handler.run(Job(shop.name, "push"))


def test_in_one_state_namespace_the_second_is_refused_naming_both(shop: Shop) -> None:
    documents = (config_map(shop.name, "one"), service(shop.name, "web"))
    shop.push(*documents)
    shop.applied()
    before = shop.versions(documents)
    refused = run(second(shop), shop)
    assert (refused.outcome, refused.code) == (Outcome.FAILED, TargetMoved.code), told(refused)
    said = str(refused.problems[0])
    assert "installation was default, is now second" in said
    assert "another `stateNamespace`" in said
    assert f"only where second replaces default: `anneal retarget {shop.name}`" in said
    assert shop.versions(documents) == before
    assert shop.run("drift").outcome is Outcome.UNCHANGED


def test_in_two_state_namespaces_the_others_objects_are_refused_naming_it(shop: Shop) -> None:
    documents = (config_map(shop.name, "one"), service(shop.name, "web"))
    shop.push(*documents)
    shop.applied()
    before, space = shop.versions(documents), shop.create_namespace(f"{shop.name}-states")
    other = second(shop, space)
    refused = run(other, shop)
    assert refused.outcome is Outcome.FAILED, told(refused)
    said = str(refused.problems[0])
    assert f"belongs to target {shop.name} of installation default, whose record is ConfigMap/{STATES}/anneal-{shop.name}" in said
    shop.push(config_map(shop.name, "another"))
    assert run(other, shop).outcome is Outcome.APPLIED
    assert shop.versions(documents) == before  # what it doesn't declare isn't its own to delete
    refused = shop.run()
    assert refused.outcome is Outcome.FAILED, told(refused)
    assert "of installation second" in str(refused.problems[0])
    assert shop.versions(documents) == before


def test_another_cluster_begins_anew_and_refuses_a_restored_record(shop: Shop, own_cluster: Kubectl) -> None:
    documents = (config_map(shop.name, "one"), service(shop.name, "web"))
    shop.push(*documents)
    shop.applied()
    before = shop.versions(documents)
    there = Shop(shop.name, shop.work, own_cluster, shop.sandbox, shop.target)
    there.create_namespace()
    there.documents = documents
    there.applied()
    there.assert_converged()
    record = shop.kubectl.ask("GET", f"/api/v1/namespaces/{STATES}/configmaps/{state_name(shop.name)}")
    assert record
    restored = {key: value for key, value in record.items() if key != "metadata"}
    restored["metadata"] = {key: record["metadata"][key] for key in ("name", "namespace", "labels", "annotations")}
    own_cluster.run("replace", "-f", "-", given=json.dumps(restored))
    live = there.versions(documents)
    refused = there.run("drift")
    assert (refused.outcome, refused.code) == (Outcome.FAILED, TargetMoved.code), told(refused)
    assert f"`anneal retarget {shop.name}`" in str(refused.problems[0])
    assert (there.versions(documents), shop.versions(documents)) == (live, before)


def test_status_lists_what_is_not_configured_any_more(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.push(config_map(shop.name, "one"))
    shop.applied()
    target = {"name": f"{shop.name}-other", "repository": {"url": shop.target.repository.url}, "namespaces": [shop.name]}
    file = tmp_path / "anneal.yaml"
    whole = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES, "targets": [target]}
    file.write_text(yaml.safe_dump(whole))
    monkeypatch.chdir(tmp_path)
    flags = ["--offline", "--kubeconfig", str(shop.kubectl.kubeconfig)]
    shown = CliRunner().invoke(anneal, ["status", *flags])
    assert f"retired: {shop.name} (ConfigMap/{STATES}/anneal-{shop.name} on cluster default, at {shop.head[:8]})" in shown.output
    assert f"retire {shop.name} --prune" in shown.output
    found = json.loads(CliRunner().invoke(anneal, ["status", *flags, "-o", "json"]).output)
    assert {each["target"]: each["takenBy"] for each in found["retired"] if each["target"] == shop.name} == {shop.name: ""}
    file.write_text(yaml.safe_dump({**whole, "targets": [{**target, "renamedFrom": shop.name}]}))
    found = json.loads(CliRunner().invoke(anneal, ["status", *flags, "-o", "json"]).output)
    assert [each["takenBy"] for each in found["retired"] if each["target"] == shop.name] == [target["name"]]
