"""Azure DevOps service hooks: basic authentication, whose password is the secret; `git.push`, which lists all its refs.

https://learn.microsoft.com/azure/devops/service-hooks/events#git.push. Nothing is signed: a body is only as true as its TLS connection.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from handler.model.event import Event, RefChange
from handler.triggers import payload
from handler.triggers.signature import MAX_HEADER, WebhookSecret, delivery_id, header

_BASIC = re.compile(r"basic +([a-z0-9+/]+={0,2})", re.ASCII | re.IGNORECASE)
_SPELLINGS = ("remoteUrl", "sshUrl", "webUrl")


def proves(headers: Mapping[str, str], body: bytes, secret: WebhookSecret) -> bool:  # noqa: ARG001 - one signature for all providers
    """Say whether the password is this secret; the user name may be anything (RFC 7617)."""
    value = header(headers, "authorization")
    found = _BASIC.fullmatch(value) if len(value) <= MAX_HEADER else None
    try:
        _, colon, given = base64.b64decode(found[1] if found else "", validate=True).partition(b":")
    except ValueError:
        return False
    return bool(colon) and secret.matches(given)


def read(headers: Mapping[str, str], body: bytes) -> Event:
    """Read a delivery. Raises BadPayload."""
    document = payload.read(body)
    name = payload.event_name(payload.text(document, "eventType"), "eventType")
    delivery = delivery_id(headers, "x-vss-activityid") or delivery_id({"id": payload.text(document, "id")}, "id")
    if name != "git.push":
        return Event("azuredevops", "other", delivery, note=payload.unasked(name))
    resource = payload.section(document, "resource")
    if "refUpdates" not in resource:
        payload.refuse("resource.refUpdates is missing: set the subscription's `Resource details to send` to All")
    changes, more = payload.changes(resource, "refUpdates", _change)
    actor = payload.actor(payload.section(resource, "pushedBy"), "uniqueName", "displayName")
    if not changes:
        return Event("azuredevops", "other", delivery, actor=actor, note="a push without any branch or tag")
    urls = payload.urls(*payload.spellings(payload.section(resource, "repository"), _SPELLINGS))
    return Event("azuredevops", "push", delivery, urls, changes, more, actor)


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize the name of the event, which stands in the payload."""
    return {} if isinstance(document.get("eventType"), str) else None


def _change(update: dict[str, Any]) -> RefChange:
    ref, after = payload.ref(update, "name"), payload.sha(update, "newObjectId")
    # Of an annotated tag the new object is the tag, and nothing names its commit.
    return RefChange(ref, "" if ref.startswith("refs/tags/") else after, deleted=payload.gone(update, "newObjectId"))
