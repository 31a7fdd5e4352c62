"""Exec plugins: what they print but a good answer is seen at a terminal alone, and each failure says what it was."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.cluster.connect import connect
from handler.config.git_settings import SecretRef
from handler.config.settings import Cluster
from handler.model.errors import ClusterUnavailable, KubeconfigInvalid
from tests.patience import until

pytestmark = pytest.mark.slow

V1 = "client.authentication.k8s.io/v1"
CANARY = "CANARY-only-the-plugin-knows"
TOKEN = {"token": "t0ken-of-the-plugin"}


def answer(status: object, version: str = V1) -> str:
    return f"echo '{json.dumps({'apiVersion': version, 'kind': 'ExecCredential', 'status': status})}'"


def kubeconfig(place: Path, script: str, **fields: Any) -> str:
    plugin, file = place / "plugin", place / "kubeconfig"
    plugin.write_text(f"#!/bin/sh\necho {CANARY} >&2\n{script}\n")
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    exec_ = {"apiVersion": V1, "command": str(plugin), "args": ["get-token"], **fields}
    named = {"name": "a"}
    file.write_text(
        yaml.safe_dump(
            {
                "current-context": "a",
                "contexts": [{**named, "context": {"cluster": "a", "user": "a"}}],
                "clusters": [{**named, "cluster": {"server": "https://one:6443"}}],
                "users": [{**named, "user": {"exec": exec_}}],
            }
        )
    )
    return str(file)


FAILURES = {
    "fails": ("exit 3", {}, "ended with exit code 3"),
    "is killed": ("kill -9 $$", {}, "ended with exit code -9"),
    "says nothing": ("", {}, "printed no ExecCredential with apiVersion and status"),
    "prints something else": (f"echo {CANARY}", {}, "printed no ExecCredential with apiVersion and status"),
    "answers a list": (f"echo '[\"{CANARY}\"]'", {}, "printed no ExecCredential with apiVersion and status"),
    "another version": (answer(TOKEN, CANARY), {}, f"answers in another apiVersion than the kubeconfig's, {V1}"),
    "no token": (answer({"oken": CANARY}), {}, "gave neither a token nor a certificate with its key"),
    "no key": (answer({"clientCertificateData": CANARY}), {}, "gave neither a token nor a certificate with its key"),
    "a token that is none": (answer({"token": [CANARY]}), {}, "gave neither a token nor a certificate with its key"),
    "no status": (answer(CANARY), {}, "gave neither a token nor a certificate with its key"),
    "isn't there": ("", {"command": "/nonexistent/plugin"}, "can't be started: No such file or directory"),
    "asks a person": (answer(TOKEN), {"interactiveMode": "Always"}, "asks a person, and there is no terminal"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_exec_plugin_is_named_without_its_output(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    script, fields, says = FAILURES[name]
    path = kubeconfig(tmp_path, script, **fields)
    with caplog.at_level(logging.DEBUG), pytest.raises(KubeconfigInvalid) as caught:
        connect(Cluster(), kubeconfig=path, context="a", environ={})
    command = fields.get("command", f"{tmp_path}/plugin")
    by_hand = f"KUBECONFIG={path} kubectl --context a version"
    assert str(caught.value) == f"kubeconfig {path}, context a: its exec plugin {command} {says}; it says why at a terminal: {by_hand}"
    assert CANARY not in "".join(capfd.readouterr()) + caplog.text
    assert not caplog.records, "the vendor's root logger says nothing either"


@pytest.mark.parametrize("terminal", [False, True])
def test_an_exec_plugin_that_hangs_is_named_with_its_user_and_ended_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr("handler.cluster.credentials._LIMIT", 1.0)
    path = kubeconfig(tmp_path, f"exec 9>{tmp_path}/held; echo begun >&9; sleep 3600 & sleep 3600")
    os.mkfifo(tmp_path / "held")
    held = os.open(tmp_path / "held", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(ClusterUnavailable) as caught:
        connect(Cluster(), kubeconfig=path, context="a", environ={}, terminal=terminal)
    seen = f"its exec plugin {tmp_path}/plugin gave no answer for user a in 1 s, and was ended; it says why at a terminal"
    assert str(caught.value) == f"kubeconfig {path}, context a: {seen}: KUBECONFIG={path} kubectl --context a version"
    until(lambda: has_ended(held))
    os.close(held)


def has_ended(pipe: int) -> bool:
    """Whether no process has the pipe open to write into it any more."""
    try:
        return not os.read(pipe, 100)
    except BlockingIOError:
        return False


def test_a_token_that_cant_be_renewed_in_time_counts_until_it_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    status = {**TOKEN, "expirationTimestamp": "2020-01-01T00:00:00Z"}
    made = connect(
        Cluster(), kubeconfig=kubeconfig(tmp_path, f"[ -e {tmp_path}/held ] && cat {tmp_path}/held; {answer(status)}"), environ={}
    )
    os.mkfifo(tmp_path / "held")
    monkeypatch.setattr("handler.cluster.credentials._LIMIT", 0.1)
    made._asked = float("-inf")
    assert made.authorization() == f"Bearer {TOKEN['token']}"
    (record,) = caplog.records
    assert "gave no answer for user a in 0.1 s" in record.fields["seen"]  # type: ignore[attr-defined]  # given by us


def test_an_exec_plugins_stderr_is_dropped(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = connect(Cluster(), kubeconfig=kubeconfig(tmp_path, answer(TOKEN)), environ={})
    assert made.authorization() == f"Bearer {TOKEN['token']}"
    assert "".join(capfd.readouterr()) == ""


def test_an_exec_plugins_stderr_is_shown_at_a_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KubeconfigInvalid):
        connect(Cluster(), kubeconfig=kubeconfig(tmp_path, "exit 1"), environ={}, terminal=True)
    assert capfd.readouterr().err == f"{CANARY}\n"


def test_an_exec_plugin_of_a_kubeconfig_secret_names_anneal_doctor(tmp_path: Path) -> None:
    text = Path(kubeconfig(tmp_path, "exit 1")).read_text()
    with pytest.raises(KubeconfigInvalid, match="exit code 1; it says why at a terminal: anneal doctor"):
        connect(Cluster(kubeconfig=SecretRef(env="KUBE")), environ={"KUBE": text})


def test_an_exec_plugin_gets_args_env_and_exec_info_and_no_stdin(tmp_path: Path) -> None:
    script = f'cat >{tmp_path}/stdin; echo "$1 $REGION" >{tmp_path}/given; echo "$KUBERNETES_EXEC_INFO" >{tmp_path}/info; {answer(TOKEN)}'
    fields = {"env": [{"name": "REGION", "value": "eu"}], "provideClusterInfo": True}
    connect(Cluster(), kubeconfig=kubeconfig(tmp_path, script, **fields), environ={})
    assert ((tmp_path / "stdin").read_text(), (tmp_path / "given").read_text()) == ("", "get-token eu\n")
    info = json.loads((tmp_path / "info").read_text())
    assert info == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://one:6443"}},
    }


def test_an_exec_plugins_last_token_counts_until_it_expires_and_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    status = {**TOKEN, "expirationTimestamp": "2020-01-01T00:00:00Z"}
    path = kubeconfig(tmp_path, f"[ -e {tmp_path}/broken ] && exit 1; {answer(status)}")
    made = connect(Cluster(), kubeconfig=path, environ={})
    (tmp_path / "broken").touch()
    for _ in range(3):
        made._asked = float("-inf")
        assert made.authorization() == f"Bearer {TOKEN['token']}"
    (record,) = caplog.records
    assert record.message == "a token can't be renewed; the one before still counts"
    assert "ended with exit code 1" in record.fields["seen"]  # type: ignore[attr-defined]  # given by us
    with pytest.raises(KubeconfigInvalid, match="exit code 1"):
        made.refresh(made.generation)
