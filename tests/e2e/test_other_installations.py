"""Two installations with one target name, two configurations without a name, one on another cluster, and a record restored there."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from handler.app.build import Handler
from handler.cli.group import anneal
from handler.model.errors import TargetMoved
from handler.model.event import Job
from handler.model.names import state_name
from handler.model.result import Outcome, Result
from handler.state.configmap import INSTALLATION
from infra.githost import Host
from tests.e2e.documents import config_map, service
from tests.e2e.one_target import STATES, Shop, told
from tests.e2e.serve_process import ROOT
from tests.e2e.widget_operator import WidgetOperator
from tests.kubectl import Kubectl
from tests.terminal import typed


def second(shop: Shop, space: str = STATES, **changes: Any) -> Handler:
    """Return another installation of the same configuration."""
    made = Shop(shop.name, shop.work, shop.kubectl, shop.sandbox, shop.target)
    made.settings = replace(shop.settings, **{"installation": "second", "state_namespace": space, **changes})
    return made.handler_at(shop.kubectl.kubeconfig)


def run(handler: Handler, shop: Shop) -> Result:
    return handler.run(Job(shop.name, "push"))


def label(shop: Shop) -> str:
    """Return whose the record says that it is."""
    record = shop.kubectl.ask("GET", f"/api/v1/namespaces/{STATES}/configmaps/{state_name(shop.name)}") or {}
    return str(record["metadata"]["labels"][INSTALLATION])


def ran(shop: Shop, *words: str) -> tuple[int, str]:
    done = subprocess.run(command(shop, *words), cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout + done.stderr


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
    assert "only where second replaces default: write `installationFrom: default` beside `installation: second`, for all targets" in said
    assert f"or `anneal retarget {shop.name}`" in said
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


def beside(shop: Shop, place: Path, **changes: Any) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Write another configuration of the cluster, which has another target of the repository; return it in parts, too."""
    target = {"name": f"{shop.name}-other", "repository": {"url": shop.target.repository.url}, "namespaces": [f"{shop.name}-other"]}
    whole = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES, "targets": [target], **changes}
    file = place / "anneal.yaml"
    file.write_text(yaml.safe_dump(whole))
    return file, target, whole


def command(shop: Shop, *words: str) -> list[str]:
    return [sys.executable, "-m", "handler", "--kubeconfig", str(shop.kubectl.kubeconfig), *words]


def test_without_a_name_of_its_own_no_configuration_deletes_what_another_has(shop: Shop, tmp_path: Path) -> None:
    documents = (config_map(shop.name, "one"), service(shop.name, "web"))
    shop.push(*documents)
    shop.applied()
    before = shop.versions(documents)
    file, *_ = beside(shop, tmp_path)
    listed = json.loads(ran(shop, "-c", str(file), "status", "--offline", "-o", "json")[1])["retired"]
    (found,) = (each for each in listed if each["target"] == shop.name)
    assert found["stranger"]
    code, shown = ran(shop, *shlex.split(found["next"])[1:])  # what is advised
    assert (code, shop.versions(documents)) == (0, before), shown
    assert shop.target.repository.url in shown
    retire = ("-c", str(file), "retire", shop.name, "--prune")
    assert ran(shop, *retire, "-y")[0] == 1
    for answer, code, left in (("y", 1, True), ("https://git.example.com/acme/other.git", 1, True), (shop.target.repository.url, 0, False)):
        assert typed(command(shop, *retire), [("type its repository", answer)], cwd=ROOT)[0] == code
        assert (shop.versions(documents) == before, any(map(shop.live, documents))) == (left, left)


def test_a_name_of_its_own_tells_what_is_retired_and_ends_it(shop: Shop, tmp_path: Path) -> None:
    shop.push(config_map(shop.name, "one"))
    assert run(second(shop), shop).outcome is Outcome.APPLIED
    file, *_ = beside(shop, tmp_path, installation="second")
    listed = json.loads(ran(shop, "-c", str(file), "status", "--offline", "-o", "json")[1])["retired"]
    (found,) = (each for each in listed if each["target"] == shop.name)
    assert not found["stranger"]
    assert found["next"].endswith(" --dry-run")
    code, shown = ran(shop, *shlex.split(found["next"].removesuffix(" --dry-run"))[1:], "-y")
    assert (code, shop.live(config_map(shop.name, "one"))) == (0, None), shown


