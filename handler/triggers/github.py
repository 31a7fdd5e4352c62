"""GitHub: `X-Hub-Signature-256` over the raw body; push, tag push and ping.

https://docs.github.com/webhooks/webhook-events-and-payloads. SHA-1 signatures are refused. A redelivery keeps its id, so ids
are never used to drop a delivery.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from handler.model.event import Event
from handler.triggers import payload
from handler.triggers.signature import Secret, delivery_id, header, require, signed_sha256

_SIGNATURE = re.compile(r"sha256=([0-9a-f]{64})")
_EVENT = re.compile(r"[a-z_]{1,64}")
_SPELLINGS = ("clone_url", "ssh_url", "git_url", "html_url")


def proves(headers: Mapping[str, str], body: bytes, secret: Secret) -> bool:
    """Say whether this secret signed the body."""
    found = _SIGNATURE.fullmatch(header(headers, "x-hub-signature-256"))
    return found is not None and signed_sha256(secret, body, found[1])


def parse(headers: Mapping[str, str], body: bytes, secrets: Sequence[Secret]) -> Event:
    """Verify a delivery and read it. Raises BadSignature, BadPayload."""
    require(lambda secret: proves(headers, body, secret), secrets)
    document = payload.read(body)
    name = header(headers, "x-github-event")
    delivery = delivery_id(headers, "x-github-delivery")
    if not _EVENT.fullmatch(name):
        payload.refuse("X-GitHub-Event is missing or no event name")
    if name == "push":
        return _push(document, delivery)
    actor = payload.text(payload.section(document, "sender"), "login")
    if name == "ping":
        return Event("github", "ping", delivery, urls=_spellings(document), actor=actor)
    return Event("github", "other", delivery, actor=actor, note=f"a {name} event asks for nothing")


def _push(document: dict[str, Any], delivery: str) -> Event:
    ref = payload.ref(document)
    after = payload.sha(document, "after")
    if ref.startswith("refs/tags/"):
        # `after` of an annotated tag is the tag object; what would be deployed is its commit.
        after = payload.sha(payload.section(document, "head_commit"), "id") or after
    return Event(
        provider="github",
        kind="push",
        delivery=delivery,
        urls=payload.urls(*_spellings(document)),
        ref=ref,
        after=after,
        deleted=payload.flag(document, "deleted") or payload.gone(document),
        actor=payload.text(payload.section(document, "sender"), "login") or payload.text(payload.section(document, "pusher"), "name"),
    )


def _spellings(document: dict[str, Any]) -> tuple[str, ...]:
    repository = payload.section(document, "repository")
    return tuple(found for key in _SPELLINGS if (found := payload.text(repository, key, payload.MAX_URL)))
