"""Anything that can sign: `X-Signature-256`, `sha256=` and hex, over `{"repository": url, "ref": full name, "after": commit}`.

Ours, for hosts without a row of their own and for pipelines. `after` may be missing (the head is asked for anyway) or all zeros
(the ref was deleted); `actor` and `deliveryId` are only recorded. Other keys are refused by name: a misspelt one would be silence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.model.event import Event, RefChange
from handler.triggers import payload
from handler.triggers.signature import WebhookSecret, delivery_id, header, signed_sha256

_KEYS = ("repository", "ref", "after", "actor", "deliveryId")


def proves(headers: Mapping[str, str], body: bytes, secret: WebhookSecret) -> bool:
    """Say whether this secret signed the body."""
    return signed_sha256(secret, body, header(headers, "x-signature-256"), "sha256=")


def read(headers: Mapping[str, str], body: bytes) -> Event:
    """Read a delivery. Raises BadPayload."""
    document = payload.read(body)
    if unknown := sorted(set(document) - set(_KEYS)):
        payload.refuse(f"unknown key {unknown[0][:64]!a}; known are {', '.join(_KEYS)}")
    named = payload.text(document, "deliveryId")
    delivery = delivery_id({"id": named}, "id") if named else delivery_id(headers, "x-delivery-id")
    if named and not delivery:
        payload.refuse("deliveryId is not an id: at most 64 letters, digits, dots, dashes and underscores")
    return Event(
        provider="generic",
        kind="push",
        delivery=delivery,
        urls=payload.urls(payload.text(document, "repository", payload.MAX_URL)),
        changes=(RefChange(payload.ref(document), payload.sha(document, "after"), deleted=payload.gone(document)),),
        actor=payload.actor(document, "actor"),
    )


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize the repository, which is an object everywhere else."""
    return {} if isinstance(document.get("repository"), str) else None
