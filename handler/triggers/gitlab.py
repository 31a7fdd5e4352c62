"""GitLab: the secret token of `X-Gitlab-Token`, or a signing token's `webhook-signature`; pushes, merge requests and comments on them.

https://docs.gitlab.com/user/project/integrations/webhook_events, https://www.standardwebhooks.com. GitLab switches off a hook that fails
four times in a row: what is merely irrelevant is an Event with a note. A push of more than three branches or tags
(`push_event_hooks_limit`) sends only a system hook's `repository_update`, which lists all its refs.
https://docs.gitlab.com/administration/system_hooks
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook, WebhookVerificationError

from handler.config.secret_strength import SIGNING
from handler.model.event import Event, RefChange
from handler.triggers import payload, pull_requests
from handler.triggers.pull_requests import Sent
from handler.triggers.signature import MAX_HEADER, WebhookSecret, delivery_id, header

_SIGNED = {
    "webhook-id": re.compile(r"[!-~]{1,256}"),
    "webhook-timestamp": re.compile(r"[0-9]{1,12}"),
    "webhook-signature": re.compile(r"v1,[A-Za-z0-9+/]{43}=(?: v1,[A-Za-z0-9+/]{43}=){0,7}"),
}
_PUSHES, _UPDATE = {"push", "tag_push"}, "repository_update"
_NAMED = ("project", "repository")
_MERGE, _NOTE, _CONFIDENTIAL = "merge_request", "note", "confidential_note"
_PLANS = frozenset({"open", "reopen", "close", "merge"})
_SPELLINGS = ("git_http_url", "git_ssh_url", "web_url", "homepage")


def proves(headers: Mapping[str, str], body: bytes, secret: WebhookSecret) -> bool:
    """Say whether the token is this secret, or this signing token signed id, time (at most five minutes ago) and body."""
    if secret.reveal().startswith(SIGNING):
        return _signed(headers, body, secret)
    token = header(headers, "x-gitlab-token")
    return token.isascii() and 0 < len(token) <= MAX_HEADER and secret.matches(token.encode())


def _signed(headers: Mapping[str, str], body: bytes, secret: WebhookSecret) -> bool:
    given = {name: header(headers, name) for name in _SIGNED}
    if not all(form.fullmatch(given[name]) for name, form in _SIGNED.items()):
        return False
    try:
        Webhook(secret.reveal()).verify(body, given, json_parse=False)
    except (WebhookVerificationError, EmptyWebhookSecretError, ValueError):  # ValueError: a key that isn't base64, a body that isn't UTF-8
        return False
    return True


def read(headers: Mapping[str, str], body: bytes) -> Event:
    """Read a delivery. Raises BadPayload."""
    document = payload.read(body)
    # The key is one event's, also when it is sent again; webhooks that one webhook has set off share the UUID, by which GitLab ends loops.
    delivery = delivery_id(headers, "idempotency-key") or delivery_id(headers, "x-gitlab-event-uuid")
    # System hooks have only event_name, project hooks have both.
    kind = payload.event_name(payload.text(document, "object_kind") or payload.text(document, "event_name"), "object_kind")
    if kind in (*_PUSHES, _UPDATE):
        return _push(document, delivery, kind)
    if kind in (_MERGE, _NOTE):
        sent = Sent("gitlab", delivery, payload.actor(payload.section(document, "user"), "username", "name"))
        return (_merge_request if kind == _MERGE else _note)(document, sent)
    return Event("gitlab", "other", delivery, note=payload.unasked(kind))


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize the name of the event, which stands in the payload."""
    return {} if isinstance(document.get("object_kind") or document.get("event_name"), str) else None


def _urls(document: dict[str, Any], *sections: str) -> tuple[str, ...]:
    return tuple(url for key in sections for url in payload.spellings(payload.section(document, key), _SPELLINGS))


def _merge_request(document: dict[str, Any], sent: Sent) -> Event:
    """Read an event of a merge request; GitLab's *Test* sends one without an action."""
    about = payload.section(document, "object_attributes")
    action = payload.text(about, "action")
    if action in _PLANS or (action == "update" and _matters(document, about)):
        return sent.plan(_urls(document, *_NAMED), payload.number(about, "iid"))
    return sent.other(payload.unasked(f"{_MERGE} {payload.event_name(action, 'action')}" if action else f"{_MERGE} test"))


def _matters(document: dict[str, Any], about: dict[str, Any]) -> bool:
    """Say whether an update brought commits, another target branch, a draft or the end of one."""
    changes = payload.section(document, "changes")
    changed = [payload.section(changes, key) for key in ("target_branch", "draft", "work_in_progress")]
    return bool(payload.sha(about, "oldrev")) or any(changed)


def _note(document: dict[str, Any], sent: Sent) -> Event:
    """Read a comment; old GitLabs send only new ones, and name no action."""
    about = payload.section(document, "object_attributes")
    if payload.text(about, "noteable_type") != "MergeRequest":
        return sent.other(pull_requests.ISSUE)
    action = payload.text(about, "action") or "create"
    if action != "create":
        return sent.other(payload.unasked(f"{_NOTE} {payload.event_name(action, 'action')}"))
    if payload.text(document, "event_type") == _CONFIDENTIAL or payload.flag(about, "system"):
        return sent.other("confidential comments and the host's own are not read")
    if not pull_requests.asks(about, "note"):
        return sent.other(pull_requests.TALK)
    number = payload.number(payload.section(document, "merge_request"), "iid")
    return sent.plan(_urls(document, *_NAMED), number, pull_requests.comment_id(about))


def _push(document: dict[str, Any], delivery: str, kind: str) -> Event:
    if kind == _UPDATE:
        changes, more = payload.changes(document, "changes", _change)
        more = more or not changes  # something was pushed
    else:
        # `after` of an annotated tag is the tag object, `checkout_sha` its commit; both are empty on deletion.
        after = payload.sha(document, "checkout_sha") or payload.sha(document, "after")
        more = False
        changes = (RefChange(payload.ref(document), after, deleted=payload.gone(document)),)
    return Event(
        provider="gitlab",
        kind="push",
        delivery=delivery,
        urls=payload.urls(*_urls(document, *(("project",) if kind == _UPDATE else _NAMED))),
        changes=changes,
        more=more,
        actor=payload.actor(document, "user_username", "user_name"),
    )


def _change(update: dict[str, Any]) -> RefChange:
    ref, after = payload.ref(update), payload.sha(update, "after")
    # Of an annotated tag `after` is the tag object, and nothing names its commit.
    return RefChange(ref, "" if ref.startswith("refs/tags/") else after, deleted=payload.gone(update))
