"""A kubeconfig in a secret store whose value a test changes, and its connection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from handler.cluster.connect import ClusterConnection, connect
from handler.cluster.kubeconfig import SecretStore
from handler.config.git_settings import AwsSecret, SecretRef
from handler.config.remote_secrets import RemoteSecrets, SecretClocks
from handler.config.settings import Cluster, Eks
from handler.model.errors import SecretUnavailable
from tests.patience import PATIENCE

REF = SecretRef(aws_secrets_manager=AwsSecret("anneal/prod"))
TTL = 60.0


def kubeconfig(server: str = "https://one", cluster: Mapping[str, Any] | None = None, **user: Any) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "main",
            "clusters": [
                {"name": "c", "cluster": {"server": server, **(cluster or {})}},
                {"name": "d", "cluster": {"server": "https://d"}},
            ],
            "users": [{"name": "u", "user": user or {"token": "CANARY-token-of-one"}}],
            "contexts": [
                {"name": "main", "context": {"cluster": "c", "user": "u"}},
                {"name": "spare", "context": {"cluster": "d", "user": "u"}},
            ],
        }
    )


class Store:
    """A store whose one value the test changes; None: it can't be read."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.asked = 0

    def __call__(self, ref: SecretRef) -> str:
        self.asked += 1
        if self.text is None:
            raise SecretUnavailable.of(str(ref), "can't be read", fix="allow it secretsmanager:GetSecretValue")
        return self.text


def held(text: str | None, **cluster: Any) -> tuple[Store, ClusterConnection]:
    store = Store(text)
    return store, connect(Cluster(kubeconfig=REF, **cluster), environ={}, store=SecretStore(store, TTL))


def _remote(connection: ClusterConnection) -> RemoteSecrets:
    assert connection._held
    assert connection._held._remote
    return connection._held._remote


def later(connection: ClusterConnection, monkeypatch: pytest.MonkeyPatch) -> str:
    """Ask for the authorization when what is known of the store is old, once its answer is there."""
    remote = _remote(connection)
    now = remote._clocks.monotonic() + TTL
    monkeypatch.setattr(remote, "_clocks", SecretClocks(lambda: now))
    for _ in range(2):  # the first question asks the store and waits for nothing
        monkeypatch.setattr(connection, "_asked", float("-inf"))
        connection.authorization()
        with remote._answered:
            assert remote._answered.wait_for(lambda: not remote._asked, PATIENCE)
    monkeypatch.setattr(connection, "_asked", float("-inf"))
    return connection.authorization()


@dataclass
class Described:
    """A cloud of one cluster."""

    server: str = "https://eks"
    made: str = "k8s-aws-v1.abc"

    def describe(self, _eks: Eks) -> tuple[str, str]:
        return self.server, ""

    def token(self, _eks: Eks, *, fresh: bool = False) -> str:
        return self.made
