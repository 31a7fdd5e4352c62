"""`reconcile` on a real control plane: what a program may hand over, drift, a kind made in the same call, no reads by a lister."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as vendor
from kubernetes import config as vendor_config

from handler.library import Client, Lister, ReconcileFailed, reconcile
from handler.model.names import Identity
from tests.kubectl import Kubectl
from tests.patience import until
from tests.rooms.cluster.faulty_proxy import Wire

LABELS = {"app": "shop"}


@pytest.fixture
def client(control_plane: Path) -> Client:
    return Client(control_plane)


@pytest.fixture
def group(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """A group whose kind Shop the test makes."""
    found = f"{namespace}.example.com"
    yield found
    kubectl.run("delete", "crd", f"shops.{found}", "--ignore-not-found", "--wait=false")


def crd(group: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 1}}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"shops.{group}"},
        "spec": {
            "group": group,
            "names": {"plural": "shops", "kind": "Shop"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def shop(group: str, namespace: str, name: str = "main", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"{group}/v1",
        "kind": "Shop",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS},
        "spec": spec,
    }


def deployment(namespace: str, image: str = "none:1") -> vendor.V1Deployment:
    port = vendor.V1ContainerPort(container_port=80)
    container = vendor.V1Container(name="web", image=image, ports=[port], resources=vendor.V1ResourceRequirements(requests={"cpu": "0.5"}))
    template = vendor.V1PodTemplateSpec(metadata=vendor.V1ObjectMeta(labels=LABELS), spec=vendor.V1PodSpec(containers=[container]))
    spec = vendor.V1DeploymentSpec(replicas=0, selector=vendor.V1LabelSelector(match_labels=LABELS), template=template)
    return vendor.V1Deployment(metadata=vendor.V1ObjectMeta(name="web", namespace=namespace, labels=LABELS), spec=spec)


def config(namespace: str, name: str = "settings", value: str = "1") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}


def reads_of(wire: Wire, *places: str) -> list[str]:
    """Return the paths below which a client has read, but for watches; others read there, too, so the API server's count is no judge."""
    reads = [path for method, path in wire.seen if method == "GET" and "watch=true" not in path]
    return [path for path in reads if any(place in path for place in places)]


def test_models_dicts_and_a_new_kind_are_created_repaired_and_deleted(client: Client, kubectl: Kubectl, namespace: str, group: str) -> None:
    objects = [crd(group), shop(group, namespace, size=3), deployment(namespace), config(namespace)]
    created = reconcile(client, objects, namespace, LABELS)
    assert {each.kind for each in created.created} == {"CustomResourceDefinition", "Shop", "Deployment", "ConfigMap"}
    assert len(reconcile(client, objects, namespace, LABELS).unchanged) == 4
    kubectl.run(
        "patch", "deployment", "web", "-n", namespace, "--type=json", "-p", _set("/spec/template/spec/containers/0/image", "drift:1")
    )
    kubectl.run("patch", f"shops.{group}", "main", "-n", namespace, "--type=merge", "-p", '{"spec":{"size":9}}')
    repaired = reconcile(client, objects, namespace, LABELS)
    assert {(each.identity.kind, *(one.path for one in each.fields)) for each in repaired.updated} == {
        ("Deployment", "spec.template.spec.containers[name=web].image"),
        ("Shop", "spec.size"),
    }
    done = reconcile(client, [crd(group), deployment(namespace, "none:2")], namespace, "app=shop", kinds=("ConfigMap", f"{group}/v1/Shop"))
    assert [each.kind for each in done.deleted] == ["ConfigMap", "Shop"]
    assert [one.path for one in done.updated[0].fields] == ["spec.template.spec.containers[name=web].image"]


def _set(path: str, value: str) -> str:
    return f'[{{"op":"replace","path":"{path}","value":"{value}"}}]'


def test_a_named_kind_may_be_made_in_the_same_call_or_by_others_since(client: Client, kubectl: Kubectl, namespace: str, group: str) -> None:
    kinds = (f"{group}/v1/Shop",)
    with pytest.raises(ReconcileFailed, match="isn't served"):
        reconcile(client, [], namespace, LABELS, kinds)
    made = reconcile(client, [crd(group), shop(group, namespace), config(namespace)], namespace, LABELS, kinds)
    assert len(made.created) == 3
    other = Client(kubectl.kubeconfig)
    until(lambda: other.find(f"{group}/v1", "Shop"))
    assert len(reconcile(other, [], namespace, LABELS, (f"Shop.{group}", "ConfigMap")).deleted) == 2


def test_the_order_of_containers_and_variables_is_repaired(client: Client, kubectl: Kubectl, namespace: str) -> None:
    def ordered(names: str) -> vendor.V1Deployment:
        found = deployment(namespace)
        assert found.spec
        assert found.spec.template.spec
        found.spec.template.spec.init_containers = [vendor.V1Container(name=name, image="none:1") for name in names]
        found.spec.template.spec.containers[0].env = [vendor.V1EnvVar(name=name.upper(), value="1") for name in names]
        return found

    reconcile(client, ordered("abc"))
    assert reconcile(client, ordered("cab")).updated
    live = kubectl("get", "deployment", "web", "-n", namespace)["spec"]["template"]["spec"]
    assert [each["name"] for each in (*live["initContainers"], *live["containers"][0]["env"])] == ["c", "a", "b", "C", "A", "B"]
    assert not reconcile(client, ordered("cab")).changed


