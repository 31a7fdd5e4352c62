"""A kubeconfig that is a secret: from any place, renewed without a restart, and never relative to anything."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import pytest

from handler.cluster.connect import connect
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster, Eks
from handler.model.errors import KubeconfigInvalid, SecretUnavailable, ServerPinned
from tests.unit.cluster.kubeconfig_in_a_secret import Described, held, kubeconfig, later


def test_a_kubeconfig_secret_is_read_from_its_store() -> None:
    _, connection = held(kubeconfig())
    assert (connection.host, connection.authorization()) == ("https://one", "Bearer CANARY-token-of-one")
    assert connection.source == "kubeconfig of AWS secret anneal/prod"
    assert held(kubeconfig(), context="spare")[1].host == "https://d"


def test_a_kubeconfig_is_read_from_an_environment_variable() -> None:
    environ = {"PROD": kubeconfig()}
    connection = connect(Cluster(kubeconfig=SecretRef(env="PROD")), environ=environ)
    assert connection.authorization() == "Bearer CANARY-token-of-one"
    assert connection.source == "kubeconfig of environment variable PROD"
    connection.refresh(connection.generation)
    with pytest.raises(SecretUnavailable, match="environment variable GONE: is not set"):
        connect(Cluster(kubeconfig=SecretRef(env="GONE")), environ=environ)


def test_a_rotated_kubeconfig_counts_after_the_secrets_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    store, connection = held(kubeconfig())
    store.text = kubeconfig("https://two", token="CANARY-token-of-two")
    monkeypatch.setattr(connection, "_asked", float("-inf"))
    assert connection.authorization() == "Bearer CANARY-token-of-one"
    assert later(connection, monkeypatch) == "Bearer CANARY-token-of-two"
    assert (connection.host, store.asked) == ("https://two", 2)


def test_a_kubeconfig_secret_is_read_at_once_after_a_401() -> None:
    store, connection = held(kubeconfig())
    store.text = kubeconfig(token="CANARY-token-of-two")
    connection.refresh(connection.generation)
    assert connection.authorization() == "Bearer CANARY-token-of-two"


@pytest.mark.parametrize("broken", ["a: [CANARY", kubeconfig("https://evil"), None])
def test_an_unusable_rotated_kubeconfig_leaves_the_one_before(
    broken: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, connection = held(kubeconfig(), server="https://one")
    store.text = broken
    for _ in range(3):
        assert later(connection, monkeypatch) == "Bearer CANARY-token-of-one"
    warnings = [vars(record) for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == (1 if broken else 0), "a store that can't be asked is no other kubeconfig"
    assert "CANARY" not in str(warnings)


def test_the_server_pin_holds_for_a_kubeconfig_secret() -> None:
    with pytest.raises(ServerPinned):
        held(kubeconfig("https://evil"), server="https://one")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("just text, CANARY", "holds no kubeconfig; its value is the whole text of a kubeconfig file"),
        ("a: [CANARY", "isn't YAML at line"),
        ("{}", "current-context|can't be read|Expected"),
        (None, "AWS secret anneal/prod: can't be read; allow it secretsmanager:GetSecretValue"),
        (" ", "AWS secret anneal/prod: is empty"),
        ("[" * 5000, "AWS secret anneal/prod: is nested too deeply"),
    ],
)
def test_a_broken_kubeconfig_secret_is_named_and_not_quoted(text: str | None, told: str) -> None:
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
def test_relative_files_of_a_kubeconfig_secret_are_refused(cluster: dict[str, Any], user: dict[str, Any], told: str) -> None:
    with pytest.raises(KubeconfigInvalid, match=told):
        held(kubeconfig(cluster=cluster, **user))


@pytest.mark.parametrize("pin", ["", "https://one"])
@pytest.mark.parametrize("server", ["https://one:99999", "https://one:x", "one:6443", "https://", "ftp://one", "https://one\r\nX-Y: z"])
def test_an_invalid_server_address_is_refused(server: str, pin: str) -> None:
    with pytest.raises(KubeconfigInvalid, match=r"anneal/prod: names a server by .*, which is no address of one; https://HOST"):
        held(kubeconfig(server), server=pin)


def test_an_invalid_proxy_url_isnt_quoted() -> None:
    _, connection = held(kubeconfig(cluster={"proxy-url": "http://user:CANARY@proxy:99999"}))
    with pytest.raises(KubeconfigInvalid, match="no connection can be made of it: LocationParseError") as caught:
        connection.pool(1)
    assert "CANARY" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("server", ["http://eks", "eks", "file:///etc/passwd", "https://", "https://eks\r\nX-Y: z"])
def test_an_eks_cluster_without_https_is_refused(server: str) -> None:
    with pytest.raises(KubeconfigInvalid, match=r"EKS cluster prod.*(https|address)"):
        connect(Cluster(eks=Eks("prod")), environ={}, cloud=Described(server))


def test_an_eks_cluster_is_never_asked_without_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
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
