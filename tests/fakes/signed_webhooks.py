"""What the tests of the door share: a configuration of two repositories, its secrets, and senders that sign."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from handler.config.git_settings import Repository, Revision, SecretRef, WebhookSecrets
from handler.config.secrets import Secret, Secrets, resolve_all
from handler.config.settings import ReplaySettings, ReplayToken, Settings, Target, WebhookSettings
from handler.model.event import Job
from tests.fakes.clock import NEVER

SECRETS = {
    "GITHUB": "github-webhook-secret",
    "GITHUB_OLD": "github-webhook-secret-before",
    "GITLAB": "gitlab-webhook-secret",
    "INFRA": "infra-repository-secret",
    "CI": "ci-replay-token-0123",
    "OPS": "ops-replay-token-4567",
    "READER": "reader-token-89ab-cdef",
    "ALL": "token-that-reads-all-01",
    "SCRAPER": "scraper-token-2345-6789",
}
SHA = "6113728f27ae82c7b1a177c8d03f9e96e0adf246"
ZEROS = "0" * 40
SHOP = "https://git.example.com/acme/shop.git"
INFRA = "https://git.example.com/acme/infra.git"


def refs(*names: str) -> WebhookSecrets:
    return WebhookSecrets(tuple(SecretRef(env=name) for name in names))


def door_settings() -> Settings:
    """Three targets of `shop` (main, dev, a fixed commit), one of `infra`, which has a secret of its own."""
    shop = Repository(SHOP, aliases=("https://mirror.example.com/shop",))
    infra = Repository(INFRA, webhook=refs("INFRA"))
    return Settings(
        targets=(
            Target("shop-prod", shop, ("shop",)),
            Target("shop-dev", shop, ("dev",), revision=Revision(branch="dev")),
            Target("shop-fixed", shop, ("old",), revision=Revision(commit=SHA)),
            Target("infra", infra, ("infra",)),
        ),
        webhooks=WebhookSettings(github=refs("GITHUB", "GITHUB_OLD"), gitlab=refs("GITLAB")),
        replay=ReplaySettings(
            (
                ReplayToken("ci", SecretRef(env="CI"), targets=("shop-*",)),
                ReplayToken("ops", SecretRef(env="OPS"), may=("replay", "approve", "rollback")),
                ReplayToken("reader", SecretRef(env="READER"), targets=("shop-*",), may=("read", "metrics")),
                ReplayToken("all", SecretRef(env="ALL"), may=("read", "replay")),
                ReplayToken("scraper", SecretRef(env="SCRAPER"), may=("metrics",)),
            )
        ),
        drift_interval=NEVER,
    )


def door_secrets() -> Secrets:
    return resolve_all(door_settings(), SECRETS)


def known(name: str) -> Secret:
    return Secret(SECRETS[name])


@dataclass
class Kept:
    """A queue that keeps what it is given."""

    jobs: list[Job] = field(default_factory=list)

    def put(self, job: Job) -> str:
        self.jobs.append(job)
        return f"r{len(self.jobs)}"

    def put_all(self, jobs: Sequence[Job]) -> tuple[str, ...]:
        return tuple(self.put(job) for job in jobs)


def github_push(url: str = SHOP, ref: str = "refs/heads/main", after: str = SHA, **more: Any) -> bytes:
    document = {"ref": ref, "after": after, "repository": {"clone_url": url}, "sender": {"login": "ada"}, "deleted": after == ZEROS}
    return json.dumps(document | more).encode()


def gitlab_push(url: str = SHOP, ref: str = "refs/heads/main", after: str = SHA) -> bytes:
    document = {"object_kind": "push", "ref": ref, "after": after, "project": {"git_http_url": url}, "user_username": "ada"}
    return json.dumps(document).encode()


def github_headers(body: bytes, secret: str = SECRETS["GITHUB"], event: str = "push") -> dict[str, str]:
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {
        "Content-Type": "application/json",
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
        "X-Hub-Signature-256": f"sha256={signature}",
    }


def gitlab_headers(secret: str = SECRETS["GITLAB"]) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "X-Gitlab-Event": "Push Hook",
        "X-Gitlab-Event-UUID": "13792a34-cac6-4fda-95a8-c58e00a3954e",
        "X-Gitlab-Token": secret,
    }


def mutations(document: Any) -> list[Any]:
    """Return the document with each node in turn replaced by a value of another type, and with each key in turn dropped."""
    return [_replaced(document, path, value) for path in _paths(document) for value in _ODD] + [
        _dropped(document, path) for path in _paths(document) if path
    ]


_ODD: tuple[Any, ...] = (None, [], {}, "", 0, True, float("inf"), -1.5, [None], {"": {}})


def _paths(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(node, dict):
        return [path] + [found for key, value in node.items() for found in _paths(value, (*path, key))]
    if isinstance(node, list):
        return [path] + [found for number, value in enumerate(node) for found in _paths(value, (*path, number))]
    return [path]


def _replaced(node: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copied = dict(node) if isinstance(node, dict) else list(node)
    copied[path[0]] = _replaced(node[path[0]], path[1:], value)
    return copied


def _dropped(node: Any, path: tuple[Any, ...]) -> Any:
    copied = dict(node) if isinstance(node, dict) else list(node)
    if len(path) == 1:
        del copied[path[0]]
    else:
        copied[path[0]] = _dropped(node[path[0]], path[1:])
    return copied
