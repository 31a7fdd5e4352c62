"""Which secret may speak for which repository. A repository's own secrets replace its provider's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from handler.config.settings import SecretRef, Settings, Target
from handler.model.match import Watched
from handler.triggers.signature import Secret

Resolve = Callable[[SecretRef], Secret]


@dataclass(frozen=True, slots=True)
class Keyring:
    """Per provider: every secret that is accepted at all, and those that may speak for each target."""

    accepted: Mapping[str, tuple[Secret, ...]]
    allowed: Mapping[tuple[str, str], tuple[Secret, ...]]

    def may_speak(self, provider: str, target: str, proves: Callable[[Secret], bool]) -> bool:
        """Say whether what was sent is proven by a secret of this target's repository."""
        return sum(proves(secret) for secret in self.allowed[provider, target]) > 0


def keyring(settings: Settings, resolve: Resolve) -> Keyring:
    """Resolve every webhook secret once. Raises what `resolve` raises (SecretUnavailable)."""
    shared = {"github": settings.webhooks.github.secrets, "gitlab": settings.webhooks.gitlab.secrets}
    accepted: dict[str, tuple[Secret, ...]] = {}
    allowed: dict[tuple[str, str], tuple[Secret, ...]] = {}
    for provider, references in shared.items():
        found = [*(resolve(reference) for reference in references)]
        for target in settings.targets:
            own = tuple(resolve(reference) for reference in target.repository.webhook.secrets or references)
            allowed[provider, target.name] = own
            found.extend(own)
        accepted[provider] = _each_once(found)
    return Keyring(accepted, allowed)


def watched(targets: Sequence[Target]) -> tuple[Watched, ...]:
    """Return the targets as matching sees them."""
    return tuple(Watched(target.name, (target.repository.url, *target.repository.aliases), target.revision.ref) for target in targets)


def _each_once(secrets: Sequence[Secret]) -> tuple[Secret, ...]:
    """Keep one of each value: every accepted secret costs one HMAC of each body."""
    return tuple({secret.reveal(): secret for secret in secrets}.values())
