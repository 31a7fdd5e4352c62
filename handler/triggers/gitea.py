"""Gitea and Forgejo: bare hex HMAC-SHA256 over the raw body in `X-Gitea-Signature`, `X-Forgejo-Signature` or both.

https://docs.gitea.com/usage/webhooks, https://forgejo.org/docs/latest/user/webhooks. GitHub's headers, which they send as well, aren't
read. A test delivery is a push. A deleted branch comes as a `delete` event, a deleted tag as a push, too. A draft is a pull request whose
title begins with a word that says so: it becomes one, and is none any more, as its title is edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.model.event import Event, RefChange
from handler.triggers import payload, pull_requests
from handler.triggers.pull_requests import Sent
from handler.triggers.signature import WebhookSecret, delivery_id, header, signed_sha256

_NAMES = ("gitea", "forgejo")
_SPELLINGS = ("clone_url", "ssh_url", "html_url")
_PLANS = frozenset({"opened", "synchronized", "reopened", "closed"})


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
    sent = Sent("gitea", delivery, actor)
    if name == pull_requests.PULL:
        return _pull_request(document, sent)
    if name == pull_requests.COMMENT:
        return _comment(document, sent)
    return sent.other(pull_requests.unasked(name, "Pull Request, Pull Request Synchronized and Pull Request Comment"))


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize a push by its `compare_url`, which GitHub's lacks, and the rest by a repository without GitHub's `node_id`."""
    keys, repository = set(document), document.get("repository")
    if {"ref", "repository", "compare_url"} <= keys:
        return {"X-Gitea-Event": "push"}
    named = pull_requests.named_by(keys) if isinstance(repository, dict) and "node_id" not in repository else None
    return {"X-Gitea-Event": named} if named else None


def _either(headers: Mapping[str, str], what: str) -> str:
    return next((value for name in _NAMES if (value := header(headers, f"x-{name}-{what}"))), "")


def _urls(document: dict[str, Any]) -> tuple[str, ...]:
    return payload.spellings(payload.section(document, "repository"), _SPELLINGS)


def _pull_request(document: dict[str, Any], sent: Sent) -> Event:
    action = payload.event_name(payload.text(document, "action"), "action")
    if action in _PLANS or (action == "edited" and _matters(document)):
        return sent.plan(_urls(document), payload.number(document, "number"))
    return sent.other(payload.unasked(f"{pull_requests.PULL} {action}"))


def _matters(document: dict[str, Any]) -> bool:
    """Say whether an edit changed the base, or the title, which alone says whether it is a draft."""
    changes = payload.section(document, "changes")
    return bool(payload.section(changes, "ref") or payload.section(changes, "title"))


def _comment(document: dict[str, Any], sent: Sent) -> Event:
    if not payload.flag(document, "is_pull"):
        return sent.other(pull_requests.ISSUE)
    return pull_requests.commented(document, payload.section(document, "issue"), sent, _urls)


def _push(document: dict[str, Any], delivery: str, actor: str) -> Event:
    ref = payload.ref(document)
    return Event(
        provider="gitea",
        kind="push",
        delivery=delivery,
        urls=payload.urls(*_urls(document)),
        changes=(RefChange(ref, payload.commit_after(document, ref), deleted=payload.gone(document)),),
        actor=actor,
    )
