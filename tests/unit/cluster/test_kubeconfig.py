"""A kubeconfig that is a secret: from any place, renewed without a restart, tried again what failed, never relative to anything."""

from __future__ import annotations

import base64
import logging
import tempfile
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handler.cluster import connect as connecting
from handler.cluster.connect import connect
from handler.cluster.kubeconfig import SecretStore
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster, Eks
from handler.model.errors import ClusterUnavailable, KubeconfigInvalid, SecretUnavailable
from tests.rooms.source.certificates import Authority
from tests.unit.cluster.kubeconfig_in_a_secret import REF, TTL, Described, Store, held, kubeconfig, later

pytestmark = pytest.mark.slow


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


def certificate(directory: Path) -> str:
    """Make a certificate with its key, one text."""
    return Authority(directory, "client").certificate("one").read_text()


def test_two_connections_of_one_kubeconfig_secret_both_follow_its_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(kubeconfig())
    clusters = (Cluster(kubeconfig=REF), Cluster(kubeconfig=REF, server="https://one"))
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda cluster: connect(cluster, environ={}, store=SecretStore(store, TTL)), clusters))
    store.text = kubeconfig(token="CANARY-token-of-two")
    assert [later(connection, monkeypatch) for connection in both] == ["Bearer CANARY-token-of-two"] * 2


def test_a_connection_that_joins_anothers_load_reads_its_own_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: who came while another one loaded got its result, never read, and so never followed."""
    store, read = Store(kubeconfig()), []
    load = connecting._in_time

    def joined(call: Any, source: str, what: str, of: str = "") -> Any:
        read.append((what, of))
        return load(call, source, what, of)

    monkeypatch.setattr(connecting, "_in_time", joined)
    both = [connect(Cluster(kubeconfig=REF), environ={}, store=SecretStore(store, TTL)) for _ in range(2)]
    assert len(both) == 2  # and live: the id of one that is gone may be given again
    (first, second) = [of for what, of in read if what == "text"]
    (third, fourth) = [of for what, of in read if what == "credentials"]
    assert first != second, "each reads for itself"
    assert third == fourth, "the same text is loaded once at a time: its exec plugin may hang"


def test_a_kubeconfig_secret_that_failed_to_load_is_retried(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    store, connection = held(kubeconfig())
    store.text = kubeconfig(token="CANARY-token-of-two")
    load, down = connection._load, [True]

    def sometimes() -> Any:
        if down[0]:
            assert connection._held
            connection._held.read()
            raise ClusterUnavailable.of("x", "its credentials didn't come")
        return load()

    monkeypatch.setattr(connection, "_load", sometimes)
    now = [0.0]
    monkeypatch.setattr("handler.cluster.kubeconfig.time.monotonic", lambda: now[0])
    for now[0] in (0.0, 1.0, TTL):
        assert later(connection, monkeypatch) == "Bearer CANARY-token-of-one"
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "didn't come" in str(vars(warning)["fields"])
    down[0] = False
    now[0] = TTL + 1
    assert later(connection, monkeypatch) == "Bearer CANARY-token-of-one", "one try an interval"
    now[0] = 2 * TTL
    assert later(connection, monkeypatch) == "Bearer CANARY-token-of-two"


def test_a_rotation_whose_token_fails_keeps_the_kubeconfig_before(monkeypatch: pytest.MonkeyPatch) -> None:
    store, connection = held(kubeconfig())
    store.text = kubeconfig("https://two", token="CANARY-token-of-two")
    load = connecting._in_time

    def hangs(call: Any, source: str, what: str, of: str = "") -> Any:
        if (what, of) == ("token", "https://two"):
            raise ClusterUnavailable.of(source, "its token didn't come")
        return load(call, source, what, of)

    monkeypatch.setattr(connecting, "_in_time", hangs)
    assert later(connection, monkeypatch) == "Bearer CANARY-token-of-one"
    assert connection.host == "https://one"


def test_an_eks_cluster_without_aws_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text(kubeconfig("https://other"))
    with pytest.raises(KubeconfigInvalid, match=r"EKS cluster prod.*can't be reached here"):
        connect(Cluster(eks=Eks("prod")), environ={"KUBECONFIG": str(tmp_path / "other")})


def test_no_client_key_of_a_kubeconfig_stays_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pem = certificate(tmp_path)
    written = tmp_path / "written"
    written.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(written))
    data = dict.fromkeys(("client-certificate-data", "client-key-data"), base64.b64encode(pem.encode()).decode())
    authority = {"certificate-authority-data": data["client-certificate-data"]}
    store, connection = held(kubeconfig(cluster=authority, **data))
    store.text = kubeconfig("https://two", cluster=authority, **data)
    connection.refresh(connection.generation)
    assert connection.host == "https://two"
    assert list(written.iterdir()) == []
    given = connection.pool(1).connection_pool_kw
    assert (given["cert_file"], given["key_file"], given["ca_certs"], given["ca_cert_data"]) == (None, None, None, pem)
    assert given["ssl_context"].verify_mode.name == "CERT_REQUIRED"


def test_certificate_files_of_a_kubeconfig_are_read_at_each_connection(tmp_path: Path) -> None:
    names = {name: str(tmp_path / name) for name in ("ca", "cert", "key")}
    for file in names.values():
        Path(file).write_text(certificate(tmp_path))
    user = {"client-certificate": names["cert"], "client-key": names["key"]}
    (tmp_path / "config").write_text(kubeconfig(cluster={"certificate-authority": names["ca"]}, **user))
    given = connect(Cluster(), kubeconfig=str(tmp_path / "config"), environ={}).pool(1).connection_pool_kw
    assert (given["ca_certs"], given["cert_file"], given["key_file"]) == (names["ca"], names["cert"], names["key"])
    assert "ssl_context" not in given


def test_an_invalid_client_key_is_named_and_not_quoted(tmp_path: Path) -> None:
    pem = certificate(tmp_path)
    broken = base64.b64encode(b"-----BEGIN PRIVATE KEY-----\nCANARY\n-----END PRIVATE KEY-----\n").decode()
    user = {"client-certificate-data": base64.b64encode(pem.encode()).decode(), "client-key-data": broken}
    with pytest.raises(KubeconfigInvalid, match="anneal/prod: can't be read: SSLError") as caught:
        held(kubeconfig(cluster={}, **user))
    assert "CANARY" not in str(caught.value)
