"""What is taken over of the `kubernetes` package: its models as JSON, the credentials of a configured client."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from kubernetes import client as vendor

from handler.cluster.vendor_models import body_of, connection_of, is_model, version_and_kind
from handler.model.errors import KubeconfigInvalid


def configured(**fields: Any) -> vendor.Configuration:
    found = vendor.Configuration()
    found.host = "https://api.example.com:6443/"
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def test_models_become_json_wherever_they_stand_and_values_of_ones_own() -> None:
    born = datetime.datetime(2026, 1, 31, tzinfo=datetime.UTC)
    metadata = vendor.V1ObjectMeta(name="web", creation_timestamp=born, owner_references=[])
    given = {"metadata": metadata, "data": {"a": ("b",)}}
    found = body_of(given)
    assert found == {
        "metadata": {"name": "web", "creationTimestamp": "2026-01-31T00:00:00+00:00", "ownerReferences": []},
        "data": {"a": ["b"]},
    }
    found["data"]["a"].append("c")
    assert given == {"metadata": metadata, "data": {"a": ("b",)}}


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (vendor.V1ConfigMap(), ("v1", "ConfigMap")),
        (vendor.V2HorizontalPodAutoscalerStatus.model_construct(), ("v2", "HorizontalPodAutoscalerStatus")),
        (vendor.V1beta1AllocatedDeviceStatus.model_construct(), ("v1beta1", "AllocatedDeviceStatus")),
        (vendor.CoreV1EventSeries(), None),
    ],
)
def test_a_models_class_says_version_and_kind_or_nothing(model: Any, named: tuple[str, str] | None) -> None:
    assert is_model(model)
    assert version_and_kind(model) == named


def test_a_token_is_asked_for_again_by_the_configurations_own_hook() -> None:
    tokens = iter(["first", "second"])

    def renew(configuration: vendor.Configuration) -> None:
        configuration.api_key["authorization"] = f"Bearer {next(tokens)}"

    connection = connection_of(configured(api_key={"authorization": "Bearer old"}, refresh_api_key_hook=renew))
    assert connection.host == "https://api.example.com:6443"
    assert connection.authorization() == "Bearer first"
    connection.refresh(connection.generation)
    assert connection.authorization() == "Bearer second"


def test_a_password_counts_without_a_token() -> None:
    assert connection_of(configured(username="ada", password="secret")).authorization() == "Basic YWRhOnNlY3JldA=="


def test_headers_of_a_client_are_refused_with_the_way_out() -> None:
    client = vendor.ApiClient(configured())
    assert connection_of(client).authorization() == ""
    client.default_headers["Impersonate-User"] = "eve"
    with pytest.raises(KubeconfigInvalid, match=r"sends Impersonate-User of its own.*Client\.of\(api_client\.configuration\)"):
        connection_of(client)
