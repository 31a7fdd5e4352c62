"""Which kubeconfig is used, and what is said about a broken one."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.cluster.connect import connect
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster
from handler.model.errors import ClusterUnavailable, KubeconfigInvalid, ServerPinned
from tests.patience import PATIENCE

pytestmark = pytest.mark.slow


def write(path: Path, server: str = "https://one:6443", user: dict[str, Any] | None = None, **changes: Any) -> str:
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": server}}, {"name": "d", "cluster": {"server": "https://other:6443"}}],
        "users": [{"name": "u", "user": user if user is not None else {"token": "t0ken-value"}}],
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u"}},
            {"name": "spare", "context": {"cluster": "d", "user": "u"}},
        ],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(body | changes))
    return str(path)


def test_the_kubeconfig_flag_beats_target_environment_and_home(tmp_path: Path) -> None:
    flag, own = write(tmp_path / "flag", "https://flag"), write(tmp_path / "own", "https://own")
    named = write(tmp_path / "named", "https://named")
    write(tmp_path / ".kube" / "config", "https://home")
    cluster = Cluster(kubeconfig=SecretRef(file=own))
    home = {"HOME": str(tmp_path)}
    assert connect(cluster, kubeconfig=flag, environ=home | {"KUBECONFIG": named}).host == "https://flag"
    assert connect(cluster, environ=home | {"KUBECONFIG": named}).host == "https://own"
    assert connect(Cluster(), environ=home | {"KUBECONFIG": named}).host == "https://named"
    assert connect(Cluster(), environ=home).host == "https://home"


def test_the_context_flag_beats_the_targets(tmp_path: Path) -> None:
    path = write(tmp_path / "a")
    assert connect(Cluster(context="spare"), kubeconfig=path, environ={}).host == "https://other:6443"
    assert connect(Cluster(context="spare"), kubeconfig=path, context="main", environ={}).host == "https://one:6443"


def test_the_master_flag_keeps_the_credentials_and_the_server_pin(tmp_path: Path) -> None:
    path, master = write(tmp_path / "a"), "http://127.0.0.1:8001/"
    connection = connect(Cluster(), kubeconfig=path, master=master, environ={})
    assert (connection.host, connection.authorization()) == ("http://127.0.0.1:8001", "Bearer t0ken-value")
    with pytest.raises(ServerPinned):
        connect(Cluster(server="https://one:6443"), kubeconfig=path, master=master, environ={})
    for nowhere in ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}):
        alone = connect(Cluster(), master=master, environ=nowhere)
        assert (alone.host, alone.authorization()) == ("http://127.0.0.1:8001", ""), "the pod's token goes nowhere else"
    with pytest.raises(KubeconfigInvalid, match="no address"):
        connect(Cluster(), kubeconfig=path, master="one:6443", environ={})


def test_a_rotated_token_is_read_anew_on_refresh(tmp_path: Path) -> None:
    path = write(tmp_path / "a")
    connection = connect(Cluster(), kubeconfig=path, environ={})
    write(tmp_path / "a", user={"token": "new"})
    connection.refresh(connection.generation)
    assert connection.authorization() == "Bearer new"


def plugin(path: Path, script: str) -> dict[str, Any]:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(path), "interactiveMode": "Never"}}


def test_many_requests_with_401_at_once_run_the_exec_plugin_once(tmp_path: Path) -> None:
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "from-plugin"}}'
    path = write(tmp_path / "a", user=plugin(tmp_path / "plugin", f"echo x >>{tmp_path}/asked; echo '{answer}'"))
    connection = connect(Cluster(), kubeconfig=path, environ={})
    asked_with = connection.generation
    before = len((tmp_path / "asked").read_text().splitlines())
    for _ in range(8):
        connection.refresh(asked_with)
    assert len((tmp_path / "asked").read_text().splitlines()) == 2 * before


def test_an_exec_plugin_that_hangs_is_an_error_and_started_once_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "at-last"}}'
    script = f"echo x >>{tmp_path}/asked; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; echo '{answer}'"
    path = write(tmp_path / "a", user=plugin(tmp_path / "plugin", script))
    monkeypatch.setattr("handler.cluster.connect._PATIENCE", 0.2)
    for _ in range(3):
        with pytest.raises(ClusterUnavailable, match=r"didn't come in 0\.2 s: an exec plugin hangs"):
            connect(Cluster(), kubeconfig=path, environ={})
    monkeypatch.setattr("handler.cluster.connect._PATIENCE", PATIENCE)
    (tmp_path / "go").touch()
    assert connect(Cluster(), kubeconfig=path, environ={}).authorization() == "Bearer at-last"
    assert len((tmp_path / "asked").read_text().splitlines()) <= 2, "the one that hung, and the vendor's second question"


def test_callers_that_wait_for_a_hanging_exec_plugin_share_its_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "first"}}'
    script = f"echo '{answer}'"
    connection = connect(Cluster(), kubeconfig=write(tmp_path / "a", user=plugin(tmp_path / "plugin", script)), environ={})
    waits: list[float] = []

    def hangs(_load: Any, source: str, what: str, _of: str = "") -> Any:
        waits.append(1)
        raise KubeconfigInvalid.of(source, f"its {what} didn't come")

    monkeypatch.setattr("handler.cluster.connect._in_time", hangs)
    monkeypatch.setattr(connection, "_asked", float("-inf"))
    for renew in (connection.authorization, connection.authorization, lambda: connection.refresh(connection.generation)):
        with pytest.raises(KubeconfigInvalid, match="didn't come"):
            renew()
    assert len(waits) == 1
    monkeypatch.undo()
    connection._failed = (float("-inf"), KubeconfigInvalid.of("old", "long ago"))
    connection.refresh(connection.generation)
    assert connection.authorization() == "Bearer first"


def test_a_silent_exec_plugin_is_refused_rather_than_anonymous(tmp_path: Path) -> None:
    path = write(tmp_path / "a", user=plugin(tmp_path / "plugin", "exit 3"))
    with pytest.raises(
        KubeconfigInvalid, match=rf"plugin ended with exit code 3; it says why at a terminal: KUBECONFIG={path} kubectl version"
    ):
        connect(Cluster(), kubeconfig=path, environ={})


@pytest.mark.parametrize("pin", ["https://ONE:6443", "https://one:6443/"])
def test_a_server_pin_of_the_same_address_passes(pin: str, tmp_path: Path) -> None:
    assert connect(Cluster(server=pin), kubeconfig=write(tmp_path / "a"), environ={})


@pytest.mark.parametrize("pin", ["https://two:6443", "http://one:6443", "https://one", "https://one:6443/clusters/a"])
def test_a_server_pin_of_another_address_names_both(pin: str, tmp_path: Path) -> None:
    with pytest.raises(ServerPinned) as caught:
        connect(Cluster(server=pin), kubeconfig=write(tmp_path / "a"), environ={})
    assert pin in str(caught.value)
    assert "https://one:6443" in str(caught.value)


def test_what_is_for_another_server_is_refused_naming_both(tmp_path: Path) -> None:
    connection = connect(Cluster(), kubeconfig=write(tmp_path / "a"), environ={})
    connection.refuse_other_server("https://ONE:6443/", "kubernixos.server")
    with pytest.raises(ServerPinned, match=r"points to https://one:6443, but kubernixos\.server pins https://two:6443"):
        connection.refuse_other_server("https://two:6443", "kubernixos.server")
    with pytest.raises(KubeconfigInvalid, match="no address of one"):
        connection.refuse_other_server("k8s.example.com", "kubernixos.server")


def test_a_kubeconfig_swapped_during_a_run_meets_the_server_pin(tmp_path: Path) -> None:
    connection = connect(Cluster(server="https://one:6443"), kubeconfig=write(tmp_path / "a"), environ={})
    write(tmp_path / "a", "https://evil:6443")
    with pytest.raises(ServerPinned):
        connection.refresh(connection.generation)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is empty|isn't|can't"),
        ("a: [", "isn't YAML at line"),
        ("just text", "can't be read|Invalid"),
        ("apiVersion: v1\nkind: Config\nusers:\n- name: u\n  user: {token: t0ken-value}\n", "current-context|Expected"),
        ("current-context: x\ncontexts: []\nclusters: []\nusers: [{name: u, user: {token: t0ken-value}}]\n", "name x"),
        ("current-context: x\ncontexts: 5\n", "can't be read|Expected"),
    ],
)
def test_a_broken_kubeconfig_is_named_and_its_tokens_arent_shown(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text(text)
    with pytest.raises(KubeconfigInvalid, match=told) as caught:
        connect(Cluster(), kubeconfig=str(path), environ={})
    assert str(path) in str(caught.value)
    assert "t0ken-value" not in str(caught.value)


def test_missing_kubeconfig_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigInvalid, match="there is no such file"):
        connect(Cluster(), kubeconfig=str(tmp_path / "absent"), environ={})
    path = write(tmp_path / "a", user={"client-certificate": str(tmp_path / "absent.crt"), "client-key": str(tmp_path / "absent.key")})
    with pytest.raises(KubeconfigInvalid, match=r"absent\.crt"):
        connect(Cluster(), kubeconfig=path, environ={})
    with pytest.raises(KubeconfigInvalid, match="pass --kubeconfig FILE"):
        connect(Cluster(), environ={"HOME": str(tmp_path)})


def test_in_cluster_outside_a_pod_says_what_is_missing() -> None:
    with pytest.raises(KubeconfigInvalid, match="the pod's service account"):
        connect(Cluster(in_cluster=True), environ={"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"})
