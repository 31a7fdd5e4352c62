"""GitHub: `X-Hub-Signature-256` over the raw body; push, tag push and ping.

https://docs.github.com/webhooks/webhook-events-and-payloads. SHA-1 signatures are refused. A redelivery keeps its id, so ids
are never used to drop a delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.model.event import Event, RefChange
from handler.triggers import payload
from handler.triggers.signature import WebhookSecret, delivery_id, header, signed_sha256

_SPELLINGS = ("clone_url", "ssh_url", "git_url", "html_url")


def proves(headers: Mapping[str, str], body: bytes, secret: WebhookSecret) -> bool:
    """Say whether this secret signed the body."""
    return signed_sha256(secret, body, header(headers, "x-hub-signature-256"), "sha256=")


def read(headers: Mapping[str, str], body: bytes) -> Event:
    """Read a delivery. Raises BadPayload."""
    document = payload.read(body)
    name = payload.event_name(header(headers, "x-github-event"), "X-GitHub-Event")
    delivery = delivery_id(headers, "x-github-delivery")
    if name == "push":
        return _push(document, delivery)
    actor = payload.actor(payload.section(document, "sender"), "login")
    if name == "ping":
        urls = payload.spellings(payload.section(document, "repository"), _SPELLINGS)
        return Event("github", "ping", delivery, urls=urls, actor=actor)
    return Event("github", "other", delivery, actor=actor, note=payload.unasked(name))


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize a ping by its zen, a push by its pusher; Gitea's has a `compare_url`."""
    if "zen" in document:
        return {"X-GitHub-Event": "ping"}
    push = {"ref", "after", "repository", "pusher"} <= set(document) and "compare_url" not in document
    return {"X-GitHub-Event": "push"} if push else None


def _push(document: dict[str, Any], delivery: str) -> Event:
    ref = payload.ref(document)
    return Event(
        provider="github",
        kind="push",
        delivery=delivery,
        urls=payload.urls(*payload.spellings(payload.section(document, "repository"), _SPELLINGS)),
        changes=(RefChange(ref, payload.commit_after(document, ref), deleted=payload.flag(document, "deleted") or payload.gone(document)),),
        actor=payload.actor(payload.section(document, "sender"), "login") or payload.actor(payload.section(document, "pusher"), "name"),
    )
