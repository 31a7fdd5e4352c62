"""Exec plugins of kubeconfigs (client.authentication.k8s.io): a program that prints what signs in.

Law: a plugin's standard error is seen by a person at a terminal alone, as with kubectl; elsewhere it goes nowhere, for it may hold
anything and no mask knows it. Nothing of its answer is repeated either. The vendor's runner tells all of that to the root logger.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubernetes.config import ConfigException
from kubernetes.config.dateutil import parse_rfc3339
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import FileOrData, KubeConfigLoader

from handler.config import masking
from handler.model.errors import KubeconfigInvalid

MASKED = 7200.0
"""Seconds that credentials stay masked; whoever still uses them says so again in time."""
_Loader: Any = KubeConfigLoader  # the vendor's classes carry no types
_Provider: Any = ExecProvider
_FileOrData: Any = FileOrData
_moment: Any = parse_rfc3339
_FIELDS = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")
_LOG = logging.getLogger("anneal.cluster")


@dataclass(frozen=True, slots=True)
class Plugins:
    """How plugins of one kubeconfig are run. `source`: its name in messages; `by_hand`: the command that shows what they say.

    `terminal`: a person waits at a terminal, so a plugin may speak to him and ask him.
    """

    source: str
    by_hand: str
    terminal: bool = False

    def run(self, node: Any, directory: str, cluster: Any) -> Mapping[str, str]:
        """Run the plugin of a user and return its answer's status: a token, or a certificate with its key.

        Raises:
            KubeconfigInvalid: it can't be started, fails, or answers anything else.
        """
        provider = _Provider(node, directory, cluster)  # reads the fields
        mode = node.value.get("interactiveMode", "IfAvailable")
        asks = self.terminal and mode != "Never" and sys.stdin.isatty()
        if mode == "Always" and not asks:
            raise self._wrong(provider, "asks a person, and there is no terminal")
        spec: dict[str, Any] = {"interactive": asks}
        if provider.cluster:
            spec["cluster"] = _described(provider.cluster.value)
        info = {"apiVersion": provider.api_version, "kind": "ExecCredential", "spec": spec}
        environ = {**provider.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
        try:
            done = subprocess.run(  # noqa: S603 - the operator's own kubeconfig names it
                provider.args,
                stdin=None if asks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if self.terminal else subprocess.DEVNULL,
                cwd=provider.cwd,
                env=environ,
                check=False,
            )
        except OSError as error:
            raise self._wrong(provider, f"can't be started: {error.strerror}") from None
        if done.returncode:
            raise self._wrong(provider, f"ended with exit code {done.returncode}")
        return self._status(provider, done.stdout)

    def _status(self, provider: Any, answer: bytes) -> Mapping[str, str]:
        try:
            document = json.loads(answer)
            status, version = document["status"], document["apiVersion"]
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._wrong(provider, "printed no ExecCredential with apiVersion and status") from None
        if version != provider.api_version:
            raise self._wrong(provider, f"answers in another apiVersion than the kubeconfig's, {provider.api_version}")
        found = {key: status[key] for key in _FIELDS if isinstance(status, dict) and isinstance(status.get(key), str) and status[key]}
        if "token" not in found and not {"clientCertificateData", "clientKeyData"} <= found.keys():
            raise self._wrong(provider, "gave neither a token nor a certificate with its key")
        masking.learn(*(found[key] for key in ("token", "clientKeyData") if key in found), seconds=MASKED)
        return found

    def _wrong(self, provider: Any, seen: str) -> KubeconfigInvalid:
        fix = f"it tells why at a terminal: {self.by_hand}"
        return KubeconfigInvalid.of(self.source, f"its exec plugin {provider.args[0]} {seen}", fix=fix)


class Loader(_Loader):  # type: ignore[misc]  # see above
    """The vendor's loader of kubeconfigs, with plugins that are run as above. No failure is swallowed, so no request goes out unsigned."""

    def __init__(self, *, plugins: Plugins, **given: Any) -> None:
        """Keep how plugins are run; the vendor's own arguments are `given`."""
        self._plugins = plugins
        self._said = ""
        super().__init__(**given)

    def _load_from_exec_plugin(self) -> bool:
        """Sign in by the user's plugin; where that fails before the last token has ended, that one still counts."""
        if "exec" not in self._user:
            return False
        directory = self._get_base_path(self._cluster.path)
        try:
            status = self._plugins.run(self._user["exec"], directory, self._cluster)
        except (KubeconfigInvalid, ConfigException) as error:
            if "token" not in self.__dict__:
                raise
            self._say(str(error))
            return True
        self._said = ""
        if "token" in status:
            self.token = f"Bearer {status['token']}"
        else:
            self.cert_file, self.key_file = (
                _FileOrData(status, None, data_key_name=name, file_base_path=directory, base64_file_content=False).as_file()
                for name in ("clientCertificateData", "clientKeyData")
            )
        if "expirationTimestamp" in status:
            self.expiry = _moment(status["expirationTimestamp"])
        return True

    def _say(self, seen: str) -> None:
        """Say, once, why a token isn't renewed."""
        if seen != self._said:
            _LOG.warning("a token can't be renewed; the one before still counts", extra={"fields": {"seen": seen}})
        self._said = seen


def _described(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a plugin that asks for it is told of the cluster."""
    extensions = cluster.get("extensions") or ()
    config = [each["extension"] for each in extensions if each["name"] == "client.authentication.k8s.io/exec"]
    return {**cluster, "config": config[0]} if config else dict(cluster)
