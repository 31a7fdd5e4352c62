"""What makes targets run: webhooks, whose bytes and headers become a verified Event, and what asks by itself. No I/O, no framework.

Law: the raw body is verified before anything in it is read, and whatever is sent ends as an Event, BadSignature or BadPayload.
A new provider is one file with `proves`, `read` and `shape`, and one row here. The row is chosen by the URL's path, never by a header.
What asks for runs (`anneal run --trigger NAME`) is a row, too, and has no path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from handler.config.secrets import Accepted
from handler.model.errors import BadSignature
from handler.model.event import Event
from handler.model.run_trigger import RUN_TRIGGERS
from handler.model.run_trigger import RunTrigger as RunTrigger
from handler.triggers import azuredevops, bitbucket, generic, gitea, github, gitlab
from handler.triggers.signature import WebhookSecret


@dataclass(frozen=True, slots=True)
class Webhook:
    """A provider. `proves(headers, body, secret)`: that secret signed it. `read(headers, body)`: the Event; raises BadPayload.

    `shape(document)`: the headers that name the event of such a payload, None when its pushes and pings look otherwise.
    """

    proves: Callable[[Mapping[str, str], bytes, WebhookSecret], bool]
    read: Callable[[Mapping[str, str], bytes], Event]
    shape: Callable[[dict[str, Any]], dict[str, str] | None]

    def verified(self, headers: Mapping[str, str], body: bytes, accepted: Sequence[Accepted]) -> tuple[Event, frozenset[str]]:
        """Return the Event, and the targets that its secret may speak for; every secret is tried. Raises BadSignature, BadPayload."""
        proven = [each.targets for each in accepted if self.proves(headers, body, each.secret)]
        if not proven:
            raise unproven()
        return self.read(headers, body), frozenset[str]().union(*proven)


def unproven() -> BadSignature:
    """Return the one refusal of all that isn't proven; it says nothing more."""
    return BadSignature.of("webhook", "missing or wrong signature")


Trigger = Webhook | RunTrigger
TRIGGERS: Mapping[str, Trigger] = {
    "github": Webhook(github.proves, github.read, github.shape),
    "gitlab": Webhook(gitlab.proves, gitlab.read, gitlab.shape),
    "gitea": Webhook(gitea.proves, gitea.read, gitea.shape),
    "bitbucket": Webhook(bitbucket.proves, bitbucket.read, bitbucket.shape),
    "azuredevops": Webhook(azuredevops.proves, azuredevops.read, azuredevops.shape),
    "generic": Webhook(generic.proves, generic.read, generic.shape),
    **RUN_TRIGGERS,
}


def webhook_rows(rows: Mapping[str, Trigger]) -> dict[str, Webhook]:
    """Return those of a table's rows that have a path."""
    return {name: row for name, row in rows.items() if not isinstance(row, RunTrigger)}


WEBHOOKS = webhook_rows(TRIGGERS)