def test_a_closed_lister_and_one_of_another_process_are_refused(
    client: Client, kubectl: Kubectl, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Lister(client, namespaces=namespace) as lister:
        assert reconcile(client, config(namespace), lister=lister).created
        with monkeypatch.context() as patched:
            patched.setattr("os.getpid", lambda: 1)
            with pytest.raises(ReconcileFailed, match=r"forked from.*make a Lister here"):
                reconcile(client, config(namespace), lister=lister)
    kubectl.run("delete", "configmap", "settings", "-n", namespace)
    with pytest.raises(ReconcileFailed, match="the lister: is closed"):
        reconcile(client, config(namespace), lister=lister)


def test_a_thousand_reconciles_of_unchanged_objects_cost_no_read(wire: Wire, namespace: str, group: str, tmp_path: Path) -> None:
    client = Client(wire.kubeconfig(tmp_path / "proxied"))
    objects = [crd(group), *(shop(group, namespace, f"s{number}", size=number) for number in range(3)), config(namespace)]
    reconcile(client, objects)
    with Lister(client) as lister:
        assert not reconcile(client, objects, namespace, LABELS, lister=lister).changed
        places = (f"/apis/{group}/", f"/namespaces/{namespace}/")
        before, sent = reads_of(wire, *places), client.api.requests
        assert before
        for _ in range(1000):
            assert not reconcile(client, objects, namespace, LABELS, lister=lister).changed
        assert client.api.requests == sent
        assert reads_of(wire, *places) == before
        client.get(client.find(f"{group}/v1", "Shop"), namespace, "s0")  # type: ignore[arg-type]  # it is served
        assert len(reads_of(wire, *places)) == len(before) + 1


def test_a_lister_reads_its_own_writes_and_hears_of_drift(client: Client, kubectl: Kubectl, namespace: str) -> None:
    with Lister(client, namespaces=[namespace]) as lister:
        for value in ("1", "2", "3"):
            assert reconcile(client, config(namespace, value=value), namespace, LABELS, lister=lister).changed
            assert not reconcile(client, config(namespace, value=value), namespace, LABELS, lister=lister).changed
        kubectl.run("patch", "configmap", "settings", "-n", namespace, "--type=merge", "-p", '{"data":{"a":"drift"}}')
        until(lambda: reconcile(client, config(namespace, value="3"), namespace, LABELS, lister=lister).updated)
        assert reconcile(client, config(namespace, "other"), namespace, LABELS, lister=lister).deleted
        assert not reconcile(client, config(namespace, "other"), namespace, LABELS, lister=lister).changed
        with pytest.raises(ReconcileFailed, match="isn't one that the lister follows"):
            reconcile(client, config("default"), lister=lister)


def test_a_lister_without_rights_says_so_and_nothing_is_written(
    control_plane: Path, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    kubectl.run("create", "serviceaccount", "operator", "-n", namespace)
    kubectl.run("create", "rolebinding", "operator", "-n", namespace, "--clusterrole=edit", f"--serviceaccount={namespace}:operator")
    client = Client(control_plane)
    client.api._headers["Impersonate-User"] = f"system:serviceaccount:{namespace}:operator"
    with Lister(client) as lister, pytest.raises(ReconcileFailed, match=r"ConfigMap/.*/settings: .*configmaps"):
        reconcile(client, config(namespace), lister=lister)
    with Lister(client, namespaces=[namespace]) as lister:
        assert reconcile(client, config(namespace), lister=lister).created == (Identity("", "ConfigMap", namespace, "settings"),)


def test_a_configured_client_of_the_kubernetes_package_is_taken_over(control_plane: Path, namespace: str) -> None:
    configuration = vendor.Configuration()
    vendor_config.load_kube_config(str(control_plane), client_configuration=configuration)  # type: ignore[no-untyped-call]  # it has no types
    with vendor.ApiClient(configuration) as configured:
        assert reconcile(Client.of(configured), config(namespace)).created
        assert not reconcile(Client.of(configuration), config(namespace)).changed
        configured.set_default_header("Impersonate-User", "someone")
        with pytest.raises(Exception, match=r"Impersonate-User of its own.*Client.of\(api_client.configuration\)"):
            Client.of(configured)


def test_nothing_is_kept_of_what_others_delete(client: Client, kubectl: Kubectl, namespace: str) -> None:
    with Lister(client) as lister:
        reconcile(client, [deployment(namespace)], lister=lister)
        assert client.verdicts, "the server writes 0.5 as 500m, so that its word is kept"
        kubectl.run("delete", "deployment", "web", "-n", namespace)
        until(lambda: not client.verdicts)


def test_an_expected_object_isnt_deleted_as_another_kind(client: Client, kubectl: Kubectl, namespace: str) -> None:
    about = {"apiVersion": "v1", "kind": "Pod", "name": "x", "namespace": namespace}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": namespace, "labels": LABELS}}
    for _ in range(2):
        done = reconcile(client, [event | {"involvedObject": about}], namespace, LABELS, kinds=("events.k8s.io/v1/Event",))
        assert done.deleted == ()
    kubectl.run("get", "event", "e", "-n", namespace)
