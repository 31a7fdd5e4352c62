"""Two installations with one target name, two configurations without a name, one on another cluster, and a record restored there."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from handler.app.build import Handler
from handler.model.errors import TargetMoved
from handler.model.event import Job
from handler.model.names import state_name
from handler.model.result import Outcome, Result
from handler.state.configmap import INSTALLATION
from infra.githost import Host
from tests import in_process
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
    done = in_process.ran(["--kubeconfig", str(shop.kubectl.kubeconfig), *words])
    return done.returncode, done.stdout + done.stderr


def beside(shop: Shop, place: Path, **changes: Any) -> tuple[Path, dict[str, Any], dict[str, Any]]:
    """Write another configuration of the cluster, which has another target of the repository; return it in parts, too."""
    target = {"name": f"{shop.name}-other", "repository": {"url": shop.target.repository.url}, "namespaces": [f"{shop.name}-other"]}
    whole = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES, "targets": [target], **changes}
    file = place / "anneal.yaml"
    file.write_text(yaml.safe_dump(whole))
    return file, target, whole


def test_without_a_name_of_its_own_no_configuration_deletes_what_another_has(shop: Shop, tmp_path: Path) -> None:
    documents = (config_map(shop.name, "one"), service(shop.name, "web"))
    shop.push(*documents)
    shop.applied()
    before = shop.versions(documents)
    file, *_ = beside(shop, tmp_path)
    listed = json.loads(ran(shop, "-c", str(file), "status", "--offline", "-o", "json")[1])["retired"]
    (found,) = (each for each in listed if each["target"] == shop.name)
    assert found["stranger"]
    shown = ran(shop, "-c", str(file), "status", "--offline")[1]
    assert f"retired: {shop.name} (ConfigMap/{STATES}/anneal-{shop.name} on cluster default, at {shop.head[:8]})" in shown
    code, shown = ran(shop, *shlex.split(found["next"])[1:])  # what is advised
    assert (code, shop.versions(documents)) == (0, before), shown
    assert shop.target.repository.url in shown
    retire = ["-c", str(file), "retire", shop.name, "--prune"]
    command = [sys.executable, "-m", "handler", "--kubeconfig", str(shop.kubectl.kubeconfig), *retire]
    assert ran(shop, *retire, "-y")[0] == 1
    for answer, code, left in (("y", 1, True), ("https://git.example.com/acme/other.git", 1, True), (shop.target.repository.url, 0, False)):
        assert typed(command, [("type its repository", answer)], cwd=ROOT)[0] == code
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
