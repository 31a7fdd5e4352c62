"""Exec plugins of kubeconfigs (client.authentication.k8s.io): programs that print credentials.

A plugin's standard error goes to a terminal, as with kubectl, or nowhere: it may hold unmasked secrets. Its answer is never quoted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from handler.cluster.kubeconfig_context import Malformed, Node
from handler.config import secret_mask
from handler.model.errors import KubeconfigInvalid

MASKED = 7200.0
"""Seconds for which credentials stay masked; credentials in use are masked anew before that."""
_FIELDS = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")


@dataclass(frozen=True, slots=True)
class Plugins:
    """Runs the plugins of one kubeconfig, `source`; `by_hand`: the command that shows their output; `terminal`: they may prompt."""

    source: str
    by_hand: str
    terminal: bool = False

    def run(self, plugin: Node, cluster: Node) -> Mapping[str, str]:
        """Run a user's plugin; return its answer's status: a token, or a certificate with its key.

        Raises Malformed: the kubeconfig doesn't say what to run; KubeconfigInvalid: it can't be started, fails, or answers anything
        else.
        """
        command, version = _required(plugin, "command"), _required(plugin, "apiVersion")
        mode = plugin.fields.get("interactiveMode", "IfAvailable")
        asks = self.terminal and mode != "Never" and sys.stdin.isatty()
        if mode == "Always" and not asks:
            raise self._wrong(command, "asks a person, and there is no terminal")
        spec: dict[str, Any] = {"interactive": asks}
        if plugin.fields.get("provideClusterInfo"):
            spec["cluster"] = _described(cluster.fields)
        info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
        named = {each["name"]: each["value"] for each in plugin.fields.get("env") or ()}
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own kubeconfig names it
                [command, *(plugin.fields.get("args") or ())],
                stdin=None if asks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if self.terminal else subprocess.DEVNULL,
                cwd=cluster.directory or None,
                env={**os.environ, **named, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                check=False,
            )
        except OSError as error:
            raise self._wrong(command, f"can't be started: {error.strerror}") from None
        if done.returncode:
            raise self._wrong(command, f"ended with exit code {done.returncode}")
        return self._status(command, version, done.stdout)

    def _status(self, command: str, asked: str, answer: bytes) -> Mapping[str, str]:
        try:
            document = json.loads(answer)
            status, version = document["status"], document["apiVersion"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._wrong(command, "printed no ExecCredential with apiVersion and status") from None
        if version != asked:
            raise self._wrong(command, f"answers in another apiVersion than the kubeconfig's, {asked}")
        found = {key: status[key] for key in _FIELDS if isinstance(status, dict) and isinstance(status.get(key), str) and status[key]}
        if "token" not in found and not {"clientCertificateData", "clientKeyData"} <= found.keys():
            raise self._wrong(command, "gave neither a token nor a certificate with its key")
        secret_mask.learn(*(found[key] for key in ("token", "clientKeyData") if key in found), seconds=MASKED)
        return found

    def _wrong(self, command: str, seen: str) -> KubeconfigInvalid:
        fix = f"it tells why at a terminal: {self.by_hand}"
        return KubeconfigInvalid.of(self.source, f"its exec plugin {command} {seen}", fix=fix)


def _required(plugin: Node, key: str) -> str:
    if key not in plugin:
        raise Malformed(f"exec: malformed request. missing key '{key}'")
    found: str = plugin.get(key)
    return found


def _described(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cluster's fields for a plugin with provideClusterInfo."""
    extensions = cluster.get("extensions") or ()
    config = [each["extension"] for each in extensions if each["name"] == "client.authentication.k8s.io/exec"]
    return {**cluster, "config": config[0]} if config else dict(cluster)
