"""Bitbucket Cloud (`repo:push`) and Data Center (`repo:refs_changed`): `X-Hub-Signature`, `sha256=` and hex, over the raw body.

https://support.atlassian.com/bitbucket-cloud/docs/event-payloads, https://confluence.atlassian.com/bitbucketserver/event-payload-938025882.html.
One push lists all its refs; one of an unknown type may be any. Data Center doesn't sign its "Test connection" (`diagnostics:ping`).
Cloud's `pullrequest:updated` doesn't say what was: commits, the base, a draft or merely the title. Data Center sends nothing when one is
reopened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from handler.model.event import Event, RefChange
from handler.triggers import payload, pull_requests
from handler.triggers.pull_requests import Sent
from handler.triggers.signature import WebhookSecret, delivery_id, header, signed_sha256

_CLOUD, _CENTER, _PING = "repo:push", "repo:refs_changed", "diagnostics:ping"
_UPDATED, _MODIFIED = "pullrequest:updated", "pr:modified"
_CLOUD_PLANS = frozenset({"pullrequest:created", _UPDATED, "pullrequest:fulfilled", "pullrequest:rejected"})
_CENTER_PLANS = frozenset({"pr:opened", "pr:from_ref_updated", "pr:merged", "pr:declined", _MODIFIED})
_CLOUD_COMMENT, _CENTER_COMMENT = "pullrequest:comment_created", "pr:comment:added"
_TICKS = {
    "pullrequest:": "Created, Updated, Merged, Declined and Comment created",
    "pr:": "Opened, Source branch updated, Modified, Merged, Declined and Comment added",
}
_KINDS = {"branch": "refs/heads/", "tag": "refs/tags/"}


def proves(headers: Mapping[str, str], body: bytes, secret: WebhookSecret) -> bool:
    """Say whether this secret signed the body."""
    return signed_sha256(secret, body, header(headers, "x-hub-signature"), "sha256=")


def read(headers: Mapping[str, str], body: bytes) -> Event:
    """Read a delivery. Raises BadPayload."""
    document = payload.read(body)
    name = payload.event_name(header(headers, "x-event-key"), "X-Event-Key")
    delivery = delivery_id(headers, "x-request-uuid") or delivery_id(headers, "x-request-id")
    if name == _PING:
        return Event("bitbucket", "ping", delivery)
    if name == _CLOUD:
        return _event(document, delivery, _urls(document), payload.changes(payload.section(document, "push"), "changes", _cloud))
    if name == _CENTER:
        return _event(document, delivery, _urls(document), payload.changes(document, "changes", _center))
    sent = Sent("bitbucket", delivery, _actor(document))
    if name in _CLOUD_PLANS or name == _CLOUD_COMMENT:
        return _of_cloud(document, sent, commented=name == _CLOUD_COMMENT)
    if name in _CENTER_PLANS or name == _CENTER_COMMENT:
        return _of_center(document, sent, name)
    ticks = next((names for prefix, names in _TICKS.items() if name.startswith(prefix)), "")
    return sent.other(pull_requests.unasked(name, ticks))


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize Cloud's `push` and `pullrequest`, Data Center's `eventKey`, and its test, which has none."""
    if isinstance(document.get("push"), dict):
        return {"X-Event-Key": _CLOUD}
    if isinstance(key := document.get("eventKey"), str):
        return {"X-Event-Key": key}
    if isinstance(document.get("pullrequest"), dict) and not {"approval", "changes_request"} & set(document):
        return {"X-Event-Key": _UPDATED if "comment" not in document else _CLOUD_COMMENT}
    return {"X-Event-Key": _PING} if document == {"test": True} else None


def _event(document: dict[str, Any], delivery: str, urls: tuple[str, ...], listed: tuple[tuple[RefChange, ...], bool]) -> Event:
    changes, more = listed
    actor = _actor(document)
    if not changes and not more:
        return Event("bitbucket", "other", delivery, actor=actor, note="a push without any branch or tag")
    return Event("bitbucket", "push", delivery, payload.urls(*urls), changes, more, actor)


def _cloud(change: dict[str, Any]) -> RefChange | None:
    """`new` is null when the ref was deleted; None: its type, and so its full name, isn't known."""
    new, old = payload.section(change, "new"), payload.section(change, "old")
    side = new or old
    prefix = _KINDS.get(payload.text(side, "type"))
    if prefix is None:
        return None
    ref = payload.ref({"ref": prefix + payload.text(side, "name", payload.MAX_REF)})
    return RefChange(ref, payload.sha(payload.section(new, "target"), "hash"), deleted=not new)


def _center(change: dict[str, Any]) -> RefChange:
    deleted = payload.text(change, "type") == "DELETE" or payload.gone(change, "toHash")
    ref, after = payload.ref(payload.section(change, "ref"), "id"), payload.sha(change, "toHash")
    # Of an annotated tag `toHash` is the tag object, and nothing names its commit.
    return RefChange(ref, "" if deleted or ref.startswith("refs/tags/") else after, deleted)


def _actor(document: dict[str, Any]) -> str:
    return payload.actor(payload.section(document, "actor"), "nickname", "name", "display_name", "displayName")


def _of_cloud(document: dict[str, Any], sent: Sent, *, commented: bool) -> Event:
    about, comment = payload.section(document, "pullrequest"), payload.section(document, "comment")
    if commented and not pull_requests.asks(payload.section(comment, "content"), "raw"):
        return sent.other(pull_requests.TALK)
    return sent.plan(_urls(document), payload.number(about, "id"), pull_requests.comment_id(comment) if commented else "")


def _of_center(document: dict[str, Any], sent: Sent, name: str) -> Event:
    about, comment = payload.section(document, "pullRequest"), payload.section(document, "comment")
    commented, base = name == _CENTER_COMMENT, payload.section(about, "toRef")
    if commented and not pull_requests.asks(comment, "text"):
        return sent.other(pull_requests.TALK)
    if name == _MODIFIED and not _matters(document, about, base):
        return sent.other("edited titles and descriptions ask for nothing")
    return sent.plan(_urls(base), payload.number(about, "id"), pull_requests.comment_id(comment) if commented else "")


def _matters(document: dict[str, Any], about: dict[str, Any], base: dict[str, Any]) -> bool:
    """Say whether a change is one of the base or of the draft; either is named when it was before, whatever has changed."""
    was = payload.text(payload.section(document, "previousTarget"), "id", payload.MAX_REF)
    moved = bool(was) and was != payload.text(base, "id", payload.MAX_REF)
    return moved or ("previousDraft" in document and payload.flag(document, "previousDraft") != payload.flag(about, "draft"))


def _urls(holder: dict[str, Any]) -> tuple[str, ...]:
    """Cloud names its page, Data Center what to clone from; `full_name` is the path at Cloud's only host."""
    repository = payload.section(holder, "repository")
    links = payload.section(repository, "links")
    page = payload.text(payload.section(links, "html"), "href", payload.MAX_URL)
    clones = (payload.text(link, "href", payload.MAX_URL) for link in payload.items(links, "clone"))
    path = payload.text(repository, "full_name", payload.MAX_URL)
    return (page, *clones, f"https://bitbucket.org/{path}" if path and not page else "")
