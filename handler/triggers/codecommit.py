"""AWS CodeCommit: an EventBridge event, `CodeCommit Repository State Change`, for branches and tags created, updated and deleted.

https://docs.aws.amazon.com/codecommit/latest/userguide/monitoring-events.html. It carries no signature: IAM says what may invoke the
function that receives it. So it has no row in `TRIGGERS`, and no path over HTTP leads here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from handler.model.event import Event, RefChange
from handler.model.target_matching import codecommit_url
from handler.triggers import payload
from handler.triggers.signature import delivery_id

SOURCE, TYPE = "aws.codecommit", "CodeCommit Repository State Change"
_VERBS = {"referenceCreated": False, "referenceUpdated": False, "referenceDeleted": True}
_REGION = re.compile(r"[a-z]{2,5}(?:-[a-z]{2,12}){1,3}-\d{1,2}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


def read(event: Any) -> Event:
    """Read an event as the function was given it. Raises BadPayload."""
    document = payload.read(_bytes(event))
    source, kind = payload.text(document, "source"), payload.text(document, "detail-type")
    delivery = delivery_id({"id": payload.text(document, "id", 1024)}, "id")
    if (source, kind) != (SOURCE, TYPE):
        return Event("codecommit", "other", delivery, note=payload.unasked(f"{source or 'unnamed'} {kind}".strip()))
    detail = payload.section(document, "detail")
    verb = payload.text(detail, "event")
    if verb not in _VERBS:
        return Event("codecommit", "other", delivery, note=payload.unasked(verb or "unnamed"))
    gone = _VERBS[verb]
    change = RefChange(payload.ref(detail, "referenceFullName"), "" if gone else payload.sha(detail, "commitId"), deleted=gone)
    actor = payload.actor(detail, "callerUserArn").rpartition(":")[2]
    return Event("codecommit", "push", delivery, urls=_spellings(document, detail), changes=(change,), actor=actor)


def _bytes(event: Any) -> bytes:
    """Write an event as JSON again, so that it is read as strictly as what comes over HTTP."""
    try:
        return json.dumps(event).encode()
    except (TypeError, ValueError, RecursionError):
        payload.refuse("not JSON")


def _spellings(document: dict[str, Any], detail: dict[str, Any]) -> tuple[str, ...]:
    region, name = payload.text(document, "region"), payload.text(detail, "repositoryName")
    if not _REGION.fullmatch(region) or not _NAME.fullmatch(name):
        payload.refuse("region and repositoryName name no repository")
    https = codecommit_url(region, name)
    return https, https.replace("https://", "ssh://", 1), f"codecommit::{region}://{name}"
