"""How one target's plans on pull requests are judged, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass

from handler.config.settings_shape import doc as _doc


@dataclass(frozen=True, slots=True)
class PullRequestSettings:
    """Whose rights the API server judges plans on pull requests by."""

    identity: str = _doc(
        "ServiceAccount, as namespace/name, by whose rights its objects are dry-run; an admission policy must refuse its real writes.",
        kind="serviceAccount",
    )
