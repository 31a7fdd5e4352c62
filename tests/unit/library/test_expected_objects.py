"""What programs may hand to `reconcile` by mistake or chance, and what other threads and other programs do meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from handler.library import ReconcileFailed, reconcile
from tests.unit.library.cluster_in_memory import LABELS, Cluster, config, named


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_named_kind_may_be_served_since(cluster: Cluster) -> None:
    reconcile(cluster.client, config("goes"))
    asked = list[str]()
    cluster.client.refresh = lambda: asked.append("refresh")  # type: ignore[method-assign]  # counted
    with pytest.raises(ReconcileFailed, match="isn't served"):
        reconcile(cluster.client, [], "n", LABELS, kinds=["Nothing.example.com"])
    assert asked == ["refresh"]
    assert reconcile(cluster.client, [], "n", LABELS, kinds="ConfigMap").deleted == (named("goes"),)


def test_keys_that_are_numbers_become_text_and_what_has_no_shape_is_said(cluster: Cluster) -> None:
    body = config("ports", {8080: "web", "a": "1"})  # type: ignore[dict-item]  # as YAML may have it
    assert reconcile(cluster.client, body).created
    assert not reconcile(cluster.client, body).changed
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "shops.example.com"}}
    endless = config("endless")
    endless["data"] = endless
    for wrong in (
        endless,
        config("half", {"a": "\ud800"}),
        *(crd | {"spec": spec} for spec in ("x", {"names": "x"}, {"group": ["x"], "names": {}})),
    ):
        with pytest.raises(ReconcileFailed):
            reconcile(cluster.client, [wrong, config("good"), 17])
    assert not cluster.live("good")


def test_an_object_whose_kind_ends_with_list_is_no_list(cluster: Cluster) -> None:
    listed = {"apiVersion": "example.com/v1", "kind": "AccessList", "metadata": {"name": "x", "namespace": "n"}, "items": ["a"]}
    with pytest.raises(ReconcileFailed, match=r"AccessList/n/x: example.com/v1 AccessList isn't served"):
        reconcile(cluster.client, listed)


def test_what_a_secrets_string_data_declares_no_more_goes(cluster: Cluster) -> None:
    secret: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}}
    reconcile(cluster.client, {**secret, "data": {"c": "Mw=="}, "stringData": {"a": "1", "b": "2"}})
    reconcile(cluster.client, {**secret, "stringData": {"a": "1"}})
    live = cluster.live("s", "Secret")
    assert live
    assert live["data"] == {"a": "MQ=="}
