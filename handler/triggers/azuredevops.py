"""Azure DevOps service hooks: basic authentication, whose password is the secret; `git.push`, which lists all its refs; pull requests.

https://learn.microsoft.com/azure/devops/service-hooks/events#git.push. Nothing is signed: a body is only as true as its TLS connection.
Of an updated pull request only a sentence says what was: where that isn't in English, a review is read as any other change.
"""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Mapping
from typing import Any

from handler.model.event import Event, RefChange
from handler.triggers import payload, pull_requests
from handler.triggers.pull_requests import Sent
from handler.triggers.signature import MAX_HEADER, WebhookSecret, delivery_id, header

_BASIC = re.compile(r"basic +([a-z0-9+/]+={0,2})", re.ASCII | re.IGNORECASE)
_PUSH, _CREATED, _UPDATED = "git.push", "git.pullrequest.created", "git.pullrequest.updated"
_COMMENT = "ms.vss-code.git-pullrequest-comment-event"
_TICKS = "Pull request created, Pull request updated and Pull request commented on"
_REVIEWS = ("changed the reviewer list on", "approved", "suggestions on", "waiting for the author on", "rejected", "voted on")
"""What an update's sentence says before "pull request" where it is a review, or asks for one."""
_THREAD = re.compile(r".*/threads/([1-9][0-9]{0,18})", re.DOTALL)
_ALL = "is missing: set the subscription's `Resource details to send` to All"
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
    if name not in (_PUSH, _CREATED, _UPDATED, _COMMENT):
        return Event("azuredevops", "other", delivery, note=pull_requests.unasked(name, _TICKS))
    resource = payload.section(document, "resource")
    if name == _PUSH:
        return _push(resource, delivery)
    if name == _COMMENT:
        return _comment(resource, delivery)
    sent = Sent("azuredevops", delivery, _named(resource, "createdBy") if name == _CREATED else "")
    if name == _UPDATED and _is_review(document):
        return sent.other("reviews ask for nothing")
    return sent.plan(_urls(resource), _number(resource))


def shape(document: dict[str, Any]) -> dict[str, str] | None:
    """Recognize the name of the event, which stands in the payload."""
    return {} if isinstance(document.get("eventType"), str) else None


def _push(resource: dict[str, Any], delivery: str) -> Event:
    if "refUpdates" not in resource:
        payload.refuse(f"resource.refUpdates {_ALL}")
    changes, more = payload.changes(resource, "refUpdates", _change)
    actor = _named(resource, "pushedBy")
    if not changes:
        return Event("azuredevops", "other", delivery, actor=actor, note="a push without any branch or tag")
    return Event("azuredevops", "push", delivery, payload.urls(*_urls(resource)), changes, more, actor)


def _comment(resource: dict[str, Any], delivery: str) -> Event:
    comment = payload.section(resource, "comment")
    sent = Sent("azuredevops", delivery, _named(comment, "author"))
    published, written = (payload.text(comment, key) for key in ("publishedDate", "lastContentUpdatedDate"))
    if payload.flag(comment, "isDeleted") or (written and written != published):
        return sent.other("edited and deleted comments ask for nothing")
    if payload.text(comment, "commentType") == "system":
        return sent.other("the host's own comments are not read")
    if not pull_requests.asks(comment, "content"):
        return sent.other(pull_requests.TALK)
    about = payload.section(resource, "pullRequest")
    return sent.plan(_urls(about), _number(about), f"{_thread(comment)}/{pull_requests.comment_id(comment)}")


def _thread(comment: dict[str, Any]) -> str:
    """Return the thread that a comment is in, which only a link names."""
    link = payload.text(payload.section(payload.section(comment, "_links"), "threads"), "href", payload.MAX_URL)
    found = _THREAD.fullmatch(link)
    if found is None:
        payload.refuse("comment._links names no thread")
    return found[1]


def _is_review(document: dict[str, Any]) -> bool:
    said = payload.text(payload.section(document, "message"), "text", sys.maxsize).partition("pull request")[0]
    return said.rstrip().removesuffix(" the").endswith(_REVIEWS)


def _number(about: dict[str, Any]) -> int:
    if "pullRequestId" not in about:
        payload.refuse(f"pullRequestId {_ALL}")
    return payload.number(about, "pullRequestId")


def _named(holder: dict[str, Any], key: str) -> str:
    return payload.actor(payload.section(holder, key), "uniqueName", "displayName")


def _urls(about: dict[str, Any]) -> tuple[str, ...]:
    return payload.spellings(payload.section(about, "repository"), _SPELLINGS)


def _change(update: dict[str, Any]) -> RefChange:
    ref, after = payload.ref(update, "name"), payload.sha(update, "newObjectId")
    # Of an annotated tag the new object is the tag, and nothing names its commit.
    return RefChange(ref, "" if ref.startswith("refs/tags/") else after, deleted=payload.gone(update, "newObjectId"))
