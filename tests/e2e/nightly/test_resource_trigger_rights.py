"""An instance has the rights of the ServiceAccount in its object's namespace, the handler those that `anneal rbac` prints, and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.githost import Host
from tests.e2e.widget_operator import WidgetOperator
from tests.kubectl import Kubectl
from tests.patience import until

PROGRAM = """\
local c = import 'generic-operator/config';
local names = std.join(',', [each.metadata.name for each in import 'locutus-runtime/notes/list']);
{ objects: { account: {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: {name: 'of-' + c.metadata.name, annotations: {size: '%d' % c.spec.size, notes: names}},
} } }
"""
NOTES = {
    "name": "notes",
    "apiVersion": "v1",
    "kind": "Service",
    "labelSelector": {"matchLabels": {"note": "yes"}},
    "keyTransformations": [{"regex": "(.*)/(.*)-note", "replacement": "$1/$2"}],
}


@pytest.fixture
def widgets(host: Host, kubectl: Kubectl, tmp_path: Path) -> Iterator[WidgetOperator]:
    """An operator as accounts without any right but what `anneal rbac` prints."""
    made = WidgetOperator(host, kubectl, tmp_path, PROGRAM, trigger={"serviceAccount": "maker"}, listed=[NOTES])
    made.settings["cluster"] = {"kubeconfig": {"file": str(kubectl.account(f"{made.name}/anneal", tmp_path))}}
    kubectl.account(f"{made.name}/maker", tmp_path)
    made.configure()
    yield made
    made.close()
    kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{made.name}")


def test_an_instance_has_the_rights_of_the_account_of_its_namespace(widgets: WidgetOperator, kubectl: Kubectl) -> None:
    accounts = f"/api/v1/namespaces/{widgets.name}/serviceaccounts"

    def made() -> dict[str, str]:
        found = ((kubectl.ask("GET", f"{accounts}/of-a") or {}).get("metadata") or {}).get("annotations") or {}
        return {key: value for key, value in found.items() if key in ("size", "notes")}

    def note(name: str, namespace: str) -> None:
        metadata = {"name": name, "namespace": namespace, "labels": {"note": "yes"}}
        kubectl.apply({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}})

    widgets.create("a")
    note(f"{widgets.name}-note", "default")  # of a namespace that the account doesn't see
    for each in (widgets.name, f"{widgets.name}.{widgets.name}.a"):
        assert widgets.cli("rbac", each, "-f", str(widgets.work.directory)) == widgets.cli("rbac", each), "as its commit"
    kubectl.grant(widgets.cli("rbac", widgets.name, "--service-account", f"{widgets.name}/anneal"))
    widgets.serve()
    until(lambda: made() == {"size": "1", "notes": ""}, widgets.told)
    until(lambda: widgets.ready("a") == "True Applied", widgets.told)  # which the account may write, too
    note("a-note", widgets.name)
    until(lambda: made() == {"size": "1", "notes": "a-note"}, widgets.told)
    # what the account may no longer do, the handler doesn't do for it
    role = f"anneal-{widgets.name}.{widgets.name}-deployer"
    kubectl.run("delete", "rolebinding", role, "-n", widgets.name)
    kubectl.judges(f"{widgets.name}/maker", allows=False, namespace=widgets.name, verb="patch", resource="serviceaccounts")
    widgets.change("a", size=2)
    until(lambda: widgets.servers[0].runs(target=f"{widgets.name}.{widgets.name}.a", code="access-denied"), widgets.told)
    assert made() == {"size": "1", "notes": "a-note"}
    kubectl.grant(widgets.cli("rbac", widgets.name, "--service-account", f"{widgets.name}/anneal"))
    widgets.change("a", size=3)
    until(lambda: made() == {"size": "3", "notes": "a-note"}, widgets.told)
    widgets.delete("a")
    until(lambda: not made() and not widgets.records(), widgets.told)
    kubectl.run("delete", "service", f"{widgets.name}-note", "-n", "default")
