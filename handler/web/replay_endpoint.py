"""`POST /replay/<target>`: a person or a pipeline asks for a run, with a named token bounded to targets and acts."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import Response

from handler.config.instance_target import configured_as
from handler.config.settings import Settings
from handler.model.advice import advice
from handler.model.errors import AnnealError, BadPayload, Forbidden
from handler.model.event import Decision, Job
from handler.queues import Queue
from handler.triggers import payload
from handler.web import responses
from handler.web.tokens import Tokens, configured

_LOG = logging.getLogger("anneal.replay")
_KEYS = ("commit", "dryRun", "force", "approve", "unpin", "rollback")
_HELD = re.compile(r"[A-Za-z0-9._-]{1,128}")


@dataclass(frozen=True, slots=True)
class ReplayEndpoint:
    """Takes requests for runs."""

    settings: Settings
    tokens: Tokens
    queue: Queue

    def receive(self, target: str, authorization: str, body: Callable[[], bytes]) -> Response:
        """Handle one request. Raises SenderError: 401, then 403, 404, 413, 415, 400, so that nothing is revealed without a token.

        `body` reads the request's body within its bound; it is called only for a valid token of this target.
        """
        actor = ""
        try:
            bounds = self.tokens.bearer(authorization)
            actor = bounds.name
            configured(bounds, target, self.settings)
            job = read(target, actor, body())
            if missing := acts(job) - set(bounds.may):
                raise Forbidden.of(f"token {actor}", f"may not {', '.join(sorted(missing))}")
            run = self.queue.put(job)
        except AnnealError as refusal:
            fields = {"actor": actor, "code": refusal.code}
            if configured_as(self.settings, target):  # else the sender may have written anything there
                fields |= {"target": target, "seen": str(refusal)}
            _LOG.warning("replay refused", extra={"fields": fields})
            raise
        asked = {"commit": job.commit, "dryRun": job.dry_run, "force": job.force, "approve": job.approve, "unpin": job.unpin}
        _LOG.info("replay", extra={"fields": {"target": target, "actor": actor, "run": run, **asked, "rollback": job.rollback}})
        return responses.accepted([Decision(target, matched=True, reason=f"asked for by {actor}")], {target: run})


def read(target: str, actor: str, body: bytes) -> Job:
    """Read what is asked. An empty body asks for a plain run. Raises BadPayload."""
    asked = payload.read(body) if body else {}
    if unknown := sorted(set(asked) - set(_KEYS)):
        raise BadPayload.of("payload", f"unknown key {unknown[0][:64]!a}", fix=f"known are {', '.join(_KEYS)}")
    commit = payload.sha(asked, "commit")
    approve = payload.text(asked, "approve")
    unpin = payload.flag(asked, "unpin")
    if "approve" in asked and not _HELD.fullmatch(approve):  # empty or null is a script's mistake, and no plain run
        raise BadPayload.of("payload", "approve is not the id of a held run", fix="leave the key out, or take the id from `anneal status`")
    if "commit" in asked and not commit:
        raise BadPayload.of("payload", "commit is not a commit id")
    force = payload.flag(asked, "force")
    if commit and force:  # a host serves the commits of forks under the parent's address, too
        fix = advice("run `anneal apply {} --commit {} --force` where you can read the repository", target, commit)
        raise BadPayload.of("payload", "a commit that this target never ran can't be forced over HTTP", fix=fix)
    rollback = payload.flag(asked, "rollback")
    if rollback and force:
        raise BadPayload.of("payload", "a rollback runs in any case: ask for it without force")
    if bool(commit) + unpin + rollback > 1:
        raise BadPayload.of("payload", "commit and rollback pin, unpin ends the pin: ask for one of them")
    return Job(
        target=target,
        trigger="replay",
        commit=commit,
        force=force,
        dry_run=payload.flag(asked, "dryRun"),
        approve=approve,
        unpin=unpin,
        rollback=rollback,
        actor=actor,
    )


def acts(job: Job) -> set[str]:
    """Return the acts a token needs for this: what pins, or ends a pin, changes what is deployed, hence `rollback`."""
    found: set[Any] = set()
    if job.commit or job.unpin or job.rollback:
        found.add("rollback")
    if job.approve:
        found.add("approve")
    return found or {"replay"}
