"""GitLab: the secret token of `X-Gitlab-Token`; push, tag push, and the same two as system hooks.

https://docs.gitlab.com/user/project/integrations/webhook_events. GitLab switches off a hook that fails four times in a row: what is
merely irrelevant is an Event with a note.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from handler.model.event import Event
from handler.triggers import payload
from handler.triggers.signature import MAX_HEADER, Secret, delivery_id, header, require

_PUSHES = {"push", "tag_push"}
_SPELLINGS = ("git_http_url", "git_ssh_url", "web_url", "homepage")


def proves(headers: Mapping[str, str], body: bytes, secret: Secret) -> bool:  # noqa: ARG001 - one signature for all providers
    """Say whether the token is this secret."""
    token = header(headers, "x-gitlab-token")
    return token.isascii() and 0 < len(token) <= MAX_HEADER and secret.matches(token.encode())


def parse(headers: Mapping[str, str], body: bytes, secrets: Sequence[Secret]) -> Event:
    """Verify a delivery and read it. Raises BadSignature, BadPayload."""
    require(lambda secret: proves(headers, body, secret), secrets)
    document = payload.read(body)
    delivery = delivery_id(headers, "x-gitlab-event-uuid")
    # System hooks have only event_name, project hooks have both.
    kind = payload.text(document, "object_kind") or payload.text(document, "event_name")
    if kind in _PUSHES:
        return _push(document, delivery)
    if not kind:
        payload.refuse("object_kind is missing")
    return Event("gitlab", "other", delivery, note=f"a {kind[:64]} event asks for nothing")


def _push(document: dict[str, Any], delivery: str) -> Event:
    return Event(
        provider="gitlab",
        kind="push",
        delivery=delivery,
        urls=payload.urls(*_spellings(document, "project"), *_spellings(document, "repository")),
        ref=payload.ref(document),
        # `after` of an annotated tag is the tag object, `checkout_sha` its commit; both are empty on deletion.
        after=payload.sha(document, "checkout_sha") or payload.sha(document, "after"),
        deleted=payload.gone(document),
        actor=payload.text(document, "user_username") or payload.text(document, "user_name"),
    )


def _spellings(document: dict[str, Any], key: str) -> tuple[str, ...]:
    found = payload.section(document, key)
    return tuple(payload.text(found, name, payload.MAX_URL) for name in _SPELLINGS)
