"""Values that no pull request may show, and the look for them in all that was said of one."""

from __future__ import annotations

import base64
import hashlib
import io

from tests.e2e.planted_secrets import spellings
from tests.e2e.pull_request_host import PullRequests

CANARY = "canary7f3a9ce1d255b0"
DRIFT = "canary0b552d1ec9a3f7"


def forms(value: str) -> set[str]:
    """How a template may write a value: reversed, in halves, letter by letter, as a digest, its length beside it."""
    halves = {value[: len(value) // 2], value[len(value) // 2 :]}
    digests = {hashlib.sha256(value.encode()).hexdigest(), hashlib.sha1(value.encode()).hexdigest(), value.upper()}
    return {
        *spellings(value),
        *spellings(value[::-1]),
        *halves,
        *digests,
        "-".join(value),
        " ".join(value),
        base64.b32encode(value.encode()).decode(),
    }


def assert_nothing_shown(pulls: PullRequests, logged: io.StringIO, *values: str) -> None:
    said = [each.text for each in pulls.host.comments.values()] + [each.text for each in pulls.host.statuses] + [logged.getvalue()]
    found = {(form, text[:200]) for value in values for form in forms(value) for text in said if form in text}
    assert not found, found
