"""A kubeconfig that is a secret: from any place, renewed without a restart, masked, and never relative to anything."""

from __future__ import annotations

import base64
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from handler.cluster.connect import ClusterConnection, connect
from handler.cluster.kubeconfig import SecretStore
from handler.config.git_settings import AwsSecret, SecretRef
from handler.config.remote_secrets import RemoteSecrets, SecretClocks
from handler.config.secret_mask import Mask
from handler.config.settings import Cluster, Eks
from handler.model.errors import KubeconfigInvalid, SecretUnavailable, ServerPinned

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
            assert remote._answered.wait_for(lambda: not remote._asked, 30)
    monkeypatch.setattr(connection, "_asked", float("-inf"))
    return connection.authorization()


def test_it_is_read_from_a_store_and_names_its_place() -> None:
    _, connection = held(kubeconfig())
    assert (connection.host, connection.authorization()) == ("https://one", "Bearer CANARY-token-of-one")
    assert connection.source == "kubeconfig of AWS secret anneal/prod"
    assert held(kubeconfig(), context="spare")[1].host == "https://d"


def test_it_is_read_from_an_environment_variable() -> None:
    environ = {"PROD": kubeconfig()}
    connection = connect(Cluster(kubeconfig=SecretRef(env="PROD")), environ=environ)
    assert connection.authorization() == "Bearer CANARY-token-of-one"
    assert connection.source == "kubeconfig of environment variable PROD"
    connection.refresh(connection.generation)
    with pytest.raises(SecretUnavailable, match="environment variable GONE: is not set"):
        connect(Cluster(kubeconfig=SecretRef(env="GONE")), environ=environ)


def test_a_rotated_one_counts_when_the_store_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store, connection = held(kubeconfig())
    store.text = kubeconfig("https://two", token="CANARY-token-of-two")
    monkeypatch.setattr(connection, "_asked", float("-inf"))
    assert connection.authorization() == "Bearer CANARY-token-of-one"
    assert later(connection, monkeypatch) == "Bearer CANARY-token-of-two"
    assert (connection.host, store.asked) == ("https://two", 2)


def test_after_a_401_it_is_read_at_once() -> None:
    store, connection = held(kubeconfig())
    store.text = kubeconfig(token="CANARY-token-of-two")
    connection.refresh(connection.generation)
    assert connection.authorization() == "Bearer CANARY-token-of-two"


@pytest.mark.parametrize("broken", ["a: [CANARY", kubeconfig("https://evil"), None])
def test_one_that_cant_be_used_leaves_the_one_before(
    broken: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, connection = held(kubeconfig(), server="https://one")
    store.text = broken
    for _ in range(3):
        assert later(connection, monkeypatch) == "Bearer CANARY-token-of-one"
    warnings = [vars(record) for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == (1 if broken else 0), "a store that can't be asked is no other kubeconfig"
    assert "CANARY" not in str(warnings)


def test_a_pin_is_for_it_too() -> None:
    with pytest.raises(ServerPinned):
        held(kubeconfig("https://evil"), server="https://one")


RECURSIVE = kubeconfig().replace("user:\n    token: CANARY-token-of-one", "user: &a {token: CANARY, again: *a}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("just text, CANARY", "holds no kubeconfig; its value is the whole text of a kubeconfig file"),
        ("a: [CANARY", "isn't YAML at line"),
        ("{}", "current-context|can't be read|Expected"),
        (None, "AWS secret anneal/prod: can't be read; allow it secretsmanager:GetSecretValue"),
        (" ", "AWS secret anneal/prod: is empty"),
        ("[" * 5000, "AWS secret anneal/prod: is nested too deeply"),
        (RECURSIVE, "AWS secret anneal/prod: is nested too deeply"),
    ],
)
def test_a_broken_one_is_named_and_not_quoted(text: str | None, told: str) -> None:
    with pytest.raises((KubeconfigInvalid, SecretUnavailable), match=told) as caught:
        held(text)
    assert "AWS secret anneal/prod" in str(caught.value)
    assert "CANARY" not in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "user", "told"),
    [
        ({"certificate-authority": "ca.pem"}, {"token": "t"}, r"certificate-authority is the relative path ca\.pem.*-data"),
        ({}, {"client-certificate": "a.crt", "client-key": "/b.key"}, r"client-certificate is the relative path a\.crt"),
        ({}, {"client-certificate-data": "YQ==", "client-key": "b.key"}, r"client-key is the relative path b\.key"),
        ({}, {"tokenFile": "../token"}, r"tokenFile is the relative path \.\./token.*name it by an absolute path"),
        ({}, {"exec": {"command": "./plugin"}}, r"exec\.command is the relative path \./plugin"),
    ],
)
def test_files_beside_it_are_nowhere(cluster: dict[str, Any], user: dict[str, Any], told: str) -> None:
    with pytest.raises(KubeconfigInvalid, match=told):
        held(kubeconfig(cluster=cluster, **user))


