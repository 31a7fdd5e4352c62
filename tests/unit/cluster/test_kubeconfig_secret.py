"""Kubeconfigs of stores: each connection follows its own, tries again what failed for a while, and shows nothing while it uses it."""

from __future__ import annotations

import base64
import logging
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handler.cluster import connect as connecting
from handler.cluster.connect import connect
from handler.cluster.kubeconfig import SecretStore
from handler.config.settings import Cluster, Eks
from handler.model.errors import ClusterUnavailable, KubeconfigInvalid
from tests.rooms.source.certificates import Authority
from tests.unit.cluster.kubeconfig_in_a_secret import REF, TTL, Store, held, kubeconfig, later


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
