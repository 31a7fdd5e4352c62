"""Credentials of a kubeconfig's user in the order of `kubernetes.config`, renewed before they end. No failure is swallowed.

An exec plugin's standard error goes to a terminal, as with kubectl, or nowhere: it may hold secrets. Its answer is never quoted. One that
gives none in time is ended with all that it has started, unless it asks a person at a terminal.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from urllib3 import make_headers

from handler.cluster.kubeconfig_context import KubeconfigContext, Malformed, Node
from handler.cluster.pool import Content
from handler.model.errors import ClusterUnavailable, KubeconfigInvalid

_LIMIT = 25.0  # seconds for a plugin's answer, below `connect`'s patience, so that it is the one to say why
_FIELDS = ("token", "clientCertificateData", "clientKeyData", "expirationTimestamp")


@dataclass(frozen=True, slots=True)
class Plugins:
    """Runs the plugins of one kubeconfig, `source`; `by_hand`: the command that shows their output; `terminal`: they may prompt."""

    source: str
    by_hand: str
    terminal: bool = False

    def run(self, plugin: Node, cluster: Node, user: str) -> Mapping[str, str]:
        """Run a user's plugin; return a token, or a certificate with its key.

        Raises Malformed: no command; KubeconfigInvalid: it fails; ClusterUnavailable: it gives no answer in time.
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
            process = subprocess.Popen(  # noqa: S603 - the operator's own kubeconfig names it
                [command, *(plugin.fields.get("args") or ())],
                stdin=None if asks else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if self.terminal else subprocess.DEVNULL,
                cwd=cluster.directory or None,
                env={**os.environ, **named, "KUBERNETES_EXEC_INFO": json.dumps(info)},
                process_group=None if asks else 0,  # only the terminal's own group may read from it
            )
        except OSError as error:
            raise self._wrong(command, f"can't be started: {error.strerror}") from None
        with process:
            answer = process.communicate()[0] if asks else self._answer(process, command, user)  # people take their time
        if process.returncode:
            raise self._wrong(command, f"ended with exit code {process.returncode}")
        return self._status(command, version, answer)

    def _answer(self, process: subprocess.Popen[bytes], command: str, user: str) -> bytes:
        end = partial(_end, process.pid)
        atexit.register(end)  # it ends with this process, too
        try:
            return process.communicate(timeout=_LIMIT)[0]
        except subprocess.TimeoutExpired:
            end()
            seen = self._wrong(command, f"gave no answer for user {user} in {_LIMIT:g} s, and was ended")
            raise ClusterUnavailable(*seen.problems) from None
        finally:
            atexit.unregister(end)

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
        return found

    def _wrong(self, command: str, seen: str) -> KubeconfigInvalid:
        fix = f"it says why at a terminal: {self.by_hand}"
        return KubeconfigInvalid.of(self.source, f"its exec plugin {command} {seen}", fix=fix)


def _end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _required(plugin: Node, key: str) -> str:
    if key not in plugin:
        raise Malformed(f"exec: malformed request. missing key '{key}'")
    found: str = plugin.get(key)
    return found


def _described(cluster: Mapping[str, Any]) -> dict[str, Any]:
    extensions = cluster.get("extensions") or ()
    config = [each["extension"] for each in extensions if each["name"] == "client.authentication.k8s.io/exec"]
    return {**cluster, "config": config[0]} if config else dict(cluster)


if TYPE_CHECKING:
    from handler.cluster.auth_provider import Provider

_PROVIDERS = frozenset({"gcp", "oidc"})
_EARLY = timedelta(minutes=5)  # before its end a token is renewed
_LOG = logging.getLogger("anneal.cluster")


class Credentials:
    """The credentials of one context. Raises KubeconfigInvalid, Malformed, OSError, and what fields of a wrong type raise."""

    def __init__(self, context: KubeconfigContext, plugins: Plugins, provided: Callable[[], Provider]) -> None:
        self.provider: Provider | None = None
        self._context = context
        self._plugins = plugins
        self._provided = provided
        self._said = ""
        self._authorization = ""
        self._expiry: datetime | None = None
        self._certificate: tuple[Content, Content] | None = None
        self._load()

    @property
    def certificate(self) -> tuple[Content, Content]:
        """The certificate and its key: a plugin's, else what the user's fields hold or name."""
        user, directory = self._context.user, self._context.cluster.directory
        if self._certificate:
            return self._certificate
        return (user.content("client-certificate", directory), user.content("client-key", directory)) if user else ("", "")

    def authorization(self) -> str:
        """Return the `Authorization` value, renewed where it ends soon; empty: there is none."""
        if self._authorization and self._expiry and self._expiry - _EARLY <= datetime.now(UTC):
            self._load()
        return self._authorization

    def _load(self) -> None:
        user = self._context.user
        if user and user.fields:
            _ = self._by_provider(user) or self._by_token(user) or self._by_plugin(user) or self._by_password(user)

    def _by_provider(self, user: Node) -> bool:
        if "auth-provider" not in user:
            return False
        named = user.node("auth-provider")
        if "name" not in named or named.get("name") not in _PROVIDERS:
            return False
        self.provider = self.provider or self._provided()
        token, self._expiry = self.provider.token()
        return self._bears(token)

    def _by_token(self, user: Node) -> bool:
        if "token" in user:
            return self._bears(user.get("token"))
        return "tokenFile" in user and self._bears(Path(user.path("tokenFile", user.directory)).read_text())

    def _bears(self, token: str) -> bool:
        if token:
            self._authorization = f"Bearer {token}"
        return bool(token)

    def _by_plugin(self, user: Node) -> bool:
        """Sign in by the user's plugin; if it fails, the last token counts until its end."""
        if "exec" not in user:
            return False
        try:
            status = self._plugins.run(user.node("exec"), self._context.cluster, self._context.user_name)
        except (ClusterUnavailable, KubeconfigInvalid, Malformed) as error:
            if not self._authorization:
                raise
            self._say(str(error))
            return True
        self._said = ""
        if not self._bears(status.get("token", "")):
            self._certificate = status["clientCertificateData"].encode(), status["clientKeyData"].encode()
        if "expirationTimestamp" in status:
            self._expiry = _moment(status["expirationTimestamp"])
        return True

    def _by_password(self, user: Node) -> bool:
        if "username" not in user or "password" not in user:
            return False
        self._authorization = make_headers(basic_auth=user.get("username") + ":" + user.get("password"))["authorization"]
        return True

    def _say(self, seen: str) -> None:
        if seen != self._said:
            _LOG.warning("a token can't be renewed; the one before still counts", extra={"fields": {"seen": seen}})
        self._said = seen


def _moment(text: str) -> datetime:
    found = datetime.fromisoformat(text.strip().upper())
    return found if found.tzinfo else found.replace(tzinfo=UTC)