def test_all_of_its_credentials_are_masked() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nCANARYkeyCANARYkeyCANARYkey\n-----END PRIVATE KEY-----\n"
    data = base64.b64encode(key.encode()).decode()
    provider = {"name": "oidc", "config": {"id-token": "CANARY-id", "refresh-token": "CANARY-refresh"}}
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "true", "env": [{"name": "A", "value": "CANARY-env"}]}
    users = {"token": "CANARY-a-token", "password": "CANARY-a-password", "client-key-data": data, "exec": plugin, "auth-provider": provider}
    document = yaml.safe_load(kubeconfig())
    document["users"].append({"name": "other", "user": users})
    held(yaml.safe_dump(document))
    shown = Mask()(f"{users} {key} CANARY-token-of-one c main https://one")
    assert "CANARY" not in shown
    assert data not in shown
    assert "c main https://one" in shown, "names and addresses are no secrets"


@pytest.mark.parametrize("pin", ["", "https://one"])
@pytest.mark.parametrize("server", ["https://one:99999", "https://one:x", "one:6443", "https://", "ftp://one", "https://one\r\nX-Y: z"])
def test_an_address_that_is_none_is_named(server: str, pin: str) -> None:
    with pytest.raises(KubeconfigInvalid, match=r"anneal/prod: names a server by .*, which is no address of one; https://HOST"):
        held(kubeconfig(server), server=pin)


def test_a_proxy_that_is_none_isnt_quoted() -> None:
    _, connection = held(kubeconfig(cluster={"proxy-url": "http://user:CANARY@proxy:99999"}))
    with pytest.raises(KubeconfigInvalid, match="no connection can be made of it: LocationParseError") as caught:
        connection.pool(1)
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


@dataclass
class Described:
    """A cloud of one cluster."""

    server: str = "https://eks"
    made: str = "k8s-aws-v1.abc"

    def describe(self, _eks: Eks) -> tuple[str, str]:
        return self.server, ""

    def token(self, _eks: Eks, *, fresh: bool = False) -> str:
        return self.made


@pytest.mark.parametrize("server", ["http://eks", "eks", "file:///etc/passwd", "https://", "https://eks\r\nX-Y: z"])
def test_a_cluster_of_eks_is_spoken_to_encrypted_or_not_at_all(server: str) -> None:
    with pytest.raises(KubeconfigInvalid, match=r"EKS cluster prod.*(https|address)"):
        connect(Cluster(eks=Eks("prod")), environ={}, cloud=Described(server))


def test_a_cluster_of_eks_is_never_asked_anonymously(monkeypatch: pytest.MonkeyPatch) -> None:
    for token in ("", "a\r\nX-Y: z", "é"):
        with pytest.raises(KubeconfigInvalid, match="its token is empty, or can't be sent"):
            connect(Cluster(eks=Eks("prod")), environ={}, cloud=Described(made=token))
    cloud = Described()
    connection = connect(Cluster(eks=Eks("prod")), environ={}, cloud=cloud)
    assert connection.authorization() == "Bearer k8s-aws-v1.abc"
    cloud.made = ""
    monkeypatch.setattr(connection, "_asked", float("-inf"))
    with pytest.raises(KubeconfigInvalid, match="its token is empty"):
        connection.authorization()
