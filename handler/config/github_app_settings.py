"""How to sign in as a GitHub App, as frozen values: to read git, or to write what the host shows of commits."""

from __future__ import annotations

from dataclasses import dataclass

from handler.config.secret_ref import SecretRef
from handler.config.settings_shape import doc as _doc


@dataclass(frozen=True, slots=True)
class GitHubAppAuth:
    """A GitHub App: short-lived installation tokens, made from its key."""

    app_id: str = _doc("App id or client id.", kind="appId")
    installation_id: int = _doc("Installation id.", kind="number")
    private_key: SecretRef = _doc("The app's private key, PEM.")
    api_url: str = _doc("The API; of an Enterprise Server e.g. https://github.example.com/api/v3.", "https://api.github.com", kind="server")
