"""Gitea and Forgejo: bare hex HMAC-SHA256 over the raw body in `X-Gitea-Signature`, `X-Forgejo-Signature` or both.

https://docs.gitea.com/usage/webhooks, https://forgejo.org/docs/latest/user/webhooks. GitHub's headers, which they send as well, aren't
read. A test delivery is a push. A deleted branch comes as a `delete` event, a deleted tag as a push, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.model.event import Event, RefChange
from handler.triggers import payload
from handler.triggers.signature import WebhookSecret, delivery_id, header, signed_sha256

_NAMES = ("gitea", "forgejo")
_SPELLINGS = ("clone_url", "ssh_url", "html_url")


def proves(headers: Mapping[str, str], body: bytes, secret: WebhookSecret) -> bool:
    """Say whether this secret signed the body. Forgejo sends both headers: none of them may be wrong."""
    given = [value for name in _NAMES if (value := header(headers, f"x-{name}-signature"))]
    return bool(given) and all(signed_sha256(secret, body, value) for value in given)


def read(headers: Mapping[str, str], body: bytes) -> Event:
    """Read a delivery. Raises BadPayload."""
    document = payload.read(body)
    name = payload.event_name(_either(headers, "event"), "X-Gitea-Event")
    delivery = delivery_id(headers, "x-gitea-delivery") or delivery_id(headers, "x-forgejo-delivery")
    actor = payload.actor(payload.section(document, "sender"), "login") or payload.actor(payload.section(document, "pusher"), "login")
    if name == "push":
        return _push(document, delivery, actor)
    return Event("gitea", "other", delivery, actor=actor, note=payload.unasked(name))


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize a push by its `compare_url`, which GitHub's lacks."""
    return {"X-Gitea-Event": "push"} if {"ref", "repository", "compare_url"} <= set(document) else None


def _either(headers: Mapping[str, str], what: str) -> str:
    return next((value for name in _NAMES if (value := header(headers, f"x-{name}-{what}"))), "")


def _push(document: dict[str, Any], delivery: str, actor: str) -> Event:
    ref = payload.ref(document)
    return Event(
        provider="gitea",
        kind="push",
        delivery=delivery,
        urls=payload.urls(*payload.spellings(payload.section(document, "repository"), _SPELLINGS)),
        changes=(RefChange(ref, payload.commit_after(document, ref), deleted=payload.gone(document)),),
        actor=actor,
    )
