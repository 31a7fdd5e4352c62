"""What a git host does after a push: a webhook in GitHub's form, signed over its raw body.

As a program it is a `post-receive` hook (`--keep`): a push to the demo's host makes it deliver, as GitHub would.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NO_COMMIT = "0" * 40


@dataclass(frozen=True, slots=True)
class Push:
    """One push as its webhook describes it. `delivery` stays the same when the host sends it again."""

    url: str
    before: str
    after: str
    subject: str
    ref: str = "refs/heads/main"
    delivery: str = ""

    def body(self) -> bytes:
        """Return the payload: the parts of GitHub's push event that say what happened where."""
        name = self.url.rpartition("/")[2].removesuffix(".git")
        document = {
            "ref": self.ref,
            "before": self.before,
            "after": self.after,
            "created": self.before == NO_COMMIT,
            "deleted": self.after == NO_COMMIT,
            "forced": False,
            "commits": [{"id": self.after, "message": self.subject}],
            "head_commit": {"id": self.after, "message": self.subject},
            "repository": {"name": name, "full_name": f"acme/{name}", "clone_url": self.url, "html_url": self.url.removesuffix(".git")},
            "pusher": {"name": "demo"},
            "sender": {"login": "demo", "type": "User"},
        }
        return json.dumps(document).encode()


@dataclass(frozen=True, slots=True)
class Answer:
    """What the door said, and after how many seconds."""

    status: int
    document: dict[str, Any]
    seconds: float


def deliver(address: str, secret: str, push: Push) -> Answer:
    """POST a push's webhook to `host:port`. Raises OSError without an answer."""
    body = push.body()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/demo",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": push.delivery or str(uuid.uuid4()),
        "X-Hub-Signature-256": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
    }
    host, _, port = address.rpartition(":")
    began = time.monotonic()
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("POST", "/webhooks/github", body, headers)
        answer = connection.getresponse()
        return Answer(answer.status, json.loads(answer.read()), time.monotonic() - began)
    finally:
        connection.close()


def ready(address: str) -> bool:
    """Whether the door at `host:port` takes webhooks."""
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=10)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def main(arguments: list[str]) -> int:
    """Be a `post-receive` hook: `URL ADDRESS SECRET-FILE`, and git's lines `before after ref` on standard input."""
    url, address, secret_file = arguments
    secret = Path(secret_file).read_text().strip()
    for line in sys.stdin:
        before, after, ref = line.split()
        try:
            answer = deliver(address, secret, Push(url, before, after, "", ref))
        except OSError as error:
            print(f"webhook: no answer from {address} ({error}); the tick will find the push")
            continue
        print(f"webhook: {answer.status} after {answer.seconds * 1000:.0f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