def test_one_line_takes_the_records_of_all_targets_along_and_writes_no_object(shop: Shop, tmp_path: Path) -> None:
    documents = (config_map(shop.name, "one"), service(shop.name, "web"))
    shop.push(*documents)
    shop.applied()
    before, state = shop.versions(documents), shop.recorded()
    moved = {"installation": "second", "installation_from": "default"}
    whole = {"installation": "second", "installationFrom": "default"}
    target = {"name": shop.name, "repository": {"url": shop.target.repository.url}, "namespaces": list(shop.target.namespaces)}
    file, *_ = beside(shop, tmp_path, targets=[target], **whole)
    (row,) = json.loads(ran(shop, "-c", str(file), "status", "--offline", "-o", "json")[1])["targets"]
    assert row["commit"] == shop.head  # before any run
    assert ran(shop, "-c", str(file), "suspend", shop.name)[0] == 0  # a person's write takes it along, too
    assert label(shop) == "second"
    assert ran(shop, "-c", str(file), "resume", shop.name)[0] == 0
    new = second(shop, **moved)
    assert run(new, shop).outcome is Outcome.UNCHANGED
    assert shop.versions(documents) == before
    recorded = replace(shop.recorded(), history=state.history, status=state.status, drift_due=state.drift_due)
    assert recorded == replace(state, installation="second")
    refused = shop.run()  # of the configuration before
    assert refused.code == TargetMoved.code, told(refused)
    assert run(new, shop).outcome is Outcome.UNCHANGED
    assert shop.versions(documents) == before


def test_a_record_that_only_a_run_meets_is_taken_along_by_a_quiet_one(shop: Shop) -> None:
    shop.push(config_map(shop.name, "one"))
    shop.applied()
    assert run(second(shop, installation_from="default"), shop).outcome is Outcome.UNCHANGED
    assert label(shop) == "second"


def test_the_line_takes_no_record_of_another_repository(shop: Shop, tmp_path: Path) -> None:
    shop.push(config_map(shop.name, "one"))
    shop.applied()
    before, url = shop.versions(), f"{shop.target.repository.url}-other"
    target = replace(shop.target, repository=replace(shop.target.repository, url=url))
    moved = second(shop, installation_from="default", targets=(target,))
    assert run(moved, shop).code == TargetMoved.code
    of_another = {"name": shop.name, "repository": {"url": url}, "namespaces": [shop.name]}
    file, *_ = beside(shop, tmp_path, targets=[of_another], installation="second", installationFrom="default")
    code, refused = ran(shop, "-c", str(file), "suspend", shop.name)
    assert (code, "its record is of installation default" in refused) == (1, True), refused
    assert (shop.versions(), label(shop)) == (before, "default")


def test_instances_are_taken_along_and_one_whose_object_is_gone_ends(host: Host, kubectl: Kubectl, tmp_path: Path) -> None:
    widgets = WidgetOperator(host, kubectl, tmp_path)
    try:
        for name in ("a", "b"):
            widgets.create(name)
        widgets.cli("apply", widgets.name)
        whole = json.loads(widgets.config.read_text())
        widgets.config.write_text(json.dumps({**whole, "installation": "second", "installationFrom": whole["installation"]}))
        widgets.delete("b")
        widgets.cli("apply", widgets.name)
        assert (widgets.made(), widgets.records()) == ({"a-1": "1"}, {"a"})
        record = kubectl.ask("GET", f"/api/v1/namespaces/{widgets.name}/configmaps/anneal-{widgets.name}.{widgets.name}.a") or {}
        assert record["metadata"]["labels"][INSTALLATION] == "second"
    finally:
        widgets.close()


def test_status_lists_what_is_not_configured_any_more(shop: Shop, tmp_path: Path) -> None:
    shop.push(config_map(shop.name, "one"))
    shop.applied()
    file, target, whole = beside(shop, tmp_path)
    flags = ["-c", str(file), "--offline", "--kubeconfig", str(shop.kubectl.kubeconfig)]
    shown = CliRunner().invoke(anneal, ["status", *flags])
    assert f"retired: {shop.name} (ConfigMap/{STATES}/anneal-{shop.name} on cluster default, at {shop.head[:8]})" in shown.output
    found = json.loads(CliRunner().invoke(anneal, ["status", *flags, "-o", "json"]).output)
    assert {each["target"]: each["takenBy"] for each in found["retired"] if each["target"] == shop.name} == {shop.name: ""}
    file.write_text(yaml.safe_dump({**whole, "targets": [{**target, "renamedFrom": shop.name}]}))
    found = json.loads(CliRunner().invoke(anneal, ["status", *flags, "-o", "json"]).output)
    assert [each["takenBy"] for each in found["retired"] if each["target"] == shop.name] == [target["name"]]
