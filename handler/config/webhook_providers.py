"""The providers under `webhooks`: the stock ones, and those that a program adds. A name is a path, a key and a field: `[a-z][a-z0-9]*`."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import make_dataclass
from functools import cache
from typing import cast

from handler.config.git_settings import WebhookSecrets
from handler.config.settings import WebhookSettings
from handler.config.settings_shape import doc, slots
from handler.model.errors import ConfigInvalid

NAME = re.compile(r"[a-z][a-z0-9]*")


def providers(webhooks: type) -> tuple[str, ...]:
    """Return the providers that a class has secrets of."""
    return tuple(slot.name for slot in slots(webhooks) if slot.type is WebhookSecrets)


STOCK = providers(WebhookSettings)


def webhooks_of(names: Collection[str]) -> type[WebhookSettings]:
    """Return the class with a field for each of these providers, too. Raises ConfigInvalid: a name can't be a path and a key."""
    odd = sorted(name for name in names if not NAME.fullmatch(name))
    if odd:
        raise ConfigInvalid.of(f"trigger {odd[0]!r}", "can't be a path and a key", fix="name it by small letters and digits, e.g. acme")
    return _extended(tuple(name for name in names if name not in STOCK))


@cache
def _extended(names: tuple[str, ...]) -> type[WebhookSettings]:
    if not names:
        return WebhookSettings
    fields = [(name, WebhookSecrets, doc(f"Secrets of {name}.", factory=WebhookSecrets)) for name in names]
    return cast("type[WebhookSettings]", make_dataclass("WebhookSettings", fields, bases=(WebhookSettings,), frozen=True, slots=True))
