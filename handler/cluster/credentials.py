"""Credentials of a kubeconfig's user: certificate, token, exec plugin or auth-provider; renewed before they end.

The order is that of `kubernetes.config`. No failure is swallowed, so no request goes out without credentials.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from urllib3 import make_headers

from handler.cluster.exec_plugin import Plugins
from handler.cluster.kubeconfig_context import KubeconfigContext, Malformed, Node
from handler.cluster.pool import Content
from handler.model.errors import KubeconfigInvalid

if TYPE_CHECKING:
    from handler.cluster.auth_provider import Provider

_PROVIDERS = frozenset({"gcp", "oidc"})
_EARLY = timedelta(minutes=5)  # before its end a token is renewed
_LOG = logging.getLogger("anneal.cluster")


class Credentials:
    """The credentials of one context. `provided`: loads its auth-provider.

    Raises KubeconfigInvalid, Malformed, OSError, and what fields of a wrong type raise.
    """

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
            status = self._plugins.run(user.node("exec"), self._context.cluster)
        except (KubeconfigInvalid, Malformed) as error:
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
    """Read an RFC 3339 time, UTC without a zone. Raises ValueError."""
    found = datetime.fromisoformat(text.strip().upper())
    return found if found.tzinfo else found.replace(tzinfo=UTC)
