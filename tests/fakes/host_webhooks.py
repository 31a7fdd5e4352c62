"""How each git host sends a delivery: the headers it proves itself with, and our own samples of what it says."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from standardwebhooks.webhooks import Webhook

from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import Repository, Revision
from handler.config.secret_ref import SecretRef
from handler.config.secrets import Accepted, Secret, Secrets, resolve_all
from handler.config.settings import Settings, Target, WebhookSettings
from handler.model.event import Event, RefChange
from handler.triggers import WEBHOOKS
from tests.fakes.signed_webhooks import INFRA, SHOP, refs

SAMPLES_DIRECTORY = Path(__file__).resolve().parents[1] / "unit/triggers/samples"
PROVIDERS = ("github", "gitlab", "gitea", "bitbucket", "azuredevops", "generic")
SIGNING = "whsec_" + base64.b64encode(b"thirty-two bytes of a signing ke").decode()
KEYS = {name.upper(): f"{name}-webhook-secret-1" for name in PROVIDERS}
KEYS |= {"SIGNING": SIGNING, "INFRA": "infra-repository-secret", "HOST": "token-of-the-git-host-1"}
ALIASES = (
    "https://git.example.com/scm/acme/shop.git",  # Bitbucket Data Center
    "https://git.example.com/acme/store/_git/shop",  # Azure DevOps
)
COMMIT = "4f1b0c7e2d9a5836be0174c2f6a98d3e5b7c1a20"
OTHER = "9c3d5e1f7a2b4860d1e2f3a4b5c6d7e8f9a0b1c2"
TAG_OBJECT = "a7e6d5c4b3a2918070605040302010f0e1d2c3b4"
MAIN = RefChange("refs/heads/main", COMMIT)
MAIN_GONE = RefChange("refs/heads/main", deleted=True)
TAG = RefChange("refs/tags/v1.4.0", COMMIT)
TAG_GONE = RefChange("refs/tags/v1.4.0", deleted=True)
NEW_TAG = RefChange("refs/tags/v1.4.0")
OLD_GONE = RefChange("refs/heads/old", deleted=True)
CART = RefChange("refs/heads/feature/cart", OTHER)


@dataclass(frozen=True)
class Sample:
    """A payload and what it is read as. `event`: how its host names the event in a header; `number`, `comment`: of a pull request."""

    provider: str
    name: str
    event: str
    kind: str
    changes: tuple[RefChange, ...] = ()
    number: int = 0
    comment: str = ""

    @property
    def body(self) -> bytes:
        return (SAMPLES_DIRECTORY / self.provider / f"{self.name}.json").read_bytes()

    @property
    def document(self) -> Any:
        return json.loads(self.body)

    @property
    def headers(self) -> dict[str, str]:
        """The headers that came with it, where a real host has sent it; else none."""
        file = SAMPLES_DIRECTORY / self.provider / f"{self.name}.headers"
        return dict(line.split(": ", 1) for line in file.read_text().splitlines()) if file.exists() else {}

    def __str__(self) -> str:
        return f"{self.provider}/{self.name}"


SAMPLES = (
    Sample("github", "push", "push", "push", (MAIN,)),
    Sample("github", "push-delete", "push", "push", (MAIN_GONE,)),
    Sample("github", "push-tag", "push", "push", (TAG,)),
    Sample("github", "push-tag-delete", "push", "push", (TAG_GONE,)),
    Sample("github", "ping", "ping", "ping"),
    Sample("github", "ping-organization", "ping", "ping"),
    Sample("github", "create", "create", "other"),
    Sample("github", "delete", "delete", "other"),
    Sample("github", "pull_request-opened", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-opened-fork", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-synchronize", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-reopened", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-ready_for_review", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-converted_to_draft", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-edited-base", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-closed", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-closed-merged", "pull_request", "pull-request", number=12),
    Sample("github", "pull_request-edited-title", "pull_request", "other"),
    Sample("github", "pull_request-labeled", "pull_request", "other"),
    Sample("github", "issue_comment-created", "issue_comment", "pull-request", number=12, comment="2241883001"),
    Sample("github", "issue_comment-created-talk", "issue_comment", "other"),
    Sample("github", "issue_comment-created-issue", "issue_comment", "other"),
    Sample("github", "issue_comment-edited", "issue_comment", "other"),
    Sample("github", "issue_comment-deleted", "issue_comment", "other"),
    Sample("github", "pull_request_review-submitted", "pull_request_review", "other"),
    Sample("github", "pull_request_review_comment-created", "pull_request_review_comment", "other"),
    Sample("gitlab", "push", "Push Hook", "push", (MAIN,)),
    Sample("gitlab", "push-delete", "Push Hook", "push", (MAIN_GONE,)),
    Sample("gitlab", "tag_push", "Tag Push Hook", "push", (TAG,)),
    Sample("gitlab", "tag_push-delete", "Tag Push Hook", "push", (TAG_GONE,)),
    Sample("gitlab", "system-push", "System Hook", "push", (MAIN,)),
    Sample("gitlab", "system-repository_update", "System Hook", "push", (MAIN,)),
    Sample("gitlab", "system-repository_update-several", "System Hook", "push", (CART, MAIN, NEW_TAG, OLD_GONE)),
    Sample("gitlab", "system-project_create", "System Hook", "other"),
    Sample("gitlab", "merge_request", "Merge Request Hook", "pull-request", number=1),
    Sample("gitlab", "merge_request-open-fork", "Merge Request Hook", "pull-request", number=12),
    Sample("gitlab", "merge_request-update-push", "Merge Request Hook", "pull-request", number=12),
    Sample("gitlab", "merge_request-update-draft", "Merge Request Hook", "pull-request", number=12),
    Sample("gitlab", "merge_request-update-ready", "Merge Request Hook", "pull-request", number=12),
    Sample("gitlab", "merge_request-update-target", "Merge Request Hook", "pull-request", number=12),
    Sample("gitlab", "merge_request-reopen", "Merge Request Hook", "pull-request", number=12),
    Sample("gitlab", "merge_request-close", "Merge Request Hook", "pull-request", number=12),
    Sample("gitlab", "merge_request-merge", "Merge Request Hook", "pull-request", number=12),
    Sample("gitlab", "merge_request-update-title", "Merge Request Hook", "other"),
    Sample("gitlab", "merge_request-update-labels", "Merge Request Hook", "other"),
    Sample("gitlab", "merge_request-approved", "Merge Request Hook", "other"),
    Sample("gitlab", "merge_request-test", "Merge Request Hook", "other"),
    Sample("gitlab", "note", "Note Hook", "pull-request", number=12, comment="50772616"),
    Sample("gitlab", "note-old", "Note Hook", "pull-request", number=12, comment="50772616"),
    Sample("gitlab", "note-talk", "Note Hook", "other"),
    Sample("gitlab", "note-update", "Note Hook", "other"),
    Sample("gitlab", "note-commit", "Note Hook", "other"),
    Sample("gitlab", "note-system", "Note Hook", "other"),
    Sample("gitlab", "note-confidential", "Confidential Note Hook", "other"),
    Sample("gitea", "push", "push", "push", (MAIN,)),
    Sample("gitea", "push-tag", "push", "push", (TAG,)),
    Sample("gitea", "push-tag-delete", "push", "push", (TAG_GONE,)),
    Sample("gitea", "create", "create", "other"),
    Sample("gitea", "delete", "delete", "other"),
    Sample("gitea", "pull_request-opened", "pull_request", "pull-request", number=1),
    Sample("gitea", "pull_request-opened-fork", "pull_request", "pull-request", number=3),
    Sample("gitea", "pull_request-synchronized", "pull_request", "pull-request", number=1),
    Sample("gitea", "pull_request-edited-title", "pull_request", "pull-request", number=1),
    Sample("gitea", "pull_request-edited-base", "pull_request", "pull-request", number=1),
    Sample("gitea", "pull_request-closed", "pull_request", "pull-request", number=2),
    Sample("gitea", "pull_request-closed-merged", "pull_request", "pull-request", number=1),
    Sample("gitea", "pull_request-reopened", "pull_request", "pull-request", number=2),
    Sample("gitea", "issue_comment-created", "issue_comment", "pull-request", number=1, comment="6"),
    Sample("gitea", "issue_comment-created-issue", "issue_comment", "other"),
    Sample("gitea", "issue_comment-edited", "issue_comment", "other"),
    Sample("gitea", "issue_comment-deleted", "issue_comment", "other"),
    Sample("bitbucket", "cloud-push", "repo:push", "push", (MAIN,)),
    Sample("bitbucket", "cloud-push-several", "repo:push", "push", (CART, MAIN, TAG, OLD_GONE)),
    Sample("bitbucket", "cloud-push-delete", "repo:push", "push", (MAIN_GONE,)),
    Sample("bitbucket", "cloud-pullrequest", "pullrequest:fulfilled", "pull-request", number=1),
    Sample("bitbucket", "cloud-pullrequest-created", "pullrequest:created", "pull-request", number=12),
    Sample("bitbucket", "cloud-pullrequest-created-draft", "pullrequest:created", "pull-request", number=12),
    Sample("bitbucket", "cloud-pullrequest-updated", "pullrequest:updated", "pull-request", number=12),
    Sample("bitbucket", "cloud-pullrequest-rejected", "pullrequest:rejected", "pull-request", number=12),
    Sample("bitbucket", "cloud-pullrequest-approved", "pullrequest:approved", "other"),
    Sample("bitbucket", "cloud-comment_created", "pullrequest:comment_created", "pull-request", number=12, comment="311512047"),
    Sample("bitbucket", "cloud-comment_created-talk", "pullrequest:comment_created", "other"),
    Sample("bitbucket", "cloud-comment_updated", "pullrequest:comment_updated", "other"),
    Sample("bitbucket", "cloud-comment_deleted", "pullrequest:comment_deleted", "other"),
    Sample("bitbucket", "center-refs_changed", "repo:refs_changed", "push", (MAIN,)),
    Sample("bitbucket", "center-refs_changed-several", "repo:refs_changed", "push", (MAIN, OLD_GONE, NEW_TAG)),
    Sample("bitbucket", "center-ping", "diagnostics:ping", "ping"),
    Sample("bitbucket", "center-modified", "repo:modified", "other"),
    Sample("bitbucket", "center-pr-opened", "pr:opened", "pull-request", number=12),
    Sample("bitbucket", "center-pr-opened-fork", "pr:opened", "pull-request", number=12),
    Sample("bitbucket", "center-pr-from_ref_updated", "pr:from_ref_updated", "pull-request", number=12),
    Sample("bitbucket", "center-pr-modified-target", "pr:modified", "pull-request", number=12),
    Sample("bitbucket", "center-pr-modified-ready", "pr:modified", "pull-request", number=12),
    Sample("bitbucket", "center-pr-modified-draft", "pr:modified", "pull-request", number=12),
    Sample("bitbucket", "center-pr-modified-title", "pr:modified", "other"),
    Sample("bitbucket", "center-pr-merged", "pr:merged", "pull-request", number=12),
    Sample("bitbucket", "center-pr-declined", "pr:declined", "pull-request", number=12),
    Sample("bitbucket", "center-pr-deleted", "pr:deleted", "other"),
    Sample("bitbucket", "center-pr-reviewer-approved", "pr:reviewer:approved", "other"),
    Sample("bitbucket", "center-comment-added", "pr:comment:added", "pull-request", number=12, comment="65"),
    Sample("bitbucket", "center-comment-added-talk", "pr:comment:added", "other"),
    Sample("bitbucket", "center-comment-edited", "pr:comment:edited", "other"),
    Sample("bitbucket", "center-comment-deleted", "pr:comment:deleted", "other"),
    Sample("azuredevops", "push", "", "push", (MAIN,)),
    Sample("azuredevops", "push-several", "", "push", (CART, MAIN, NEW_TAG, OLD_GONE)),
    Sample("azuredevops", "push-delete", "", "push", (MAIN_GONE,)),
    Sample("azuredevops", "pullrequest", "", "pull-request", number=1),
    Sample("azuredevops", "pullrequest-created-draft", "", "pull-request", number=12),
    Sample("azuredevops", "pullrequest-updated-push", "", "pull-request", number=12),
    Sample("azuredevops", "pullrequest-updated-ready", "", "pull-request", number=12),
    Sample("azuredevops", "pullrequest-updated-completed", "", "pull-request", number=12),
    Sample("azuredevops", "pullrequest-updated-vote", "", "other"),
    Sample("azuredevops", "pullrequest-updated-reviewers", "", "other"),
    Sample("azuredevops", "pullrequest-merged", "", "other"),
    Sample("azuredevops", "comment", "", "pull-request", number=12, comment="5/2"),
    Sample("azuredevops", "comment-talk", "", "other"),
    Sample("azuredevops", "comment-edited", "", "other"),
    Sample("azuredevops", "comment-deleted", "", "other"),
    Sample("azuredevops", "comment-system", "", "other"),
    Sample("generic", "push", "", "push", (MAIN,)),
    Sample("generic", "push-least", "", "push", (RefChange("refs/heads/main"),)),
    Sample("generic", "push-tag", "", "push", (TAG,)),
    Sample("generic", "push-delete", "", "push", (MAIN_GONE,)),
)
PUSHES = {sample.provider: sample for sample in reversed(SAMPLES) if sample.changes == (MAIN,)}
"""A push of main for each provider."""
ONE_OF_EACH = tuple({(sample.provider, sample.kind, sample.changes): sample for sample in reversed(SAMPLES)}.values())
"""The first of each provider that is read as the same: what comes after the reading knows no more of a payload."""


def hexadecimal(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _basic(secret: str) -> str:
    return "Basic " + base64.b64encode(f"hooks:{secret}".encode()).decode()


def _gitlab(body: bytes, secret: str) -> dict[str, str]:
    return signed_by_token(body, secret) if secret.startswith("whsec_") else {"X-Gitlab-Token": secret}


def signed_by_token(body: bytes, secret: str, at: datetime | None = None) -> dict[str, str]:
    """Sign like a GitLab with a signing token. A body that isn't text can't be signed by the library: its signature is wrong."""
    at = at or datetime.now(UTC)
    signature = Webhook(secret).sign("7a1d", at, body.decode(errors="replace"))
    return {"webhook-id": "7a1d", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}


_PROOFS: Mapping[str, Callable[[bytes, str], dict[str, str]]] = {
    "github": lambda body, secret: {"X-Hub-Signature-256": f"sha256={hexadecimal(body, secret)}"},
    "gitlab": _gitlab,
    "gitea": lambda body, secret: {"X-Gitea-Signature": hexadecimal(body, secret)},
    "bitbucket": lambda body, secret: {"X-Hub-Signature": f"sha256={hexadecimal(body, secret)}"},
    "azuredevops": lambda body, secret: {"Authorization": _basic(secret)},
    "generic": lambda body, secret: {"X-Signature-256": f"sha256={hexadecimal(body, secret)}"},
}
PROOF = {name: next(iter(made(b"", "x"))) for name, made in _PROOFS.items()}
"""The header that a provider proves itself with."""
_EVENTS = {"github": "X-GitHub-Event", "gitlab": "X-Gitlab-Event", "gitea": "X-Gitea-Event", "bitbucket": "X-Event-Key"}
_IDS = {
    "github": "X-GitHub-Delivery",
    "gitlab": "X-Gitlab-Event-UUID",
    "gitea": "X-Gitea-Delivery",
    "bitbucket": "X-Request-UUID",
    "azuredevops": "X-Vss-ActivityId",
    "generic": "X-Delivery-Id",
}


def headers(provider: str, body: bytes, event: str = "", secret: str = "") -> dict[str, str]:
    """Return what a host sends along; `secret`: the one it signs with instead of its own."""
    named = {_EVENTS[provider]: event} if provider in _EVENTS else {}
    identified = {"Content-Type": "application/json", _IDS[provider]: "0f6b4a8e-9a11"}
    return {**identified, **named, **_PROOFS[provider](body, secret or KEYS[provider.upper()])}


def accepted(*values: str) -> list[Accepted]:
    return [Accepted(Secret(value), frozenset({"shop"})) for value in values]


def read(provider: str, body: bytes, sent: Mapping[str, str] | None = None, event: str = "push") -> Event:
    """Read a delivery as the door does, with the provider's own secret."""
    given = headers(provider, body, event) if sent is None else sent
    found, targets = WEBHOOKS[provider].verified(given, body, accepted(KEYS[provider.upper()]))
    assert targets == {"shop"}
    return found


def settings() -> Settings:
    """Targets of `shop` (main, tags of version 1, one that is suspended), one of `infra` with its own secret; all providers.

    Pull requests of `shop` are planned.
    """
    shop = Repository(SHOP, aliases=ALIASES, feedback=FeedbackSettings(pull_requests=True, host="gitea", token=SecretRef(env="HOST")))
    return Settings(
        targets=(
            Target("shop", shop, ("shop",)),
            Target("shop-versions", shop, ("versions",), revision=Revision(semver=">=1 <2")),
            Target("shop-paused", shop, ("paused",), suspend=True),
            Target("infra", Repository(INFRA, webhook=refs("INFRA")), ("infra",)),
        ),
        webhooks=WebhookSettings(
            github=refs("GITHUB"),
            gitlab=refs("GITLAB", "SIGNING"),
            gitea=refs("GITEA"),
            bitbucket=refs("BITBUCKET"),
            azuredevops=refs("AZUREDEVOPS"),
            generic=refs("GENERIC"),
        ),
    )


def secrets() -> Secrets:
    return resolve_all(settings(), KEYS)
