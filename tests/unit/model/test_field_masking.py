"""No secret value is ever shown."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.field_masking import masked, shown
from handler.model.names import GroupKind

SECRET, OTHER = GroupKind("", "Secret"), GroupKind("apps", "Deployment")
CANARY = "canary-0123456789"


@pytest.mark.parametrize(
    ("kind", "path", "value", "text"),
    [
        (SECRET, "data.password", "c2VjcmV0", "***"),
        (SECRET, "data", {"a": "c2VjcmV0"}, "***"),
        (SECRET, "type", "Opaque", "Opaque"),
        (SECRET, "metadata.labels.app", "shop", "shop"),
        (SECRET, "metadata.labels", {"app": "shop"}, '{"app": "shop"}'),
        (OTHER, "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration", "{}", "***"),
        (OTHER, "metadata.annotations.kapp.k14s.io/original", "{}", "***"),
        (OTHER, "metadata.annotations.objectset.rio.cattle.io/applied", "{}", "***"),
        (OTHER, "spec.password", "hunter2", "***"),
        (OTHER, "spec.apiKey", "hunter2", "***"),
        (OTHER, "spec.image", "shop:1", "shop:1"),
        (OTHER, "spec.replicas", 3, "3"),
        (OTHER, "spec.gone", None, ""),
        (OTHER, "spec.secretName", "tls", "tls"),
        (OTHER, "spec.env[name=DB_PASSWORD].value", "hunter2", "***"),
        (OTHER, "spec.env", [{"name": "DB_PASSWORD", "value": "hunter2"}], '[{"name": "DB_PASSWORD", "value": "***"}]'),
        (OTHER, "spec", {"token": "hunter2", "secret": {"name": "x"}}, '{"token": "***", "secret": {"name": "x"}}'),
        (OTHER, "spec.env[name=DATABASE_URL].value", "postgres://shop:hunter2@db/shop", "postgres://shop:***@db/shop"),
        (OTHER, "spec.hosts", ["amqp://:hunter2@mq", "https://example.com:443/a@b"], '["amqp://:***@mq", "https://example.com:443/a@b"]'),
        (OTHER, "spec.url", "postgres://u:p@ss/w'rd@host/db", "postgres://u:***@host/db"),
        (OTHER, "spec.url", "https://ghp_0123456789abcdefghij@git.example.com/a", "https://***@git.example.com/a"),
        (OTHER, "spec.url", "ssh://git@git.example.com/a", "ssh://git@git.example.com/a"),
        (OTHER, "spec.tokens[0]", "hunter2", "***"),
        (OTHER, "spec.passwords[0]", "hunter2", "***"),
        (OTHER, "spec.maxTokens", 4096, "4096"),
        (OTHER, "spec.imagePullSecrets[0]", {"name": "registry"}, '{"name": "registry"}'),
        (OTHER, "spec.long", "x" * 300, "x" * 200 + "…"),
    ],
)
def test_a_value_is_shown_only_if_anyone_may_read_it(kind: GroupKind, path: str, value: Any, text: str) -> None:
    assert shown(kind, path, value) == text


def test_a_whole_object_is_masked_in_its_shape() -> None:
    metadata = {"name": "login", "labels": {"app": "shop"}, "annotations": {"note": CANARY}}
    secret = masked({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"password": CANARY}})
    assert secret["metadata"] == {"name": "login", "labels": {"app": "shop"}, "annotations": {"note": "***"}}
    assert (secret["kind"], secret["type"], secret["data"]) == ("Secret", "Opaque", {"password": "***"})
    other = masked({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"api_token": CANARY, "colour": "red"}})
    assert other["data"] == {"api_token": "***", "colour": "red"}
