"""GitHub: `X-Hub-Signature-256` over the raw body; push, tag push, ping, and of pull requests `pull_request` and `issue_comment`.

https://docs.github.com/webhooks/webhook-events-and-payloads. SHA-1 signatures are refused. A redelivery keeps its id, so ids
are never used to drop a delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.model.event import Event, RefChange
from handler.triggers import payload, pull_requests
from handler.triggers.pull_requests import Sent
from handler.triggers.signature import WebhookSecret, delivery_id, header, signed_sha256

_SPELLINGS = ("clone_url", "ssh_url", "git_url", "html_url")
_PLANS = frozenset({"opened", "synchronize", "reopened", "ready_for_review", "converted_to_draft", "closed"})


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
    sent = Sent("github", delivery, payload.actor(payload.section(document, "sender"), "login"))
    if name == "ping":
        return Event("github", "ping", delivery, urls=_urls(document), actor=sent.actor)
    if name == pull_requests.PULL:
        return _pull_request(document, sent)
    if name == pull_requests.COMMENT:
        return _comment(document, sent)
    return sent.other(pull_requests.unasked(name, "Pull requests and Issue comments"))


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize a ping by its zen, a push by its pusher; Gitea's has a `compare_url`, and its repositories no `node_id`."""
    if "zen" in document:
        return {"X-GitHub-Event": "ping"}
    keys, repository = set(document), document.get("repository")
    if {"ref", "after", "repository", "pusher"} <= keys and "compare_url" not in document:
        return {"X-GitHub-Event": "push"}
    named = pull_requests.named_by(keys) if isinstance(repository, dict) and "node_id" in repository else None
    return {"X-GitHub-Event": named} if named else None


def _urls(document: dict[str, Any]) -> tuple[str, ...]:
    return payload.spellings(payload.section(document, "repository"), _SPELLINGS)


def _pull_request(document: dict[str, Any], sent: Sent) -> Event:
    action = payload.event_name(payload.text(document, "action"), "action")
    retargeted = action == "edited" and payload.section(payload.section(document, "changes"), "base")
    if action in _PLANS or retargeted:
        return sent.plan(_urls(document), payload.number(document, "number"))
    return sent.other(payload.unasked(f"{pull_requests.PULL} {action}"))


def _comment(document: dict[str, Any], sent: Sent) -> Event:
    """Read a comment on an issue; that of a pull request has a section of its own."""
    issue = payload.section(document, "issue")
    if not payload.section(issue, "pull_request"):
        return sent.other(pull_requests.ISSUE)
    return pull_requests.commented(document, issue, sent, _urls)


def _push(document: dict[str, Any], delivery: str) -> Event:
    ref = payload.ref(document)
    return Event(
        provider="github",
        kind="push",
        delivery=delivery,
        urls=payload.urls(*_urls(document)),
        changes=(RefChange(ref, payload.commit_after(document, ref), deleted=payload.flag(document, "deleted") or payload.gone(document)),),
        actor=payload.actor(payload.section(document, "sender"), "login") or payload.actor(payload.section(document, "pusher"), "name"),
    )
