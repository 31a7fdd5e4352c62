"""Bearer tokens: the name of a token, its targets and its acts. 401 first, then 403, then 404: without a token nothing is revealed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from handler.config.instance_target import configured_as
from handler.config.secrets import Accepting
from handler.config.settings import Act, ReplayToken, Settings
from handler.model.errors import BadSignature, Forbidden, SenderError
from handler.model.instance import is_covered
from handler.triggers.signature import MAX_HEADER


class PathNotFound(SenderError, code="not-found", status=404):
    """No such target, run or path, within what the token may see."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """The configured tokens. `failed`: called for each request without a valid one."""

    secrets: Accepting
    failed: Callable[[], None]

    def bearer(self, authorization: str) -> ReplayToken:
        """Return the token that an Authorization header carries. Raises BadSignature."""
        scheme, _, value = authorization.partition(" ")
        usable = scheme.lower() == "bearer" and value.isascii() and len(value) <= MAX_HEADER
        found = self.secrets.token(value.encode()) if usable else None
        if found is None:
            self.failed()
            raise BadSignature.of("token", "missing or wrong bearer token")
        return found


def require(token: ReplayToken, act: Act) -> None:
    """Raise Forbidden unless a token may do this."""
    if act not in token.may:
        raise Forbidden.of(f"token {token.name}", f"may not {act}")


def touches(token: ReplayToken, target: str) -> bool:
    """Whether a target lies within a token's bounds."""
    return is_covered(target, token.targets)


def configured(token: ReplayToken, target: str, settings: Settings) -> None:
    """Raise Forbidden for a target beyond the token's bounds, PathNotFound for one that isn't configured.

    An instance is configured by its template: that it exists, only the cluster says.
    """
    if not touches(token, target):
        raise Forbidden.of(f"token {token.name}", "may not touch this target")
    if configured_as(settings, target) is None:
        raise PathNotFound.of(f"target {target[:64]}", "isn't configured")
